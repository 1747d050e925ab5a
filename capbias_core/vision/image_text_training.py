"""How networks that read a photograph and its masked caption train; what they are is in judge.py and joint.py.

They are attackers (attackers/base.py) whose corpus holds pictures beside captions. Protocol of ImageCaptioner2: Adam,
batches of 128, 40 epochs, images split 70 / 10 / 20 and balanced. Who calls holds the 20 back; of the rest an eighth,
equally much of every value, is set aside here, and the epoch with the lowest loss on it is kept. The paper gives no
learning rate. Seeds train together as the attackers do: on CUDA as one network, on a CPU each in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.device import AUTO, choose_device
from capbias_core.attackers.networks.batches import PAD, Encoded, encode
from capbias_core.attackers.networks.heads import shuffled
from capbias_core.attackers.networks.stacked import Dropout, keep_all, seeds_at_once, stack
from capbias_core.attackers.networks.training import (
    DROP,
    INIT,
    ORDER,
    SET_ASIDE,
    SeedsProgram,
    caption_losses,
    each_in_a_thread,
    part_of,
)
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.types import Progress

SET_ASIDE_OF = 8  # one in so many: 10 of the 80 percent
SCORING_BATCH = 256
SHARE_OF_MEMORY = 0.7
NOWHERE = -1e9  # the logit of a word that a seed's vocabulary has not


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
    def tokens(self) -> list[list[str]]:
        return [caption.split() for caption in self.captions]


class PairNetwork(nn.Module):
    """A network of S seeds that reads pictures and captions; parameters as in attackers/networks/stacked.py."""

    def forward(self, sight: Tensor, text: Tensor, lengths: Tensor | None, dropout=keep_all) -> Tensor:
        """(S, B, C) logits. sight: (S, B, 3, h, w) or (S, B, d). text: (S, B, T) ids with lengths (S, B), or vectors
        (S, B, d) with None."""
        raise NotImplementedError

    def floats_a_pair(self, size: int, words: int) -> int:
        """Rough count of values that a step keeps for a picture of so many pixels a side with so many words."""
        raise NotImplementedError


@dataclass(frozen=True)
class PairFit:
    """One network to train (S = 1): rows of the corpus with their targets, and those set aside."""

    seed: int
    vocabulary: dict[str, int]
    network: PairNetwork
    kept: tuple[np.ndarray, np.ndarray]
    aside: tuple[np.ndarray, np.ndarray]

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng(child_seed(self.seed, FIT, purpose))


@dataclass(frozen=True)
class PairReader:
    """What judges from scratch have in common. patience: epochs without a lower loss on what is set aside after which
    training stops; as many as there are epochs: never earlier."""

    learning_rate: float = 3e-4
    batch: int = 128
    epochs: int = 40
    patience: int = 40
    dropout: float = 0.5
    device: str = AUTO

    first_answer = 0  # the place of the first value among the logits

    def vocabulary(self, captions: Sequence[list[str]], n_values: int) -> dict[str, int]:
        """Word -> id, from the captions to train on."""
        raise NotImplementedError

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> PairNetwork:
        """An untrained network (S = 1), its weights drawn from PyTorch's generator."""
        raise NotImplementedError

    def fit(self, corpus: PairCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedPair:
        return self.fit_many(corpus, [rows], [labels], n_values, [seed], tick)[0]

    def fit_many(self, corpus: PairCorpus, rows, labels, n_values: int, seeds, tick: Progress) -> list[FittedPair]:
        """One network a seed, trained together; see attackers/base.py."""
        device = choose_device(self.device)
        each = zip(rows, labels, seeds, strict=True)
        fits = [self._prepared(corpus, np.asarray(own), np.asarray(known), n_values, seed) for own, known, seed in each]
        train(self, corpus, fits, device, tick)
        return [FittedPair(self, fit.vocabulary, fit.network.to(device), device, n_values) for fit in fits]

    def _prepared(self, corpus: PairCorpus, rows: np.ndarray, labels: np.ndarray, n_values: int, seed: int) -> PairFit:
        aside = set_aside(labels, n_values, np.random.default_rng(child_seed(seed, FIT, SET_ASIDE)))
        words = {}
        if corpus.vectors is None:
            words = self.vocabulary([corpus.tokens[row] for row in rows[~aside]], n_values)
        # PyTorch draws initial weights from the process's generator: seed it here and put it back after.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(child_seed(seed, FIT, INIT))
            network = self.network(corpus, words, n_values)
        targets = labels + self.first_answer
        return PairFit(seed, words, network, (rows[~aside], targets[~aside]), (rows[aside], targets[aside]))


def set_aside(labels: np.ndarray, n_values: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) booleans: an eighth of every value, one at least."""
    aside = np.zeros(len(labels), dtype=bool)
    for value in range(n_values):
        own = rng.permutation(np.flatnonzero(labels == value))
        aside[own[: max(1, round(len(own) / SET_ASIDE_OF))]] = True
    return aside


def train(
    reader: PairReader, corpus: PairCorpus, fits: Sequence[PairFit], device: torch.device, tick: Progress
) -> None:
    """All fits: on a CPU a seed a thread, on CUDA as many together as memory holds."""
    sight = torch.from_numpy(corpus.sight)
    if device.type == "cpu":
        each_in_a_thread([PairProgram(reader, corpus, sight, [fit], device).train for fit in fits], tick)
        return
    sight, done, groups = sight.to(device), 0, {}
    for fit in fits:
        groups.setdefault(-(-len(fit.kept[0]) // reader.batch), []).append(fit)
    for group in groups.values():
        free = int(SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0])
        size = seeds_at_once(len(group), _needed(reader, corpus, group[0]), free)
        for start in range(0, len(group), size):
            own = group[start : start + size]
            PairProgram(reader, corpus, sight, own, device).train(part_of(tick, done, len(own), len(fits)))
            done += len(own)


def _needed(reader: PairReader, corpus: PairCorpus, fit: PairFit) -> int:
    """Rough bytes that one more seed takes: weights, gradients and Adam's means, and a batch."""
    weights = sum(math.prod(each.shape) for each in fit.network.parameters())
    words = max((len(corpus.tokens[row]) for row in fit.kept[0]), default=1) if corpus.vectors is None else 1
    return 16 * weights + 4 * reader.batch * fit.network.floats_a_pair(corpus.sight.shape[-1], words)


class Rows:
    """Captions of some seeds on the device, each seed's in its own row; what stands behind a seed's last counts for
    nothing."""

    def __init__(self, corpus: PairCorpus, sight: Tensor, vocabularies: Sequence[dict], rows, targets, device):
        self.sight, self.device = sight, device
        self.count = max(map(len, rows))
        self.rows = self._filled(rows)
        self.targets = self._filled(targets)
        self.present = self._filled([np.ones(len(own)) for own in rows]).bool()
        self.images = torch.from_numpy(corpus.image).to(device)
        self.ids: Tensor | None = None
        if corpus.vectors is not None:
            self.vectors = torch.from_numpy(corpus.vectors).to(device)
            return
        encoded = [
            encode([corpus.tokens[row] for row in own], words) for own, words in zip(rows, vocabularies, strict=True)
        ]
        self.ids, self.lengths = self._ids(encoded)

    def _filled(self, rows) -> Tensor:
        filled = np.stack([np.pad(np.asarray(own), (0, self.count - len(own))) for own in rows])
        return torch.from_numpy(filled.astype(np.int64)).to(self.device)

    def _ids(self, encoded: Sequence[Encoded]) -> tuple[Tensor, Tensor]:
        longest = max(own.ids.shape[1] for own in encoded)
        ids = np.full((len(encoded), self.count, longest), PAD)
        for place, own in enumerate(encoded):
            ids[place, : len(own.ids), : own.ids.shape[1]] = own.ids
        lengths = self._filled([own.lengths for own in encoded]).clamp(min=1)
        return torch.from_numpy(ids).to(self.device), lengths

    def read(self, network: nn.Module, places: Tensor, dropout=keep_all) -> Tensor:
        """(S, B, C) logits of the captions at places (S, B)."""
        seeds = torch.arange(len(places), device=self.device)[:, None]
        rows = self.rows[seeds, places]
        sight = self.sight[self.images[rows]]
        if self.ids is None:
            return network(sight, self.vectors[rows], None, dropout)
        lengths = self.lengths[seeds, places]
        return network(sight, self.ids[seeds, places, : int(lengths.max())], lengths, dropout)


class PairProgram(SeedsProgram):
    """One network of all the seeds of some fits."""

    def __init__(self, reader: PairReader, corpus: PairCorpus, sight: Tensor, fits: Sequence[PairFit], device):
        network = stack([fit.network for fit in fits]).to(device)
        super().__init__(network, [fit.network for fit in fits], reader, device)
        words = [fit.vocabulary for fit in fits]
        self.counts = [len(fit.kept[0]) for fit in fits]
        self.kept, self.aside = (
            Rows(corpus, sight, words, [rows for rows, _ in own], [targets for _, targets in own], device)
            for own in ([fit.kept for fit in fits], [fit.aside for fit in fits])
        )
        self.rngs = [fit.rng(ORDER) for fit in fits]
        self.dropout = Dropout(reader.dropout, [fit.rng(DROP) for fit in fits], device)
        # A seed that knows fewer words than another has logits that stand for none.
        self.known = torch.tensor([len(own) + 1 for own in words], device=device)[:, None, None]

    def batches(self) -> tuple[int, Tensor]:
        places = shuffled(self.counts, self.protocol.batch, self.rngs)
        return len(places), torch.as_tensor(places, device=self.device)

    def random(self) -> list[np.random.Generator | torch.Generator]:
        return [*self.rngs, *self.dropout.generators]

    def reads(self) -> Iterable[Tensor]:
        yield self.kept.sight.sum(dim=-1)  # of many photographs: all of it would take long to read
        for side in (self.kept, self.aside):
            yield from (side.rows, side.targets, side.present, side.images)
            yield from (side.vectors,) if side.ids is None else (side.ids, side.lengths)

    def losses(self, batch: Tensor) -> Tensor:
        return self._losses(self.kept, batch.clamp(min=0), batch >= 0, self.dropout)

    def aside_losses(self) -> np.ndarray:
        total, count = 0.0, self.aside.present.sum(dim=1)
        with torch.no_grad():
            for places in torch.arange(self.aside.count, device=self.device).split(SCORING_BATCH):
                places = places.expand(len(self.ends), -1)
                present = self.aside.present[self.seeds, places]
                total = total + self._losses(self.aside, places, present) * present.sum(dim=1)
        return (total / count).cpu().numpy()

    def _losses(self, side: Rows, places: Tensor, present: Tensor, dropout=keep_all) -> Tensor:
        """(S,) mean cross-entropy of the answers of the captions that are there."""
        logits = side.read(self.network, places, dropout)
        if len(self.ends) > 1 and self.protocol.first_answer:
            beyond = torch.arange(logits.shape[2], device=self.device) >= self.known
            logits = logits.masked_fill(beyond, NOWHERE)
        losses = caption_losses(logits, side.targets[self.seeds, places])
        return (losses * present).sum(dim=1) / present.sum(dim=1).clamp(min=1)


@dataclass(frozen=True)
class FittedPair:
    """A trained network."""

    reader: PairReader
    vocabulary: dict[str, int]
    network: PairNetwork
    device: torch.device
    n_values: int

    def logits(self, corpus: PairCorpus, rows: np.ndarray) -> np.ndarray:
        """(n, K) log-probabilities of the values, or (n, 1) log-odds of the second of two."""
        rows, found = np.asarray(rows), []
        with torch.no_grad():
            for start in range(0, len(rows), SCORING_BATCH):
                own = rows[start : start + SCORING_BATCH]
                images, local = np.unique(corpus.image[own], return_inverse=True)
                part = PairCorpus(
                    corpus.sight[images],
                    local,
                    [corpus.captions[row] for row in own],
                    None if corpus.vectors is None else corpus.vectors[own],
                )
                found.append(self._read(part))
        logits = np.concatenate(found) if found else np.empty((0, self.n_values))
        return logits[:, 1:] - logits[:, :1] if self.n_values == 2 else logits

    def _read(self, part: PairCorpus) -> np.ndarray:
        rows = np.arange(len(part.captions))
        sight = torch.from_numpy(part.sight).to(self.device)
        side = Rows(part, sight, [self.vocabulary], [rows], [np.zeros(len(rows))], self.device)
        logits = side.read(self.network, torch.arange(len(rows), device=self.device)[None])[0]
        answers = logits[:, self.reader.first_answer :][:, : self.n_values]
        return functional.log_softmax(answers.double(), dim=1).cpu().numpy()
