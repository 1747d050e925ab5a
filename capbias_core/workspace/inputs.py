"""What a user wants to measure, resolved to items of a workspace.

The command line and `capbias.score` both call `resolve`, so the same input gives the same runs and the same errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.attributes.labels import label_columns
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.checks import refuse
from capbias_core.load.files import file_digest
from capbias_core.load.parsed import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.photographs import find_pictures
from capbias_core.load.places import checked_path
from capbias_core.load.read import TITLES
from capbias_core.load.report import ImportReport
from capbias_core.prepare.align import DELTA
from capbias_core.processes import temporary_folder
from capbias_core.types import Progress, silent
from capbias_core.whole_files import typed_path
from capbias_core.workspace.conditions import CUT
from capbias_core.workspace.content import content_of
from capbias_core.workspace.derived import derivable, derive, keep_derived
from capbias_core.workspace.ingest import WARNINGS, File, Part, describe, preview, read_part, store
from capbias_core.workspace.labels import (
    attribute_of,
    column_labels,
    compared_lines,
    dropped_line,
    resolve_attribute,
    table_with,
    tables_with,
)
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.objects import (
    CONFIDENCE,
    WEIGHTS,
    Detections,
    boxes_of,
    keep_boxes,
    keep_objects_of,
    weights_option,
)
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.spec import ModelReference, RunSpec
from capbias_core.workspace.store import Workspace, checked_name, default_folder, suggested_name
from capbias_core.workspace.vectors import CONSTANT, VECTORS, alignment_option, check_delta, keep_vectors, offer_vectors

# A table; records, one per row; or COCO's JSON once parsed.
Source = str | os.PathLike | pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]
Tell = Callable[[str], None]

CONTEXTUAL = "contextual"
ALIGNMENTS = (CONSTANT, CONTEXTUAL)
UNNAMED = "captions"  # the captioner of a table or list without a name
# The argument of `capbias.score` that takes a kind of file.
ARGUMENTS = {CAPTIONS: "captions", REFERENCES: "references", LABELS: "labels", OBJECTS: "objects"}


# Arguments on the columns and rows of files.
OF_COLUMNS = ("image_id_column", "caption_column", "reference_column", "captioner_column", "rows")


def named_columns(**given: Any) -> dict[str, Any]:
    """What the arguments OF_COLUMNS say of the columns and rows of a file, by role, as `File.columns` takes it. rows: a
    mapping, or texts such as `language=en`. Raises CapbiasError for a text without =."""
    rows = given.pop("rows", None) or {}
    if not isinstance(rows, Mapping):
        texts = [rows] if isinstance(rows, str) else list(rows)
        if wrong := [text for text in texts if "=" not in str(text)]:
            raise CapbiasError(f"The choice of rows is {wrong[0]!r}.", "Write COLUMN=VALUE.", "rows")
        rows = dict(str(text).split("=", 1) for text in texts)
    named = {name.removesuffix("_column"): value for name, value in given.items() if value}
    named = {role: value if isinstance(value, str) else tuple(value) for role, value in named.items()}
    return named | ({"rows": rows} if rows else {})


@dataclass(frozen=True)
class Inputs:
    """What is to be measured: files, or names of items of a collection.

    attribute: a known one, a TOML file or a column of the labels. files: with their kinds, '' to detect one. names:
    kind -> names, instead of files; captions () for all. attribute_column: that of the labels, '' to detect it. values:
    the labels of a column to compare, () for all. overrides: attribute -> {raw label: value, or None to drop it}.
    photographs: a folder. people: outlines in a COCO instances file, or a table of boxes. weights: of a detector that
    finds objects on the photographs. vectors, delta: of contextual alignment. own_attributes: a folder of the user's
    TOML files.
    """

    attribute: str
    files: Sequence[File] = ()
    names: Mapping[str, Any] | None = None
    attribute_column: str = ""
    values: tuple[str, ...] = ()
    overrides: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    photographs: str | os.PathLike | None = None
    people: Source | None = None
    weights: str | None = None
    alignment: str = CONSTANT
    vectors: str | os.PathLike | None = None
    delta: float | None = None
    own_attributes: Path | None = None


@dataclass(frozen=True)
class ResolvedInputs:
    """Names of the items to measure. options: choices of measures that name inputs, by field."""

    collection: str
    captions: tuple[str, ...]
    table: str
    attribute: str
    references: str
    objects: str
    options: dict[str, Any]


def source_file(source: Source, kind: str, name: str = "", **more: Any) -> File:
    """A source of Python or the command line as a File. Raises CapbiasError for a URL."""
    if isinstance(source, str | os.PathLike):
        return File(checked_path(source), kind, name, **more)
    return File(source, kind, name or {CAPTIONS: UNNAMED, LABELS: "labels"}.get(kind, kind), **more)


def caption_files(given: Any, **more: Any) -> list[File]:
    """Caption sets as files: a path is named after its file, a table or list `captions`, a dict names its sets.

    >>> [file.item_name for file in caption_files(["nic.json", "out/sat.json"])]
    ['nic', 'sat']
    >>> [file.item_name for file in caption_files({"mine": [{"image_id": 1, "caption": "a"}]})]
    ['mine']
    """
    if given is None or (isinstance(given, Mapping | Sequence) and not len(given)):
        raise CapbiasError("No captions were given.", "Name one or more caption files.", "captions")
    if isinstance(given, Mapping) and "annotations" not in given:
        return [source_file(source, CAPTIONS, checked_name(str(name)), **more) for name, source in given.items()]
    many = isinstance(given, Sequence) and not isinstance(given, str)
    paths = many and all(isinstance(source, str | os.PathLike) for source in given)
    return [source_file(source, CAPTIONS, **more) for source in (given if paths else [given])]


@contextmanager
def workspace_at(folder: Path | str | None, make: bool = False) -> Iterator[Workspace]:
    """The workspace in a folder (None: the usual one). Without `make`, an empty one stands in for a missing one."""
    path = typed_path(folder) if folder else default_folder()
    if make or path.exists():
        yield Workspace(path)
        return
    with temporary_workspace() as workspace:
        yield workspace


@contextmanager
def temporary_workspace() -> Iterator[Workspace]:
    """A workspace that is removed at the end of the block."""
    with temporary_folder() as folder:
        yield Workspace(folder)


def resolve(
    workspace: Workspace, collection: str, given: Inputs, tell: Tell, progress: Progress = silent
) -> ResolvedInputs:
    """The items to measure: files are stored, names are looked up. tell: receives each line for the user. Raises
    CapbiasError for anything that cannot be read or does not belong together."""
    if given.alignment not in ALIGNMENTS:
        raise unknown_name("alignment", given.alignment, ALIGNMENTS)
    if given.delta is not None:
        check_delta(given.delta)
    unused = [name for name in ("vectors", "delta") if getattr(given, name) is not None]
    if unused and given.alignment == CONSTANT:
        raise CapbiasError(
            f"Only contextual alignment reads {' and '.join(unused)}.", "Choose that alignment.", "alignment", *unused
        )
    if given.alignment == CONTEXTUAL and not given.vectors and given.names is None:
        raise CapbiasError("Contextual alignment needs word vectors.", "Name a file of word vectors.", "vectors")
    if given.names is not None:
        return _by_name(workspace, collection, given, tell)
    parts = [part for part in preview(given.files) if part.kind != SEGMENTS]
    if any(not file.kind for file in given.files):  # before any error: what each file is read as
        kinds = [(part.file.title, TITLES.get(part.kind, "not read")) for part in parts if not part.reading.second]
        tell("; ".join(map(": ".join, kinds)))
    for part in parts:
        if part.reading.error:
            raise _misplaced(part, parts) or part.reading.error
    warn([part.report for part in parts if part.report], tell)
    captions = [part for part in parts if part.kind == CAPTIONS]
    if not captions:
        raise CapbiasError(
            f"No file holds captions of a model ({'; '.join(map(describe, parts))}).",
            "Name the file of captions, and its columns if needed.",
            "captions",
            "image_id_column",
            "caption_column",
        )
    references, objects, labels = _references(parts, tell), _one(parts, OBJECTS), _labels(given, parts, tell)
    for part in (*captions, *((objects,) if objects else ())):
        if part.report and labels and not part.images & labels.images:
            here, there = (", ".join(sorted(images)[:2]) for images in (part.images, labels.images))
            raise CapbiasError(
                f"No image of {part.file.title} is in {labels.file.title} "
                f"({part.reading.near or f'{here} here, {there} there'}).",
                "Check that the files belong together, or name the column of image IDs.",
                "image_id_column",
            )
    for part in captions:
        if references and references.report and part.report and part.report.several > references.report.several == 0:
            tell(
                f"warning: {part.file.title} has several captions per image and {references.file.title} has one. "
                "Are captions and references swapped?"
            )
    items = store(workspace, collection, [part for part in (labels, references, objects, *captions) if part])
    names = {kind: [item.name for item in items if item.kind == kind] for kind in (CAPTIONS, REFERENCES, OBJECTS)}
    if labels:
        attribute = labels.file.mapping[0]["attribute"]["name"]
        tables = (item for item in items if item.kind == LABELS and attribute in item.details["attributes"])
        table = next(tables).name
    else:
        rule = derivable(given.attribute, given.own_attributes)
        assert references is not None and rule is not None
        derived = derive(workspace, workspace.item(REFERENCES, names[REFERENCES][0], collection), rule)
        tell(derived.line(references.file.title))
        table, attribute = keep_derived(workspace, derived).name, rule.name
    options: dict[str, Any] = {}
    if given.photographs:
        folder = checked_path(given.photographs)
        # Named as the folder is, so that results name the masked photographs that a judge saw.
        options["photographs"] = suggested_name(folder.resolve().name)
        keep_images(workspace, folder, collection, options["photographs"])
    if given.people is not None:
        path = typed_path(given.people) if isinstance(given.people, str | os.PathLike) else None
        kind = SEGMENTS if path and path.suffix.lower() == ".json" else BOXES
        people = source_file(given.people, kind, "" if path and path.suffix else "people")
        part = read_part(people.source, kind, people.name)
        warn([part.report] if part.report else [], tell)
        options["people"] = store(workspace, collection, [part])[0].name
    if given.weights:
        names[OBJECTS] = [_detect_objects(workspace, collection, given, tell, progress)]
    options |= _alignment(workspace, collection, given, tell)
    human, objects_name = ("".join(names[kind][:1]) for kind in (REFERENCES, OBJECTS))
    _check_content(workspace, collection, names[CAPTIONS], table, attribute, human, tell)
    return ResolvedInputs(collection, tuple(names[CAPTIONS]), table, attribute, human, objects_name, options)


def _check_content(
    workspace: Workspace, collection: str, sets: Sequence[str], table: str, attribute: str, human: str, tell: Tell
) -> None:
    """Tell what the content checks find in captions with their labels and human captions. Raises CapbiasError if they
    are not to be scored."""
    names_values, where = attribute_of(workspace.item(LABELS, table, collection), attribute)
    references = workspace.item(REFERENCES, human, collection).hash if human else ""
    for name in sets:
        captions = workspace.item(CAPTIONS, name, collection).hash
        found = content_of(workspace, RunSpec("", 0, name, captions, references, where, names_values.stored()))
        refuse(found, name)
        for each in found:
            tell(f"warning: {name}: {each.text}")


# names of items


def _by_name(workspace: Workspace, collection: str, given: Inputs, tell: Tell) -> ResolvedInputs:
    """All captions if none is named, the newest table with the attribute, the only references."""
    if collection not in workspace.collections():
        raise unknown_name("collection", collection, workspace.collections())
    names = given.names or {}
    items = workspace.items(collection=collection)
    tables = [item for item in items if item.kind == LABELS]
    if labels := names.get(LABELS):
        if labels not in [item.name for item in tables]:
            raise unknown_name("table of labels", str(labels), [item.name for item in tables])
        tables = [item for item in tables if item.name == labels]
    attribute = given.attribute
    if not tables_with(tables, attribute) and derivable(attribute, given.own_attributes):
        raise CapbiasError(
            f"No table of the collection {collection!r} has labels of {attribute!r}.",
            f"Derive them from human captions: capbias labels derive {attribute} --references NAME "
            f'--collection "{collection}"',
        )
    table = table_with(tables, attribute).name
    if others := [item.name for item in tables if attribute in item.details["attributes"] and item.name != table]:
        tell(f"labels of {attribute}: {table}; not used: {', '.join(others)}")
    sets = [item.name for item in items if item.kind == CAPTIONS and CUT not in item.details]
    human = [item.name for item in items if item.kind == REFERENCES]
    if not names.get(REFERENCES) and len(human) > 1:
        raise CapbiasError(
            f"{collection} has {len(human)} sets of references: {', '.join(human)}.",
            "Name the set to compare with.",
            "references",
        )
    wanted = set(names.get(CAPTIONS) or sets)
    for item in items:
        for warning in item.details.get(WARNINGS, ()) if item.kind == CAPTIONS and item.name in wanted else ():
            tell(f"warning: {item.name}: {warning}")
    options = {role: str(name) for role in ("photographs", "people") if (name := getattr(given, role))}
    options |= _alignment(workspace, collection, given, tell)
    references, objects = str(names.get(REFERENCES) or "".join(human)), str(names.get(OBJECTS) or "")
    _check_content(workspace, collection, names.get(CAPTIONS) or sets, table, attribute, references, tell)
    return ResolvedInputs(
        collection, tuple(names.get(CAPTIONS) or sets), table, attribute, references, objects, options
    )


# files


def _one(parts: Sequence[Part], kind: str) -> Part | None:
    """The only part of a kind; None if there is none. Raises CapbiasError for several."""
    among = [part for part in parts if part.kind == kind and not part.reading.second]
    named = [part for part in among if part.file.kind] or among
    if len(named) > 1:
        files = ", ".join(part.file.title for part in among)
        raise CapbiasError(f"Several files hold {TITLES[kind]}: {files}.", "Name the file to use.", ARGUMENTS[kind])
    return named[0] if named else None


def _references(parts: Sequence[Part], tell: Tell) -> Part | None:
    """The human captions: a separate file, else those beside a model's captions."""
    if alone := _one(parts, REFERENCES):
        return alone
    beside = sorted((part for part in parts if part.kind == REFERENCES), key=lambda part: not part.wanted)
    if beside:
        tell(f"note: human captions are those in {beside[0].file.title}")
        return beside[0]
    return None


