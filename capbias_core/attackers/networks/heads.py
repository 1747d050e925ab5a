"""Classification heads on vectors that do not change: those of all seeds are trained together.

On CUDA the heads of all seeds are one (stacked.py), so that one batched product serves every seed; on a CPU a seed is
a thread (training.py says why). Each seed has its own training captions, initial weights and order of batches, and Adam
works number by number, so a seed learns what it would learn alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from capbias_core.attackers.networks.stacked import Head, stack
from capbias_core.attackers.networks.training import (
    ASIDE,
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


@dataclass(frozen=True)
class HeadProtocol:
    """How a head is built and trained with Adam. The defaults are the DBAC paper's, an MLP of three layers.

    hidden: sizes of the layers between the vector and the logits. leak: slope of the activation below 0 (0 is ReLU).
    patience: epochs without a lower loss on the captions set aside after which training stops; the epoch with the
    lowest is kept. 0 sets none aside and keeps the last epoch.
    """

    hidden: tuple[int, ...] = (128, 64)
    leak: float = 0.0
    learning_rate: float = 1e-3
    batch: int = 256
    epochs: int = 50
    patience: int = 5


def untrained(sizes: Sequence[int], leak: float, seed: int) -> Head:
    """A head (S = 1) with PyTorch's own initial weights by a seed, the process's generator left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(child_seed(seed, FIT, INIT))
        return Head(sizes, leak)


@dataclass(frozen=True)
class Part:
    """Training captions of the seeds, each seed's in its own row, rows of unequal length filled up with weight 0.

    rows: (S, n) rows of the vectors. labels: (S, n) or (S, n, L). weights: (S, n), of a seed's mean.
    """

    rows: Tensor
    labels: Tensor
    weights: Tensor

    @classmethod
    def of(cls, rows: Sequence[np.ndarray], labels: Sequence[np.ndarray], device: torch.device) -> Part:
        longest = max(map(len, rows))
        kind = torch.long if np.ndim(labels[0]) == 1 else torch.bool
        filled = [np.pad(own, (0, longest - len(own))) for own in rows]
        answers = [np.pad(own, [(0, longest - len(own)), *[(0, 0)] * (np.ndim(own) - 1)]) for own in labels]
        counts = np.array([len(own) for own in rows])
        weights = (np.arange(longest) < counts[:, None]) / np.maximum(counts, 1)[:, None]
        return cls(
            torch.as_tensor(np.stack(filled), device=device),
            torch.as_tensor(np.stack(answers), dtype=kind, device=device),
            torch.as_tensor(weights, dtype=torch.float32, device=device),
        )

    def losses(self, head: nn.Module, vectors: Tensor) -> Tensor:
        """(S,) mean cross-entropy of each seed's captions."""
        return (caption_losses(head(vectors[self.rows]), self.labels) * self.weights).sum(dim=1)


@dataclass(frozen=True)
class HeadFit:
    """One head to train (S = 1); rows of the vectors and labels of the captions to train on, and of those set aside."""

    seed: int
    head: Head
    kept: tuple[np.ndarray, np.ndarray]
    aside: tuple[np.ndarray, np.ndarray]


def fit_heads(
    vectors: Tensor,
    rows: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    logits: int,
    seeds: Sequence[int],
    protocol: HeadProtocol,
    tick: Progress,
) -> list[Head]:
    """One trained head (S = 1) a seed. vectors: (n, d), where to train; rows, labels: of each seed's captions."""
    sizes = (vectors.shape[1], *protocol.hidden, logits)
    fits = [
        prepared(own, np.asarray(known), untrained(sizes, protocol.leak, seed).to(vectors), seed, protocol)
        for own, known, seed in zip(rows, labels, seeds, strict=True)
    ]
    if vectors.device.type == "cpu":
        each_in_a_thread([HeadProgram(vectors, [fit], protocol).train for fit in fits], tick)
    else:
        together(vectors, fits, protocol, tick)
    return [fit.head for fit in fits]


def together(vectors: Tensor, fits: Sequence[HeadFit], protocol: HeadProtocol, tick: Progress) -> None:
    """Heads with as many batches an epoch as one program, so that each ends its epochs when it would alone."""
    groups: dict[int, list[HeadFit]] = {}
    for fit in fits:
        groups.setdefault(-(-len(fit.kept[0]) // protocol.batch), []).append(fit)
    done = 0
    for group in groups.values():
        HeadProgram(vectors, group, protocol).train(part_of(tick, done, len(group), len(fits)))
        done += len(group)


def prepared(rows, labels: np.ndarray, head: Head, seed: int, protocol: HeadProtocol) -> HeadFit:
    """One head before it trains, a part of its captions set aside where the protocol does so."""
    rows = np.asarray(rows)
    order = np.random.default_rng(child_seed(seed, FIT, SET_ASIDE)).permutation(len(rows))
    aside, kept = np.split(order, [max(1, len(rows) // ASIDE) if protocol.patience else 0])
    head.begin_at(labels[kept])
    return HeadFit(seed, head, (rows[kept], labels[kept]), (rows[aside], labels[aside]))


def shuffled(counts: Sequence[int], size: int, rngs: Sequence[np.random.Generator]) -> np.ndarray:
    """One epoch of each seed, (steps, S, size) places, in an order of its own, -1 behind its last. counts: a seed's."""
    steps = -(-max(counts) // size)
    places = np.full((len(counts), steps * size), -1)
    for row, (count, rng) in enumerate(zip(counts, rngs, strict=True)):
        places[row, :count] = rng.permutation(count)
    return places.reshape(len(counts), steps, size).swapaxes(0, 1)


class HeadProgram(SeedsProgram):
    """One network of the heads of some fits."""

    def __init__(self, vectors: Tensor, fits: Sequence[HeadFit], protocol: HeadProtocol):
        heads = [fit.head for fit in fits]
        super().__init__(stack(heads), heads, protocol, vectors.device)
        self.vectors, self.fits = vectors, fits
        self.kept, self.aside = (
            Part.of([rows for rows, _ in own], [labels for _, labels in own], vectors.device)
            for own in ([fit.kept for fit in fits], [fit.aside for fit in fits])
        )
        self.rngs = [np.random.default_rng(child_seed(fit.seed, FIT, ORDER)) for fit in fits]

    def batches(self) -> tuple[int, Tensor]:
        """(steps, S, batch) places in the training captions, each seed's in an order of its own, -1 behind its last."""
        places = shuffled([len(fit.kept[0]) for fit in self.fits], self.protocol.batch, self.rngs)
        return len(places), torch.as_tensor(places, device=self.device)

    def random(self) -> list[np.random.Generator | torch.Generator]:
        return list(self.rngs)

    def reads(self) -> Iterable[Tensor]:
        yield self.vectors
        for part in (self.kept, self.aside):
            yield from (part.rows, part.labels, part.weights)

    def losses(self, batch: Tensor) -> Tensor:
        real = (batch >= 0).to(self.vectors.dtype)
        places = batch.clamp(min=0)
        vectors = self.vectors[self.kept.rows[self.seeds, places]]
        losses = caption_losses(self.network(vectors), self.kept.labels[self.seeds, places])
        return (losses * real).sum(dim=1) / real.sum(dim=1)

    def aside_losses(self) -> np.ndarray:
        with torch.no_grad():
            return self.aside.losses(self.network, self.vectors).cpu().numpy()
