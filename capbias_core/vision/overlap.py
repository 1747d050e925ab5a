"""How far the boxes of a detector agree with those that people drew: recall and overlap, photograph by photograph.

An annotated object is found where a box of its class overlaps it by half or more (IoU, as in COCO and Pascal VOC); one
box finds one object. Crowds, annotated as one, are left out.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

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


def _areas(boxes: np.ndarray) -> np.ndarray:
    return np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0, None), axis=1)
