"""Intervals over images: the percentile bootstrap, which draws all captions of an image together, and Wilson's."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import ndtri

DRAWS = 1000
LEVEL = 0.95
NO_WIDTH = 1e-9  # of an interval without width, but for the rounding of sums
NORMAL = float(ndtri((1 + LEVEL) / 2))  # standard errors to each side of a normal interval of this level
CHUNK = 2_000_000  # entries of draws at a time: more do not fit a processor's cache


def resampled_sums(columns: np.ndarray | csr_array, seed: int, draws: int = DRAWS) -> np.ndarray:
    """Sums of each column over images drawn with replacement.

    columns: (n_images, M), dense or sparse. Returns (draws, M). Images with equal rows are drawn as one multinomial
    category, which is the same distribution and keeps a million images cheap. The columns of one call share their
    draws, so that captioners are paired.
    """
    rng = np.random.default_rng(seed)
    n_images = columns.shape[0]
    kind = np.result_type(columns.dtype, np.int32)  # of other weights a sparse product converts all, each time
    patterns, counts = different_rows(columns)
    if patterns.shape[0] * 4 < n_images:
        return sums_of_drawn(patterns, counts, rng, draws, kind)
    sums = np.empty((draws, columns.shape[1]))
    step = max(1, CHUNK // n_images)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        weights = np.empty((size, n_images), dtype=kind)
        for own in weights:
            own[:] = np.bincount(rng.integers(0, n_images, n_images), minlength=n_images)
        sums[start : start + size] = weights @ columns
    return sums


def sums_of_drawn(
    patterns: np.ndarray | csr_array, counts: np.ndarray, rng: np.random.Generator, draws: int, kind: np.dtype
) -> np.ndarray:
    """(draws, M) sums of images drawn with replacement. patterns: (P, M) different rows; counts: (P,) their images."""
    n_images, step = counts.sum(), max(1, CHUNK // patterns.shape[0])
    sizes = [min(step, draws - start) for start in range(0, draws, step)]
    drawn = (rng.multinomial(n_images, counts / n_images, size) for size in sizes)
    return np.concatenate([own.astype(kind) @ patterns for own in drawn])


def different_rows(columns: np.ndarray | csr_array) -> tuple[np.ndarray | csr_array, np.ndarray]:
    """The different rows, and how many images have each.

    Sparse rows are told apart by a random sum of their entries.
    """
    if not issparse(columns):
        return np.unique(columns, axis=0, return_counts=True)
    columns = csr_array(columns).sorted_indices()  # equal rows are then summed in one order
    keys = columns @ np.random.default_rng(0).random(columns.shape[1])
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return columns[first], counts


def percentiles(draws: np.ndarray) -> tuple[float, float] | tuple[None, None]:
    """The 2.5 and 97.5 percentiles; nothing if a draw is not finite (a denominator of 0), or if they are the same:
    draws that agree say nothing of the spread."""
    if not np.isfinite(draws).all():
        return None, None
    low, high = np.percentile(draws, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return (float(low), float(high)) if high - low > NO_WIDTH else (None, None)


def wilson(share: float, n: float) -> tuple[float, float] | tuple[None, None]:
    """Wilson's 95% interval of a share of n draws (Wilson, JASA 1927); nothing without a draw.

    >>> low, high = wilson(0.0, 40)
    >>> round(low, 3), round(high, 3)
    (0.0, 0.088)
    """
    if not (n > 0 and np.isfinite(n)):
        return None, None
    square = NORMAL**2 / n
    centre, half = share + square / 2, NORMAL * np.sqrt(share * (1 - share) / n + square / (4 * n))
    low, high = (centre - half) / (1 + square), (centre + half) / (1 + square)
    # Rounding would leave a share of 0 or 1 a little inside.
    return float(max(0.0, low)) if share > 0 else 0.0, float(min(1.0, high)) if share < 1 else 1.0


def share_interval(share: float, error: float, images: int) -> tuple[float, float] | tuple[None, None]:
    """Wilson's interval of a share that is no plain count, such as one over several captions of an image.

    error: its standard error over images, from which follows how many draws it is worth (Kish 1965). A share of 0 or 1
    has none; it is worth as many draws as images that count. Nothing for another share without an error.
    """
    if share <= NO_WIDTH or share >= 1 - NO_WIDTH:
        return wilson(round(share), images)
    return wilson(share, share * (1 - share) / error**2 if error > 0 else np.inf)
