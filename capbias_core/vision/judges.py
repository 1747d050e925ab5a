"""Judges that read a photograph and its masked caption, for ImageCaptioner2 (AAAI 2024) and VL-LIC: attackers whose
corpus holds pictures beside captions.

Protocol of ImageCaptioner2: Adam, batches of 128, 40 epochs, images split 70 / 10 / 20 and balanced. The caller holds
the 20 back; the 10 are set aside here, and the epoch with the lowest loss on them is kept. Weights begin as He et al.
(ICCV 2015) draw them. Other sizes and the learning rate are ours.

`ScratchJudge` is Show, Attend and Tell (Xu et al., ICML 2015): an LSTM reads the masked caption and the prompt word by
word, as if it had written them, and before each word attends to the picture's cells. It learns its next word alone, one
for each value (Eq. 1). P(A) is normalised over these answers, so chance is 1 / K. `AskedJudge` is any captioner.

`JointJudge` is VL-LIC's classifier (section Multi-Modal Classifier): a head of two layers on the vectors of a picture
and of a caption. Each is by a network that trains with it, or by a frozen one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from capbias_core.attackers.base import Training
from capbias_core.attackers.networks.scratch import LSTM_BI, ScratchAttacker, ScratchNetwork
from capbias_core.attackers.networks.training import (
    PAD,
    SET_ASIDE,
    UNKNOWN,
    Dropout,
    NetworkAttacker,
    cut,
    ids_of,
    initialised,
    learn,
    mlp,
    read,
    training_vocabulary,
    with_ids,
)
from capbias_core.errors import CapbiasError, first_line
from capbias_core.language.device import choose_device
from capbias_core.load.photographs import read_photograph
from capbias_core.prepare.split import FIT, child_seed
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute, Progress, silent
from capbias_core.vision.presets import written

if TYPE_CHECKING:
    from capbias_core.vision.captioners import Captioner

SET_ASIDE_OF = 8  # one in so many: 10 of the 80 percent
SCORING_BATCH = 256
FIRST_ANSWER = UNKNOWN + 1
LEAK = 0.01
MASK = "[MASK]"  # what a captioner reads for a masked word where its tokenizer has no token for that
# Of the photographs on which torchvision's weights were trained.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class PairCorpus:
    """Captions with the pictures of their images.

    sight: (n_images, 3, h, w) bytes, or (n_images, d) vectors of a frozen backbone. image: (n,) index of each caption's
    image. captions: n masked ones, with prompt. vectors: (n, d) of a frozen text encoder, None if words are read.
    """

    sight: np.ndarray
    image: np.ndarray
    captions: Tokens
    vectors: np.ndarray | None = None

    def reader(
        self, network: nn.Module, rows: np.ndarray, vocabulary: dict[str, int], device: torch.device
    ) -> Callable[[np.ndarray], Tensor]:
        """Positions among these rows to the logits (B, C) of a network, which reads (pictures, captions, positions)."""
        sight, image = torch.from_numpy(self.sight), torch.from_numpy(self.image[rows])
        if self.vectors is not None:
            text: Tokens | Tensor = torch.from_numpy(self.vectors[rows]).to(device)
        else:
            text = with_ids(self.captions.rows(rows), vocabulary)
        return lambda chosen: network(sight[image[chosen]].to(device), text, chosen)


@dataclass(frozen=True)
class PairReader(NetworkAttacker):
    """What judges from scratch share. sight, embed: of the images, and captions to vectors (None to read words), as in
    PairCorpus. patience: as many epochs as there are, so that training never stops earlier."""

    learning_rate: float = 3e-4
    batch: int = 128
    epochs: int = 40
    patience: int = 40
    dropout: float = 0.5
    hidden: int = 256
    channels: tuple[int, ...] = (32, 64, 128, 128)
    sight: np.ndarray | None = None
    embed: Callable[[Sequence[str]], np.ndarray] | None = None

    first_answer = 0  # the index of the first value among the logits

    def vocabulary(self, captions: Tokens, n_values: int) -> dict[str, int]:
        """Word -> id, from the captions to train on."""
        return training_vocabulary(captions)

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> nn.Module:
        """An untrained network that reads pictures, captions and the positions of captions."""
        raise NotImplementedError

    def corpus(self, pairs: Sequence[tuple[int, str]]) -> PairCorpus:
        """pairs: the index of an image, and a caption."""
        assert self.sight is not None
        image, captions = zip(*pairs, strict=True)
        vectors = self.embed(captions) if self.embed else None
        return PairCorpus(self.sight, np.array(image), Tokens.read(captions), vectors)

    def train(self, corpus: PairCorpus, training: Training, n_values: int, tick: Progress) -> FittedPair:
        device, aside = choose_device(self.device), set_aside(training.labels, n_values, training.seed)
        split = np.flatnonzero(~aside), np.flatnonzero(aside)
        words = {}
        if corpus.vectors is None:
            words = self.vocabulary(corpus.captions.rows(training.rows[split[0]]), n_values)
        network = initialised(partial(self.network, corpus, words, n_values), training.seed).to(device)

        def batches(rng: np.random.Generator) -> list[np.ndarray]:
            return cut(rng.permutation(len(split[0])), self.batch)

        logits = corpus.reader(network, training.rows, words, device)
        answers = training._replace(labels=training.labels + self.first_answer)
        learn(network, logits, answers, split, batches, self, tick)
        return FittedPair(self, words, network, device, n_values)


def set_aside(labels: np.ndarray, n_values: int, seed: int) -> np.ndarray:
    """(n,) booleans: an eighth of every value, one at least."""
    rng, aside = np.random.default_rng(child_seed(seed, FIT, SET_ASIDE)), np.zeros(len(labels), dtype=bool)
    for value in range(n_values):
        members = rng.permutation(np.flatnonzero(labels == value))
        aside[members[: max(1, round(len(members) / SET_ASIDE_OF))]] = True
    return aside


def value_logits(answers: np.ndarray) -> np.ndarray:
    """(n, K) log-probabilities of the values as they are, or (n, 1) log-odds of the second of two."""
    return answers[:, 1:] - answers[:, :1] if answers.shape[1] == 2 else answers


@dataclass(frozen=True)
class FittedPair:
    """A trained network."""

    reader: PairReader
    vocabulary: dict[str, int]
    network: nn.Module
    device: torch.device
    n_values: int

    @torch.no_grad()
    def logits(self, corpus: PairCorpus, rows: np.ndarray) -> np.ndarray:
        """See `value_logits`."""
        answers = [np.empty((0, self.n_values))]
        for start in range(0, len(rows), SCORING_BATCH):
            part = np.asarray(rows)[start : start + SCORING_BATCH]
            logits = corpus.reader(self.network, part, self.vocabulary, self.device)(np.arange(len(part)))
            logits = logits[:, self.reader.first_answer :][:, : self.n_values]
            answers.append(functional.log_softmax(logits.double(), dim=1).cpu().numpy())
        return value_logits(np.concatenate(answers))


def begin_as_he(network: nn.Module) -> None:
    """Weights of linear layers and convolutions normal with variance 2 / inputs, biases 0."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d) and layer.bias is not None:
            nn.init.normal_(layer.weight, std=math.sqrt(2 / math.prod(layer.weight.shape[1:])))
            nn.init.zeros_(layer.bias)


