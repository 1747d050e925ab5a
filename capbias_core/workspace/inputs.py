"""What a user brings to be measured (files, tables, lists, or names of what is kept already), kept in a workspace.

The command line and `capbias.score` both come here, so that the same input gives the same runs and the same errors.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import detect, read_boxes
from capbias_core.load.boxes import is_boxes
from capbias_core.load.kinds import Likely, likely
from capbias_core.load.photographs import find_pictures
from capbias_core.prepare.align import DELTA
from capbias_core.types import Attribute, Progress, Table, silent
from capbias_core.workspace import ingest
from capbias_core.workspace.boxes import (
    CONFIDENCE,
    WEIGHTS,
    boxes_of,
    keep_boxes,
    keep_objects_of,
    weights_of,
    weights_option,
)
from capbias_core.workspace.boxes import Found as FoundBoxes
from capbias_core.workspace.conditions import CUT
from capbias_core.workspace.labels import also_holding, compared_lines, dropped_line, holds, table_with
from capbias_core.workspace.labels import resolve_attribute as mapped
from capbias_core.workspace.objects import OBJECTS
from capbias_core.workspace.person_regions import BOXES, SEGMENTS
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Item, Workspace, checked_name, default_folder, suggested_name
from capbias_core.workspace.vectors import VECTORS, alignment_option, keep_vectors, offer_vectors

# A table; records, one per row; or COCO's JSON as it is once parsed.
Records = pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]
Source = str | os.PathLike | Records
AnyPath = TypeVar("AnyPath", bound=str | os.PathLike)
Tell = Callable[[str], None]

CONSTANT, CONTEXTUAL = "constant", "contextual"
ALIGNMENTS = (CONSTANT, CONTEXTUAL)
UNNAMED = "captions"  # the captioner of a table or list that came without a name


@dataclass(frozen=True)
class Inputs:
    """What is to be measured. Each source may be a name if `names`: of an item that the collection holds.

    captions: by captioner; empty for all that are kept. attribute: a known one, a TOML file or a column of the labels.
    attribute_column: of its labels, '' to find it. values: the labels of a column that are compared, () for all.
    columns: names for 'image_id' and 'caption' if they are not the usual ones. photographs: a folder. people: outlines
    or boxes. weights: of a detector that finds objects on the photographs. vectors, delta: of a contextual alignment.
    own_attributes: a folder of TOML files of the user's own. read: captions that were read already, by path. sets: what
    several captions of an image are, one of `ingest.SETS`.
    """

    captions: Mapping[str, Source]
    attribute: str
    labels: Source | None = None
    references: Source | None = None
    objects: Source | None = None
    photographs: str | os.PathLike | None = None
    people: Source | None = None
    weights: str | None = None
    alignment: str = CONSTANT
    vectors: str | os.PathLike | None = None
    delta: float | None = None
    attribute_column: str = ""
    values: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    own_attributes: Path | None = None
    read: Mapping[str, Table] = field(default_factory=dict)
    sets: str = ingest.SAMPLES
    names: bool = False


@dataclass(frozen=True)
class Kept:
    """The names under which a collection holds the inputs. options: choices of measures that name inputs, by field."""

    collection: str
    captions: tuple[str, ...]
    table: str
    attribute: str
    references: str
    objects: str
    options: dict[str, Any]


def captioners(given: object) -> dict[str, Source]:
    """Caption sets by the name of their captioner: a path's name without its ending, else `captions`.

    >>> list(captioners(["nic.json", "out/sat.json"])), list(captioners({"mine": [{"image_id": 1, "caption": "a"}]}))
    (['nic', 'sat'], ['mine'])
    """
    if given is None or (isinstance(given, Mapping | Sequence) and not len(given)):
        raise CapbiasError("no captions", "one or more sets of captions", "Name them after --captions.")
    if isinstance(given, Mapping) and "annotations" not in given:
        return {checked_name(str(name)): own for name, own in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str) and all(map(_is_path, given)):
        return by_stem(given)
    return by_stem([given]) if isinstance(given, str | os.PathLike) else {UNNAMED: given}


def _is_path(given: object) -> bool:
    return isinstance(given, str | os.PathLike)


def by_stem(paths: Sequence[AnyPath]) -> dict[str, AnyPath]:
    """Paths by their name without its ending. Raises CapbiasError for two of one name."""
    names = [checked_name(Path(path).stem) for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CapbiasError(
            f"several files of captions called {', '.join(twice)}",
            "a different name for each, since a captioner is named after its file",
            "Rename a file.",
        )
    return dict(zip(names, paths, strict=True))


@contextmanager
def workspace_at(folder: Path | str | None, make: bool = False) -> Iterator[Workspace]:
    """The workspace in a folder (None: the usual one). One that is not there is made only if something will be kept;
    else an empty one stands in."""
    place = Path(folder) if folder else default_folder()
    if make or place.exists():
        yield Workspace(place)
        return
    with temporary_workspace() as workspace:
        yield workspace


@contextmanager
def temporary_workspace() -> Iterator[Workspace]:
    """A workspace that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        yield Workspace(folder)


