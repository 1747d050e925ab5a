"""How far a metric's answer depends on who judges: the encoder, another judge, people; and on how people were masked.

All functions are pure: a results table in (columns as `RESULT_COLUMNS`), rows of the same table out, for any metric.
In the rows that come out, `metric` is cv, conflict_score, clear_conflict_score, ranking_consistency, human_alignment,
mask_correlation or mask_difference; `condition` is the metric that was judged, and after a semicolon its own condition
(`LIC; masked_object`); `encoder` names the judges, n counts them (cv) or the captioners (others), and `method` says
what was done or why the value is blank. paper and table are those of the rows that were judged.

Sources: DBAC, section 5.3 and tables 5 and 6 (cv); ImageCaptioner2, tables 4 and 5, and 6 (masks; the others).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ncfdtr, ncfdtrinc, stdtrit

from capbias_core.aggregate.bootstrap import LEVEL

LEAST_CAPTIONERS = 3
NO_MEAN = 1e-9


def coefficient_of_variation(values: np.ndarray) -> float:
    """Sample standard deviation (ddof 1) over |mean|; 0 or more, lower is more consistent; nan where undefined.

    values: (E,), one an encoder. Undefined for fewer than two and for a mean of 0.

    >>> round(coefficient_of_variation(np.array([1.0, 2.0, 3.0])), 3)
    0.5
    """
    values = np.asarray(values, dtype=float)
    if len(values) < 2 or abs(values.mean()) <= NO_MEAN * np.abs(values).max():
        return math.nan
    return float(np.std(values, ddof=1) / abs(values.mean()))


def interval_errors(values: np.ndarray, low: np.ndarray, high: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """The standard errors behind 95% intervals with refits, of which at most one end is a bound of the metric's range.

    All (E,); nan for fewer than two seeds."""
    seeds = np.asarray(seeds, dtype=float)
    freedom = np.where(seeds > 1, seeds - 1, math.nan)
    return np.maximum(high - values, values - low) / stdtrit(freedom, (1 + LEVEL) / 2)


def noise_floor(values: np.ndarray, errors: np.ndarray) -> float:
    """The coefficient of variation that encoders alike would show by their seeds alone: what one encoder has against
    itself. values, errors: (E,), one an encoder, and its standard error.

    >>> round(noise_floor(np.array([9.0, 11.0]), np.array([3.0, 4.0])), 4)  # sqrt((9 + 16) / 2) / 10
    0.3536
    """
    return float(np.sqrt(np.mean(np.square(errors))) / abs(np.mean(values)))


def variation_interval(values: np.ndarray, errors: np.ndarray, freedom: int) -> tuple[float, float]:
    """95% interval of the coefficient of variation that these encoders would have without noise; it starts at 0 if
    noise alone gives as much.

    E - 1 times the variance over encoders, over the mean squared error, follows a noncentral F distribution with E - 1
    and `freedom` degrees; the interval is that of its noncentrality (Steiger 2004). The mean over encoders is taken as
    known. values, errors: (E,). freedom: of the errors, seeds minus 1 over all encoders.
    """
    between, size = len(values) - 1, abs(np.mean(values))
    noise = float(np.mean(np.square(errors)))
    ratio = float(np.var(values, ddof=1)) / noise if noise else math.inf
    if not math.isfinite(ratio):
        return coefficient_of_variation(values), coefficient_of_variation(values)

    def end(share: float) -> float:
        known = ncfdtr(between, freedom, 0, ratio) > share
        return math.sqrt(ncfdtrinc(between, freedom, share, ratio) * noise / between) / float(size) if known else 0.0

    return float(end((1 + LEVEL) / 2)), float(end((1 - LEVEL) / 2))


def conflict_score(first: np.ndarray, second: np.ndarray) -> float:
    """Share in % of captioners that one judge puts above 0 and the other does not; 0 to 100, lower is better.

    first, second: (M,), one a captioner.

    >>> conflict_score(np.array([1.0, 2.0, 0.0, 3.0]), np.array([1.0, -2.0, -1.0, 1.0]))
    25.0
    """
    return float(100 * np.mean((np.asarray(first) > 0) != (np.asarray(second) > 0)))


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation, -1 to 1; nan for fewer than three captioners or where one side is constant.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])) > 0.99
    True
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if len(first) < LEAST_CAPTIONERS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


def name_key(name: str) -> str:
    """What of a captioner's name counts when names are compared: letters and digits, any case; a + at its end is a
    word.

    >>> name_key("Att2In") == name_key("att2in"), name_key("NIC+") == name_key("nic_plus"), name_key("NIC+Equalizer")
    (True, True, 'nicequalizer')
    """
    name = name.strip()
    if name.endswith("+"):
        name = name.rstrip("+") + "plus"
    return "".join(character for character in name.casefold() if character.isalnum())