def _labels(given: Inputs, parts: Sequence[Part], tell: Tell) -> Part | None:
    """The table of labels with its mapping; None if labels are to be derived from the references."""
    folder, rule = given.own_attributes, derivable(given.attribute, given.own_attributes)
    tables = [part for part in parts if part.kind == LABELS]
    tables = [part for part in tables if part.file.kind] or tables
    if not tables and rule:
        if not any(part.kind == REFERENCES for part in parts):
            raise CapbiasError(
                f"There are no labels of {rule.name}, and no human captions to derive them from.",
                "Name a table of labels (a file of captions with a column of labels is one, too), or human captions.",
                "labels",
                "references",
            )
        called = {name.casefold() for name in (rule.name, *rule.columns)}
        for part in parts:
            if columns := [name for name in part.reading.columns if name.strip().casefold() in called]:
                raise CapbiasError(
                    f"{part.file.title} has a column {columns[0]}, so labels of {rule.name} are not derived.",
                    "Give the file as labels, too.",
                    "labels",
                )
        if given.values or given.attribute_column:
            raise CapbiasError(
                f"Only a table of labels has columns and values to choose; labels of {rule.name} are derived.",
                "Name a table of labels, or leave the choice out.",
                "labels",
                "values",
                "attribute_column",
            )
        return None
    if not tables:
        raise CapbiasError("There are no labels.", "Name a table with one row per image.", "labels")
    having = [part for part in tables if part.frame is not None and _has_attribute(given, part.frame)]
    if len(having) > 1:
        files = ", ".join(part.file.title for part in having)
        raise CapbiasError(
            f"Several tables have labels of {given.attribute}: {files}.", "Name the table to use.", "labels"
        )
    table = having[0] if having else tables[0]
    frame = table.frame
    assert frame is not None
    try:
        details = resolve_attribute(
            frame, given.attribute, given.attribute_column, given.values, given.overrides, folder
        )
    except CapbiasError:
        if error := _misplaced(table, parts):
            raise error from None
        raise
    table = replace(table, file=replace(table.file, mapping=(details,)))
    tell(f"labels: {details['attribute']['name']} from the column {details['column']} of {table.file.title}")
    for line in [*compared_lines(frame, details, folder), dropped_line(frame, details)]:
        tell(line)
    if left_out := [part.file.title for part in tables if part.key != table.key]:
        tell(f"not used: {', '.join(left_out)}, without a column for {given.attribute}")
    return table


