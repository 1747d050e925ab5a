"""95% intervals: over images (percentile bootstrap, Wilson's) and with refits (corrected resampled variance).

The bootstrap draws all captions of an image together. The training sets of seeds overlap, so the corrected resampled
variance (Nadeau and Bengio, Machine Learning 52, 2003) adds the test images over the training images to 1 / J:

    variance of the mean of J seeds = variance over seeds (ddof 1) * (1 / J + n_test / n_train)

with Student's t of J - 1 degrees of freedom. A level, such as LIC_M, adds twice that share, since what the training
images do to it does not cancel (docs/statistics.md has the simulation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, vstack
from scipy.special import ndtri, stdtr, stdtrit

BOOTSTRAP_SEED = 20220619
DRAWS = 1000
LEVEL = 0.95
NO_WIDTH = 1e-9  # of an interval without width, but for the rounding of sums
NORMAL = float(ndtri((1 + LEVEL) / 2))  # standard errors to each side of a normal interval of this level
CHUNK = 2_000_000  # entries of draws at a time: more do not fit a processor's cache
LEAST_SEEDS = 3  # two decide nothing: their interval is ten standard deviations wide to each side (docs/statistics.md)
OF_DIFFERENCE, OF_LEVEL = 1, 2  # times test images over training images
Span = tuple[float, float]
UNBOUNDED: Span = (-np.inf, np.inf)
ROUNDING = 1e-6
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, and the ends of their 95% intervals, nan for none


def resampled_sums(columns: np.ndarray | csr_array, seed: int, draws: int = DRAWS) -> np.ndarray:
    """(draws, M) sums of each column over images drawn with replacement, the same for all columns. columns: (n_images,
    M). Images with equal rows are drawn as one multinomial category, which keeps a million images cheap."""
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
        for drawn in weights:
            drawn[:] = np.bincount(rng.integers(0, n_images, n_images), minlength=n_images)
        sums[start : start + size] = weights @ columns
    return sums


def sums_of_drawn(
    patterns: np.ndarray | csr_array, counts: np.ndarray, rng: np.random.Generator, draws: int, kind: np.dtype
) -> np.ndarray:
    """(draws, M) sums of images drawn with replacement. patterns: (P, M) different rows; counts: (P,) their images."""
    n_images, step = counts.sum(), max(1, CHUNK // patterns.shape[0])
    sizes = [min(step, draws - start) for start in range(0, draws, step)]
    drawn = (rng.multinomial(n_images, counts / n_images, size) for size in sizes)
    return np.concatenate([part.astype(kind) @ patterns for part in drawn])


def different_rows(columns: np.ndarray | csr_array) -> tuple[np.ndarray | csr_array, np.ndarray]:
    """The different rows, and how many images have each. Sparse rows are compared by a random sum of their entries."""
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
    """Wilson's interval of a share that is no plain count, such as one over several captions of an image. error: its
    standard error, which says how many draws it is worth (Kish 1965). A share of 0 or 1 is worth as many draws as
    images that count; another without an error has no interval."""
    if share <= NO_WIDTH or share >= 1 - NO_WIDTH:
        return wilson(round(share), images)
    return wilson(share, share * (1 - share) / error**2 if error > 0 else np.inf)


def standard_error(values: np.ndarray, test_over_train: float, times: int = OF_DIFFERENCE) -> float:
    """Of the mean of (J,) values, one per seed; nan if a value is not finite, or if all are the same but for the
    rounding of sums: their spread is then not known.

    >>> round(standard_error(np.array([1.0, 2.0, 3.0]), 0.25), 4)  # sqrt(1 * (1/3 + 1/4))
    0.7638
    """
    if not np.isfinite(values).all() or np.ptp(values) <= NO_WIDTH:
        return np.nan
    return float(np.sqrt(np.var(values, ddof=1) * (1 / len(values) + times * test_over_train)))


def refit_interval(
    values: np.ndarray, test_over_train: float, times: int = OF_DIFFERENCE, span: Span = UNBOUNDED, together: int = 1
) -> Span | tuple[None, None]:
    """The 95% interval of the mean of (J,) values, one per seed, as far as span goes; nothing without a standard error.
    together: how many intervals shall hold together in 95% of cases (Bonferroni)."""
    error = standard_error(values, test_over_train, times)
    if np.isnan(error):
        return None, None
    half = stdtrit(len(values) - 1, 1 - (1 - LEVEL) / together / 2) * error
    return max(float(values.mean() - half), span[0]), min(float(values.mean() + half), span[1])


def refit_p(values: np.ndarray, test_over_train: float, times: int = OF_DIFFERENCE) -> float:
    """Two-sided p value of the mean of one difference per seed against 0. 1 for fewer seeds than LEAST_SEEDS, without a
    standard error, or if none is more than rounding."""
    error = standard_error(values, test_over_train, times)
    if len(values) < LEAST_SEEDS or np.isnan(error) or np.abs(values).max() <= ROUNDING:
        return 1.0
    return float(2 * stdtr(len(values) - 1, -abs(values.mean()) / error))


def column_intervals(
    sums: np.ndarray | csr_array, n_columns: int, formulas: Mapping[str, tuple[Callable[..., np.ndarray], bool]]
) -> dict[str, Columns]:
    """What each formula gives for each of L columns, (L, V), with intervals over images from 1,000 draws: Wilson's of a
    share, else the percentiles; none if a draw is not defined, as for an object that few images show. sums: (n_images,
    L * W). formulas: (..., W) sums to (..., V) values, and whether these are shares."""
    whole = np.asarray(sums.sum(axis=0), dtype=float).reshape(n_columns, -1)
    drawn = _drawn(sums, n_columns)
    image, column = sums.nonzero()
    cells = image, column // (sums.shape[1] // n_columns)
    present = csr_array((np.ones(len(image), dtype=bool), cells), shape=(sums.shape[0], n_columns))
    images = np.bincount(present.indices, minlength=n_columns)  # (L,): the images that count for each column
    results = {}
    for name, (of, share) in formulas.items():
        value, draws = of(whole), of(drawn)
        ends = np.full((2, *value.shape), np.nan)
        for number, which in np.argwhere(np.isfinite(draws).all(axis=0)):
            values = draws[:, number, which]
            if share:
                error = float(np.std(values))
                limits = share_interval(float(value[number, which]), error, int(images[number]))
            else:
                limits = percentiles(values)
            ends[:, number, which] = [np.nan if end is None else end for end in limits]
        results[name] = value, *ends
    return results


def _drawn(sums: np.ndarray | csr_array, n_columns: int) -> np.ndarray:
    """(draws, L, W) sums over images drawn with replacement. No value is of two columns, so they need not share draws,
    and each alone has few different rows."""
    if issparse(sums) and n_columns > 1:
        width, each, by_column = sums.shape[1] // n_columns, [], csc_array(sums)
        for start in range(0, sums.shape[1], width):
            column = by_column[:, start : start + width]
            # The different rows of the images that count for the column and, last, a row for the other images.
            rows, row = np.unique(column.indices, return_inverse=True)
            cells = row, np.repeat(np.arange(width), np.diff(column.indptr))
            patterns, counts = different_rows(csr_array((column.data, cells), shape=(len(rows), width)))
            nothing = csr_array((1, width), dtype=column.dtype)
            each.append((csr_array(vstack([patterns, nothing])), np.append(counts, column.shape[0] - len(rows))))
        if sum(patterns.shape[0] for patterns, _ in each) * 4 < different_rows(sums)[0].shape[0]:
            rng = np.random.default_rng(BOOTSTRAP_SEED)
            kind = np.result_type(sums.dtype, np.int32)
            return np.stack([sums_of_drawn(patterns, counts, rng, DRAWS, kind) for patterns, counts in each], axis=1)
    drawn = resampled_sums(sums, BOOTSTRAP_SEED)
    return drawn.reshape(len(drawn), n_columns, -1)
