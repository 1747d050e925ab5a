"""Gender estimation (Sabir and Padró, Findings of EMNLP 2023, Tables 5 and 6).

    count_a = captions whose variant with the value a scores highest

A caption's gendered words are masked and each value's words put in their place; the variants are compared by the Gender
Score, by the language model alone or by a masked language model. Range [0, n]; equal counts are the neutral point. The
estimate is what text and objects suggest to these models, never who is on the image.

>>> estimation([[0.2, 0.1], [0.3, 0.4], [0.5, 0.5]]).tolist()
[1, 1]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import numbers


def estimation(scores: ArrayLike) -> np.ndarray:
    """(n, K) scores of the variants of n captions to (K,) counts of captions; a tie counts for no value."""
    return chosen(numbers("scores", scores, shape=("n", "K"))).sum(axis=0)


def chosen(scores: np.ndarray) -> np.ndarray:
    """(n, K) scores of the variants to (n, K) booleans: the value whose variant scores highest, none if two do."""
    best = scores == scores.max(axis=1, keepdims=True)
    return best & (best.sum(axis=1, keepdims=True) == 1)
