"""What is asked: one typed model, which Python arguments, flags and page controls make."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES, checked_name
from capbias_core.load.formats import check_one_table
from capbias_core.load.places import checked_path
from capbias_core.load.questions import UNNAMED, File, Given
from capbias_core.load.sheet import cell_text
from capbias_core.measures.options import Checked, Option, Seeded, option
from capbias_core.measures.protocols import protocol_metrics, protocol_settings
from capbias_core.measures.registry import check_choices, expand_metrics, needs_references
from capbias_core.measures.registry import metric as metric_named
from capbias_core.prepare.align import DELTA
from capbias_core.typed import typed
from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.workspace.vectors import CONSTANT, check_delta

# A path; a table, also a Dataset of Hugging Face; records, one per row; or COCO's JSON once parsed.
Source = str | os.PathLike | pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]

DEFAULT_METRICS = ("lic", "ratio", "error", "unnamed", "refused")
CONTEXTUAL = "contextual"
# Arguments that say what columns and rows of files are; a stored item is as it was read.
COLUMNS = ("image_id_column", "caption_column", "reference_column", "captioner_column", "attribute_column", "rows")
OF_FILES = (*COLUMNS, "sets", "several", "values", "mapping", "map")


@dataclass(frozen=True)
class Question(Checked):
    """What is asked. With `files`, these are read first (`resolve`); without, every source is the name of a stored
    item."""

    collection: str = option("", "the collection that holds the items", metavar="NAME")
    captions: tuple[str, ...] = option((), "files of captions; with --collection, names (default: all)", metavar="FILE")
    labels: str = option("", "a table of labels, or its name in the collection", metavar="FILE")
    attribute: str = option(
        "", f"{', '.join(known_attributes())}, one of the collection, a TOML file, or a column", metavar="NAME"
    )
    metrics: tuple[str, ...] = option((), "metrics or groups of them", metavar="NAME")
    references: str = option("", "human captions; with --collection, their name", metavar="FILE")
    attacker: tuple[str, ...] = option((DEFAULT_ATTACKER,), "attackers, each with runs of its own", metavar="NAME")
    seeds: int | None = field(default=None, metadata={"option": Seeded.about()["seeds"]})
    words: bool = option(False, "also scores and words of each caption, and words compared with human captions")
    objects: str = option("", "COCO instances, or a table image_id, objects (cat|dog); or a name", metavar="FILE")
    options: dict[str, Any] = field(
        default_factory=dict, metadata={"option": Option("further choices by the name of the field in Options")}
    )
    per_object: bool = option(False, "also a row for each object")
    rank_by: tuple[str, ...] = option(("", ""), "metric and direction; ('', '') for the one that answers")
    files: tuple[Any, ...] = option((), "each source as a File of load/read.py")
    given: Any = option(Given(), "what is said of columns and rows of files, a Given of load/read.py")
    values: tuple[str, ...] = option((), "labels of a column to compare (default: all)", metavar="LABEL")
    alignment: str = option(
        CONSTANT,
        "replacement of human words that the captioner never uses: <unk>, or the nearest word",
        choices=(CONSTANT, CONTEXTUAL),
    )
    vectors: str | None = option(
        None, "GloVe, word2vec or fastText, for contextual alignment; or a name", metavar="FILE"
    )
    delta: float | None = option(
        None, f"cosine distance below which a word is near (default: {DELTA})", metavar="DISTANCE"
    )

    def __post_init__(self) -> None:
        for name in ("captions", "metrics", "attacker"):
            object.__setattr__(self, name, several_names(getattr(self, name)))
        super().__post_init__()

    @classmethod
    def of(
        cls,
        *,
        stored: bool = False,
        files: Iterable[str | os.PathLike] = (),
        captions: Any = None,
        labels: Any = None,
        references: Any = None,
        objects: Any = None,
        protocol: str = "",
        **given: Any,
    ) -> Question:
        """A checked question, in which the protocol sets what is not given (None or empty).

        stored: sources are names of stored items. files: paths whose kind is detected. given: columns, rows, `sets`,
        `several`, photographs and people as `capbias.score` takes them, and other fields.
        """
        given = {
            name: value
            for name, value in given.items()  # an array is neither true nor false
            if value is not None and not (isinstance(value, str | Sequence | Mapping) and not value)
        }
        if stored and (unread := [name for name in OF_FILES if name in given]):
            raise CapbiasError(
                "A stored item is as it was read.", "Leave this out, or import the file with it.", *unread
            )
        about = given_of(given)
        if isinstance(chosen := given.get("values"), list | tuple):
            given["values"] = tuple(map(cell_text, chosen))
        if not given.get("attribute"):
            raise CapbiasError("No attribute is given.", "Name a protected attribute, such as gender.")
        settings = protocol_settings(typed("protocol", protocol, str, "protocol"))
        given.setdefault("metrics", protocol_metrics(protocol, DEFAULT_METRICS))
        given.setdefault("attacker", settings.get("attacker", DEFAULT_ATTACKER))
        given.setdefault("seeds", settings.get("seeds"))
        own = {name: value for name, value in settings.items() if name not in ("attacker", "seeds")}
        places = {name: given.pop(name) for name in ("photographs", "people") if name in given}
        given["options"] = own | dict(given.get("options", {})) | places
        if stored:
            named = {"labels": labels, "references": references, "objects": objects}
            given |= {name: value for name, value in named.items() if value} | {"captions": captions or ()}
        else:
            read = files_of(files, {CAPTIONS: captions, LABELS: labels, REFERENCES: references, OBJECTS: objects})
            given |= {"files": tuple(read), "given": about}
        asked = cls(**given)
        asked.check()
        return asked

    @property
    def choices(self) -> dict[str, Any]:
        """Choices of measures by the name of the field in their Options, with the first attacker."""
        seeds = {} if self.seeds is None else {"seeds": self.seeds}
        return {"attacker": self.attacker[0]} | seeds | self.options

    def check(self) -> None:
        """Raises CapbiasError for a metric or choice that is not known or not allowed."""
        metrics = expand_metrics(self.metrics)
        of_files = ("photographs", "people") if self.files else ()  # files and frames until they are stored
        check_choices({name: value for name, value in self.choices.items() if name not in of_files})
        if len(self.rank_by) != 2:
            raise CapbiasError(f"rank_by must be a metric, or a metric and its direction, not {self.rank_by!r}.")
        name, direction = self.rank_by
        if name and metric_named(name).name not in metrics:
            asked = ", ".join(self.metrics)
            raise CapbiasError(f"rank_by names {name}, but metrics asks for {asked} only.", f"Add {name} to metrics.")
        if name and not metric_named(name).reads:
            raise CapbiasError(
                f"Captioners cannot be ranked by {name}, which is no mean over images and has no p.",
                "Compare its values, or rank by another metric.",
            )
        if direction not in ("", A_TO_T, T_TO_A):
            raise unknown_name("direction", direction, (A_TO_T, T_TO_A))
        if self.delta is not None:
            check_delta(self.delta)
        unused = [name for name in ("vectors", "delta") if getattr(self, name) is not None]
        if unused and self.alignment == CONSTANT:
            raise CapbiasError(
                f"Only contextual alignment reads {' and '.join(unused)}.",
                "Choose that alignment.",
                "alignment",
                *unused,
            )
        if self.files and self.alignment == CONTEXTUAL and not self.vectors:
            raise CapbiasError("Contextual alignment needs word vectors.", "Name a file of word vectors.", "vectors")

    def to_plan(self, words: bool = False) -> Question:
        """The question with metrics by their names, and without human captions if neither words nor a metric need
        them."""
        names = expand_metrics(self.metrics)
        needed = words or any(map(needs_references, names))
        return replace(self, metrics=names, words=words, references=self.references if needed else "")


def several_names(given: str | os.PathLike | Iterable) -> tuple:
    """One name or several as a tuple."""
    if not isinstance(given, str | os.PathLike | Iterable):
        raise CapbiasError(f"{given!r} is neither a name nor a list of names.")
    return (given,) if isinstance(given, str | os.PathLike) else tuple(given)


def given_of(given: dict[str, Any]) -> Given:
    """What arguments say of columns and rows of files; taken out of the arguments. rows: a mapping, or texts such as
    `language=en`. mapping: label -> value, or map: texts such as `gender:f=Female`. Raises CapbiasError for a text
    without =."""
    if isinstance(rows := given.get("rows"), Mapping):
        given["rows"] = [f"{column}={cell_text(value)}" for column, value in rows.items()]
    named = {name: several_names(given.pop(name, None) or ()) for name in COLUMNS}
    columns = {name: typed(name, values, tuple[str, ...], name) for name, values in named.items()}
    if wrong := [text for text in columns["rows"] if "=" not in text]:
        raise CapbiasError(f"The choice of rows is {wrong[0]!r}.", "Write COLUMN=VALUE.", "rows")
    mapping, name = (
        typed("mapping", given.pop("mapping", None) or {}, dict, "mapping"),
        str(given.get("attribute", "")),
    )
    name = get_attribute(name).name if mapping and name.endswith(".toml") else name
    pairs = (f"{name}:{cell_text(label)}={value or ''}" for label, value in mapping.items())
    words = {each: typed(each, given.pop(each, ""), str, each) for each in ("sets", "several")}
    return Given(**columns, map=(*(given.pop("map", None) or ()), *pairs), **words)


def files_of(files: Iterable[str | os.PathLike], given: Mapping[str, Any]) -> list[File]:
    """Sources as files, each once, with all that they were given as. files: paths whose kind is detected. given: kind
    -> source, or several. Raises CapbiasError for a URL."""
    result: dict[Any, File] = {}
    for path in files:
        result.setdefault(checked_path(path), File(checked_path(path)))
    for kind, sources in given.items():
        if sources is None:
            continue
        for file in caption_files(sources) if kind == CAPTIONS else source_files(sources, kind):
            key = file.source if isinstance(file.source, Path) else id(file.source)
            known = result.get(key, file)
            if kind in known.kinds and file.name != known.name:  # one source as two captioners
                key, known = (key, file.name), file
            result[key] = replace(known, kinds=tuple(dict.fromkeys((*known.kinds, kind))), name=known.name or file.name)
    if not result:
        raise CapbiasError("No captions were given.", "Name one or more caption files.", "captions")
    return list(result.values())


def source_files(sources: Any, kind: str) -> list[File]:
    """A source, or a list of paths or tables, as files of a kind."""
    check_one_table(sources)
    if isinstance(sources, str | os.PathLike):
        return [File(checked_path(sources), (kind,))]
    several = (
        isinstance(sources, list | tuple)
        and bool(sources)
        and all(isinstance(each, str | os.PathLike | pd.DataFrame | pd.Series) for each in sources)
    )
    if several:
        return [file for each in sources for file in source_files(each, kind)]
    return [File(sources, (kind,), {CAPTIONS: UNNAMED, LABELS: "labels"}.get(kind, kind))]


def caption_files(given: Any) -> list[File]:
    """Caption sets as files: a path is named after its file, a table or list `captions`, a dict names its sets, unless
    its keys are images: {image: caption}, {image: [captions]} or {image: [{"caption": caption}]}.

    >>> [file.path for file in caption_files(["nic.json", "out/sat.json"])]
    ['nic.json', 'out/sat.json']
    >>> [file.name for file in caption_files({"mine": [{"image_id": 1, "caption": "a"}]})]
    ['mine']
    >>> [file.name for file in caption_files({1: "a dog on grass", 2: "a cat"})]
    ['captions']
    """
    if isinstance(given, Mapping | Sequence) and not len(given):
        raise CapbiasError("No captions were given.", "Name one or more caption files.", "captions")
    check_one_table(given)
    if isinstance(given, Mapping) and all(map(_is_set, given.values())):
        named = {checked_name(str(name)): source for name, source in given.items()}
        return [replace(file, name=name) for name, source in named.items() for file in source_files(source, CAPTIONS)]
    return source_files(given, CAPTIONS)


def _is_set(value: Any) -> bool:
    """Whether a value of a dict of captions is a whole set, not captions of an image. No text is tried as a path."""
    if isinstance(value, str):
        return Path(value).suffix[1:].isalnum()
    if isinstance(value, Mapping):
        return len(value) > 1 and not any(
            str(key).lower() in ("caption", "captions", "text", "image_id") for key in value
        )
    if isinstance(value, list | tuple):
        rows = [row for row in value if isinstance(row, Mapping)]
        return bool(rows) and any(str(key).lower().startswith(("image", "img", "file", "id")) for key in rows[0])
    return True
