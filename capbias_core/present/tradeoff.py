"""LIC against caption quality: one chart for printed and measured captioners, and what its lines say."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from capbias_core.aggregate.trend import Trend, trend
from capbias_core.analysis.tradeoff import PRINTED_R_SQUARED
from capbias_core.errors import need
from capbias_core.present.colour import GREY, MEASURED
from capbias_core.present.sentence import number
from capbias_core.types import counted

NAMES = {"vocabulary": "vocabulary size (different words)", "bleu4": "BLEU-4"}
# Steps of a slope, and what one is called.
STEPS = {"vocabulary": (100, "100 words"), "bleu4": (1, "point of BLEU-4")}
HEIGHT = 420
# Where the middle of a name may stand beside its point, and half its width and height, in shares of the chart.
SIDES = {"top center": (0, 0.07), "bottom center": (0, -0.07), "middle right": (0.13, 0), "middle left": (-0.13, 0)}
NAME_SIZE = np.array([0.1, 0.04])


def tradeoff_chart(printed: pd.DataFrame, measured: pd.DataFrame, against: str):
    """LIC of each captioner over `against`: printed points grey, measured ones in colour, a dotted line through each.

    printed, measured: points of analysis/tradeoff.py.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    figure = go.Figure()
    looks = (("printed", printed, GREY, "diamond"), ("measured", measured, MEASURED, "circle"))
    every = pd.concat([printed, measured])[[against, "LIC"]].dropna().to_numpy()
    for name, points, colour, mark in looks:
        own = points.dropna(subset=["LIC", against])
        if len(own):
            sides = _sides(own[[against, "LIC"]].to_numpy(), every)
            figure.add_trace(_dots(own, against, name, colour, mark, sides))
            _line(figure, own[against], trend(own[against], own["LIC"]), colour)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 10, "b": 40},
        dragmode=False,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        xaxis={"title": {"text": NAMES[against]}, "zeroline": False},
        yaxis={"title": {"text": "LIC"}, "zeroline": False},
    )
    return figure


def _dots(points: pd.DataFrame, against: str, name: str, colour: str, mark: str, sides: list[str]):
    import plotly.graph_objects as go

    hover = [
        f"{escape(row['model'])}, {name}<br>LIC {row['LIC']:.1f}, {NAMES[against]} {row[against]:,.4g}"
        for row in points.to_dict("records")
    ]
    encoder = points.iloc[0]["encoder"]
    return go.Scatter(
        x=points[against],
        y=points["LIC"],
        mode="markers+text",
        text=[escape(model) for model in points["model"]],
        textposition=sides,
        textfont={"color": colour, "size": 11},
        name=f"{name} (LIC by {encoder})",
        marker={"size": 11, "color": colour, "symbol": mark},
        hovertext=hover,
        hoverinfo="text",
        cliponaxis=False,
    )


def _sides(points: np.ndarray, every: np.ndarray) -> list[str]:
    """For each of the points, (M, 2), the side on which its name is furthest from the other points, (N, 2)."""
    size = np.ptp(every, axis=0)
    size[size == 0] = 1
    found = []
    for point in points:
        away = (point - every[(every != point).any(axis=1)]) / size
        nearest = [
            np.abs((away + side) / NAME_SIZE).max(axis=1, initial=0).min(initial=np.inf) for side in SIDES.values()
        ]
        found.append(list(SIDES)[int(np.argmax(nearest))])
    return found


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
