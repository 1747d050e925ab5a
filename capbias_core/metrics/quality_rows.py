"""What the metrics of caption quality, their gaps between groups, and the vocabulary size say of themselves."""

from __future__ import annotations

from capbias_core.metrics.base import Metric, no_neutral
from capbias_core.metrics.caption_quality import bleu4, cider, meteor, rouge_l
from capbias_core.metrics.performance_gap import performance_gap
from capbias_core.metrics.vocabulary import vocabulary

_LIC = "Hirota et al., CVPR 2022"
_INFINITY = float("inf")

# Name, title, function, largest shown value, source, what it says.
_QUALITY = (
    (
        "bleu4",
        "BLEU-4",
        bleu4,
        100,
        "Papineni et al., ACL 2002",
        "Share of runs of one to four words that a human caption of the image has too, over the whole set.",
    ),
    (
        "cider",
        "CIDEr",
        cider,
        1000,
        "Vedantam et al., CVPR 2015",
        "How much a caption's runs of one to four words agree with the human ones, rare runs weighing more. It depends "
        "on which images are scored.",
    ),
    (
        "meteor",
        "METEOR",
        meteor,
        100,
        "Denkowski and Lavie, WMT 2014",
        "Words that match the best human caption exactly, by stem, as synonym or as paraphrase, in the same order.",
    ),
    (
        "rouge_l",
        "ROUGE-L",
        rouge_l,
        100,
        "Lin, ACL 2004",
        "Longest sequence of words that a caption and a human one have in common.",
    ),
)


def _quality(name: str, title: str, function, top: float, source: str, text: str) -> Metric:
    return Metric(
        name,
        f"{title}, likeness to human captions",
        "quality",
        100,
        no_neutral,
        "higher",
        (0, top),
        f"{source}; {_LIC}, Table 1",
        function=function,
        explanation=text,
    )


def _gap(name: str, title: str, top: float) -> Metric:
    text = (
        f"{title} on the images of the second value minus {title} on those of the first; of more values the largest "
        "minus the smallest, which is above 0 by chance alone. The images of the groups differ too."
    )
    return Metric(
        f"{name}_gap",
        f"difference in {title} between groups",
        "quality",
        100,
        lambda k: 0.0,
        "neutral",
        (-top, top),
        f"{_LIC}, section 3.1",
        function=performance_gap,
        explanation=text,
    )


QUALITY_ROWS = (
    *(_quality(*row) for row in _QUALITY),
    *(_gap(name, title, top) for name, title, _, top, _, _ in _QUALITY),
    Metric(
        "vocabulary",
        "vocabulary, different words",
        "vocabulary",
        1,
        no_neutral,
        "higher",
        (0, _INFINITY),
        f"{_LIC}, Figure 3",
        function=vocabulary,
        explanation="Different words among the captions of the labelled images. It grows with the number of captions.",
    ),
)

QUALITY_FAMILIES = {
    "quality": tuple(row[0] for row in _QUALITY),
    "performance_gap": tuple(name for row in _QUALITY for name in (row[0], f"{row[0]}_gap")),
    "vocabulary": ("vocabulary",),
}
