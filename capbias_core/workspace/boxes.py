"""Boxes of photographs by a detector: computed once for a photograph and its weights, and kept as items.

Detections are cached by file content: a photograph that was renamed or copied is not looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.databases import kept_in
from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph
from capbias_core.load.tables import object_texts
from capbias_core.types import BOX_COLUMNS, Progress, silent
from capbias_core.vision.weights import Weights, file_digest, find_weights
from capbias_core.workspace.models import register_model, resolve_model
from capbias_core.workspace.objects import FOUND_BY, OBJECTS
from capbias_core.workspace.photographs import file_digests
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Item, Workspace

BOXES = "boxes"  # the kind of item
WEIGHTS = "weights"  # the folder of a workspace with weights that were downloaded
BARE = "bare"  # the key in an item's details
CONFIDENCE = 0.2  # boxes that a detector is less sure of are left out, as objects of the Gender Score are
WAY = "square, floor 0.05"  # how photographs are read; changed when the boxes would be others
PICTURES_A_STEP, PIXELS_A_STEP = 16, 64_000_000
ASKED_AT_ONCE = 400
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS boxes (picture TEXT, weights TEXT, way TEXT, boxes TEXT NOT NULL,"
    " PRIMARY KEY (picture, weights, way)) WITHOUT ROWID"
)


def weights_option(
    workspace: Workspace, name: str | ModelReference | None, folder: Path | None = None
) -> ModelReference:
    """What a run says of a detector: the name of its weights and the digest of the file; a reference is that already.

    name: a file, or a name that ultralytics knows; it is downloaded into `folder`, the workspace's `weights` unless
    said. Raises CapbiasError if none is named, or it cannot be had.
    """
    if isinstance(name, dict):
        return name
    if not name:
        raise CapbiasError(
            "No detector is named.", "Name a file of weights, or one that ultralytics knows, with --weights."
        )
    found = find_weights(name, folder or workspace.folder / WEIGHTS)
    return register_model(workspace, found.name, found.path, found.digest)


def weights_of(workspace: Workspace, option: ModelReference) -> Weights:
    """The weights of a run. Raises CapbiasError if they are gone, or are others now."""
    path = resolve_model(workspace, option, lambda place: file_digest(Path(place)))
    return Weights(option["name"], path, option["digest"])


@dataclass(frozen=True)
class Found:
    """frame: boxes in BOX_COLUMNS, those of an image together, the surest first. read: the images that could be read.
    refused: what is wrong with each of the others, by image. computed: images that the detector looked at just now."""

    frame: pd.DataFrame
    read: tuple[str, ...]
    refused: dict[str, CapbiasError]
    computed: int


def boxes_of(
    workspace: Workspace,
    files: Mapping[str, Path],
    weights: Weights,
    confidence: float = CONFIDENCE,
    progress: Progress = silent,
) -> Found:
    """The boxes of photographs by image, from what the workspace has and from the detector.

    A photograph that cannot be read is left out, with the reason. progress is called before each step, which it may
    stop by raising; what was found until then is kept. Raises CapbiasError for weights that cannot be loaded.
    """
    work = _Work(workspace, weights, progress)
    digests = dict(zip(files, file_digests(workspace, list(files.values())), strict=True))
    known = work.known(digests.values())
    missing = {image: path for image, path in files.items() if digests[image] not in known}
    refused: dict[str, CapbiasError] = {}
    for pictures in _steps(missing, refused, progress):
        boxes = dict(zip(pictures, work.detector.boxes(list(pictures.values())), strict=True))
        fresh = {digests[image]: json.dumps(own.to_numpy().tolist()) for image, own in boxes.items()}
        work.keep(fresh)
        known |= fresh
    read = tuple(image for image in files if image not in refused)
    rows = [(image, *row) for image in read for row in json.loads(known[digests[image]]) if row[1] >= confidence]
    return Found(_frame(rows), read, refused, len(missing) - len(refused))


def _frame(rows: Sequence[tuple]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(BOX_COLUMNS))
    return frame.astype({"image_id": "str", "object": "str"} | dict.fromkeys(BOX_COLUMNS[2:], float))


def _steps(files: Mapping[str, Path], refused: dict, progress: Progress) -> Iterator[dict[str, np.ndarray]]:
    """Photographs read, a few at a time: 16 at most, fewer large ones. Those that cannot be read go to `refused`."""
    pictures: dict[str, np.ndarray] = {}
    for place, (image, path) in enumerate(files.items()):
        progress(place / len(files), f"finding objects, {place:,} of {len(files):,} photographs")
        try:
            pictures[image] = read_photograph(path)
        except MissingExtra:
            raise
        except CapbiasError as error:
            refused[image] = error
        if len(pictures) == PICTURES_A_STEP or sum(own.size for own in pictures.values()) // 3 >= PIXELS_A_STEP:
            yield pictures
            pictures = {}
    if pictures:
        yield pictures


class _Work:
    """The boxes that the workspace has of these weights, and the detector, loaded when it is needed."""

    def __init__(self, workspace: Workspace, weights: Weights, progress: Progress):
        self.file, self.weights, self.progress = workspace.folder / "boxes.sqlite", weights, progress

    @cached_property
    def detector(self):
        from capbias_core.vision.detect import Detector

        self.progress(0.0, f"loading {self.weights.name}")
        return Detector(self.weights.path)

    def known(self, pictures) -> dict[str, str]:
        """Boxes as JSON by the digest of their photograph."""
        asked, found = sorted(set(pictures) - {""}), {}
        with self._connection() as db:
            for start in range(0, len(asked), ASKED_AT_ONCE):
                part = asked[start : start + ASKED_AT_ONCE]
                query = f"SELECT picture, boxes FROM boxes WHERE weights=? AND way=? AND picture IN ({_marks(part)})"
                found |= dict(db.execute(query, (self.weights.digest, WAY, *part)).fetchall())
        return found

    def keep(self, boxes: dict[str, str]) -> None:
        with self._connection() as db, db:
            db.execute("BEGIN IMMEDIATE")
            rows = [(picture, self.weights.digest, WAY, text) for picture, text in boxes.items()]
            db.executemany("INSERT OR REPLACE INTO boxes VALUES (?, ?, ?, ?)", rows)

    def _connection(self):
        return kept_in(self.file, SCHEMA, "boxes", "its photographs are then looked at again")


def _marks(values: Sequence) -> str:
    return ", ".join("?" * len(values))


def keep_boxes(
    workspace: Workspace,
    found: Found,
    option: ModelReference,
    confidence: float,
    collection: str,
    name: str,
    details: dict | None = None,
) -> Item:
    """Keep boxes as an item, with `weights`, `digest`, `confidence` and `bare` (the images that were looked at and have
    no box) among its details. option: what `weights_option` gave."""
    bare = sorted(set(found.read) - set(found.frame["image_id"]))
    own = {"weights": option["name"], "digest": option["digest"], "confidence": confidence, BARE: bare}
    source = f"{option['name']}, confidence {confidence:g} and more"
    return workspace.keep(BOXES, name, found.frame, collection, source, own | (details or {}))


def keep_objects_of(workspace: Workspace, boxes: Item, name: str = "") -> Item:
    """Keep what boxes show as the objects of images, with the detector's confidence, under the name of the boxes.

    Objects that people annotated are never replaced. Raises CapbiasError if no photograph shows anything.
    """
    frame = workspace.frame(boxes.hash)
    frame = object_texts(frame, [*dict.fromkeys(frame["image_id"]), *boxes.details[BARE]])  # images without a box too
    if not (frame["objects"] != "").any():
        raise CapbiasError(
            f"The boxes {boxes.name} show nothing on {len(frame):,} photographs.",
            "Ask for a lower confidence, or use another detector.",
        )
    name = name or boxes.name
    kept = {item.name: item.details for item in workspace.items(OBJECTS, boxes.collection)}
    if name in kept and FOUND_BY not in kept[name]:
        name = f"{name[:60]} by detector"
    source, details = f"boxes {boxes.name} ({boxes.source})", {FOUND_BY: boxes.name}
    return workspace.keep(OBJECTS, name, frame, boxes.collection, source, details)


def forget_objects_of(workspace: Workspace, boxes: Item) -> None:
    """Forget the objects that earlier boxes of this name showed."""
    for item in workspace.items(OBJECTS, boxes.collection):
        if item.details.get(FOUND_BY) == boxes.name:
            workspace.delete(item)
