"""Boxes of what photographs show, kept as an item of kind `boxes`, and as the objects of images."""

from __future__ import annotations

from dataclasses import dataclass

from capbias_core.measures.base import Job, Measure, Needs, Outcome
from capbias_core.measures.options import ArtifactOptions, option
from capbias_core.types import Attribute
from capbias_core.workspace.objects import (
    BOXES,
    CONFIDENCE,
    boxes_of,
    forget_objects_of,
    keep_boxes,
    keep_objects_of,
    weights_of,
    weights_option,
)
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import RUN, Workspace

NAMED = 5  # refused photographs in a note


@dataclass(frozen=True)
class DetectOptions(ArtifactOptions):
    """Choices of a detector."""

    weights: ModelReference | str | None = option(
        None,
        "the detector: a file (.pt, .onnx, .tflite), or a name such as yolov8n, which ultralytics downloads once",
        flag="--weights",
        metavar="FILE",
        advanced=False,
    )
    confidence: float = option(
        CONFIDENCE,
        "leave out boxes that the detector is less sure of",
        flag="--confidence",
        above=0,
        at_most=1,
        metavar="SHARE",
        advanced=False,
    )


def freeze(workspace: Workspace, collection: str, options: DetectOptions, attribute: Attribute | None) -> DetectOptions:
    """The detector by its content. Raises CapbiasError if it cannot be had."""
    return options.with_(weights=weights_option(workspace, options.weights))


def run(job: Job) -> Outcome:
    """Detect on photographs that are not known yet, and keep the boxes of all. Raises if none can be read."""
    options = job.options
    weights = weights_of(job.workspace, options.weights)
    boxes = boxes_of(job.workspace, job.photographs(), weights, options.confidence, job.progress)
    if not boxes.read:
        raise next(iter(boxes.refused.values()))
    details = {"photographs": options.photographs["name"], RUN: job.spec.run_id}
    collection, name = options.collection, options.name
    item = keep_boxes(job.workspace, boxes, options.weights, options.confidence, collection, name, details)
    if len(boxes.frame):
        keep_objects_of(job.workspace, item)
    else:
        forget_objects_of(job.workspace, item)
    people = boxes.frame.loc[boxes.frame["object"] == "person", "image_id"].nunique()
    notes = [
        f"{len(boxes.frame):,} boxes on {len(boxes.read):,} photographs, {people:,} of them with people; "
        f"{boxes.computed:,} photographs looked at now, the others before"
    ]
    if boxes.refused:
        reasons = [f"{image}: {error.message.rstrip('.')}" for image, error in boxes.refused.items()]
        more = f"; and {len(reasons) - NAMED:,} more" if len(reasons) > NAMED else ""
        notes.append(f"{len(reasons):,} left out: {'; '.join(reasons[:NAMED])}{more}")
    return Outcome([], {}, tuple(notes))


MEASURE = Measure(
    name="detect",
    title="people and objects on photographs",
    place=20,
    options=DetectOptions,
    needs=Needs(captions=False, labels=False, photographs=True),
    seconds=3_000.0,
    run=run,
    freeze=freeze,
    makes=BOXES,
    in_process=False,
)
