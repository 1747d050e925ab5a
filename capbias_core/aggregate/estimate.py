"""A metric's value with its spread over seeds and its interval: with refits, or over images."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from capbias_core.aggregate.counts import Counts
from capbias_core.aggregate.metric import Metric, by_name
from capbias_core.aggregate.resampling import (
    BOOTSTRAP_SEED,
    LEAST_SEEDS,
    OF_DIFFERENCE,
    OF_LEVEL,
    UNBOUNDED,
    Span,
    percentiles,
    refit_interval,
    resampled_sums,
    share_interval,
)
from capbias_core.metrics.share import gap
from capbias_core.metrics.share import share as share_of

# What an interval says: other images and attackers trained on them, or other images given what was trained.
REFITS, IMAGES = "refits", "images"
NEUTRAL = "neutral"  # what results call the word that names no value
AMPLIFIES, INCONCLUSIVE, REDUCES = "amplifies", "inconclusive", "reduces"
VERDICTS = (AMPLIFIES, INCONCLUSIVE, REDUCES)


def provisional(row: Mapping[str, Any]) -> bool:
    """Whether a row of results carries no claim: it is of a single trained attacker, or of too few seeds."""
    return row["training"] > 0 and (row["interval"] == IMAGES or 0 < row["seeds"] < LEAST_SEEDS)


@dataclass(frozen=True)
class Estimate:
    """One metric of one caption set, image by image, so that captioners can be compared in pairs."""

    images: tuple[str, ...]
    sums: np.ndarray | csr_array  # (n_images, M) columns of each image
    seed_values: np.ndarray  # (S,) the shown value of each attacker seed, empty for metrics without
    scale: float
    of: Callable[[np.ndarray], np.ndarray]  # summed columns (..., M) to unscaled values (...)
    refits: Counts | None = None  # the counts by seed, None if nothing was trained
    training_twice: bool = True  # False for a difference of sides trained on the same images: their part cancels
    span: Span = UNBOUNDED  # the least and the largest that the shown value can be
    share: bool = False  # from none to all
    unsure: float = 0.0  # how far the shown value may be off besides, which widens its interval over images
    no_interval: str = ""  # why there is none

    @classmethod
    def read(
        cls, counts: Counts, of: Callable[..., np.ndarray], scale: float, span: Span = UNBOUNDED, **facts: Any
    ) -> Estimate:
        """What a formula makes of counts. of: summed columns, (...) or (..., W) each, to (...). facts: more fields."""
        counts, widths = counts.taking_part, counts.widths.values()
        if of is share_of and tuple(widths) == (0, 0):
            formula = quotient
        else:
            ends = np.cumsum([max(1, width) for width in widths])[:-1]

            def formula(sums: np.ndarray) -> np.ndarray:
                parts = zip(np.split(sums, ends, axis=-1), widths, strict=True)
                return of(*(part if width else part[..., 0] for part, width in parts))

        values = scale * formula(counts.by_seed(counts.held_out)) if counts.seeds else np.zeros(0)
        refits = counts if counts.training else None
        return cls(counts.images, counts.sums, values, scale, formula, refits, span=span, **facts)

    def of_images(self, kept: np.ndarray) -> Estimate:
        """The same on some of its images, their indices; of a metric without seeds."""
        return replace(self, images=tuple(self.images[index] for index in kept), sums=self.sums[kept])

    def across(self, group: np.ndarray, k: int, compare: Callable[[np.ndarray], np.ndarray]) -> Estimate:
        """The estimate of compare, (..., K) values of groups to (...), without seeds. group: (n_images,) codes."""
        columns = self.sums.shape[1]
        member = group[:, None] == np.arange(k)  # (n_images, K)
        sums = (member[:, :, None] * self.sums[:, None, :]).reshape(len(group), k * columns)
        top = self.span[1] - self.span[0]

        def of(summed: np.ndarray) -> np.ndarray:
            return compare(self.of(summed.reshape(*summed.shape[:-1], k, columns)))

        return Estimate(self.images, sums, np.zeros(0), self.scale, of, span=(-top, top))

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

    @property
    def interval_over(self) -> str:
        """REFITS with attackers of two seeds or more, else IMAGES: of an attacker's metric, given that one attacker."""
        return REFITS if self.refits is not None and len(self.refits.seeds) > 1 else IMAGES

    @property
    def interval_method(self) -> str:
        """How the interval is made, for the method of a result."""
        if self.interval_over == REFITS:
            return "95% with refits (corrected resampled variance)"
        if self.no_interval:
            return f"no interval: {self.no_interval}"
        how = "95% Wilson interval over images" if self.share else "95% image bootstrap, 1000 draws"
        how += f", widened by {self.unsure:.2f} for unsure signs" if self.unsure else ""
        return how + (", given this one attacker" if self.refits is not None else "")

    @property
    def needs_draws(self) -> bool:
        """Whether the interval takes a bootstrap."""
        return not (self.no_interval or self.interval_over == REFITS or (self.share and self.of is quotient))

    def interval(self, draws: np.ndarray | None = None) -> tuple[float, float] | tuple[None, None]:
        """95%, see `interval_method`. Nothing with a reason in no_interval, if a draw or a seed's value is not defined,
        or if all agree; but where all draws agree on an end of span, it is that of a share of none or of all. draws:
        (draws, M) sums of a bootstrap, if they are known already."""
        if self.no_interval:
            return None, None
        if self.refits is not None and self.interval_over == REFITS:
            times = OF_LEVEL if self.training_twice else OF_DIFFERENCE
            return refit_interval(self.seed_values, self.refits.test_over_train, times, self.span)
        whole = self.sums.sum(axis=0)
        if not self.needs_draws:  # a quotient: its standard error over images, by its linear part
            numerator, denominator = np.asarray(self.sums, dtype=float).T
            total, error = denominator.sum(), 0.0
            if total:
                error = self.scale * float(np.linalg.norm(numerator - denominator * (numerator.sum() / total)) / total)
            return self._score_interval(float(self.shown(whole)), error, 0, self.scale)
        shown = self.shown(resampled_sums(self.sums, BOOTSTRAP_SEED) if draws is None else draws)
        if not np.isfinite(shown).all():
            return None, None
        if self.share:
            return self._score_interval(float(self.shown(whole)), float(np.std(shown)), 0, self.scale)
        low, high = percentiles(shown)
        if low is not None and high is not None:
            return low - self.unsure, high + self.unsure
        return self._score_interval(shown[0], 0.0, *self.span) if np.isfinite(self.span).all() else (None, None)

    @property
    def n_images(self) -> int:
        """The images that the value depends on; with attackers those that one of them tests, on average."""
        if self.refits is not None:
            return round(float(self.refits.held_out.sum(axis=1).mean()))
        return int(np.count_nonzero(np.asarray(abs(self.sums).sum(axis=1))))

    def _score_interval(
        self, value: float, error: float, first: float, last: float
    ) -> tuple[float, float] | tuple[None, None]:
        if not np.isfinite(value):
            return None, None
        width = last - first
        low, high = share_interval((value - first) / width, error / width, self.n_images)
        return (None, None) if low is None or high is None else (first + width * low, first + width * high)

    def columns(self, interval: tuple[float, float] | tuple[None, None] | None = None) -> dict[str, Any]:
        """What a row of the results table says of it. interval: where it is known already."""
        low, high = interval or self.interval()
        return {
            "value": self.value,
            "spread": self.spread,
            "spread_kind": "std" if self.spread is not None else "",
            "scale": self.scale,
            "seeds": len(self.seed_values),
            "training": self.refits.training if self.refits is not None else 0,
            "ci_low": low,
            "ci_high": high,
            "interval": self.interval_over if low is not None else "",
        }


