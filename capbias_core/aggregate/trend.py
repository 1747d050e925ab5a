"""How well a straight line through captioners explains one metric by another.

    R^2 = squared correlation of the two = share of the variance that the line explains

Range [0, 1]; neither direction is better. Source: LIC (Hirota et al., CVPR 2022), Figure 3. The slope's p value and 95%
interval are those of the t test with n - 2 degrees of freedom. Captioners are few and not drawn at random from all that
there could be: they say how much hangs on these, and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from capbias_core.aggregate.bootstrap import LEVEL
from capbias_core.aggregate.consistency import LEAST_CAPTIONERS, pearson
from capbias_core.aggregate.ranking import ALPHA


@dataclass(frozen=True)
class Trend:
    """A line y = intercept + slope * x through n captioners, with R^2; low, high: the slope's 95% interval; p: of no
    slope, in [0, 1].

    reason: why r_squared is nan, or ''.
    """

    n: int
    slope: float = math.nan
    intercept: float = math.nan
    r_squared: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = 1.0
    reason: str = ""

    @property
    def shown(self) -> bool:
        """Whether the slope can be told from 0."""
        return self.p < ALPHA


def r_squared(x: np.ndarray, y: np.ndarray) -> float:
    """R^2 of the least-squares line; nan for fewer than three captioners or if one side is constant.

    >>> round(r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 2)
    0.25
    """
    return pearson(x, y) ** 2


def trend(x: np.ndarray, y: np.ndarray) -> Trend:
    """The line through the captioners that have both values. x, y: (M,), nan if a captioner has none."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    value = r_squared(x, y)
    if not math.isfinite(value):
        few = f"needs at least {LEAST_CAPTIONERS} captioners with both values, got {len(x)}"
        same = "all captioners have the same value"
        return Trend(len(x), reason=few if len(x) < LEAST_CAPTIONERS else same)
    from scipy.stats import linregress

    line = linregress(x, y)
    half = float(stdtrit(len(x) - 2, (1 + LEVEL) / 2) * line.stderr)
    slope, intercept, p = float(line.slope), float(line.intercept), float(line.pvalue)
    return Trend(len(x), slope, intercept, value, slope - half, slope + half, p)
