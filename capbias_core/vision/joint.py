"""VL-LIC: a classifier that reads the picture and the masked caption (ImageCaptioner2, section Multi-Modal Classifier).

The paper joins a ResNet50 and LIC's BERT under a classification head. Here either side is one of two: the picture by a
small convolutional network from scratch (the mean over its places) or by a frozen backbone of torchvision; the caption
by a network of LIC's or DBAC's attackers from scratch (without its head) or by a frozen text encoder. What comes from
scratch trains together with the head of two layers. It is scored as LIC is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from capbias_core.attackers.base import Attacker
from capbias_core.attackers.networks.batches import Encoded, training_vocabulary
from capbias_core.attackers.networks.scratch import LSTM_BI, ScratchAttacker, ScratchNetwork
from capbias_core.attackers.networks.training import mlp
from capbias_core.vision.image_encoders import ImageEncoder
from capbias_core.vision.image_text_training import PairCorpus, PairReader

LEAK = 0.01


class JointNetwork(nn.Module):
    """See the module's text. image_encoder: None if vectors of pictures are given. text: None if vectors of captions
    are.

    widths: of what stands for a picture and for a caption.
    """

    def __init__(
        self,
        image_encoder: ImageEncoder | None,
        text: ScratchNetwork | None,
        widths: tuple[int, int],
        hidden: int,
        n_values: int,
    ):
        super().__init__()
        self.image_encoder, self.text = image_encoder, text
        self.head = mlp((sum(widths), hidden, n_values), LEAK)

    def forward(self, sight: Tensor, text: Encoded | Tensor, rows: np.ndarray) -> Tensor:
        """(B, C) logits from (B, ...) pictures and the captions at rows."""
        seen = self.image_encoder(sight).mean(dim=1) if self.image_encoder else sight
        if isinstance(text, Encoded):
            assert self.text is not None
            return self.head(torch.cat([seen, self.text.head(text.read(self.text.vectors, rows))], dim=1))
        return self.head(torch.cat([seen, text[torch.from_numpy(rows)]], dim=1))


@dataclass(frozen=True)
class JointJudge(PairReader):
    """See the module's text. text: whose network reads the captions. hidden: of the head."""

    text: ScratchAttacker = LSTM_BI
    hidden: int = 256
    channels: tuple[int, ...] = (32, 64, 128, 128)

    def reading_with(self, attacker: Attacker) -> JointJudge:
        """The judge with the network of an attacker from scratch as its text encoder."""
        if not isinstance(attacker, ScratchAttacker):
            raise TypeError(f"{attacker} has no network from scratch")
        return replace(self, text=attacker)

    def vocabulary(self, captions: Sequence[list[str]], n_values: int) -> dict[str, int]:
        return training_vocabulary(captions)

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> JointNetwork:
        image_encoder, text = None, None
        widths = [corpus.sight.shape[1], corpus.vectors.shape[1] if corpus.vectors is not None else 0]
        if corpus.sight.ndim == 4:
            image_encoder = ImageEncoder(self.channels)
            widths[0] = image_encoder.width
        if corpus.vectors is None:
            text = replace(self.text, dropout=self.dropout).network(len(vocabulary) + 1, n_values)
            widths[1] = text.width
            text.head = nn.Sequential(text.head[0])  # its dropout alone: the joint head reads instead
        return JointNetwork(image_encoder, text, tuple(widths), self.hidden, n_values)
