"""How far a metric's answer depends on who judges: the encoder, another judge, people; and on how people were masked.

All functions are pure: a results table in (columns as `RESULT_COLUMNS`), rows of the same table out, for any metric.
In the rows that come out, `metric` is cv, conflict_score, ranking_consistency, human_alignment, mask_correlation or
mask_difference; `condition` is the metric that was judged, and after a semicolon its own condition
(`LIC; masked_object`); `encoder` names the judges, n counts them (cv) or the captioners (others), and `method` says
what was done or why the value is blank. paper and table are those of the rows that were judged.

Sources: DBAC, section 5.3 and tables 5 and 6 (cv); ImageCaptioner2, tables 4 and 5, and 6 (masks; the others).
"""

from __future__ import annotations

import math

import numpy as np

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
