"""Masked captions as numbers, and the batches in which networks read them.

A plain loop pads or packs a batch of mixed length. Here a batch holds captions of one length, so that on a CPU nothing
is padded. What is left over of each length fills mixed batches. So, as in the plain loop, every epoch reads each
caption once, in batches of one size in random order, with as many steps; only the company that a caption keeps in its
batch is not independent of its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from capbias_core.types import UNKNOWN_TOKEN

PAD, UNKNOWN = 0, 1


@dataclass(frozen=True)
class TokenCorpus:
    """The tokens of each caption; words become numbers only with the vocabulary of a fit."""

    tokens: list[list[str]]


@dataclass(frozen=True)
class Encoded:
    """Captions as numbers. ids: (n, longest), PAD after the end; lengths: (n,), at least 1.

    An empty caption is one PAD token: the baseline itself, so it has a logit and no contributions.
    """

    ids: np.ndarray
    lengths: np.ndarray

    def of_one_length(self, members: np.ndarray) -> np.ndarray:
        """(1, B, T) ids of captions that all have the same length."""
        return self.ids[members, : self.lengths[members[0]]][None]


def encode(captions: Sequence[list[str]], vocabulary: dict[str, int]) -> Encoded:
    lengths = np.array([max(1, len(caption)) for caption in captions], dtype=np.int64)
    ids = np.full((len(captions), lengths.max(initial=1)), PAD, dtype=np.int64)
    for row, caption in enumerate(captions):
        ids[row, : len(caption)] = [vocabulary.get(word, UNKNOWN) for word in caption]
    return Encoded(ids, lengths)


def training_vocabulary(captions: Sequence[list[str]]) -> dict[str, int]:
    """Word -> id; sorted, so that the order of the captions does not matter."""
    words = {word for caption in captions for word in caption} - {UNKNOWN_TOKEN}
    return {UNKNOWN_TOKEN: UNKNOWN} | {word: place for place, word in enumerate(sorted(words), start=UNKNOWN + 1)}


def same_length(lengths: np.ndarray, rows: np.ndarray, largest: int) -> Iterator[np.ndarray]:
    """The rows in groups of one length, at most `largest` in each."""
    for length in np.unique(lengths[rows]):
        members = rows[lengths[rows] == length]
        for start in range(0, len(members), largest):
            yield members[start : start + largest]


def training_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """One epoch: every caption once, in shuffled batches of one length; the remainders fill mixed batches.

    All batches but one hold `size` captions, so no caption weighs more for having a rare length.
    """
    batches, remainders = [], []
    for length in np.unique(lengths):
        rows = rng.permutation(np.flatnonzero(lengths == length))
        whole = len(rows) - len(rows) % size
        batches += list(rows[:whole].reshape(-1, size))
        remainders.append(rows[whole:])
    left = np.concatenate(remainders)
    batches += [left[start : start + size] for start in range(0, len(left), size)]
    return [batches[place] for place in rng.permutation(len(batches))]


def in_step(
    orders: Sequence[Sequence[np.ndarray]], lengths: Sequence[np.ndarray], rng: np.random.Generator
) -> list[list[np.ndarray]]:
    """The batches of several seeds, so ordered that those read at once are about equally long: less is padded.

    orders: of each seed, its batches in random order, as many as of every other. lengths: (n,), of each seed's
    captions. Of every seed the shortest batch, the second and so on come at the same place, which is random: the same
    for a seed alone as among others, where rng is in the same state.
    """
    places = rng.permutation(len(orders[0]))
    found = []
    for own, known in zip(orders, lengths, strict=True):
        ranks = np.argsort([known[batch].max() for batch in own], kind="stable").tolist()
        found.append([own[ranks[place]] for place in places])
    return found
