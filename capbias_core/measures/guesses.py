"""What attackers guess on images that they did not train on, and metrics of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from capbias_core.aggregate import Counts
from capbias_core.measures.base import DIFFERENCE, NOTHING_MORE, Metric, Needs
from capbias_core.metrics.lic import label_probabilities, lic_scores, right_predictions
from capbias_core.metrics.share import difference


@dataclass(frozen=True)
class Guesses:
    """Guesses of attackers on images held out, a row for each seed and caption.

    seed, image, label: (n,) integers; image is an index of `images`. probabilities: (n, K), rows sum to 1. training:
    how many images each attacker was trained on, 0 if none was trained.
    """

    images: tuple[str, ...]
    seed: np.ndarray
    image: np.ndarray
    label: np.ndarray
    probabilities: np.ndarray
    training: int = 0

    def counts(self, side: str, more: Mapping[str, np.ndarray] | None = None) -> Counts:
        """By seed and image: `SIDE captions`, `SIDE right` (right guesses), `SIDE sure` (their confidence, LIC's score)
        and `SIDE truth` (the probability of the label). more: other numbers of rows, (n,), by name."""
        own = self.probabilities, self.label
        found = {
            "captions": np.ones(len(self.label)),
            "right": right_predictions(*own),
            "sure": lic_scores(*own),
            "truth": label_probabilities(*own),
            **(more or {}),
        }
        seeds, place = np.unique(self.seed, return_inverse=True)
        n_images = len(self.images)
        rows, row = np.unique(place * n_images + self.image, return_inverse=True)
        columns = {f"{side} {name}": np.bincount(row, values, len(rows)) for name, values in found.items()}
        label = np.full(n_images, -1)
        label[self.image] = self.label
        return Counts(self.images, label, columns, rows % n_images, seeds[rows // n_images], self.training)


MODEL, HUMAN = "model", "human"  # whose captions are read, by attackers that were trained on the same
WITH_HUMAN = Needs(references="required")
CHANCE = {"sure": lambda k: 100 / k**2, "right": lambda k: 100 / k, "truth": lambda k: 100 / k}


def score(name: str, title: str, source: str, explanation: str, column: str, side: str = MODEL) -> Metric:
    """The mean over the captions of one side. column: of `Guesses.counts`."""
    return Metric(
        *(name, title, 100, CHANCE[column], "lower", (0, 100), source, explanation),
        guessed=True,
        side=side if side in (MODEL, HUMAN) else "",
        needs=NOTHING_MORE if side == MODEL else WITH_HUMAN,
        reads=(f"{side} {column}", f"{side} captions"),
    )


def amplification(
    name: str,
    title: str,
    source: str,
    explanation: str,
    column: str,
    model: str = MODEL,
    human: str = HUMAN,
    level: bool = False,
) -> Metric:
    """The mean of one side minus that of the other."""
    reads = (f"{model} {column}", f"{model} captions", f"{human} {column}", f"{human} captions")
    facts = (name, title, *DIFFERENCE, source, explanation)
    return Metric(*facts, needs=WITH_HUMAN, reads=reads, of=difference, level=level)
