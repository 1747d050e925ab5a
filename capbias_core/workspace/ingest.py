"""Files become parts of a collection: detect, parse, report, decide, store.

Pages, commands, the Python API, plans and bundles all call `preview` and `store`, or `ingest`, which does both.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.data import images_in
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import (
    BOXES,
    CAPTIONS,
    KINDS,
    LABELS,
    OBJECTS,
    ORDER,
    PHOTOGRAPHS,
    REFERENCES,
    SEGMENTS,
    kind_title,
)
from capbias_core.load.account import BY_PROMPT, EACH, SETS, with_images
from capbias_core.load.files import unpacked
from capbias_core.load.ids import join_ids
from capbias_core.load.labels import EACH as RULE_EACH
from capbias_core.load.places import checked_path
from capbias_core.load.read import Reading, parse_table, read_file, readings, unknown_format
from capbias_core.load.report import ImportReport, report_table
from capbias_core.resources import DEMO_FOLDER
from capbias_core.types import counted
from capbias_core.workspace.conditions import condition_details
from capbias_core.workspace.labels import keep_attributes, resolve_attributes
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import LONGEST_NAME, Item, Workspace, checked_name, content_hash, suggested_name
from capbias_core.workspace.vectors import look_up_new_words

DEMO = "demo"
DEFAULT_COLLECTION = "my captions"
WARNINGS = "warnings"  # the key in an item's details for sentences on captions with text that is not a caption
ACCOUNT = "account"  # the key in an item's details for what became of each column and row
LARGE_FILE = 20_000_000  # bytes; of a larger file of outlines only those of images in the collection are kept


@dataclass(frozen=True)
class File:
    """A file, table or list that a user brings, with their choices."""

    source: Any  # a path, or a table, list or dict of Python
    kind: str = ""  # what it holds, '' to detect it
    name: str = ""  # of the item, '' for the file's name
    columns: Mapping[str, Any] = field(default_factory=dict)  # what the user said of columns and rows (`Choices.of`)
    sets: str = ""  # what several captions of an image are, one of SETS, '' to ask if that is open
    several: str = ""  # the rule for several label rows of an image, '' for the usual one
    trained: bool | None = None  # whether the model was trained on the references, None if unknown
    captioner: str = ""  # who wrote the captions, '' for what the name suggests
    condition: str = ""  # what was masked on the photographs, '' for what the name suggests
    mapping: tuple[dict, ...] = ()  # details of each mapped column (`mapping_details`)

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.source.name if isinstance(self.source, Path) else f"the {self.name or self.kind or 'table'}"

    @property
    def given(self) -> dict[str, Any]:
        """What the user said, for the reader."""
        return {**self.columns, "sets": self.sets}

    @property
    def item_name(self) -> str:
        """The name that its item gets."""
        return self.name or (suggested_name(self.source.stem) if isinstance(self.source, Path) else self.kind)


@dataclass(frozen=True)
class Held:
    """What new files are compared with: the images of a collection by kind, and its human captions."""

    images: Mapping[str, frozenset[str]] = field(default_factory=dict)
    references: pd.DataFrame | None = None


@dataclass(frozen=True)
class Part:
    """One table of a file. A file may have human captions besides a model's."""

    file: File
    reading: Reading
    report: ImportReport | None = None  # None if it cannot be read
    wanted: bool = True  # whether it is stored by default
    known: int | None = None  # images that other parts or the collection have; None if there is nothing to compare with

    @property
    def kind(self) -> str:
        """What it is read as."""
        return self.reading.kind

    @property
    def frame(self) -> pd.DataFrame | None:
        """Its table, None if it cannot be read as its kind."""
        return self.reading.table.frame if self.reading.table else None

    @cached_property
    def images(self) -> frozenset[str]:
        """Its image IDs."""
        return frozenset(() if self.frame is None else self.frame["image_id"])

    @property
    def key(self) -> tuple[int, bool]:
        """Identifies it among all parts."""
        return id(self.file.source), self.reading.second


