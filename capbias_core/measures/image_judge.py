"""What measures share whose judge sees the photograph beside the caption: metrics, inputs, training, rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.aggregate import Counts
from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph
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
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.spec import WITH_REFERENCES
from capbias_core.workspace.store import images_in

LEAST_TO_TRAIN = 40  # images of every value: fewer leave less than 8 to test on
FEW_IMAGES = 2000
PICTURE_SIZE = 64
LOOK, JUDGE = 0.1, 0.9  # shares of a run's time: decoding photographs, then the judges
READERS = 4
AT_ONCE = 64  # photographs decoded before any is handed on; a run that is cancelled stops between
# Attributes that are read from the whole picture, so that ImageCaptioner2 masks none of it.
OF_WHOLE_PICTURES = ("emotion",)
UNMASKED = "unmasked"  # in results, photographs that show the person


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
    """Amplification, and the scores of both sides whose difference it is.

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
    """The inputs of a run. files: photograph of each image, in the order of images. y: (n_images,) codes of labels.

    model, human: captions by caption index. sight: what a judge that is trained sees of the images, as
    `small_pictures` gives it. notes: what was left out.
    """

    images: tuple[str, ...]
    files: tuple[Path, ...]
    y: np.ndarray
    model: list[CaptionList]
    human: list[CaptionList]
    sight: np.ndarray
    notes: tuple[str, ...]


def judge_inputs(job: Job, mask: Callable, size: int = 0, look: Callable | None = None) -> JudgeInputs:
    """The photographs of captioned images, and their captions as a judge reads them.

    mask: captions as written to what is read. size: pixels a side of what a judge from scratch sees, 0 for one that
    reads the files. look: as of `small_pictures`. Raises CapbiasError if no captioned image has a photograph, or there
    are too few to train on, before any is decoded.
    """
    photographs, captioned = job.photographs(), images_in(job.frame)
    references = job.references() if job.spec.references else None
    if references is not None:
        captioned &= images_in(references)
    shown = sorted(captioned & set(photographs))
    if not shown:
        raise CapbiasError(
            f"No photograph, such as {', '.join(sorted(photographs)[:3])}, is of the {len(captioned):,} captioned "
            "images.",
            "Photographs must be named by the image IDs of the captions.",
        )
    sight, refused, notes = np.empty(0), {}, []
    if size:
        _splits(job, shown, True)
        files = {image: photographs[image] for image in shown}
        sight, refused = small_pictures(files, size, lambda share, text: job.progress(LOOK * share, text), look)
    images = [image for image in shown if image not in refused]
    y, k = job.codes(images), len(job.attribute.values)
    sides = [(job.frame, job.tokens(job.frame))]
    if references is not None:
        sides.append((references, job.reference_tokens(references)))
    model, human = [*(caption_lists(frame, mask(tokens), images, y, k) for frame, tokens in sides), []][:2]
    if len(shown) < len(captioned):
        lacking = len(captioned) - len(shown)
        notes.append(f"{lacking:,} of {len(captioned):,} labelled images with captions have no photograph.")
    if refused:
        notes.append(f"{len(refused):,} photographs left out, such as {'; '.join(list(refused.values())[:3])}.")
    notes += [*unread_notes("the model's captions", model), *unread_notes("the human captions", human)]
    files = tuple(photographs[image] for image in images)
    return JudgeInputs(tuple(images), files, y, model, human, sight, tuple(notes))


def small_pictures(
    files: Mapping[str, Path],
    size: int,
    tick: Callable[[float, str], None],
    look: Callable[[np.ndarray], np.ndarray] | None = None,
) -> tuple[np.ndarray, dict[str, str]]:
    """Every photograph as a square of `size` pixels a side, its sides stretched: (n, 3, size, size) uint8, by image id,
    without broken ones; and why those are left out, by image.

    tick: called with the share done and a short text. look: makes (n, d) vectors of some pictures, so that only those
    are kept; None keeps the pixels.
    """

    def small(image: str) -> np.ndarray | CapbiasError:
        try:
            pixels = read_photograph(files[image])
        except MissingExtra:
            raise
        except CapbiasError as error:
            return error
        from PIL import Image

        picture = Image.fromarray(pixels)
        return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1)

    images, parts, refused = sorted(files), [], {}
    for start in range(0, len(images), AT_ONCE):
        part = images[start : start + AT_ONCE]
        tick(start / len(images), f"photograph {start + 1:,} of {len(images):,}")
        with ThreadPoolExecutor(READERS) as pool:
            read = list(pool.map(small, part))
        refused |= {image: own.message for image, own in zip(part, read, strict=True) if isinstance(own, CapbiasError)}
        pixels = [own for own in read if not isinstance(own, CapbiasError)]
        if pixels:
            parts.append(look(np.stack(pixels)) if look else np.stack(pixels))
    return np.concatenate(parts) if parts else np.empty((0, 3, size, size), np.uint8), refused


