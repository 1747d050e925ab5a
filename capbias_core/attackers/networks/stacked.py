"""Trains all networks from scratch of a run at once: one computation with a leading axis of networks.

A small network does not keep a GPU busy, since its kernels take less time than to launch them. Here all networks of a
run share each kernel: weights are (N, ...), the gates of all words are one product, each step of the recurrence is one
product and one cell for both directions of all networks, and a CUDA graph for each length replays a whole training step
without the launches. The backward direction reads each caption from its last word, so no step needs a mask. Trained
networks read the captions held out from them in the same way (`Together`). Heads of a frozen encoder are networks too.

Each network starts from the weights, and reads the split, the vocabulary and the order, that its seed has on a CPU; it
ends with the weights of its best epoch. Nothing of it depends on the other networks: the order of its captions and the
values that dropout removes follow from its seed, its epoch and the place of the batch alone. Heads train on the batches
that they have on a CPU. The others do not: their batches hold captions of similar length rather than of one, and copies
of a caption in a batch have separate dropout masks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.base import Corpus, Training
from capbias_core.attackers.device import BF16, FP32, choose_device, matmul_precision
from capbias_core.attackers.networks.training import (
    DROP,
    ORDER,
    PAD,
    SCORING_BATCH,
    Dropout,
    Learner,
    NetworkAttacker,
    caption_losses,
    cut,
    ids_of,
    learn_alone,
    positions,
    run_epochs,
    set_aside,
    start_at_frequencies,
    width_of,
    with_ids,
)
from capbias_core.errors import CapbiasError, need
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress, silent

EXACT_LENGTHS = 16  # longer captions are padded to a multiple of STEP, so that few graphs are captured
STEP = 8
WARM_UP = 2  # steps before a graph is captured, which are undone
SHARE_OF_MEMORY = 0.8  # of what is free on the device
GRAPH = 2  # times the memory of a step: a graph does not share that of the steps that warm it up
STRIDE = 20  # bits of the places along an axis


class Head(nn.Module):
    """A head on vectors of captions, without an encoder that learns."""

    def __init__(self, head: nn.Sequential):
        super().__init__()
        self.head = head


# what a stack computes


class Recurrence(torch.autograd.Function):
    """Gates of the inputs (T, G*B, 4H) and recurrent weights (G, H, 4H) to the states (T, G*B, H) of G groups of B
    captions, by PyTorch's fused cell. Autograd would add up the gradient of the weights in every step; here it is one
    product after the loop."""

    @staticmethod
    def forward(ctx, gates: Tensor, weights: Tensor) -> Tensor:
        steps, rows, _ = gates.shape
        groups, hidden, _ = weights.shape
        states, cell = gates.new_zeros(steps + 1, rows, hidden), gates.new_zeros(rows, hidden)
        cells, spaces = [cell], []
        for step in range(steps):
            before = torch.bmm(states[step].view(groups, -1, hidden), weights).view(rows, -1)
            states[step + 1], cell, space = torch.ops.aten._thnn_fused_lstm_cell(gates[step], before, cell)
            cells.append(cell)
            spaces.append(space)
        ctx.save_for_backward(weights, states, *cells, *spaces)
        return states[1:]

    @staticmethod
    def backward(ctx, *grads: Tensor):
        (grad,) = grads
        weights, states, *rest = ctx.saved_tensors
        steps, rows, hidden = grad.shape
        groups, cells, spaces = len(weights), rest[: steps + 1], rest[steps + 1 :]
        gates, back = grad.new_empty(steps, rows, 4 * hidden), weights.transpose(1, 2)
        of_state, of_cell = grad[-1], None
        for step in reversed(range(steps)):
            gates[step], of_cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(
                of_state, of_cell, cells[step], cells[step + 1], spaces[step], False
            )
            if step:
                of_state = torch.bmm(gates[step].view(groups, -1, 4 * hidden), back).view(rows, hidden) + grad[step - 1]
        if not ctx.needs_input_grad[1]:  # of attributions
            return gates, None
        left = states[:steps].view(steps, groups, -1, hidden).permute(1, 3, 0, 2).reshape(groups, hidden, -1)
        right = gates.view(steps, groups, -1, 4 * hidden).permute(1, 0, 2, 3).reshape(groups, -1, 4 * hidden)
        return gates, torch.bmm(left, right)


def step_by_step(unit: str, gates: Tensor, weights: Tensor) -> Tensor:
    """The same by autograd: of an LSTM without CUDA, and of plain recurrent layers, whose gates are (T, G*B, H)."""
    groups, hidden, _ = weights.shape
    state = cell = gates.new_zeros(gates.shape[1], hidden)
    states = []
    for gate in gates:
        gate = gate + torch.bmm(state.view(groups, -1, hidden), weights).view(len(state), -1)
        if unit == "lstm":
            enters, forgets, new, leaves = gate.chunk(4, dim=1)
            cell = forgets.sigmoid() * cell + enters.sigmoid() * new.tanh()
            state = leaves.sigmoid() * cell.tanh()
        else:
            state = gate.tanh()
        states.append(state)
    return torch.stack(states)


def times(values: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A linear layer of each network: (N, R, I) values, (N, O, I) weights and (N, O) biases to (N, R, O)."""
    return torch.baddbmm(bias.to(values.dtype)[:, None], values, weight.to(values.dtype).transpose(1, 2))