def _has_attribute(given: Inputs, frame: pd.DataFrame) -> bool:
    """Whether a table has a column for the attribute, by its name or by its labels."""
    known = known_attributes(given.own_attributes)
    defined = given.attribute in known or given.attribute.endswith(".toml")
    if defined and not given.attribute_column:
        attribute = get_attribute(given.attribute, given.own_attributes)
        return bool(label_columns(attribute, column_labels(frame)))
    columns = {name.strip().lower() for name in frame.columns if name != "image_id"}
    return (given.attribute_column or given.attribute).strip().lower() in columns


def _misplaced(part: Part, parts: Sequence[Part]) -> CapbiasError | None:
    """The error for a file that holds something else than it was given as; None if its content does not tell."""
    role, holds = part.file.kind, part.reading.guess
    if not role or holds in ("", role) or {role, holds} in ({CAPTIONS, REFERENCES}, {OBJECTS, BOXES}):
        return None
    for other in parts:
        if other is not part and other.file.kind == holds and other.reading.guess == role:
            return CapbiasError(
                f"{part.file.title} and {other.file.title} are swapped.",
                "Swap them.",
                ARGUMENTS[role],
                ARGUMENTS[holds],
            )
    named = [ARGUMENTS[holds]] if holds in ARGUMENTS else []
    hint = f"Give it as {TITLES[holds]}." if named else ""
    return CapbiasError(f"{part.file.title} holds {TITLES[holds]}, not {TITLES[role]}.", hint, *named)


