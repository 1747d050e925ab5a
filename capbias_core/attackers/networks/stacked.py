"""What the networks of attackers share: parameters with a leading seed dimension.

A network of S seeds holds each parameter as (S, ...) and reads S batches at once, (S, B, T) ids to (S, B, C) logits.
Seeds never mix: the loss is summed over them and Adam works value by value, so each learns as it would alone. A network
of one seed is the same with S = 1; `stack` joins trained or untrained ones, `unstack` parts them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.networks.batches import PAD

AnyNetwork = TypeVar("AnyNetwork", bound=nn.Module)


class Dropout:
    """Inverted dropout with its own random numbers, so that nothing else in the process can change a fit.

    On a CPU each seed draws from its own generator, one random byte for each value (the share is rounded to 1/256; 0.5
    is exact): much cheaper than a random float each. On CUDA all seeds draw from one generator of the device: copying
    draws to it would take longer than the step.
    """

    def __init__(self, share: float, rngs: Sequence[np.random.Generator], device: torch.device):
        self.dropped, self.rngs = round(256 * share), rngs
        self.generator = torch.Generator(device) if device.type == "cuda" else None
        if self.generator:
            self.generator.manual_seed(int(rngs[0].integers(2**63)))

    @property
    def generators(self) -> list[np.random.Generator | torch.Generator]:
        """What it draws from."""
        return [self.generator] if self.generator else list(self.rngs)

    def __call__(self, values: Tensor) -> Tensor:
        """(S, ...) values, some of them 0 and the others larger."""
        if not self.dropped:
            return values
        return values * (self._draws(values) >= self.dropped).to(values.dtype).mul_(256 / (256 - self.dropped))

    def _draws(self, values: Tensor) -> Tensor:
        if self.generator:
            empty = torch.empty(values.shape, dtype=torch.uint8, device=values.device)
            return empty.random_(0, 256, generator=self.generator)
        shape = tuple(values.shape[1:])
        return torch.from_numpy(np.stack([rng.integers(0, 256, shape, dtype=np.uint8) for rng in self.rngs]))


def keep_all(values: Tensor) -> Tensor:
    """Dropout switched off."""
    return values


class StackedLinear(nn.Module):
    """A linear layer for each seed: weight (S, out, in), bias (S, out); begins as PyTorch's own."""

    def __init__(self, size: int, out: int):
        super().__init__()
        plain = nn.Linear(size, out)
        self.weight = nn.Parameter(plain.weight.detach()[None])
        self.bias = nn.Parameter(plain.bias.detach()[None])

    def forward(self, values: Tensor) -> Tensor:
        """(S, ..., in) to (S, ..., out)."""
        return linear(values, self.weight, self.bias)


