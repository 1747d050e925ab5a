"""Bias ratio to each value (Zhao et al., EMNLP 2017; Sabir and Padró, Findings of EMNLP 2023, Eq. 1).

    ratio_a = s_a / sum_b s_b

s_a: what belongs to value a: the captions that name it, or its score. Range [0, 1]; the neutral point is 1 / K for
K values. Images need not show each value equally often, so compare a ratio of counts with that of the human captions.

>>> bias_ratio([[1, 3], [0, 0]]).tolist()
[[0.25, 0.75], [nan, nan]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import numbers


def bias_ratio(scores: ArrayLike) -> np.ndarray:
    """(..., K) scores or counts, one per value, to (..., K) shares; nan if a score is negative or all are 0."""
    scores = numbers("scores", scores)
    if not scores.ndim:
        raise CapbiasError("scores must have an axis of values, but it is one number.")
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = scores / scores.sum(axis=-1, keepdims=True)
    return np.where((scores < 0).any(axis=-1, keepdims=True), np.nan, shares)