def ingest(workspace: Workspace, collection: str, files: Sequence[File]) -> list[Item]:
    """The items of files, stored in a collection. Labels without a mapping get the attributes that are recognised.
    Raises CapbiasError, and stores nothing, if a file cannot be read."""
    parts = preview(files, held_by(workspace, collection))
    for part in parts:
        if part.reading.error:
            raise part.reading.error
    return store(workspace, collection, [with_mapping(part) for part in parts if part.wanted])


def read_part(source: Any, kind: str, name: str = "") -> Part:
    """A file read as one kind. Raises CapbiasError if it cannot be."""
    part = preview([File(source, kind, name)])[0]
    if part.reading.error:
        raise part.reading.error
    return part


def read_frame(source: str | os.PathLike, kind: str) -> pd.DataFrame:
    """The table of a file read as one kind. Raises CapbiasError if it cannot be."""
    frame = read_part(checked_path(source), kind).frame
    assert frame is not None
    return frame


# detect and parse


UNNAMED = "captions"  # the captioner of a table or list without a name
Read = Callable[..., list[Reading]]


def expand(given: Sequence[str | os.PathLike], folder: Path, tell: Callable[[str], None]) -> list[Path]:
    """Paths with the files of archives in their place, unpacked into an empty folder.

    A file of an archive in no known format, such as a readme, is left out, and `tell` gets a line about it. Raises
    CapbiasError for an archive with nothing else in it.
    """
    result: list[Path] = []
    for number, path in enumerate(map(checked_path, given)):
        inside = within_limits(path.name, unpacked, path, folder / str(number))
        if inside == [path]:
            result.append(path)
            continue
        errors = {file: error for file in inside if (error := within_limits(file.name, unknown_format, file))}
        if len(errors) == len(inside):
            raise errors[inside[0]]
        result += [file for file in inside if file not in errors]
        if errors:
            tell(f"{path.name}: left out {', '.join(file.name for file in errors)}, in no known format")
    return result


def preview(files: Sequence[File], held: Held | None = None, read: Read | None = None) -> list[Part]:
    """What files hold, compared with each other and with a collection. Nothing is stored. read: reads a path, by
    default in a process with limits. Raises CapbiasError for a column that no file has."""
    held = held or Held()
    parts = [Part(file, reading) for file in files for reading in _read(file, held, read)]
    known_columns = dict.fromkeys(name for part in parts for name in part.reading.columns)
    for role, names in [pair for file in files for pair in file.columns.items()]:
        for column in [names] if isinstance(names, str) else names:
            if known_columns and not any(f"{name}.".startswith(f"{column}.") for name in known_columns):
                argument = "rows" if role == "rows" else f"{role}_column"
                known = ", ".join(known_columns)
                raise CapbiasError(f"No file has the column {column!r}.", f"Known: {known}.", argument)
    parts = _join_images(_join_rows(parts, held), held)
    known = {kind: set(images) for kind, images in held.images.items()}
    for part in parts:
        known.setdefault(part.kind, set()).update(part.images)
    # Human captions beside a model's are wanted only for images that have none elsewhere.
    captioned = set(held.images.get(REFERENCES, ()))
    captioned = captioned.union(*(part.images for part in parts if part.kind == REFERENCES and not part.reading.second))
    result = []
    for part in parts:
        report, wanted = None, True
        if part.reading.table is not None:
            others = {**known, PHOTOGRAPHS: held.images.get(PHOTOGRAPHS, ())}
            report = report_table(part.reading.table, part.kind, part.file.title, others)
        if part.reading.second and part.kind == REFERENCES:
            wanted = not part.images <= captioned
            captioned |= part.images
        kinds = KINDS[part.kind].joins if part.kind else ()
        sides = [other.images for other in parts if other is not part and other.kind in kinds and other.images]
        sides += [held.images[kind] for kind in kinds if held.images.get(kind)]
        shared = len(part.images.intersection(set().union(*sides))) if sides and part.images else None
        result.append(replace(part, report=report, wanted=wanted, known=shared))
    return result