def keep_inputs(workspace: Workspace, collection: str, given: Inputs, tell: Tell, progress: Progress = silent) -> Kept:
    """Read and keep what a user brings, and look up what is only named. tell: gets each line that should be said.

    Raises CapbiasError for whatever cannot be read or does not belong together.
    """
    check_alignment(given)
    if given.names and given.sets != ingest.SAMPLES:
        got = f"several captions of an image as {given.sets}, of what a collection holds"
        raise CapbiasError(got, "files", "Say it when the file is imported.")
    if given.names:
        return _looked_up(workspace, collection, given, tell)
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        files = _Files(Path(folder), given, tell)
        table, attribute, references, captions = _keep_texts(workspace, collection, given, files, tell)
        objects = _keep_objects(workspace, collection, given, files, tell, progress)
        options = _keep_photographs(workspace, collection, given, files, tell)
    options |= _alignment(workspace, collection, given, tell)
    return Kept(collection, captions, table, attribute, references, objects, options)


# names of what is kept


def _looked_up(workspace: Workspace, collection: str, given: Inputs, tell: Tell) -> Kept:
    """All captions if none is named, the newest table with the attribute, the only references."""
    if collection not in workspace.collections():
        raise unknown_name("collection", collection, workspace.collections())
    items = workspace.items(collection=collection)
    kept = [item for item in items if item.kind == "attributes"]
    if given.labels:
        named = [item for item in kept if item.name == str(given.labels)]
        if not named:
            raise unknown_name("table of labels", str(given.labels), [item.name for item in kept])
        kept = named
    tables = {name for item in kept for name in item.details.get("attributes", ())}
    attribute = given.attribute
    if attribute not in tables and derivable(attribute, given.own_attributes):
        raise CapbiasError(
            f"attribute {attribute!r}, which no table of the collection {collection!r} holds",
            f"one of: {', '.join(sorted(tables)) or 'none'}; or human captions, from which its labels are derived",
            f"First run: capbias import --kind attributes --attribute {attribute} --from-references NAME.",
        )
    if attribute not in tables:
        raise unknown_name("attribute", attribute, tables)
    table = table_with(kept, attribute).name
    if others := [item.name for item in kept if attribute in item.details["attributes"] and item.name != table]:
        tell(f"labels of {attribute}: {table}; also here, and not read: {', '.join(others)}")
    sets = [item for item in items if item.kind == "captions"]
    captions = tuple(given.captions) or tuple(item.name for item in sets if CUT not in item.details)
    human = [item.name for item in items if item.kind == "references"]
    references = str(given.references) if given.references else _only(human, collection)
    chosen = {name: str(own) for name in ("photographs", "people") if (own := getattr(given, name))}
    options = chosen | _alignment(workspace, collection, given, tell)
    return Kept(collection, captions, table, attribute, references, str(given.objects or ""), options)


