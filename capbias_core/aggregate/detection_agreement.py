"""How far the boxes of a detector agree with those that people drew: recall and overlap, photograph by photograph.

An annotated object is found if a box of its class overlaps it by half or more (IoU, as in COCO and Pascal VOC); one
box finds one object. Crowds, annotated as one, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, quotient
from capbias_core.vision.overlap import CORNERS, LEAST_OVERLAP, PERSON, iou, matched


@dataclass(frozen=True)
class Agreement:
    """rows: one per photograph: image_id, annotated, boxes (counts), found (annotated that a box finds), recall (found
    / annotated), mean_iou (over those found); blank if there is nothing to divide by. recall, mean_iou: over all, with
    Wilson's 95% intervals over photographs. annotated, boxes, found: counts over all."""

    rows: pd.DataFrame
    recall: float
    recall_interval: tuple[float, float] | tuple[None, None]
    mean_iou: float
    mean_iou_interval: tuple[float, float] | tuple[None, None]
    annotated: int
    boxes: int
    found: int


def agreement(
    boxes: pd.DataFrame,
    annotated: pd.DataFrame,
    images: Sequence[str],
    name: str = PERSON,
    least: float = LEAST_OVERLAP,
) -> Agreement:
    """Agreement over photographs on objects of one class.

    boxes: in BOX_COLUMNS. annotated: image_id, object, x1, y1, x2, y2, and crowd if it is known. images: those that
    both sides looked at.
    """
    if "crowd" in annotated:
        annotated = annotated[~annotated["crowd"].astype(bool)]
    own, theirs = (_by_image(frame[frame["object"] == name]) for frame in (boxes, annotated))
    rows = pd.DataFrame([_row(image, own, theirs, least) for image in images], columns=list(_ROW))
    counts = rows[["found", "annotated", "overlap"]].to_numpy(float)
    recall, overlap = (
        Estimate(tuple(images), counts[:, columns], np.zeros(0), 1.0, quotient, share=True)
        for columns in ([0, 1], [2, 0])
    )
    rows["recall"], rows["mean_iou"] = quotient(counts[:, [0, 1]]), quotient(counts[:, [2, 0]])
    totals = {column: int(rows[column].sum()) for column in ("annotated", "boxes", "found")}
    shown = rows[["image_id", "annotated", "boxes", "found", "recall", "mean_iou"]]
    return Agreement(shown, recall.value, recall.interval(), overlap.value, overlap.interval(), **totals)


_ROW = ("image_id", "annotated", "boxes", "found", "overlap")


def _row(image: str, own: dict, theirs: dict, least: float) -> tuple:
    """A photograph's counts, and the sum of the overlaps of what is found."""
    boxes, annotated = own.get(image, np.zeros((0, 4))), theirs.get(image, np.zeros((0, 4)))
    overlap = iou(annotated, boxes)
    pairs = matched(overlap, least)
    return image, len(annotated), len(boxes), len(pairs), sum(overlap[pair] for pair in pairs)


def _by_image(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    return {image: own[CORNERS].to_numpy(float) for image, own in frame.groupby("image_id")}