class Stack:
    """N networks of one kind as one. state: their parameters and running statistics by name, (N, ...) each;
    vocabularies of different sizes are padded to the largest."""

    def __init__(self, networks: Sequence[nn.Module], device: torch.device, low: torch.dtype | None = None):
        self.networks, self.device, self.low = networks, device, low
        self.one: Any = networks[0]  # whose shape all have, but for the number of words
        states, self.words = [network.state_dict() for network in networks], 0
        if "words.weight" in states[0]:
            self.words = max(len(state["words.weight"]) for state in states)
        self.state: dict[str, Tensor] = {}
        for name in states[0]:
            values = [state[name] for state in states]
            if name == "words.weight":
                values = [functional.pad(value, (0, 0, 0, self.words - len(value))) for value in values]
            self.state[name] = torch.stack(values).to(device)
        self.parameters = [self.state[name] for name, _ in self.one.named_parameters()]
        self.first_word = torch.arange(len(networks), device=device).view(-1, 1, 1) * self.words

    def give_back(self, state: dict[str, Tensor]) -> None:
        """Set this state, (N, ...) by name, in the single networks."""
        for number, network in enumerate(self.networks):
            for name, value in network.to(self.device).state_dict().items():
                stored = state[name][number]
                value.copy_(stored[: len(value)] if value.dim() else stored)

    def logits(self, ids: Tensor, lengths: Tensor, noise: Noise | None = None) -> Tensor:
        """(N, B, T) ids, or (N, B, d) vectors, and (N, B) lengths to (N, B, C) logits. noise: of a training step, None
        in evaluation."""
        return self.read(self.embedded(ids), lengths, noise)

    def embedded(self, ids: Tensor) -> Tensor:
        """(N, B, T, E) states of ids; vectors as they are."""
        if not self.words:
            return ids
        return functional.embedding(ids + self.first_word, self.state["words.weight"].flatten(0, 1))

    def read(self, values: Tensor, lengths: Tensor, noise: Noise | None = None) -> Tensor:
        """`logits` of what `embedded` gives."""
        if self.words:
            encode = self._recurrent if hasattr(self.one, "unit") else self._transformer
            values = encode(values.to(self.low) if self.low else values, lengths, noise).flatten(2)
            values = values.float() if self.low else values
        for number, layer in enumerate(self.one.head):
            get = lambda name, number=number: self.state[f"head.{number}.{name}"]  # noqa: E731
            if isinstance(layer, Dropout):
                values = dropped(values, noise, layer.dropped)
            elif isinstance(layer, nn.Linear):
                bias = get("bias")
                if isinstance([*self.one.head, None][number + 1], nn.BatchNorm1d):
                    bias = bias.detach() + 0 * bias  # its gradient is 0 but for rounding, which Adam would follow
                values = times(values, get("weight"), bias)
            elif isinstance(layer, nn.BatchNorm1d):
                mean, spread = batch_statistics(values, get("running_mean"), get("running_var"), layer, noise)
                values = (values - mean) * (spread + layer.eps).rsqrt() * get("weight")[:, None] + get("bias")[:, None]
            else:
                values = functional.leaky_relu(values, layer.negative_slope)
        return values

    def _recurrent(self, states: Tensor, lengths: Tensor, noise: Noise | None) -> Tensor:
        """The last hidden states of each direction, (N, B, ways * H)."""
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
                recurrent.append(other.transpose(1, 2).to(states.dtype))
            hidden = recurrent[0].shape[1]
            of_steps = torch.stack(gates, dim=1).permute(3, 0, 1, 2, 4).reshape(steps, n * ways * size, -1)
            weights = torch.stack(recurrent, dim=1).reshape(n * ways, hidden, -1)
            fused = unit == "lstm" and states.is_cuda
            read = Recurrence.apply(of_steps, weights) if fused else step_by_step(unit, of_steps, weights)
            read = read.view(steps, n, ways, size, hidden)
            if layer < layers - 1:
                read = read.permute(1, 2, 3, 0, 4)
                states = torch.cat([turn(read[:, 1]) if way else read[:, 0] for way in range(ways)], dim=-1)
        last = (lengths - 1).view(1, n, 1, size, 1).expand(1, n, ways, size, read.shape[-1])
        return read.gather(0, last)[0].transpose(1, 2)

    def _transformer(self, states: Tensor, lengths: Tensor, noise: Noise | None) -> Tensor:
        """The mean over the words of each caption, (N, B, E)."""
        n, size, steps, width = states.shape
        there = torch.arange(steps, device=self.device) < lengths[..., None]  # (N, B, T)
        states = states + positions(states.flatten(0, 1)).to(states.dtype)
        for number, layer in enumerate(self.one.layers):
            get = lambda name, number=number: self.state[f"layers.{number}.{name}"]  # noqa: E731
            flat = states.reshape(n, size * steps, width)
            parts = times(flat, get("self_attn.in_proj_weight"), get("self_attn.in_proj_bias"))
            heads = layer.self_attn.num_heads
            asks, keys, values = parts.view(n * size, steps, 3, heads, -1).permute(2, 0, 3, 1, 4)
            mask = there.reshape(n * size, 1, 1, steps)
            read = functional.scaled_dot_product_attention(asks, keys, values, attn_mask=mask)
            read = read.transpose(1, 2).reshape(n, size * steps, width)
            flat = flat + times(read, get("self_attn.out_proj.weight"), get("self_attn.out_proj.bias"))
            flat = normed(flat, get("norm1.weight"), get("norm1.bias"), layer.norm1.eps)
            inner = times(flat, get("linear1.weight"), get("linear1.bias")).relu()
            flat = flat + times(inner, get("linear2.weight"), get("linear2.bias"))
            states = normed(flat, get("norm2.weight"), get("norm2.bias"), layer.norm2.eps).view_as(states)
        return (states * there[..., None]).sum(dim=2) / lengths[..., None]


