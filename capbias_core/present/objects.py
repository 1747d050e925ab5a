"""Objects and the values that captions name beside them: the answer, the table, two charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from capbias_core.errors import need
from capbias_core.present.colour import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.present.sentence import Answer
from capbias_core.types import Attribute

ENOUGH = 30  # captions, for an object to be named in the answer
BIN = 0.05
HEIGHT = 380


def percent(share: float) -> str:
    """`68%`; `none` for a share that is not there."""
    return "none" if pd.isna(share) else f"{100 * share:.0f}%"


def object_answer(table: pd.DataFrame, overall: Sequence[float], n: int, model: str, attribute: Attribute) -> Answer:
    """Which object goes most with each value, by how much, and on how many captions it rests.

    table: analysis.objects.beside_human. overall: the share of each value over all captions with an object. Only an
    object with 30 captions and an interval above the share over all objects is named.
    """
    found = [(place, _furthest(table, place, share)) for place, share in enumerate(overall)]
    shares = ", ".join(f"{value} {percent(share)}" for value, share in zip(attribute.values, overall, strict=True))
    support = (
        f"Of {n:,} captions that name one value and an object: {shares}. Read the shares together with the "
        "counts, and compare them with the human captions: the labelled images need not show each value equally often."
    )
    told = [(place, row) for place, row in found if row is not None]
    if not told:
        return Answer(
            f"{model}: no object goes with a value more than the others, as far as these data can tell.", support
        )
    parts = [_told(row, place, attribute.values[place]) for place, row in told]
    human = [_of_humans(row, place, attribute.values[place]) for place, row in told if f"human_share{place}" in row]
    return Answer(f"{model}: " + "; ".join(parts) + ".", " ".join([*human, support]))


def _furthest(table: pd.DataFrame, place: int, overall: float) -> pd.Series | None:
    """The object with the highest share of a value, told apart from all objects together; None for none."""
    kept = table[(table["captions"] >= ENOUGH) & (table[f"low{place}"] > overall)]
    return None if kept.empty else kept.sort_values([f"share{place}", "captions"]).iloc[-1]


def _told(row: pd.Series, place: int, value: str) -> str:
    low, high = percent(row[f"low{place}"]), percent(row[f"high{place}"])
    return (
        f"“{row['object']}” goes most with {value}, {percent(row[f'share{place}'])} [{low}, {high}] of "
        f"{row['captions']:,} captions"
    )


def _of_humans(row: pd.Series, place: int, value: str) -> str:
    if pd.isna(row[f"human_share{place}"]):
        return f"No human caption that counts names {row['object']}."
    n = f"{int(row['human_captions']):,}"
    return f"Human captions with {row['object']} name {value} in {percent(row[f'human_share{place}'])} of {n}."


def object_table(table: pd.DataFrame, attribute: Attribute) -> pd.DataFrame:
    """One row per object: captions, how many name each value, the share of the last value (of each, for more than two)
    with its interval, and the same of the human captions."""
    shown = {"object": table["object"], "captions": table["captions"]}
    shown |= {f"name {value}": table[f"count{place}"] for place, value in enumerate(attribute.values)}
    places = range(len(attribute.values))[-1:] if len(attribute.values) == 2 else range(len(attribute.values))
    for place in places:
        value = attribute.values[place]
        shown[f"share {value}"] = table[f"share{place}"]
        shown[f"95% of share {value}"] = _intervals(table, place)
        if f"human_share{place}" in table:
            shown[f"humans: share {value}"] = table[f"human_share{place}"]
            shown[f"difference {value}"] = table[f"share{place}"] - table[f"human_share{place}"]
    if "human_captions" in table:
        shown["human captions"] = table["human_captions"]
    return pd.DataFrame(shown)


def _intervals(table: pd.DataFrame, place: int) -> list[str]:
    pairs = zip(table[f"low{place}"], table[f"high{place}"], strict=True)
    return ["few captions" if pd.isna(low) else f"{low:.2f} to {high:.2f}" for low, high in pairs]


def distribution_chart(table: pd.DataFrame, attribute: Attribute, model: str):
    """How many objects have which share of the last value: the model's beside the human captions'."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    place = len(attribute.values) - 1
    edges = np.linspace(0, 1, round(1 / BIN) + 1)
    figure = go.Figure()
    for name, column, colour in ((model, "share", BLUE_MARK), ("human captions", "human_share", ORANGE_MARK)):
        if f"{column}{place}" in table:
            counts, _ = np.histogram(table[f"{column}{place}"].dropna(), edges)
            figure.add_bar(x=edges[:-1] + BIN / 2, y=counts, name=escape(name), marker_color=colour, opacity=0.8)
    value = attribute.values[place]
    return _laid_out(figure, f"share of the captions with an object that name {value}", "objects")


def beside_chart(table: pd.DataFrame, attribute: Attribute, model: str):
    """One dot per object: the model's share of the last value against the human captions'; equal on the line."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    place = len(attribute.values) - 1
    own = table[(table["captions"] >= ENOUGH) & table[f"human_share{place}"].notna()]
    hover = [
        f"{escape(row['object'])}: {model} {row[f'share{place}']:.2f} of {row['captions']:,}, humans "
        f"{row[f'human_share{place}']:.2f} of {int(row['human_captions']):,}"
        for _, row in own.iterrows()
    ]
    size = 6 + 18 * np.sqrt(own["captions"] / max(1, own["captions"].max()))
    figure = go.Figure(
        go.Scatter(
            x=own[f"human_share{place}"],
            y=own[f"share{place}"],
            mode="markers",
            hovertext=hover,
            hoverinfo="text",
            marker={"size": size, "color": BLUE_MARK, "opacity": 0.75},
        )
    )
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line={"dash": "dash", "color": GREY, "width": 1.5})
    value = attribute.values[place]
    figure = _laid_out(figure, f"human captions: share naming {value}", f"{escape(model)}: share naming {value}")
    return figure.update_layout(yaxis={"range": [-0.03, 1.03]}, showlegend=False)


def short_names(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """analysis.objects.scores_by_object with columns that fit: `Male`, `ratio Male` for those of the metric."""
    return table.rename(columns=lambda name: name.removeprefix(metric).strip("_ ").replace("_", " "))


def score_chart(table: pd.DataFrame, metric: str, directions: Sequence[str]):
    """Distribution over objects of a score of each value (the paper's Figure 5), as boxes with their points."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    figure = go.Figure()
    for direction, colour in zip(directions, (ORANGE_MARK, BLUE_MARK, GREY, *[GREY] * len(directions)), strict=False):
        column = f"{metric} {direction}"
        if column in table:
            figure.add_box(
                x=table[column],
                name=escape(direction),
                boxpoints="all",
                jitter=0.4,
                marker_color=colour,
                hovertext=[escape(name) for name in table["object"]],
            )
    figure = _laid_out(figure, metric.replace("_", " ") + ", one point per object", "")
    return figure.update_layout(xaxis={"range": None, "autorange": True}, showlegend=False)


def _laid_out(figure, across: str, up: str):
    return figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 20, "b": 46},
        dragmode=False,
        bargap=0.08,
        xaxis={"title": {"text": across}, "range": [-0.03, 1.03], "zeroline": False},
        yaxis={"title": {"text": up}, "automargin": True, "zeroline": False},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
    )
