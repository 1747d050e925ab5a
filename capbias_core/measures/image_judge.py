"""What measures share whose judge sees the photograph beside the caption: metrics, inputs, training, rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from capbias_core.aggregate import Counts
from capbias_core.attackers.base import Attacker
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Metric, Outcome
from capbias_core.measures.options import Photographed, Split80, Trained, option
from capbias_core.measures.training import (
    HUMAN,
    MODEL,
    AttackerTrainer,
    CaptionList,
    amplification,
    caption_lists,
    score,
    unread_notes,
)
from capbias_core.prepare import balanced_split
from capbias_core.prepare.split import SPLIT, child_seed, random_order
from capbias_core.types import Split
from capbias_core.vision.pictures import Pictures, small_pictures
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.spec import WITH_REFERENCES
from capbias_core.workspace.store import images_in

if TYPE_CHECKING:
    from capbias_core.vision.image_text_training import PairCorpus, PairReader

LEAST_TO_TRAIN = 40  # images of every value: fewer leave less than 8 to test on
FEW_IMAGES = 2000
PICTURE_SIZE = 64
LOOK, JUDGE = 0.1, 0.9  # shares of a run's time: decoding photographs, then the judges
# Attributes that are read from the whole picture, so that ImageCaptioner2 masks none of it.
OF_WHOLE_PICTURES = ("emotion",)
# What results say of photographs that show the person.
UNMASKED = "unmasked"


@dataclass(frozen=True)
class JudgeTraining(Split80, Trained, Photographed):
    """Choices of a measure whose judge sees the photographs. judge_epochs, picture_size: None for the usual."""

    picture_size: int | None = option(
        None,
        f"pixels per side of the pictures that a judge is trained on (if not said: {PICTURE_SIZE}; 224 for a backbone)",
        flag="--picture-size",
        at_least=1,
        metavar="PIXELS",
    )
    judge_epochs: int | None = option(
        None,
        "epochs of a judge's training (if not said: 40; a captioner of transformers is used zero-shot)",
        flag="--judge-epochs",
        at_least=1,
        metavar="N",
    )


def three_metrics(name: str, title: str, source: str, column: str, what: str) -> tuple[Metric, ...]:
    """Amplification, and the scores of both sides that it is the difference of.

    column: of `Guesses.counts`. what: the first sentence on each."""
    explanation = (
        f"{what} Of the model's captions minus of the human ones: above 0, the photograph and the model's caption tell "
        "more of the labelled value than the photograph and a human caption do."
    )
    of_model, of_human = f"{what} On the model's masked captions.", f"{what} On the masked human captions."
    return (
        amplification(name, f"{title}, bias amplification", source, explanation, column),
        score(f"{name}_M", f"{title} of the model's captions", source, of_model, column),
        score(f"{name}_D", f"{title} of the human captions", source, of_human, column, HUMAN),
    )


@dataclass(frozen=True)
class JudgeInputs:
    """The inputs of a run. files: photograph of each image, in the order of images. y: (n_images,) places of labels.

    model, human: captions by caption index. notes: what was left out.
    """

    images: tuple[str, ...]
    files: tuple[Path, ...]
    y: np.ndarray
    model: list[CaptionList]
    human: list[CaptionList]
    notes: tuple[str, ...]

    @property
    def lists(self) -> list[list[CaptionList]]:
        return [side for side in (self.model, self.human) if side]


def photographed(job: Job) -> dict[str, Path]:
    """The photograph of each labelled image with captions and, given references, human ones.

    Raises CapbiasError if no image has a photograph.
    """
    files, captioned = job.photographs(), _captioned(job)
    shown = {image: files[image] for image in sorted(captioned & set(files))}
    if not shown:
        raise CapbiasError(
            f"No photograph, such as {', '.join(sorted(files)[:3])}, is of the {len(captioned):,} captioned images.",
            "Photographs must be named by the image IDs of the captions.",
        )
    return shown


def pictures_of(job: Job, size: int, look: Callable | None = None) -> tuple[dict[str, Path], Pictures]:
    """The photographs of a run's images and what a judge that is trained sees of them, in the same order.

    look: as of `small_pictures`. Raises CapbiasError for too few of them before any is decoded.
    """
    files = photographed(job)
    splits_of(job, list(files), True)
    return files, small_pictures(files, size, lambda share, text: job.progress(LOOK * share, text), look)


def _captioned(job: Job) -> set[str]:
    captioned = images_in(job.frame)
    return captioned & images_in(job.references()) if job.spec.references else captioned


def judge_inputs(job: Job, files: dict[str, Path], mask: Callable, broken: dict[str, str]) -> JudgeInputs:
    """The captions of images with a photograph, as a judge reads them.

    files: as `photographed` gives them. mask: captions as written to what is read. broken: why photographs are left
    out, by image.
    """
    images = [image for image in files if image not in broken]
    y, k = job.codes(images), len(job.attribute.values)
    model = caption_lists(job.frame, mask(job.tokens(job.frame)), images, y, k)
    human = []
    if job.spec.references:
        frame = job.references()
        human = [caption_lists(frame, mask(job.reference_tokens(frame)), images, y, k)]
    notes = (
        *_left_out(len(_captioned(job)), len(files), broken),
        *unread_notes("the model's captions", model),
        *(note for own in human for note in unread_notes("the human captions", own)),
    )
    return JudgeInputs(
        tuple(images), tuple(files[image] for image in images), y, model, human[0] if human else [], notes
    )


def _left_out(captioned: int, shown: int, broken: dict[str, str]) -> tuple[str, ...]:
    notes = []
    if shown < captioned:
        notes.append(f"{captioned - shown:,} of {captioned:,} labelled images with captions have no photograph.")
    if broken:
        first = "; ".join(list(broken.values())[:3])
        notes.append(f"{len(broken):,} photographs left out, such as {first}.")
    return tuple(notes)


def splits_of(job: Job, images: Sequence[str], trained: bool) -> list[Split]:
    """One split per seed, balanced: the judge sets an eighth of the training images aside; without training all are
    tested.

    Raises CapbiasError for too few images.
    """
    y, k, images = job.codes(list(images)), len(job.attribute.values), list(images)
    if not trained:
        return [_everything(y, k, seed, images) for seed in job.spec.seeds]
    counts = np.bincount(y, minlength=k)
    if counts.min() < LEAST_TO_TRAIN:
        each = ", ".join(f"{value} {count:,}" for value, count in zip(job.attribute.values, counts, strict=True))
        raise CapbiasError(
            f"A judge needs {LEAST_TO_TRAIN} labelled photographs with captions of each value to train on, but of the "
            f"{len(images):,} there are {each}.",
            "Load more photographs, or use a pretrained captioner, which is not trained.",
            "judge",
        )
    return [balanced_split(y, k, seed, job.options.test_share, images) for seed in job.spec.seeds]


def _everything(y: np.ndarray, k: int, seed: int, images: list[str]) -> Split:
    """Equally many images of every value, the first of the seed's order, all of them held out."""
    order = random_order(images, child_seed(seed, SPLIT))
    groups = [order[y[order] == value] for value in range(k)]
    size = min(map(len, groups))
    if not size:
        raise CapbiasError("One of the values has no labelled photograph.", "Load photographs of each value.")
    held = np.concatenate([group[:size] for group in groups])
    return Split(seed=seed, train=np.empty(0, dtype=int), test=np.sort(held))


