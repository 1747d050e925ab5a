"""How captioners and judges compare: do encoders, other judges and people agree, and did attackers learn.

Of result rows of one metric, direction, attribute and condition. Sources: DBAC, section 5.3 and tables 5 and 6 (cv);
ImageCaptioner2, tables 4 to 6 (the others).
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
    fewer than two, and for a mean of 0."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2 or abs(values.mean()) <= NO_MEAN * np.abs(values).max():
        return math.nan
    return float(np.std(values, ddof=1) / abs(values.mean()))


def noise_floor(values: np.ndarray, low: np.ndarray, high: np.ndarray, seeds: np.ndarray) -> float:
    """The coefficient of variation that encoders alike would show by their seeds alone: the root of their mean squared
    standard error over |mean|. All (E,): values with 95% intervals over refits, of which at most one end is a bound of
    the metric's range. nan for fewer than two seeds."""
    seeds = np.asarray(seeds, dtype=float)
    freedom = np.where(seeds > 1, seeds - 1, math.nan)
    errors = np.maximum(high - values, values - low) / stdtrit(freedom, (1 + LEVEL) / 2)
    return float(np.sqrt(np.mean(np.square(errors))) / abs(np.mean(values)))


def conflict_score(first: np.ndarray, second: np.ndarray) -> float:
    """Share in % of M captioners that one judge puts above 0 and the other does not; lower is better."""
    return float(100 * np.mean((np.asarray(first) > 0) != (np.asarray(second) > 0)))


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation, -1 to 1; nan for fewer than three captioners or where one side is constant."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if len(first) < LEAST_CAPTIONERS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


def name_key(name: str) -> str:
    """What of a captioner's name counts in comparisons: letters and digits, any case; a + at its end is a word.

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


def order_of(ranking: Ranking) -> Order:
    """Who is surely higher: paired, Holm-corrected (see `rank`); nobody by single trained attackers."""
    return {
        (pair.first, pair.second): int(np.sign(pair.difference)) if pair.apart and not ranking.provisional else OPEN
        for pair in ranking.pairs
    }


def sensitivity(rows: pd.DataFrame, orders: Sequence[Order], neutral: float = 0.0) -> Sensitivity:
    """What the encoders of these rows say of each captioner, one row a captioner and encoder. orders: one per encoder.
    The sign of a single trained attacker is OPEN. Two change places only if encoders are sure of opposite orders."""
    signs: dict[str, dict[str, int]] = {}
    for row in rows[np.isfinite(rows["value"].astype(float))].to_dict("records"):
        # Without an interval the value decides.
        low, high = (row["value"] if pd.isna(row["ci_low"]) else row[end] for end in ("ci_low", "ci_high"))
        judged = OPEN if provisional(row) else int(interval_side(low, high, neutral))
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

    It has learnt if the interval (else the value) of its accuracy lies above chance, on the human captions, or on the
    captioner's where there are none; also where no accuracy with refits is known. values: how many each attribute has.
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
