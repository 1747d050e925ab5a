"""Whether attackers learnt anything: one that is no better than chance says nothing about captions."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from capbias_core.aggregate.bootstrap import NO_WIDTH
from capbias_core.aggregate.estimate import REFITS

# Accuracies by which it is told, the first that is there. A captioner's captions may tell nothing; people's do.
ACCURACIES = ("SC_D", "SC")
OF_ATTACKER = ["attribute", "model", "encoder"]


def learned(rows: pd.DataFrame, values: Mapping[str, int]) -> pd.Series:
    """(n,) booleans: False for each row of an attacker that is no better than chance.

    rows: in RESULT_COLUMNS. values: how many each attribute has; of others chance is not known. An attacker (attribute,
    captioner and encoder) has learnt if the interval of its accuracy lies above chance: the accuracy on the human
    captions, or on the captioner's where there are none. Without an interval its value decides. Where no accuracy with
    refits is among the rows, it is taken to have learnt.
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
