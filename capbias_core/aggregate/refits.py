"""The uncertainty of what attackers give, with refits: another training set, test set and seed each time.

Seeds train an attacker each, on splits of the same images. Their training sets overlap, so the spread over seeds alone
is too small. The corrected resampled variance (Nadeau and Bengio, Machine Learning 52, 2003) adds the test images over
the training images to 1 / J:

    variance of the mean of J seeds = variance over seeds (ddof 1) * (1 / J + n_test / n_train)

with Student's t of J - 1 degrees of freedom (Bouckaert and Frank, PAKDD 2004). For a difference the values are those
of the difference within each seed. A level, such as LIC_M, adds twice that share: what the training images do to it
does not cancel as it does in a difference (docs/statistics.md has the simulation).
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr, stdtrit

from capbias_core.aggregate.bootstrap import LEVEL, NO_WIDTH

OF_DIFFERENCE, OF_LEVEL = 1, 2  # times test images over training images
Span = tuple[float, float]
UNBOUNDED: Span = (-np.inf, np.inf)
ROUNDING = 1e-6


def standard_error(values: np.ndarray, test_over_train: float, times: int = OF_DIFFERENCE) -> float:
    """Of the mean of one value per seed, two or more. values: (J,).

    >>> round(standard_error(np.array([1.0, 2.0, 3.0]), 0.25), 4)  # sqrt(1 * (1/3 + 1/4))
    0.7638
    """
    return float(np.sqrt(np.var(values, ddof=1) * (1 / len(values) + times * test_over_train)))


def agree(values: np.ndarray) -> bool:
    """Whether the values of all seeds are the same, but for the rounding of sums: nothing is known of their spread."""
    return bool(np.ptp(values) <= NO_WIDTH)


def refit_interval(
    values: np.ndarray, test_over_train: float, times: int = OF_DIFFERENCE, span: Span = UNBOUNDED
) -> Span | tuple[None, None]:
    """The 95% interval of the mean of one value per seed, as far as span goes. values: (J,).

    Nothing if a value is not finite, or if all are equal: their spread is then not known.
    """
    if not np.isfinite(values).all() or agree(values):
        return None, None
    half = stdtrit(len(values) - 1, (1 + LEVEL) / 2) * standard_error(values, test_over_train, times)
    return max(float(values.mean() - half), span[0]), min(float(values.mean() + half), span[1])


def refit_p(values: np.ndarray, test_over_train: float, times: int = OF_DIFFERENCE) -> float:
    """Two-sided p value of the mean difference of each seed against 0, in [0, 1].

    1 if a value is not finite, if all are equal (their spread is then not known), or if none is more than a solver's
    rounding: two sets of the same captions do not differ.
    """
    if not np.isfinite(values).all() or agree(values) or np.abs(values).max() <= ROUNDING:
        return 1.0
    error = standard_error(values, test_over_train, times)
    return float(2 * stdtr(len(values) - 1, -abs(values.mean()) / error))