def _only(references: list[str], collection: str) -> str:
    if len(references) > 1:
        got = f"{len(references)} sets of references in {collection} ({', '.join(references)})"
        raise CapbiasError(got, "one of them", "Name it with --references.")
    return "".join(references)


# files


class _Files:
    """The file of each input: a path as it is; a table or a list as a file of its own, which is read as any other.

    Human captions that stand beside a model's captions are taken from there if no others are named.
    """

    def __init__(self, folder: Path, given: Inputs, tell: Tell):
        self._folder, self.given = folder, given
        self.captions = {
            name: self._file(own, name if _is_path(own) else _told(name)) for name, own in given.captions.items()
        }
        self.labels, self.references, self.objects, self.people = (
            None if (own := getattr(given, role)) is None else self._file(own, f"the {role}")
            for role in ("labels", "references", "objects", "people")
        )
        self.references = self._beside(tell) or self.references
        texts = [self.labels, self.references, *self.captions.values()]
        self._columns = columns_of_files(given.columns, [path for path in texts if path])

    def _file(self, source: Source, name: str) -> Path:
        if isinstance(source, str | os.PathLike):
            return checked_path(source)
        path = self._folder / name
        path.write_text(_as_json(source, name), encoding="utf-8")
        return path

    def _beside(self, tell: Tell) -> Path | None:
        """The first file of captions with human ones in it, rather one with image ids. What is left out is said."""
        found = [
            (own.by_rows, path) for path in self.captions.values() if (own := self._likely(path)) and own.references
        ]
        files = [path for _, path in sorted(found, key=lambda own: own[0])]
        if self.references:
            files.insert(0, self.references)
        if left_out := ", ".join(path.name for path in files[1:]):
            tell(f"note: human captions are those of {files[0].name}; those in {left_out} are left out")
        elif files and not self.references:
            tell(f"note: human captions are those in {files[0].name}")
        return files[0] if files else None

    def _likely(self, path: Path) -> Likely | None:
        """What a file is taken for; None for one that cannot be read, of which reading says why."""
        try:
            return likely(path, self.given.columns)
        except CapbiasError:
            return None

    def columns(self, path: Path) -> dict[str, str]:
        """The columns that were named and that a file has."""
        return self._columns.get(path, {})

    def by_role(self) -> dict[str, Path]:
        first = next(iter(self.captions.values()), None)
        found = {"captions": first, "labels": self.labels, "references": self.references, "objects": self.objects}
        return {role: path for role, path in found.items() if path}


def checked_path(given: str | os.PathLike) -> Path:
    """A path. Raises CapbiasError for an address on the network, which a path would garble."""
    text = os.fspath(given)
    if "://" in text:
        raise CapbiasError(f"{text}, a URL", "a file on this machine", "Download it, and name the file.")
    return Path(text)


def _told(name: str) -> str:
    """What a message calls a table of captions; one without a captioner's name is just that."""
    return "the captions" if name == UNNAMED else f"the captions of {name}"


def _as_json(source: Records, name: str) -> str:
    """A table or list as JSON, which the readers of files know."""
    if isinstance(source, bytes) or not isinstance(source, Mapping | Sequence | pd.DataFrame):
        raise CapbiasError(
            f"{name} as {type(source).__name__}", "a path, a DataFrame or a list of dicts", "Pass one of these."
        )
    if not len(source):
        raise CapbiasError(f"{name} without a row", "a row for each image or more", "Pass a table or list with rows.")
    if isinstance(source, Mapping | Sequence):
        return json.dumps(source if isinstance(source, Mapping) else list(source), default=_plain)
    named = source.reset_index() if source.index.name else source
    return named.to_json(orient="records", force_ascii=False, double_precision=15)


