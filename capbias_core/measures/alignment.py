"""What vocabulary alignment does to the human captions, at every delta.

Paper on DBAC, appendix A (Figure 1) and section 5.4 (Table 7): the share of contextual substitutions, the share of
words that become `<unk>`, and METEOR between captions before and after, under constant and contextual alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, estimate
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome, RatioMetric, by_name, no_neutral
from capbias_core.measures.options import Aligned
from capbias_core.metrics.caption_quality import has_java, meteor_scores
from capbias_core.metrics.evidence import Ratio
from capbias_core.prepare import vocabulary
from capbias_core.prepare.align import Alignment, Neighbours
from capbias_core.prepare.java import NO_JAVA
from capbias_core.types import Progress
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, frame_bytes, images_in
from capbias_core.workspace.vectors import CONSTANT, alignment_name, neighbours_of

_DBAC = "DBAC (directional bias amplification in captioning)"
_LIC = "Hirota et al., CVPR 2022"
DELTAS = tuple(round(step / 10, 1) for step in range(11))
# Columns of the sweep and the metrics in them.
COLUMNS = {"contextual": "contextual_share", "unknown": "unknown_share", "METEOR": "METEOR_aligned"}


@dataclass(frozen=True)
class Substitutions:
    """What alignment did to each caption. image: (n,) positions in `images`. counts: (n, 3) words, words substituted by
    a word, words that became <unk>. meteor: (n,) likeness to the original in [0, 1], nan if it was not computed."""

    images: tuple[str, ...]
    image: np.ndarray
    counts: np.ndarray
    meteor: np.ndarray


def contextual_over_outside(evidence: Substitutions) -> Ratio:
    """Words substituted by a word, over words outside the captioner's vocabulary."""
    return Ratio(evidence.counts[:, 1].astype(float), evidence.counts[:, 1:].sum(axis=1).astype(float))


def unknown_over_words(evidence: Substitutions) -> Ratio:
    """Words that became <unk>, over all words."""
    return Ratio(evidence.counts[:, 2].astype(float), evidence.counts[:, 0].astype(float))


def likeness_over_captions(evidence: Substitutions) -> Ratio:
    """METEOR between each caption before and after, over captions."""
    return Ratio(evidence.meteor, np.ones(len(evidence.meteor)))


METRICS = by_name(
    RatioMetric(
        "contextual_share",
        "contextual share of substitutions",
        100,
        no_neutral,
        "higher",
        (0, 100),
        f"{_DBAC}, appendix A, Figure 1; constant alignment: {_LIC}",
        "Of the words in human captions that the captioner never uses, as often as they occur, those that became its "
        "nearest word; the others became <unk>. A large delta raises it with unrelated words.",
        ratio=contextual_over_outside,
    ),
    RatioMetric(
        "unknown_share",
        "words that became <unk>",
        100,
        no_neutral,
        "lower",
        (0, 100),
        f"{_DBAC}, Eq. 9; constant alignment: {_LIC}",
        "Of all words in human captions, as often as they occur, those that became <unk>.",
        ratio=unknown_over_words,
    ),
    RatioMetric(
        "METEOR_aligned",
        "METEOR, human captions before and after alignment",
        100,
        no_neutral,
        "higher",
        (0, 100),
        f"{_DBAC}, Table 7; METEOR: Denkowski and Lavie, WMT 2014",
        "How much a human caption still says what it said after its words were aligned to the captioner's.",
        ratio=likeness_over_captions,
    ),
)


@dataclass(frozen=True)
class AlignmentOptions(Aligned):
    """Choices of vocabulary alignment."""


def run(job: Job) -> Outcome:
    """The human captions of the captioner's images, aligned at every delta to the words of all its captions."""
    option = job.options.alignment
    if not option:
        raise CapbiasError(
            "Alignment at several distances needs word vectors.", "Choose contextual alignment and a file of vectors."
        )
    human = of_same_images(job.references(), job.frame)
    known = vocabulary(job.masked(job.frame["caption"]))
    masked = job.masked(human["caption"])
    near = neighbours_of(job.workspace, option, vocabulary(masked), known)
    evidence = sweep(human["image_id"], masked, known, near, {*DELTAS, option["delta"]}, job.progress)
    method = f"{len(known):,} words of the model's captions known"
    results = []
    for delta, own in evidence.items():
        aligned = CONSTANT if delta is None else alignment_name(option | {"delta": delta})
        for name, found in estimates_of(own, delta is None).items():
            results.append(
                job.result(
                    METRICS[name], found, len(own.image), f"{method}; {found.interval_method}", alignment=aligned
                )
            )
    arrays = {"sweep": frame_bytes(sweep_table(evidence)), "evidence": _bytes(evidence, option)}
    return Outcome(results, arrays, (), {} if has_java() else {"METEOR_aligned": NO_JAVA})


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run at its own delta again, by metric and direction."""
    frame = bytes_frame(workspace.array(run.run_id, "evidence"))
    image_id = frame["image_id"].cat
    counts = frame[["words", "substituted", "unknown"]].to_numpy()
    own = Substitutions(
        tuple(image_id.categories), image_id.codes.to_numpy().astype(int), counts, frame["meteor"].to_numpy()
    )
    return {(name, ""): found for name, found in estimates_of(own, False).items()}


def of_same_images(human: pd.DataFrame, model: pd.DataFrame) -> pd.DataFrame:
    """The human captions of the captioner's images. Raises CapbiasError if there are none."""
    own = human[human["image_id"].isin(images_in(model))]
    if own.empty:
        raise CapbiasError(
            "The human captions are of other images than the captioner's.", "Check the image IDs of both files."
        )
    return own


