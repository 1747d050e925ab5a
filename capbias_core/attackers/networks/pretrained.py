"""Attackers with a pretrained encoder: frozen, where heads train on kept vectors, or fine-tuned as a whole.

Frozen, protocol of DBAC (section 5.3: MiniLM, MPNet, DistilRoBERTa, DistilBERT): the encoder's sentence embedding (the
mean of its tokens unless its folder says otherwise) and an MLP of three layers; see training.py. Sizes of the hidden
layers, 128 and 64, are ours.

Frozen, protocol of LIC (appendix A.1; `bert_pre`): the state of the class token and two fully connected layers with
LeakyReLU between (256 wide here; the paper gives no size), Adam 5e-5, 20 epochs, batches of 64 as for its LSTM.

Fine-tuned, protocol of LIC (appendix A.1; `bert_ft`): the same head, Adam 1e-5, 5 epochs, the encoder's own dropout.

Batch normalisation before the LeakyReLU and AdamW (PyTorch's weight decay of 0.01): Baratov et al. 2023, section 3.2.

capbias_core/language/encoder.py says what an encoder reads for a mask. Vectors are kept on disk
(capbias_core/language/files.py) if a folder is given, so no later run or process embeds a caption again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capbias_core.attackers.base import Corpus
from capbias_core.attackers.device import choose_device
from capbias_core.attackers.networks.training import (
    DROP,
    Attributed,
    NetworkAttacker,
    cut,
    initialised,
    learn,
    learn_captions,
    logit_count,
    logits_of,
    mlp,
    set_aside,
    start_at_frequencies,
    width_of,
)
from capbias_core.language.encoder import FIRST, OWN, TextEncoder, text_encoder, word_attributions
from capbias_core.language.files import cached_vectors
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attention, Progress, silent

VERSION = 1  # part of a cache's name: raised when a change of the code changes vectors
SHORT = 124  # characters of a caption that each encoder here reads whole: none reads fewer than 128 tokens


@dataclass(frozen=True)
class PretrainedAttacker(NetworkAttacker):
    """What frozen and fine-tuned encoders share.

    path: the folder of the encoder. digest: of its content, which names its cache. cache: the folder of embeddings,
    None for none. pooling: OWN or FIRST. hidden, leak, norm: of the head; see `mlp`.
    """

    path: str = ""
    digest: str = ""
    cache: str | None = None
    pooling: str = OWN
    hidden: tuple[int, ...] = (128, 64)
    leak: float = 0.0
    norm: bool = False

    def encoder(self) -> TextEncoder:
        """The encoder, loaded once, when it is first needed."""
        return text_encoder(self.path, self.pooling, str(choose_device(self.device)))

    def cut(self, captions: Sequence[str]) -> list[str]:
        """A note if captions are cut; the encoder is loaded only if there are long ones."""
        if all(len(caption) <= SHORT for caption in captions):
            return []
        encoder = self.encoder()
        return encoder.cut([encoder.read(caption) for caption in captions])

    def untrained_head(self, width: int, labels: np.ndarray, n_values: int, seed: int) -> nn.Sequential:
        sizes = (width, *self.hidden, logit_count(labels, n_values))
        return initialised(partial(mlp, sizes, self.leak, self.norm), seed).to(choose_device(self.device))


@dataclass(frozen=True)
class FittedPretrained(Attributed):
    """An encoder, loaded when it is needed, and a trained head on its vectors."""

    encoder: Callable[[], TextEncoder]
    head: nn.Sequential
    integration_steps: int

    def attribute(self, captions: Tokens) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """See Attributed. The baseline is the caption with each word masked, so that masked words add nothing."""
        encoder = self.encoder()
        texts = [encoder.read(caption) for caption in captions]
        return word_attributions(encoder, self.head, width_of(self.head), texts, self.integration_steps)

    def attention(self, corpus: Corpus, rows: np.ndarray) -> list[Attention]:
        """The attention between the words of each caption as the encoder reads it; see TextEncoder."""
        encoder = self.encoder()
        return [encoder.attention(encoder.read(corpus.distinct[number])) for number in corpus.place[rows]]


class EmbeddedCorpus(Corpus):
    """Masked captions and, from the first fit on, their vectors."""

    def __init__(self, attacker: FrozenAttacker, captions: Sequence[str]):
        super().__init__(captions)
        self.attacker, self._vectors = attacker, None

    def vectors(self, tick: Progress = silent) -> Tensor:
        """(D, d) vectors of the distinct captions on the attacker's device."""
        if self._vectors is None:
            vectors = self.attacker.embed(self.distinct, tick)
            self._vectors = torch.from_numpy(vectors).to(choose_device(self.attacker.device))
        return self._vectors