def _plain(value: Any) -> Any:
    """A value of numpy or torch as one of Python."""
    return value.item() if hasattr(value, "item") else str(value)


def columns_of_files(given: Mapping[str, str], paths: Sequence[Path]) -> dict[Path, dict[str, str]]:
    """For each file the columns, by role, that the user named and that it has; the others are guessed.

    Raises CapbiasError for a column that no file has.
    """
    found = {path: detect(path).columns if given else () for path in paths}
    for role, name in given.items():
        if not any(name in columns for columns in found.values()):
            flag = f"--{role.replace('_', '-')}-column {name}"
            have = ", ".join(dict.fromkeys(column for columns in found.values() for column in columns))
            raise CapbiasError(f"{flag}, which no file has", f"one of: {have}", "Check the spelling.")
    return {path: {role: name for role, name in given.items() if name in found[path]} for path in paths}


def _keep_texts(
    workspace: Workspace, collection: str, given: Inputs, files: _Files, tell: Tell
) -> tuple[str, str, str, tuple[str, ...]]:
    """Labels first, so that the reports on captions can speak of them. Returns the names of the table, the attribute,
    the human captions and the caption sets."""
    reports: list = []
    sets: dict[str, list[str]] = {}
    references = _name_of(files.references, "references")
    try:
        labels = files.labels
        table = _preview(workspace, labels, "attributes", collection, files, reports) if labels else None
        rule = derivable(given.attribute, given.own_attributes)
        if rule and not given.attribute_column and not (table and holds(table.frame, rule)):
            name, attribute = _keep_derived(workspace, collection, rule, given, files, reports, tell)
        else:
            if labels is None or table is None:
                raise CapbiasError(
                    "no labels", "a table of labels, one row per image, or a collection that holds one", "Name them."
                )
            name, attribute = _keep_labels(workspace, collection, labels, table, files, tell)
            if files.references:
                _keep_captions(workspace, collection, "references", references, files.references, files, reports)
        for own, path in files.captions.items():
            sets[own] = _keep_captions(workspace, collection, "captions", own, path, files, reports)
    finally:
        warn(reports, tell)
    _warn_of_swapped_texts(workspace, collection, files, references, sets, tell)
    return name, attribute, references, tuple(own for names in sets.values() for own in names)


def _name_of(path: Path | None, usual: str) -> str:
    if path is None:
        return ""
    return suggested_name(path.stem) if path.suffix else usual


def _preview(
    workspace: Workspace, path: Path, kind: str, collection: str, files: _Files, reports: list
) -> ingest.ImportPreview:
    role, columns = "labels" if kind == "attributes" else kind, files.columns(path)
    table = files.given.read.get(str(path)) if kind == "captions" else None
    try:
        found = ingest.preview_import(workspace, path, kind, collection, columns, table)
    except CapbiasError as error:
        raise misplaced(role, path, files.given, files.by_role()) or error from None
    reports.append(found.report)
    return found


def _keep_labels(
    workspace: Workspace, collection: str, path: Path, table: ingest.ImportPreview, files: _Files, tell: Tell
) -> tuple[str, str]:
    given = files.given
    try:
        attribute, details = mapped(
            table.frame, given.attribute, given.attribute_column, given.values, folder=given.own_attributes
        )
    except CapbiasError as error:
        raise misplaced("labels", path, given, files.by_role()) or error from None
    name = _name_of(path, "labels")
    ingest.keep_attributes(workspace, table.frame, name, collection, table.report.file, {attribute: details})
    others = "" if given.attribute_column else ", ".join(also_holding(table.frame, details))
    too = f"; {others} holds it too, and is not read (choose with --attribute-column)" if others else ""
    tell(f"labels: {attribute} from the column {details['column']} of {path.name}{too}")
    for line in [*compared_lines(table.frame, details, given.own_attributes), dropped_line(table.frame, details)]:
        tell(line)
    return name, attribute