def sweep(
    image_id: pd.Series, masked: list[str], known: frozenset[str], near: Neighbours, deltas, progress: Progress
) -> dict[float | None, Substitutions]:
    """What alignment does to each masked human caption at each delta, in order, and under constant alignment (None).

    image_id: of each caption. known: the captioner's words. METEOR is asked for each different pair of captions once.
    """
    image, images = pd.factorize(image_id, sort=True)
    alignments = {None: Alignment(known)} | {delta: Alignment(known, near.within(delta)) for delta in sorted(deltas)}
    aligned = {delta: own.captions(masked) for delta, own in alignments.items()}
    pairs = {pair: None for after in aligned.values() for pair in zip(masked, after, strict=True)}
    likeness = _likeness(list(pairs), progress)
    return {
        delta: Substitutions(
            tuple(images),
            image,
            own.counts(masked),
            np.array([likeness[pair] for pair in zip(masked, aligned[delta], strict=True)]),
        )
        for delta, own in alignments.items()
    }


def _likeness(pairs: Sequence[tuple[str, str]], progress: Progress) -> dict[tuple[str, str], float]:
    """METEOR of each pair (before, after); nan if there is no Java."""
    if not has_java():
        return dict.fromkeys(pairs, np.nan)
    progress(0.0, f"METEOR of {len(pairs):,} pairs of captions")
    before, after = [[pair[0]] for pair in pairs], [pair[1] for pair in pairs]
    values = meteor_scores(before, after, lambda share: progress(share, f"METEOR of {len(pairs):,} pairs of captions"))
    return dict(zip(pairs, values.tolist(), strict=True))


def estimates_of(evidence: Substitutions, constant: bool) -> dict[str, Estimate]:
    """The metrics of one alignment, by name. constant: no word is substituted by a word, so that share is left out."""
    names = [name for name in COLUMNS.values() if not (constant and name == "contextual_share")]
    if np.isnan(evidence.meteor).any():
        names.remove("METEOR_aligned")
    return {name: estimate(METRICS[name].ratio(evidence), evidence, METRICS[name].scale) for name in names}


def sweep_table(evidence: dict[float | None, Substitutions]) -> pd.DataFrame:
    """One row per delta: the share of contextual substitutions, of <unk>, and METEOR, each with its 95% interval (_low,
    _high), METEOR and <unk> under constant alignment beside (_constant), captions and images. x100."""
    constant = _cells(evidence[None], True)
    beside = {key: value for key, value in constant.items() if not key.startswith("contextual")}
    beside = {_beside(key): value for key, value in beside.items()}
    rows = []
    for delta, own in evidence.items():
        if delta is not None:
            rows.append(
                {"delta": delta, **_cells(own, False), **beside, "captions": len(own.image), "images": len(own.images)}
            )
    return pd.DataFrame(rows)


def _beside(column: str) -> str:
    """`METEOR_low` to `METEOR_constant_low`."""
    name, _, end = column.partition("_")
    return f"{name}_constant_{end}".rstrip("_")


def _cells(evidence: Substitutions, constant: bool) -> dict[str, float | None]:
    found = estimates_of(evidence, constant)
    cells: dict[str, float | None] = {}
    for column, name in COLUMNS.items():
        low, high = found[name].interval() if name in found else (None, None)
        cells |= {column: found[name].value if name in found else None, f"{column}_low": low, f"{column}_high": high}
    return cells


def _bytes(evidence: dict[float | None, Substitutions], option: dict[str, Any]) -> bytes:
    """What alignment does at the delta that was asked for, as Parquet; `estimates` reads it."""
    own = evidence[option["delta"]]
    frame = pd.DataFrame(own.counts, columns=["words", "substituted", "unknown"]).assign(meteor=own.meteor)
    frame["image_id"] = pd.Categorical.from_codes(own.image, list(own.images))
    return frame_bytes(frame)


MEASURE = Measure(
    name="alignment",
    title="vocabulary alignment",
    place=14,
    metrics=tuple(METRICS.values()),
    groups=(Group("alignment", "vocabulary alignment", tuple(METRICS)),),
    options=AlignmentOptions,
    needs=Needs(references="required", vectors=True),
    seconds=40.0,
    run=run,
    estimates=estimates,
)
