"""The one way in: files become parts of a collection. Detect, parse, report, decide, store.

Pages, commands, the Python API, plans and bundles all call `preview` and `store`, or `ingest`, which does both.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.archives import unpacked
from capbias_core.load.joining import join_ids, joined
from capbias_core.load.parsed import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.places import checked_path
from capbias_core.load.read import TITLES, Reading, read_file, read_records, unknown_format
from capbias_core.load.report import PHOTOGRAPHS, ImportReport, report_table
from capbias_core.resources import DEMO_FOLDER
from capbias_core.types import Table, counted
from capbias_core.workspace.conditions import condition_details
from capbias_core.workspace.labels import keep_attributes, resolve_attributes
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Item, Workspace, checked_name, content_hash, suggested_name
from capbias_core.workspace.tokens import keep_tokens
from capbias_core.workspace.vectors import look_up_new_words

DEMO = "demo"
DEFAULT_COLLECTION = "my captions"
LONGEST_NAME = 80
WARNINGS = "warnings"  # the key in an item's details for sentences on captions with text that is not a caption
SETS = SAMPLES, EACH, BY_PROMPT = "samples", "each", "prompt"
LARGE_FILE = 20_000_000  # bytes; of a larger file of outlines only those of images in the collection are kept
# Labels first: as soon as its captions are stored, a collection is complete.
ORDER = (LABELS, REFERENCES, OBJECTS, SEGMENTS, BOXES, CAPTIONS)
# Whose images a kind of file should know.
COMPARED_WITH = {
    CAPTIONS: (REFERENCES, LABELS),
    REFERENCES: (CAPTIONS, LABELS),
    LABELS: (CAPTIONS, REFERENCES),
    OBJECTS: (CAPTIONS, LABELS),
}


@dataclass(frozen=True)
class File:
    """A file, table or list that a user brings, with what they say about it.

    source: a path, or a table, list or dict of Python. kind: what it holds, '' to detect it. name: of the item, '' for
    the file's name. columns: names for "image_id" and "caption". sets: what several captions of an image are, one of
    SETS. several: the rule for several label rows of an image, '' for the usual one. trained: whether the model was
    trained on the references, None if unknown. captioner, condition: who wrote the captions and what was masked on the
    photographs, '' for what the name suggests. mapping: details of each mapped column (`mapping_details`).
    """

    source: Any
    kind: str = ""
    name: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    sets: str = SAMPLES
    several: str = ""
    trained: bool | None = None
    captioner: str = ""
    condition: str = ""
    mapping: tuple[dict, ...] = ()

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.source.name if isinstance(self.source, Path) else f"the {self.name or self.kind or 'table'}"

    @property
    def item_name(self) -> str:
        """The name that its item gets."""
        return self.name or (suggested_name(self.source.stem) if isinstance(self.source, Path) else self.kind)


@dataclass(frozen=True)
class Held:
    """What a collection holds that new files are compared with. images: by kind. references: its human captions."""

    images: Mapping[str, frozenset[str]] = field(default_factory=dict)
    references: pd.DataFrame | None = None


@dataclass(frozen=True)
class Part:
    """One thing that a file holds; most hold one. A file may have human captions beside a model's.

    report: None if it cannot be read. wanted: whether it is stored unless the user says otherwise. known: how many of
    its images other parts or the collection know, None if there is nothing to compare with.
    """

    file: File
    reading: Reading
    report: ImportReport | None = None
    wanted: bool = True
    known: int | None = None

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


def ingest(workspace: Workspace, collection: str, files: Sequence[File], folder: Path | None = None) -> list[Item]:
    """Read files and store them in a collection. Labels without a mapping get the attributes that are recognised.

    folder: the user's own attributes. Raises CapbiasError, and stores nothing, if a file cannot be read or stored.
    """
    parts = preview(files, held_by(workspace, collection))
    for part in parts:
        if part.reading.error:
            raise part.reading.error
    return store(workspace, collection, [with_mapping(part, folder) for part in parts if part.wanted])


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


Read = Callable[..., list[Reading]]


def read_limited(path: Path, *given: Any) -> list[Reading]:
    """A file read in a process with limits on memory and time."""
    return within_limits(path.name, read_file, path, *given)


def expand(given: Sequence[str | os.PathLike], folder: Path, tell: Callable[[str], None]) -> list[Path]:
    """Paths with the files of archives in their place, unpacked into an empty folder.

    A file of an archive in no known format, such as a readme, is left out and told. Raises CapbiasError for an archive
    with nothing else in it.
    """
    result: list[Path] = []
    for number, path in enumerate(map(checked_path, given)):
        inside = within_limits(path.name, unpacked, path, folder / str(number))
        if inside == [path]:
            result.append(path)
            continue
        errors = {own: error for own in inside if (error := within_limits(own.name, unknown_format, own))}
        if len(errors) == len(inside):
            raise errors[inside[0]]
        result += [own for own in inside if own not in errors]
        if errors:
            tell(f"{path.name}: left out {', '.join(own.name for own in errors)}, in no known format")
    return result


def preview(files: Sequence[File], held: Held | None = None, read: Read = read_limited) -> list[Part]:
    """What files hold, compared with each other and with a collection. Nothing is stored.

    read: reads a path; pages pass one that remembers. Raises CapbiasError for a column that no file has.
    """
    held = held or Held()
    readings = [(file, own) for file in files for own in _readings(file, held, read)]
    for role, column in {pair for file in files for pair in file.columns.items()}:
        if not any(column in own.columns for _, own in readings) and not all(own.error for _, own in readings):
            names = ", ".join(dict.fromkeys(name for _, own in readings for name in own.columns))
            flag = f"--{role.replace('_', '-')}-column"
            raise CapbiasError(f"No file has the column {column!r} ({flag}).", f"Known: {names}.")
    readings = _join_images(_join_rows(readings, held), held)
    known = {kind: set(images) for kind, images in held.images.items()}
    for _, own in readings:
        if own.table is not None:
            known.setdefault(own.kind, set()).update(own.table.frame["image_id"])
    parts = [_part(file, own, held, known) for file, own in readings]
    return _choose_references([replace(part, known=_shared(part, parts, held)) for part in parts], held)


def _readings(file: File, held: Held, read: Read) -> list[Reading]:
    """What one file holds. One that cannot be read is a reading with the error in it."""
    try:
        if not isinstance(file.source, Path):
            return read_records(file.source, file.title, file.kind, file.columns, file.several)
        wanted = next((held.images[kind] for kind in ("images", LABELS, CAPTIONS) if held.images.get(kind)), None)
        path = checked_path(file.source)
        large = path.is_file() and path.stat().st_size > LARGE_FILE
        return read(path, file.kind, dict(file.columns), file.several, sorted(wanted) if large and wanted else None)
    except CapbiasError as error:
        return [Reading(file.kind, error=error)]


def _join_rows(readings: list[tuple[File, Reading]], held: Held) -> list[tuple[File, Reading]]:
    """Captions known only by their row get the image ids of human captions at hand with the same text."""
    human = [own.table.frame for _, own in readings if own.kind == REFERENCES and own.table and not own.by_rows]
    human += [held.references] if held.references is not None else []
    if not human:
        return readings
    beside = {id(file): own.table for file, own in readings if own.kind == REFERENCES and own.by_rows and own.table}
    result = []
    for file, own in readings:
        if own.by_rows and own.kind == CAPTIONS and own.table and id(file) in beside:
            try:
                table = joined(own.table, beside[id(file)].frame, pd.concat(human), file.title)
                own = replace(own, table=table)
            except CapbiasError as error:
                own = replace(own, table=None, error=error)
        result.append((file, own))
    # Human captions by row are not needed beside captions that got ids from others.
    with_ids = {
        id(file)
        for file, own in result
        if own.kind == CAPTIONS
        and own.table
        and id(file) in beside
        and not set(own.table.frame["image_id"]) & set(beside[id(file)].frame["image_id"])
    }
    return [
        (file, own) for file, own in result if not (own.by_rows and own.kind == REFERENCES and id(file) in with_ids)
    ]


def _join_images(readings: list[tuple[File, Reading]], held: Held) -> list[tuple[File, Reading]]:
    """Ids that name the same images in another way become those of the collection, labels or references."""
    anchor, names = _anchor(readings, held)
    if not anchor:
        return readings
    result = []
    for file, own in readings:
        images = dict.fromkeys(own.table.frame["image_id"]) if own.table is not None else {}
        # File names decide even if some ids are equal: numbers of two files may be equal by chance.
        if images and (own.image_names or names or anchor.isdisjoint(images)):
            joined_ids = join_ids(images, anchor, own.image_names, names)
            if joined_ids.mapping:
                own = replace(own, table=_renamed(own.table, joined_ids.mapping, joined_ids.how))
            elif joined_ids.near:
                own = replace(own, near=joined_ids.near)
        result.append((file, own))
    return result


def _anchor(readings: Iterable[tuple[File, Reading]], held: Held) -> tuple[set[str], dict[str, str]]:
    """The image ids that others are joined to, and their file names, if a file with the same ids lists them."""
    images = set().union(*(held.images.get(kind, ()) for kind in (LABELS, REFERENCES, CAPTIONS)))
    tables = [(own.kind, own) for _, own in readings if own.table is not None]
    if not images:
        for kind in (LABELS, REFERENCES, CAPTIONS):
            images = next((set(own.table.frame["image_id"]) for of, own in tables if of == kind and own.table), set())
            if images:
                break
    same = [own for _, own in tables if own.table is not None and images.issuperset(own.table.frame["image_id"])]
    return images, {image: name for own in same for image, name in own.image_names.items()}


def _renamed(table: Table | None, mapping: Mapping[str, str], how: str) -> Table:
    assert table is not None
    frame = table.frame.assign(image_id=table.frame["image_id"].map(lambda image: mapping.get(image, image)))
    return replace(table, frame=frame, notes=(*table.notes, how))


# report


def _part(file: File, reading: Reading, held: Held, known: Mapping[str, set[str]]) -> Part:
    """A reading with its report."""
    if reading.table is None:
        return Part(file, reading)
    others = {**known, PHOTOGRAPHS: held.images.get(PHOTOGRAPHS, ())}
    return Part(file, reading, report_table(reading.table, reading.kind, file.title, others))


def _shared(part: Part, parts: Sequence[Part], held: Held) -> int | None:
    kinds = COMPARED_WITH.get(part.kind, ())
    known = [other.images for other in parts if other is not part and other.kind in kinds and other.images]
    known += [held.images[kind] for kind in kinds if held.images.get(kind)]
    return len(part.images.intersection(set().union(*known))) if known and part.images else None


# decide


def _choose_references(parts: Sequence[Part], held: Held) -> list[Part]:
    """Human captions beside a model's are wanted only for images that have none elsewhere."""
    known = set(held.images.get(REFERENCES, ()))
    known = known.union(*(part.images for part in parts if part.kind == REFERENCES and not part.reading.second))
    chosen = []
    for part in parts:
        if part.reading.second and part.kind == REFERENCES:
            part = replace(part, wanted=not part.images <= known)
            known |= part.images
        chosen.append(part)
    return chosen


