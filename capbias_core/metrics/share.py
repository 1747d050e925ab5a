"""The quotient that most metrics are, and the difference of a metric between groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import numbers


def share(part: ArrayLike, whole: ArrayLike) -> np.ndarray:
    """part / whole, both summed over captions, (...); nan or inf where the whole is 0.

    >>> share([1, 0], [4, 0]).tolist()
    [0.25, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(part, whole)


def difference(part: ArrayLike, whole: ArrayLike, other_part: ArrayLike, other_whole: ArrayLike) -> np.ndarray:
    """part / whole - other_part / other_whole, (...)."""
    return share(part, whole) - share(other_part, other_whole)


def performance_gap(values: ArrayLike) -> float:
    """Difference in performance between the groups of a protected attribute (Hirota et al., CVPR 2022, section 3.1).

        gap = value of the second group - value of the first      (two groups)
        gap = largest value of a group - smallest                 (more)

    The value is any metric on the images of one group, in the order of the attribute's values. Range [-1, 1], or that
    of the metric (CIDEr [-10, 10]), shown x100; the neutral point is 0. The largest of more than two values minus the
    smallest is above 0 by chance alone. The groups' images differ too, and so do the words of people about them.

    >>> round(performance_gap([0.30, 0.25]), 2), round(performance_gap([0.3, 0.2, 0.7]), 2)
    (-0.05, 0.5)
    """
    groups = numbers("values", values, shape=("K",))
    if len(groups) < 2:
        raise CapbiasError("A gap needs the values of two groups or more.")
    return float(gap(groups))


def gap(values: np.ndarray) -> np.ndarray:
    """Values of the groups (..., K) to their gap (...); nan if a group has none."""
    if values.shape[-1] == 2:
        return values[..., 1] - values[..., 0]
    return values.max(axis=-1) - values.min(axis=-1)
