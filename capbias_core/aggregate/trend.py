"""How well a straight line through captioners explains one metric by another.

    R^2 = squared correlation of the two = share of the variance that the line explains

Range [0, 1]; neither direction is better. Source: LIC (Hirota et al., CVPR 2022), Figure 3. Captioners are few and not
drawn at random from all that there could be: the interval says how much hangs on single ones, and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from capbias_core.aggregate.bootstrap import DRAWS, percentiles
from capbias_core.aggregate.consistency import LEAST_CAPTIONERS, pearson
from capbias_core.aggregate.estimate import BOOTSTRAP_SEED

LEAST_FOR_INTERVAL = 5


@dataclass(frozen=True)
class Trend:
    """A line y = intercept + slope * x through n captioners, with R^2 and its 95% interval, None if there is none.

    reason: why r_squared is nan, or ''.
    """

    n: int
    slope: float
    intercept: float
    r_squared: float
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str = ""


def r_squared(x: np.ndarray, y: np.ndarray) -> float:
    """R^2 of the least-squares line; nan for fewer than three captioners or if one side is constant.

    >>> round(r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 2)
    0.25
    """
    return pearson(x, y) ** 2


def trend(x: np.ndarray, y: np.ndarray) -> Trend:
    """The line through the captioners that have both values. x, y: (M,), nan if a captioner has none.

    The interval is a percentile bootstrap over captioners, 1,000 draws, for five or more; draws of fewer than three
    different ones, through which any line goes, do not count.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    value = r_squared(x, y)
    if not math.isfinite(value):
        few = f"needs at least {LEAST_CAPTIONERS} captioners with both values, got {len(x)}"
        same = "all captioners have the same value"
        return Trend(len(x), math.nan, math.nan, math.nan, reason=few if len(x) < LEAST_CAPTIONERS else same)
    slope, intercept = np.polyfit(x, y, 1)
    return Trend(len(x), float(slope), float(intercept), value, *_interval(x, y))


def _interval(x: np.ndarray, y: np.ndarray) -> tuple[float, float] | tuple[None, None]:
    if len(x) < LEAST_FOR_INTERVAL:
        return None, None
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(0, len(x), (DRAWS, len(x)))
    enough = [places for places in drawn if len(set(places)) >= LEAST_CAPTIONERS]
    return percentiles(np.array([r_squared(x[places], y[places]) for places in enough]))
