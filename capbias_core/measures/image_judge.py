"""What families share whose judge sees the photograph beside the caption: their images, captions, training and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from capbias_core.attackers.base import Attacker
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import WITH_REFERENCES, Job, Outcome
from capbias_core.measures.lic import estimates_of, held_out_bytes, held_out_from
from capbias_core.measures.training import AttackerTrainer, CaptionList, caption_lists
from capbias_core.metrics import METRICS, HeldOut, run_family
from capbias_core.prepare import balanced_split
from capbias_core.prepare.split import SPLIT, child_seed, random_order
from capbias_core.types import Split
from capbias_core.vision.pictures import Pictures, small_pictures
from capbias_core.workspace.photographs import ORIGINALS, PHOTOGRAPHS
from capbias_core.workspace.store import RunRow, Workspace

if TYPE_CHECKING:
    from capbias_core.vision.image_text_training import PairCorpus, PairReader

TEST_SHARE = 0.2  # 70 / 10 / 20: the judge itself sets the 10 aside, of what it is given to train on
LEAST_TO_TRAIN = 40  # images of every value: fewer leave less than 8 to test on
FEW_IMAGES = 2000
PICTURE_SIZE = 64
LOOK, JUDGE = 0.1, 0.9  # shares of a run's time: decoding photographs, then the judges
# Attributes that are read from the whole picture, so that ImageCaptioner2 masks none of it.
OF_WHOLE_PICTURES = ("emotion",)
UNMASKED = "unmasked"


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
    """The photograph of each labelled image with captions and, where there are references, human ones.

    Raises CapbiasError where no image has a photograph.
    """
    files, captioned = job.photographs(), _captioned(job)
    shown = {image: files[image] for image in sorted(captioned & set(files))}
    if not shown:
        raise CapbiasError(
            f"photographs called {', '.join(sorted(files)[:3])}, of none of the {len(captioned):,} captioned images",
            "photographs named by the ids of the captions' images",
            "Check that the folder is of the same data set.",
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
    captioned = set(job.frame["image_id"])
    return captioned & set(job.references()["image_id"]) if job.spec.references else captioned


def judge_inputs(job: Job, files: dict[str, Path], mask: Callable, broken: dict[str, str]) -> JudgeInputs:
    """The captions of images with a photograph, as a judge reads them.

    files: as `photographed` gives them. mask: captions as written to what is read. broken: why photographs are left
    out, by image.
    """
    images = [image for image in files if image not in broken]
    y, k = job.codes(images), len(job.attribute.values)
    frames = [job.frame, *([job.references()] if job.spec.references else [])]
    model, *human = [caption_lists(frame, images, y, k, mask) for frame in frames]
    notes = _left_out(len(_captioned(job)), len(files), broken)
    return JudgeInputs(tuple(images), tuple(files[image] for image in images), y, model, *(human or [[]]), notes)


def _left_out(captioned: int, shown: int, broken: dict[str, str]) -> tuple[str, ...]:
    notes = []
    if shown < captioned:
        notes.append(f"{captioned - shown:,} of {captioned:,} labelled images with captions have no photograph.")
    if broken:
        first = "; ".join(list(broken.values())[:3])
        notes.append(f"{len(broken):,} photographs left out, such as {first}.")
    return tuple(notes)


def splits_of(job: Job, images: Sequence[str], trained: bool) -> list[Split]:
    """A split a seed: 80 to train on and to set aside from, 20 to test, balanced; without training all are tested.

    Raises CapbiasError for too few images.
    """
    y, k, images = job.codes(list(images)), len(job.attribute.values), list(images)
    if not trained:
        return [_everything(y, k, seed, images) for seed in job.spec.seeds]
    counts = np.bincount(y, minlength=k)
    if counts.min() < LEAST_TO_TRAIN:
        each = ", ".join(f"{value} {count:,}" for value, count in zip(job.attribute.values, counts, strict=True))
        raise CapbiasError(
            f"{len(images):,} labelled photographs with captions ({each}), too few to train a judge on",
            f"at least {LEAST_TO_TRAIN} of every value; the paper has about 10,000 in all",
            "Load more photographs, or ask a pretrained captioner, which is not trained: --judge FOLDER.",
        )
    return [balanced_split(y, k, seed, TEST_SHARE, images) for seed in job.spec.seeds]


def _everything(y: np.ndarray, k: int, seed: int, images: list[str]) -> Split:
    """Equally many images of every value, the first of the seed's order, all of them held out."""
    order = random_order(images, child_seed(seed, SPLIT))
    groups = [order[y[order] == value] for value in range(k)]
    size = min(map(len, groups))
    if not size:
        raise CapbiasError(
            "labelled photographs without any of one of the values", "photographs of every value", "Load more of them."
        )
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


