"""Caption quality: how much captions resemble the human ones, overall and by group of the attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Counts, Metric, Needs, by_name, no_neutral, with_gaps
from capbias_core.data import Data, of_images
from capbias_core.measures.base import Group, Measure, Outcome, group_of, sizes
from capbias_core.measures.options import Options, option
from capbias_core.metrics.caption_quality import (
    bleu_counts,
    bleu_of,
    cider_scores,
    meteor_counts,
    meteor_of,
    rouge_scores,
)
from capbias_core.metrics.share import share
from capbias_core.prepare.java import NO_JAVA, PTB, TOKENIZERS, default_tokenizer, has_java, quality_tokens
from capbias_core.types import Progress

_LIC = "Hirota et al., CVPR 2022"
FIXED = "; document frequencies of the references of all these images, the same in every draw"


# Metric -> the references of each caption, captions and a report to (n,) scores or (n, M) counts; and its share of the
# work. In the order in which they are counted.
SCORERS: dict[str, tuple[Callable[..., np.ndarray], float]] = {
    "bleu4": (bleu_counts, 0.1),
    "cider": (cider_scores, 0.3),
    "rouge_l": (rouge_scores, 0.1),
    "meteor": (meteor_counts, 0.5),
}


def _quality(name: str, title: str, top: float, source: str, explanation: str, of: Callable | None = None) -> Metric:
    """of: what a block of counts gives, None for a mean of scores."""
    title, source = f"{title}, likeness to human captions", f"{source}; {_LIC}, Table 1"
    reads = (name,) if of else (name, "captions")
    return Metric(name, title, 100, no_neutral, "higher", (0, top), source, explanation, reads=reads, of=of or share)


QUALITY = by_name(
    _quality(
        "bleu4",
        "BLEU-4",
        100,
        "Papineni et al., ACL 2002",
        "Share of runs of one to four words that a human caption of the image has too, over the whole set.",
        bleu_of,
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
        meteor_of,
    ),
    _quality(
        "rouge_l",
        "ROUGE-L",
        100,
        "Lin, ACL 2004",
        "Longest sequence of words that a caption and a human one have in common.",
    ),
)
PERFORMANCE = with_gaps(*QUALITY.values(), source=f"{_LIC}, section 3.1")
METRICS = (*QUALITY.values(), *PERFORMANCE[1::2])


@dataclass(frozen=True)
class QualityOptions(Options):
    """Choices of caption quality."""

    tokenizer: str | None = option(
        None,
        "tokens for caption quality: ptb as COCO's evaluation (needs Java), or plain; ptb by default if there is Java",
        flag="--tokenizer",
        choices=tuple(TOKENIZERS),
    )


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """The captions of labelled images that have references, each against the references of its image."""
    tokenizer = options.tokenizer or PTB
    human = data.human
    frame = of_images(data.frame, human["image_id"])
    counts = Counts.of_captions(frame["image_id"], data.codes, scored(frame, human, tokenizer, progress))
    each, images = of_images(human, counts.images).groupby("image_id").size(), f"{len(counts.images):,}"
    method = f"{images} images with {each.min()} to {each.max()} references; {TOKENIZERS[tokenizer]}"
    notes = [
        f"Caption quality is measured on the {images} labelled images with references ({sizes(counts, data.attribute)}). "
        "Papers score other images, and CIDEr depends on which, so their values differ."
    ]
    if tokenizer != PTB:
        notes.append(f"Caption quality with {TOKENIZERS[tokenizer]}: values move by some tenths.")
    lacking = {} if "meteor" in counts.columns else {"meteor": NO_JAVA, "meteor_gap": NO_JAVA}
    return Outcome(counts, {"method": method}, notes, lacking, {"cider": {"method": method + FIXED}})


def scored(frame: pd.DataFrame, human: pd.DataFrame, tokenizer: str, progress: Progress) -> dict[str, np.ndarray]:
    """Score captions: (n,) scores, or (n, M) counts, by metric; without Java METEOR is left out. frame, human: image_id
    and caption; every image of frame has references."""
    progress(0.0, "tokens")
    image, images = pd.factorize(frame["image_id"], sort=True)
    human = of_images(human, images)
    texts = quality_tokens([*frame["caption"], *human["caption"]], tokenizer)
    candidates, by_image = texts[: len(frame)], {name: [] for name in images}
    for name, text in zip(human["image_id"], texts[len(frame) :], strict=True):
        by_image[name].append(text)
    references = [by_image[images[code]] for code in image]
    counts, done = {}, 0.0
    for name, (score, work) in SCORERS.items():

        def report(part: float, done=done, work=work, name=name) -> None:
            progress(done + work * part, QUALITY[name].title.partition(",")[0])

        if name != "meteor" or has_java():
            counts[name] = score(references, candidates, report)
        done += work
    return counts


MEASURE = Measure(
    name="caption_quality",
    title="caption quality and its gaps",
    position=7,
    metrics=METRICS,
    groups=(
        Group("quality", "caption quality", tuple(QUALITY)),
        group_of("performance_gap", "quality by group", PERFORMANCE),
    ),
    options=QualityOptions,
    needs=Needs(references="required"),
    version=2,
    seconds=40.0,
    count=count,
    freeze=lambda options, data: options.with_(tokenizer=options.tokenizer or default_tokenizer()),
    in_process=False,
    packages=("pycocoevalcap",),
)