def _read(file: File, held: Held, read: Read | None) -> list[Reading]:
    """What one file holds; if it cannot be read, a reading with the error."""
    try:
        if not isinstance(file.source, Path):
            return readings(parse_table(file.source, file.title), file.kind, file.given, file.several)
        wanted = next((held.images[kind] for kind in (PHOTOGRAPHS, LABELS, CAPTIONS) if held.images.get(kind)), None)
        path = checked_path(file.source)
        large = path.is_file() and path.stat().st_size > LARGE_FILE
        given = path, file.kind, file.given, file.several, sorted(wanted) if large and wanted else None
        return read(*given) if read else within_limits(path.name, read_file, *given)
    except CapbiasError as error:
        return [Reading(file.kind, error=error)]


def _join_rows(parts: list[Part], held: Held) -> list[Part]:
    """Captions known only by their row get the image IDs of human captions with the same text; human captions by row
    are then left out."""
    human = [part.frame for part in parts if part.kind == REFERENCES and not part.reading.by_rows]
    human = [frame for frame in [*human, held.references] if frame is not None]
    beside = {id(part.file): part for part in parts if part.kind == REFERENCES and part.reading.by_rows and part.images}
    if not human or not beside:
        return parts
    result, with_ids = [], set()
    for part in parts:
        rows, table = beside.get(id(part.file)), part.reading.table
        if rows is not None and rows.frame is not None and part.kind == CAPTIONS and table and part.reading.by_rows:
            try:
                table = with_images(table, rows.frame, pd.concat(human), part.file.title)
                part = Part(part.file, replace(part.reading, table=table))
            except CapbiasError as error:
                part = Part(part.file, replace(part.reading, table=None, error=error))
            if part.images and not part.images & rows.images:
                with_ids.add(id(part.file))
        result.append(part)
    return [
        part for part in result if not (part.reading.by_rows and part.kind == REFERENCES and id(part.file) in with_ids)
    ]


def _join_images(parts: list[Part], held: Held) -> list[Part]:
    """Other IDs of the same images become the IDs of the collection, labels or references."""
    kinds = (LABELS, REFERENCES, CAPTIONS)
    images: frozenset[str] = frozenset().union(*(held.images.get(kind, ()) for kind in kinds))
    images = images or next(
        (part.images for kind in kinds for part in parts if part.kind == kind and part.images), images
    )
    if not images:
        return parts
    same = [part for part in parts if part.frame is not None and part.images <= images]
    names = {image: name for part in same for image, name in part.reading.image_names.items()}
    result = []
    for part in parts:
        reading, table = part.reading, part.reading.table
        # File names decide even if some IDs are equal: numbers of two files may be equal by chance.
        if table is not None and (reading.image_names or names or images.isdisjoint(part.images)):
            joint = join_ids(table.frame["image_id"], images, reading.image_names, names)
            if joint.mapping:
                column = table.frame["image_id"].map(lambda image, to=joint.mapping: to.get(image, image))
                table = replace(table, frame=table.frame.assign(image_id=column), notes=(*table.notes, joint.how))
            part = Part(part.file, replace(reading, table=table, near="" if joint.mapping else joint.near))
        result.append(part)
    return result


# decide


def with_mapping(
    part: Part,
    folder: Path | None = None,
    asked: Sequence[str] = (),
    overrides: Mapping[str, Mapping[str, str | None]] | None = None,
) -> Part:
    """A table of labels with the mapping of its columns; any other part as it is.

    asked: attributes as NAME or NAME=COLUMN, by default those that are recognised. overrides: attribute -> {raw label:
    value, or None to drop it}. folder: of users' attributes. Raises CapbiasError if a column cannot be mapped.
    """
    if part.kind != LABELS or part.frame is None or part.file.mapping:
        return part
    each = part.file.several == RULE_EACH
    mapping = tuple(resolve_attributes(part.frame, asked, overrides, folder, each))
    return replace(part, file=replace(part.file, mapping=mapping))


