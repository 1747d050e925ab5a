"""Ranks that tie where captioners cannot be told apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from capbias_core.aggregate.bootstrap import percentiles, resampled_sums
from capbias_core.aggregate.estimate import BOOTSTRAP_SEED, Estimate, quotient

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
    """ranks: name -> (best, worst) rank that the data allow, 1 = lowest value; pairs: every comparison."""

    ranks: dict[str, tuple[int, int]]
    pairs: tuple[Pair, ...]


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down correction. (m,) p values to (m,) corrected ones, at most 1."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected


def _shared(estimates: dict[str, Estimate]) -> np.ndarray:
    """(n_shared_images, M, 2 or 4) sums of every captioner on the images that all of them have."""
    shared = set.intersection(*(set(item.images) for item in estimates.values()))
    rows = []
    for item in estimates.values():
        position = {image: place for place, image in enumerate(item.images)}
        rows.append(item.sums[[position[image] for image in sorted(shared)]])
    return np.stack(rows, axis=1)


def rank(estimates: dict[str, Estimate]) -> Ranking:
    """Ranks of captioners by value, lowest first, from paired differences.

    Each pair's difference is bootstrapped over the images that all captioners share; its p value is two-sided
    normal with the bootstrap's standard error, Holm-corrected over all pairs. A captioner's best rank is one more
    than the number that are surely lower, its worst rank leaves out those that are surely higher.
    """
    names = list(estimates)
    if len(names) < 2:
        return Ranking({name: (1, 1) for name in names}, ())
    sums = _shared(estimates)
    if len(sums) == 0:
        return Ranking({name: (1, len(names)) for name in names}, ())
    scale = next(iter(estimates.values())).scale
    flat = resampled_sums(sums.reshape(len(sums), -1), BOOTSTRAP_SEED)
    draws = quotient(flat.reshape(len(flat), *sums.shape[1:]), scale)  # (draws, M)
    values = quotient(sums.sum(axis=0), scale)  # (M,)
    indices = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    raw = np.array([_p_value(values[i] - values[j], draws[:, i] - draws[:, j]) for i, j in indices])
    pairs = tuple(
        Pair(names[i], names[j], float(values[i] - values[j]), *percentiles(draws[:, i] - draws[:, j]), float(p))
        for (i, j), p in zip(indices, holm(raw), strict=True)
    )
    return Ranking({name: _range(name, len(names), pairs) for name in names}, pairs)


def _p_value(value: float, draws: np.ndarray) -> float:
    """Two-sided normal p value with the bootstrap's standard error; 1 where the difference is not defined."""
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