def estimates_of(
    metrics: Iterable[Metric], counts: Counts, values: Sequence[str], direction: str = ""
) -> dict[tuple[str, str], Estimate]:
    """The estimate of each metric whose columns were counted, by metric and direction."""
    known, by_columns, estimates = by_name(*metrics), {}, {}
    for name, metric in known.items():
        if not metric.reads or not set(metric.reads) <= set(counts.columns):
            continue
        if metric.reads not in by_columns:  # one object, so that these metrics share their bootstrap
            by_columns[metric.reads] = counts.reading(metric.reads).taking_part
        read = by_columns[metric.reads]
        if metric.gap_of:
            whole = of_groups(known[metric.gap_of], read, values)
            estimates[name, direction] = whole.across(read.label, len(values), gap)
        else:
            estimates |= {(name, which): one for which, one in _by_direction(metric, read, values, direction)}
    return estimates


def of_groups(metric: Metric, counts: Counts, values: Sequence[str]) -> Estimate:
    """A metric as it is read on the images of one group, or of each. counts: with its columns alone."""
    ((_, estimate),) = _by_direction(metric, counts, values, "")
    return estimate


def _by_direction(metric: Metric, counts: Counts, values: Sequence[str], direction: str) -> list[tuple[str, Estimate]]:
    """A metric's estimate in the given direction, or one for each value. counts: with its columns alone."""
    fixed = metric.fix(counts, len(values), direction) if metric.fix else {}
    of = partial(metric.of, **fixed) if fixed else metric.of
    plain_share = metric.interval == "" and metric.of is share_of and metric.range == (0, metric.scale)
    facts = {
        "scale": metric.scale,
        "span": UNBOUNDED if metric.interval == "free" else metric.range,
        "share": metric.interval == "share" or plain_share,
        "training_twice": metric.training_twice,
        "no_interval": metric.no_interval(counts) if callable(metric.no_interval) else metric.no_interval,
        "unsure": counts.constants.get(f"{metric.name} unsure", 0.0),
    }
    if not metric.by_value:
        return [(direction, Estimate.read(counts, of, **facts))]
    columns = range(of(*counts.totals).shape[-1])
    return [
        (name, Estimate.read(counts, lambda *sums, column=column: of(*sums)[..., column], **facts))
        for column, name in zip(columns, (*values, NEUTRAL), strict=False)
    ]


