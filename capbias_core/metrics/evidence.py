"""The evidence that measures read and keep: arrays, image by image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array


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
class Naming:
    """Which values of the attribute each caption names. names: (n, K) booleans; label, image: (n,) integers."""

    images: tuple[str, ...]
    image: np.ndarray
    label: np.ndarray
    names: np.ndarray


@dataclass(frozen=True)
class Cooccurrence:
    """How often captions name a value of the attribute, a task word, and both, image by image, on two sides.

    tasks: L words or objects. human, model: (n_images, 1 + K + L + K * L) counts of captions, sparse: all that take
    part, those with each value, with each task, with each pair (value by value); see `CooccurrenceCounts`.
    """

    images: tuple[str, ...]
    n_values: int
    tasks: tuple[str, ...]
    human: csr_array
    model: csr_array


@dataclass(frozen=True)
class CooccurrenceCounts:
    """Counts of one side of a Cooccurrence, summed over images. n: (...); value: (..., K); task: (..., L); pair:
    (..., K, L). The first axes are those of the sums, such as draws of a bootstrap.
    """

    n: np.ndarray
    value: np.ndarray
    task: np.ndarray
    pair: np.ndarray

    @classmethod
    def of(cls, sums: np.ndarray, n_values: int, n_tasks: int) -> CooccurrenceCounts:
        """The columns (..., 1 + K + L + K * L) of a Cooccurrence by what they count."""
        n, value, task, pair = np.split(sums, np.cumsum([1, n_values, n_tasks]), axis=-1)
        return cls(n[..., 0], value, task, pair.reshape(*sums.shape[:-1], n_values, n_tasks))


@dataclass(frozen=True)
class Ratio:
    """A value as a quotient of sums over captions: value = scale * sum(numerator) / sum(denominator).

    Every metric that reads captions one by one has this form, so one function gives its spread over seeds and
    another its bootstrap over images. Arrays are (n,), one entry a row of the evidence.
    """

    numerator: np.ndarray
    denominator: np.ndarray
