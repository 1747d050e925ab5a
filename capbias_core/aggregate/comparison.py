"""How captioners and judges compare: do encoders, other judges and people agree, and did attackers learn.

Pure functions of result rows (columns as RESULT_COLUMNS) of one metric, direction, attribute and condition. Sources:
DBAC, section 5.3 and tables 5 and 6 (cv); ImageCaptioner2, tables 4 to 6 (the others).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from capbias_core.aggregate.estimate import REFITS, interval_side, provisional
from capbias_core.aggregate.ranking import Ranking
from capbias_core.aggregate.resampling import LEVEL, NO_WIDTH, wilson

LEAST_CAPTIONERS = 3
NO_MEAN = 1e-9
ABOVE, BELOW, OPEN = 1, -1, 0
LEAST_ENCODERS = 2

# (first, second) -> ABOVE if the first is surely higher, BELOW if lower, OPEN if it is uncertain.
Order = dict[tuple[str, str], int]
# Accuracies that decide, the first that exists. A captioner's captions may carry no information; people's do.
ACCURACIES = ("SC_D", "SC")
OF_ATTACKER = ["attribute", "model", "encoder"]


def coefficient_of_variation(values: np.ndarray) -> float:
    """Sample standard deviation (ddof 1) over |mean| of (E,) values, one an encoder; lower is more consistent. nan for
    fewer than two, and for a mean of 0.

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
    """The coefficient of variation that encoders alike would show by their seeds alone. values, errors: (E,), one an
    encoder, and its standard error.

    >>> round(noise_floor(np.array([9.0, 11.0]), np.array([3.0, 4.0])), 4)  # sqrt((9 + 16) / 2) / 10
    0.3536
    """
    return float(np.sqrt(np.mean(np.square(errors))) / abs(np.mean(values)))


