"""Networks trained from scratch on masked captions: LSTM and RNN, one way and both ways, and Transformers.

Protocol of LIC (Hirota et al. 2022, section 5; `lstm_bi`): embedding 100, two bidirectional LSTM layers of 256, dropout
0.5 on the embeddings, between the layers and on the last hidden states (forward and backward joined), one linear layer
to 1 logit (K for K > 2 values), Adam 5e-5, batches of 64, 20 epochs, no early stopping.

The others follow DBAC (training.py). Its Transformers (Vaswani et al. 2017) have 1 head or 5: embedding 100 and
sinusoidal positions, two layers of 256, the mean over the words, an MLP. The paper gives the number of heads alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capbias_core.attackers.base import Corpus, Training
from capbias_core.attackers.networks.stacked import in_stacks
from capbias_core.attackers.networks.training import (
    PAD,
    SCORING_BATCH,
    Dropout,
    FittedNetwork,
    Learner,
    NetworkAttacker,
    ids_of,
    initialised,
    logit_count,
    mlp,
    positions,
    training_vocabulary,
    with_ids,
)
from capbias_core.language.device import choose_device
from capbias_core.language.encoder import of_one_length
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import UNKNOWN_TOKEN, Attention, Progress


class ScratchNetwork(nn.Module):
    """Word embeddings, an encoder and a head."""

    head: nn.Sequential

    def __init__(self, words: int, width: int, attacker: ScratchAttacker):
        super().__init__()
        self.words = nn.Embedding(words, attacker.embedding, padding_idx=PAD)
        self.width = width  # of the vector that `vectors` gives the head

    def vectors(self, ids: Tensor) -> Tensor:
        """(B, T) ids of captions of one length to (B, width)."""
        raise NotImplementedError


class RecurrentNetwork(ScratchNetwork):
    """Stacked recurrent layers; the vector is the last hidden state of each direction."""

    def __init__(self, words: int, logits: int, attacker: RecurrentAttacker):
        width = attacker.ways * attacker.hidden
        super().__init__(words, width, attacker)
        self.unit, self.ways = attacker.unit, attacker.ways
        self.dropout = Dropout(attacker.dropout)
        unit = {"lstm": nn.LSTM, "rnn": nn.RNN}[attacker.unit]
        sizes = [attacker.embedding] + [width] * (attacker.layers - 1)
        self.layers = nn.ModuleList(
            unit(size, attacker.hidden, batch_first=True, bidirectional=attacker.ways == 2) for size in sizes
        )
        self.head = mlp((width, *attacker.head, logits), dropout=attacker.dropout)

    def vectors(self, ids: Tensor) -> Tensor:
        states = last = self.words(ids)
        for layer in self.layers:  # one by one, as dropout inside nn.LSTM would draw from the process's generator
            states, last = layer(self.dropout(states))
        hidden = last[0] if isinstance(last, tuple) else last  # an LSTM has cells beside its hidden states
        return torch.cat(list(hidden), dim=1)


class TransformerNetwork(ScratchNetwork):
    """Positions, PyTorch's Transformer layers and the mean over the words."""

    layers: Any

    def __init__(self, words: int, logits: int, attacker: TransformerAttacker):
        size = attacker.embedding
        super().__init__(words, size, attacker)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(size, attacker.heads, attacker.hidden, dropout=0.0, batch_first=True)
            for _ in range(attacker.layers)
        )
        self.head = mlp((size, *attacker.head, logits))

    def vectors(self, ids: Tensor) -> Tensor:
        states = self.words(ids)
        states = states + positions(states)
        for layer in self.layers:
            states = layer(states)
        return states.mean(dim=1)

    def attentions(self, ids: Tensor) -> Tensor:
        """(B, T) ids to what each head of each layer reads of each word, (B, layers, heads, T, T)."""
        states, weights = self.words(ids), []
        states = states + positions(states)
        for layer in self.layers:
            weights.append(layer.self_attn(states, states, states, average_attn_weights=False)[1])
            states = layer(states)
        return torch.stack(weights, dim=1)


