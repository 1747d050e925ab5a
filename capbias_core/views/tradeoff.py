"""LIC beside quality and vocabulary of the same captions (LIC paper, Figure 3): points, one chart, and its lines."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from capbias_core.aggregate.comparison import Trend, name_key, trend
from capbias_core.errors import need
from capbias_core.types import counted
from capbias_core.views.charts import GREY, MEASURED, name_places, name_points
from capbias_core.views.sentence import number
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


NAMES = {"vocabulary": "vocabulary size (different words)", "bleu4": "BLEU-4"}
# Steps of a slope, and what one is called.
STEPS = {"vocabulary": (100, "100 words"), "bleu4": (1, "point of BLEU-4")}
HEIGHT = 420
# Of its pixels, those above and below the plot; and the room around the points, in shares of what they span.
OUTSIDE, ROOM = 90, 0.12


def tradeoff_chart(printed: pd.DataFrame, measured: pd.DataFrame, against: str):
    """LIC of each captioner over `against`: printed points grey, measured ones in colour, a dotted line through each.

    printed, measured: points of analysis/tradeoff.py.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    figure = go.Figure()
    looks = (("printed", printed, GREY, "diamond"), ("measured", measured, MEASURED, "circle"))
    known = [(name, own.dropna(subset=["LIC", against]), colour, mark) for name, own, colour, mark in looks]
    every = pd.concat([own for _, own, _, _ in known])
    for name, own, colour, mark in known:
        if len(own):
            figure.add_trace(_dots(own, against, name, colour, mark))
            _line(figure, own[against], trend(own[against], own["LIC"]), colour)
    if len(every):
        _names(figure, every, against)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": 40},
        dragmode=False,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        xaxis={"title": {"text": NAMES[against]}, "zeroline": False},
        yaxis={"title": {"text": "LIC"}, "zeroline": False},
    )
    return figure


def _names(figure, points: pd.DataFrame, against: str) -> None:
    """Names beside the points, and axes with room for them."""
    ends = {column: _range(points[column]) for column in (against, "LIC")}
    (left, right), (bottom, top) = ends.values()
    shares = np.stack([(points[against] - left) / (right - left), (top - points["LIC"]) / (top - bottom)], axis=1)
    places = name_places(shares, list(points["model"]), HEIGHT - OUTSIDE)
    name_points(figure, points[against], points["LIC"], list(points["model"]), places, list(ends.values()))
    figure.update_layout(xaxis_range=ends[against], yaxis_range=ends["LIC"])


def _range(values: pd.Series) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = ROOM * (high - low or 1.0)
    return low - room, high + room


def _dots(points: pd.DataFrame, against: str, name: str, colour: str, mark: str):
    import plotly.graph_objects as go

    hover = [
        f"{escape(row['model'])}, {name}<br>LIC {row['LIC']:.1f}, {NAMES[against]} {row[against]:,.4g}"
        for row in points.to_dict("records")
    ]
    encoder = points.iloc[0]["encoder"]
    return go.Scatter(
        x=points[against],
        y=points["LIC"],
        mode="markers",
        name=f"{name} (LIC by {encoder})",
        marker={"size": 11, "color": colour, "symbol": mark},
        hovertext=hover,
        hoverinfo="text",
        cliponaxis=False,
    )


def _line(figure, x: pd.Series, found: Trend, colour: str) -> None:
    if not found.reason:
        ends = np.array([x.min(), x.max()])
        figure.add_scatter(
            x=ends,
            y=found.intercept + found.slope * ends,
            mode="lines",
            showlegend=False,
            hoverinfo="skip",
            line={"dash": "dot", "color": colour, "width": 2},
        )


def tradeoff_note(printed: pd.DataFrame, measured: pd.DataFrame, against: str) -> str:
    """What the lines say: R^2, n, slope and p of each, what the paper's figure says, or why there is none."""
    paper = f"the paper's figure says R² = {PRINTED_R_SQUARED[against]:.3f}"
    if printed[against].notna().any():
        printed_text = (
            f"Printed: {_trend_text(trend(printed[against], printed['LIC']), against)} from Table 1; {paper}."
        )
    else:
        printed_text = f"Printed: {paper}; the paper plots these points but gives no numbers."
    if measured.empty:
        return f"{printed_text} Measured: no LIC for gender in this collection."
    if measured[against].isna().all():
        return f"{printed_text} Measured: no {NAMES[against]} in this collection; ask for it on Scores."
    return f"{printed_text} Measured: {_trend_text(trend(measured[against], measured['LIC']), against)}."


def _trend_text(found: Trend, against: str) -> str:
    if found.reason:
        return f"no R² ({found.reason})"
    step, unit = STEPS[against]
    slope, low, high = (number(step * value, 2) for value in (found.slope, found.low, found.high))
    way = ("LIC rises with it" if found.slope > 0 else "LIC falls with it") if found.shown else "no trend is shown"
    return (
        f"R² = {number(found.r_squared, 3)}, n = {counted(found.n, 'captioner')}; slope {slope} LIC per {unit} (95% "
        f"{low} to {high}), p = {number(found.p, 3 if found.p < 0.1 else 2)}: {way}"
    )