def _keep_derived(
    workspace: Workspace, collection: str, rule: Attribute, given: Inputs, files: _Files, reports: list, tell: Tell
) -> tuple[str, str]:
    """Keep the human captions and the labels that their words give."""
    if files.labels and (error := misplaced("labels", files.labels, given, files.by_role())):
        raise error
    if not files.references:
        where = f"with no column in {files.labels.name}" if files.labels else "without its labels"
        raise CapbiasError(
            f"attribute {rule.name!r}, {where}, and no human captions",
            f"a column called {' or '.join(rule.columns or (rule.name,))} in a table of labels, or human captions, "
            "from which they are derived",
            "Name a table with --labels, or human captions with --references.",
        )
    if files.labels:
        tell(f"no column of {files.labels.name} is called {' or '.join(rule.columns or (rule.name,))}")
    if given.values:
        raise CapbiasError(f"--values with {rule.name}", "--values with a column of labels", "Leave --values out.")
    name = _name_of(files.references, "references")
    _keep_captions(workspace, collection, "references", name, files.references, files, reports)
    derived = ingest.derive(workspace, workspace.item("references", name, collection), rule)
    tell(derived.line(files.references.name))
    return ingest.keep_derived(workspace, derived).name, rule.name


def _keep_captions(
    workspace: Workspace, collection: str, kind: str, name: str, path: Path, files: _Files, reports: list
) -> list[str]:
    """The names of the caption sets that a file is."""
    found = _preview(workspace, path, kind, collection, files, reports)
    if found.report["images_with_labels"] == 0:
        strange = found.report["unknown_examples"]
        raise CapbiasError(
            f"{path.name}, none of whose images is in the table of labels",
            f"ids of the same data set in both (here {', '.join(strange)})",
            "Check that the files belong together, or name their column with --image-id-column.",
        )
    sets = ingest.caption_sets(found, name, files.given.sets if kind == "captions" else ingest.SAMPLES)
    for own, part in sets.items():
        ingest.keep_captions(workspace, part, own, collection, path.name)
    return list(sets)


def _warn_of_swapped_texts(
    workspace: Workspace, collection: str, files: _Files, references: str, sets: Mapping[str, Sequence[str]], tell: Tell
) -> None:
    """Several captions per image from the model and one from people: most likely each file stands for the other."""
    if not files.references:
        return
    human = workspace.item("references", references, collection)
    for name, path in files.captions.items():
        own = workspace.item("captions", sets[name][0], collection)
        if own.rows > own.images and human.rows == human.images:
            tell(
                f"warning: {path.name} has several captions per image and {files.references.name} has one: if the "
                "model's captions and the human ones are swapped, swap --captions and --references"
            )


def _keep_objects(
    workspace: Workspace, collection: str, given: Inputs, files: _Files, tell: Tell, progress: Progress
) -> str:
    """The name of the objects, '' if there are none besides a column of the labels."""
    if given.weights:
        if files.objects or not given.photographs:
            raise CapbiasError(
                "--weights without photographs in files, or with --objects",
                "--weights with --photographs FOLDER; or --objects, as `detect` wrote or kept them",
                "Leave one out, or run detect --collection first.",
            )
        _find_objects(workspace, collection, given.weights, checked_path(given.photographs), tell, progress)
        return OBJECTS
    if not files.objects:
        return ""
    reports: list = []
    found = _preview(workspace, files.objects, OBJECTS, collection, files, reports)
    warn(reports, tell)
    if not found.report["coverage_percent"]:
        raise CapbiasError(
            f"{files.objects.name}, the objects of images of which none has a label",
            f"ids of the same data set in both (here {', '.join(found.frame['image_id'][:5])})",
            "Check that the files belong together.",
        )
    name = _name_of(files.objects, OBJECTS)
    ingest.keep_objects(workspace, found, name, collection, files.objects.name)
    return name


