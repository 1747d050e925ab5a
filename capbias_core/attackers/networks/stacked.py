"""Trains the recurrent networks of a run at once on CUDA: one computation with a leading axis of networks.

A small network does not keep a GPU busy. Here all share each kernel: weights are (N, ...), and each step of the
recurrence is one product and one cell for both directions of all networks. The backward direction reads each caption
from its last word, so no step needs a mask.

Each network starts from the weights, and reads the split, the vocabulary and the order, that its seed has on a CPU; it
ends with the weights of its best epoch. Nothing of it depends on the other networks: the order of its captions and what
dropout removes follow from its seed, its epoch and the place of the batch. Unlike on a CPU, batches hold captions of
similar length rather than of one, and copies of a caption in a batch have separate dropout masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.networks.training import (
    DROP,
    ORDER,
    PAD,
    Dropout,
    Learner,
    NetworkAttacker,
    caption_losses,
    cut,
    ids_of,
    run_epochs,
)
from capbias_core.errors import CapbiasError
from capbias_core.language.device import halving
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress

STRIDE = 20  # bits of the places along an axis


def step_by_step(unit: str, gates: Tensor, weights: Tensor) -> Tensor:
    """The states (T, G*B, H) of G groups of B captions. gates: of the inputs, (T, G*B, 4H) of an LSTM, else (T, G*B,
    H). weights: recurrent ones, (G, H, 4H or H)."""
    groups, hidden, _ = weights.shape
    state = cell = gates.new_zeros(gates.shape[1], hidden)
    states = []
    for gate in gates:
        before = torch.bmm(state.view(groups, -1, hidden), weights).view(len(state), -1)
        if unit == "rnn":
            state = (gate + before).tanh()
        elif gates.is_cuda:  # one kernel in place of nine
            state, cell, _ = torch.ops.aten._thnn_fused_lstm_cell(gate, before, cell)
        else:
            enters, forgets, new, leaves = (gate + before).chunk(4, dim=1)
            cell = forgets.sigmoid() * cell + enters.sigmoid() * new.tanh()
            state = leaves.sigmoid() * cell.tanh()
        states.append(state)
    return torch.stack(states)


def times(values: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A linear layer of each network: (N, R, I) values, (N, O, I) weights and (N, O) biases to (N, R, O)."""
    return torch.baddbmm(bias[:, None], values, weight.transpose(1, 2))


class Stack:
    """N recurrent networks of one kind as one. state: their parameters by name, (N, ...) each; vocabularies of
    different sizes are padded to the largest."""

    def __init__(self, networks: Sequence[nn.Module], device: torch.device):
        self.networks, self.device = networks, device
        self.one: Any = networks[0]  # whose shape all have, but for the number of words
        states = [network.state_dict() for network in networks]
        self.words = max(len(state["words.weight"]) for state in states)
        self.state: dict[str, Tensor] = {}
        for name in states[0]:
            values = [state[name] for state in states]
            if name == "words.weight":
                values = [functional.pad(value, (0, 0, 0, self.words - len(value))) for value in values]
            self.state[name] = torch.stack(values).to(device)
        self.first_word = torch.arange(len(networks), device=device).view(-1, 1, 1) * self.words

    def give_back(self, state: dict[str, Tensor]) -> None:
        """Set this state, (N, ...) by name, in the single networks."""
        for number, network in enumerate(self.networks):
            for name, value in network.to(self.device).state_dict().items():
                value.copy_(state[name][number][: len(value)])

    def logits(self, ids: Tensor, lengths: Tensor, noise: Noise | None = None) -> Tensor:
        """(N, B, T) ids and (N, B) lengths to (N, B, C) logits. noise: of a training step, None in evaluation."""
        states = functional.embedding(ids + self.first_word, self.state["words.weight"].flatten(0, 1))
        values = self._encoded(states, lengths, noise).flatten(2)
        for number, layer in enumerate(self.one.head):
            if isinstance(layer, Dropout):
                values = dropped(values, noise, layer.dropped)
            elif isinstance(layer, nn.Linear):
                values = times(values, *(self.state[f"head.{number}.{name}"] for name in ("weight", "bias")))
            else:
                values = functional.leaky_relu(values, layer.negative_slope)
        return values

    def _encoded(self, states: Tensor, lengths: Tensor, noise: Noise | None) -> Tensor:
        """(N, B, T, E) embeddings to the last hidden states of each direction, (N, B, ways, H)."""
        n, size, steps, _ = states.shape
        unit, ways, layers = self.one.unit, self.one.ways, len(self.one.layers)
        step = torch.arange(steps, device=self.device)
        turned = torch.where(step < lengths[..., None], lengths[..., None] - 1 - step, step)  # the last word first
        turn = lambda values: values.gather(2, turned[..., None].expand(-1, -1, -1, values.shape[-1]))  # noqa: E731
        read = states
        for layer in range(layers):
            states = dropped(states, noise, self.one.dropout.dropped)
            gates, recurrent = [], []
            for way, ending in enumerate(("", "_reverse")[:ways]):
                weight, other, bias, second = (
                    self.state[f"layers.{layer}.{kind}_l0{ending}"]
                    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                )
                of_way = times(states.reshape(n, size * steps, -1), weight, bias + second).view(n, size, steps, -1)
                gates.append(turn(of_way) if way else of_way)
                recurrent.append(other.transpose(1, 2))
            hidden = recurrent[0].shape[1]
            of_steps = torch.stack(gates, dim=1).permute(3, 0, 1, 2, 4).reshape(steps, n * ways * size, -1)
            weights = torch.stack(recurrent, dim=1).reshape(n * ways, hidden, -1)
            read = step_by_step(unit, of_steps, weights).view(steps, n, ways, size, hidden)
            if layer < layers - 1:
                read = read.permute(1, 2, 3, 0, 4)
                states = torch.cat([turn(read[:, 1]) if way else read[:, 0] for way in range(ways)], dim=-1)
        last = (lengths - 1).view(1, n, 1, size, 1).expand(1, n, ways, size, read.shape[-1])
        return read.gather(0, last)[0].transpose(1, 2)


