"""Attention between the words of a caption: a chart of one layer and head, and the same as text."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, need
from capbias_core.present.colour import BLUE
from capbias_core.present.table import to_text
from capbias_core.types import Attention

CELL, MARGINS = 30, 120
# Where the reproduction of LIC (Baratov et al. 2023) found what its classes hang on, counted from 1.
PAPERS_LAYER, PAPERS_HEAD = 4, 2


def first_shown(attention: Attention) -> tuple[int, int]:
    """Layer and head to begin with, from 1: those of the reproducibility paper, or the last where there are fewer."""
    layers, heads = attention.weights.shape[:2]
    return min(PAPERS_LAYER, layers), min(PAPERS_HEAD, heads)


def attention_data(attention: Attention) -> dict:
    """Everything, for JSON: the words, and attention as layers of heads of rows."""
    return {"read_as": list(attention.words), "attention": attention.weights.tolist()}


def weights_of(attention: Attention, layer: int, head: int) -> np.ndarray:
    """(W, W) of one layer and head, counted from 1. Raises CapbiasError where there is none."""
    for what, number, count in zip(("layer", "head"), (layer, head), attention.weights.shape, strict=False):
        if not 1 <= number <= count:
            raise CapbiasError(f"There is no {what} {number}: the encoder has {count}.")
    return attention.weights[layer - 1, head - 1]


def attention_chart(attention: Attention, layer: int, head: int):
    """Which word (row) reads how much of which (column); darker is more, from 0 to 1."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    weights, count = weights_of(attention, layer, head), len(attention.words)
    names = [escape(word) for word in attention.words]
    hover = [
        [f"{reader} reads {share:.2f} of {read}" for read, share in zip(names, row, strict=True)]
        for reader, row in zip(names, weights, strict=True)
    ]
    places = list(range(count))
    blue = "rgb({},{},{})".format(*BLUE)
    figure = go.Figure(
        go.Heatmap(
            z=weights,
            x=places,
            y=places,
            hovertext=hover,
            hoverinfo="text",
            zmin=0,
            zmax=1,
            xgap=2,
            ygap=2,
            colorscale=[[0, "rgba(29,95,168,0.04)"], [1, blue]],
            colorbar={"title": {"text": "share"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    ticks = {"tickvals": places, "ticktext": names, "showgrid": False, "zeroline": False}
    figure.update_layout(
        height=MARGINS + CELL * count,
        margin={"l": 10, "r": 10, "t": 60, "b": 30},
        dragmode=False,
        xaxis={**ticks, "side": "top", "title": {"text": "is read"}, "tickangle": -90, "automargin": True},
        yaxis={**ticks, "autorange": "reversed", "title": {"text": "word that reads"}, "automargin": True},
    )
    return figure


def attention_text(attention: Attention, layer: int | None = None, head: int | None = None) -> str:
    """The same as columns for a terminal: a row for each word that reads, with the words that it reads most of.

    layer, head: from 1; None for those of `first_shown`.
    """
    usual = first_shown(attention)
    layer, head = layer or usual[0], head or usual[1]
    weights = weights_of(attention, layer, head)
    rows = [
        {"word": word, "reads most of": ", ".join(f"{attention.words[place]} {row[place]:.2f}" for place in order[:4])}
        for word, row, order in zip(attention.words, weights, np.argsort(-weights, axis=1), strict=True)
    ]
    layers, heads = attention.weights.shape[:2]
    return f"Attention, layer {layer} of {layers}, head {head} of {heads}:\n\n{to_text(pd.DataFrame(rows))}"