class ImageEncoder(nn.Module):
    """Convolutions of 3 x 3 with ReLU, each but the last halving the sides. channels: after each of them."""

    def __init__(self, channels: Sequence[int]):
        super().__init__()
        strides = [2] * (len(channels) - 1) + [1]
        self.layers = nn.ModuleList(
            nn.utils.skip_init(nn.Conv2d, before, after, 3, stride, padding=1)
            for (before, after), stride in zip(pairwise((3, *channels)), strides, strict=True)
        )
        self.width = channels[-1]
        begin_as_he(self)

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, 3, H, W) bytes to a vector for each of L cells, (B, L, width)."""
        values = pictures.float() / 127.5 - 1
        for layer in self.layers:
            values = functional.relu(layer(values))
        return values.flatten(2).transpose(1, 2)


class JudgeNetwork(nn.Module):
    """Show, Attend and Tell; see the module's text. words: how many ids there are, answers included."""

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

    def forward(self, sight: Tensor, text: Tokens, rows: np.ndarray) -> Tensor:
        """(B, words) logits of the next word from (B, 3, h, w) pictures and the captions at rows."""
        lengths = torch.from_numpy(text.lengths[rows]).to(sight.device)
        ids = ids_of(text, rows, sight.device)
        cells = self.image_encoder(sight)  # (B, L, seen)
        known = self.of_place(cells)
        state, memory = torch.tanh(self.begin(cells.mean(dim=1))).chunk(2, dim=-1)
        words = self.words(ids)  # (B, T, E)
        attended = torch.zeros_like(cells[:, 0])
        for step in range(ids.shape[1]):
            present = (step < lengths)[:, None]
            context = self._attend(cells, known, state)
            given = torch.cat([words[:, step], context], dim=-1)  # one step of the LSTM
            entered, kept, candidate, shown = (self.input(given) + self.recur(state)).chunk(4, dim=-1)
            new_memory = torch.sigmoid(kept) * memory + torch.sigmoid(entered) * torch.tanh(candidate)
            new_state = torch.sigmoid(shown) * torch.tanh(new_memory)
            # After its last word a caption keeps its state: the answer follows there.
            state, memory, attended = (
                torch.where(present, new, before)
                for new, before in ((new_state, state), (new_memory, memory), (context, attended))
            )
        last = words[torch.arange(len(ids)), lengths - 1]
        return self.answer(self.dropout(last + self.shown(state) + self.attended(attended)))

    def _attend(self, cells: Tensor, known: Tensor, state: Tensor) -> Tensor:
        """(B, seen): the cells by how much the state asks for each, and as much of them as the gate lets in."""
        weights = self.weigh(torch.tanh(known + self.of_state(state)[:, None])).softmax(dim=1)
        return torch.sigmoid(self.gate(state)) * (weights * cells).sum(dim=1)