def _splits(job: Job, images: Sequence[str], trained: bool) -> list[Split]:
    """One split per seed, balanced: the judge sets an eighth of the training images aside; without training all are
    tested, as many of every value.

    Raises CapbiasError for too few images.
    """
    y, k, images = job.codes(list(images)), len(job.attribute.values), list(images)
    counts = np.bincount(y, minlength=k)
    if trained and counts.min() < LEAST_TO_TRAIN:
        each = ", ".join(f"{value} {count:,}" for value, count in zip(job.attribute.values, counts, strict=True))
        raise CapbiasError(
            f"A judge needs {LEAST_TO_TRAIN} labelled photographs with captions of each value to train on, but of the "
            f"{len(images):,} there are {each}.",
            "Load more photographs, or use a pretrained captioner, which is not trained.",
            "judge",
        )
    if trained:
        return [balanced_split(y, k, seed, job.options.test_share, images) for seed in job.spec.seeds]
    if not counts.min():
        raise CapbiasError("One of the values has no labelled photograph.", "Load photographs of each value.")
    splits = []
    for seed in job.spec.seeds:
        order = random_order(images, child_seed(seed, SPLIT))
        held = np.concatenate([order[y[order] == value][: counts.min()] for value in range(k)])
        splits.append(Split(seed=seed, train=np.empty(0, dtype=int), test=np.sort(held)))
    return splits


class JudgeTrainer(AttackerTrainer):
    """A trainer whose attackers are given each caption with the index of its image."""

    def _cases(self, lists, splits, align_to):
        texts, cases = super()._cases(lists, splits, None)
        images = np.concatenate([captions.images for captions in lists])
        return list(zip(images, texts, strict=True)), cases


def judged(
    job: Job,
    metrics: Mapping[str, Metric],
    inputs: JudgeInputs,
    judge: Any,
    method: str,
    trained: bool = True,
    **columns: str,
) -> Outcome:
    """A judge for each seed and caption index on the model's captions and, if there are any, the human ones: rows,
    held-out answers and notes. judge: an attacker. columns: further ones, encoder among them."""
    splits = _splits(job, inputs.images, trained)
    sides = {MODEL: (inputs.model, "the model's captions"), HUMAN: (inputs.human, "the human captions")}
    fits = len(splits) * sum(len(lists) for lists, _ in sides.values())

    def progress(share: float, text: str) -> None:
        job.progress(LOOK + JUDGE * share, text)

    trainer = JudgeTrainer(judge, len(job.attribute.values), inputs.y, inputs.images, progress, fits)
    parts = [trainer.held_out(lists, splits, what).counts(side) for side, (lists, what) in sides.items() if lists]
    counts = Counts.merge(parts)
    train, test, name = len(splits[0].train), len(splits[0].test), job.options.photographs["name"]
    sizes = f"{train}/{test} balanced images" if train else f"{test} balanced images"
    shown = photographs_shown(job.attribute.name, name)
    columns = {"photographs": shown, **columns}
    rows = job.rows(metrics.values(), counts, f"{sizes}; {method}; std over seeds", n=test, **columns)
    notes = list(inputs.notes)
    if shown == UNMASKED:
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
        of = f"Only {len(inputs.images):,} of the {len(job.labels):,} labelled images"
        notes.append(f"{of} have captions, references and a photograph.")
    return Outcome(rows, {}, tuple(notes), counts={"": counts})


def photographs_shown(attribute: str, name: str) -> str:
    """How results call the photographs: the name of the masked ones, `unmasked`, or '' if none need be masked."""
    if name != ORIGINALS:
        return name
    return "" if attribute in OF_WHOLE_PICTURES else UNMASKED
