"""The evidence that measures read and keep: arrays, image by image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HeldOut:
    """Predictions of attackers on images that they did not train on: one row a (seed, caption).

    seed, image, label: (n,) integers; image is a position in `images`. probabilities: (n, K), rows sum to 1. training:
    how many images each attacker was trained on, 0 if none was trained.
    """

    images: tuple[str, ...]
    seed: np.ndarray
    image: np.ndarray
    label: np.ndarray
    probabilities: np.ndarray
    training: int = 0


@dataclass(frozen=True)
class Ratio:
    """A value as a quotient of sums over captions: value = scale * sum(numerator) / sum(denominator).

    Every metric that reads captions one by one has this form, so one function gives its spread over seeds and
    another its bootstrap over images. Arrays are (n,), one entry a row of the evidence.
    """

    numerator: np.ndarray
    denominator: np.ndarray