def captioners(part: Part) -> list[str]:
    """The captioners that a file of captions names, in its order; empty if it names none."""
    table = part.reading.table
    return list(filter(None, dict.fromkeys(table.sets or ()))) if table and part.kind == CAPTIONS else []


def caption_sets(part: Part) -> dict[str, pd.DataFrame]:
    """The caption sets of a part by name: one, or one per captioner in the file. Of each, for `each` a set of the first
    captions of all images, one of the second and so on; for `prompt` one per prompt. Raises CapbiasError if it has no
    prompts."""
    file, frame, table = part.file, part.frame, part.reading.table
    assert frame is not None and table is not None
    if file.sets and file.sets not in SETS:
        raise unknown_name("choice of sets", file.sets, SETS)
    if part.kind != CAPTIONS:
        return {file.item_name: frame}
    if file.sets == BY_PROMPT and not table.prompts:
        raise CapbiasError(f"{file.title} has no column with two or more prompts.", "Choose samples or each.", "sets")
    keys = pd.DataFrame({"captioner": table.sets or ("",) * len(frame), "number": 0})
    if file.sets in (EACH, BY_PROMPT):
        numbers = pd.factorize(pd.Series(table.prompts))[0] if file.sets == BY_PROMPT else frame["caption_index"]
        keys["number"] = numbers + 1
    named = file.name in (("", suggested_name(file.source.stem)) if isinstance(file.source, Path) else ("", UNNAMED))
    result: dict[str, pd.DataFrame] = {}
    for (captioner, number), group in keys.groupby(["captioner", "number"], sort=False):
        name = "" if captioner and named else file.item_name
        name = f"{name} {suggested_name(captioner)}".strip() if captioner else name
        name += f" prompt {number}" if file.sets == BY_PROMPT else f" {number}" * bool(number)
        rows = frame.loc[group.index].reset_index(drop=True)
        rows["caption_index"] = rows.groupby("image_id", sort=False).cumcount()
        result[name if name not in result else f"{name} {len(result) + 1}"] = rows
    return result


def frames_of(part: Part) -> list[tuple[str, pd.DataFrame, dict]]:
    """Name, frame and details of each item of a part."""
    file, frame, table = part.file, part.frame, part.reading.table
    assert frame is not None and table is not None
    if part.kind == LABELS:
        if not file.mapping:
            raise CapbiasError(
                f"No column of {file.title} is mapped to a protected attribute.",
                "Name one, as NAME=COLUMN.",
                "attribute",
            )
        # Several columns of one attribute are labels by several annotators: a table each, so that they can be compared.
        counts = Counter(entry["attribute"]["name"] for entry in file.mapping)
        alone, tables = {}, []
        for entry in file.mapping:
            attribute = entry["attribute"]["name"]
            if counts[attribute] == 1:
                alone[attribute] = entry
            else:
                name = f"{file.item_name} {entry['column']}"[:LONGEST_NAME].strip()
                tables.append((name, frame, {"attributes": {attribute: entry}}))
        return [*([(file.item_name, frame, {"attributes": alone})] if alone else []), *tables]
    details: dict[str, Any] = {ACCOUNT: [list(line) for line in table.account]} if table.account else {}
    details |= {WARNINGS: list(table.warnings)} if table.warnings else {}
    if part.kind != CAPTIONS:
        return [(file.item_name, frame, details)]
    details["trained_on_references"] = file.trained
    return [
        (name, rows, details | condition_details(name, file.captioner, file.condition))
        for name, rows in caption_sets(part).items()
    ]


def name_conflicts(parts: Sequence[Part]) -> list[str]:
    """Names that several parts of one kind would have, so that the last would replace the others."""
    names = Counter((part.kind, name) for part in parts if part.images for name in caption_sets(part))
    return [name for (_, name), count in names.items() if count > 1]


