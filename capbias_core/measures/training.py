"""Attackers trained for one run, and what they guess on captions that they did not train on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capbias_core import __version__
from capbias_core.aggregate import DIFFERENCE, NOTHING_MORE, Counts, Metric, Needs
from capbias_core.aggregate.counts import from_npz, to_npz
from capbias_core.attackers import load_attacker
from capbias_core.attackers.base import Attacker, Training, probabilities
from capbias_core.data import Data
from capbias_core.databases import byte_cache
from capbias_core.errors import CapbiasError
from capbias_core.metrics.lic import label_probabilities, lic_scores, right_predictions
from capbias_core.metrics.share import difference
from capbias_core.prepare.align import Aligner, constant
from capbias_core.prepare.split import FIT, child_seed, random_order
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress, Split, counted

# Whose captions are read, by attackers trained on the same side or, in the last two, on the other side.
MODEL, HUMAN, MODEL_BY_HUMAN, HUMAN_BY_MODEL = "model", "human", "model_by_human", "human_by_model"
WITH_HUMAN = Needs(references="required")
CHANCE = {"sure": lambda k: 100 / k**2, "right": lambda k: 100 / k, "truth": lambda k: 100 / k}


@dataclass(frozen=True)
class Guesses:
    """Guesses of attackers on images held out, a row for each seed and caption."""

    images: tuple[str, ...]
    seed: np.ndarray  # (n,)
    image: np.ndarray  # (n,) indices of images
    label: np.ndarray  # (n,) codes of values
    probabilities: np.ndarray  # (n, K), rows sum to 1
    training: int = 0  # how many images each attacker was trained on, 0 if none was trained

    def counts(self, side: str, more: Mapping[str, np.ndarray] | None = None) -> Counts:
        """By seed and image: `SIDE captions`, `SIDE right` (right guesses), `SIDE sure` (their confidence, LIC's score)
        and `SIDE truth` (the probability of the label). more: other numbers of rows, (n,), by name."""
        guessed = self.probabilities, self.label
        numbers = {
            "captions": np.ones(len(self.label)),
            "right": right_predictions(*guessed),
            "sure": lic_scores(*guessed),
            "truth": label_probabilities(*guessed),
            **(more or {}),
        }
        seeds, seed_number = np.unique(self.seed, return_inverse=True)
        n_images = len(self.images)
        rows, row = np.unique(seed_number * n_images + self.image, return_inverse=True)
        columns = {f"{side} {name}": np.bincount(row, values, len(rows)) for name, values in numbers.items()}
        label = np.full(n_images, -1)
        label[self.image] = self.label
        return Counts(self.images, label, columns, rows % n_images, seeds[rows // n_images], self.training)


def score(name: str, title: str, source: str, explanation: str, column: str, side: str = MODEL) -> Metric:
    """The mean over the captions of one side. column: of `Guesses.counts`."""
    return Metric(
        *(name, title, 100, CHANCE[column], "lower", (0, 100), source, explanation),
        guessed=True,
        side=side if side in (MODEL, HUMAN) else "",
        needs=NOTHING_MORE if side == MODEL else WITH_HUMAN,
        reads=(f"{side} {column}", f"{side} captions"),
    )


def amplification(
    name: str,
    title: str,
    source: str,
    explanation: str,
    column: str,
    model: str = MODEL,
    human: str = HUMAN,
    training_twice: bool = False,
) -> Metric:
    """The mean of one side minus that of the other."""
    reads = (f"{model} {column}", f"{model} captions", f"{human} {column}", f"{human} captions")
    facts = (name, title, *DIFFERENCE, source, explanation)
    return Metric(*facts, needs=WITH_HUMAN, reads=reads, of=difference, training_twice=training_twice)


@dataclass(frozen=True)
class CaptionList:
    """One caption index of one set on the labelled images."""

    row_of_image: np.ndarray  # (n_images,) the row of each image in masked, -1 for none
    masked: Tokens  # n captions, as an attacker reads them
    kept_at: np.ndarray  # (n,) the position of each caption in the stored set
    unread: int = 0  # of the last list: captions that are in no list

    def rows(self, images: np.ndarray) -> np.ndarray:
        """The rows of these images, without those that have none."""
        rows = self.row_of_image[images]
        return rows[rows >= 0]

    def with_caption(self, images: np.ndarray) -> np.ndarray:
        """Those of these images that have a caption here."""
        return images[self.row_of_image[images] >= 0]

    @property
    def images(self) -> np.ndarray:
        """(n,) index of each caption's image."""
        index, images = np.zeros(len(self.masked), dtype=int), np.flatnonzero(self.row_of_image >= 0)
        index[self.row_of_image[images]] = images
        return index


def caption_lists(
    frame: pd.DataFrame, masked: Sequence[str], images: Sequence[str], y: np.ndarray, k: int
) -> list[CaptionList]:
    """A set as one list for each caption index, as LIC trains one attacker for each.

    masked: (len(frame),) what an attacker reads. An index is used if at least half of the images of each value have
    such a caption; captions beyond are counted as `unread`. The order is that of the images, whatever that of a file.
    """
    image = pd.Index(images, dtype=object).get_indexer(frame["image_id"].to_numpy(dtype=object))
    number, tokens = frame["caption_index"].to_numpy(), Tokens.read(masked)
    lists: list[CaptionList] = []
    for index in np.unique(number[image >= 0]):
        part = np.flatnonzero((number == index) & (image >= 0))
        part = part[np.argsort(image[part], kind="stable")]
        captioned = image[part]
        if lists and (2 * np.bincount(y[captioned], minlength=k) < np.bincount(y, minlength=k)).any():
            lists[-1] = replace(lists[-1], unread=int((image >= 0).sum()) - sum(len(read.masked) for read in lists))
            break
        row_of_image = np.full(len(images), -1)
        row_of_image[captioned] = np.arange(len(part))
        lists.append(CaptionList(row_of_image, tokens.rows(part), frame.index.to_numpy()[part]))
    return lists


def unread_notes(what: str, lists: Sequence[CaptionList]) -> list[str]:
    """A note if captions of a set are in none of its lists. what: whose captions."""
    unread = sum(read.unread for read in lists)
    if not unread:
        return []
    return [
        f"{what[:1].upper()}{what[1:]}: {unread:,} of {unread + sum(len(read.masked) for read in lists):,} are not "
        f"read, since fewer than half of the images of some value have more than {counted(len(lists), 'caption')}."
    ]


def attacker_of(data: Data, options: Any) -> Attacker:
    """The attacker of a run, on the device of its options. Raises CapbiasError if its encoder is missing."""
    model = data.sources.model(options.encoder) if options.encoder else None
    return load_attacker(options.attacker, options.device, model, data.embeddings)


def _kept_guesses(folder: Path):
    """The cache of finished trainings in a folder."""
    return byte_cache(folder / "guesses.sqlite", "finished trainings of a stopped run", "they are then trained again")


@dataclass(frozen=True)
class Case:
    """An attacker to train, and what it reads."""

    captions: CaptionList
    split: Split
    seed: int
    start: int = 0  # of these captions in the corpus
    index: int = 0  # of the list among those of its side
    what: str = "captions"  # whose captions, for the progress

    def rows(self, images: np.ndarray) -> np.ndarray:
        """Indices in the corpus of the captions of these images."""
        return self.start + self.captions.rows(images)


@dataclass
class AttackerTrainer:
    """Trains the attackers of one run and reports how many are done."""

    attacker: Attacker
    k: int  # number of values
    # (n_images,) codes of the values to guess; or (n_images, L) booleans, which of L task words are there
    y: np.ndarray
    images: tuple[str, ...]
    progress: Progress
    fits: int  # how many attackers the run trains
    balanced: bool = True  # read equally many captions of each value
    align: Aligner = constant  # see workspace.vectors.aligner
    sees_images: bool = False  # the attacker gets each caption with the index of its image
    kept: Path | None = None  # a folder for guesses of finished trainings, if a stopped run may go on from them
    done: int = field(default=0, init=False)
    notes: list[str] = field(default_factory=list, init=False)  # for the reader of the run

    @cached_property
    def rank(self) -> np.ndarray:
        """(n_images,) the position of each image in one random order."""
        return np.argsort(random_order(self.images, 0))

    def note_unread(self, what: str, lists: Sequence[CaptionList]) -> None:
        """Notes on captions that the attacker does not read, or not to their end."""
        self.notes += unread_notes(what, lists)
        if cut := getattr(self.attacker, "cut", None):
            captions = [caption for read in lists for caption in read.masked]
            self.notes += [f"{what[:1].upper()}{what[1:]}: {note}" for note in cut(captions)]

    def fit(self, corpus, cases: Sequence[Case]) -> Iterator:
        """The trained attacker of each case, in order."""

        def tick(share: float, text: str) -> None:
            done = share * len(cases)
            number = max(1, math.ceil(round(done, 6)))
            line = f"{cases[number - 1].what}, attacker {before + number} of {self.fits}"
            self.progress((before + done) / self.fits, f"{line}, {text}" if text else line)

        if not cases:
            return
        before, trainings = self.done, []
        for case in cases:
            images = self.balance(case.captions.with_caption(case.split.train))
            trainings.append(Training(case.rows(images), self.y[images], case.seed))
        yield from self.attacker.fit_many(corpus, trainings, self.k, tick)
        self.done += len(cases)

    def balance(self, images: np.ndarray) -> np.ndarray:
        """Equally many of these images of each value, since how many captions an image has must not reveal its value;
        all of them if the protocol does not balance."""
        if not self.balanced:
            return np.sort(images)
        images = images[np.argsort(self.rank[images])]
        groups = [images[self.y[images] == value] for value in range(self.k)]
        size = min(map(len, groups))
        return np.sort(np.concatenate([group[:size] for group in groups]))

    def held_out(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> Guesses:
        """Guesses on the test images of every split; see `logits`."""
        return self._guesses(guessed[1:] for guessed in self.logits(lists, splits, what, align_to))

    def logits(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> Iterator[tuple]:
        """One attacker for each caption index and split: (index, split, images held out, their logits (n, C)).
        align_to: the model's captions, to whose training vocabulary the words are aligned before training."""
        texts, cases = self._cases(lists, splits, what, align_to)
        captions: Any = Tokens.join(texts)
        if self.sees_images:
            captions = list(zip(np.concatenate([read.images for read in lists]), captions, strict=True))
        for case, (guessed,) in zip(cases, self._read(captions, cases, [[case] for case in cases]), strict=True):
            yield case.index, case.split, *guessed

    def crossed(self, model: list[CaptionList], human: list[CaptionList], splits: list[Split]) -> dict[str, Guesses]:
        """Guesses on the test images of every split, by attackers that each read both sides.

        The keys say whose captions are read, and by whom: MODEL and HUMAN by attackers trained on the same side,
        MODEL_BY_HUMAN and HUMAN_BY_MODEL by those of the other. Human captions are aligned to the words of the
        model's training captions.
        """
        more, of_model = self._cases(model, splits, "the model's captions", None)
        texts, of_human = self._cases(human, splits, "the human captions", model)
        start = sum(map(len, texts))
        of_model = [replace(case, start=case.start + start) for case in of_model]
        cases, reads = [*of_model, *of_human], []
        for others, side in ((of_human, of_model), (of_model, of_human)):
            reads += [[case, *(other for other in others if other.split.seed == case.split.seed)] for case in side]
        parts: dict[str, list] = {name: [] for name in (MODEL, HUMAN, MODEL_BY_HUMAN, HUMAN_BY_MODEL)}
        for number, guessed in enumerate(self._read(Tokens.join([*texts, *more]), cases, reads)):
            same, crossed = (MODEL, HUMAN_BY_MODEL) if number < len(of_model) else (HUMAN, MODEL_BY_HUMAN)
            for position, (case, guesses) in enumerate(zip(reads[number], guessed, strict=True)):
                parts[crossed if position else same].append((case.split, *guesses))
        return {name: self._guesses(guessed) for name, guessed in parts.items()}

    def _read(
        self, captions: Any, cases: Sequence[Case], reads: Sequence[Sequence[Case]]
    ) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
        """For each case, of each that its attacker reads, the images held out and the logits (n, C) of their captions.
        Attackers whose logits are kept are not trained again."""
        held_out = [[self.balance(one.captions.with_caption(one.split.test)) for one in read] for read in reads]
        names = self._names(captions, cases, reads) if self.kept else []
        kept: list[list[np.ndarray] | None] = [None] * len(cases)
        if self.kept:
            with suppress(CapbiasError), _kept_guesses(self.kept) as cache:
                known = cache.get(names)
                for number, name in enumerate(names):
                    with suppress(ValueError, LookupError):  # none is kept, or it is damaged
                        kept[number] = list(from_npz(known[name])[1].values())
        self.done += sum(logits is not None for logits in kept)
        corpus = self.attacker.corpus(captions)
        rows = [
            [one.rows(test) for one, test in zip(read, tests, strict=True)]
            for read, tests in zip(reads, held_out, strict=True)
        ]
        fitted = self.fit(corpus, [case for case, logits in zip(cases, kept, strict=True) if logits is None])
        for number, tests in enumerate(held_out):
            logits = kept[number]
            if logits is None:
                attacker = next(fitted)
                logits = [attacker.logits(corpus, rows_read) for rows_read in rows[number]]
                if self.kept:
                    kept_logits = {str(position): each for position, each in enumerate(logits)}
                    # Without it, as on a full disk, a stopped run trains this one again.
                    with suppress(CapbiasError), _kept_guesses(self.kept) as cache:
                        cache.put({names[number]: to_npz(None, **kept_logits)})
            yield list(zip(tests, logits, strict=True))
        next(fitted, None)

    def _names(self, captions: Tokens, cases: Sequence[Case], reads: Sequence[Sequence[Case]]) -> list[str]:
        """A name for each case that says what its attacker learns from and reads."""
        texts = hashlib.sha256(f"{__version__} {self.attacker} {self.k} {list(captions.words)}".encode())
        texts.update(captions.codes.tobytes() + captions.start.tobytes() + self.y.tobytes())
        names = []
        for case, read in zip(cases, reads, strict=True):
            digest = texts.copy()
            for one in read:
                digest.update(f"{one.seed} {one.start} {case.seed}".encode() + one.captions.row_of_image.tobytes())
                digest.update(one.split.train.tobytes() + one.split.test.tobytes())
            names.append(digest.hexdigest()[:32])
        return names

    def _guesses(self, parts: Iterable[tuple[Split, np.ndarray, np.ndarray]]) -> Guesses:
        """parts: a split, the images held out in it, and their logits (n, C)."""
        splits, images, logits = zip(*parts, strict=True)
        seed = np.repeat([split.seed for split in splits], [len(test) for test in images])
        image, scores = np.concatenate(images), np.concatenate([*map(probabilities, logits)])
        return Guesses(self.images, seed, image, self.y[image], scores, len(splits[0].train))

    def _cases(
        self, lists: list[CaptionList], splits: list[Split], what: str, align_to
    ) -> tuple[list[Tokens], list[Case]]:
        """Each caption index and split as a case, and the captions of all of them, aligned for each split."""
        self.note_unread(what, lists)
        alignments = []
        if align_to:  # to the words of the model's training captions
            words = frozenset(word for captions in lists for word in captions.masked.words)
            for split in splits:
                read = (captions.masked.rows(captions.rows(split.train)).words for captions in align_to)
                alignments.append(self.align(words, frozenset().union(*read)))
        texts, cases, start = [], [], 0
        for index, captions in enumerate(lists):
            versions = [alignment.captions(captions.masked) for alignment in alignments] or [captions.masked]
            for number, split in enumerate(splits):
                begin = start + len(captions.masked) * (number if alignments else 0)
                cases.append(Case(captions, split, child_seed(split.seed, FIT, index), begin, index, what))
            texts += versions
            start += len(captions.masked) * len(versions)
        return texts, cases
