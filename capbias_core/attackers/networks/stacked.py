"""Trains all networks from scratch of a run at once: one computation with a leading axis of networks.

A small network does not keep a GPU busy, since its kernels take less time than to launch them. Here all networks of a
run share each kernel: weights are (N, ...), the gates of all words are one product, each step of the recurrence is one
product and one cell for both directions of all networks, and a CUDA graph for each length replays a whole training step
without the launches. The backward direction reads each caption from its last word, so no step needs a mask.

Each network starts from the weights, and reads the split, the vocabulary and the order, that its seed has on a CPU
(learner.py); it ends with the weights of its best epoch. Nothing of it depends on the other networks: the order of
its captions and the values that dropout removes follow from its seed, its epoch and the place of the batch alone.
Unlike on a CPU, copies of a caption in one batch have dropout masks of their own, and batches hold captions of similar
length rather than of one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.device import BF16, FP32
from capbias_core.attackers.networks.training import BATCHES_PER_REPORT, DROP, ORDER, PAD, positions
from capbias_core.errors import CapbiasError
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress

SCORED = 256  # captions of each network at a time, without gradients
EXACT_LENGTHS = 16  # longer captions are padded to a multiple of STEP, so that few graphs are captured
STEP = 8
WARM_UP = 2  # steps before a graph is captured, which are undone
SHARE_OF_MEMORY = 0.8  # of what is free on the device
COPIES_OF_WEIGHTS = 8  # weights, gradients, two moments, those of the best epoch, and while a graph is captured
STATES_OF_A_LAYER = 24  # numbers that training keeps for each word and unit of a layer: gates, their gradients, states
STRIDE = 20  # bits of the places along an axis


@dataclass(frozen=True)
class Learner:
    """A network and what it learns from."""

    network: nn.Module  # of scratch.py, or a Head; untrained, and trained in place
    captions: Tokens | Tensor  # with the ids of the network's vocabulary; of a Head (D, d) vectors on the device
    copies: np.ndarray  # (n,) which of these each of n captions is
    labels: np.ndarray  # (n,) integers, or (n, L) booleans of task words
    kept: np.ndarray  # of the n captions, those to train on
    aside: np.ndarray  # and those that choose the epoch
    seed: int

    def batches(self, size: int) -> int:
        """How many batches an epoch has."""
        return math.ceil(len(self.kept) / size)


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
    def backward(ctx, grad: Tensor):
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
    """N networks of one kind as one. parameters: those of the networks by name, (N, ...) each; vocabularies of
    different sizes are padded to the largest."""

    def __init__(self, networks: Sequence[nn.Module], device: torch.device, low: torch.dtype | None = None):
        self.networks, self.device, self.low = networks, device, low
        self.one = networks[0]  # whose shape all have, but for the number of words
        self.dropout = next((layer.dropped for layer in self.one.modules() if hasattr(layer, "dropped")), 0)
        reads_words = hasattr(self.one, "words")
        words = max(network.words.num_embeddings for network in networks) if reads_words else 0
        self.parameters: dict[str, Tensor] = {}
        for name, _ in self.one.named_parameters():
            values = [dict(network.named_parameters())[name].detach() for network in networks]
            if name == "words.weight":
                values = [functional.pad(value, (0, 0, 0, words - len(value))) for value in values]
            self.parameters[name] = torch.stack(values).to(device).requires_grad_()
        self.first_word = torch.arange(len(networks), device=device).view(-1, 1, 1) * words

    def give_back(self, weights: dict[str, Tensor]) -> None:
        """Set these weights, (N, ...) by name, in the single networks."""
        for number, network in enumerate(self.networks):
            network.to(self.device)
            with torch.no_grad():
                for name, parameter in network.named_parameters():
                    parameter.copy_(weights[name][number][: len(parameter)])

    def logits(self, ids: Tensor, lengths: Tensor, noise: Noise | None = None) -> Tensor:
        """(N, B, T) ids, or (N, B, d) vectors, and (N, B) lengths to (N, B, C) logits. noise: of dropout, None in
        evaluation."""
        values = ids
        if "words.weight" in self.parameters:
            width = self.parameters["words.weight"].shape[2]
            states = functional.embedding(ids + self.first_word, self.parameters["words.weight"].view(-1, width))
            states = states.to(self.low) if self.low else states
            encode = self._recurrent if hasattr(self.one, "unit") else self._transformer
            values = encode(states, lengths, noise).flatten(2).float()
        linear = [index for index, layer in enumerate(self.one.head) if isinstance(layer, nn.Linear)]
        values = dropped(values, noise, self.dropout)
        for index in linear:
            values = times(values, self.parameters[f"head.{index}.weight"], self.parameters[f"head.{index}.bias"])
            if index != linear[-1]:
                values = functional.leaky_relu(values, self.one.head[index + 1].negative_slope)
        return values

    def _recurrent(self, states: Tensor, lengths: Tensor, noise: Noise | None) -> Tensor:
        """The last hidden states of each direction, (N, B, ways * H)."""
        n, size, steps, _ = states.shape
        unit, ways, layers = self.one.unit, self.one.ways, len(self.one.layers)
        step = torch.arange(steps, device=self.device)
        turned = torch.where(
            step < lengths[..., None], lengths[..., None] - 1 - step, step
        )  # backward: last word first
        turn = lambda values: values.gather(2, turned[..., None].expand(-1, -1, -1, values.shape[-1]))  # noqa: E731
        for layer in range(layers):
            states = dropped(states, noise, self.dropout)
            gates, recurrent = [], []
            for way, ending in enumerate(("", "_reverse")[:ways]):
                weight, other, bias, second = (
                    self.parameters[f"layers.{layer}.{kind}_l0{ending}"]
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
        last = (lengths - 1).view(1, n, 1, size, 1).expand(1, n, ways, size, hidden)
        return read.gather(0, last)[0].transpose(1, 2)

    def _transformer(self, states: Tensor, lengths: Tensor, noise: Noise | None) -> Tensor:
        """The mean over the words of each caption, (N, B, E)."""
        n, size, steps, width = states.shape
        there = torch.arange(steps, device=self.device) < lengths[..., None]  # (N, B, T)
        states = states + positions(states.flatten(0, 1)).to(states.dtype)
        for number, layer in enumerate(self.one.layers):
            get = lambda name, number=number: self.parameters[f"layers.{number}.{name}"]  # noqa: E731
            flat = states.reshape(n, size * steps, width)
            parts = times(flat, get("self_attn.in_proj_weight"), get("self_attn.in_proj_bias"))
            heads = layer.self_attn.num_heads
            asks, keys, values = parts.view(n * size, steps, 3, heads, -1).permute(2, 0, 3, 1, 4)
            mask = there.view(n * size, 1, 1, steps)
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


# dropout that follows from a network's seed


class Noise:
    """Random bytes of each network for one training step. seeds: (N,) int64 on the device. step: () int64 there, the
    number of the step, which a CUDA graph reads anew in each replay."""

    def __init__(self, seeds: Tensor, step: Tensor):
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


# training


def in_stacks(
    learners: Sequence[Learner], settings, device: torch.device, precision: str, tick: Progress
) -> Iterator[Learner]:
    """The trained networks, in order: in stacks of neighbours with equally many batches, as many as fit the device. If
    a stack runs out of memory, half as many are tried. Raises CapbiasError if one network alone does not fit."""
    done, most = 0, len(learners)
    while done < len(learners):
        _, alike = next(groupby(learners[done : done + most], lambda learner: learner.batches(settings.batch)))
        part = list(islice(alike, fitting(learners[done], settings, device)))
        size = len(part)

        def of_part(share: float, text: str, done=done, size=size) -> None:
            tick((done + share * size) / len(learners), text)

        try:
            learn_together(part, settings, device, precision, of_part)
        except torch.OutOfMemoryError:
            if len(part) == 1:
                raise CapbiasError(
                    f"The memory of {device} does not hold one network and a batch of {settings.batch} captions.",
                    "Free the memory of the GPU, or choose the device cpu.",
                ) from None
            most = len(part) // 2
            continue
        finally:
            torch.cuda.empty_cache()
        yield from part
        done += len(part)


def fitting(learner: Learner, settings, device: torch.device) -> int:
    """How many networks like this one the free memory of the device holds, at least 1."""
    if device.type != "cuda":
        return sys.maxsize
    weights = sum(parameter.numel() for parameter in learner.network.parameters())
    states = 0
    if isinstance(learner.captions, Tokens):
        longest = int(learner.captions.lengths.max(initial=1))
        width = getattr(learner.network, "ways", 1) * settings.hidden
        states = settings.batch * longest * (settings.embedding + settings.layers * STATES_OF_A_LAYER * width)
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, int(SHARE_OF_MEMORY * free / (4 * (COPIES_OF_WEIGHTS * weights + states))))


@dataclass(frozen=True)
class Reads:
    """Captions of each network on the device."""

    ids: Tensor  # (N, n, W), PAD after the end; (N, n) places of vectors
    lengths: Tensor  # (N, n)
    vectors: Tensor | None = None  # (D, d)

    @classmethod
    def of(cls, learners: Sequence[Learner], which: Callable[[Learner], np.ndarray], device: torch.device) -> Reads:
        """Rows of captions, equally many of each network (the last one again where there are fewer)."""
        rows = [learner.copies[which(learner)] for learner in learners]
        most = max(map(len, rows))
        rows = [np.concatenate([each, np.repeat(each[-1:], most - len(each))]) for each in rows]
        if isinstance(vectors := learners[0].captions, Tensor):
            places = torch.from_numpy(np.stack(rows)).to(device)
            return cls(places, torch.ones_like(places), vectors)
        lengths = np.stack([learner.captions.lengths[each] for learner, each in zip(learners, rows, strict=True)])
        ids = np.full((*lengths.shape, lengths.max(initial=1)), PAD)
        for number, (learner, each) in enumerate(zip(learners, rows, strict=True)):
            steps = np.arange(ids.shape[2])
            places = learner.captions.start[each][:, None] + np.minimum(steps, lengths[number][:, None] - 1)
            ids[number] = np.where(steps < lengths[number][:, None], learner.captions.codes[places], PAD)
        return cls(torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device))

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The captions at (N, B) rows with their lengths, as few columns as they need; or their vectors."""
        if self.vectors is not None:
            return self.vectors[self.ids.gather(1, rows)], torch.ones_like(rows)
        lengths = self.lengths.gather(1, rows)
        longest = int(lengths.max())
        if longest > EXACT_LENGTHS:
            longest = min(self.ids.shape[2], -(-longest // STEP) * STEP)
        ids = self.ids[:, :, :longest]
        return ids.gather(1, rows[..., None].expand(-1, -1, longest)), lengths


class Steps:
    """Training steps of a stack; on CUDA each length is captured once as a graph."""

    def __init__(self, stack: Stack, settings, seeds: Tensor):
        self.stack, self.seeds, self.graphs = stack, seeds, {}
        self.step = torch.zeros((), dtype=torch.int64, device=stack.device)
        cuda = stack.device.type == "cuda"
        optimizer = getattr(torch.optim, settings.optimizer)
        self.optimizer = optimizer(
            stack.parameters.values(), lr=settings.learning_rate, fused=True, **({"capturable": True} if cuda else {})
        )

    def __call__(self, ids: Tensor, lengths: Tensor, answers: Tensor, weight: Tensor) -> Tensor:
        """(N,) losses of a step."""
        self.step += 1
        given = (ids, lengths, answers, weight)
        if not ids.is_cuda:
            return self._train(*given)
        if ids.shape not in self.graphs:
            self.graphs[ids.shape] = self._captured([part.clone() for part in given])
        graph, places, losses = self.graphs[ids.shape]
        for place, part in zip(places, given, strict=True):
            place.copy_(part)
        graph.replay()
        return losses

    def _train(self, ids: Tensor, lengths: Tensor, answers: Tensor, weight: Tensor) -> Tensor:
        losses = stacked_losses(self.stack.logits(ids, lengths, Noise(self.seeds, self.step)), answers)
        losses = (losses * weight).sum(dim=1)
        losses.sum().backward()
        with torch.no_grad():
            if (words := self.stack.parameters.get("words.weight")) is not None:
                words.grad[:, PAD] = 0  # as nn.Embedding's padding
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        return losses.detach()

    def _captured(self, places: list[Tensor]):
        """A graph of one step. The steps that warm it up are undone."""
        parameters, state = list(self.stack.parameters.values()), self.optimizer.state
        before = [(p.detach().clone(), {key: value.clone() for key, value in state[p].items()}) for p in parameters]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._train(*places)
        torch.cuda.current_stream().wait_stream(stream)
        pool = next(iter(self.graphs.values()))[0].pool() if self.graphs else None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            losses = self._train(*places)
        with torch.no_grad():
            for parameter, (value, kept) in zip(parameters, before, strict=True):
                parameter.copy_(value)
                if parameter.grad is not None:
                    parameter.grad.zero_()
                for key, place in state[parameter].items():
                    place.copy_(kept[key]) if kept else place.zero_()
        return graph, places, losses


def stacked_losses(logits: Tensor, answers: Tensor) -> Tensor:
    """(N, B) cross-entropy of each caption. answers: (N, B) integers, or (N, B, L) of 0 or 1 (losses are summed)."""
    if answers.dim() == 3:
        return functional.binary_cross_entropy_with_logits(logits, answers.to(logits), reduction="none").sum(dim=2)
    if logits.shape[2] == 1:
        return functional.binary_cross_entropy_with_logits(logits[..., 0], answers.to(logits), reduction="none")
    return functional.cross_entropy(logits.transpose(1, 2), answers.long(), reduction="none")


def learn_together(learners: Sequence[Learner], settings, device: torch.device, precision: str, tick: Progress) -> None:
    """Train the networks in place; each then has the weights of its best epoch. Raises torch.OutOfMemoryError if they
    do not fit the device; the networks are as before then.

    settings: of their attacker. All have the same shape, but for their vocabularies, and train on equally many
    batches.
    """
    stack = Stack([learner.network for learner in learners], device, torch.bfloat16 if precision == BF16 else None)
    kept = Reads.of(learners, lambda learner: learner.kept, device)
    sizes = torch.tensor([len(learner.kept) for learner in learners], device=device)
    answers = _answers(learners, lambda learner: learner.kept, device)
    aside = bool(len(learners[0].aside))
    scored = Reads.of(learners, lambda learner: learner.aside, device) if aside else None
    truth = _answers(learners, lambda learner: learner.aside, device) if aside else None
    asides = torch.tensor([len(learner.aside) for learner in learners], device=device)
    seeds = [child_seed(learner.seed, FIT, DROP) for learner in learners]
    steps = Steps(stack, settings, torch.tensor(np.array(seeds, dtype=np.uint64).view(np.int64), device=device))
    orders = [np.random.default_rng(child_seed(learner.seed, FIT, ORDER)) for learner in learners]
    most, size = kept.ids.shape[1], settings.batch
    batches = math.ceil(most / size)
    lengths = kept.lengths.cpu().numpy()
    best = {name: value.detach().clone() for name, value in stack.parameters.items()}
    lowest = torch.full((len(learners),), math.inf, device=device)
    chosen, going = torch.zeros_like(sizes), torch.ones_like(sizes, dtype=torch.bool)
    with matmul_precision(precision):
        for epoch in range(settings.epochs):
            places = np.zeros((len(learners), batches * size), dtype=np.int64)
            weight = np.zeros(places.shape, dtype=np.float32)
            for number, (learner, rng) in enumerate(zip(learners, orders, strict=True)):
                n = len(learner.kept)
                order = np.lexsort((rng.random(n), lengths[number, :n]))  # similar lengths together, ties at random
                places[number, :n], weight[number, :n] = order, 1
            rows = torch.from_numpy(places.reshape(len(learners), batches, size)).to(device)
            share = torch.from_numpy(weight.reshape(rows.shape)).to(device)
            share = share / share.sum(dim=2, keepdim=True).clamp(min=1)
            visits = np.random.default_rng(child_seed(epoch, FIT, ORDER)).permutation(batches)
            for done, visit in enumerate(visits, start=1):
                part = rows[:, visit]
                losses = steps(*kept.batch(part), _at(answers, part), share[:, visit])
                if done == batches or done % BATCHES_PER_REPORT == 0:
                    about = f"epoch {epoch + 1} of {settings.epochs}, loss {losses.mean().item():.2f}"
                    tick((epoch + done / batches) / settings.epochs, about)
            if scored is None or truth is None:
                continue
            loss = _scored_losses(stack, scored, truth, asides)
            better = going & (loss < lowest)
            lowest, chosen = torch.where(better, loss, lowest), torch.where(better, epoch, chosen)
            for name, value in stack.parameters.items():
                best[name][better] = value.detach()[better]
            going &= epoch - chosen < settings.patience
            if not going.any():
                break
    stack.give_back(best if aside else {name: value.detach() for name, value in stack.parameters.items()})


def _answers(learners: Sequence[Learner], which: Callable[[Learner], np.ndarray], device: torch.device) -> Tensor:
    """(N, n) labels or (N, n, L) of task words, 0 where a network has fewer captions."""
    labels = [np.asarray(learner.labels)[which(learner)] for learner in learners]
    most = max(map(len, labels))
    padded = [np.pad(each, ((0, most - len(each)), *[(0, 0)] * (each.ndim - 1))) for each in labels]
    return torch.from_numpy(np.stack(padded).astype(np.int64)).to(device)


def _at(answers: Tensor, rows: Tensor) -> Tensor:
    return answers.gather(1, rows if answers.dim() == 2 else rows[..., None].expand(-1, -1, answers.shape[2]))


def _scored_losses(stack: Stack, scored: Reads, truth: Tensor, asides: Tensor) -> Tensor:
    """(N,) mean losses on the captions set aside."""
    total = torch.zeros(len(asides), device=stack.device)
    for rows in _parts(scored.ids.shape[1], stack):
        with torch.no_grad():
            losses = stacked_losses(stack.logits(*scored.batch(rows)).float(), _at(truth, rows))
        total += (losses * (rows < asides[:, None])).sum(dim=1)
    return total / asides


def _parts(n: int, stack: Stack) -> Iterator[Tensor]:
    for start in range(0, n, SCORED):
        yield torch.arange(start, min(start + SCORED, n), device=stack.device).expand(len(stack.networks), -1)


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Products in TF32 within the block, where asked for; as they were after it."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision != FP32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
