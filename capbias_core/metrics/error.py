"""Error, attribute misclassification (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, section 3.1).

    error = captions whose only named value is a wrong one / all captions

Range [0, 1], shown x100. Lower is better. A caption that names no value, or several, is not an error.

>>> error([[False, True], [True, False], [False, False], [True, True]], [0, 0, 0, 0])
0.25
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import booleans, places
from capbias_core.metrics.ratio import named_alone


def error(names: ArrayLike, labels: ArrayLike) -> float:
    """names: (n, K) booleans, which values each caption names. labels: (n,) places of values."""
    found = booleans("names", names)
    return float(wrong_names(found, places(labels, found)).mean())


def wrong_names(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) booleans: the caption's only named value is not the label."""
    only = named_alone(names)
    return only.any(axis=1) & ~only[np.arange(len(only)), labels]