def with_mapping(
    part: Part,
    folder: Path | None = None,
    asked: Sequence[str] = (),
    overrides: Mapping[str, Mapping[str, str | None]] | None = None,
) -> Part:
    """A table of labels with the mapping of its columns; any other part as it is.

    asked: attributes as NAME or NAME=COLUMN, by default those that are recognised. overrides: attribute -> {raw label:
    value, or None to drop it}. folder: the user's own attributes. Raises CapbiasError if a column cannot be mapped.
    """
    if part.kind != LABELS or part.frame is None or part.file.mapping:
        return part
    mapping = tuple(resolve_attributes(part.frame, asked, overrides, folder))
    return replace(part, file=replace(part.file, mapping=mapping))


def caption_sets(part: Part) -> dict[str, pd.DataFrame]:
    """The caption sets that a part is stored as, by name: one for `samples`; a set of the first captions of all images,
    one of the second and so on for `each`; one per prompt for `prompt`. Raises CapbiasError for prompts that it lacks.
    """
    name, sets, frame, table = part.file.item_name, part.file.sets, part.frame, part.reading.table
    assert frame is not None and table is not None
    if sets not in SETS:
        raise unknown_name("--sets", sets, SETS)
    if part.kind != CAPTIONS or sets == SAMPLES:
        return {name: frame}
    if sets == BY_PROMPT and not table.prompts:
        raise CapbiasError(
            f"{part.file.title} has no column with two or more prompts.", "Use --sets samples or --sets each."
        )
    number = frame["caption_index"].to_numpy() if sets == EACH else pd.factorize(pd.Series(table.prompts))[0]
    stem = name if sets == EACH else f"{name} prompt"
    result = {}
    for index in range(number.max() + 1):
        rows = frame[number == index].reset_index(drop=True)
        rows["caption_index"] = rows.groupby("image_id", sort=False).cumcount()
        result[f"{stem} {index + 1}"] = rows
    return result


