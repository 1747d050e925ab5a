"""Caption quality: how much captions resemble the human ones, overall and by group of the attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, quotient
from capbias_core.aggregate.groups import across_groups, by_group
from capbias_core.measures.base import (
    Group,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    by_name,
    from_npz,
    no_neutral,
    of_images,
    to_npz,
    zero,
)
from capbias_core.measures.cost import per_image
from capbias_core.measures.options import Options, option
from capbias_core.metrics.caption_quality import (
    bleu_counts,
    bleu_of,
    cider_scores,
    has_java,
    meteor_counts,
    meteor_of,
    rouge_scores,
)
from capbias_core.metrics.performance_gap import gap
from capbias_core.prepare.treebank import PTB, TOKENIZERS, default_tokenizer, quality_tokens
from capbias_core.types import Attribute, Progress, Result, ShareDone
from capbias_core.workspace.store import RunRow, Workspace

_LIC = "Hirota et al., CVPR 2022"
FIXED = "; document frequencies of the references of all these images, the same in every draw"


class Scorer(NamedTuple):
    """How a metric is counted.

    score: the references of each caption, captions and a report to (n,) scores or (n, M) counts. of: their (..., M)
    sums over images to (...) values. share: of the work.
    """

    score: Callable[..., np.ndarray]
    of: Callable[[np.ndarray], np.ndarray]
    share: float


# In the order in which they are counted.
SCORERS = {
    "bleu4": Scorer(bleu_counts, bleu_of, 0.1),
    "cider": Scorer(cider_scores, quotient, 0.3),
    "rouge_l": Scorer(rouge_scores, quotient, 0.1),
    "meteor": Scorer(meteor_counts, meteor_of, 0.5),
}


def _quality(name: str, title: str, top: float, source: str, explanation: str) -> Metric:
    title, source = f"{title}, likeness to human captions", f"{source}; {_LIC}, Table 1"
    return Metric(name, title, 100, no_neutral, "higher", (0, top), source, explanation)


def _gap(quality: Metric) -> Metric:
    title, top = quality.title.partition(",")[0], quality.range[1]
    return Metric(
        f"{quality.name}_gap",
        f"difference in {title} between groups",
        100,
        zero,
        "neutral",
        (-top, top),
        f"{_LIC}, section 3.1",
        f"{title} on the images of the second value minus {title} on those of the first; of more values the largest "
        "minus the smallest, which is above 0 by chance alone. The images of the groups differ too.",
    )


QUALITY = by_name(
    _quality(
        "bleu4",
        "BLEU-4",
        100,
        "Papineni et al., ACL 2002",
        "Share of runs of one to four words that a human caption of the image has too, over the whole set.",
    ),
    _quality(
        "cider",
        "CIDEr",
        1000,
        "Vedantam et al., CVPR 2015",
        "How much a caption's runs of one to four words agree with the human ones, rare runs weighing more. It depends "
        "on which images are scored.",
    ),
    _quality(
        "meteor",
        "METEOR",
        100,
        "Denkowski and Lavie, WMT 2014",
        "Words that match the best human caption exactly, by stem, as synonym or as paraphrase, in the same order.",
    ),
    _quality(
        "rouge_l",
        "ROUGE-L",
        100,
        "Lin, ACL 2004",
        "Longest sequence of words that a caption and a human one have in common.",
    ),
)
GAPS = by_name(*map(_gap, QUALITY.values()))
METRICS = QUALITY | GAPS


@dataclass(frozen=True)
class QualityOptions(Options):
    """Choices of caption quality."""

    tokenizer: str | None = option(
        None,
        "tokens for caption quality: ptb as COCO's evaluation (needs Java), or plain; ptb by default if there is Java",
        flag="--tokenizer",
        choices=tuple(TOKENIZERS),
    )


def freeze(
    workspace: Workspace, collection: str, options: QualityOptions, attribute: Attribute | None
) -> QualityOptions:
    """With the tokenizer of this machine if none is named."""
    return options.with_(tokenizer=options.tokenizer or default_tokenizer())


@dataclass(frozen=True)
class Scored:
    """Scores of captions, summed over the captions of each image.

    images: their ids. label: (n_images,) places of the attribute's values. captions: (n_images,) how many. sums: metric
    -> (n_images, M), the columns that `of` of its Scorer takes.
    """

    images: tuple[str, ...]
    label: np.ndarray
    captions: np.ndarray
    sums: dict[str, np.ndarray]


def run(job: Job) -> Outcome:
    """The captions of labelled images that have references, each against the references of its image."""
    tokenizer = job.options.tokenizer or PTB
    human = job.references()
    frame = of_images(job.frame, human["image_id"])
    found = scored(frame, human, job.codes, tokenizer, job.progress)
    values = job.attribute.values
    counts = of_images(human, found.images).groupby("image_id").size()
    method = (
        f"{len(found.images):,} images with {counts.min()} to {counts.max()} references; {TOKENIZERS[tokenizer]}; "
        "95% image bootstrap, 1000 draws"
    )
    arrays = {"quality": to_npz(found.images, label=found.label, captions=found.captions, **found.sums)}
    return Outcome(_results(job, found, method), arrays, _notes(found, values, tokenizer))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its sums, by metric and direction."""
    images, arrays = from_npz(workspace.array(run.run_id, "quality"))
    found = Scored(tuple(images), arrays.pop("label"), arrays.pop("captions"), arrays)
    k = len(run.spec.attribute["values"])
    return {(name, ""): own for name, own in (overall(found) | gaps(found, k)).items()}


