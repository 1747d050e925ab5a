"""Ratio to the neutral word (Sabir and Padró, Findings of EMNLP 2023, Eq. 2).

    ratio_a = s_a / s_neutral

s: the score of the value a, and of the neutral word (`person`), over the same captions and objects. Range [0, inf); the
neutral point is 1. In the paper's Table 3 it is 0.82 for men and 0.44 for women (Transformer, cosine).

>>> neutral_ratio([0.1, 0.3], [0.4, -0.2]).tolist()
[0.25, nan]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import numbers, together


def neutral_ratio(score: ArrayLike, neutral: ArrayLike) -> np.ndarray:
    """(...) scores of a value and of the neutral word to their quotient; nan if one is negative or the second is 0."""
    score, neutral = numbers("score", score), numbers("neutral", neutral)
    together(score=score, neutral=neutral)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = score / neutral
    return np.where((score < 0) | (neutral <= 0), np.nan, ratio)