def frames_of(part: Part) -> list[tuple[str, pd.DataFrame, dict]]:
    """What a part is stored as: name, frame and details of each item."""
    assert part.frame is not None
    file, frame = part.file, part.frame
    if part.kind != LABELS:
        warnings = part.reading.table.warnings if part.reading.table else ()
        details: dict[str, Any] = {WARNINGS: list(warnings)} if warnings else {}
        if part.kind != CAPTIONS:
            return [(file.item_name, frame, details)]
        details["trained_on_references"] = file.trained
        return [
            (name, own, details | condition_details(name, file.captioner, file.condition))
            for name, own in caption_sets(part).items()
        ]
    if not file.mapping:
        raise CapbiasError(
            f"No column of {file.title} is mapped to a protected attribute.", "Name one with --attribute NAME=COLUMN."
        )
    # Several columns of one attribute are labels by several annotators: a table each, so that they can be compared.
    counts = Counter(own["attribute"]["name"] for own in file.mapping)
    alone = {own["attribute"]["name"]: own for own in file.mapping if counts[own["attribute"]["name"]] == 1}
    tables = [(file.item_name, frame, {"attributes": alone})] if alone else []
    for own in file.mapping:
        if counts[attribute := own["attribute"]["name"]] > 1:
            name = f"{file.item_name} {own['column']}"[:LONGEST_NAME].strip()
            tables.append((name, frame, {"attributes": {attribute: own}}))
    return tables