def scored(
    frame: pd.DataFrame,
    human: pd.DataFrame,
    codes: Callable[[list[str]], np.ndarray],
    tokenizer: str,
    progress: Progress,
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
    for name, scorer in SCORERS.items():
        if name != "meteor" or has_java():
            values = scorer.score(references, candidates, _reporter(progress, done, scorer.share, name))
            sums[name] = _image_sums(values, image, len(images))
        done += scorer.share
    captions = np.bincount(image, minlength=len(images))
    return Scored(tuple(images), codes(list(images)), captions, sums)


def _reporter(progress: Progress, done: float, share: float, name: str) -> ShareDone:
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
        name: Estimate(found.images, sums, np.zeros(0), METRICS[name].scale, SCORERS[name].of)
        for name, sums in found.sums.items()
    }


def gaps(found: Scored, k: int) -> dict[str, Estimate]:
    """The estimate of each metric's gap between the k groups."""
    return {f"{name}_gap": across_groups(whole, found.label, k, gap) for name, whole in overall(found).items()}


def _results(job: Job, found: Scored, method: str) -> list[Result]:
    """For each metric its value on all images and on those of each group, and the gap."""
    values, n = job.attribute.values, int(found.captions.sum())
    differences = gaps(found, len(values))
    rows = []
    for name, whole in overall(found).items():
        how, of_gap = method + (FIXED if name == "cider" else ""), f"{name}_gap"
        rows.append(job.result(METRICS[name], whole, n, how))
        rows += _group_results(job, found, name, whole, how)
        rows.append(job.result(METRICS[of_gap], differences[of_gap], n, f"{_gap_text(values)}; {how}"))
    return rows


def _group_results(job: Job, found: Scored, name: str, whole: Estimate, method: str) -> list[Result]:
    """The metric on the images of each group that has some."""
    values = job.attribute.values
    groups = zip(values, by_group(whole, found.label, len(values)), _sizes(found, len(values)), strict=True)
    return [job.result(METRICS[name], own, size, method, group=value) for value, own, size in groups if size]


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


MEASURE = Measure(
    name="caption_quality",
    title="caption quality and its gaps",
    place=7,
    metrics=tuple(METRICS.values()),
    groups=(
        Group("quality", "caption quality", tuple(QUALITY)),
        Group("performance_gap", "quality by group", tuple(name for own in QUALITY for name in (own, f"{own}_gap"))),
    ),
    options=QualityOptions,
    needs=Needs(references="required"),
    cost=per_image(40.0),
    run=run,
    estimates=estimates,
    freeze=freeze,
    in_process=False,
    packages=("pycocoevalcap",),
)