def warn(reports: Iterable[ImportReport], tell: Tell) -> None:
    """Send each account, warning and note of reports once, with the files that it is about."""
    files: dict[str, dict[str, None]] = {}
    for report in reports:
        account = ["; ".join(f"{label[0].lower()}{label[1:]}: {text}" for label, text in report.account)]
        for name, texts in (("read", filter(None, account)), ("warning", report.warnings), ("note", report.notes)):
            for text in texts:
                files.setdefault(f"{name}: {{}}: {text}", {})[report.file] = None
    for line, names in files.items():
        tell(line.replace("{}", ", ".join(names), 1))


# photographs


def _detect_objects(workspace: Workspace, collection: str, given: Inputs, tell: Tell, progress: Progress) -> str:
    """The name of the stored objects that a detector finds on the photographs; its boxes are stored too."""
    if any(file.kind == OBJECTS for file in given.files) or not given.photographs:
        raise CapbiasError(
            "A detector finds objects on photographs if no objects are given.",
            "Give photographs, and either a detector or objects.",
            "photographs",
            "weights",
            "objects",
        )
    option = weights_option(workspace, given.weights, default_folder() / WEIGHTS)  # a download outlives this workspace
    folder = checked_path(given.photographs)
    pictures = find_pictures(folder)
    files = {image: folder / name for image, name in zip(pictures["image_id"], pictures["file"], strict=True)}
    boxes = looked_at(workspace, files, option, CONFIDENCE, tell, progress)
    return keep_objects_of(workspace, keep_boxes(workspace, boxes, option, CONFIDENCE, collection, OBJECTS)).name


