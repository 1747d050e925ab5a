"""Whether attackers learnt anything: an accuracy whose interval contains chance says nothing about captions."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from capbias_core.aggregate.estimate import REFITS
from capbias_core.aggregate.refits import NO_WIDTH

# Accuracies by which it is told, the first that is there. A captioner's captions may tell nothing; people's do.
ACCURACIES = ("SC_D", "SC")
OF_ATTACKER = ["attribute", "model", "encoder"]


def learned(rows: pd.DataFrame, values: Mapping[str, int]) -> pd.Series:
    """(n,) booleans: False for each row of an attacker that is not shown to have learnt.

    rows: in RESULT_COLUMNS. values: how many each attribute has; of others chance is not known. An attacker is known by
    attribute, captioner and encoder, and told by its accuracy on the human captions, or on the captioner's where there
    are none, by its value alone if it has no interval. Where no accuracy with refits is among the rows, it is taken to
    have learnt.
    """
    refitted = (rows["interval"] == REFITS) | (rows["ci_low"].isna() & (rows["training"] > 0))
    own = rows[rows["metric"].isin(ACCURACIES) & refitted]
    own = own.sort_values("metric", key=lambda names: names.map(ACCURACIES.index)).drop_duplicates(OF_ATTACKER)
    chance = own["scale"] / own["attribute"].map(dict(values)).astype(float)
    low, high = (own[end].fillna(own["value"]) for end in ("ci_low", "ci_high"))
    by_chance = (low <= chance + NO_WIDTH) & (chance - NO_WIDTH <= high)
    lacking = {tuple(key) for key in own.loc[by_chance, OF_ATTACKER].to_numpy()}
    return pd.Series([tuple(key) not in lacking for key in rows[OF_ATTACKER].to_numpy()], rows.index, dtype=bool)


def unlearned_note(rows: pd.DataFrame, values: Mapping[str, int]) -> str:
    """Which attackers are not shown to have learnt, with their captioners; or ''."""
    found = rows[~learned(rows, values)]
    told = [f"{name} ({', '.join(sorted(set(own)))})" for name, own in found.groupby("encoder")["model"]]
    return (
        f"Not shown to have learnt (the interval of its accuracy contains chance): {', '.join(told)}." if told else ""
    )
