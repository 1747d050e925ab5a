"""Values of the attribute beside words and objects: BA, DBA_G, DBA_O and Multi, human captions against the model's.

Each formula compares the counts of both sides (`Table`). Which pairs of a value and a word count, and with which sign,
is decided by `whole`, the counts of all images: decided anew in each draw of a bootstrap, noise would shift the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import unknown_name
from capbias_core.metrics.arguments import alike, booleans, counts
from capbias_core.metrics.share import share
from capbias_core.types import A_TO_T, T_TO_A


class Table(NamedTuple):
    """Captions of one side; the first axes are those of the sums, such as draws of a bootstrap."""

    n: np.ndarray  # (...) all
    value: np.ndarray  # (..., K) with each value
    task: np.ndarray  # (..., L) with each word
    pair: np.ndarray  # (..., K, L) with both

    @classmethod
    def of(cls, sums: np.ndarray, k: int) -> Table:
        """(..., 1 + K + L + K * L) sums over captions by what they count."""
        n_tasks = (sums.shape[-1] - 1 - k) // (1 + k)
        n, value, task, pair = np.split(sums, np.cumsum([1, k, n_tasks]), axis=-1)
        return cls(n[..., 0], value, task, pair.reshape(*sums.shape[:-1], k, n_tasks))

    @property
    def given_task(self) -> np.ndarray:
        """(..., K, L) shares p(a | l); nan if the word never occurs."""
        return share(self.pair, self.task[..., None, :])

    @property
    def given_value(self) -> np.ndarray:
        """(..., K, L) shares p(l | a); nan if the value never occurs."""
        return share(self.pair, self.value[..., :, None])


Both = tuple[Table, Table]  # of the human captions and of the model's


def bias_amplification(human_pairs: ArrayLike, model_pairs: ArrayLike) -> float:
    """BA, bias amplification (Zhao et al., EMNLP 2017, BA_MALS; Hirota et al., CVPR 2022, Eq. 2-3 and appendix A.2).

        b_al = c_al / sum_a c_al
        BA   = 1 / |L| * sum_{a, l} (b_al of the model - b_al of the humans) * 1[b_al of the humans > 1 / |A|]

    c_al: captions that name the value a and have the word l, (K, L) of each side. Range [-1, 1], shown x100; lower is
    better. It does not see how often a value occurs. A word that the model never uses beside a value adds 0.

    >>> bias_amplification(human_pairs=[[3], [1]], model_pairs=[[4], [0]])  # two values, one word
    0.25
    """
    human, model = alike(
        human_pairs=counts("human_pairs", human_pairs, ("K", "L")),
        model_pairs=counts("model_pairs", model_pairs, ("K", "L")),
    )
    nothing = np.zeros(0)
    both = Table(nothing, nothing, nothing, human), Table(nothing, nothing, nothing, model)
    return float(word_to_value(*both, both))


def dba_g(
    human_values: ArrayLike, human_objects: ArrayLike, model_values: ArrayLike, model_objects: ArrayLike
) -> float:
    """DBA_G, directional bias amplification (Wang & Russakovsky, ICML 2021; LIC, CVPR 2022, appendix A.2, Eq. 1-3).

        DBA  = 1 / (|L| |A|) * sum_{a, l} y_al D_al + (1 - y_al) (-D_al),   y_al = 1[p(a, l) > p(a) p(l)]
        D_al = p(a | l) of the model - p(a | l) of the humans    objects of the image -> value that captions name

    p: shares of captions; y from the human side. Range [-1, 1], shown x100; lower is better. A pair whose condition
    never occurs on one side adds 0. With few images chance alone pulls the value below 0.

    values: (n, K) booleans, which values each caption names. objects: (n, L) booleans, what each image shows.

    >>> values = [[1, 0]] * 4 + [[0, 1]] * 4
    >>> human, model = [[1], [1], [1], [0], [1], [0], [0], [0]], [[1]] * 4 + [[0]] * 4  # one object, by caption
    >>> dba_g(values, human, values, model)
    0.25
    """
    both = _tables(human_values, human_objects, model_values, model_objects)
    return float(object_to_value(*both, both))


def dba_o(
    human_values: ArrayLike, human_objects: ArrayLike, model_values: ArrayLike, model_objects: ArrayLike
) -> float:
    """DBA_O, directional bias amplification (Wang & Russakovsky, ICML 2021; LIC, CVPR 2022, appendix A.2, Eq. 1-3).

        D_al = p(l | a) of the model - p(l | a) of the humans    labelled value -> objects that captions name

    and the rest as in `dba_g`. Range [-1, 1], shown x100; lower is better. values: the labelled value of each caption's
    image. objects: what each caption names.

    >>> values = [[1, 0]] * 4 + [[0, 1]] * 4
    >>> human, model = [[1], [1], [1], [0], [1], [0], [0], [0]], [[1]] * 4 + [[0]] * 4
    >>> dba_o(values, human, values, model)
    0.25
    """
    both = _tables(human_values, human_objects, model_values, model_objects)
    return float(value_to_object(*both, both))


def multi(
    human_values: ArrayLike,
    human_objects: ArrayLike,
    model_values: ArrayLike,
    model_objects: ArrayLike,
    direction: str = A_TO_T,
) -> float:
    """Multi->, directional bias amplification of combinations (Zhao, Andrews & Xiang, ICML 2023, Eq. 3-4).

        Multi = 1 / (|A| |M|) * sum_{a, m} |D_am|
        D_am  = p(m | a) of the model - p(m | a) of the humans    for A->T: labelled value -> objects named together
        D_am  = p(a | m) of the model - p(a | m) of the humans    for T->A: objects together -> value named

    m: an object, or several together. Range [0, 1], shown x100; lower is better. Any change counts, so chance alone
    keeps it above 0. values, objects: of A->T as in `dba_o`, of T->A as in `dba_g`, a column for each combination.

    >>> values = [[1, 0]] * 4 + [[0, 1]] * 4
    >>> human, model = [[1], [1], [1], [0], [1], [0], [0], [0]], [[1]] * 4 + [[0]] * 4  # one object, by caption
    >>> multi(values, human, values, model), multi(values, human, values, model, direction="T->A")
    (0.25, 0.25)
    """
    both = _tables(human_values, human_objects, model_values, model_objects)
    return float(mean_change(*both, both, direction))


def _tables(
    human_values: ArrayLike, human_objects: ArrayLike, model_values: ArrayLike, model_objects: ArrayLike
) -> Both:
    """(n, K) values and (n, L) objects of the captions of both sides, booleans, as counts; n may differ."""
    human = booleans("human_values", human_values), booleans("human_objects", human_objects, "L")
    model = booleans("model_values", model_values), booleans("model_objects", model_objects, "L")
    alike(0, human_values=human[0], human_objects=human[1])
    alike(0, model_values=model[0], model_objects=model[1])
    alike(1, human_values=human[0], model_values=model[0])
    alike(1, human_objects=human[1], model_objects=model[1])

    def table(values: np.ndarray, objects: np.ndarray) -> Table:
        return Table(np.array(len(values)), values.sum(axis=0), objects.sum(axis=0), values.T.astype(int) @ objects)

    return table(*human), table(*model)


# formulas over tables: (...) unscaled values


def word_to_value(human: Table, model: Table, whole: Both) -> np.ndarray:
    """BA."""
    change = np.where(preferred(whole[0]), _share(model) - _share(human), 0.0)
    return np.nan_to_num(change).sum(axis=(-2, -1)) / human.pair.shape[-1]


def object_to_value(human: Table, model: Table, whole: Both) -> np.ndarray:
    """DBA_G."""
    return _directed(model.given_task - human.given_task, whole[0])


def value_to_object(human: Table, model: Table, whole: Both) -> np.ndarray:
    """DBA_O."""
    return _directed(model.given_value - human.given_value, whole[0])


def _directed(change: np.ndarray, human: Table) -> np.ndarray:
    """The mean change of pairs, of those that do not go together in these human captions with the other sign."""
    return np.nan_to_num(np.where(goes_together(human), change, -change)).mean(axis=(-2, -1))


def mean_change(human: Table, model: Table, whole: Both, direction: str) -> np.ndarray:
    """Multi."""
    shares = {A_TO_T: lambda side: side.given_value, T_TO_A: lambda side: side.given_task}
    if direction not in shares:
        raise unknown_name("direction", direction, shares)

    def change(human: Table, model: Table) -> np.ndarray:
        """(..., K, M); 0 if the condition never occurs on a side."""
        return np.nan_to_num(shares[direction](model) - shares[direction](human))

    return (change(human, model) * np.sign(change(*whole))).mean(axis=(-2, -1))


def signed_change(model: np.ndarray, given_model: np.ndarray, human: np.ndarray, given_human: np.ndarray) -> np.ndarray:
    """(..., W) sums of signed captions of both sides, each with those of its condition, to (...)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(model / given_model - human / given_human).sum(axis=-1)


def preferred(side: Table) -> np.ndarray:
    """(..., K, L) booleans: the word goes with the value more often than evenly."""
    return _share(side) > 1 / side.pair.shape[-2]


def goes_together(side: Table) -> np.ndarray:
    """(..., K, L) booleans: value and word occur together more often than by chance. p(a, l) > p(a) p(l), times n
    twice: whole numbers, so that independent pairs do not depend on rounding."""
    return side.pair * side.n[..., None, None] > side.value[..., :, None] * side.task[..., None, :]


def _share(side: Table) -> np.ndarray:
    """(..., K, L), the share of each value among the captions with a word; nan if there are none."""
    return share(side.pair, side.pair.sum(axis=-2, keepdims=True))