def replaced_items(workspace: Workspace, collection: str, parts: Sequence[Part]) -> list[Item]:
    """Items of other content that parts would replace, and their results with them."""
    items = {(item.kind, item.name): item for item in workspace.items(collection=collection)}
    new = {(part.kind, name): rows for part in parts if part.images for name, rows in caption_sets(part).items()}
    return [items[key] for key, rows in new.items() if key in items and items[key].hash != content_hash(rows)]


# store


def store(workspace: Workspace, collection: str, parts: Sequence[Part], source: str = "") -> list[Item]:
    """The items of parts, stored in a collection, labels first. source: '' for the name of the file.

    An item of the same name and content keeps its details if the file gives none. Raises CapbiasError, and stores
    nothing, if two parts would have one name, or a run reads what one would replace.
    """
    checked_name(collection)
    parts = [part for part in parts if part.frame is not None]
    if twice := name_conflicts(parts):
        raise CapbiasError(f"Several files would be called {', '.join(twice)}.", "Give each another name.")
    planned = [(part, *each) for part in parts for each in frames_of(part)]
    for part, name, frame, _ in planned:
        workspace.check_replaceable(part.kind, checked_name(name), frame, collection)
    items = []
    for part, name, frame, details in sorted(planned, key=lambda each: ORDER.index(each[0].kind)):
        origin = source or part.file.title
        if part.kind == LABELS:
            items.append(keep_attributes(workspace, frame, name, collection, origin, details["attributes"]))
            continue
        held = {item.name: item for item in workspace.items(part.kind, collection)}.get(name)
        given = part.file.trained is not None or part.file.captioner or part.file.condition
        if held and held.hash == content_hash(frame) and not given:
            items.append(held)
            continue
        items.append(workspace.keep(part.kind, name, frame, collection, origin, details))
        if part.kind in (CAPTIONS, REFERENCES):
            look_up_new_words(workspace, collection)
    return items


def held_by(workspace: Workspace, collection: str) -> Held:
    """What new files of a collection are compared with."""
    images: dict[str, frozenset[str]] = {}
    for item in workspace.items(collection=collection):
        if item.kind in (CAPTIONS, REFERENCES, LABELS, PHOTOGRAPHS):
            images[item.kind] = images.get(item.kind, frozenset()) | images_in(workspace.frame(item.hash))
    human = [workspace.frame(item.hash) for item in workspace.items(REFERENCES, collection)]
    return Held(images, pd.concat(human) if human else None)


def describe(part: Part) -> str:
    """`refs.json: human captions (COCO captions (JSON)), 5,000 captions of 1,000 images`"""
    text = f"{part.file.title}: {kind_title(part.kind, 'unknown')}"
    if part.reading.title:
        text += f" ({part.reading.title})"
    if part.frame is not None:
        text += f", {counted(len(part.frame), 'row')} of {counted(len(part.images), 'image')}"
    return text


def load_demo(workspace: Workspace) -> None:
    """Store the bundled demo data (made by scripts/demo.py) in the collection `demo`."""
    files = [
        File(DEMO_FOLDER / "attributes.csv", LABELS, "labels"),
        File(DEMO_FOLDER / "references.json", REFERENCES, "human"),
        File(DEMO_FOLDER / "objects.csv", OBJECTS, "objects"),
        File(DEMO_FOLDER / "instances.json", SEGMENTS, "outlines"),
        File(DEMO_FOLDER / "boxes.csv", BOXES, "yolov8n"),
        *(File(path, CAPTIONS, trained=True) for path in sorted((DEMO_FOLDER / "results").glob("*.json"))),
    ]
    parts = [with_mapping(part, asked=["gender"]) for part in preview(files, read=read_file)]
    store(workspace, DEMO, parts, "bundled")
    keep_images(workspace, DEMO_FOLDER / "images", DEMO)