def _find_objects(
    workspace: Workspace, collection: str, weights: str, folder: Path, tell: Tell, progress: Progress
) -> None:
    """Keep the boxes and the objects that a detector finds on the photographs of a folder."""
    option = weights_option(workspace, weights, default_folder() / WEIGHTS)  # this workspace may go, a download stays
    pictures = find_pictures(folder)
    files = {image: folder / name for image, name in zip(pictures["image_id"], pictures["file"], strict=True)}
    found = looked_at(workspace, files, option, CONFIDENCE, tell, progress)
    keep_objects_of(workspace, keep_boxes(workspace, found, option, CONFIDENCE, collection, OBJECTS))


def looked_at(
    workspace: Workspace,
    files: Mapping[str, Path],
    option: ModelReference,
    confidence: float,
    tell: Tell,
    progress: Progress = silent,
) -> FoundBoxes:
    """The boxes of photographs, and what is to be said of them. Raises CapbiasError if none can be read.

    option: what `weights_option` gave.
    """
    found = boxes_of(workspace, files, weights_of(workspace, option), confidence, progress)
    for name, error in found.refused.items():
        tell(f"left out: {name}: {error}")
    if not found.read:
        raise CapbiasError(
            f"{len(files):,} photographs, none of which can be read", "one that can", "See above what each lacks."
        )
    before = len(found.read) - found.computed
    tell(
        f"{len(found.frame):,} boxes on {len(found.read):,} photographs by {option['name']}; {found.computed:,} looked "
        f"at now, {before:,} before"
    )
    return found


def _keep_photographs(
    workspace: Workspace, collection: str, given: Inputs, files: _Files, tell: Tell
) -> dict[str, Any]:
    options = {}
    if given.photographs:
        folder = checked_path(given.photographs)
        # Named as the folder is, so that results say which masked photographs a judge saw.
        name = suggested_name(folder.expanduser().resolve().name)
        ingest.keep_images(workspace, folder, collection, name)
        options["photographs"] = name
    if files.people:
        options["people"] = keep_people(workspace, files.people, collection, tell).name
    return options


def keep_people(workspace: Workspace, path: Path, collection: str, tell: Tell) -> Item:
    """Keep the outlines of a COCO instances file, or the boxes of a table. Raises CapbiasError for another file."""
    name = _name_of(path, "people")
    if path.suffix.lower() == ".json":
        found = ingest.preview_import(workspace, path, SEGMENTS, collection)
        warn([found.report], tell)
        return ingest.keep_segments(workspace, found, name, collection, path.name)
    return workspace.keep(BOXES, name, read_boxes(path).frame, collection, path.name)


def warn(reports: Iterable, tell: Tell) -> None:
    """Each warning and note of some reports once, with the files that it is about."""
    files: dict[str, dict[str, None]] = {}
    for report in reports:
        for line in (
            *(f"warning: {{}}: {own}" for own in report.warnings),
            *(f"note: {{}}: {own}" for own in report.notes),
        ):
            files.setdefault(line, {})[report.file] = None
    for line, names in files.items():
        tell(line.replace("{}", ", ".join(names), 1))


# files in one another's place

# What a file may hold -> how it is said, and where such a file is named.
KINDS = {
    "captions": ("captions", "Name it with --captions, or with --references if people wrote them."),
    "labels": ("labels", "Name it with --labels."),
    "objects": ("objects of images", "Name it with --objects."),
    "boxes": ("boxes of a detector", "Name it with --people, or with --objects."),
    "attribute": ("words of an attribute", "Name it with --attribute."),
}


def kind_of(path: Path, label_columns: Iterable[str]) -> str:
    """What a file holds, as in KINDS; '' if its columns do not tell. label_columns: names of columns of labels."""
    if path.suffix.lower() == ".toml":
        return "attribute"
    try:
        found = detect(path)
    except CapbiasError:
        return ""
    if is_boxes(found.columns):
        return "boxes"
    if "category_id" in found.columns:
        return "objects"
    if found.guess["caption"]:
        return "captions"
    return "labels" if {name.lower() for name in found.columns} & set(label_columns) else ""


