"""Training attackers on one set: a list of captions for each caption index, a fit for each split."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.attackers import load_attacker
from capbias_core.attackers.base import Attacker, CutsCaptions, fit_many, probabilities
from capbias_core.language.files import ModelFiles
from capbias_core.measures.base import Job
from capbias_core.measures.guesses import HUMAN, MODEL, Guesses
from capbias_core.prepare import child_seed, vocabulary
from capbias_core.prepare.align import Aligner, aligned_lists, constant
from capbias_core.prepare.ngrams import ngrams_of
from capbias_core.prepare.split import FIT, random_order
from capbias_core.types import Progress, Split, counted
from capbias_core.workspace.models import embeddings_folder, model_path

# Whose captions are read, and by attackers trained on whose if on the other side's; `AttackerTrainer.crossed`.
MODEL_BY_HUMAN, HUMAN_BY_MODEL = "model_by_human", "human_by_model"


@dataclass(frozen=True)
class CaptionList:
    """One caption index of one set on the labelled images: row of each image (-1 where it has none), and texts.

    kept_at: where each caption stands in the set as kept. unread: of the last index, how many captions have a further
    one, so that they are in no list.
    """

    row_of_image: np.ndarray
    masked: list[str]
    kept_at: np.ndarray
    unread: int = 0

    def rows(self, images: np.ndarray) -> np.ndarray:
        rows = self.row_of_image[images]
        return rows[rows >= 0]

    def having(self, images: np.ndarray) -> np.ndarray:
        return images[self.row_of_image[images] >= 0]

    @property
    def images(self) -> np.ndarray:
        """(n,) place of each caption's image."""
        found, having = np.zeros(len(self.masked), dtype=int), np.flatnonzero(self.row_of_image >= 0)
        found[self.row_of_image[having]] = having
        return found


def caption_lists(
    frame: pd.DataFrame, images: Sequence[str], y: np.ndarray, k: int, mask: Callable[[Iterable[str]], list[str]]
) -> list[CaptionList]:
    """A set as one list of masked captions for each caption index, as LIC trains one attacker an index.

    mask: captions as written to what an attacker reads. An index is used where at least half of the images of every
    value have it; the captions beyond are counted as `unread`. Captions stand in the order of their images, whatever
    the order of a file.
    """
    image = pd.Index(images, dtype=object).get_indexer(frame["image_id"].to_numpy(dtype=object))
    number, captions = frame["caption_index"].to_numpy(), frame["caption"].to_numpy(dtype=object)
    lists = []
    for own in np.unique(number[image >= 0]):
        part = np.flatnonzero((number == own) & (image >= 0))
        part = part[np.argsort(image[part], kind="stable")]
        having = image[part]
        if lists and (2 * np.bincount(y[having], minlength=k) < np.bincount(y, minlength=k)).any():
            lists[-1] = replace(lists[-1], unread=int((image >= 0).sum()) - sum(len(known.masked) for known in lists))
            break
        row_of_image = np.full(len(images), -1)
        row_of_image[having] = np.arange(len(part))
        lists.append(CaptionList(row_of_image, mask(captions[part].tolist()), frame.index.to_numpy()[part]))
    return lists


def unread_notes(what: str, lists: Sequence[CaptionList]) -> list[str]:
    """A note on the captions of a set that are in none of its lists, if any. what: whose captions."""
    unread = sum(own.unread for own in lists)
    if not unread:
        return []
    return [
        f"{what[:1].upper()}{what[1:]}: {unread:,} of {unread + sum(len(own.masked) for own in lists):,} are not read, "
        f"since fewer than half of the images of some value have more than {counted(len(lists), 'caption')}."
    ]


def attacker_of(job: Job) -> Attacker[str]:
    """The attacker of a run, on the device that was asked for. Raises CapbiasError where its encoder is gone."""
    options, model = job.options, None
    if option := options.encoder:
        model = ModelFiles(option["name"], model_path(job.workspace, option), option["digest"])
    return load_attacker(options.attacker, options.device, model, embeddings_folder(job.workspace))


@dataclass(frozen=True)
class Case:
    """One attacker to train: on which captions, which start at a place of the corpus, and on which images."""

    captions: CaptionList
    split: Split
    seed: int
    start: int = 0
    index: int = 0

    def rows(self, images: np.ndarray) -> np.ndarray:
        """Places in the corpus of the captions of these images."""
        return self.start + self.captions.rows(images)