Name = TypeVar("Name", bound=Hashable)


def intervals(estimates: Mapping[Name, Estimate]) -> dict[Name, tuple[float, float] | tuple[None, None]]:
    """The interval of each estimate; those over images of the same sums share one bootstrap."""
    draws = {id(estimate.sums): estimate.sums for estimate in estimates.values() if estimate.needs_draws}
    draws = {key: resampled_sums(sums, BOOTSTRAP_SEED) for key, sums in draws.items()}
    return {name: estimate.interval(draws.get(id(estimate.sums))) for name, estimate in estimates.items()}


def quotient(sums: np.ndarray) -> np.ndarray:
    """(..., 2) sums to (...) values: numerator / denominator."""
    return share_of(sums[..., 0], sums[..., 1])


def interval_side(low: Any, high: Any, neutral: float = 0.0) -> Any:
    """On which side of the neutral point an interval lies: 1 above, -1 below, 0 if it contains it or there is none.

    >>> [int(interval_side(*ends)) for ends in ((0.5, 2.0), (-2.0, -0.5), (-1.0, 1.0), (None, None))]
    [1, -1, 0, 0]
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return (low > neutral).astype(int) - (high < neutral).astype(int)


def verdict(by_human_low: float | None, by_model_high: float | None) -> str:
    """The verdict from the lower limit of LIC_by_H and the upper limit of LIC_by_M, None for no interval.

    >>> verdict(0.3, 2.1), verdict(-0.2, 2.1), verdict(-2.1, -0.3), verdict(0.3, -0.3)
    ('amplifies', 'inconclusive', 'reduces', 'inconclusive')
    """
    more = by_human_low is not None and by_human_low > 0
    less = by_model_high is not None and by_model_high < 0
    return INCONCLUSIVE if more == less else AMPLIFIES if more else REDUCES
