"""Rows of the metrics of vocabulary alignment."""

from __future__ import annotations

from capbias_core.metrics.base import Metric, no_neutral
from capbias_core.metrics.substitution import contextual_share, similarity, unknown_share

_DBAC = "DBAC (directional bias amplification in captioning)"
_LIC = "Hirota et al., CVPR 2022"

ALIGNMENT_ROWS = (
    Metric(
        "contextual_share",
        "contextual share of substitutions",
        "alignment",
        100,
        no_neutral,
        "higher",
        (0, 100),
        f"{_DBAC}, appendix A, Figure 1; constant alignment: {_LIC}",
        parts=contextual_share,
        explanation="Of the words in human captions that the captioner never uses, as often as they occur, those that "
        "became its nearest word; the others became <unk>. A large delta raises it with unrelated words.",
    ),
    Metric(
        "unknown_share",
        "words that became <unk>",
        "alignment",
        100,
        no_neutral,
        "lower",
        (0, 100),
        f"{_DBAC}, Eq. 9; constant alignment: {_LIC}",
        parts=unknown_share,
        explanation="Of all words in human captions, as often as they occur, those that became <unk>.",
    ),
    Metric(
        "METEOR_aligned",
        "METEOR, human captions before and after alignment",
        "alignment",
        100,
        no_neutral,
        "higher",
        (0, 100),
        f"{_DBAC}, Table 7; METEOR: Denkowski and Lavie, WMT 2014",
        parts=similarity,
        explanation="How much a human caption still says what it said after its words were aligned to the captioner's.",
    ),
)

ALIGNMENT_FAMILIES = {"alignment": ("contextual_share", "unknown_share", "METEOR_aligned")}
