"""Classification heads on vectors that do not change: those of all seeds are trained in one program.

Weights have a leading seed dimension S, so that one batched product serves every seed. Each seed has its own training
captions, initial weights and order of batches, and Adam works number by number, so a seed learns what it would learn
alone. Heads train in double precision: in single precision the order of sums, which a batched product is free to
choose, grows over some hundred steps to hundredths of a logit; here to 1e-12. On a CPU it costs as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.base import Tick
from capbias_core.prepare.split import FIT, child_seed

ASIDE = 10  # one in so many training captions is set aside to choose the epoch
BATCHES_A_TICK = 10


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


class Heads(nn.Module):
    """S heads with their own weights."""

    def __init__(self, sizes: Sequence[int], seeds: Sequence[int], leak: float):
        super().__init__()
        self.leak = leak
        drawn = [_initial(sizes, seed) for seed in seeds]
        self.weights, self.biases = (
            nn.ParameterList(torch.stack(own) for own in zip(*kind, strict=True)) for kind in zip(*drawn, strict=True)
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """(S, B, d) vectors to (S, B, C) logits."""
        last = len(self.weights) - 1
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            vectors = torch.baddbmm(bias, vectors, weight)  # (S, 1, out) + (S, B, in) (S, in, out)
            if place < last:
                vectors = functional.leaky_relu(vectors, self.leak)
        return vectors

    def of(self, seed: int) -> Head:
        """The head at this place, on its own."""
        weights, biases = ([own[seed].detach().clone() for own in kind] for kind in (self.weights, self.biases))
        return Head(weights, biases, self.leak)


@dataclass(frozen=True)
class Head:
    """A trained head. weights: (in, out) of each layer. biases: (1, out)."""

    weights: list[Tensor]
    biases: list[Tensor]
    leak: float

    def __call__(self, vectors: Tensor) -> Tensor:
        """(B, d) vectors to (B, C) logits."""
        vectors = vectors.to(self.weights[0].dtype)
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            vectors = torch.addmm(bias, vectors, weight)
            if place < len(self.weights) - 1:
                vectors = functional.leaky_relu(vectors, self.leak)
        return vectors

    @property
    def logits(self) -> int:
        return self.weights[-1].shape[1]


def _initial(sizes: Sequence[int], seed: int) -> tuple[list[Tensor], list[Tensor]]:
    """PyTorch's own initial weights of linear layers, the process's generator left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
    return [layer.weight.detach().T for layer in layers], [layer.bias.detach()[None] for layer in layers]


def caption_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """(S, B, C) logits and (S, B) values or (S, B, L) booleans of task words to (S, B) cross-entropies.

    Those of task words are summed.
    """
    if labels.dim() == 3:
        return functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").sum(-1)
    if logits.shape[2] == 1:
        return functional.binary_cross_entropy_with_logits(logits[..., 0], labels.to(logits.dtype), reduction="none")
    return functional.cross_entropy(logits.movedim(2, 1), labels, reduction="none")


def logit_count(labels, n_values: int) -> int:
    """One logit for two values, K for more, one each for task words."""
    if np.ndim(labels) == 2:
        return np.shape(labels)[1]
    return 1 if n_values == 2 else n_values


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
            torch.as_tensor(weights, device=device),
        )

    def losses(self, heads: Heads, vectors: Tensor) -> Tensor:
        """(S,) mean cross-entropy of each seed's captions."""
        return (caption_losses(heads(vectors[self.rows]), self.labels) * self.weights).sum(dim=1)