@dataclass(frozen=True)
class ScratchJudge(PairReader):
    """See the module's text. channels: of the convolutions. hidden: of the LSTM and of the attention."""

    embedding: int = 128

    first_answer = FIRST_ANSWER

    def vocabulary(self, captions: Tokens, n_values: int) -> dict[str, int]:
        """Words of the captions, after an id for each answer, which no caption has as a word."""
        words = training_vocabulary(captions)
        return {word: number if number <= UNKNOWN else number + n_values for word, number in words.items()} | {
            f"answer {value}": FIRST_ANSWER + value for value in range(n_values)
        }

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> JudgeNetwork:
        return JudgeNetwork(len(vocabulary) + 1 + PAD, self)


class JointNetwork(nn.Module):
    """VL-LIC's; see the module's text. image_encoder, text: None for vectors of pictures, or captions. sizes: of the
    head, see `mlp`."""

    def __init__(self, image_encoder: ImageEncoder | None, text: ScratchNetwork | None, *sizes: int):
        super().__init__()
        self.image_encoder, self.text = image_encoder, text
        self.head = mlp(sizes, LEAK)

    def forward(self, sight: Tensor, text: Tokens | Tensor, rows: np.ndarray) -> Tensor:
        """(B, C) logits from (B, ...) pictures and the captions at rows."""
        seen = self.image_encoder(sight).mean(dim=1) if self.image_encoder else sight
        if isinstance(text, Tokens):
            assert self.text is not None
            words = self.text.head(read(self.text.vectors, text, rows, seen.device))
        else:
            words = text[torch.from_numpy(rows)]
        return self.head(torch.cat([seen, words], dim=1))


