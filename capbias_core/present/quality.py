"""Caption quality by group of a protected attribute, as a table."""

from __future__ import annotations

import pandas as pd

from capbias_core.measures.caption_quality import GAPS, METRICS
from capbias_core.present.table import value_text

GAP = "_gap"


def of_groups(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are of one group's images."""
    return rows["metric"].isin(METRICS) & (rows["group"] != "")


def of_gaps(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are a difference between groups."""
    return rows["metric"].isin(GAPS)


def gap_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per metric and captioner, largest difference first: the value in each group and the difference, as text.

    rows: results that hold rows of groups and of gaps; empty if they hold none.
    """
    order = {name: place for place, name in enumerate(METRICS)}
    gaps = rows[of_gaps(rows)].assign(order=lambda own: own["metric"].map(order))
    groups = rows[of_groups(rows)]
    difference = _difference(groups)
    found = []
    for row in gaps.sort_values(["order", "value"], ascending=[True, False]).to_dict("records"):
        metric = row["metric"].removesuffix(GAP)
        own = groups[(groups["run_id"] == row["run_id"]) & (groups["metric"] == metric)]
        values = {group["group"]: value_text(group) for group in own.to_dict("records")}
        what = {"metric": METRICS[metric].title.partition(",")[0], "captioner": row["model"]}
        found.append(what | values | {difference: value_text(row)})
    return pd.DataFrame(found).fillna("")


def _difference(groups: pd.DataFrame) -> str:
    """What the gap is called: which group is subtracted from which.

    A run gives its groups in the order of the attribute, without those that have no image.
    """
    named = [list(dict.fromkeys(own["group"])) for _, own in groups.groupby("run_id", sort=False)]
    most = max(named, key=len, default=[])
    if len(most) == 2:
        return f"difference ({most[1]} minus {most[0]})"
    return "difference (largest minus smallest value of a group)" if most[2:] else "difference"
