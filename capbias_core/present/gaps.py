"""Metrics by group of a protected attribute, and their gaps, as a table."""

from __future__ import annotations

import pandas as pd

from capbias_core.measures.registry import METRICS
from capbias_core.present.table import value_text

# Name of a gap -> the metric whose values it compares.
GAPS = {name: own.gap_of for name, own in METRICS.items() if own.gap_of}
ARROWS = {"higher": "↑", "lower": "↓"}
READING = (
    "↑ and ↓ say which way is better; without one, neither is. A difference of 0 means that captions of both groups' "
    "images are alike in this; an interval that contains 0 shows no clear difference. The groups' images differ too, "
    "so a difference alone does not show where it comes from."
)


def of_groups(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are of one group's images."""
    return rows["metric"].isin(GAPS.values()) & (rows["group"] != "")


def of_gaps(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are a difference between groups."""
    return rows["metric"].isin(GAPS)


def gap_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per metric and captioner, largest difference first: the difference and the value in each group, as text.

    rows: results that hold rows of groups and of gaps; empty if they hold none.
    """
    order = {name: place for place, name in enumerate(GAPS)}
    gaps = rows[of_gaps(rows)].assign(order=lambda own: own["metric"].map(order), size=lambda own: -own["value"].abs())
    groups = rows[of_groups(rows)]
    difference = _difference(groups)
    values: dict[tuple[str, str], dict[str, str]] = {}
    for group in groups.to_dict("records"):
        values.setdefault((group["run_id"], group["metric"]), {})[group["group"]] = value_text(group)
    found = []
    for row in gaps.sort_values(["order", "size"]).to_dict("records"):
        metric = METRICS[GAPS[row["metric"]]]
        what = {
            "metric": f"{metric.title.partition(',')[0]} {ARROWS.get(metric.better, '')}".rstrip(),
            "captioner": row["model"],
        }
        found.append(what | {difference: value_text(row)} | values.get((row["run_id"], metric.name), {}))
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
