"""Files become parts of a collection: read (load/read.py), then stored. Pages, commands and Python call `store`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attributes import attribute_folder, known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.kinds import (
    BOXES,
    CAPTIONS,
    LABELS,
    LONGEST_NAME,
    OBJECTS,
    ORDER,
    PHOTOGRAPHS,
    REFERENCES,
    SEGMENTS,
    checked_name,
    suggested_name,
)
from capbias_core.load.columns import Wanted
from capbias_core.load.places import checked_path
from capbias_core.load.read import File, Given, Held, Part, read
from capbias_core.resources import DEMO_FOLDER
from capbias_core.workspace.conditions import condition_details
from capbias_core.workspace.labels import keep_attributes
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Item, Workspace, content_hash

DEMO = "demo"
DEFAULT_COLLECTION = "my captions"
WARNINGS = "warnings"  # the key in an item's details for sentences on captions with text that is not a caption
ACCOUNT = "account"  # the key in an item's details for what became of each column and row


def ingest(workspace: Workspace, collection: str, files: Sequence[File], given: Given | None = None) -> list[Item]:
    """The items of files, stored in a collection, with the attributes that their columns hold. Raises CapbiasError, and
    stores nothing, if a file cannot be read."""
    wanted = every_attribute(attribute_folder(workspace.folder))
    return store(workspace, collection, read(files, given, wanted, held_by(workspace, collection)).parts)


def every_attribute(folder: Path | None = None, names: Sequence[str] = ()) -> list[Wanted]:
    """Attributes whose labels are looked for: those named, as NAME or NAME=COLUMN, or else all that are known."""
    known = known_attributes(folder)
    asked = dict.fromkeys(name.partition("=")[0] for name in names)
    return [Wanted(name, known.get(name), bool(asked)) for name in asked or known]


def read_part(source: Any, kind: str, name: str = "") -> Part:
    """A file read as one kind. Raises CapbiasError if it cannot be."""
    return next(part for part in read([File(source, (kind,), name)]).parts if part.kind == kind)


def read_frame(source: Any, kind: str) -> pd.DataFrame:
    """The table of a file read as one kind. Raises CapbiasError if it cannot be."""
    return read_part(checked_path(source), kind).frame


def item_name(part: Part) -> str:
    """The name that the item of a part gets."""
    return part.file.name if part.name == part.file.name and part.name else suggested_name(part.name)


def frames_of(part: Part) -> list[tuple[str, pd.DataFrame, dict]]:
    """Name, frame and details of each item of a part."""
    name, frame = item_name(part), part.frame
    if part.kind == LABELS:
        if not part.mapping:
            raise CapbiasError(
                f"No column of {part.title} is mapped to a protected attribute.",
                "Name one, as NAME=COLUMN.",
                "attribute",
            )
        # Several columns of one attribute are labels by several annotators: a table each, so that they can be compared.
        counts = Counter(entry["attribute"]["name"] for entry in part.mapping)
        alone, tables = {}, []
        for entry in part.mapping:
            attribute = entry["attribute"]["name"]
            if counts[attribute] == 1:
                alone[attribute] = entry
            else:
                of_column = f"{name} {entry['column']}"[:LONGEST_NAME].strip()
                tables.append((of_column, frame, {"attributes": {attribute: entry}}))
        return [*([(name, frame, {"attributes": alone})] if alone else []), *tables]
    details: dict[str, Any] = {ACCOUNT: [list(line) for line in part.account]} if part.account else {}
    details |= {WARNINGS: list(part.warnings)} if part.warnings else {}
    if part.kind != CAPTIONS:
        return [(name, frame, details)]
    details |= {"trained_on_references": part.file.trained}
    return [(name, frame, details | condition_details(name, part.file.captioner, part.file.condition))]


def name_conflicts(parts: Sequence[Part]) -> list[str]:
    """Names that several parts of one kind would have, so that the last would replace the others."""
    names = Counter((part.kind, item_name(part)) for part in parts)
    return [name for (_, name), count in names.items() if count > 1]


def replaced_items(workspace: Workspace, collection: str, parts: Sequence[Part]) -> list[Item]:
    """Items of other content that parts would replace, and their results with them."""
    items = {(item.kind, item.name): item for item in workspace.items(collection=collection)}
    new = {(part.kind, item_name(part)): part.frame for part in parts}
    return [items[key] for key, rows in new.items() if key in items and items[key].hash != content_hash(rows)]


def store(workspace: Workspace, collection: str, parts: Sequence[Part], source: str = "") -> list[Item]:
    """The items of parts, stored in a collection, labels first. source: '' for the name of the file.

    An item of the same name and content keeps its details if the file gives none. Raises CapbiasError, and stores
    nothing, if two parts would have one name, or a run reads what one would replace.
    """
    checked_name(collection)
    if twice := name_conflicts(parts):
        raise CapbiasError(f"Several files would be called {', '.join(twice)}.", "Give each another name.")
    planned = [(part, *each) for part in parts for each in frames_of(part)]
    for part, name, frame, _ in planned:
        workspace.check_replaceable(part.kind, checked_name(name), frame, collection)
    items = []
    for part, name, frame, details in sorted(planned, key=lambda each: ORDER.index(each[0].kind)):
        origin = source or part.title
        if part.kind == LABELS:
            items.append(keep_attributes(workspace, frame, name, collection, origin, details["attributes"]))
            continue
        held = {item.name: item for item in workspace.items(part.kind, collection)}.get(name)
        given = part.file.trained is not None or part.file.captioner or part.file.condition
        if held and held.hash == content_hash(frame) and not given:
            items.append(held)
            continue
        items.append(workspace.keep(part.kind, name, frame, collection, origin, details))
    return items


def held_by(workspace: Workspace, collection: str) -> Held:
    """What new files of a collection are compared with."""
    images: dict[str, frozenset[str]] = {}
    for item in workspace.items(collection=collection):
        if item.kind in (CAPTIONS, REFERENCES, LABELS, PHOTOGRAPHS):
            images[item.kind] = images.get(item.kind, frozenset()) | workspace.images(item.hash)
    human = [workspace.frame(item.hash) for item in workspace.items(REFERENCES, collection)]
    return Held(images, pd.concat(human) if human else None)


def load_demo(workspace: Workspace) -> None:
    """Store the bundled demo data (made by scripts/demo.py) in the collection `demo`."""
    files = [
        File(DEMO_FOLDER / "attributes.csv", (LABELS,), "labels"),
        File(DEMO_FOLDER / "references.json", (REFERENCES,), "human"),
        File(DEMO_FOLDER / "objects.csv", (OBJECTS,), "objects"),
        File(DEMO_FOLDER / "instances.json", (SEGMENTS,), "outlines"),
        File(DEMO_FOLDER / "boxes.csv", (BOXES,), "yolov8n"),
        *(File(path, (CAPTIONS,), trained=True) for path in sorted((DEMO_FOLDER / "results").glob("*.json"))),
    ]
    store(workspace, DEMO, read(files, None, every_attribute(names=["gender"])).parts, "bundled")
    keep_images(workspace, DEMO_FOLDER / "images", DEMO)


def renamed(part: Part, name: str) -> Part:
    """A part whose item gets another name."""
    return replace(part, name=name, file=replace(part.file, name=name))
