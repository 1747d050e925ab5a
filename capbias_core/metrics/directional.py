"""DBA_G and DBA_O, directional bias amplification (Wang & Russakovsky, ICML 2021; LIC, appendix A.2, Eq. 1-3).

    DBA = 1 / (|L| |A|) * sum_{a, l} y_al D_al + (1 - y_al) (-D_al),   y_al = 1[p(a, l) > p(a) p(l)]
    D_al = p(a | l) of the model - p(a | l) of the humans    for DBA_G: objects of the image -> value that captions name
    D_al = p(l | a) of the model - p(l | a) of the humans    for DBA_O: labelled value -> objects that captions name

p: shares of captions; y from the human side. Range [-1, 1], shown x100; lower is better. Above 0: pairs that go
together more often than by chance do so more in the model's captions, or the others less. A pair whose condition never
occurs on one side adds 0. If images are few, chance alone makes pairs of the human side stand out that the model's
do not follow, and the value falls below 0.

>>> values = [[1, 0]] * 4 + [[0, 1]] * 4
>>> human, model = [[1], [1], [1], [0], [1], [0], [0], [0]], [[1]] * 4 + [[0]] * 4  # one object, caption by caption
>>> dba_o(values, human, values, model), dba_g(values, human, values, model)
(0.25, 0.25)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import sides
from capbias_core.metrics.evidence import CooccurrenceCounts


def dba_g(
    human_values: ArrayLike, human_objects: ArrayLike, model_values: ArrayLike, model_objects: ArrayLike
) -> float:
    """values: (n, K) booleans, which values each caption names. objects: (n, L) booleans, what each image shows."""
    human, model = counted(human_values, human_objects, model_values, model_objects)
    return float(object_to_value(human, model, (human, model)))


def dba_o(
    human_values: ArrayLike, human_objects: ArrayLike, model_values: ArrayLike, model_objects: ArrayLike
) -> float:
    """values: (n, K) booleans, the labelled value of each caption's image. objects: (n, L) booleans, what each caption
    names."""
    human, model = counted(human_values, human_objects, model_values, model_objects)
    return float(value_to_object(human, model, (human, model)))


def counted(
    human_values: ArrayLike, human_objects: ArrayLike, model_values: ArrayLike, model_objects: ArrayLike
) -> tuple[CooccurrenceCounts, CooccurrenceCounts]:
    """(n, K) and (n, L) booleans of the captions of both sides as counts of captions."""
    human, model = (
        CooccurrenceCounts(np.array(len(values)), values.sum(axis=0), tasks.sum(axis=0), values.T.astype(int) @ tasks)
        for values, tasks in sides(human_values, human_objects, model_values, model_objects)
    )
    return human, model


def object_to_value(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """DBA_G, (...) values. whole: both sides on all images; the human one decides y."""
    return _directed(whole[0], given_task(model) - given_task(human))


def value_to_object(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """DBA_O, (...) values. whole: both sides on all images; the human one decides y."""
    return _directed(whole[0], given_value(model) - given_value(human))


def _directed(human: CooccurrenceCounts, change: np.ndarray) -> np.ndarray:
    directed = np.where(goes_together(human), change, -change)
    return np.nan_to_num(directed).mean(axis=(-2, -1))


def goes_together(side: CooccurrenceCounts) -> np.ndarray:
    """(..., K, L) booleans: value and word occur together more often than by chance.

    p(a, l) > p(a) p(l), times n twice: whole numbers, so that independent pairs do not depend on rounding.
    """
    return side.pair * side.n[..., None, None] > side.value[..., :, None] * side.task[..., None, :]


def given_task(side: CooccurrenceCounts) -> np.ndarray:
    """(..., K, L) shares p(a | l); nan if the word never occurs."""
    with np.errstate(invalid="ignore"):
        return side.pair / side.task[..., None, :]


def given_value(side: CooccurrenceCounts) -> np.ndarray:
    """(..., K, L) shares p(l | a); nan if the value never occurs."""
    with np.errstate(invalid="ignore"):
        return side.pair / side.value[..., :, None]