class Noise:
    """Random bytes of each network for one training step. seeds: (N,) int64. step: its number."""

    def __init__(self, seeds: Tensor, step: int):
        self.keys, self.drawn = mixed(seeds * 0x2545F4914F6CDD1D + step), 0

    def bytes(self, shape: torch.Size) -> Tensor:
        """(N, ...) integers from 0 to 255, others each time. A network's depend neither on N nor on the padding: each
        axis has a stride of its own."""
        self.drawn += 1
        places = torch.zeros((), dtype=torch.int64, device=self.keys.device)
        for size in shape[1:]:
            places = (places[..., None] << STRIDE) + torch.arange(size, device=self.keys.device)
        keys = mixed(self.keys + self.drawn).view(-1, *(1,) * places.dim())
        return mixed(keys + places) & 255


def mixed(numbers: Tensor) -> Tensor:
    """Numbers whose bits depend on all bits of the given ones (splitmix64; Steele et al. 2014), as int64."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        numbers = (numbers ^ shifted(numbers, shift)) * factor
    return numbers ^ shifted(numbers, 31)


def shifted(numbers: Tensor, bits: int) -> Tensor:
    """Shifted right as unsigned numbers."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)


def dropped(values: Tensor, noise: Noise | None, share: int) -> Tensor:
    """Inverted dropout of `share` / 256 of the values."""
    if noise is None or not share:
        return values
    kept = noise.bytes(values.shape) >= share
    return values * kept.to(values.dtype).mul_(256 / (256 - share))


def in_stacks(
    learners: Sequence[Learner], settings: NetworkAttacker, device: torch.device, tick: Progress
) -> Iterator[Learner]:
    """The learners, trained, in order: in stacks of neighbours with equally many batches, as many as fit the device.
    Raises CapbiasError if one network alone does not fit."""
    done, most = 0, len(learners)
    while done < len(learners):
        _, alike = next(groupby(learners[done:], lambda learner: len(cut(learner.kept, settings.batch))))
        part = list(alike)[:most]

        def train(size: int, part: list[Learner] = part, done: int = done) -> int:
            of_part = lambda share, text: tick((done + share * size) / len(learners), text)  # noqa: E731
            learn_together(part[:size], settings, device, of_part)
            return size

        try:
            size: int = halving(len(part), train)
        except MemoryError:
            raise CapbiasError(
                f"The memory of {device} does not hold one network and a batch of {settings.batch} captions.",
                "Free the memory of the GPU, or choose the device cpu.",
            ) from None
        if size < len(part):
            most = size
        yield from part[:size]
        done += size


