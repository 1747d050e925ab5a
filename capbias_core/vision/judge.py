"""ImageCaptioner2's judge: Show, Attend and Tell (Xu et al., ICML 2015), trained from scratch to end a prompt.

A convolutional network looks at the picture; an LSTM reads the masked caption and the prompt word by word, as if it had
written them (teacher forcing), and before each word attends to the picture's places. Its next word is the answer, one
word of the vocabulary for each value; it learns that word alone, by cross-entropy (Eq. 1 of ImageCaptioner2). P(A) is
normalised over the answers, so chance is 1 / K. Sizes and the learning rate are ours where the papers give none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from capbias_core.attackers.networks.batches import PAD, UNKNOWN, Encoded, training_vocabulary
from capbias_core.attackers.networks.training import Dropout
from capbias_core.vision.image_encoders import ImageEncoder, begin_as_he
from capbias_core.vision.image_text_training import PairCorpus, PairReader

FIRST_ANSWER = UNKNOWN + 1


class JudgeNetwork(nn.Module):
    """See the module's text. words: how many ids there are, answers included."""

    def __init__(self, words: int, judge: ScratchJudge):
        super().__init__()
        self.words = nn.Embedding(words, judge.embedding, padding_idx=PAD)
        seen, size = judge.channels[-1], judge.hidden
        self.begin = nn.Linear(seen, 2 * size)
        self.of_place, self.of_state = nn.Linear(seen, size), nn.Linear(size, size)
        self.weigh, self.gate = nn.Linear(size, 1), nn.Linear(size, seen)
        self.input, self.recur = nn.Linear(judge.embedding + seen, 4 * size), nn.Linear(size, 4 * size)
        self.shown, self.attended = nn.Linear(size, judge.embedding), nn.Linear(seen, judge.embedding)
        self.answer, self.dropout = nn.Linear(judge.embedding, words), Dropout(judge.dropout)
        begin_as_he(self)
        self.image_encoder = ImageEncoder(judge.channels)

    def forward(self, sight: Tensor, text: Encoded, rows: np.ndarray) -> Tensor:
        """(B, words) logits of the next word from (B, 3, h, w) pictures and the captions at rows."""
        lengths = torch.from_numpy(text.lengths[rows]).to(sight.device)
        ids = text.ids[rows, : int(lengths.max())]
        places = self.image_encoder(sight)  # (B, L, seen)
        known = self.of_place(places)
        state, cell = torch.tanh(self.begin(places.mean(dim=1))).chunk(2, dim=-1)
        words = self.words(ids)  # (B, T, E)
        attended = torch.zeros_like(places[:, 0])
        for step in range(ids.shape[1]):
            there = (step < lengths)[:, None]
            context = self._attend(places, known, state)
            new = self._step(torch.cat([words[:, step], context], dim=-1), state, cell)
            # Behind its last word a caption keeps its state: the answer follows there.
            state, cell, attended = (
                torch.where(there, now, before)
                for now, before in zip((*new, context), (state, cell, attended), strict=True)
            )
        last = words[torch.arange(len(ids)), lengths - 1]
        return self.answer(self.dropout(last + self.shown(state) + self.attended(attended)))

    def _attend(self, places: Tensor, known: Tensor, state: Tensor) -> Tensor:
        """(B, seen): the places by how much the state asks for each, and as much of them as the gate lets in."""
        weights = self.weigh(torch.tanh(known + self.of_state(state)[:, None])).softmax(dim=1)
        return torch.sigmoid(self.gate(state)) * (weights * places).sum(dim=1)

    def _step(self, given: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One step of the LSTM."""
        entered, kept, candidate, shown = (self.input(given) + self.recur(state)).chunk(4, dim=-1)
        cell = torch.sigmoid(kept) * cell + torch.sigmoid(entered) * torch.tanh(candidate)
        return torch.sigmoid(shown) * torch.tanh(cell), cell


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