class JudgeTrainer(AttackerTrainer):
    """A trainer whose attackers are given each caption with the place of its image."""

    def _cases(self, lists, splits, align_to):
        texts, cases = super()._cases(lists, splits, None)
        places = np.concatenate([captions.images for captions in lists])
        return list(zip(places, texts, strict=True)), cases


@dataclass(frozen=True)
class ImageJudge:
    """A judge from scratch as an attacker of captions with places of images.

    sight, embed: as of PairCorpus: of the images, and what makes vectors of captions (None where words are read).
    """

    reader: PairReader
    sight: np.ndarray
    embed: Callable[[Sequence[str]], np.ndarray] | None = None

    def corpus(self, pairs: Sequence[tuple[int, str]]) -> PairCorpus:
        from capbias_core.vision.image_text_training import PairCorpus

        places, captions = zip(*pairs, strict=True)
        vectors = self.embed(captions) if self.embed else None
        return PairCorpus(self.sight, np.array(places), list(captions), vectors)

    def fit(self, *given):
        return self.reader.fit(*given)

    def fit_many(self, *given):
        return self.reader.fit_many(*given)


def held_out(job: Job, found: JudgeInputs, splits: list[Split], attacker: Attacker[tuple[int, str]]) -> Counts:
    """The answers of the judges on the model's captions, and on the human ones where there are any."""
    fits = len(splits) * sum(map(len, found.lists))

    def progress(share: float, text: str) -> None:
        job.progress(LOOK + JUDGE * share, text)

    trainer = JudgeTrainer(attacker, len(job.attribute.values), found.y, found.images, progress, fits)
    sides = {MODEL: (found.model, "the model's captions"), HUMAN: (found.human, "the human captions")}
    parts = [trainer.held_out(own, splits, what).counts(side) for side, (own, what) in sides.items() if own]
    return Counts.merge(parts)


def outcome(
    job: Job,
    metrics: Mapping[str, Metric],
    found: JudgeInputs,
    splits: list[Split],
    counts: Counts,
    method: str,
    **columns: str,
) -> Outcome:
    """Rows of these metrics, held-out answers and notes of a run. columns: further ones, encoder among them."""
    test, trained = len(splits[0].test), bool(len(splits[0].train))
    sizes = f"{len(splits[0].train)}/{test} balanced images" if trained else f"{test} balanced images"
    method = f"{sizes}; {method}; std over seeds"
    columns = {"photographs": photographs_shown(job), **columns}
    rows = job.rows(metrics.values(), counts, method, n=test, **columns)
    notes = (*found.notes, *_notes(job, splits[0], len(found.images)))
    return Outcome(rows, {}, notes, counts={"": counts})


def photographs_shown(job: Job) -> str:
    """What results say of the photographs: the name of the masked ones, `unmasked`, or nothing if none need be."""
    name = job.options.photographs["name"]
    if name != ORIGINALS:
        return name
    return "" if job.attribute.name in OF_WHOLE_PICTURES else UNMASKED


def _notes(job: Job, split: Split, images: int) -> tuple[str, ...]:
    notes, train, test = [], len(split.train), len(split.test)
    if photographs_shown(job) == UNMASKED:
        notes.append(
            f"The photographs are not masked: they show the person, so the judge sees {job.attribute.name} itself. The "
            "paper masks them. Mask photographs first, and name the masked ones."
        )
    if train:
        notes.append(
            f"{train:,} images to train on, an eighth of them set aside to choose the epoch, and {test:,} to "
            "test, equally many of every value."
        )
    if train and train + test < FEW_IMAGES:
        notes.append(
            f"Few images: {train + test:,} after balancing, where the paper has some 6,600. Expect wide "
            "intervals, and a judge that learns little."
        )
    if job.spec.coverage == WITH_REFERENCES:
        of = f"Only {images:,} of the {len(job.labels):,} labelled images"
        notes.append(f"{of} have captions, references and a photograph.")
    return tuple(notes)
