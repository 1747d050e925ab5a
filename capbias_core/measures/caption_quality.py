"""Runs of the family 'quality': how much captions resemble the human ones, overall and by group of the attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, quotient
from capbias_core.aggregate.groups import across_groups, by_group
from capbias_core.measures.base import Job, Outcome, from_npz, of_images, to_npz
from capbias_core.metrics import METRICS
from capbias_core.metrics.caption_quality import bleu4, bleu_counts, cider, has_java, meteor_counts, meteor_of, rouge_l
from capbias_core.metrics.performance_gap import performance_gap
from capbias_core.prepare.treebank import PTB, TOKENIZERS, quality_tokens
from capbias_core.types import Result
from capbias_core.workspace.store import RunRow, Workspace

# Metric -> its scores of captions, what their sums over images become, and its share of the work.
WAYS = {
    "bleu4": (bleu_counts, bleu4, 0.1),
    "cider": (cider, quotient, 0.3),
    "rouge_l": (rouge_l, quotient, 0.1),
    "meteor": (meteor_counts, meteor_of, 0.5),
}
FIXED = "; document frequencies of the references of all these images, the same in every draw"


@dataclass(frozen=True)
class Scored:
    """Scores of captions, summed over the captions of each image.

    images: their ids. label: (n_images,) places of the attribute's values. captions: (n_images,) how many. sums: metric
    -> (n_images, M), the columns that its function in WAYS takes.
    """

    images: tuple[str, ...]
    label: np.ndarray
    captions: np.ndarray
    sums: dict[str, np.ndarray]


def run(job: Job) -> Outcome:
    """The captions of labelled images that have references, each against the references of its image."""
    tokenizer = job.spec.options.get("tokenizer", PTB)
    human = job.references()
    frame = of_images(job.frame, human["image_id"])
    found = scored(frame, human, job.codes, tokenizer, job.progress)
    values = job.attribute.values
    a_image = of_images(human, found.images).groupby("image_id").size()
    method = (
        f"{len(found.images):,} images with {a_image.min()} to {a_image.max()} references; {TOKENIZERS[tokenizer]}; "
        "95% image bootstrap, 1000 draws"
    )
    arrays = {"quality": to_npz(found.images, label=found.label, captions=found.captions, **found.sums)}
    return Outcome(_results(job, found, method), arrays, _notes(found, values, tokenizer))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its sums, by metric and direction."""
    images, arrays = from_npz(workspace.array(run.run_id, "quality"))
    found = Scored(tuple(images), arrays.pop("label"), arrays.pop("captions"), arrays)
    k = len(run.spec["attribute"]["values"])
    return {(name, ""): own for name, own in (overall(found) | gaps(found, k)).items()}


def scored(
    frame: pd.DataFrame, human: pd.DataFrame, codes: Callable, tokenizer: str, progress: Callable[[float, str], None]
) -> Scored:
    """Score captions. frame, human: image_id and caption; every image of frame has references. codes: images to labels.

    Without Java METEOR is left out.
    """
    progress(0.0, "tokens")
    image, images = pd.factorize(frame["image_id"], sort=True)
    human = of_images(human, images)
    texts = quality_tokens([*frame["caption"], *human["caption"]], tokenizer)
    candidates, own = texts[: len(frame)], {name: [] for name in images}
    for name, text in zip(human["image_id"], texts[len(frame) :], strict=True):
        own[name].append(text)
    references = [own[images[place]] for place in image]
    sums, done = {}, 0.0
    for name, (score, _, share) in WAYS.items():
        if name != "meteor" or has_java():
            values = score(references, candidates, _reporter(progress, done, share, name))
            sums[name] = _image_sums(values, image, len(images))
        done += share
    captions = np.bincount(image, minlength=len(images))
    return Scored(tuple(images), codes(list(images)), captions, sums)


def _reporter(progress: Callable[[float, str], None], done: float, share: float, name: str):
    return lambda part: progress(done + share * part, METRICS[name].title.partition(",")[0])


def _image_sums(values: np.ndarray, image: np.ndarray, n_images: int) -> np.ndarray:
    """(n, M) counts, or (n,) scores with a 1 beside each, to (n_images, M) sums."""
    columns = values if values.ndim == 2 else np.column_stack([values, np.ones(len(values))])
    sums = np.zeros((n_images, columns.shape[1]))
    np.add.at(sums, image, columns)
    return sums


def overall(found: Scored) -> dict[str, Estimate]:
    """The estimate of each metric on all images."""
    return {
        name: Estimate(found.images, sums, np.zeros(0), METRICS[name].scale, WAYS[name][1])
        for name, sums in found.sums.items()
    }


def gaps(found: Scored, k: int) -> dict[str, Estimate]:
    """The estimate of each metric's gap between the k groups."""
    return {
        f"{name}_gap": across_groups(whole, found.label, k, performance_gap) for name, whole in overall(found).items()
    }


def _results(job: Job, found: Scored, method: str) -> list[Result]:
    """For each metric its value on all images and on those of each group, and the gap."""
    values, n = job.attribute.values, int(found.captions.sum())
    differences = gaps(found, len(values))
    rows = []
    for name, whole in overall(found).items():
        how = method + (FIXED if name == "cider" else "")
        rows.append(job.result(name, whole, n, how))
        rows += _group_results(job, found, name, whole, how)
        rows.append(job.result(f"{name}_gap", differences[f"{name}_gap"], n, f"{_gap_text(values)}; {how}"))
    return rows


def _group_results(job: Job, found: Scored, name: str, whole: Estimate, method: str) -> list[Result]:
    """The metric on the images of each group that has some; the group stands in the condition."""
    values = job.attribute.values
    groups = zip(values, by_group(whole, found.label, len(values)), _sizes(found, len(values)), strict=True)
    return [replace(job.result(name, group, size, method), condition=value) for value, group, size in groups if size]


def _sizes(found: Scored, k: int) -> list[int]:
    """How many captions each group has."""
    return [int(found.captions[found.label == place].sum()) for place in range(k)]


def _gap_text(values: tuple[str, ...]) -> str:
    return f"{values[1]} minus {values[0]}" if len(values) == 2 else "largest minus smallest value of a group"


def _notes(found: Scored, values: tuple[str, ...], tokenizer: str) -> tuple[str, ...]:
    groups = ", ".join(f"{value} {n:,}" for value, n in zip(values, _sizes(found, len(values)), strict=True))
    notes = [
        f"Caption quality rests on the {len(found.images):,} labelled images with references ({groups} captions). "
        "Papers score other images, and CIDEr depends on which, so their values differ."
    ]
    if tokenizer != PTB:
        notes.append(f"Caption quality with {TOKENIZERS[tokenizer]}: values move by some tenths.")
    if "meteor" not in found.sums:
        notes.append("METEOR left out: it is a Java program, and this machine has no Java.")
    return tuple(notes)