def held_out(job: Job, found: JudgeInputs, splits: list[Split], attacker: Attacker) -> tuple[HeldOut, HeldOut | None]:
    """The answers of the judges on the model's captions, and on the human ones where there are any."""
    fits = len(splits) * sum(map(len, found.lists))

    def progress(share: float, text: str) -> None:
        job.progress(LOOK + JUDGE * share, text)

    trainer = JudgeTrainer(attacker, len(job.attribute.values), found.y, found.images, progress, fits)
    model = trainer.held_out(found.model, splits, "the model's captions")
    return model, trainer.held_out(found.human, splits, "the human captions") if found.human else None


def outcome(
    job: Job,
    found: JudgeInputs,
    splits: list[Split],
    sides: tuple[HeldOut, HeldOut | None],
    encoder: str,
    method: str,
    prompt: str = "",
) -> Outcome:
    """Rows, held-out answers and notes of a run. prompt: where it is not the usual one."""
    model, reference = sides
    estimates = estimates_of(model, reference, names_of(job.spec.family))
    test, trained = len(splits[0].test), bool(len(splits[0].train))
    sizes = f"{len(splits[0].train)}/{test} balanced images" if trained else f"{test} balanced images"
    method = f"{sizes}; {method}; std over seeds; 95% image bootstrap, 1000 draws"
    where = "; ".join(filter(None, (photographs_condition(job), prompt, job.spec.condition)))
    rows = [
        replace(job.result(name, own, test, method), encoder=encoder, condition=where)
        for name, own in estimates.items()
    ]
    arrays = {"model": held_out_bytes(model)} | ({"human": held_out_bytes(reference)} if reference else {})
    return Outcome(rows, arrays, (*found.notes, *_notes(job, splits[0], len(found.images))))


def estimates_from(workspace: Workspace, run: RunRow) -> dict:
    """The estimates of a finished run again from its held-out answers, by metric and direction."""
    human = held_out_from(workspace.array(run.run_id, "human")) if run.spec["references"] else None
    model = held_out_from(workspace.array(run.run_id, "model"))
    found = estimates_of(model, human, names_of(run.spec["family"]))
    return {(name, ""): own for name, own in found.items()}


def names_of(family: str) -> tuple[str, ...]:
    """The metrics that a family of runs gives."""
    return tuple(name for name in METRICS if run_family(name) == family)


def photographs_condition(job: Job) -> str:
    """What results say of the photographs: the name of the masked ones, `unmasked`, or nothing where none need be."""
    name = job.spec.options[PHOTOGRAPHS]["name"]
    if name != ORIGINALS:
        return name
    return "" if job.attribute.name in OF_WHOLE_PICTURES else UNMASKED


def _notes(job: Job, split: Split, images: int) -> tuple[str, ...]:
    notes, train, test = [], len(split.train), len(split.test)
    if photographs_condition(job) == UNMASKED:
        notes.append(
            f"The photographs are not masked: they show the person, so the judge sees {job.attribute.name} itself. The "
            "paper masks them; mask photographs first, and name them with --photographs."
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
    if job.spec.condition == WITH_REFERENCES:
        of = f"Only {images:,} of the {len(job.labels):,} labelled images"
        notes.append(f"{of} have captions, references and a photograph.")
    return tuple(notes)
