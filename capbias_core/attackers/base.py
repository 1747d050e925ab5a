"""What every attacker can do. An attacker reads masked captions and guesses the protected attribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from capbias_core.types import Contributions, Progress


class FittedAttacker(Protocol):
    """A trained attacker. C = 1 logit for two values (toward the second value), K for more, L for task words."""

    def logits(self, corpus: Any, rows: np.ndarray) -> np.ndarray:
        """(len(rows), C) logits of the captions at these positions of the corpus."""

    def contributions(self, corpus: Any, rows: np.ndarray) -> Contributions:
        """What each word of these captions adds to their logits.

        One with `attends` in its row of ATTACKERS also has `attention(corpus, rows)`, an Attention of each caption.
        """


class Attacker(Protocol):
    """One encoder with its head; facts about it that need no import are in its row of `ATTACKERS`."""

    def corpus(self, captions: Sequence[str]) -> Any:
        """Masked captions (tokens joined by a space) in the attacker's own form; learns nothing from labels."""

    def fit(self, corpus: Any, rows: np.ndarray, labels: np.ndarray, n_values: int, seed: int, tick: Progress) -> Any:
        """Trains on the captions at `rows`.

        labels: (len(rows),) integers in [0, n_values), or (len(rows), L) booleans, which of L task words are there.
        """


def fit_many(
    attacker: Attacker,
    corpus: Any,
    rows: Sequence,
    labels: Sequence,
    n_values: int,
    seeds: Sequence[int],
    tick: Progress,
) -> Iterator:
    """One attacker for each seed, trained on its own rows and labels: yields what `fit` returns, in order.

    An attacker that has a `fit_many` of its own (without the first argument) trains them together, all before the first
    is given; each then equals in distribution what it would be alone. The others train one after the other, when they
    are asked for, so that one that is done with need not be kept.
    """
    if hasattr(attacker, "fit_many"):
        yield from attacker.fit_many(corpus, rows, labels, n_values, seeds, tick)
        return
    for done, (own, known, seed) in enumerate(zip(rows, labels, seeds, strict=True)):

        def part(share: float, text: str, done=done) -> None:
            tick((done + share) / len(seeds), text)

        yield attacker.fit(corpus, own, known, n_values, seed, part)


def probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, C) logits to (n, K) probabilities: logistic for C = 1, softmax for C = K."""
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def task_probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, L) logits of task words to (n, L) probabilities that each is there."""
    return 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