@dataclass(frozen=True)
class JointJudge(PairReader):
    """See the module's text. text: whose network reads the captions. hidden: of the head."""

    text: ScratchAttacker = LSTM_BI

    def network(self, corpus: PairCorpus, vocabulary: dict[str, int], n_values: int) -> JointNetwork:
        image_encoder = ImageEncoder(self.channels) if corpus.sight.ndim == 4 else None
        seen = image_encoder.width if image_encoder else corpus.sight.shape[1]
        if corpus.vectors is not None:
            return JointNetwork(image_encoder, None, seen + corpus.vectors.shape[1], self.hidden, n_values)
        text = replace(self.text, dropout=self.dropout).network(len(vocabulary) + 1, n_values)
        text.head = nn.Sequential(text.head[0])  # its dropout alone: the joint head reads instead
        return JointNetwork(image_encoder, text, seen + text.width, self.hidden, n_values)


def backbone(name: str, weights: Path, device: torch.device) -> Callable[[np.ndarray], np.ndarray]:
    """(n, 3, size, size) bytes to (n, d) float32: the vectors of a torchvision classifier before its last layer.

    name: in torchvision, such as resnet50. weights: of its state_dict. Raises CapbiasError for an unknown name, or
    weights of another model.
    """
    from torchvision import models

    known = models.list_models(models)
    if name not in known:
        few = ", ".join(name for name in known if name.startswith("resnet"))
        raise CapbiasError(f"torchvision has no classifier {name!r}.", f"It has for example {few}.")
    network = models.get_model(name, weights=None)
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # whatever a wrong file makes PyTorch raise
        raise CapbiasError(
            f"{weights.name} does not hold the weights of torchvision's {name} ({first_line(error)}).",
            "Save them with torch.save(model.state_dict(), FILE), or name the model that the weights are of.",
        ) from None
    last = next(child for child in ("fc", "classifier", "heads", "head") if hasattr(network, child))
    setattr(network, last, nn.Identity())
    network = network.to(device).eval()
    mean, spread = (torch.tensor(values, device=device).view(3, 1, 1) for values in (MEAN, SPREAD))

    @torch.no_grad()
    def vectors(pixels: np.ndarray) -> np.ndarray:
        pictures = torch.from_numpy(pixels).to(device).float() / 255
        return network((pictures - mean) / spread).flatten(1).cpu().numpy()

    return vectors


@dataclass(frozen=True)
class AskedJudge:
    """Any captioner as ImageCaptioner2's judge, also of its own captions (the paper's self-assessment). It is not
    trained. It reads the masked caption with the prompt as if it had written them; P(A) is how likely it finds each
    answer next (the product of its tokens), normalised over the answers."""

    captioner: Captioner
    files: Sequence[Path]  # the photograph of each image
    attribute: Attribute
    prompt: str
    answers: dict = field(default_factory=dict)  # by caption and image: every seed asks the same
    tick: Progress = silent

    def corpus(self, pairs: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        return list(pairs)

    def fit_many(self, corpus, trainings: Sequence[Training], n_values: int, tick: Progress) -> Iterator[AskedJudge]:
        for done in range(len(trainings)):

            def part(share: float, text: str, done=done) -> None:
                tick((done + share) / len(trainings), text)

            yield replace(self, tick=part)

    @torch.no_grad()
    def logits(self, corpus: list[tuple[int, str]], rows: np.ndarray) -> np.ndarray:
        """See `value_logits`."""
        for done, row in enumerate(rows):
            if corpus[row] not in self.answers:
                self.tick(done / len(rows), f"caption {done + 1:,} of {len(rows):,}")
                self.answers[corpus[row]] = self.read(*corpus[row]).cpu().numpy()
        return value_logits(np.stack([self.answers[corpus[row]] for row in rows]))

    def read(self, image: int, caption: str) -> Tensor:
        """(K,) log-probabilities of the answers for a masked caption of an image, by its index."""
        pixels, mask = read_photograph(self.files[image]), self.captioner.tokenizer.mask_token or MASK
        answers = []
        for value in self.attribute.values:
            answer = value.lower()
            text = written(caption, self.attribute, self.prompt, answer, mask)
            scores = self.captioner.token_scores(pixels, text)
            first = len(text.split()) - len(answer.split())
            tokens = [number for number, word in enumerate(scores.words) if word >= first]
            answers.append(scores.log_probabilities[tokens].sum())
        return functional.log_softmax(torch.stack(answers).double(), dim=0)
