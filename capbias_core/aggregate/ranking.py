"""Ranks that tie if captioners cannot be told apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from capbias_core.aggregate.bootstrap import percentiles, resampled_sums
from capbias_core.aggregate.estimate import BOOTSTRAP_SEED, Estimate

ALPHA = 0.05


@dataclass(frozen=True)
class Pair:
    """first - second, paired on images; p is Holm-corrected over all pairs."""

    first: str
    second: str
    difference: float
    ci_low: float | None
    ci_high: float | None
    p: float


@dataclass(frozen=True)
class Ranking:
    """ranks: name -> (best, worst) rank that the data allow, 1 = lowest value; pairs: every comparison; values: name ->
    value on the images that all share, of which the pairs are differences; empty if nothing is compared."""

    ranks: dict[str, tuple[int, int]]
    pairs: tuple[Pair, ...]
    values: dict[str, float] = field(default_factory=dict)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down correction. (m,) p values to (m,) corrected ones, at most 1."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected


def _shared(estimates: list[Estimate]) -> list[np.ndarray | csr_array]:
    """For each captioner its sums, (n_shared_images, M), on the images that all of them have."""
    shared = sorted(set.intersection(*(set(item.images) for item in estimates)))
    rows = []
    for item in estimates:
        position = {image: place for place, image in enumerate(item.images)}
        rows.append(item.sums[[position[image] for image in shared]])
    return rows


def _paired_draws(estimates: list[Estimate], sums: list[np.ndarray | csr_array]) -> np.ndarray:
    """(draws, captioners) values on the same drawn images."""
    stacked = csr_array(hstack(sums)) if issparse(sums[0]) else np.hstack(sums)
    edges = np.cumsum([part.shape[1] for part in sums])[:-1]
    drawn = np.split(resampled_sums(stacked, BOOTSTRAP_SEED), edges, axis=1)
    return np.column_stack([item.shown(part) for item, part in zip(estimates, drawn, strict=True)])


def rank(estimates: dict[str, Estimate]) -> Ranking:
    """Ranks of captioners by value, lowest first, from paired differences.

    Each pair's difference is bootstrapped over the images that all captioners share; its p value is two-sided
    normal with the bootstrap's standard error, Holm-corrected over all pairs. A captioner's best rank is one more
    than the number that are surely lower, its worst rank leaves out those that are surely higher.
    """
    names = list(estimates)
    if len(names) < 2:
        return Ranking({name: (1, 1) for name in names}, ())
    own = list(estimates.values())
    sums = _shared(own)
    if sums[0].shape[0] == 0:
        return Ranking({name: (1, len(names)) for name in names}, ())
    draws = _paired_draws(own, sums)
    values = np.array([float(item.shown(part.sum(axis=0))) for item, part in zip(own, sums, strict=True)])
    indices = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    raw = np.array([_p_value(values[i] - values[j], draws[:, i] - draws[:, j]) for i, j in indices])
    pairs = tuple(
        Pair(names[i], names[j], float(values[i] - values[j]), *percentiles(draws[:, i] - draws[:, j]), float(p))
        for (i, j), p in zip(indices, holm(raw), strict=True)
    )
    ranks = {name: _range(name, len(names), pairs) for name in names}
    return Ranking(ranks, pairs, dict(zip(names, values.tolist(), strict=True)))


def _p_value(value: float, draws: np.ndarray) -> float:
    """Two-sided normal p value with the bootstrap's standard error; 1 if the difference is not defined."""
    if not np.isfinite(draws).all() or not np.isfinite(value):
        return 1.0
    error = np.std(draws)
    if error == 0:
        return float(value == 0)
    return math.erfc(abs(value) / error / math.sqrt(2))


def _range(name: str, total: int, pairs: tuple[Pair, ...]) -> tuple[int, int]:
    lower = higher = 0
    for pair in pairs:
        if pair.p >= ALPHA or name not in (pair.first, pair.second):
            continue
        own = pair.difference if name == pair.first else -pair.difference
        lower, higher = lower + (own > 0), higher + (own < 0)
    return 1 + lower, total - higher
