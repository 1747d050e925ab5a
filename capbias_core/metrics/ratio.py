"""Ratio (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1), for attributes of two values.

    ratio = captions that name only the second value / captions that name only the first

For gender: captions with masculine and no feminine words over captions with feminine and no masculine words.
Range [0, inf); the neutral point of the captions alone is 1, but the labelled images need not be balanced (COCO
has 2.25 men for a woman), so compare it with the ratio of the labels.

>>> import numpy as np
>>> names = np.array([[False, True], [False, True], [True, False], [True, True]])
>>> parts = ratio(Naming(("1", "2", "3", "4"), np.arange(4), np.zeros(4, int), names))
>>> float(parts.numerator.sum() / parts.denominator.sum())
2.0
"""

from __future__ import annotations

from capbias_core.metrics.base import Naming, Ratio


def ratio(evidence: Naming) -> Ratio:
    """Numerator: captions that name only the second value. Denominator: those that name only the first."""
    only = evidence.only.astype(float)
    return Ratio(only[:, 1], only[:, 0])
