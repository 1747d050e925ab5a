"""Captioners compared in pairs: which differ significantly, and their letters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement, product
from string import ascii_lowercase

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack, issparse
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtr, stdtrit

from capbias_core.aggregate.estimate import REFITS, Estimate
from capbias_core.aggregate.resampling import (
    BOOTSTRAP_SEED,
    LEAST_SEEDS,
    LEVEL,
    NO_WIDTH,
    OF_DIFFERENCE,
    OF_LEVEL,
    refit_interval,
    refit_p,
    resampled_sums,
)

ALPHA = 0.05
ALIKE = 0.8  # training images over training images
# With fewer shared images the p values below separate captioners drawn alike too often (docs/statistics.md).
LEAST_SHARED = 30
BY_SEED = "differences within each seed, t test with the corrected resampled variance, Holm over all pairs"
BY_BOOTSTRAP = "differences on the same images, t test with the bootstrap over images, Holm over all pairs"


@dataclass(frozen=True)
class Pair:
    """Two captioners compared, with the 95% interval of their difference."""

    first: str
    second: str
    difference: float  # first - second
    ci_low: float | None
    ci_high: float | None
    p: float  # Holm-corrected over all pairs
    values: tuple[float, float] = (math.nan, math.nan)  # on the images of both

    @property
    def apart(self) -> bool:
        """Whether the two differ significantly."""
        return self.p < ALPHA


@dataclass(frozen=True)
class Ranking:
    """Captioners in pairs. Without any pair there are no letters, values or method."""

    # name -> letters, lowest value first; who shares one does not differ significantly. '' for captioners that are not
    # compared with those that most are compared with.
    letters: dict[str, str]
    pairs: tuple[Pair, ...]  # the comparisons that can be made, on the images of both
    values: dict[str, float] = field(default_factory=dict)  # name -> value on all images of the captioner
    method: str = ""  # how pairs were tested
    # Why the test carries no claim: it takes single trained attackers as given, or has fewer seeds than LEAST_SEEDS.
    provisional: str = ""
    images: dict[str, int] = field(default_factory=dict)  # name -> images that it was measured on, training included
    words: dict[str, float] = field(default_factory=dict)  # name -> average words of a caption


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down correction. (m,) p values to (m,) corrected ones, at most 1."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected


def rank(estimates: dict[str, Estimate]) -> Ranking:
    """Captioners compared in pairs, each on the images that both have; p values are Holm-corrected (Holm 1979).

    With attackers of several seeds a difference is taken within each seed, on the images that both hold out, else
    bootstrapped over images. Two that share fewer than LEAST_SHARED images are not compared, nor two whose attackers
    learned from much different numbers of images (ALIKE): that by itself makes them differ.
    """
    names, captioners = list(estimates), list(estimates.values())
    refitted = all(item.interval_over == REFITS for item in captioners)
    compared: dict[tuple[int, int], tuple[tuple[float, float], float | None, float | None, float]] = {}
    for members, pairs in _comparable(captioners):
        values, compare = (_by_seed if refitted else _by_bootstrap)([captioners[index] for index in members])
        for i, j in pairs:
            first, second = members.index(i), members.index(j)
            compared[i, j] = ((float(values[first]), float(values[second])), *compare(first, second))
    indices = sorted(compared)
    corrected = holm(np.array([compared[pair][-1] for pair in indices]))
    pairs = tuple(
        Pair(names[i], names[j], values[0] - values[1], low, high, float(p), values)
        for (i, j), p in zip(indices, corrected, strict=True)
        for values, low, high, _ in [compared[i, j]]
    )
    images = {
        name: item.n_images + (item.refits.training if item.refits is not None else 0)
        for name, item in estimates.items()
    }
    if not pairs:
        return Ranking(dict.fromkeys(names, ""), (), images=images)
    ordered = sorted(names, key=lambda name: estimates[name].value)
    by_name = _letters(ordered, pairs, images)
    letters = {name: by_name[name] for name in names}
    seeds = [len(item.refits.seeds) for item in captioners if item.refits is not None]
    provisional = "given these trained attackers: provisional" if seeds and not refitted else ""
    if refitted and min(seeds) < LEAST_SEEDS:
        provisional = "too few seeds to conclude"
    method = BY_SEED if refitted else BY_BOOTSTRAP
    values = {name: float(item.value) for name, item in estimates.items()}
    return Ranking(letters, pairs, values, method, provisional=provisional, images=images)


def _comparable(captioners: list[Estimate]) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Captioners by their indices, with the pairs of them to compare on the images that these captioners share."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for index, item in enumerate(captioners):
        alike.setdefault(item.images, []).append(index)
    for one, other in combinations_with_replacement(alike.values(), 2):
        members = one if one is other else [*one, *other]
        every = combinations(one, 2) if one is other else product(one, other)
        pairs = [(min(i, j), max(i, j)) for i, j in every if _trained_alike(captioners[i], captioners[j])]
        if pairs and len(set(captioners[one[0]].images) & set(captioners[other[0]].images)) >= LEAST_SHARED:
            yield members, pairs


def _trained_alike(one: Estimate, other: Estimate) -> bool:
    if one.refits is None or other.refits is None:
        return True
    fewer, more = sorted([one.refits.training, other.refits.training])
    return fewer >= ALIKE * more


def _by_seed(captioners: list[Estimate]):
    """Values of captioners over the seeds that all have, and what compares two of them: interval and p."""
    refits = [item.refits for item in captioners if item.refits is not None]
    seeds = sorted(set.intersection(*(set(item.seeds) for item in refits)))
    rows_of = [[item.seeds.index(seed) for seed in seeds] for item in refits]
    columns = _shared_images(captioners)
    both = np.logical_and.reduce(
        [item.held_out[np.ix_(rows, images)] for item, rows, images in zip(refits, rows_of, columns, strict=True)]
    )
    by_seed = []
    for item, refit, rows, images in zip(captioners, refits, rows_of, columns, strict=True):
        kept = np.zeros_like(refit.held_out)
        kept[np.ix_(rows, images)] = both
        by_seed.append(item.shown(refit.by_seed(kept)[rows]))
    ratio = float(np.mean([refit.test_over_train for refit in refits]))
    widest = max(item.span[1] - item.span[0] for item in captioners)

    def compare(i: int, j: int) -> tuple[float | None, float | None, float]:
        difference = by_seed[i] - by_seed[j]
        # Trained on other images, what these do to both does not cancel.
        times = OF_DIFFERENCE if captioners[i].images == captioners[j].images else OF_LEVEL
        low, high = refit_interval(difference, ratio, times, (-widest, widest))
        return low, high, refit_p(difference, ratio, times)

    return np.array([values.mean() for values in by_seed]), compare


def _by_bootstrap(captioners: list[Estimate]):
    """The same from draws of images, the same ones for all captioners."""
    sums = [item.sums[rows] for item, rows in zip(captioners, _shared_images(captioners), strict=True)]
    stacked = csr_array(hstack(sums)) if issparse(sums[0]) else np.hstack(sums)
    drawn = np.split(resampled_sums(stacked, BOOTSTRAP_SEED), np.cumsum([part.shape[1] for part in sums])[:-1], axis=1)
    draws = np.column_stack([item.shown(part) for item, part in zip(captioners, drawn, strict=True)])
    values = np.array([float(item.shown(part.sum(axis=0))) for item, part in zip(captioners, sums, strict=True)])

    def compare(i: int, j: int) -> tuple[float | None, float | None, float]:
        with np.errstate(invalid="ignore"):  # of two infinite values; there is then no interval
            difference = draws[:, i] - draws[:, j]
        # Sums whose columns are a captioner's words cannot be subtracted: then these are all images that have any.
        alike = sums[i].shape == sums[j].shape
        parts = [abs(part).sum(axis=1) for part in ([sums[i] - sums[j]] if alike else [sums[i], sums[j]])]
        differing = int(np.count_nonzero(np.asarray(sum(parts)) > NO_WIDTH))
        return _t_test(values[i] - values[j], difference, differing)

    return values, compare


def _shared_images(captioners: list[Estimate]) -> list[list[int]]:
    """Of each captioner the indices of the images that all have."""
    shared = sorted(set.intersection(*(set(item.images) for item in captioners)))
    positions = [{image: index for index, image in enumerate(item.images)} for item in captioners]
    return [[position[image] for image in shared] for position in positions]


def _t_test(value: float, draws: np.ndarray, images: int) -> tuple[float | None, float | None, float]:
    """The 95% interval and the two-sided p value of a difference with the bootstrap's standard error, by Student's t.
    images: on which the two differ; one less are the degrees of freedom. If no draw differs from another, p is that of
    the sign test. 1 if it is not defined."""
    if not np.isfinite(draws).all() or not np.isfinite(value):
        return None, None, 1.0
    error = float(np.std(draws))
    if error <= NO_WIDTH:
        return None, None, min(1.0, 2 * 0.5**images) if abs(value) > NO_WIDTH else 1.0
    if images < 2:
        return None, None, 1.0
    half = float(stdtrit(images - 1, (1 + LEVEL) / 2)) * error
    return float(value) - half, float(value) + half, float(2 * stdtr(images - 1, -abs(value) / error))


def _letters(names: list[str], pairs: Sequence[Pair], images: Mapping[str, int]) -> dict[str, str]:
    """Letters by name, of the largest group that comparisons link (of equal ones by images); '' for others."""
    index_of = {name: index for index, name in enumerate(names)}
    linked = coo_array(
        (np.ones(len(pairs)), ([index_of[pair.first] for pair in pairs], [index_of[pair.second] for pair in pairs])),
        shape=(len(names), len(names)),
    )
    _, component = connected_components(linked, directed=False)
    groups = [
        [name for name, one in zip(names, component, strict=True) if one == number] for number in np.unique(component)
    ]
    group = max(groups, key=lambda group: (len(group), sum(images[name] for name in group)))
    apart = [(pair.first, pair.second) for pair in pairs if pair.apart and pair.first in group]
    return dict.fromkeys(names, "") | compact_letters(group, apart)


def compact_letters(names: list[str], apart: list[tuple[str, str]]) -> dict[str, str]:
    """Letters by name, the first letters for the first names: two names share a letter unless they are apart (pairs).

    Insert and absorb (Piepho, Journal of Computational and Graphical Statistics 13, 2004).

    >>> compact_letters(["low", "between", "high"], [("low", "high")])
    {'low': 'a', 'between': 'ab', 'high': 'b'}
    """
    groups = [frozenset(names)]
    for pair in apart:
        split = [group - {name} if group.issuperset(pair) else group for group in groups for name in pair]
        groups = [group for group in dict.fromkeys(split) if not any(group < other for other in split)]
    position = {name: number for number, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(position[name] for name in group))

    def letter(number: int) -> str:  # a to z, then a' and so on
        turn, position = divmod(number, len(ascii_lowercase))
        return ascii_lowercase[position] + "'" * turn

    return {name: "".join(letter(number) for number, group in enumerate(groups) if name in group) for name in names}
