"""Attackers with a pretrained encoder: frozen, with heads that train on its stored vectors, or fine-tuned as a whole.

Frozen, protocol of DBAC (section 5.3: MiniLM, MPNet, DistilRoBERTa, DistilBERT): the encoder's sentence embedding (the
mean of its tokens unless its folder says otherwise) and an MLP of three layers; see training.py. Sizes of the hidden
layers, 128 and 64, are ours.

Frozen, protocol of LIC (appendix A.1; `bert_pre`): the state of the class token and two fully connected layers with
LeakyReLU between them (256 wide here; the paper gives no size), Adam 5e-5, 20 epochs, batches of 64 as for its LSTM.

Fine-tuned, protocol of LIC (appendix A.1; `bert_ft`): the same head, Adam 1e-5, 5 epochs, the encoder's dropout.

Batch normalisation before the LeakyReLU and AdamW (PyTorch's weight decay of 0.01): Baratov et al. 2023, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from capbias_core.attackers.base import Corpus, Training
from capbias_core.attackers.networks.training import (
    DROP,
    FittedNetwork,
    Learner,
    NetworkAttacker,
    in_threads,
    initialised,
    logit_count,
    mlp,
)
from capbias_core.language.device import choose_device
from capbias_core.language.encoder import OWN, TextEncoder, text_encoder
from capbias_core.language.files import cached_vectors
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attention, Progress, silent

VERSION = 1  # in the name of a cache, raised when a change of the code changes vectors
SHORT = 124  # characters that any encoder reads whole: none reads fewer than 128 tokens


@dataclass(frozen=True)
class PretrainedAttacker(NetworkAttacker):
    """What frozen and fine-tuned encoders share."""

    path: str = ""  # the folder of the encoder
    digest: str = ""  # of its content, in the name of its cache
    cache: str | None = None  # the folder of embeddings
    pooling: str = OWN  # or FIRST
    hidden: tuple[int, ...] = (128, 64)  # this and the next two: of the head, see `mlp`
    leak: float = 0.0
    norm: bool = False

    def encoder(self) -> TextEncoder:
        return text_encoder(self.path, self.pooling, self.device)

    def cut(self, captions: Sequence[str]) -> list[str]:
        """A note if captions are cut; loads the encoder only if some are long."""
        if all(len(caption) <= SHORT for caption in captions):
            return []
        encoder = self.encoder()
        return encoder.cut([encoder.read(caption) for caption in captions])

    def untrained_head(self, width: int, training: Training, n_values: int) -> nn.Sequential:
        sizes = (width, *self.hidden, logit_count(training.labels, n_values))
        return initialised(partial(mlp, sizes, self.leak, self.norm), training.seed).to(choose_device(self.device))


class PretrainedNetwork(nn.Module):
    """An encoder and a head on its vectors."""

    def __init__(self, encoder: TextEncoder, head: nn.Sequential):
        super().__init__()
        self.text, self.model, self.head = encoder, encoder.model, head

    @property
    def words(self) -> nn.Module:
        return self.text.transformer.get_input_embeddings()

    def vectors(self, ids: Tensor) -> Tensor:
        return self.text.pooled(ids)


class FittedPretrained(FittedNetwork):
    """A trained head on an encoder, whose mask is the blank."""

    network: PretrainedNetwork

    @property
    def blank(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.network.text.blank

    def coded(self, captions: Tokens) -> Tokens:
        return encoder_ids(self.network.text, captions)

    def word_of(self, captions: Tokens, coded: Tokens) -> np.ndarray:
        encoder = self.network.text
        words = [encoder.words_of(encoder.read(caption)) for caption in captions]
        return np.concatenate([np.zeros(0, dtype=np.int64), *words])

    def attention(self, corpus: Corpus, rows: np.ndarray) -> list[Attention]:
        """The attention between the words of each caption as the encoder reads it; see TextEncoder."""
        encoder = self.network.text
        return [encoder.attention(encoder.read(corpus.distinct[number])) for number in corpus.copy_of[rows]]


class EmbeddedCorpus(Corpus):
    """Masked captions and, from first use on, their vectors."""

    def __init__(self, attacker: FrozenAttacker, captions: Sequence[str]):
        super().__init__(captions)
        self.attacker, self._vectors = attacker, None

    def vectors(self, tick: Progress = silent) -> Tensor:
        """(D, d) vectors of the distinct captions on the attacker's device, from the cache if there is one."""
        if self._vectors is None:
            attacker = self.attacker
            if attacker.cache is None:
                tick(0.0, "embedding captions")
                vectors = attacker.embed(self.distinct)
            else:
                file = Path(attacker.cache) / f"{attacker.digest}-{attacker.pooling}-{VERSION}.sqlite"
                vectors = cached_vectors(file, self.distinct, attacker.embed, partial(tick, 0.0))
            self._vectors = torch.from_numpy(vectors).to(choose_device(attacker.device))
        return self._vectors


