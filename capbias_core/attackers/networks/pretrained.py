"""What attackers with a pretrained encoder share: word attributions, and the attention that the encoder pays."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from capbias_core.attackers.networks.stacked import Head
from capbias_core.language.encoder import TextEncoder, word_attributions
from capbias_core.types import Attention, Contributions


class Attributed:
    """A fitted attacker that is an encoder and a head on its vectors."""

    head: Head
    integration_steps: int

    def encoder(self) -> TextEncoder:
        """The encoder that the head was trained on."""
        raise NotImplementedError

    def contributions(self, corpus, rows: np.ndarray) -> Contributions:
        """Integrated gradients of each logit over the encoder's input embeddings, summed for each word.

        The baseline is the caption with every word masked, so that masked words add nothing. The integral is a sum
        over `integration_steps` points, so words and baseline add up to the logit only within `delta`.
        """
        encoder = self.encoder()
        captions = [corpus.captions[row] for row in rows]
        # Captions of one data set repeat each other; each distinct one is attributed once.
        distinct = list(dict.fromkeys(captions))
        texts = [encoder.read(caption) for caption in distinct]
        words, baseline, logits = word_attributions(
            encoder, self._logits, self.head.logits, texts, self.integration_steps
        )
        sums = np.array([own.sum(axis=0) for own in words]).reshape(logits.shape)
        delta = np.abs(baseline + sums - logits).max(axis=1, initial=0)
        place = {caption: row for row, caption in enumerate(distinct)}
        copies = [place[caption] for caption in captions]
        return Contributions([words[copy] for copy in copies], baseline[copies], delta[copies])

    def _logits(self, vectors: Tensor) -> Tensor:
        return self.head(vectors[None])[0]

    def attention(self, corpus, rows: np.ndarray) -> list[Attention]:
        """The attention between the words of each caption as the encoder reads it; see TextEncoder."""
        encoder = self.encoder()
        return [encoder.attention(encoder.read(corpus.captions[row])) for row in rows]
