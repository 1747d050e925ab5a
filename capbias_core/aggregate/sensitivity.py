"""Whether the choice of encoder changes the conclusion: the sign of a captioner's score, and who stands above whom.

Pure functions of result rows (columns as RESULT_COLUMNS) of one metric, direction, attribute and condition. A sign is
that of an interval clear of the neutral point; a value without an interval, as papers print it, speaks by itself. Two
captioners change places only if one encoder is sure that the first is higher and another that it is lower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from capbias_core.aggregate.estimate import provisional
from capbias_core.aggregate.ranking import Ranking

ABOVE, BELOW, OPEN = 1, -1, 0
LEAST_ENCODERS = 2

# (first, second) -> ABOVE if the first is surely higher, BELOW if lower, OPEN if that cannot be told.
Order = dict[tuple[str, str], int]


@dataclass(frozen=True)
class Sensitivity:
    """What each encoder says. signs: captioner -> encoder -> ABOVE, BELOW or OPEN. swapped: pairs of captioners that
    change places with the encoder."""

    encoders: tuple[str, ...]
    signs: dict[str, dict[str, int]]
    swapped: tuple[tuple[str, str], ...]

    @property
    def judged(self) -> list[str]:
        """Captioners that two encoders or more have scored: the only ones about which anything can be said."""
        return [model for model, own in self.signs.items() if len(own) >= LEAST_ENCODERS]

    @property
    def turned(self) -> list[str]:
        """Captioners that one encoder puts above the neutral point and another below."""
        return [model for model in self.judged if {ABOVE, BELOW} <= set(self.signs[model].values())]

    @property
    def unsure(self) -> list[str]:
        """Captioners that some encoders tell from the neutral point, all to the same side, and others do not."""
        mixed = [model for model in self.judged if len(set(self.signs[model].values())) > 1]
        return [model for model in mixed if model not in self.turned]

    @property
    def moved(self) -> list[str]:
        """Captioners that change places with another."""
        return [model for model in self.judged if any(model in pair for pair in self.swapped)]


def sign(value: float, low: float, high: float, neutral: float = 0.0) -> int:
    """ABOVE or BELOW the neutral point by the whole interval, else OPEN; low and high are nan if there is none.

    >>> sign(2.0, 1.0, 3.0), sign(2.0, -1.0, 5.0), sign(-2.0, float("nan"), float("nan"))
    (1, 0, -1)
    """
    if np.isnan(low) or np.isnan(high):
        low = high = value
    return ABOVE if low > neutral else BELOW if high < neutral else OPEN


def signs_of(rows: pd.DataFrame, neutral: float = 0.0) -> dict[str, dict[str, int]]:
    """Captioner -> encoder -> sign, in the order of the rows; one row a captioner and encoder. Of a single trained
    attacker it is OPEN."""
    found: dict[str, dict[str, int]] = {}
    for row in rows[np.isfinite(rows["value"])].to_dict("records"):
        low, high = (np.nan if pd.isna(row[name]) else row[name] for name in ("ci_low", "ci_high"))
        own = OPEN if provisional(row) else sign(row["value"], low, high, neutral)
        found.setdefault(row["model"], {})[row["encoder"]] = own
    return found


def order_by_value(values: dict[str, float]) -> Order:
    """Who is higher by the values alone, for values that come without evidence.

    >>> order_by_value({"a": 1.0, "b": 2.0})
    {('a', 'b'): -1}
    """
    return {pair: int(np.sign(values[pair[0]] - values[pair[1]])) for pair in combinations(values, 2)}


def order_of(ranking: Ranking) -> Order:
    """Who is surely higher: paired, Holm-corrected (see `rank`); nobody by single trained attackers."""
    return {
        (pair.first, pair.second): int(np.sign(pair.difference)) if pair.apart and not ranking.provisional else OPEN
        for pair in ranking.pairs
    }


def swaps(orders: Sequence[Order]) -> tuple[tuple[str, str], ...]:
    """Pairs of captioners of which one order says that the first is higher and another that it is lower.

    >>> swaps([{("a", "b"): 1}, {("b", "a"): 1}, {("a", "b"): 0}])
    (('a', 'b'),)
    """
    said: dict[tuple[str, str], set[int]] = {}
    for order in orders:
        for (first, second), higher in order.items():
            low, high = sorted((first, second))
            said.setdefault((low, high), set()).add(higher if first == low else -higher)
    return tuple(pair for pair, all_said in said.items() if {ABOVE, BELOW} <= all_said)


def sensitivity(rows: pd.DataFrame, orders: Sequence[Order], neutral: float = 0.0) -> Sensitivity:
    """What the encoders of these rows say of each captioner. orders: one per encoder."""
    return Sensitivity(tuple(dict.fromkeys(rows["encoder"])), signs_of(rows, neutral), swaps(orders))


def ranks_by_encoder(rows: pd.DataFrame, better: str = "lower", neutral: float = 0.0) -> pd.DataFrame:
    """Rank of each captioner (index) by each encoder (column), 1 = best, equal values share the better rank.

    better: which value is best: the `lower`, the `higher`, or the one nearest to the `neutral` value; 1 is the
    lowest where it is `none`. Only captioners that every encoder has scored: a rank among others is another thing.
    """
    wide = rows.pivot(index="model", columns="encoder", values="value")
    wide = wide[list(dict.fromkeys(rows["encoder"]))].dropna()
    badness = {"higher": -wide, "neutral": (wide - neutral).abs()}.get(better, wide)
    return badness.rank(method="min").astype(int)
