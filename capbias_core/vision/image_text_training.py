"""How networks that read a photograph and its masked caption train; what they are is in judge.py and joint.py.

They are attackers (attackers/base.py) whose corpus holds pictures beside captions. Protocol of ImageCaptioner2: Adam,
batches of 128, 40 epochs, images split 70 / 10 / 20 and balanced. Who calls holds the 20 back; of the rest an eighth,
equally much of every value, is set aside here, and the epoch with the lowest loss on it is kept. The paper gives no
learning rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.device import choose_device
from capbias_core.attackers.networks.batches import Encoded, cut, encode
from capbias_core.attackers.networks.training import SET_ASIDE, NetworkAttacker, initialised, learn
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.types import Progress

SET_ASIDE_OF = 8  # one in so many: 10 of the 80 percent
SCORING_BATCH = 256


@dataclass(frozen=True)
class PairCorpus:
    """Captions with the pictures of their images.

    sight: (n_images, 3, h, w) bytes, or (n_images, d) vectors of a frozen backbone. image: (n,) place of each caption's
    image. captions: n masked ones, with prompt. vectors: (n, d) of a frozen text encoder, None where words are read.
    """

    sight: np.ndarray
    image: np.ndarray
    captions: list[str]
    vectors: np.ndarray | None = None

    @cached_property
    def pictures(self) -> np.ndarray:
        """A sum that tells pictures apart, for a checkpoint's name: all of many photographs would take long to read."""
        return self.sight.sum(axis=-1)

    @cached_property
    def tokens(self) -> list[list[str]]:
        return [caption.split() for caption in self.captions]

    def reader(
        self, network: nn.Module, rows: np.ndarray, vocabulary: dict[str, int], device: torch.device
    ) -> Callable[[np.ndarray], Tensor]:
        """Places among these rows to the logits (B, C) of a network, which reads (pictures, captions, places)."""
        sight, image = torch.from_numpy(self.sight), torch.from_numpy(self.image[rows])
        if self.vectors is not None:
            text: Encoded | Tensor = torch.from_numpy(self.vectors[rows]).to(device)
        else:
            text = encode([self.tokens[row] for row in rows], vocabulary, device)
        return lambda own: network(sight[image[own]].to(device), text, own)


@dataclass(frozen=True)
class PairReader(NetworkAttacker):
    """What judges from scratch have in common. patience: epochs without a lower loss on what is set aside after which
    training stops; as many as there are epochs: never earlier."""

    learning_rate: float = 3e-4
    batch: int = 128
    epochs: int = 40
    patience: int = 40
    dropout: float = 0.5

    first_answer = 0  # the place of the first value among the logits

    def vocabulary(self, captions: Sequence[list[str]], n_values: int) -> dict[str, int]:
        """Word -> id, from the captions to train on."""
        raise NotImplementedError

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> nn.Module:
        """An untrained network that reads pictures, captions and the places of captions."""
        raise NotImplementedError

    def fit(self, corpus: PairCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedPair:
        rows, labels, device = np.asarray(rows), np.asarray(labels), choose_device(self.device)
        aside = set_aside(labels, n_values, np.random.default_rng(child_seed(seed, FIT, SET_ASIDE)))
        split = np.flatnonzero(~aside), np.flatnonzero(aside)
        words = {}
        if corpus.vectors is None:
            words = self.vocabulary([corpus.tokens[row] for row in rows[split[0]]], n_values)
        network = initialised(partial(self.network, corpus, words, n_values), seed).to(device)

        def batches(rng: np.random.Generator) -> list[np.ndarray]:
            return cut(rng.permutation(len(split[0])), self.batch)

        reads = [corpus.pictures, corpus.image[rows], *([] if corpus.vectors is None else [corpus.vectors[rows]])]
        captions = np.frombuffer("\n".join(corpus.captions[row] for row in rows).encode(), dtype=np.uint8)
        logits = corpus.reader(network, rows, words, device)
        learn(network, logits, labels + self.first_answer, split, batches, self, seed, [*reads, captions], tick)
        return FittedPair(self, words, network, device, n_values)


def set_aside(labels: np.ndarray, n_values: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) booleans: an eighth of every value, one at least."""
    aside = np.zeros(len(labels), dtype=bool)
    for value in range(n_values):
        own = rng.permutation(np.flatnonzero(labels == value))
        aside[own[: max(1, round(len(own) / SET_ASIDE_OF))]] = True
    return aside


@dataclass(frozen=True)
class FittedPair:
    """A trained network."""

    reader: PairReader
    vocabulary: dict[str, int]
    network: nn.Module
    device: torch.device
    n_values: int

    def logits(self, corpus: PairCorpus, rows: np.ndarray) -> np.ndarray:
        """(n, K) log-probabilities of the values, or (n, 1) log-odds of the second of two."""
        parts = np.split(np.asarray(rows), np.arange(SCORING_BATCH, len(rows), SCORING_BATCH)) if len(rows) else []
        logits = np.concatenate([np.empty((0, self.n_values)), *map(partial(self._read, corpus), parts)])
        return logits[:, 1:] - logits[:, :1] if self.n_values == 2 else logits

    def _read(self, corpus: PairCorpus, rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            logits = corpus.reader(self.network, rows, self.vocabulary, self.device)(np.arange(len(rows)))
        answers = logits[:, self.reader.first_answer :][:, : self.n_values]
        return functional.log_softmax(answers.double(), dim=1).cpu().numpy()