@dataclass(frozen=True)
class Reads:
    """Captions of each network on the device."""

    ids: Tensor  # (N, n, W), PAD after the end
    lengths: Tensor  # (N, n)
    counts: Tensor  # (N,) how many of the n captions are a network's; the others are copies of its last one

    @classmethod
    def of(cls, captions: Sequence[Any], rows: Sequence[np.ndarray], device: torch.device) -> Reads:
        """captions: `Tokens` of each network. rows: which of these it reads."""
        most = max(map(len, rows))
        counts = torch.tensor([len(each) for each in rows], device=device)
        rows = [np.concatenate([each, np.repeat(each[-1:], most - len(each))]) for each in rows]
        words = list(zip(captions, rows, strict=True))
        lengths = torch.from_numpy(np.stack([each.lengths[indices] for each, indices in words])).to(device)
        ids = [ids_of(each, indices, device) for each, indices in words]
        width = max(each.shape[1] for each in ids)
        return cls(torch.stack([functional.pad(each, (0, width - each.shape[1])) for each in ids]), lengths, counts)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The captions at (N, B) rows with their lengths, as few columns as they need."""
        lengths = self.lengths.gather(1, rows)
        return at(self.ids[:, :, : int(lengths.max())], rows), lengths


def at(values: Tensor, rows: Tensor) -> Tensor:
    """Those of (N, n, ...) values at (N, B) rows."""
    return values.gather(1, rows if values.dim() == 2 else rows[..., None].expand(-1, -1, values.shape[2]))


def learn_together(
    learners: Sequence[Learner], settings: NetworkAttacker, device: torch.device, tick: Progress
) -> None:
    """Train networks alike but for their vocabularies, on equally many batches, in place: each then has the weights
    of its best epoch. They are as before if this raises an error, such as torch.OutOfMemoryError."""
    stack = Stack([learner.network.eval() for learner in learners], device)
    parameters = [value.requires_grad_() for value in stack.state.values()]
    optimizer = getattr(torch.optim, settings.optimizer)(parameters, lr=settings.learning_rate, fused=True)
    drop = [child_seed(learner.training.seed, FIT, DROP) for learner in learners]
    seeds, numbers = torch.tensor(np.array(drop, dtype=np.int64), device=device), count(1)
    kept, answers = _given(learners, [learner.kept for learner in learners], device)
    scored, truth = _given(learners, [learner.aside for learner in learners], device)
    orders = [np.random.default_rng(child_seed(learner.training.seed, FIT, ORDER)) for learner in learners]
    best = {name: value.detach().clone() for name, value in stack.state.items()}
    chooses = bool(len(learners[0].aside))

    def step(rows: Tensor, share: Tensor) -> Tensor:
        """(N,) losses. share: (N, B) of each caption in the mean loss of its batch, 0 for none."""
        logits = stack.logits(*kept.batch(rows), Noise(seeds, next(numbers)))
        losses = (caption_losses(logits, at(answers, rows)) * share).sum(dim=1)
        losses.sum().backward()
        gradient = stack.state["words.weight"].grad
        assert gradient is not None
        gradient[:, PAD] = 0  # as nn.Embedding's padding
        optimizer.step()
        optimizer.zero_grad()
        return losses.detach()

    def steps(epoch: int) -> tuple[int, Iterable[Tensor]]:
        batches = [
            epoch_batches(learner, epoch, rng, settings.batch) for learner, rng in zip(learners, orders, strict=True)
        ]
        rows, share = (torch.from_numpy(values).to(device) for values in laid_out(batches))
        return len(rows), map(step, rows, share)

    def losses_aside() -> np.ndarray:
        total = torch.zeros(len(learners), dtype=torch.float64, device=device)
        for places in torch.arange(scored.ids.shape[1], device=device).split(settings.batch):
            rows = places.expand(len(learners), -1)
            with torch.no_grad():
                losses = caption_losses(stack.logits(*scored.batch(rows)), at(truth, rows))
            total += (losses * (rows < scored.counts[:, None])).sum(dim=1)
        return (total / scored.counts).cpu().numpy()

    def keep(better: np.ndarray) -> None:
        which = torch.from_numpy(better).to(device)
        for name, value in stack.state.items():
            best[name][which] = value.detach()[which]

    run_epochs(settings, steps, losses_aside if chooses else None, keep, tick)
    stack.give_back(best if chooses else stack.state)


def _given(learners: Sequence[Learner], rows: list[np.ndarray], device: torch.device) -> tuple[Reads, Tensor]:
    """Captions at rows of each training, and their labels (N, n), or (N, n, L) of task words."""
    most, labels = max(map(len, rows)), []
    for learner, each in zip(learners, rows, strict=True):
        targets = np.asarray(learner.training.labels)[each].astype(np.int64)
        labels.append(np.pad(targets, ((0, most - len(targets)), *[(0, 0)] * (targets.ndim - 1))))
    copies = [learner.copies[each] for learner, each in zip(learners, rows, strict=True)]
    reads = Reads.of([learner.captions for learner in learners], copies, device)
    return reads, torch.from_numpy(np.stack(labels)).to(device)


def epoch_batches(learner: Learner, epoch: int, rng: np.random.Generator, size: int) -> list[np.ndarray]:
    """Positions in `kept`. All networks visit the batches of their sorted captions in one order, so that those of a
    step are of similar length; ties are at random."""
    assert isinstance(learner.captions, Tokens)
    lengths = learner.captions.lengths[learner.copies[learner.kept]]
    whole = cut(np.lexsort((rng.random(len(lengths)), lengths)), size)
    return [whole[visit] for visit in np.random.default_rng(child_seed(epoch, FIT, ORDER)).permutation(len(whole))]


def laid_out(batches: Sequence[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(S, N, B) rows of the batches of N networks in S steps, and the share (S, N, B) of each in its batch, 0 for rows
    that fill smaller batches."""
    width = max(len(batch) for network_batches in batches for batch in network_batches)
    rows = np.zeros((len(batches[0]), len(batches), width), dtype=np.int64)
    share = np.zeros(rows.shape, dtype=np.float32)
    for number, network_batches in enumerate(batches):
        for step, batch in enumerate(network_batches):
            rows[step, number, : len(batch)], share[step, number, : len(batch)] = batch, 1 / len(batch)
    return rows, share
