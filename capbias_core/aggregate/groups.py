"""A metric by group of images, and what a function of the groups' values is, with intervals over images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from capbias_core.aggregate.estimate import Estimate


def by_group(whole: Estimate, group: np.ndarray, k: int) -> list[Estimate]:
    """The estimate on the images of each group. group: (n_images,) places 0 to k - 1."""
    return [_part(whole, np.flatnonzero(group == place)) for place in range(k)]


def _part(whole: Estimate, kept: np.ndarray) -> Estimate:
    return replace(whole, images=tuple(whole.images[place] for place in kept), sums=whole.sums[kept])


def across_groups(whole: Estimate, group: np.ndarray, k: int, compare: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    """The estimate of compare, (..., K) values of the groups to (...) values; images of all groups are drawn together.

    group: (n_images,) places 0 to k - 1.
    """
    columns = whole.sums.shape[1]
    own = group[:, None] == np.arange(k)  # (n_images, K)
    sums = (own[:, :, None] * whole.sums[:, None, :]).reshape(len(group), k * columns)

    def of(summed: np.ndarray) -> np.ndarray:
        return compare(whole.of(summed.reshape(*summed.shape[:-1], k, columns)))

    top = whole.span[1] - whole.span[0]
    return Estimate(whole.images, sums, np.zeros(0), whole.scale, of, span=(-top, top))
