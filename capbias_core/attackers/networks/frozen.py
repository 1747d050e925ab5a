"""Attackers with a frozen pretrained encoder: each distinct masked caption is embedded once, and heads train on that.

Protocol of DBAC (section 5.3: MiniLM, MPNet, DistilRoBERTa, DistilBERT): the encoder's sentence embedding (the mean of
its tokens unless its folder says otherwise) and an MLP of three layers, Adam 1e-3, batches of 256, at most 50 epochs; a
tenth of the training captions is set aside to choose the epoch, as for the LSTM of that paper here. Sizes of the
hidden layers, 128 and 64, are ours.

Protocol of BERT-pre (LIC, appendix A.1): the state of the class token and two fully connected layers with LeakyReLU
between, Adam 5e-5, 20 epochs; batches of 64 as for its LSTM. The paper gives no size of the hidden layer; 256 here.

What an encoder reads for a mask is said in capbias_core/language/encoder.py. Vectors are kept on disk
(capbias_core/language/cache.py) where a folder is given, so that seeds, captioners with the same caption, later runs
and other processes do not embed it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from capbias_core.attackers.device import AUTO, choose_device
from capbias_core.attackers.networks.heads import HeadProtocol, fit_heads
from capbias_core.attackers.networks.pretrained import Attributed
from capbias_core.attackers.networks.stacked import Head
from capbias_core.attackers.networks.training import logit_count
from capbias_core.language.cache import EmbeddingCache
from capbias_core.language.encoder import OWN, TextEncoder, text_encoder
from capbias_core.types import Progress, silent

# Part of a cache's name: raised when a change of the code changes vectors.
VERSION = 1
# Characters of a caption that every encoder reads whole: none here reads fewer than 128 tokens.
SHORT = 124
BERT_PRE = HeadProtocol(hidden=(256,), leak=0.01, learning_rate=5e-5, batch=64, epochs=20, patience=0)


@dataclass(frozen=True)
class FrozenAttacker:
    """See the module's text. path: the folder of the encoder. digest: of its content, which names its cache.

    pooling: OWN or FIRST. cache: the folder of embeddings, None to keep none. device: as in device.py.
    """

    path: str
    digest: str = ""
    cache: str | None = None
    pooling: str = OWN
    protocol: HeadProtocol = HeadProtocol()
    integration_steps: int = 20
    device: str = AUTO

    @property
    def batch(self) -> int:
        return self.protocol.batch

    def with_batch(self, batch: int) -> Self:
        return replace(self, protocol=replace(self.protocol, batch=batch))

    def encoder(self) -> TextEncoder:
        """The encoder, loaded when it is first needed: with every caption in the cache it never is."""
        return text_encoder(self.path, self.pooling, str(choose_device(self.device)))

    def corpus(self, captions: Sequence[str]) -> EmbeddedCorpus:
        return EmbeddedCorpus(self, list(captions))

    def cut(self, captions: Sequence[str]) -> list[str]:
        """As CutsCaptions says; the encoder is loaded only where there are long captions."""
        return self._read_part(captions) if any(len(own) > SHORT for own in captions) else []

    def embed(self, captions: Sequence[str], tick: Progress) -> np.ndarray:
        """(n, d) float32 vectors of different captions."""
        report = partial(tick, 0.0)
        if self.cache is None:
            report("embedding captions")
            return self._embed(captions)
        file = Path(self.cache) / f"{self.digest}-{self.pooling}-{VERSION}.sqlite"
        return EmbeddingCache(file).vectors(captions, self._embed, report)

    def _read_part(self, captions: Sequence[str]) -> list[str]:
        encoder = self.encoder()
        return encoder.cut([encoder.read(caption) for caption in captions])

    def _embed(self, captions: Sequence[str]) -> np.ndarray:
        encoder = self.encoder()
        return encoder.embed([encoder.read(caption) for caption in captions])

    def fit(self, corpus: EmbeddedCorpus, rows, labels, n_values: int, seed: int, tick: Progress) -> FittedFrozen:
        return self.fit_many(corpus, [rows], [labels], n_values, [seed], tick)[0]

    def fit_many(
        self,
        corpus: EmbeddedCorpus,
        rows: Sequence,
        labels: Sequence,
        n_values: int,
        seeds: Sequence[int],
        tick: Progress,
    ) -> list[FittedFrozen]:
        """The heads of all seeds, trained together on the vectors of the corpus."""
        vectors, logits = corpus.vectors(tick), logit_count(labels[0], n_values)
        own = [corpus.copies[np.asarray(rows_of_one)] for rows_of_one in rows]
        heads = fit_heads(vectors, own, labels, logits, seeds, self.protocol, tick)
        return [FittedFrozen(self, head) for head in heads]


class EmbeddedCorpus:
    """Masked captions and, from the first fit on, their vectors. copies: (n,) place of each among the distinct ones."""

    def __init__(self, attacker: FrozenAttacker, captions: list[str]):
        self.attacker, self.captions = attacker, captions
        self.distinct = list(dict.fromkeys(captions))
        place = {caption: row for row, caption in enumerate(self.distinct)}
        self.copies = np.array([place[caption] for caption in captions], dtype=int)
        self._vectors: Tensor | None = None

    def vectors(self, tick: Progress = silent) -> Tensor:
        """(distinct captions, d) vectors on the attacker's device."""
        if self._vectors is None:
            found = self.attacker.embed(self.distinct, tick)
            self._vectors = torch.from_numpy(found).to(choose_device(self.attacker.device))
        return self._vectors


@dataclass(frozen=True)
class FittedFrozen(Attributed):
    """A trained head on a frozen encoder."""

    attacker: FrozenAttacker
    head: Head

    @property
    def integration_steps(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]: it is only read
        return self.attacker.integration_steps

    def encoder(self) -> TextEncoder:
        return self.attacker.encoder()

    def logits(self, corpus: EmbeddedCorpus, rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            vectors = corpus.vectors()[torch.from_numpy(corpus.copies[np.asarray(rows, dtype=int)])]
            return self.head(vectors[None])[0].double().cpu().numpy()