@dataclass(frozen=True)
class FrozenAttacker(PretrainedAttacker):
    """See the module's text; the defaults are DBAC's."""

    def corpus(self, captions: Sequence[str]) -> EmbeddedCorpus:
        return EmbeddedCorpus(self, captions)

    def embed(self, captions: Sequence[str]) -> np.ndarray:
        """(n, d) float32 vectors."""
        encoder = self.encoder()
        return encoder.embed([encoder.read(caption) for caption in captions])

    def untrained(
        self, corpus: EmbeddedCorpus, training: Training, kept: np.ndarray, n_values: int
    ) -> tuple[nn.Module, Tensor, np.ndarray, dict[str, int]]:
        vectors = corpus.vectors()
        head = self.untrained_head(vectors.shape[1], training, n_values)
        return nn.ModuleDict({"head": head}), vectors, corpus.copy_of[training.rows], {}

    def trained(self, learner: Learner) -> FittedFrozen:
        return FittedFrozen(self.encoder, learner.network.head, self.integration_steps)

    def fit_many(
        self, corpus: EmbeddedCorpus, trainings: Sequence[Training], n_values: int, tick: Progress
    ) -> Iterator:
        corpus.vectors(tick)
        yield from super().fit_many(corpus, trainings, n_values, tick)


@dataclass(frozen=True)
class FittedFrozen(FittedPretrained):
    """A trained head on a frozen encoder, which is loaded on first use."""

    encoder: Callable[[], TextEncoder]
    head: nn.Sequential
    integration_steps: int

    @property
    def network(self) -> PretrainedNetwork:  # pyright: ignore[reportIncompatibleVariableOverride]
        return PretrainedNetwork(self.encoder(), self.head)

    def logits(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, corpus: EmbeddedCorpus, rows: np.ndarray
    ) -> np.ndarray:
        with torch.no_grad():
            vectors = corpus.vectors()[torch.from_numpy(corpus.copy_of[rows])]
            return self.head(vectors).double().cpu().numpy()


class FineTunedAttacker(PretrainedAttacker):
    """See the module's text. Each seed trains a copy of the encoder, one seed after the other."""

    def corpus(self, captions: Sequence[str]) -> Corpus:
        return Corpus(captions)

    def untrained(
        self, corpus: Corpus, training: Training, kept: np.ndarray, n_values: int
    ) -> tuple[PretrainedNetwork, Tokens, np.ndarray, dict[str, int]]:
        captions, copies = corpus.at(training.rows)
        encoder = deepcopy(self.encoder())
        head = self.untrained_head(encoder.width, training, n_values)
        return PretrainedNetwork(encoder, head), encoder_ids(encoder, captions), copies, {}

    def train(self, corpus: Corpus, training: Training, n_values: int, tick: Progress) -> FittedFineTuned:
        with torch.random.fork_rng():  # the encoder's own dropout draws from the process's generator
            torch.manual_seed(child_seed(training.seed, FIT, DROP))
            return super().train(corpus, training, n_values, tick)

    def trained(self, learner: Learner) -> FittedFineTuned:
        return FittedFineTuned(learner.network, self.integration_steps)

    def fit_many(self, corpus: Corpus, trainings: Sequence[Training], n_values: int, tick: Progress) -> Iterator:
        """One after the other: copies of a whole BERT side by side would only cost memory."""
        yield from in_threads([partial(self.train, corpus, training, n_values) for training in trainings], 1, tick)


@dataclass(frozen=True)
class FittedFineTuned(FittedPretrained):
    """An encoder and the head that trained with it."""

    network: PretrainedNetwork
    integration_steps: int


def encoder_ids(encoder: TextEncoder, captions: Sequence[str]) -> Tokens:
    """Masked captions as the ids that the encoder reads."""
    ids = encoder.ids([encoder.read(caption) for caption in captions])
    return Tokens(np.concatenate([np.zeros(0, dtype=np.int64), *ids]), np.cumsum([0, *map(len, ids)]), [])