def conflict_score(first: np.ndarray, second: np.ndarray) -> float:
    """Share in % of M captioners that one judge puts above 0 and the other does not; lower is better.

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


@dataclass(frozen=True)
class Sensitivity:
    """What each encoder says of the captioners that two encoders or more have scored."""

    signs: dict[str, dict[str, int]]  # captioner -> encoder -> ABOVE, BELOW or OPEN
    turned: list[str]  # captioners that one encoder puts above the neutral point and another below
    moved: list[str]  # captioners that change places with another


def sign(value: float, low: float, high: float, neutral: float = 0.0) -> int:
    """ABOVE or BELOW the neutral point by the whole interval, else OPEN; low and high are nan if there is none.

    >>> sign(2.0, 1.0, 3.0), sign(2.0, -1.0, 5.0), sign(-2.0, float("nan"), float("nan"))
    (1, 0, -1)
    """
    if np.isnan(low) or np.isnan(high):
        low = high = value
    return int(interval_side(low, high, neutral))


def order_of(ranking: Ranking) -> Order:
    """Who is surely higher: paired, Holm-corrected (see `rank`); nobody by single trained attackers."""
    return {
        (pair.first, pair.second): int(np.sign(pair.difference)) if pair.apart and not ranking.provisional else OPEN
        for pair in ranking.pairs
    }


def sensitivity(rows: pd.DataFrame, orders: Sequence[Order], neutral: float = 0.0) -> Sensitivity:
    """What the encoders of these rows say of each captioner, one row a captioner and encoder. orders: one per encoder.
    The sign of a single trained attacker is OPEN. Two captioners change places only if one encoder is sure that the
    first is higher and another that it is lower."""
    signs: dict[str, dict[str, int]] = {}
    for row in rows[np.isfinite(rows["value"].astype(float))].to_dict("records"):
        low, high = (np.nan if pd.isna(row[name]) else row[name] for name in ("ci_low", "ci_high"))
        judged = OPEN if provisional(row) else sign(row["value"], low, high, neutral)
        signs.setdefault(row["model"], {})[row["encoder"]] = judged
    known = {model: set(by_encoder.values()) for model, by_encoder in signs.items() if len(by_encoder) > 1}
    orders_of: dict[tuple[str, str], set[int]] = {}
    for order in orders:
        for (first, second), higher in order.items():
            low, high = sorted((first, second))
            orders_of.setdefault((low, high), set()).add(higher if first == low else -higher)
    swapped = {name for pair, said in orders_of.items() if {ABOVE, BELOW} <= said for name in pair}
    turned = [model for model, values in known.items() if {ABOVE, BELOW} <= values]
    return Sensitivity(signs, turned, [model for model in known if model in swapped])


def ranks_by_encoder(rows: pd.DataFrame, better: str = "lower", neutral: float = 0.0) -> pd.DataFrame:
    """Rank of each captioner that every encoder has scored (index) by each encoder (column), 1 = best (the lowest where
    no value is better), equal values share the better rank. better, neutral: as in `Metric`."""
    wide = rows.pivot(index="model", columns="encoder", values="value")
    wide = wide[list(dict.fromkeys(rows["encoder"]))].dropna()
    badness = {"higher": -wide, "neutral": (wide - neutral).abs()}.get(better, wide)
    return badness.rank(method="min").astype(int)


def learned(rows: pd.DataFrame, values: Mapping[str, int]) -> pd.Series:
    """(n,) booleans: False for each row of an attacker (attribute, captioner and encoder) no better than chance.

    It has learnt if the interval of its accuracy lies above chance, on the human captions, or on the captioner's where
    there are none; without an interval its value decides. Where no accuracy with refits is among the rows, it is taken
    to have learnt. values: how many each attribute has; of others chance is not known.
    """
    refitted = (rows["interval"] == REFITS) | (rows["ci_low"].isna() & (rows["training"] > 0))
    accuracies = rows[rows["metric"].isin(ACCURACIES) & refitted]
    accuracies = accuracies.sort_values("metric", key=lambda names: names.map(ACCURACIES.index))
    accuracies = accuracies.drop_duplicates(OF_ATTACKER)
    chance = accuracies["scale"] / accuracies["attribute"].map(dict(values)).astype(float)
    by_chance = accuracies["ci_low"].fillna(accuracies["value"]) <= chance + NO_WIDTH
    lacking = {tuple(key) for key in accuracies.loc[by_chance, OF_ATTACKER].to_numpy()}
    return pd.Series([tuple(key) not in lacking for key in rows[OF_ATTACKER].to_numpy()], rows.index, dtype=bool)


def unlearned_note(rows: pd.DataFrame, values: Mapping[str, int]) -> str:
    """Which attackers are no better than chance, with their captioners; or ''."""
    lacking = rows[~learned(rows, values)]
    names = [f"{name} ({', '.join(sorted(set(models)))})" for name, models in lacking.groupby("encoder")["model"]]
    return f"No better than chance (95% interval of its accuracy): {', '.join(names)}." if names else ""


# labels of the same images by two people, or a person and a rule

NO_LABEL = "no label"


@dataclass(frozen=True)
class LabelAgreement:
    """How far two tables of labels agree."""

    counts: pd.DataFrame  # images by label of one side (rows) and of the other (columns): values, then 'no label'
    images: int  # that both label
    same: int  # of these, with one label
    # 95% (Wilson's) of same / images, as if the images were drawn at random.
    interval: tuple[float, float] | tuple[None, None]
    kappa: float  # Cohen's; nan if both sides give one label alone
    differ: pd.DataFrame  # image_id, and the label of each side (`one`, `other`) where they differ

    @property
    def share(self) -> float:
        """Images with one label of those that both label, 0 to 1."""
        return self.same / self.images if self.images else math.nan


def label_agreement(one: pd.Series, other: pd.Series, values: tuple[str, ...]) -> LabelAgreement:
    """The agreement of two sets of labels. one, other: image_id -> value; an image that is missing has no label.

    >>> one, other = pd.Series({"1": "a", "2": "a", "3": "b", "4": "b"}), pd.Series({"1": "a", "2": "b", "3": "b"})
    >>> agreement = label_agreement(one, other, ("a", "b"))
    >>> (agreement.same, agreement.images, agreement.differ["image_id"].tolist(), round(agreement.kappa, 2))
    (2, 3, ['2'], 0.4)
    """
    both = pd.DataFrame({"one": one, "other": other})
    options = [*values, NO_LABEL]
    counts = pd.crosstab(both["one"].fillna(NO_LABEL), both["other"].fillna(NO_LABEL))
    counts = counts.reindex(index=options, columns=options, fill_value=0)
    labelled = both.dropna()
    agreed = labelled["one"] == labelled["other"]
    images, same = len(labelled), int(agreed.sum())
    chance = sum((labelled["one"] == value).mean() * (labelled["other"] == value).mean() for value in values)
    kappa = float((same / images - chance) / (1 - chance)) if images and chance < 1 else math.nan
    differ = labelled[~agreed].rename_axis("image_id").reset_index()
    return LabelAgreement(counts, images, same, wilson(same / images if images else math.nan, images), kappa, differ)
