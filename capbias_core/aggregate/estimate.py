"""A metric's value with its spread over seeds and its interval over images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate.bootstrap import image_sums, percentiles, resampled_sums
from capbias_core.metrics.evidence import Cooccurrence, CooccurrenceCounts, HeldOut, Ratio

BOOTSTRAP_SEED = 20220619


@dataclass(frozen=True)
class Estimate:
    """One metric of one caption set, image by image, so that captioners can be compared in pairs.

    sums: (n_images, 2), numerator and denominator of each image; (n_images, 4) for a difference, its second side
    last; (n_images, M), sparse, for a comparison of counts. images: their ids. seed_values: (S,) the shown value of
    each attacker seed, empty for metrics without. of: summed columns (..., M) to unscaled values (...).
    """

    images: tuple[str, ...]
    sums: np.ndarray | csr_array
    seed_values: np.ndarray
    scale: float
    of: Callable[[np.ndarray], np.ndarray]

    def shown(self, sums: np.ndarray) -> np.ndarray:
        """(..., M) summed columns to (...) values as shown."""
        return self.scale * self.of(sums)

    @property
    def value(self) -> float:
        """The shown value: the mean over seeds, or the quotient of sums if there are none."""
        return float(self.seed_values.mean() if len(self.seed_values) else self.shown(self.sums.sum(axis=0)))

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds (ddof 1); None for fewer than two."""
        return float(np.std(self.seed_values, ddof=1)) if len(self.seed_values) > 1 else None

    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """95% percentile bootstrap over images, 1,000 draws; nothing if a draw is not defined.

        It pools the held-out predictions of all seeds; every seed holds out equally many images, so the pooled
        value is the mean over seeds.
        """
        return percentiles(self.shown(resampled_sums(self.sums, BOOTSTRAP_SEED)))


def shared_intervals(estimates: dict[str, Estimate]) -> dict[str, tuple[float, float] | tuple[None, None]]:
    """The intervals of estimates that share their sums, from one bootstrap."""
    draws = resampled_sums(next(iter(estimates.values())).sums, BOOTSTRAP_SEED)
    return {name: percentiles(own.shown(draws)) for name, own in estimates.items()}


def quotient(sums: np.ndarray) -> np.ndarray:
    """(..., 2) or (..., 4) sums to (...) values: num / den, or num / den - num / den."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = sums[..., 0] / sums[..., 1]
        if sums.shape[-1] == 4:
            values = values - sums[..., 2] / sums[..., 3]
    return values


def _per_seed(ratio: Ratio, seed: np.ndarray, scale: float) -> np.ndarray:
    _, codes = np.unique(seed, return_inverse=True)
    return scale * np.bincount(codes, ratio.numerator) / np.bincount(codes, ratio.denominator)


def _sums(ratio: Ratio, image: np.ndarray, n_images: int) -> np.ndarray:
    columns = [image_sums(part, image, n_images) for part in (ratio.numerator, ratio.denominator)]
    return np.column_stack(columns)


def _of_seen(evidence, sums: np.ndarray, seed_values: np.ndarray, scale: float) -> Estimate:
    """Keep the images that take part: an attacker holds out only some."""
    seen = np.unique(evidence.image)
    return Estimate(tuple(evidence.images[place] for place in seen), sums[seen], seed_values, scale, quotient)


def estimate(ratio: Ratio, evidence, scale: float) -> Estimate:
    """The estimate of one metric from its ratio and the evidence that it was read from."""
    sums = _sums(ratio, evidence.image, len(evidence.images))
    seed = getattr(evidence, "seed", None)
    seed_values = np.zeros(0) if seed is None else _per_seed(ratio, seed, scale)
    return _of_seen(evidence, sums, seed_values, scale)


def difference(ratio_m: Ratio, model: HeldOut, ratio_d: Ratio, human: HeldOut, scale: float) -> Estimate:
    """Captioner minus references, paired on images and seeds (both were split alike)."""
    if model.images != human.images or set(model.seed) != set(human.seed):
        raise ValueError("the two sides of a difference must be measured on the same images and seeds")
    seed_values = _per_seed(ratio_m, model.seed, scale) - _per_seed(ratio_d, human.seed, scale)
    n_images = len(model.images)
    sums = np.hstack([_sums(ratio_m, model.image, n_images), _sums(ratio_d, human.image, n_images)])
    return _of_seen(model, sums, seed_values, scale)


def comparison(
    compare: Callable[
        [CooccurrenceCounts, CooccurrenceCounts, tuple[CooccurrenceCounts, CooccurrenceCounts]], np.ndarray
    ],
    evidence: Cooccurrence,
    scale: float,
) -> Estimate:
    """The estimate of a metric that compares the counts of both sides.

    Which pairs count, and with which sign, is decided once, on all images: decided anew in every draw of a bootstrap,
    from noisier counts, it would shift the draws away from the value.
    """
    n_tasks, columns = len(evidence.tasks), evidence.human.shape[1]

    def counts(sums: np.ndarray) -> CooccurrenceCounts:
        return CooccurrenceCounts.of(sums, evidence.n_values, n_tasks)

    whole = counts(evidence.human.sum(axis=0)), counts(evidence.model.sum(axis=0))

    def of(sums: np.ndarray) -> np.ndarray:
        return compare(counts(sums[..., :columns]), counts(sums[..., columns:]), whole)

    sums = csr_array(hstack([evidence.human, evidence.model]))
    return Estimate(evidence.images, sums, np.zeros(0), scale, of)
