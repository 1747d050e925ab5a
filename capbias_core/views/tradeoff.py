"""LIC beside quality and vocabulary of the same captions (LIC paper, Figure 3): points, one chart, and its lines."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from capbias_core.aggregate.comparison import name_key, trend
from capbias_core.types import counted
from capbias_core.views.charts import GREY, MEASURED, graph_objects, name_places, name_points
from capbias_core.views.sentence import number
from capbias_core.workspace.vectors import CONSTANT

AGAINST = ("vocabulary", "bleu4")
# What the paper's figure says. Its points for vocabulary are drawn and not printed; its R^2 of BLEU-4 depends on values
# with more decimals than Table 1 has.
PRINTED_R_SQUARED = {"vocabulary": 0.153, "bleu4": 0.156}
COLUMNS = ("model", "encoder", "LIC", *AGAINST)


def printed_points(printed: pd.DataFrame) -> pd.DataFrame:
    """The captioners of Table 1, a row each: COLUMNS, x100 but vocabulary, which is nan."""
    rows = printed[(printed["paper"] == "lic") & (printed["table"] == "1")]
    return _points(rows)


def measured_points(measured: pd.DataFrame) -> pd.DataFrame:
    """Captioners whose LIC for gender was measured, a row each: COLUMNS, nan where a value was not.

    measured: results (`measured_rows`). LIC of the encoder with most captioners, `lstm_bi` first among equals: the
    points of one line come from one encoder.
    """
    usual = measured["alignment"].isin(["", CONSTANT]) & (measured["group"] == "") & (measured["condition"] == "")
    rows = measured[(measured["attribute"] == "gender") & usual]
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
OUTSIDE = 90  # of its pixels, those above and below the plot


def tradeoff_chart(printed: pd.DataFrame, measured: pd.DataFrame, against: str):
    """LIC of each captioner over `against`: printed points grey, measured ones in colour, a dotted line through each.

    printed, measured: points, as `printed_points` and `measured_points` give them.
    """
    figure, shown = graph_objects().Figure(), []
    for name, points, colour, mark in (
        ("published", printed, GREY, "diamond"),
        ("measured", measured, MEASURED, "circle"),
    ):
        points = points.dropna(subset=["LIC", against])
        shown.append(points)
        if points.empty:
            continue
        figure.add_scatter(
            x=points[against],
            y=points["LIC"],
            mode="markers",
            name=f"{name} (LIC by {points.iloc[0]['encoder']})",
            marker={"size": 11, "color": colour, "symbol": mark},
            hovertext=[
                f"{escape(row['model'])}, {name}<br>LIC {row['LIC']:.1f}, {NAMES[against]} {row[against]:,.4g}"
                for row in points.to_dict("records")
            ],
            hoverinfo="text",
            cliponaxis=False,
        )
        line = trend(points[against], points["LIC"])
        if not line.reason:
            ends = np.array([points[against].min(), points[against].max()])
            figure.add_scatter(
                x=ends,
                y=line.intercept + line.slope * ends,
                mode="lines",
                showlegend=False,
                hoverinfo="skip",
                line={"dash": "dot", "color": colour, "width": 2},
            )
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": 40},
        dragmode=False,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        xaxis={"title": {"text": NAMES[against]}, "zeroline": False},
        yaxis={"title": {"text": "LIC"}, "zeroline": False},
    )
    points = pd.concat(shown)
    if points.empty:
        return figure
    ends = []  # of the axes, with room around the points for their names
    for column in (against, "LIC"):
        low, high = float(points[column].min()), float(points[column].max())
        room = 0.12 * (high - low or 1.0)
        ends.append((low - room, high + room))
    (left, right), (bottom, top) = ends
    shares = np.stack([(points[against] - left) / (right - left), (top - points["LIC"]) / (top - bottom)], axis=1)
    places = name_places(shares, list(points["model"]), HEIGHT - OUTSIDE)
    name_points(figure, points[against], points["LIC"], list(points["model"]), places, ends)
    return figure.update_layout(xaxis_range=ends[0], yaxis_range=ends[1])


def tradeoff_note(printed: pd.DataFrame, measured: pd.DataFrame, against: str) -> str:
    """What the lines say: R^2, n, slope and p of each, what the paper's figure says, or why there is none."""

    def trend_text(points: pd.DataFrame) -> str:
        line = trend(points[against], points["LIC"])
        if line.reason:
            return f"no R² ({line.reason})"
        step, unit = STEPS[against]
        slope, low, high = (number(step * value, 2) for value in (line.slope, line.low, line.high))
        way = ("LIC rises with it" if line.slope > 0 else "LIC falls with it") if line.shown else "no significant trend"
        return (
            f"{way}: slope {slope} (95% {low} to {high}) LIC per {unit}, "
            f"p = {number(line.p, 3 if line.p < 0.1 else 2)}, R² = {number(line.r_squared, 3)}, "
            f"{counted(line.n, 'captioner')}"
        )

    paper = f"The paper's figure gives R² = {PRINTED_R_SQUARED[against]:.3f}"
    text = f"{paper} but not the values of its points."
    if printed[against].notna().any():
        text = f"Published (Table 1): {trend_text(printed)}. {paper}."
    if measured.empty:
        return f"{text} Measured: no LIC for gender in this collection."
    if measured[against].isna().all():
        return f"{text} Measured: no {NAMES[against]} in this collection; ask for it on Scores."
    return f"{text} Measured: {trend_text(measured)}."
