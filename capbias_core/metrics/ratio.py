"""Ratio (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1), for attributes of two values.

    ratio = captions that name only the second value / captions that name only the first

For gender: captions with masculine and no feminine words over captions with feminine and no masculine words.
Range [0, inf); the neutral point of the captions alone is 1, but the labelled images need not be balanced (COCO
has 2.25 men for a woman), so compare it with the ratio of the labels.

>>> ratio([[False, True], [False, True], [True, False], [True, True]])
2.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import booleans


def ratio(names: ArrayLike) -> float:
    """names: (n, 2) booleans, which values each caption names. nan or inf if no caption names only the first."""
    found = booleans("names", names, "2")
    if found.shape[1] != 2:
        raise CapbiasError(
            f"ratio compares two values, but names has {found.shape[1]}.", "Use error, or compare values in pairs."
        )
    first, second = named_alone(found).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.divide(second, first))


def named_alone(names: np.ndarray) -> np.ndarray:
    """(n, K) booleans: the caption names this value and no other."""
    return names & (names.sum(axis=1, keepdims=True) == 1)
