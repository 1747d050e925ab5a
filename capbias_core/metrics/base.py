"""The evidence that metrics read, and what each metric says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HeldOut:
    """Predictions of attackers on images that they did not train on: one row a (seed, caption).

    seed, image, label: (n,) integers; image is a position in `images`. probabilities: (n, K), rows sum to 1.
    """

    images: tuple[str, ...]
    seed: np.ndarray
    image: np.ndarray
    label: np.ndarray
    probabilities: np.ndarray


@dataclass(frozen=True)
class Naming:
    """Which values of the attribute each caption names. names: (n, K) booleans; label, image: (n,) integers."""

    images: tuple[str, ...]
    image: np.ndarray
    label: np.ndarray
    names: np.ndarray

    @property
    def only(self) -> np.ndarray:
        """(n, K): the caption names this value and no other."""
        return self.names & (self.names.sum(axis=1, keepdims=True) == 1)


@dataclass(frozen=True)
class Parts:
    """A value as a quotient of sums over captions: value = scale * sum(numerator) / sum(denominator).

    Every metric here has this form, so one function gives its spread over seeds and another its bootstrap over
    images. Arrays are (n,), one entry a row of the evidence.
    """

    numerator: np.ndarray
    denominator: np.ndarray


@dataclass(frozen=True)
class Metric:
    """What a metric is, for the pages and the contract test.

    family: 'attack' (reads HeldOut), 'counting' (reads Naming) or 'difference' (of the metric named in `of`,
    captioner minus references, on the same images and splits). scale: shown value = scale * quantity.
    neutral: shown value that means no bias by this metric, given K values. better: 'lower', or 'neutral' where
    the nearest to neutral is best.
    """

    name: str
    title: str
    family: str
    scale: float
    neutral: Callable[[int], float]
    better: str
    range: tuple[float, float]
    source: str
    parts: Callable[..., Parts] | None = None
    of: str = ""
    explanation: str = ""
