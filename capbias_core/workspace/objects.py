"""Objects of images: stored files, a column of the labels, or boxes by a detector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.kinds import OBJECTS
from capbias_core.language.files import ModelFiles
from capbias_core.load.photographs import read_photograph
from capbias_core.load.tables import object_texts
from capbias_core.types import BOX_COLUMNS, Progress, silent
from capbias_core.vision.detect import find_weights
from capbias_core.workspace.models import reference
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Item, Workspace

COLUMN = "column objects of the labels"
FOUND_BY = "found_by"  # the key in the details of detected objects: the name of the boxes
WEIGHTS = "weights"  # the folder of a workspace with weights that were uploaded
BARE = "bare"  # the key in an item's details for images without a box
CONFIDENCE = 0.2  # boxes that a detector is less sure of are left out, as objects of the Gender Score are
PICTURES_A_STEP, PIXELS_A_STEP = 16, 64_000_000


def object_sources(workspace: Workspace, collection: str, table: Item) -> dict[str, str]:
    """Sources of the objects of images, with their hashes: stored files by name, and COLUMN for the table of labels."""
    sources = {item.name: item.hash for item in workspace.items(OBJECTS, collection)}
    return sources | ({COLUMN: table.hash} if OBJECTS in workspace.frame(table.hash) else {})


def _by_use(workspace: Workspace, collection: str, table: Item) -> dict[str, str]:
    """The sources to choose from, with their hashes: those that people annotated, or all if a detector made all of
    them. The one with objects of most labelled images comes first."""
    every, labelled = object_sources(workspace, collection, table), workspace.images(table.hash)
    detected = {item.name for item in workspace.items(OBJECTS, collection) if FOUND_BY in item.details}
    sources = {name: digest for name, digest in every.items() if name not in detected} or every
    return dict(sorted(sources.items(), key=lambda source: -len(labelled & workspace.images(source[1]))))


def usual_objects(workspace: Workspace, collection: str, table: Item) -> tuple[str, str]:
    """Name and content hash of the first source `_by_use`; '' without any."""
    return next(iter(_by_use(workspace, collection, table).items()), ("", ""))


def chosen_objects(workspace: Workspace, collection: str, table: Item, asked: str = "") -> str:
    """The content hash of the named source of objects, by default of the usual one; '' without any. Raises CapbiasError
    for an unknown name, and for several files if none is named."""
    if asked:
        sources = object_sources(workspace, collection, table)
        return sources[asked] if asked in sources else workspace.item(OBJECTS, asked, collection).hash
    sources = _by_use(workspace, collection, table)
    files = [source for source in sources if source != COLUMN]
    if len(files) > 1:
        raise CapbiasError(
            f"{collection} has {len(files)} files of objects ({', '.join(files)}).",
            "Choose one, or delete the others.",
            "objects",
        )
    return next(iter(sources.values()), "")


# boxes by a detector


def weights_option(workspace: Workspace, name: str | ModelReference | None) -> ModelReference:
    """The reference of a run to a detector: the name of its weights and the digest of the file.

    name: a file, a name in the workspace's `weights`, or a reference, which is returned. Raises
    CapbiasError if none is named or available.
    """
    lacking = "No detector is named.", "Name a file of weights.", "weights"
    return reference(workspace, name, lambda name: find_weights(name, workspace.folder / WEIGHTS), *lacking)


@dataclass(frozen=True)
class Detections:
    """Boxes of photographs."""

    frame: pd.DataFrame  # BOX_COLUMNS, by image, the surest first
    read: tuple[str, ...]  # images that could be read
    refused: dict[str, CapbiasError]  # by image, why it could not be read


def boxes_of(
    files: Mapping[str, Path], weights: ModelFiles, confidence: float = CONFIDENCE, progress: Progress = silent
) -> Detections:
    """The boxes of photographs by image. A photograph that cannot be read is left out, with the reason. progress is
    called before each step, which it may stop by raising. Raises CapbiasError for weights that cannot be loaded."""
    from capbias_core.vision.detect import Detector

    progress(0.0, f"loading {weights.name}")
    detector, refused, rows = Detector(weights.path), dict[str, CapbiasError](), []
    for pictures in _steps(files, refused, progress):
        for image, boxes in zip(pictures, detector.boxes(list(pictures.values())), strict=True):
            rows += [(image, *row) for row in boxes.to_numpy().tolist() if row[1] >= confidence]
    frame = pd.DataFrame(rows, columns=list(BOX_COLUMNS))
    frame = frame.astype({"image_id": "str", "object": "str"} | dict.fromkeys(BOX_COLUMNS[2:], float))
    return Detections(frame, tuple(image for image in files if image not in refused), refused)


def _steps(files: Mapping[str, Path], refused: dict, progress: Progress) -> Iterator[dict[str, np.ndarray]]:
    """Photographs, at most 16 at a time, fewer large ones. Errors of unreadable ones go to `refused`."""
    pictures: dict[str, np.ndarray] = {}
    for index, (image, path) in enumerate(files.items()):
        progress(index / len(files), f"finding objects, {index:,} of {len(files):,} photographs")
        try:
            pictures[image] = read_photograph(path)
        except MissingExtra:
            raise
        except CapbiasError as error:
            refused[image] = error
        if len(pictures) == PICTURES_A_STEP or sum(each.size for each in pictures.values()) // 3 >= PIXELS_A_STEP:
            yield pictures
            pictures = {}
    if pictures:
        yield pictures


def about_boxes(detections: Detections, option: ModelReference, confidence: float) -> tuple[str, dict[str, Any]]:
    """The source and the details of stored boxes. option: from `weights_option`."""
    bare = sorted(set(detections.read) - set(detections.frame["image_id"]))
    used = {"weights": option["name"], "digest": option["digest"], "confidence": confidence, BARE: bare}
    return f"{option['name']}, confidence {confidence:g} and more", used


def keep_objects_of(workspace: Workspace, boxes: Item) -> Item:
    """The stored item of the objects that boxes show, under the name of the boxes. Objects that people annotated are
    never replaced. Raises CapbiasError if no photograph shows anything."""
    shown, name = workspace.frame(boxes.hash), boxes.name
    frame = object_texts(shown, [*dict.fromkeys(shown["image_id"]), *boxes.details[BARE]])
    if not (frame["objects"] != "").any():
        raise CapbiasError(
            f"The boxes {name} show nothing on {len(frame):,} photographs.",
            "Ask for a lower confidence, or use another detector.",
        )
    kept = {item.name: item.details for item in workspace.items(OBJECTS, boxes.collection)}
    if name in kept and FOUND_BY not in kept[name]:
        name = f"{name[:60]} by detector"
    source, details = f"boxes {boxes.name} ({boxes.source})", {FOUND_BY: boxes.name}
    return workspace.keep(OBJECTS, name, frame, boxes.collection, source, details)


def forget_objects_of(workspace: Workspace, boxes: Item) -> None:
    """Delete the objects that earlier boxes of this name showed."""
    for item in workspace.items(OBJECTS, boxes.collection):
        if item.details.get(FOUND_BY) == boxes.name:
            workspace.delete(item)
