"""Multi->, directional bias amplification of combinations (Zhao, Andrews & Xiang, ICML 2023, Eq. 3-4).

    Multi = 1 / (|A| |M|) * sum_{a, m} |D_am|
    Multi_variance = variance over (a, m) of D_am
    D_am = p(m | a) of the model - p(m | a) of the humans    for A->T: labelled value -> combination of objects named
    D_am = p(a | m) of the model - p(a | m) of the humans    for T->A: combination of objects -> value named

m: an object, or several together. Range [0, 1], shown x100; lower is better. It does not tell more bias from less: any
change counts, and chance alone moves every pair a little, so it stays above 0 if captions are few. In draws of a
bootstrap each change keeps the sign that it has on all images: folded anew in every draw, noise would add to it.
Multi_variance: range [0, 1], shown x10,000; high if few pairs carry the change. Its changes keep their signs, and it
is the variance of all pairs (ddof 0), both as in the authors' code.

>>> values = [[1, 0]] * 4 + [[0, 1]] * 4
>>> human, model = [[1], [1], [1], [0], [1], [0], [0], [0]], [[1]] * 4 + [[0]] * 4  # one object, caption by caption
>>> multi(values, human, values, model), multi(values, human, values, model, direction="T->A")
(0.25, 0.25)
>>> multi_variance(values, human, values, model)  # one change is 0.25, the other -0.25
0.0625
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import unknown_name
from capbias_core.metrics.directional import counted, given_task, given_value
from capbias_core.metrics.evidence import CooccurrenceCounts
from capbias_core.types import A_TO_T, T_TO_A


def multi(
    human_values: ArrayLike,
    human_objects: ArrayLike,
    model_values: ArrayLike,
    model_objects: ArrayLike,
    direction: str = A_TO_T,
) -> float:
    """values: (n, K) booleans, of A->T the labelled value of each caption's image, of T->A the values that captions
    name. objects: (n, M) booleans, a column for each combination, of A->T what captions name, of T->A what images show.
    """
    human, model = counted(human_values, human_objects, model_values, model_objects)
    return float(_of_direction(value_to_combination, combination_to_value, direction)(human, model, (human, model)))


def multi_variance(
    human_values: ArrayLike,
    human_objects: ArrayLike,
    model_values: ArrayLike,
    model_objects: ArrayLike,
    direction: str = A_TO_T,
) -> float:
    """The variance of the changes that `multi` averages; arguments as there."""
    human, model = counted(human_values, human_objects, model_values, model_objects)
    return float(_of_direction(variance_of_values, variance_of_combinations, direction)(human, model, (human, model)))


def _of_direction(a_to_t: Callable, t_to_a: Callable, direction: str) -> Callable:
    known = {A_TO_T: a_to_t, T_TO_A: t_to_a}
    if direction not in known:
        raise unknown_name("direction", direction, known)
    return known[direction]


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
    return _variance(_change(given_value, human, model))


def variance_of_combinations(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """Multi_variance T->A, (...) values."""
    return _variance(_change(given_task, human, model))


def _change(conditional: Callable, human: CooccurrenceCounts, model: CooccurrenceCounts) -> np.ndarray:
    """(..., K, M); 0 if the condition never occurs on a side."""
    return np.nan_to_num(conditional(model) - conditional(human))


def _mean_change(change: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return (change * np.sign(whole)).mean(axis=(-2, -1))


def _variance(change: np.ndarray) -> np.ndarray:
    """Over all pairs (ddof 0)."""
    return change.reshape(*change.shape[:-2], -1).var(axis=-1)