def linear(values: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(S, ..., in) to (S, ..., out) by weights (S, out, in) and biases (S, out)."""
    if len(values) == 1:
        return functional.linear(values[0], weight[0], bias[0])[None]
    flat = values.reshape(len(values), -1, values.shape[-1])
    return torch.baddbmm(bias[:, None], flat, weight.mT).view(*values.shape[:-1], -1)


class Head(nn.Module):
    """Linear layers with ReLU between them. sizes: of its input, its hidden layers (none: one linear layer), and C.

    leak: slope of the ReLU below 0.
    """

    layers: Any  # a ModuleList, of whose items nothing is known but that they are modules

    def __init__(self, sizes: Sequence[int], leak: float = 0.0):
        super().__init__()
        self.leak, self.logits = leak, sizes[-1]
        self.layers = nn.ModuleList(StackedLinear(before, after) for before, after in pairwise(sizes))

    def begin_at(self, labels: np.ndarray) -> None:
        """Let the guesses of task words, labels (n, L), begin at how often each is there; others begin as they are.

        From 0 the first steps push all of these logits down together, and the layers of ReLU before them die of it: the
        head then says of every caption what it says of all. S = 1.
        """
        if labels.ndim == 2:
            share = (labels.sum(axis=0) + 0.5) / (len(labels) + 1)
            self.layers[-1].bias.data[0] = torch.from_numpy(np.log(share / (1 - share))).to(self.layers[-1].bias)

    def forward(self, values: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            values = functional.leaky_relu(layer(values), self.leak)
        return self.layers[-1](values)


class Network(nn.Module):
    """Embeddings of words, and an encoder and a head that a kind of network adds and reads with in `read`. logits: C.

    words: how many ids there are; row PAD of the embeddings is 0 and stays so. Dropout is an argument and not a mode:
    networks stay in training mode, in which there are gradients after training too (for attributions).
    """

    head: Head

    def __init__(self, words: int, embedding: int, logits: int):
        super().__init__()
        self.logits = logits
        self.words = nn.Parameter(nn.Embedding(words, embedding, padding_idx=PAD).weight.detach()[None])

    def forward(
        self, tokens: Tensor, lengths: Tensor | None = None, dropout: Callable[[Tensor], Tensor] = keep_all
    ) -> Tensor:
        """(S, B, T) ids to (S, B, C) logits. lengths: (S, B), where captions are padded; None where they are not."""
        return self.read(self.embed(tokens), lengths, dropout)

    def embed(self, tokens: Tensor) -> Tensor:
        """(S, B, T, E)."""
        seeds, words, size = self.words.shape
        if seeds > 1:  # PAD of every seed is PAD of the first, whose row learns nothing
            first = words * torch.arange(seeds, device=tokens.device)[:, None, None]
            tokens = torch.where(tokens == PAD, PAD, tokens + first)
        return functional.embedding(tokens, self.words.view(seeds * words, size), padding_idx=PAD)

    def read(self, states: Tensor, lengths: Tensor | None, dropout: Callable[[Tensor], Tensor]) -> Tensor:
        """(S, B, T, E) embeddings to (S, B, C) logits; arguments as of `forward`."""
        raise NotImplementedError

    def rounded(self) -> AbstractContextManager[None]:
        """Matrix products in BF16 for a block of training on a CPU, where a kind of network has them."""
        return nullcontext()

    def floats_a_token(self) -> int:
        """Rough count of values that a step keeps for each token of a batch, gradients included."""
        raise NotImplementedError


def stack(networks: Sequence[AnyNetwork]) -> AnyNetwork:
    """Networks of one kind as one, on their device; a seed that knows fewer words gets rows that nothing reads."""
    if len(networks) == 1:
        return networks[0]
    joined = copy.deepcopy(networks[0])
    for parameter, *own in zip(*(each.parameters() for each in (joined, *networks)), strict=True):
        most = max(each.shape[1] for each in own)
        parameter.data = torch.cat([_padded(each.detach(), most) for each in own])
    return joined


def unstack(joined: nn.Module, networks: Sequence[nn.Module]) -> None:
    """Copies the weights of each seed back into its own network."""
    for parameter, *own in zip(*(each.parameters() for each in (joined, *networks)), strict=True):
        for place, each in enumerate(own):
            each.data.copy_(parameter.data[place : place + 1, : each.shape[1]])


def _padded(values: Tensor, size: int) -> Tensor:
    """Zeros behind the second dimension, up to a size."""
    return functional.pad(values, (0, 0) * (values.dim() - 2) + (0, size - values.shape[1]))


def bytes_a_seed(network: Network, batch: int, longest: int, captions: int) -> int:
    """Rough bytes that one more seed takes: weights, their gradients and Adam's two means; a batch; all the ids."""
    weights = sum(math.prod(each.shape[1:]) for each in network.parameters())
    return 16 * weights + 4 * batch * longest * network.floats_a_token() + 8 * captions * longest


def seeds_at_once(seeds: int, needed: int, free: int) -> int:
    """How many seeds train together: all of them, or by halves as many as fit. needed: bytes of one; free: bytes."""
    while seeds > 1 and seeds * needed > free:
        seeds = -(-seeds // 2)
    return seeds
