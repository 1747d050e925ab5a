"""The change of a metric from one captioner to another, paired over the images of both, and which way it went."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from capbias_core.aggregate.estimate import Estimate
from capbias_core.aggregate.metric import Metric
from capbias_core.aggregate.ranking import ALIKE, ALPHA, LEAST_SHARED, Pair, rank
from capbias_core.aggregate.resampling import NO_WIDTH

WORSE, IMPROVED = "worse", "better"


@dataclass(frozen=True)
class Change:
    """A metric of two captioners on the images of both."""

    before: float
    after: float
    difference: float  # after minus before, with its 95% interval
    low: float | None
    high: float | None
    worse: float  # the difference, its opposite, or how much further from neutral; nan where neither end is better
    p: float  # two-sided, of `worse` (else of the difference), not corrected
    images: int
    undecided: str = ""  # why nothing can be said of it
    neutral: float = math.nan  # the value whose distance counts, nan if none does

    def claim(self, p: float) -> str:
        """WORSE or IMPROVED, if significant by this corrected p; else ''."""
        if self.undecided or not math.isfinite(self.worse) or p >= ALPHA:
            return ""
        return WORSE if self.worse > 0 else IMPROVED


def change_of(before: Estimate, after: Estimate, metric: Metric, values: int, neutral: float | None = None) -> Change:
    """The change of a metric. values: how many the attribute has. neutral: value (default: the metric's)."""
    shared = len(set(before.images) & set(after.images))
    pair, provisional = _compared(before, after)
    if pair is None:
        few = f"they share {shared:,} images, fewer than {LEAST_SHARED}"
        why = few if shared < LEAST_SHARED else f"one attacker trained on less than {ALIKE:.0%} as many images"
        return Change(before.value, after.value, math.nan, None, None, math.nan, 1.0, shared, why)
    neutral, worse = metric.neutral(values) if neutral is None else neutral, pair
    if metric.better != "neutral":
        neutral = math.nan
    elif math.isfinite(neutral):
        worse, _ = _compared(_distance(before, neutral), _distance(after, neutral))
        assert worse is not None
    sign = {"lower": 1, "neutral": 1 if math.isfinite(neutral) else math.nan, "higher": -1}.get(metric.better, math.nan)
    undecided = provisional
    if not math.isfinite(worse.difference):
        undecided = "its value is not defined for both"
    elif before.refits is not None and worse.ci_low is None and abs(worse.difference) > NO_WIDTH:
        undecided = "all seeds agree, so its spread is not known"
    shown = pair.values[1], pair.values[0], pair.difference, pair.ci_low, pair.ci_high
    return Change(*shown, sign * worse.difference, worse.p, shared, undecided, neutral)


def _compared(before: Estimate, after: Estimate) -> tuple[Pair | None, str]:
    ranking = rank({"after": after, "before": before})
    return (ranking.pairs[0] if ranking.pairs else None), ranking.provisional


def _distance(estimate: Estimate, neutral: float) -> Estimate:
    """How far the metric is from its neutral value, by seed and by draw."""
    return replace(
        estimate,
        seed_values=np.abs(estimate.seed_values - neutral),
        of=lambda sums: np.abs(estimate.of(sums) - neutral / estimate.scale),
    )