def misplaced(role: str, path: Path, given: Inputs, others: Mapping[str, Path]) -> CapbiasError | None:
    """The error for a file that holds something else than it is named for; None if that cannot be told.

    others: the files of all roles. Two files in each other's place are both named.
    """
    names = {name.lower() for name in _label_columns(given)}
    wanted, kind = _held(role), kind_of(path, names)
    if kind in ("", wanted) or (role, kind) == ("objects", "boxes"):
        return None
    for other, file in others.items():
        if file != path and _held(other) == kind and kind_of(file, names) == wanted:
            return CapbiasError(
                f"{path.name} as {role} and {file.name} as {other}, which are swapped",
                f"{file.name} as {role} and {path.name} as {other}",
                f"Swap --{role} and --{other}.",
            )
    title, remedy = KINDS[kind]
    return CapbiasError(f"{path.name} as {role}, a file of {title}", f"a file of {KINDS[wanted][0]}", remedy)


def _held(role: str) -> str:
    return "captions" if role == "references" else role


def _label_columns(given: Inputs) -> set[str]:
    known = known_attributes(given.own_attributes)
    usual = known[given.attribute].columns if given.attribute in known else ()
    return {given.attribute, given.attribute_column, *usual} - {""}


# attributes and labels


def derivable(name: str, folder: Path | None = None) -> Attribute | None:
    """The attribute of this name if its labels can be derived from human captions."""
    known = name in known_attributes(folder) or name.endswith(".toml")
    attribute = get_attribute(name, folder) if known else None
    return attribute if attribute and attribute.derived else None


# alignment


def check_alignment(given: Inputs) -> None:
    """Raises CapbiasError if the choices of alignment do not fit together, before anything is read."""
    if given.alignment not in ALIGNMENTS:
        raise unknown_name("alignment", given.alignment, ALIGNMENTS)
    if given.delta is not None:
        check_delta(given.delta)
    stray = [f"--{name}" for name in ("vectors", "delta") if getattr(given, name) is not None]
    if stray and given.alignment == CONSTANT:
        got = f"{' and '.join(stray)} with constant alignment"
        raise CapbiasError(got, "--alignment contextual", "Add it, or leave the others out.")
    if given.alignment == CONTEXTUAL and not given.vectors and not given.names:
        raise CapbiasError("--alignment contextual without --vectors", "a file of word vectors", "Name one.")


def check_delta(delta: float) -> None:
    """Raises CapbiasError for a number that is no cosine distance."""
    if not 0 <= delta <= 2:
        raise CapbiasError(f"--delta {delta:g}", "a cosine distance, 0 to 2", f"The paper on DBAC uses {DELTA}.")


def _alignment(workspace: Workspace, collection: str, given: Inputs, tell: Tell) -> dict[str, Any]:
    """The choice `alignment` of measures. The words of the kept captions are looked up in a file of vectors first."""
    if given.alignment == CONSTANT:
        return {}
    if given.names or not given.vectors:
        item = workspace.item(VECTORS, str(given.vectors or _only_vectors(workspace, collection)), collection)
    else:
        path = checked_path(given.vectors)
        name = checked_name(path.stem)
        item = keep_vectors(workspace, offer_vectors(workspace, path, collection), name, collection)
    tell(f"{item.name}: {item.details['found']:,} of {item.rows:,} words of the captions have a vector")
    return {"alignment": alignment_option(item, DELTA if given.delta is None else given.delta)}


def _only_vectors(workspace: Workspace, collection: str) -> str:
    names = [item.name for item in workspace.items(VECTORS, collection)]
    if len(names) != 1:
        raise CapbiasError(
            f"{len(names)} files of word vectors in {collection} ({', '.join(names) or 'none'})",
            "one of them",
            "Name it with --vectors, or keep one with: capbias import --kind vectors FILE.",
        )
    return names[0]
