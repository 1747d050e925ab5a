"""Many values of the same images at once, such as one per object: their bootstrap shares its draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, vstack

from capbias_core.aggregate.bootstrap import (
    DRAWS,
    different_rows,
    percentiles,
    resampled_sums,
    share_interval,
    sums_of_drawn,
)
from capbias_core.aggregate.estimate import BOOTSTRAP_SEED

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, and the ends of their 95% intervals, nan for none


def column_intervals(
    sums: np.ndarray | csr_array, n_columns: int, formulas: Mapping[str, tuple[Callable[..., np.ndarray], bool]]
) -> dict[str, Columns]:
    """What each formula gives for each of L columns, with intervals over images from 1,000 draws: Wilson's of a share,
    else the percentiles.

    sums: (n_images, L * W), W sums for each of L = n_columns. formulas: (..., W) sums to (..., V) values, and whether
    these are shares, from 0 to 1. Gives (L, V) arrays. An interval is not defined if a draw is not, as for an object
    that few images show.
    """
    whole = np.asarray(sums.sum(axis=0), dtype=float).reshape(n_columns, -1)
    drawn = _drawn(sums, n_columns)
    images = _images(sums, n_columns)
    return {name: _column(of(whole), of(drawn), images, share) for name, (of, share) in formulas.items()}


def _drawn(sums: np.ndarray | csr_array, n_columns: int) -> np.ndarray:
    """(draws, L, W) sums over images drawn with replacement.

    No value is of two columns, so they need not share draws. Of a million images all columns together have many
    different rows and each alone has few, which are quicker to draw from.
    """
    if issparse(sums) and n_columns > 1:
        width = sums.shape[1] // n_columns
        by_column = csc_array(sums)
        each = [_rows_of(by_column[:, own : own + width]) for own in range(0, sums.shape[1], width)]
        if sum(patterns.shape[0] for patterns, _ in each) * 4 < different_rows(sums)[0].shape[0]:
            rng = np.random.default_rng(BOOTSTRAP_SEED)
            kind = np.result_type(sums.dtype, np.int32)
            drawn = [sums_of_drawn(patterns, counts, rng, DRAWS, kind) for patterns, counts in each]
            return np.stack(drawn, axis=1)
    drawn = resampled_sums(sums, BOOTSTRAP_SEED)
    return drawn.reshape(len(drawn), n_columns, -1)


def _rows_of(column: csc_array) -> tuple[csr_array, np.ndarray]:
    """The different rows of the images that count for one column and, last, a row for the other images."""
    rows, row = np.unique(column.indices, return_inverse=True)
    place = np.repeat(np.arange(column.shape[1]), np.diff(column.indptr))
    own = csr_array((column.data, (row, place)), shape=(len(rows), column.shape[1]))
    patterns, counts = different_rows(own)
    nothing = csr_array((1, column.shape[1]), dtype=column.dtype)
    return csr_array(vstack([patterns, nothing])), np.append(counts, column.shape[0] - len(rows))


def _images(sums: np.ndarray | csr_array, n_columns: int) -> np.ndarray:
    """(L,): the images that count for each column."""
    image, place = sums.nonzero()
    column = place // (sums.shape[1] // n_columns)
    counts = csr_array((np.ones(len(image), dtype=bool), (image, column)), shape=(sums.shape[0], n_columns))
    return np.bincount(counts.indices, minlength=n_columns)


def _column(value: np.ndarray, draws: np.ndarray, images: np.ndarray, share: bool) -> Columns:
    ends = np.full((2, *value.shape), np.nan)
    for place, which in np.argwhere(np.isfinite(draws).all(axis=0)):
        own = draws[:, place, which]
        found = (
            share_interval(float(value[place, which]), float(np.std(own)), int(images[place]))
            if share
            else percentiles(own)
        )
        ends[:, place, which] = [np.nan if end is None else end for end in found]
    return value, *ends
