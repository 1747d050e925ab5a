"""Multi->, directional bias amplification of combinations (Zhao, Andrews & Xiang, ICML 2023, Eq. 3-4).

    Multi = 1 / (|A| |M|) * sum_{a, m} |D_am|
    Multi_variance = variance over (a, m) of y_am D_am - (1 - y_am) D_am
    D_am = p(m | a) of the model - p(m | a) of the humans    for A->T: labelled value -> combination of objects named
    D_am = p(a | m) of the model - p(a | m) of the humans    for T->A: combination of objects -> value named
    y_am = 1[p(a, m) > p(a) p(m)]

m: an object, or several together. Range [0, 1], shown x100; lower is better. It does not tell more bias from less: any
change counts, and chance alone moves every pair a little, so it stays above 0 where captions are few. In draws of a
bootstrap each change keeps the sign that it has on all images: folded anew in every draw, noise would add to it.
Multi_variance: range [0, 1], shown x10,000; high where few pairs carry the change.

>>> import numpy as np
>>> human = CooccurrenceCounts.of(np.array([8, 4, 4, 4, 3, 1.0]), 2, 1)
>>> model = CooccurrenceCounts.of(np.array([8, 4, 4, 4, 4, 0.0]), 2, 1)
>>> float(value_to_combination(human, model, (human, model)))
0.25
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import CooccurrenceCounts
from capbias_core.metrics.directional import given_task, given_value, goes_together


def value_to_combination(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """Multi A->T, (...) values. whole: both sides on all images, which decide the sign of each change."""
    return _mean_change(_change(given_value, human, model), _change(given_value, *whole))


def combination_to_value(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """Multi T->A, (...) values."""
    return _mean_change(_change(given_task, human, model), _change(given_task, *whole))


def variance_of_values(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """Multi_variance A->T, (...) values."""
    return _variance(_change(given_value, human, model), whole[0])


def variance_of_combinations(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """Multi_variance T->A, (...) values."""
    return _variance(_change(given_task, human, model), whole[0])


def _change(conditional, human: CooccurrenceCounts, model: CooccurrenceCounts) -> np.ndarray:
    """(..., K, M); 0 where the condition never occurs on a side."""
    return np.nan_to_num(conditional(model) - conditional(human))


def _mean_change(change: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return (change * np.sign(whole)).mean(axis=(-2, -1))


def _variance(change: np.ndarray, human: CooccurrenceCounts) -> np.ndarray:
    """Over pairs (ddof 1) of the changes toward more bias."""
    directed = np.where(goes_together(human), change, -change)
    return directed.reshape(*directed.shape[:-2], -1).var(axis=-1, ddof=1)
