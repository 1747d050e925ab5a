"""Many values of the same images at once, such as one per object: their bootstrap shares its draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from capbias_core.aggregate.bootstrap import LEVEL, resampled_sums
from capbias_core.aggregate.estimate import BOOTSTRAP_SEED


@dataclass(frozen=True)
class Columns:
    """value, low, high: (L,) values with the ends of their 95% intervals, nan if one is not defined."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def column_intervals(
    sums: np.ndarray | csr_array,
    n_columns: int,
    statistics: Mapping[tuple[str, str], Callable[[np.ndarray], np.ndarray]],
) -> dict[tuple[str, str], Columns]:
    """Each statistic of each of L columns, with a percentile bootstrap over images, 1,000 draws.

    sums: (n_images, L * W), W sums for each of L = n_columns. statistics: (..., W) sums to (...) values. An interval is
    not defined if a draw is not, as for an object that few images show.
    """
    whole = np.asarray(sums.sum(axis=0), dtype=float).reshape(n_columns, -1)
    drawn = resampled_sums(sums, BOOTSTRAP_SEED)
    drawn = drawn.reshape(len(drawn), n_columns, -1)
    return {key: _column(of(whole), of(drawn)) for key, of in statistics.items()}


def _column(value: np.ndarray, draws: np.ndarray) -> Columns:
    defined = np.isfinite(draws).all(axis=0)
    ends = np.full((2, len(value)), np.nan)
    if defined.any():
        ends[:, defined] = np.percentile(draws[:, defined], [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    return Columns(value, *ends)
