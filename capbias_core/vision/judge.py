"""ImageCaptioner2's judge: Show, Attend and Tell (Xu et al., ICML 2015), trained from scratch to end a prompt.

A convolutional network looks at the picture; an LSTM reads the masked caption and the prompt word by word, as if it had
written them (teacher forcing), and before each word attends to the picture's places. Its next word is the answer, one
word of the vocabulary for each value; it learns that word alone, by cross-entropy (Eq. 1 of ImageCaptioner2). P(A) is
normalised over the answers, so chance is 1 / K. Sizes and the learning rate are ours where the papers give none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from capbias_core.attackers.networks.batches import PAD, UNKNOWN, training_vocabulary
from capbias_core.attackers.networks.stacked import Network, StackedLinear, keep_all
from capbias_core.vision.image_encoders import ImageEncoder, begin_as_he
from capbias_core.vision.image_text_training import PairCorpus, PairNetwork, PairReader

FIRST_ANSWER = UNKNOWN + 1


class JudgeNetwork(Network, PairNetwork):
    """See the module's text. words: how many ids there are, answers included."""

    def __init__(self, words: int, judge: ScratchJudge):
        super().__init__(words, judge.embedding, words)
        seen, size = judge.channels[-1], judge.hidden
        self.begin = StackedLinear(seen, 2 * size)
        self.of_place, self.of_state = StackedLinear(seen, size), StackedLinear(size, size)
        self.weigh, self.gate = StackedLinear(size, 1), StackedLinear(size, seen)
        self.input, self.recur = StackedLinear(judge.embedding + seen, 4 * size), StackedLinear(size, 4 * size)
        self.shown, self.attended = StackedLinear(size, judge.embedding), StackedLinear(seen, judge.embedding)
        self.answer = StackedLinear(judge.embedding, words)
        begin_as_he(self)
        self.image_encoder = ImageEncoder(judge.channels)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]: a pair's, not a caption's
        self, sight: Tensor, text: Tensor, lengths: Tensor, dropout=keep_all
    ) -> Tensor:
        places = self.image_encoder(sight)  # (S, B, L, seen)
        known = self.of_place(places)
        state, cell = torch.tanh(self.begin(places.mean(dim=2))).chunk(2, dim=-1)
        words = self.embed(text)  # (S, B, T, E)
        attended = torch.zeros_like(places[:, :, 0])
        for step in range(text.shape[2]):
            there = (step < lengths)[..., None]
            context = self._attend(places, known, state)
            new = self._step(torch.cat([words[:, :, step], context], dim=-1), state, cell)
            # Behind its last word a caption keeps its state: the answer follows there.
            state, cell, attended = (
                torch.where(there, now, before)
                for now, before in zip((*new, context), (state, cell, attended), strict=True)
            )
        last = words.gather(2, (lengths - 1)[..., None, None].expand(-1, -1, 1, words.shape[3]))[:, :, 0]
        return self.answer(dropout(last + self.shown(state) + self.attended(attended)))

    def _attend(self, places: Tensor, known: Tensor, state: Tensor) -> Tensor:
        """(S, B, seen): the places by how much the state asks for each, and as much of them as the gate lets in."""
        asked = torch.tanh(known + self.of_state(state)[:, :, None])
        weights = self.weigh(asked).softmax(dim=2)
        return torch.sigmoid(self.gate(state)) * (weights * places).sum(dim=2)

    def _step(self, given: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One step of the LSTM."""
        entered, kept, candidate, shown = (self.input(given) + self.recur(state)).chunk(4, dim=-1)
        cell = torch.sigmoid(kept) * cell + torch.sigmoid(entered) * torch.tanh(candidate)
        return torch.sigmoid(shown) * torch.tanh(cell), cell

    def floats_a_pair(self, size: int, words: int) -> int:
        hidden, seen = self.of_place.weight.shape[1:]
        a_step = self.image_encoder.places(size) * (3 * hidden + 2 * seen) + 30 * hidden
        return self.image_encoder.floats_a_picture(size) + 2 * words * a_step


@dataclass(frozen=True)
class ScratchJudge(PairReader):
    """See the module's text. channels: of the convolutions. hidden: of the LSTM and of the attention."""

    embedding: int = 128
    hidden: int = 256
    channels: tuple[int, ...] = (32, 64, 128, 128)

    first_answer = FIRST_ANSWER

    def vocabulary(self, captions: Sequence[list[str]], n_values: int) -> dict[str, int]:
        """Words of the captions, after a place for each answer, which no caption has as a word."""
        words = training_vocabulary(captions)
        return {word: place if place <= UNKNOWN else place + n_values for word, place in words.items()} | {
            f"answer {value}": FIRST_ANSWER + value for value in range(n_values)
        }

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> JudgeNetwork:
        return JudgeNetwork(len(vocabulary) + 1 + PAD, self)