class FrozenAttacker(PretrainedAttacker):
    """See the module's text; the defaults are DBAC's."""

    def corpus(self, captions: Sequence[str]) -> EmbeddedCorpus:
        return EmbeddedCorpus(self, captions)

    def embed(self, captions: Sequence[str], tick: Progress) -> np.ndarray:
        """(n, d) float32 vectors of distinct captions."""

        def embed(captions: Sequence[str]) -> np.ndarray:
            encoder = self.encoder()
            return encoder.embed([encoder.read(caption) for caption in captions])

        if self.cache is None:
            tick(0.0, "embedding captions")
            return embed(captions)
        file = Path(self.cache) / f"{self.digest}-{self.pooling}-{VERSION}.sqlite"
        return cached_vectors(file, captions, embed, partial(tick, 0.0))

    def fit(self, corpus: EmbeddedCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedFrozen:
        labels = np.asarray(labels)
        vectors = corpus.vectors(tick)[torch.from_numpy(corpus.place[rows])]
        kept, aside = set_aside(len(rows), seed, self.patience)
        head = self.untrained_head(vectors.shape[1], labels, n_values, seed)
        start_at_frequencies(head, labels[kept])

        def logits(rows: np.ndarray) -> Tensor:
            return head(vectors[torch.from_numpy(rows)])

        def batches(rng: np.random.Generator) -> list[np.ndarray]:
            return cut(rng.permutation(len(kept)), self.batch)

        learn(head, logits, labels, (kept, aside), batches, self, seed, tick)
        return FittedFrozen(self.encoder, head, self.integration_steps)

    def fit_many(self, corpus: EmbeddedCorpus, rows, labels, n_values: int, seeds, tick: Progress) -> Iterator:
        """See `base.fit_many`; captions are embedded before the heads train side by side."""
        corpus.vectors(tick)
        yield from super().fit_many(corpus, rows, labels, n_values, seeds, tick)


class FittedFrozen(FittedPretrained):
    """A trained head on a frozen encoder."""

    def logits(self, corpus: EmbeddedCorpus, rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            vectors = corpus.vectors()[torch.from_numpy(corpus.place[rows])]
            return self.head(vectors).double().cpu().numpy()


class FineTunedAttacker(PretrainedAttacker):
    """See the module's text. Each seed trains a copy of the encoder, one seed after the other."""

    fit_many: Any = None  # copies of a whole BERT side by side would only cost memory

    def corpus(self, captions: Sequence[str]) -> Corpus:
        return Corpus(captions)

    def fit(self, corpus: Corpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedFineTuned:
        labels = np.asarray(labels)
        split = set_aside(len(rows), seed, self.patience)
        captions, copies = corpus.at(rows)
        encoder = deepcopy(self.encoder())
        network = FineTunedNetwork(encoder, self.untrained_head(encoder.width, labels, n_values, seed))
        start_at_frequencies(network.head, labels[split[0]])
        coded = encoder_ids(encoder, captions)
        with torch.random.fork_rng():
            torch.manual_seed(child_seed(seed, FIT, DROP))
            learn_captions(network, coded, copies, labels, split, self, seed, tick)
        return FittedFineTuned(lambda: encoder, network.head, self.integration_steps, network)


class FineTunedNetwork(nn.Module):
    """An encoder and a head that train together."""

    def __init__(self, encoder: TextEncoder, head: nn.Sequential):
        super().__init__()
        self.text, self.model, self.head = encoder, encoder.model, head

    def vectors(self, ids: Tensor) -> Tensor:
        return self.text.pooled(ids)


def encoder_ids(encoder: TextEncoder, captions: Sequence[str]) -> Tokens:
    """Masked captions as the ids that the encoder reads."""
    ids = encoder.ids([encoder.read(caption) for caption in captions])
    return Tokens(np.concatenate([np.zeros(0, dtype=np.int64), *ids]), np.cumsum([0, *map(len, ids)]), [])


@dataclass(frozen=True)
class FittedFineTuned(FittedPretrained):
    """An encoder and the head that was trained with it."""

    network: FineTunedNetwork

    def logits(self, corpus: Corpus, rows: np.ndarray) -> np.ndarray:
        captions, copies = corpus.at(rows)
        return logits_of(self.network, encoder_ids(self.encoder(), captions))[copies]


# The settings of LIC's BERT attackers, and what Baratov et al. change in them.
LIC_HEAD = {"pooling": FIRST, "hidden": (256,), "leak": 0.01, "batch": 64, "patience": 0}
BERT_PRE = LIC_HEAD | {"learning_rate": 5e-5, "epochs": 20}
BERT_FT = LIC_HEAD | {"learning_rate": 1e-5, "epochs": 5}
NORMALISED = {"norm": True, "optimizer": "AdamW"}