def looked_at(
    workspace: Workspace,
    files: Mapping[str, Path],
    option: ModelReference,
    confidence: float,
    tell: Tell,
    progress: Progress = silent,
) -> Detections:
    """The boxes of photographs. option: what `weights_option` gave. Raises CapbiasError if none can be read."""
    boxes = boxes_of(workspace, files, resolve_model(workspace, option, file_digest), confidence, progress)
    for name, error in boxes.refused.items():
        tell(f"left out: {name}: {error}")
    if not boxes.read:
        raise CapbiasError(f"None of {len(files):,} photographs can be read.", "The lines above say why.")
    tell(
        f"{len(boxes.frame):,} boxes on {len(boxes.read):,} photographs by {option['name']}; {boxes.computed:,} "
        f"detected now, {len(boxes.read) - boxes.computed:,} before"
    )
    return boxes


# alignment


def _alignment(workspace: Workspace, collection: str, given: Inputs, tell: Tell) -> dict[str, Any]:
    """The choice `alignment` of measures. The words of the stored captions are looked up in the vectors first."""
    if given.alignment == CONSTANT:
        return {}
    if given.names is not None:
        names = [item.name for item in workspace.items(VECTORS, collection)]
        if not given.vectors and len(names) != 1:
            raise CapbiasError(
                f"{collection} has {len(names)} files of word vectors ({', '.join(names) or 'none'}).",
                "Name the file to use, or import one: capbias import --kind vectors FILE.",
                "vectors",
            )
        item = workspace.item(VECTORS, str(given.vectors or names[0]), collection)
    else:
        assert given.vectors is not None
        path = checked_path(given.vectors)
        name = checked_name(path.stem)
        item = keep_vectors(workspace, offer_vectors(workspace, path, collection), name, collection)
    tell(f"{item.name}: {item.details['found']:,} of {item.rows:,} words of the captions have a vector")
    return {"alignment": alignment_option(item, DELTA if given.delta is None else given.delta)}
