"""Masked captions as numbers, and the batches in which networks read them.

A network reads each distinct caption of a batch once, with the others of its length, so nothing is padded. A training
batch holds captions of one length; the remainders of all lengths fill mixed batches. Each epoch has as many steps as in
the papers, with each caption once. Unlike there, a caption's neighbours in its batch have its length, and its copies
share one pass through the encoder (and so one dropout mask).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from capbias_core.types import UNKNOWN_TOKEN

PAD, UNKNOWN = 0, 1


@dataclass(frozen=True)
class Encoded:
    """Captions as numbers. ids: (n, longest), PAD after the end; lengths: (n,), at least 1.

    An empty caption is one PAD token: the baseline itself, so it has a logit and no contributions.
    """

    ids: Tensor
    lengths: np.ndarray

    @classmethod
    def of(cls, captions: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Encoded:
        lengths = np.array([max(1, len(caption)) for caption in captions], dtype=np.int64)
        ids = np.full((len(captions), lengths.max(initial=1)), PAD, dtype=np.int64)
        for row, caption in enumerate(captions):
            ids[row, : len(caption)] = caption
        return cls(torch.from_numpy(ids).to(device), lengths)

    def read(self, encoder: Callable[[Tensor], Tensor], rows: np.ndarray) -> Tensor:
        """(len(rows), d) vectors of these captions. encoder: (B, T) ids of one length to (B, d)."""
        rows, copies = np.unique(rows, return_inverse=True)
        order = np.argsort(self.lengths[rows], kind="stable")
        lengths, starts = np.unique(self.lengths[rows[order]], return_index=True)
        groups = np.split(rows[order], starts[1:])
        vectors = torch.cat([encoder(self.ids[own, :length]) for own, length in zip(groups, lengths, strict=True)])
        return vectors[torch.from_numpy(np.argsort(order)[copies])]

    def groups(self, largest: int) -> Iterator[np.ndarray]:
        """Rows of captions of one length, at most `largest` at a time, short ones first."""
        for length in np.unique(self.lengths):
            rows = np.flatnonzero(self.lengths == length)
            yield from np.split(rows, np.arange(largest, len(rows), largest))


def encode(captions: Sequence[list[str]], vocabulary: dict[str, int], device: torch.device | str = "cpu") -> Encoded:
    return Encoded.of([[vocabulary.get(word, UNKNOWN) for word in caption] for caption in captions], device)


def training_vocabulary(captions: Sequence[list[str]]) -> dict[str, int]:
    """Word -> id; sorted, so that the order of the captions does not matter."""
    words = {word for caption in captions for word in caption} - {UNKNOWN_TOKEN}
    return {UNKNOWN_TOKEN: UNKNOWN} | {word: place for place, word in enumerate(sorted(words), start=UNKNOWN + 1)}


def batches_by_length(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """One epoch: each caption once, in shuffled batches of one length; the remainders fill mixed batches.

    All batches but one hold `size` captions, so no caption weighs more for having a rare length.
    """
    whole, rest = [], []
    for length in np.unique(lengths):
        rows = rng.permutation(np.flatnonzero(lengths == length))
        end = len(rows) - len(rows) % size
        whole += list(rows[:end].reshape(-1, size))
        rest.append(rows[end:])
    whole += cut(np.concatenate(rest), size)
    return [whole[place] for place in rng.permutation(len(whole))]


def cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Batches of `size` rows, the last one smaller; one row alone joins the batch before, for batch normalisation."""
    ends = np.arange(size, len(rows), size)
    return np.split(rows, ends[:-1] if len(ends) and len(rows) - ends[-1] == 1 else ends)
