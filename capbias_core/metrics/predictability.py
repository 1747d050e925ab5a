"""DPA, directional predictability amplification (Tokas, Nair & Kerner, NeurIPS 2025)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import alike, booleans, numbers
from capbias_core.metrics.share import share

SMALLEST = 1e-12


def predictability(model: Any, human: Any) -> Any:
    """DPA, directional predictability amplification (Tokas, Nair & Kerner, NeurIPS 2025).

        DPA = (q_M - q_H) / (q_M + q_H)

    q: quality (accuracy, 1 / cross-entropy or 1 / mean squared error) of an attacker that guesses labels from labels on
    items that it did not train on: objects that captions name from the labelled value (A->T), or the value that
    captions name from the objects on the image (T->A). q_M: of the model's labels. q_H: of the human ones, of which as
    many are taken away and added at random as the model misses and adds, so that a less exact model does not look less
    biased. Range [-1, 1], shown x100; lower is better. Above 0: more can be guessed than from the human captions.

    Qualities of both sides, 0 or more; numbers, or arrays of one shape. nan where both are 0.

    >>> round(predictability(1.0, 0.75), 4)
    0.1429
    """
    value = amplification(*alike(model=numbers("model", model, 0), human=numbers("human", human, 0)))
    return value if np.ndim(value) else float(value)


def amplification(model: Any, human: Any) -> Any:
    """`predictability` of qualities that may be nan, as in draws of a bootstrap."""
    return share(model - human, model + human)


def cross_entropy(shares: ArrayLike, truth: ArrayLike) -> np.ndarray:
    """(n, L) probabilities and 0 or 1 to (n, L) losses in nats."""
    guessed, known = alike(shares=numbers("shares", shares, 0, 1, ("n", "L")), truth=booleans("truth", truth, "L"))
    guessed = np.clip(guessed, SMALLEST, 1 - SMALLEST)
    return -(known * np.log(guessed) + (~known) * np.log(1 - guessed))


def as_unlike(human: np.ndarray, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Human labels (n, L) of 0 or 1 that differ from themselves as often as the model's differ from them.

    In each column as many labels are taken away at random as the model misses, and as many are added as it adds: so
    they are as common as the model's, too.
    """
    alike(human=booleans("human", human, "L"), model=booleans("model", model, "L"))
    changed = human.copy()
    for column in range(human.shape[1]):
        for there in (1, 0):
            places = np.flatnonzero(human[:, column] == there)
            count = int((model[places, column] != there).sum())
            changed[rng.permutation(places)[:count], column] = 1 - there
    return changed
