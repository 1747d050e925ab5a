"""Training attackers on one set: a list of captions for each caption index, a fit for each split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.attackers import load_attacker
from capbias_core.attackers.base import Attacker, probabilities
from capbias_core.attackers.device import AUTO
from capbias_core.experiments.families.base import Progress
from capbias_core.experiments.plan import RunSpec
from capbias_core.metrics import HeldOut
from capbias_core.prepare import child_seed, vocabulary
from capbias_core.prepare.align import Aligner, constant
from capbias_core.prepare.split import FIT, random_order
from capbias_core.types import Split


@dataclass(frozen=True)
class CaptionList:
    """One caption index of one set on the labelled images: row of each image (-1 where it has none), and texts.

    kept_at: where each caption stands in the set as kept.
    """

    row_of_image: np.ndarray
    masked: list[str]
    kept_at: np.ndarray

    def rows(self, images: np.ndarray) -> np.ndarray:
        rows = self.row_of_image[images]
        return rows[rows >= 0]

    def having(self, images: np.ndarray) -> np.ndarray:
        return images[self.row_of_image[images] >= 0]


def caption_lists(
    frame: pd.DataFrame, images: list[str], y: np.ndarray, k: int, mask: Callable[[Iterable[str]], list[str]]
) -> list[CaptionList]:
    """A set as one list of masked captions for each caption index, as LIC trains one attacker an index.

    mask: captions as written to what an attacker reads. An index is used where at least half of the images of every
    value have it; the captions beyond are left out.
    """
    code = pd.Series(range(len(images)), index=images)
    frame = frame[frame["image_id"].isin(code.index)]
    lists = []
    for _, part in frame.groupby("caption_index", sort=True):
        having = code[part["image_id"]].to_numpy()
        if lists and (2 * np.bincount(y[having], minlength=k) < np.bincount(y, minlength=k)).any():
            break
        row_of_image = np.full(len(images), -1)
        row_of_image[having] = np.arange(len(part))
        lists.append(CaptionList(row_of_image, mask(part["caption"]), part.index.to_numpy()))
    return lists


def attacker_of(spec: RunSpec) -> Attacker:
    """The attacker of a run, on the device that was asked for."""
    return load_attacker(spec.attacker, spec.options.get("device", AUTO))


class Crew:
    """Trains the attackers of one run and counts how many are done.

    y: (n_images,) places of the values to guess, k of them; or (n_images, L) booleans, which of L task words are there
    (k is then not read). balanced: read equally many captions of every value. align: how human words become the
    model's; see experiments.vectors.aligner.
    """

    def __init__(
        self, spec: RunSpec, k: int, y: np.ndarray, images: tuple[str, ...], progress: Progress, fits: int,
        balanced: bool = True, align: Aligner = constant,
    ):  # fmt: skip
        self.spec, self.k, self.y, self.images, self.progress, self.fits = spec, k, y, images, progress, fits
        self.balanced, self.align = balanced, align
        self.attacker = attacker_of(spec)
        self.place = np.argsort(random_order(images, 0))
        self.done = 0

    def fit(self, corpus, captions: CaptionList, train: np.ndarray, seed: tuple[int, ...], what: str):
        """One attacker, trained on the captions of the training images. seed: the run's, and whose child it is."""

        def tick(share: float, text: str) -> None:
            where = f"{what}, attacker {self.done + 1} of {self.fits}"
            self.progress((self.done + share) / self.fits, f"{where}, {text}" if text else where)

        images = self.even(captions.having(train))
        fitted = self.attacker.fit(corpus, captions.rows(images), self.y[images], self.k, child_seed(*seed), tick)
        self.done += 1
        return fitted

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

    def held_out(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> HeldOut:
        """Predictions on the test images of every split; see `logits`."""
        parts = [
            (np.full(len(test), split.seed), test, probabilities(logits))
            for _, split, test, logits in self.logits(lists, splits, what, align_to)
        ]
        seed, image, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
        return HeldOut(self.images, seed, image, self.y[image], scores)

    def logits(self, lists: list[CaptionList], splits: list[Split], what: str, align_to=None) -> Iterator[tuple]:
        """One attacker a caption index and split: (index, split, images held out, their logits (n, C)).

        align_to: the model's captions, to whose training vocabulary the words are aligned before training.
        """
        alignments = self._alignments(lists, splits, align_to) if align_to else []
        for index, captions in enumerate(lists):
            corpus = None if align_to else self.attacker.corpus(captions.masked)
            for number, split in enumerate(splits):
                if align_to:
                    corpus = self.attacker.corpus(alignments[number].captions(captions.masked))
                fitted = self.fit(corpus, captions, split.train, (split.seed, FIT, index), what)
                test = self.even(captions.having(split.test))
                yield index, split, test, fitted.logits(corpus, captions.rows(test))

    def _alignments(self, lists: list[CaptionList], splits: list[Split], align_to: list[CaptionList]):
        """For each split, the Alignment of the words of these captions to those of the model's training captions."""
        words = vocabulary(text for own in lists for text in own.masked)
        known = [vocabulary(text for own in align_to for text in _texts(own, split.train)) for split in splits]
        return [self.align(words, own) for own in known]


def _texts(captions: CaptionList, images: np.ndarray) -> list[str]:
    return [captions.masked[row] for row in captions.rows(images)]
