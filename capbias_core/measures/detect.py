"""Boxes of what photographs show, kept as an item of kind `boxes`, and as the objects of images."""

from __future__ import annotations

from dataclasses import dataclass

from capbias_core.measures.base import Job, Measure, Needs, Outcome
from capbias_core.measures.options import ArtifactOptions, option
from capbias_core.types import Attribute
from capbias_core.workspace.boxes import (
    BOXES,
    CONFIDENCE,
    Found,
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
    """Look at photographs that were not looked at yet, and keep the boxes of all. Raises if none can be read."""
    options = job.options
    weights = weights_of(job.workspace, options.weights)
    found = boxes_of(job.workspace, job.photographs(), weights, options.confidence, job.progress)
    if not found.read:
        raise next(iter(found.refused.values()))
    details = {"photographs": options.photographs["name"], RUN: job.spec.run_id}
    place = options.collection, options.name
    item = keep_boxes(job.workspace, found, options.weights, options.confidence, *place, details)
    if len(found.frame):
        keep_objects_of(job.workspace, item)
    else:
        forget_objects_of(job.workspace, item)
    return Outcome([], {}, notes(found))


def notes(found: Found) -> tuple[str, ...]:
    """What was found, and which photographs could not be read and why."""
    people = found.frame.loc[found.frame["object"] == "person", "image_id"].nunique()
    lines = [
        f"{len(found.frame):,} boxes on {len(found.read):,} photographs, {people:,} of them with people; "
        f"{found.computed:,} photographs looked at now, the others before"
    ]
    if found.refused:
        reasons = "; ".join(
            f"{image}: {error.message.rstrip('.')}" for image, error in list(found.refused.items())[:NAMED]
        )
        more = len(found.refused) - NAMED
        lines.append(f"{len(found.refused):,} left out: {reasons}" + (f"; and {more:,} more" if more > 0 else ""))
    return tuple(lines)


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
