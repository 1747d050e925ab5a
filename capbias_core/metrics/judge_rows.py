"""Rows of the metrics whose judge reads the photograph too: ImageCaptioner2 with Eq. 4's scores, and VL-LIC."""

from __future__ import annotations

from collections.abc import Callable

from capbias_core.metrics.base import HeldOut, Metric, Ratio
from capbias_core.metrics.confidence import confidence
from capbias_core.metrics.lic import lic
from capbias_core.metrics.sentence_classification import sentence_classification

_PAPER = "Abdelrahman et al., AAAI 2024"


def _three(
    name: str,
    title: str,
    family: str,
    source: str,
    parts: Callable[[HeldOut], Ratio],
    chance: Callable[[int], float],
    what: str,
) -> tuple[Metric, ...]:
    """Amplification, and the scores of both sides that it is the difference of."""
    return (
        Metric(
            name,
            f"{title}, bias amplification",
            "difference",
            100,
            lambda k: 0.0,
            "lower",
            (-100, 100),
            source,
            of=f"{name}_M",
            explanation=f"{what} Of the model's captions minus of the human ones: above 0, the photograph and the "
            "model's caption tell more of the labelled value than the photograph and a human caption do.",
        ),
        Metric(
            f"{name}_M",
            f"{title} of the model's captions",
            family,
            100,
            chance,
            "lower",
            (0, 100),
            source,
            parts=parts,
            explanation=f"{what} On the model's masked captions.",
        ),
        Metric(
            f"{name}_D",
            f"{title} of the human captions",
            family,
            100,
            chance,
            "lower",
            (0, 100),
            source,
            parts=parts,
            explanation=f"{what} On the masked human captions.",
        ),
    )


JUDGE_ROWS = (
    *_three(
        "imagecaptioner2",
        "ImageCaptioner²",
        "judge",
        f"{_PAPER}, Eq. 2 and 4",
        confidence,
        lambda k: 100 / k,
        "Mean probability that a captioning model, shown the photograph and the masked caption, gives to the labelled "
        "answer.",
    ),
    *_three(
        "imagecaptioner2_lic",
        "ImageCaptioner² scored as LIC",
        "judge",
        f"{_PAPER}, Eq. 4",
        lic,
        lambda k: 100 / k**2,
        "The same judge: its probability where its answer is right, 0 where it is wrong.",
    ),
    *_three(
        "imagecaptioner2_leakage",
        "ImageCaptioner² scored as leakage",
        "judge",
        f"{_PAPER}, Eq. 4",
        sentence_classification,
        lambda k: 100 / k,
        "The same judge: how often its answer is right.",
    ),
    *_three(
        "vl_lic",
        "VL-LIC",
        "vl_lic",
        f"{_PAPER}, section Multi-Modal Classifier",
        lic,
        lambda k: 100 / k**2,
        "LIC with a classifier that sees the photograph beside the masked caption: its confidence where it is right, 0 "
        "where it is wrong.",
    ),
)

# Eq. 4's three scores stand side by side.
JUDGE_FAMILIES = {
    "imagecaptioner2": tuple(row.name for row in JUDGE_ROWS if row.name.startswith("imagecaptioner2")),
    "vl_lic": tuple(row.name for row in JUDGE_ROWS if row.name.startswith("vl_lic")),
}
