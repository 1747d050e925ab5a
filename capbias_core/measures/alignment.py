"""What vocabulary alignment does to the human captions, at every delta.

Paper on DBAC, appendix A (Figure 1) and section 5.4 (Table 7): the share of contextual substitutions, the share of
words that become `<unk>`, and METEOR between captions before and after, under constant and contextual alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import HIGHER_SHARE, LOWER_SHARE, Counts, Metric, Needs, by_name, result_rows
from capbias_core.data import Data, of_images
from capbias_core.measures.base import Group, Measure, Outcome
from capbias_core.measures.options import Aligned
from capbias_core.metrics.caption_quality import meteor_counts, meteor_of
from capbias_core.prepare.align import Alignment, Neighbours
from capbias_core.prepare.java import NO_JAVA, has_java
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Progress
from capbias_core.workspace.vectors import CONSTANT, alignment_name, neighbours_of

_DBAC = "Nair et al., arXiv:2503.07878 (DBAC)"
_LIC = "Hirota et al., CVPR 2022"
DELTAS = tuple(round(step / 10, 1) for step in range(11))

METRICS = by_name(
    Metric(
        "contextual_share",
        "contextual share of substitutions",
        *HIGHER_SHARE,
        f"{_DBAC}, appendix A, Figure 1; constant alignment: {_LIC}",
        "Of the words in human captions that the captioner never uses, as often as they occur, those that became its "
        "nearest word; the others became <unk>. A large delta raises it with unrelated words.",
        reads=("substituted", "outside"),
        interval="free",
    ),
    Metric(
        "unknown_share",
        "words that became <unk>",
        *LOWER_SHARE,
        f"{_DBAC}, Eq. 9; constant alignment: {_LIC}",
        "Of all words in human captions, as often as they occur, those that became <unk>.",
        reads=("unknown", "words"),
        interval="free",
    ),
    Metric(
        "METEOR_aligned",
        "METEOR, human captions before and after alignment",
        *HIGHER_SHARE,
        f"{_DBAC}, Table 7; METEOR: Denkowski and Lavie, WMT 2014",
        "How much a human caption still says what it said after its words were aligned to the captioner's.",
        reads=("METEOR", "captions"),
        interval="free",
    ),
)


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """The human captions of the captioner's images, aligned to the words of all its captions: rows of the chosen delta,
    of constant alignment, and of each of DELTAS."""
    option, human = options.alignment, data.human
    assert human is not None
    human = of_images(human, data.frame["image_id"])
    known = frozenset(data.masked(data.tokens(data.frame)).words)
    masked = data.masked(data.tokens(human))
    near = neighbours_of(data.sources.frame(option["item"]), option, masked.words, known)
    deltas = {*DELTAS, option["delta"]}
    by_delta = sweep(human["image_id"], data.codes, masked, known, near, deltas, progress)
    facts = MEASURE.facts(data, options)
    method, rows = f"{len(known):,} words of the model's captions known", []
    for delta in dict.fromkeys((option["delta"], *by_delta)):
        name = CONSTANT if delta is None else alignment_name(option | {"delta": delta})
        rows += result_rows(METRICS.values(), by_delta[delta], facts, {"": {"method": method, "alignment": name}})
    lacking = {} if has_java() else {"METEOR_aligned": NO_JAVA}
    return Outcome(by_delta[option["delta"]], lacking=lacking, results=rows)


def sweep(
    image_id: pd.Series,
    codes: Callable[[Sequence[str]], np.ndarray],
    masked: Tokens,
    known: frozenset[str],
    near: Neighbours,
    deltas: Iterable[float],
    progress: Progress,
) -> dict[float | None, Counts]:
    """What alignment does to masked human captions at each delta, and under constant alignment (None): words, those
    outside the captioner's vocabulary, substituted ones, those that became <unk>, and METEOR if there is Java.
    image_id: of each caption. codes: image ids to labels. known: the captioner's words."""
    alignments = {None: Alignment(known)} | {delta: Alignment(known, near.within(delta)) for delta in sorted(deltas)}
    aligned = {delta: alignment.captions(masked) for delta, alignment in alignments.items()}
    likeness, by_delta = {}, {}
    if has_java():
        # METEOR is asked for each different pair of captions once.
        pairs = list(dict.fromkeys(pair for after in aligned.values() for pair in zip(masked, after, strict=True)))
        text = f"METEOR of {len(pairs):,} pairs of captions"
        progress(0.0, text)
        before, after = [[pair[0]] for pair in pairs], [pair[1] for pair in pairs]
        values = meteor_of(meteor_counts(before, after, lambda share: progress(share, text)))
        likeness = dict(zip(pairs, values.tolist(), strict=True))
    for delta, alignment in alignments.items():
        words, substituted, unknown = alignment.counts(masked).T
        columns = {"words": words, "unknown": unknown, "outside": substituted + unknown}
        if delta is not None:  # constant alignment substitutes no word by another
            columns["substituted"] = substituted
        if likeness:
            columns["METEOR"] = np.array([likeness[pair] for pair in zip(masked, aligned[delta], strict=True)])
        by_delta[delta] = Counts.of_captions(image_id, codes, columns)
    return by_delta


MEASURE = Measure(
    name="alignment",
    title="vocabulary alignment",
    position=14,
    metrics=tuple(METRICS.values()),
    groups=(Group("alignment", "vocabulary alignment", tuple(METRICS)),),
    options=Aligned,
    needs=Needs(references="required", vectors=True),
    version=4,
    seconds=40.0,
    count=count,
)
