"""Transformer encoders trained from scratch (Vaswani et al. 2017), with 1 head and with 5 heads, as DBAC compares.

Embedding 100 and sinusoidal positions, two layers (self-attention, then a feed-forward network of 256; a residual sum
and a layer norm after each), the mean over the words, the MLP of DBAC's attackers; see training.py. The paper gives the
number of heads alone; 100 is what LIC embeds words in, and 5 heads divide it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.networks.batches import TokenCorpus, same_length
from capbias_core.attackers.networks.stacked import Head, Network, StackedLinear
from capbias_core.attackers.networks.training import DBAC, SCORING_BATCH, FittedNetwork, NetworkAttacker
from capbias_core.types import UNKNOWN_TOKEN, Attention


def positions(steps: int, size: int, device: torch.device) -> Tensor:
    """(T, E): sine and cosine of each place, by turns, at wavelengths from 2 pi to 10,000 x 2 pi."""
    place = torch.arange(steps, device=device, dtype=torch.float32)[:, None]
    angle = place * torch.exp(torch.arange(0, size, 2, device=device) * (-math.log(10_000) / size))
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)[:, :size]


class StackedNorm(nn.Module):
    """A layer norm for each seed: gain and bias (S, E)."""

    def __init__(self, size: int):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(1, size)), nn.Parameter(torch.zeros(1, size))

    def forward(self, values: Tensor) -> Tensor:
        """(S, B, T, E)."""
        plain = functional.layer_norm(values, values.shape[-1:])
        return torch.addcmul(self.bias[:, None, None], plain, self.gain[:, None, None])


class TransformerLayer(nn.Module):
    """Self-attention with some heads, and a feed-forward network of a width."""

    def __init__(self, size: int, heads: int, width: int):
        super().__init__()
        self.heads = heads
        self.queries_keys_values, self.joined = StackedLinear(size, 3 * size), StackedLinear(size, size)
        self.wide, self.narrow = StackedLinear(size, width), StackedLinear(width, size)
        self.norms = nn.ModuleList(StackedNorm(size) for _ in range(2))

    def forward(self, states: Tensor, there: Tensor | None, dropout: Callable[[Tensor], Tensor]) -> Tensor:
        """(S, B, T, E) to the same. there: (S, B, T), which places hold a word; None where all do."""
        shares, values = self.attention(states, there)
        heard = (shares @ values).transpose(2, 3).flatten(3)
        states = self.norms[0](states + dropout(self.joined(heard)))
        return self.norms[1](states + dropout(self.narrow(functional.relu(self.wide(states)))))

    def attention(self, states: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor]:
        """How much each word reads of each, (S, B, heads, T, T) with rows that sum to 1; and values (..., T, d)."""
        split = self.queries_keys_values(states).unflatten(3, (3, self.heads, -1))
        queries, keys, values = split.permute(3, 0, 1, 4, 2, 5).unbind(0)
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        if there is not None:
            scores = scores.masked_fill(~there[:, :, None, None], float("-inf"))
        return scores.softmax(dim=-1), values


class TransformerNetwork(Network):
    """Positions, layers, the mean over words, and a head."""

    layers: Any

    def __init__(self, words: int, logits: int, attacker: TransformerAttacker):
        super().__init__(words, attacker.embedding, logits)
        size = attacker.embedding
        self.layers = nn.ModuleList(
            TransformerLayer(size, attacker.heads, attacker.hidden) for _ in range(attacker.layers)
        )
        self.head = Head((size, *attacker.head, logits))

    def read(self, states: Tensor, lengths: Tensor | None, dropout: Callable[[Tensor], Tensor]) -> Tensor:
        steps = states.shape[2]
        there = None if lengths is None else torch.arange(steps, device=states.device) < lengths[..., None]
        states = dropout(self.placed(states))
        for layer in self.layers:
            states = layer(states, there, dropout)
        if there is None or lengths is None:
            return self.head(states.mean(dim=2))
        return self.head((states * there[..., None]).sum(dim=2) / lengths[..., None])

    def placed(self, states: Tensor) -> Tensor:
        """Embeddings with their positions."""
        return states + positions(states.shape[2], states.shape[3], states.device)

    def attentions(self, tokens: Tensor) -> Tensor:
        """(1, B, T) ids to what each head of each layer reads of each word, (B, layers, heads, T, T)."""
        states, found = self.placed(self.embed(tokens)), []
        for layer in self.layers:
            found.append(layer.attention(states, None)[0][0])
            states = layer(states, None, lambda values: values)
        return torch.stack(found, dim=1)

    def floats_a_token(self) -> int:
        """Of each layer: queries, keys, values, sums and norms, attention (of 64 words at most), feed-forward."""
        size = self.words.shape[2]
        return sum(2 * (10 * size + 128 * layer.heads + 2 * layer.wide.bias.shape[1]) for layer in self.layers)


@dataclass(frozen=True)
class FittedTransformer(FittedNetwork):
    """A trained Transformer with its vocabulary."""

    network: TransformerNetwork

    def attention(self, corpus: TokenCorpus, rows: np.ndarray) -> list[Attention]:
        """The attention between the words of each caption, as the model reads them."""
        encoded = self.encoded(corpus, rows)
        found: dict[int, np.ndarray] = {}
        for members in same_length(encoded.lengths, np.arange(len(rows)), SCORING_BATCH):
            tokens = torch.from_numpy(encoded.of_one_length(members)).to(self.device)
            with torch.no_grad():
                shares = self.network.attentions(tokens).cpu().numpy()
            found |= dict(zip(members, shares, strict=True))
        return [Attention(self._read_as(corpus.tokens[row]), found[place]) for place, row in enumerate(rows)]

    def _read_as(self, words: list[str]) -> tuple[str, ...]:
        """Words of a caption, those that the model does not know as `<unk>`; an empty caption is one empty word."""
        return tuple(word if word in self.vocabulary else UNKNOWN_TOKEN for word in words) or ("",)


@dataclass(frozen=True)
class TransformerAttacker(NetworkAttacker):
    """See the module's text. heads: of each layer; they divide the embedding. hidden: of the feed-forward network."""

    fitted: ClassVar[type[FittedNetwork]] = FittedTransformer
    heads: int = 1

    def network(self, words: int, logits: int) -> TransformerNetwork:
        return TransformerNetwork(words, logits, self)


def one_head() -> TransformerAttacker:
    return TransformerAttacker(**DBAC)


def five_heads() -> TransformerAttacker:
    return TransformerAttacker(**DBAC, heads=5)
