"""How far the boxes of a detector agree with those that people drew: recall and overlap, photograph by photograph.

An annotated object is found where a box of its class overlaps it by half or more (IoU, as in COCO and Pascal VOC); one
box finds one object. Crowds, annotated as one, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from capbias_core.aggregate import Estimate, quotient

LEAST_OVERLAP = 0.5
CORNERS = ["x1", "y1", "x2", "y2"]
PERSON = "person"


def iou(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(n, m) intersection over union of (n, 4) and (m, 4) boxes x1, y1, x2, y2, in [0, 1]; 0 where both are empty.

    >>> iou(np.array([[0, 0, 2, 2]]), np.array([[1, 0, 3, 2], [0, 0, 2, 2], [5, 5, 6, 6]])).round(3).tolist()
    [[0.333, 1.0, 0.0]]
    """
    boxes, others = np.asarray(boxes, float).reshape(-1, 4), np.asarray(others, float).reshape(-1, 4)
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=2)
    union = _areas(boxes)[:, None] + _areas(others)[None] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def matched(overlap: np.ndarray, least: float = LEAST_OVERLAP) -> list[tuple[int, int]]:
    """Pairs (row, column) of (n, m) overlaps, one to one, none below `least`, with as much overlap as can be.

    >>> matched(np.array([[0.9, 0.6], [0.7, 0.1]]))  # 0.6 + 0.7 is more than 0.9, and finds both
    [(0, 1), (1, 0)]
    """
    worth = np.where(overlap >= least, overlap, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if worth[row, column] > 0]


@dataclass(frozen=True)
class Agreement:
    """rows: one a photograph: image_id, annotated, boxes (counts), found (annotated that a box finds), recall (found /
    annotated), mean_iou (over those found); blank where there is nothing to divide by. recall, mean_iou: over all, with
    95% intervals, a bootstrap over photographs. annotated, boxes, found: counts over all."""

    rows: pd.DataFrame
    recall: float
    recall_interval: tuple[float, float] | tuple[None, None]
    mean_iou: float
    mean_iou_interval: tuple[float, float] | tuple[None, None]
    annotated: int
    boxes: int
    found: int


def agreement(
    boxes: pd.DataFrame, annotated: pd.DataFrame, images: Sequence[str], name: str = PERSON,
    least: float = LEAST_OVERLAP,
) -> Agreement:  # fmt: skip
    """Agreement over photographs on objects of one class.

    boxes: in BOX_COLUMNS. annotated: image_id, object, x1, y1, x2, y2, and crowd where it is known. images: those that
    both sides looked at.
    """
    if "crowd" in annotated:
        annotated = annotated[~annotated["crowd"].astype(bool)]
    own, theirs = (_by_image(frame[frame["object"] == name]) for frame in (boxes, annotated))
    rows = pd.DataFrame([_row(image, own, theirs, least) for image in images], columns=list(_ROW))
    counts = rows[["found", "annotated", "overlap"]].to_numpy(float)
    recall, overlap = (Estimate(tuple(images), counts[:, columns], np.zeros(0), 1.0, quotient)
                       for columns in ([0, 1], [2, 0]))  # fmt: skip
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


def _areas(boxes: np.ndarray) -> np.ndarray:
    return np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0, None), axis=1)