@dataclass(frozen=True)
class FittedScratch(FittedNetwork):
    """A trained network with its vocabulary. Its blank is PAD, whose embedding is zero."""

    vocabulary: dict[str, int]
    network: Any
    integration_steps: int

    blank = PAD

    def coded(self, captions: Tokens) -> Tokens:
        return with_ids(captions, self.vocabulary)

    def word_of(self, captions: Tokens, coded: Tokens) -> np.ndarray:
        places = np.arange(len(coded.codes)) - np.repeat(coded.start[:-1], coded.lengths)
        return np.where(captions.lengths[coded.caption] > 0, places, -1)  # an empty caption is read as one PAD

    def attention(self, corpus: Corpus, rows: np.ndarray) -> list[Attention]:
        """Of a Transformer, between the words of each caption: unknown words are `<unk>`, an empty caption is one."""
        captions = corpus.distinct.rows(corpus.copy_of[rows])
        coded, weights = self.coded(captions), [np.empty(0)] * len(captions)
        for members in of_one_length(coded.lengths, SCORING_BATCH):
            with torch.no_grad():
                shares = self.network.attentions(ids_of(coded, members, self.network.words.weight.device))
            for member, values in zip(members, shares.cpu().numpy(), strict=True):
                weights[member] = values
        known = captions.mapped(word if word in self.vocabulary else UNKNOWN_TOKEN for word in captions.words)
        return [
            Attention(tuple(text.split()) or ("",), weight) for text, weight in zip(known.texts, weights, strict=True)
        ]


@dataclass(frozen=True)
class ScratchAttacker(NetworkAttacker):
    """What attackers from scratch share."""

    embedding: int = 100
    hidden: int = 256
    layers: int = 2
    dropout: float = 0.0
    head: tuple[int, ...] = (128, 64)  # sizes of its hidden layers

    def network(self, words: int, logits: int) -> ScratchNetwork:
        """An untrained network, its weights drawn from PyTorch's generator."""
        raise NotImplementedError

    def corpus(self, captions: Sequence[str]) -> Corpus:
        return Corpus(captions)

    def untrained(
        self, corpus: Corpus, training: Training, kept: np.ndarray, n_values: int
    ) -> tuple[ScratchNetwork, Tokens, np.ndarray, dict[str, int]]:
        """The vocabulary is that of the captions to train on; other words are `<unk>`."""
        captions, copies = corpus.at(training.rows)
        vocabulary = training_vocabulary(captions.rows(np.unique(copies[kept])))
        make = partial(self.network, len(vocabulary) + 1, logit_count(training.labels, n_values))
        return initialised(make, training.seed), with_ids(captions, vocabulary), copies, vocabulary

    def trained(self, learner: Learner) -> FittedScratch:
        return FittedScratch(dict(learner.vocabulary), learner.network, self.integration_steps)


@dataclass(frozen=True)
class RecurrentAttacker(ScratchAttacker):
    """LSTMs and RNNs."""

    unit: str = "lstm"  # or rnn
    ways: int = 1  # 2: reads each caption both ways

    def network(self, words: int, logits: int) -> RecurrentNetwork:
        return RecurrentNetwork(words, logits, self)

    def fit_many(self, corpus: Corpus, trainings: Sequence[Training], n_values: int, tick: Progress) -> Iterator:
        """See `base.Attacker`. On CUDA in stacks."""
        device = choose_device(self.device)
        if device.type == "cpu":
            yield from super().fit_many(corpus, trainings, n_values, tick)
            return
        learners = [self.learner(corpus, training, n_values) for training in trainings]
        for learner in in_stacks(learners, self, device, tick):
            yield self.trained(learner)


@dataclass(frozen=True)
class TransformerAttacker(ScratchAttacker):
    """Transformers; `hidden` is the size of the feed-forward network."""

    heads: int = 1  # of each layer; divides the embedding

    def network(self, words: int, logits: int) -> TransformerNetwork:
        return TransformerNetwork(words, logits, self)


LSTM_BI = RecurrentAttacker(learning_rate=5e-5, batch=64, epochs=20, patience=0, dropout=0.5, head=(), ways=2)