class AttackerTrainer:
    """Trains the attackers of one run and counts how many are done. notes: what its reader must know.

    y: (n_images,) places of the values to guess, k of them; or (n_images, L) booleans, which of L task words are there
    (k is then not read). balanced: read equally many captions of every value. align: how human words become the
    model's; see workspace.vectors.aligner.
    """

    def __init__(
        self,
        attacker: Attacker,
        k: int,
        y: np.ndarray,
        images: tuple[str, ...],
        progress: Progress,
        fits: int,
        balanced: bool = True,
        align: Aligner = constant,
    ):
        self.attacker, self.k, self.y, self.images, self.progress, self.fits = attacker, k, y, images, progress, fits
        self.balanced, self.align = balanced, align
        self.place = np.argsort(random_order(images, 0))
        self.done = 0
        self.notes: list[str] = []

    def note_unread(self, what: str, lists: Sequence[CaptionList]) -> None:
        """Notes of captions how many the attacker does not read, or not to their end, if any."""
        self.notes += unread_notes(what, lists)
        if isinstance(self.attacker, CutsCaptions):
            captions = [caption for own in lists for caption in own.masked]
            self.notes += [f"{what[:1].upper()}{what[1:]}: {note}" for note in self.attacker.cut(captions)]

    def fit(self, corpus, cases: Sequence[Case], what: str) -> Iterator:
        """The trained attacker of each case, in order; several train side by side if their kind can."""
        before, together = self.done, len(cases) > 1 and getattr(self.attacker, "fit_many", None)

        def tick(share: float, text: str) -> None:
            done = share * len(cases)
            own = f"attackers {before + 1} to {before + len(cases)}"
            one = f"attacker {before + max(1, math.ceil(round(done, 6)))}"
            where = f"{what}, {own if together else one} of {self.fits}"
            self.progress((before + done) / self.fits, f"{where}, {text}" if text else where)

        images = [self.even(case.captions.having(case.split.train)) for case in cases]
        rows = [case.rows(own) for case, own in zip(cases, images, strict=True)]
        seeds = [case.seed for case in cases]
        yield from fit_many(self.attacker, corpus, rows, [self.y[own] for own in images], self.k, seeds, tick)
        self.done += len(cases)

    def even(self, images: np.ndarray) -> np.ndarray:
        """Equally many of these images of every value: how many captions an image has must not tell its value.

        All of them, where the protocol does not balance.
        """
        if not self.balanced:
            return np.sort(images)
        images = images[np.argsort(self.place[images])]
        groups = [images[self.y[images] == value] for value in range(self.k)]
        size = min(map(len, groups))
        return np.sort(np.concatenate([group[:size] for group in groups]))

    def held_out(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> Guesses:
        """Predictions on the test images of every split; see `logits`."""
        parts = ((split, test, logits) for _, split, test, logits in self.logits(lists, splits, what, align_to))
        return self._guesses(parts)

    def _guesses(self, parts: Iterable[tuple[Split, np.ndarray, np.ndarray]]) -> Guesses:
        """Predictions from parts: a split, images held out in it, their logits (n, C)."""
        splits, images, logits = zip(*parts, strict=True)
        seed = np.repeat([split.seed for split in splits], [len(own) for own in images])
        image, scores = np.concatenate(images), np.concatenate([*map(probabilities, logits)])
        return Guesses(self.images, seed, image, self.y[image], scores, len(splits[0].train))

    def crossed(self, model: list[CaptionList], human: list[CaptionList], splits: list[Split]) -> dict[str, Guesses]:
        """Predictions on the test images of every split, by attackers that each read both sides.

        The keys name the captions that are read, and who reads them: MODEL and HUMAN by attackers trained on the same
        side, MODEL_BY_HUMAN and HUMAN_BY_MODEL by those of the other. Human captions are aligned to the words of the
        model's training captions.
        """
        sides = {"the model's captions": model, "the human captions": human}
        for what, lists in sides.items():
            self.note_unread(what, lists)
        texts, of_human = self._cases(human, splits, model)
        more, of_model = self._cases(model, splits, None)
        of_model = [replace(case, start=case.start + len(texts)) for case in of_model]
        corpus = self.attacker.corpus([*texts, *more])
        parts: dict[str, list] = {name: [] for name in (MODEL, HUMAN, MODEL_BY_HUMAN, HUMAN_BY_MODEL)}
        for what, cases, others, own, other in (
            ("the model's captions", of_model, of_human, MODEL, HUMAN_BY_MODEL),
            ("the human captions", of_human, of_model, HUMAN, MODEL_BY_HUMAN),
        ):
            for case, fitted in zip(cases, self.fit(corpus, cases, what), strict=True):
                read = [(own, case), *((other, one) for one in others if one.split.seed == case.split.seed)]
                for name, one in read:
                    test = self.even(one.captions.having(one.split.test))
                    parts[name].append((one.split, test, fitted.logits(corpus, one.rows(test))))
        return {name: self._guesses(found) for name, found in parts.items()}

    def logits(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> Iterator[tuple]:
        """One attacker a caption index and split: (index, split, images held out, their logits (n, C)).

        align_to: the model's captions, to whose training vocabulary the words are aligned before training.
        """
        self.note_unread(what, lists)
        texts, cases = self._cases(lists, splits, align_to)
        corpus = self.attacker.corpus(texts)
        for case, fitted in zip(cases, self.fit(corpus, cases, what), strict=True):
            test = self.even(case.captions.having(case.split.test))
            yield case.index, case.split, test, fitted.logits(corpus, case.rows(test))

    def _cases(self, lists: list[CaptionList], splits: list[Split], align_to) -> tuple[Sequence[object], list[Case]]:
        """Every caption index and split as a case, and the texts of all of them, which are aligned for each split."""
        texts, cases = [], []
        alignments = self._alignments(lists, splits, align_to) if align_to else []
        for index, captions in enumerate(lists):
            versions = aligned_lists(captions.masked, alignments) if align_to else [captions.masked]
            starts = []
            for version in versions:
                starts.append(len(texts))
                texts += version
            for split, start in zip(splits, starts if align_to else starts * len(splits), strict=True):
                cases.append(Case(captions, split, child_seed(split.seed, FIT, index), start, index))
        return texts, cases

    def _alignments(self, lists: list[CaptionList], splits: list[Split], align_to: list[CaptionList]):
        """For each split, the Alignment of the words of these captions to those of the model's training captions."""
        words = vocabulary(text for own in lists for text in own.masked)
        known = [set() for _ in splits]
        for own in align_to:
            found = ngrams_of(own.masked, pairs=False)
            terms = np.array(found.terms, dtype=object)
            for split, theirs in zip(splits, known, strict=True):
                trained = np.zeros(len(own.masked))
                trained[own.rows(split.train)] = 1
                theirs.update(terms[found.matrix.T @ trained > 0])
        return [self.align(words, frozenset(own)) for own in known]