def name_conflicts(parts: Sequence[Part]) -> list[str]:
    """Names that several parts of one kind would have, so that the last would replace the others."""
    names = Counter((part.kind, name) for part in parts if part.frame is not None for name in caption_sets(part))
    return [name for (_, name), count in names.items() if count > 1]


def replaced_items(workspace: Workspace, collection: str, parts: Sequence[Part]) -> list[Item]:
    """Items of other content that parts would replace, so that their results would go."""
    items = {(item.kind, item.name): item for item in workspace.items(collection=collection)}
    new = {
        (part.kind, name): own for part in parts if part.frame is not None for name, own in caption_sets(part).items()
    }
    return [items[key] for key, own in new.items() if key in items and items[key].hash != content_hash(own)]


# store


def store(workspace: Workspace, collection: str, parts: Sequence[Part], source: str = "") -> list[Item]:
    """Store parts in a collection, labels first. source: where they come from, '' for the name of the file.

    An item of the same name and content keeps its details where the file says nothing about them. Raises CapbiasError,
    and stores nothing, if two parts would have one name, or a run reads what one would replace.
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
        said = part.file.trained is not None or part.file.captioner or part.file.condition
        if held and held.hash == content_hash(frame) and not said:
            items.append(held)
            continue
        items.append(workspace.keep(part.kind, name, frame, collection, origin, details))
        if part.kind in (CAPTIONS, REFERENCES):
            keep_tokens(workspace, items[-1].hash, frame)
            look_up_new_words(workspace, collection)
    return items


def held_by(workspace: Workspace, collection: str) -> Held:
    """What a collection holds that new files are compared with."""
    images: dict[str, frozenset[str]] = {}
    for kind in (CAPTIONS, REFERENCES, LABELS, "images"):
        if ids := image_ids(workspace, kind, collection):
            images[kind] = frozenset(ids)
    human = [workspace.frame(item.hash) for item in workspace.items(REFERENCES, collection)]
    return Held(images, pd.concat(human) if human else None)


def image_ids(workspace: Workspace, kind: str, collection: str) -> set[str] | None:
    """The image ids of all items of a kind, None if there is no item."""
    items = workspace.items(kind, collection)
    return {image for item in items for image in workspace.frame(item.hash)["image_id"]} if items else None


def describe(part: Part) -> str:
    """`refs.json: human captions (COCO captions (JSON)), 5,000 captions of 1,000 images`"""
    text = f"{part.file.title}: {TITLES.get(part.kind, 'unknown')}"
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
        File(DEMO_FOLDER / "instances.json", SEGMENTS, "outlines"),
        *(File(path, CAPTIONS, trained=True) for path in sorted((DEMO_FOLDER / "results").glob("*.json"))),
    ]
    parts = [with_mapping(part, asked=["gender"]) for part in preview(files, read=read_file)]
    store(workspace, DEMO, parts, "bundled")
    keep_images(workspace, DEMO_FOLDER / "images", DEMO)
