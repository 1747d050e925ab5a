"""LIC beside the quality and the vocabulary of the same captions (LIC paper, Figure 3): printed and measured points."""

from __future__ import annotations

import numpy as np
import pandas as pd

from capbias_core.aggregate.comparison import name_key
from capbias_core.workspace.vectors import CONSTANT

PAPER, TABLE, ATTRIBUTE = "lic", "1", "gender"
AGAINST = ("vocabulary", "bleu4")
# What the paper's figure says. Its points for vocabulary are drawn and not printed; its R^2 of BLEU-4 rests on values
# with more decimals than Table 1 has.
PRINTED_R_SQUARED = {"vocabulary": 0.153, "bleu4": 0.156}
COLUMNS = ("model", "encoder", "LIC", *AGAINST)


def printed_points(printed: pd.DataFrame) -> pd.DataFrame:
    """The captioners of Table 1, a row each: COLUMNS, x100 but vocabulary, which is nan."""
    rows = printed[(printed["paper"] == PAPER) & (printed["table"] == TABLE)]
    return _points(rows)


def measured_points(measured: pd.DataFrame) -> pd.DataFrame:
    """Captioners whose LIC for gender was measured, a row each: COLUMNS, nan where a value was not.

    measured: results (`measured_rows`). LIC of the encoder with most captioners, `lstm_bi` first among equals: the
    points of one line come from one encoder.
    """
    usual = measured["alignment"].isin(["", CONSTANT]) & (measured["group"] == "") & (measured["condition"] == "")
    rows = measured[(measured["attribute"] == ATTRIBUTE) & usual]
    counts = rows[(rows["metric"] == "LIC") & rows["value"].notna()].groupby("encoder")["model"].nunique()
    if counts.empty:
        return _points(rows.iloc[:0])
    encoder = max(counts.index, key=lambda name: (counts[name], name == "lstm_bi"))
    return _points(rows[(rows["encoder"] == encoder) | (rows["metric"] != "LIC")])


def _points(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a captioner that has LIC, from result rows."""
    rows = rows[rows["metric"].isin(["LIC", *AGAINST]) & rows["value"].notna()]
    shown = rows["value"] * np.where(rows["metric"] == "vocabulary", 1.0, 100.0) / rows["scale"]
    rows = rows.assign(value=shown, key=rows["model"].map(name_key))
    wide = rows.drop_duplicates(["key", "metric"]).pivot(index="key", columns="metric", values="value")
    first = rows[rows["metric"] == "LIC"].drop_duplicates("key").set_index("key")[["model", "encoder"]]
    return first.join(wide).reindex(columns=list(COLUMNS)).reset_index(drop=True)
