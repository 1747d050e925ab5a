"""DBAC and DPA: from what an attacker gives on both sides to one number.

The paper on DBAC leaves open how w of many pairs becomes one number. Both variants are here:

- the equations: Q over the held-out captions with the task word t; w of each pair (a, t); their mean, with the number
  of held-out captions with a and t as weight (`pair_weight`);
- the authors' code: for each held-out caption the attacker's probability of the truth (of T->A the product over the
  task words, there or not) times the share of captions with the same pattern of task words over the share with the same
  value (T->A the other way round); their mean. The value of T->A is the one of which a caption has the most words, and
  none or several count as one more value. The authors split captions at spaces alone and score captions that the
  attacker was trained on; here punctuation is split off, and captions are held out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import alike, numbers
from capbias_core.metrics.share import share

EPSILON = 1e-12
# Columns of one side; L task words, K values, P patterns of task words, G groups. Of captions held out, by seed: losses
# and right guesses by task word, pairs of value and task word (K * L), summed probabilities of the truth by group and
# pattern (G * P), how many captions these are, captions. Of all captions: with each task word, value, pattern, group.
HELD_OUT = ("losses", "right", "pairs", "chances", "seen", "held out")
CAPTIONS = ("with task", "with value", "with pattern", "with group")


def dbac(model: ArrayLike, human: ArrayLike) -> Any:
    """DBAC, directional bias amplification in captioning (Nair et al., arXiv:2503.07878, section 4, Eq. 5-8; after Wang
    & Russakovsky, ICML 2021).

        DBAC = (w_M - w_H) / (w_M + w_H + eps)
        w    = Q(attacker(masked caption), a) * P(t) / P(a)    for A->T: attribute words masked, the value a guessed
        w    = Q(attacker(masked caption), t) * P(a) / P(t)    for T->A: task words masked, the task words t guessed

    Q: accuracy, or 1 / cross-entropy. P: shares of all captions of a side (model M, human H). Range [-1, 1], shown
    x100; lower is better. A model that names the objects more often has a higher A->T for that alone.

    Weights w_M and w_H, 0 or more; numbers, or arrays of one shape.

    >>> pairs = [[3, 1], [1, 3]]  # captions by value and task word
    >>> ratio = [[1, 1], [1, 1]]  # P(t) / P(a)
    >>> human, model = pair_weight([0.75, 0.75], pairs, ratio), pair_weight([1.0, 0.8], pairs, ratio)
    >>> float(human), float(model), round(dbac(model, human), 3)
    (0.75, 0.9, 0.091)
    """
    value = normalised(*alike(model=numbers("model", model, 0), human=numbers("human", human, 0)))
    return value if np.ndim(value) else float(value)


def normalised(model: np.ndarray, human: np.ndarray) -> np.ndarray:
    """`dbac` of weights that may be nan, as in draws of a bootstrap."""
    return (model - human) / (model + human + EPSILON)


def inverse_cross_entropy(losses: ArrayLike, captions: ArrayLike) -> np.ndarray:
    """(..., L) summed -log probabilities of the truth (nats) and captions to (..., L), above 0; nan for none.

    1 / eps at most: of an attacker that is sure of every truth the loss is 0, and w would be no number.

    >>> inverse_cross_entropy([2, 0], [4, 4]).tolist()
    [2.0, 1000000000000.0]
    """
    return share(captions, np.maximum(losses, np.asarray(captions) * EPSILON))


def pair_weight(quality: ArrayLike, pairs: ArrayLike, ratio: ArrayLike) -> np.ndarray:
    """w by the equations. quality: (..., L) of each task word. pairs: (..., K, L) held-out captions by value and task
    word. ratio: (K, L), P(t) / P(a) or its inverse. Returns (...); nan if no caption has a task word."""
    quality, pairs, ratio = np.asarray(quality), np.asarray(pairs), np.asarray(ratio)
    weights = np.nan_to_num(quality[..., None, :] * ratio) * pairs
    return share(weights.sum(axis=(-2, -1)), pairs.sum(axis=(-2, -1)))


def side_weight(
    sums: Mapping[str, np.ndarray], inverse: bool, variant: str = "DBAC", constant: bool = False
) -> np.ndarray:
    """w of one side by a variant (DBAC, DBAC_equations or DBAC_accuracy), (...).

    sums: (..., W) by the names of HELD_OUT and CAPTIONS. inverse: P(a) / P(t) (T->A) in place of P(t) / P(a). constant:
    of an attacker that always gives the same, up to a factor that both sides share.
    """
    of_code = variant == "DBAC"
    tasks, values = (sums[f"with {name}"] for name in (("pattern", "group") if of_code else ("task", "value")))
    tasks, values = tasks[..., None, :], values[..., :, None]  # (..., 1, L) and (..., K, 1)
    ratio = np.nan_to_num(share(values, tasks) if inverse else share(tasks, values), nan=0.0, posinf=0.0)
    if of_code:
        chances = sums["seen" if constant else "chances"].reshape(ratio.shape)
        return share((chances * ratio).sum(axis=(-2, -1)), sums["held out"][..., 0])
    pairs = sums["pairs"].reshape(ratio.shape)
    captions = pairs.sum(axis=-2)
    if constant:
        quality = np.ones_like(captions)
    elif variant == "DBAC_accuracy":
        quality = share(sums["right"], captions)
    else:
        quality = inverse_cross_entropy(sums["losses"], captions)
    return pair_weight(quality, pairs, ratio)


def predictability(model: Any, human: Any) -> Any:
    """DPA, directional predictability amplification (Tokas, Nair & Kerner, NeurIPS 2025).

        DPA = (q_M - q_H) / (q_M + q_H)

    q: quality (such as 1 / cross-entropy) of an attacker that guesses, on items that it did not train on, the objects
    that captions name from the labelled value (A->T), or the value that captions name from the objects on the image
    (T->A). q_M: of the model's labels. q_H: of the human ones, of which as many are taken away and added at random as
    the model misses and adds, so that a less exact model does not look less biased. Range [-1, 1], shown x100; lower is
    better. Qualities are 0 or more, numbers or arrays of one shape; nan where both are 0.

    >>> round(predictability(1.0, 0.75), 4)
    0.1429
    """
    value = amplification(*alike(model=numbers("model", model, 0), human=numbers("human", human, 0)))
    return value if np.ndim(value) else float(value)


def amplification(model: Any, human: Any) -> Any:
    """`predictability` of qualities that may be nan, as in draws of a bootstrap."""
    return share(model - human, model + human)
