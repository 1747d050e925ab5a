"""Runs of the family 'detect': boxes of what photographs show, kept as an item of kind `boxes`, and as objects."""

from __future__ import annotations

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import COLLECTION, NAME, Job, Outcome
from capbias_core.workspace.boxes import (
    CONFIDENCE,
    WEIGHTS,
    Found,
    boxes_of,
    forget_objects_of,
    keep_boxes,
    keep_objects_of,
    weights_of,
)
from capbias_core.workspace.photographs import PHOTOGRAPHS
from capbias_core.workspace.store import RUN, RunRow, Workspace

NAMED = 5  # refused photographs in a note


def run(job: Job) -> Outcome:
    """Look at the photographs that were not looked at yet, and keep the boxes of all. Raises where none can be read."""
    options = job.spec.options
    confidence = options.get("confidence", CONFIDENCE)
    weights = weights_of(job.workspace, options[WEIGHTS])
    found = boxes_of(job.workspace, job.photographs(), weights, confidence, job.progress)
    if not found.read:
        raise next(iter(found.refused.values()))
    details = {"photographs": options[PHOTOGRAPHS]["name"], RUN: job.spec.run_id}
    item = keep_boxes(job.workspace, found, options[WEIGHTS], confidence, options[COLLECTION], options[NAME], details)
    if len(found.frame):
        keep_objects_of(job.workspace, item)
    else:
        forget_objects_of(job.workspace, item)
    return Outcome([], {}, notes(found))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """None: such a run leaves no numbers."""
    return {}


def notes(found: Found) -> tuple[str, ...]:
    """What was found, and which photographs could not be read and why."""
    people = found.frame.loc[found.frame["object"] == "person", "image_id"].nunique()
    lines = [
        f"{len(found.frame):,} boxes on {len(found.read):,} photographs, {people:,} of them with people; "
        f"{found.computed:,} photographs looked at now, the others before"
    ]
    if found.refused:
        reasons = "; ".join(f"{image}: got {error.got}" for image, error in list(found.refused.items())[:NAMED])
        more = len(found.refused) - NAMED
        lines.append(f"{len(found.refused):,} left out: {reasons}" + (f"; and {more:,} more" if more > 0 else ""))
    return tuple(lines)
