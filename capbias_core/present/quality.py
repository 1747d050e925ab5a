"""Caption quality by group of a protected attribute, as a table."""

from __future__ import annotations

import pandas as pd

from capbias_core.measures.base import ALL_IMAGES, WITH_REFERENCES
from capbias_core.metrics import METRICS
from capbias_core.present.table import value_text

GAP = "_gap"


def of_groups(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are of one group's images: its value stands in the condition."""
    quality = rows["metric"].map(lambda name: name in METRICS and METRICS[name].family == "quality")
    return quality & ~rows["condition"].isin([ALL_IMAGES, WITH_REFERENCES])


def of_gaps(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are a difference between groups."""
    return rows["metric"].map(lambda name: name in METRICS and METRICS[name].family == "quality" and name.endswith(GAP))


def gap_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a metric and captioner, largest difference first: the value in each group and the difference, as text.

    rows: results that hold rows of groups and of gaps; empty where they hold none.
    """
    order = {name: place for place, name in enumerate(METRICS)}
    gaps = rows[of_gaps(rows)].assign(order=lambda own: own["metric"].map(order))
    found = []
    for row in gaps.sort_values(["order", "value"], ascending=[True, False]).to_dict("records"):
        metric = row["metric"].removesuffix(GAP)
        own = rows[of_groups(rows) & (rows["run_id"] == row["run_id"]) & (rows["metric"] == metric)]
        groups = {group["condition"]: value_text(group) for group in own.to_dict("records")}
        what = {"metric": METRICS[metric].title.partition(",")[0], "captioner": row["model"]}
        found.append(what | groups | {f"difference ({row['method'].partition(';')[0]})": value_text(row)})
    return pd.DataFrame(found).fillna("")