def normed(values: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Layer normalisation with each network's weights. values: (N, R, E)."""
    return functional.layer_norm(values, values.shape[-1:], eps=eps) * weight[:, None] + bias[:, None]


def batch_statistics(
    values: Tensor, running_mean: Tensor, running_var: Tensor, layer: nn.BatchNorm1d, noise: Noise | None
) -> tuple[Tensor, Tensor]:
    """(N, 1, F) means and variances of (N, B, F) values: of the batch in training, which moves the running ones."""
    if noise is None:
        return running_mean[:, None], running_var[:, None]
    share = noise.share[..., None].to(values.dtype)  # no caption: 0
    mean = (values * share).sum(dim=1, keepdim=True)
    spread = ((values - mean).square() * share).sum(dim=1, keepdim=True)
    with torch.no_grad():
        n, momentum = (share > 0).sum(dim=1), layer.momentum or 0.0
        running_mean.lerp_(mean[:, 0], momentum)
        running_var.lerp_(spread[:, 0] * n / (n - 1), momentum)
    return mean, spread


# dropout that follows from a network's seed


class Noise:
    """Random bytes of each network for one training step. seeds: (N,) int64 on the device. step: () int64 there, the
    number of the step, which a CUDA graph reads anew in each replay. share: (N, B) of each caption in its batch."""

    def __init__(self, seeds: Tensor, step: Tensor, share: Tensor):
        self.keys, self.drawn, self.share = mixed(seeds * 0x2545F4914F6CDD1D + step), 0, share

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


# training


@dataclass(frozen=True)
class StackedAttacker(NetworkAttacker):
    """An attacker whose networks train in stacks on CUDA, and in threads on a CPU."""

    def untrained(
        self, corpus: Any, training: Training, kept: np.ndarray, n_values: int
    ) -> tuple[Any, Tokens | Tensor, np.ndarray, dict[str, int]]:
        """network, captions, copies and vocabulary of a `Learner`."""
        raise NotImplementedError

    def trained(self, learner: Learner, together: Together | None = None) -> Any:
        """The attacker of a trained network. together: the networks that trained in one stack with it."""
        raise NotImplementedError

    def learner(self, corpus: Any, training: Training, n_values: int) -> Learner:
        """An untrained network and what it learns from."""
        kept, aside = set_aside(len(training.rows), training.seed, self.patience)
        network, captions, copies, vocabulary = self.untrained(corpus, training, kept, n_values)
        start_at_frequencies(network.head, training.labels[kept])
        return Learner(network, captions, copies, training, kept, aside, vocabulary)

    def train(self, corpus: Any, training: Training, n_values: int, tick: Progress) -> Any:
        learner = self.learner(corpus, training, n_values)
        learner.network.to(choose_device(self.device))
        learn_alone(learner, self, tick)
        return self.trained(learner)

    def fit_many(self, corpus: Any, trainings: Sequence[Training], n_values: int, tick: Progress) -> Iterator:
        """See `base.Attacker`."""
        on_cpu = choose_device(self.device).type == "cpu"
        fit = super().fit_many if on_cpu else self.fit_in_stacks
        yield from fit(corpus, trainings, n_values, tick)

    def fit_in_stacks(self, corpus: Any, trainings: Sequence[Training], n_values: int, tick: Progress) -> Iterator:
        """`fit_many` as on CUDA, on any device."""
        device = choose_device(self.device)
        learners = [self.learner(corpus, training, n_values) for training in trainings]
        for part in in_stacks(learners, self, device, tick):
            together = Together(part, corpus, self.integration_steps, device)
            for learner in part:
                yield self.trained(learner, together)


def in_stacks(
    learners: Sequence[Learner], settings: NetworkAttacker, device: torch.device, tick: Progress
) -> Iterator[list[Learner]]:
    """The learners, trained, in order: in stacks of neighbours with equally many batches, as many as fit the device.
    Raises CapbiasError if one network alone does not fit."""
    done, most, memory = 0, len(learners), 0
    while done < len(learners):
        _, alike = next(groupby(learners[done:], lambda learner: len(cut(learner.kept, settings.batch))))
        part = list(alike)

        def train(size: int, part: list[Learner] = part, done: int = done) -> int:
            of_part = lambda share, text: tick((done + share * size) / len(learners), text)  # noqa: E731
            learn_together(part[:size], settings, device, of_part)
            return size

        try:
            if device.type == "cuda":
                memory = memory or memory_of_one(learners, settings, device)
                most = min(most, fitting(memory, device))
            size = halving(min(most, len(part)), train)
        except torch.OutOfMemoryError:
            raise CapbiasError(
                f"The memory of {device} does not hold one network and a batch of {settings.batch} captions.",
                "Free the memory of the GPU, or choose the device cpu.",
            ) from None
        finally:
            torch.cuda.empty_cache()
        if size < min(most, len(part)):
            most = size
        yield part[:size]
        done += size


def halving(size: int, work: Callable[[int], Any]) -> Any:
    """What `work` gives for a size: for this one, or for half of it as often as memory runs out. Raises
    torch.OutOfMemoryError if size 1 does not fit."""
    while True:
        try:
            return work(size)
        except RuntimeError as error:
            # An error in the capture of a graph may end in another one.
            if not any(isinstance(each, torch.OutOfMemoryError) for each in (error, error.__context__)):
                raise
            if size == 1:
                raise torch.OutOfMemoryError(str(error)) from None
        size //= 2  # not in the handler, whose error holds the memory
        torch.cuda.empty_cache()


def memory_of_one(learners: Sequence[Learner], settings: NetworkAttacker, device: torch.device) -> int:
    """Bytes that one of these networks takes while it trains, measured on a copy and the longest captions."""
    learner = max(learners, key=lambda learner: learner.lengths.max())
    longest = learner.kept[np.argsort(learner.lengths)[-settings.batch :]]
    aside = longest if len(learner.aside) else learner.aside
    copy = replace(learner, network=deepcopy(learner.network), kept=longest, aside=aside)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    learn_together([copy], replace(settings, epochs=1), device, silent)
    return GRAPH * (torch.cuda.max_memory_allocated(device) - before)


def fitting(memory: int, device: torch.device) -> int:
    """How many networks that take so many bytes each fit the free memory of the device, at least 1."""
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, int(SHARE_OF_MEMORY * free / max(1, memory)))