def fit_heads(
    vectors: Tensor, rows: Sequence[np.ndarray], labels: Sequence[np.ndarray], logits: int, seeds: Sequence[int],
    protocol: HeadProtocol, tick: Tick,
) -> list[Head]:  # fmt: skip
    """One trained head for each seed. vectors: (n, d), where to train; rows, labels: of each seed's captions.

    Seeds with unequally many batches an epoch are trained one group after the other, so that each ends its epochs when
    it would alone.
    """
    vectors = vectors.double()
    parts = [_set_aside(own, known, seed, protocol) for own, known, seed in zip(rows, labels, seeds, strict=True)]
    steps = np.array([-(-len(kept[0]) // protocol.batch) for _, kept in parts])
    heads: dict[int, Head] = {}
    for count in np.unique(steps):
        group = np.flatnonzero(steps == count)
        trainer = Trainer(vectors, [parts[place] for place in group], [seeds[place] for place in group], protocol)
        part = _part(tick, len(heads) / len(seeds), len(group) / len(seeds))
        heads |= dict(zip(group.tolist(), trainer.fit(logits, part), strict=True))
    tick(1.0, "")
    return [heads[place] for place in range(len(seeds))]


def _part(tick: Tick, start: float, size: float) -> Tick:
    """Reports of a part as reports of the whole."""
    return lambda share, text: tick(start + size * share, text)


def _set_aside(rows, labels, seed: int, protocol: HeadProtocol) -> tuple:
    """(rows, labels) of the captions set aside, none without patience, and of those to train on."""
    rows, labels = np.asarray(rows), np.asarray(labels)
    order = np.random.default_rng(child_seed(seed, FIT, 2)).permutation(len(rows))
    aside, kept = np.split(order, [max(1, len(rows) // ASIDE) if protocol.patience else 0])
    return (rows[aside], labels[aside]), (rows[kept], labels[kept])


class Best:
    """For each seed the head of the epoch with the lowest loss on the captions set aside."""

    def __init__(self, count: int, patience: int):
        self.lowest, self.since = np.full(count, np.inf), np.zeros(count, dtype=int)
        self.heads: list[Head | None] = [None] * count
        self.patience = patience

    def all_over(self, heads: Heads, losses: np.ndarray) -> bool:
        """Whether no seed is to train further. losses: (S,) after an epoch; those of one that is over do not count."""
        going = self.since < self.patience
        lower = going & (losses < self.lowest)
        self.lowest, self.since = np.where(lower, losses, self.lowest), np.where(lower, 0, self.since + 1)
        self.heads = [heads.of(seed) if lower[seed] else own for seed, own in enumerate(self.heads)]
        return bool((self.since >= self.patience).all())


class Trainer:
    """The heads of some seeds while they are trained; each seed has as many batches an epoch."""

    def __init__(self, vectors: Tensor, parts: Sequence[tuple], seeds: Sequence[int], protocol: HeadProtocol):
        self.vectors, self.seeds, self.protocol = vectors, seeds, protocol
        self.aside = Part.of(*zip(*(aside for aside, _ in parts), strict=True), vectors.device)
        self.kept = Part.of(*zip(*(kept for _, kept in parts), strict=True), vectors.device)
        self.counts = [len(kept[0]) for _, kept in parts]
        self.draws = [np.random.default_rng(child_seed(seed, FIT, 1)) for seed in seeds]

    def fit(self, logits: int, tick: Tick) -> list[Head]:
        protocol, count = self.protocol, len(self.seeds)
        sizes = (self.vectors.shape[1], *protocol.hidden, logits)
        heads = Heads(sizes, [child_seed(seed, FIT, 0) for seed in self.seeds], protocol.leak).to(self.vectors)
        optimizer = torch.optim.Adam(heads.parameters(), lr=protocol.learning_rate, fused=True)
        best = Best(count, protocol.patience)
        for epoch in range(protocol.epochs):
            self._epoch(heads, optimizer, epoch, tick)
            if protocol.patience and best.all_over(heads, self._losses_aside(heads)):
                break
        return best.heads if protocol.patience else [heads.of(seed) for seed in range(count)]

    def _losses_aside(self, heads: Heads) -> np.ndarray:
        with torch.no_grad():
            return self.aside.losses(heads, self.vectors).cpu().numpy()

    def _epoch(self, heads: Heads, optimizer, epoch: int, tick: Tick) -> None:
        batches = self._batches()
        total = torch.zeros((), device=self.vectors.device)
        for done, places in enumerate(batches, start=1):
            losses = self._losses(heads, places)
            optimizer.zero_grad()
            losses.sum().backward()
            optimizer.step()
            total += losses.detach().mean()  # stays on the device: nothing waits for it
            if done % BATCHES_A_TICK == 0 or done == len(batches):
                share = (epoch + done / len(batches)) / self.protocol.epochs
                tick(share, f"epoch {epoch + 1} of {self.protocol.epochs}, loss {total.item() / done:.2f}")

    def _batches(self) -> Tensor:
        """(steps, S, batch) places in the training captions, each seed's in an order of its own, -1 behind its last."""
        size = self.protocol.batch
        steps = -(-max(self.counts) // size)
        places = np.full((len(self.counts), steps * size), -1)
        for row, (count, draw) in enumerate(zip(self.counts, self.draws, strict=True)):
            places[row, :count] = draw.permutation(count)
        return torch.as_tensor(places.reshape(len(self.counts), steps, size).swapaxes(0, 1), device=self.vectors.device)

    def _losses(self, heads: Heads, places: Tensor) -> Tensor:
        """(S,) mean cross-entropy of one batch of each seed."""
        real = (places >= 0).to(self.vectors.dtype)
        seed = torch.arange(len(self.seeds), device=places.device)[:, None]
        places = places.clamp(min=0)
        losses = caption_losses(heads(self.vectors[self.kept.rows[seed, places]]), self.kept.labels[seed, places])
        return (losses * real).sum(dim=1) / real.sum(dim=1)
