"""VL-LIC: a classifier that reads the picture and the masked caption (ImageCaptioner2, section Multi-Modal Classifier).

The paper joins a ResNet50 and LIC's BERT under a classification head. Here either side is one of two: the picture by a
small convolutional network from scratch (the mean over its places) or by a frozen backbone of torchvision; the caption
by a network of LIC's or DBAC's attackers from scratch (without its head) or by a frozen text encoder. What comes from
scratch trains together with the head of two layers. It is scored as LIC is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from capbias_core.attackers.base import Attacker
from capbias_core.attackers.networks.batches import training_vocabulary
from capbias_core.attackers.networks.recurrent import lstm_bi
from capbias_core.attackers.networks.stacked import Head, Network, keep_all
from capbias_core.attackers.networks.training import NetworkAttacker
from capbias_core.vision.image_encoders import ImageEncoder
from capbias_core.vision.image_text_training import PairCorpus, PairNetwork, PairReader

LEAK = 0.01


class JointNetwork(PairNetwork):
    """See the module's text. image_encoder: None if vectors of pictures are given. text: None if vectors of captions
    are.

    widths: of what stands for a picture and for a caption.
    """

    def __init__(
        self,
        image_encoder: ImageEncoder | None,
        text: Network | None,
        widths: tuple[int, int],
        hidden: int,
        n_values: int,
    ):
        super().__init__()
        self.image_encoder, self.text = image_encoder, text
        self.head = Head((sum(widths), hidden, n_values), LEAK)

    def forward(self, sight: Tensor, text: Tensor, lengths: Tensor | None, dropout=keep_all) -> Tensor:
        seen = self.image_encoder(sight).mean(dim=2) if self.image_encoder else sight
        read = self.text(text, lengths, dropout) if self.text else text
        return self.head(torch.cat([seen, read], dim=-1))

    def floats_a_pair(self, size: int, words: int) -> int:
        looked = self.image_encoder.floats_a_picture(size) if self.image_encoder else size
        return looked + (words * self.text.floats_a_token() if self.text else 0)


@dataclass(frozen=True)
class JointJudge(PairReader):
    """See the module's text. text: whose network reads the captions. hidden: of the head."""

    text: NetworkAttacker = lstm_bi()
    hidden: int = 256
    channels: tuple[int, ...] = (32, 64, 128, 128)

    def reading_with(self, attacker: Attacker) -> JointJudge:
        """The judge with the network of an attacker from scratch as its text encoder."""
        if not isinstance(attacker, NetworkAttacker):
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
            text = self.text.network(len(vocabulary) + 1, n_values)
            widths[1] = text.head.layers[0].weight.shape[2]
            text.head = nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]: the joint head reads instead
        return JointNetwork(image_encoder, text, tuple(widths), self.hidden, n_values)