@dataclass(frozen=True)
class Reads:
    """Captions of each network on the device."""

    ids: Tensor  # (N, n, W), PAD after the end; (N, n) places of vectors
    lengths: Tensor  # (N, n)
    counts: Tensor  # (N,) how many of the n captions are a network's; the others are copies of its last one
    vectors: Tensor | None = None  # (D, d)

    @classmethod
    def of(cls, captions: Sequence[Tokens | Tensor], rows: Sequence[np.ndarray], device: torch.device) -> Reads:
        """captions: of each network. rows: which of these it reads."""
        most = max(map(len, rows))
        counts = torch.tensor([len(each) for each in rows], device=device)
        rows = [np.concatenate([each, np.repeat(each[-1:], most - len(each))]) for each in rows]
        if isinstance(vectors := captions[0], Tensor):
            positions = torch.from_numpy(np.stack(rows)).to(device)
            return cls(positions, torch.ones_like(positions), counts, vectors)
        words = [(each, indices) for each, indices in zip(captions, rows, strict=True) if isinstance(each, Tokens)]
        lengths = torch.from_numpy(np.stack([each.lengths[indices] for each, indices in words])).to(device)
        ids = [ids_of(each, indices, device) for each, indices in words]
        width = max(each.shape[1] for each in ids)
        return cls(torch.stack([functional.pad(each, (0, width - each.shape[1])) for each in ids]), lengths, counts)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The captions at (N, B) rows with their lengths, as few columns as they need; or their vectors."""
        if self.vectors is not None:
            return self.vectors[self.ids.gather(1, rows)], torch.ones_like(rows)
        lengths = self.lengths.gather(1, rows)
        longest = int(lengths.max())
        if longest > EXACT_LENGTHS:
            longest = min(self.ids.shape[2], -(-longest // STEP) * STEP)
        return at(self.ids[:, :, :longest], rows), lengths

    def parts(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """All rows, so many of each network at a time: as a slice, and (N, B)."""
        n, most = self.ids.shape[:2]
        for start in range(0, most, size):
            end = min(start + size, most)
            yield slice(start, end), torch.arange(start, end, device=self.ids.device).expand(n, -1)


def at(values: Tensor, rows: Tensor) -> Tensor:
    """Those of (N, n, ...) values at (N, B) rows."""
    return values.gather(1, rows if values.dim() == 2 else rows[..., None].expand(-1, -1, values.shape[2]))


class Steps:
    """Training steps of a stack; on CUDA each length is captured once as a graph."""

    def __init__(self, stack: Stack, settings: NetworkAttacker, seeds: Sequence[int]):
        self.stack, self.graphs, cuda = stack, {}, stack.device.type == "cuda"
        self.seeds = torch.tensor(np.array(seeds, dtype=np.int64), device=stack.device)
        self.step = torch.zeros((), dtype=torch.int64, device=stack.device)
        self.parameters = [parameter.requires_grad_() for parameter in stack.parameters]
        optimizer = getattr(torch.optim, settings.optimizer)
        more = {"capturable": True} if cuda else {}
        self.optimizer = optimizer(self.parameters, lr=settings.learning_rate, fused=True, **more)

    def __call__(self, ids: Tensor, lengths: Tensor, answers: Tensor, share: Tensor) -> Tensor:
        """(N,) losses of a step. share: (N, B) of each caption in the mean loss of its batch, 0 for none."""
        self.step += 1
        given = (ids, lengths, answers, share)
        if not ids.is_cuda:
            return self._train(*given)
        if ids.shape not in self.graphs:
            self.graphs[ids.shape] = self._captured([part.clone() for part in given])
        graph, buffers, losses = self.graphs[ids.shape]
        for buffer, part in zip(buffers, given, strict=True):
            buffer.copy_(part)
        graph.replay()
        return losses

    def _train(self, ids: Tensor, lengths: Tensor, answers: Tensor, share: Tensor) -> Tensor:
        logits = self.stack.logits(ids, lengths, Noise(self.seeds, self.step, share))
        losses = (caption_losses(logits, answers) * share).sum(dim=1)
        losses.sum().backward()
        if self.stack.words and (gradient := self.stack.state["words.weight"].grad) is not None:
            gradient[:, PAD] = 0  # as nn.Embedding's padding
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        return losses.detach()

    def _captured(self, buffers: list[Tensor]) -> tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]:
        """A graph of one step. The steps that warm it up are undone."""
        state, moments = self.stack.state.values(), self.optimizer.state
        before = [value.detach().clone() for value in state]
        moments_before = [{key: value.clone() for key, value in moments[each].items()} for each in self.parameters]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._train(*buffers)
        torch.cuda.current_stream().wait_stream(stream)
        pool = next(iter(self.graphs.values()))[0].pool() if self.graphs else None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            losses = self._train(*buffers)
        with torch.no_grad():
            for value, kept in zip(state, before, strict=True):
                value.copy_(kept)
            for parameter, kept in zip(self.parameters, moments_before, strict=True):
                for key, moment in moments[parameter].items():
                    moment.copy_(kept[key]) if kept else moment.zero_()
        return graph, buffers, losses


def learn_together(
    learners: Sequence[Learner], settings: NetworkAttacker, device: torch.device, tick: Progress
) -> None:
    """Train the networks in place; each then has the weights of its best epoch. They are as before if this raises an
    error, such as torch.OutOfMemoryError.

    All have the same shape, but for their vocabularies, and train on equally many batches.
    """
    low = torch.bfloat16 if settings.precision == BF16 else None
    stack = Stack([learner.network.eval() for learner in learners], device, low)
    steps = Steps(stack, settings, [child_seed(learner.training.seed, FIT, DROP) for learner in learners])
    kept, answers = _given(learners, [learner.kept for learner in learners], device)
    scored, truth = _given(learners, [learner.aside for learner in learners], device)
    orders = [np.random.default_rng(child_seed(learner.training.seed, FIT, ORDER)) for learner in learners]
    best = {name: value.detach().clone() for name, value in stack.state.items()}
    chooses = bool(len(learners[0].aside))

    def steps_of(epoch: int) -> tuple[int, Iterable[Tensor]]:
        batches = [
            epoch_batches(learner, epoch, rng, settings.batch) for learner, rng in zip(learners, orders, strict=True)
        ]
        rows, share = (torch.from_numpy(values).to(device) for values in laid_out(batches))
        taken = (steps(*kept.batch(row), at(answers, row), part) for row, part in zip(rows, share, strict=True))
        return len(rows), taken

    def losses_aside() -> np.ndarray:
        total = torch.zeros(len(learners), dtype=torch.float64, device=device)
        for _, rows in scored.parts(settings.batch):
            with torch.no_grad():
                losses = caption_losses(stack.logits(*scored.batch(rows)), at(truth, rows))
            total += (losses * (rows < scored.counts[:, None])).sum(dim=1)
        return (total / scored.counts).cpu().numpy()

    def keep(better: np.ndarray) -> None:
        which = torch.from_numpy(better).to(device)
        for name, value in stack.state.items():
            best[name][which] = value.detach()[which]

    with matmul_precision(settings.precision):
        run_epochs(settings, steps_of, losses_aside if chooses else None, keep, tick)
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
    n = len(learner.kept)
    if isinstance(learner.captions, Tensor):
        return cut(rng.permutation(n), size)
    whole = cut(np.lexsort((rng.random(n), learner.lengths)), size)
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


# what trained networks read


class Together:
    """Trained networks of one stack: each reads what its training is to read, all of them at once, on first use."""

    def __init__(self, learners: Sequence[Learner], corpus: Corpus, integration_steps: int, device: torch.device):
        self.learners, self.corpus, self.integration_steps, self.device = learners, corpus, integration_steps, device

    @cached_property
    def numbers(self) -> list[np.ndarray]:
        """For each network the captions of the corpus that it reads."""
        return [np.unique(self.corpus.copy_of[learner.training.reads]) for learner in self.learners]

    def places(self, network: nn.Module, corpus: Corpus, rows: np.ndarray) -> tuple[int, np.ndarray] | None:
        """The number of a network, and where these captions are among those that it reads; None if some are not."""
        number = next(number for number, learner in enumerate(self.learners) if learner.network is network)
        if corpus is not self.corpus or not np.isin(asked := corpus.copy_of[rows], self.numbers[number]).all():
            return None
        return number, np.searchsorted(self.numbers[number], asked)

    @cached_property
    def logits(self) -> list[np.ndarray]:
        """For each network (n, C) of the captions that it reads."""
        return halving(SCORING_BATCH, self._logits)

    @cached_property
    def attributions(self) -> list[tuple[list[np.ndarray], np.ndarray, np.ndarray]]:
        """For each network `attribute` of the captions that it reads, by Captum."""
        need("Attributing words", "captum")
        return halving(SCORING_BATCH, self._attributions)

    def _reads(self) -> tuple[Stack, Reads, list[np.ndarray], list[Tokens]]:
        """The networks, their captions from the longest on, the order of these, and the captions as words."""
        captions = [self.corpus.distinct.rows(numbers) for numbers in self.numbers]
        coded = [with_ids(each, one.vocabulary) for each, one in zip(captions, self.learners, strict=True)]
        orders = [np.argsort(-each.lengths, kind="stable") for each in coded]
        stack = Stack([learner.network for learner in self.learners], self.device)
        return stack, Reads.of(coded, orders, self.device), orders, captions

    def _logits(self, size: int, of_nothing: bool = False) -> list[np.ndarray]:
        """of_nothing: of embeddings of zero, in captions of the same lengths."""
        stack, reads, orders, _ = self._reads()
        all_logits = [np.empty((len(order), width_of(stack.one.head))) for order in orders]
        with torch.no_grad(), matmul_precision(FP32):
            for part, rows in reads.parts(size):
                ids, lengths = reads.batch(rows)
                states = stack.embedded(ids)
                logits = stack.read(torch.zeros_like(states) if of_nothing else states, lengths).double().cpu().numpy()
                for kept_logits, order, values in zip(all_logits, orders, logits, strict=True):
                    kept_logits[order[part]] = values[: len(order[part])]
        return all_logits

    def _attributions(self, size: int) -> list[tuple[list[np.ndarray], np.ndarray, np.ndarray]]:
        from captum.attr import IntegratedGradients

        stack, reads, orders, captions = self._reads()

        def logits(states: Tensor, lengths: Tensor) -> Tensor:
            """(B, N, T, E) and (B, N) to (B, C) sums over the networks: each state has the gradient of its network."""
            return stack.read(states.transpose(0, 1), lengths.T).sum(dim=0)

        gradients, count = IntegratedGradients(logits), width_of(stack.one.head)
        words = [[np.zeros((0, count))] * len(order) for order in orders]
        with matmul_precision(FP32):
            for part, rows in reads.parts(size):
                ids, lengths = reads.batch(rows)
                states, shares = stack.embedded(ids).transpose(0, 1), []
                for logit in range(count):
                    values = gradients.attribute(
                        states,
                        target=logit,
                        additional_forward_args=(lengths.T,),
                        n_steps=self.integration_steps,
                        internal_batch_size=size,
                    )
                    shares.append(values.detach().sum(dim=3).double().cpu().numpy())
                of_words = np.stack(shares, axis=-1)  # (B, N, T, C)
                for number, order in enumerate(orders):
                    for index, caption in enumerate(order[part]):
                        words[number][caption] = of_words[index, number, : captions[number].lengths[caption]]
        return list(zip(words, self._logits(size, of_nothing=True), self.logits, strict=True))
