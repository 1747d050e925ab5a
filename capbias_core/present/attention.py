"""Attention between the words of a caption: a chart of one layer and head, and the same as text."""

from __future__ import annotations

from collections.abc import Sequence
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
CLASS_TOKENS = ("[CLS]", "<s>")  # of BERT and RoBERTa, whose state stands for the whole text


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


def class_token_weights(attention: Attention, layer: int) -> tuple[str, np.ndarray]:
    """Which words each head of a layer reads for the caption as a whole: who reads, and (heads, W) shares.

    That is the class token, such as `[CLS]`; where the encoder has none, as Transformers from scratch that average over
    their words, the mean over all words. layer: from 1. Raises CapbiasError where there is none.
    """
    weights_of(attention, layer, 1)
    weights, first = attention.weights[layer - 1], attention.words[0]
    return (
        (f"the class token {first}", weights[:, 0])
        if first in CLASS_TOKENS
        else ("the mean over words", weights.mean(axis=1))
    )


def attention_chart(attention: Attention, layer: int, head: int):
    """Which word (row) reads how much of which (column) in a head; darker is more, from 0 to 1."""
    figure = _heat_map(weights_of(attention, layer, head), attention.words, attention.words, "is read")
    return figure.update_yaxes(title_text="word that reads")


def class_token_chart(attention: Attention, layer: int, largest: float = 1.0):
    """How much each head (row) of a layer reads of each word (column); darker is more, from 0 to `largest`."""
    reader, weights = class_token_weights(attention, layer)
    heads = [f"head {number}" for number in range(1, len(weights) + 1)]
    return _heat_map(weights, heads, attention.words, f"is read by {reader}", largest).update_traces(showscale=False)


def _heat_map(weights: np.ndarray, readers: Sequence[str], words: Sequence[str], title: str, largest: float = 1.0):
    need("A chart", "plotly")
    import plotly.graph_objects as go

    down, across = [[escape(name) for name in names] for names in (readers, words)]
    hover = [
        [f"{reader} reads {share:.2f} of {read}" for read, share in zip(across, row, strict=True)]
        for reader, row in zip(down, weights, strict=True)
    ]
    blue = "rgb({},{},{})".format(*BLUE)
    figure = go.Figure(
        go.Heatmap(
            z=weights,
            x=list(range(len(across))),
            y=list(range(len(down))),
            hovertext=hover,
            hoverinfo="text",
            zmin=0,
            zmax=largest,
            xgap=2,
            ygap=2,
            colorscale=[[0, "rgba(29,95,168,0.04)"], [1, blue]],
            colorbar={"title": {"text": "share"}, "thickness": 12, "outlinewidth": 0},
        )
    )
    axes = [
        {"tickvals": list(range(len(names))), "ticktext": names, "showgrid": False, "zeroline": False}
        for names in (across, down)
    ]
    figure.update_layout(
        height=MARGINS + CELL * len(down),
        margin={"l": 10, "r": 10, "t": 60, "b": 30},
        dragmode=False,
        xaxis={
            **axes[0],
            "side": "top",
            "title": {"text": title, "standoff": 12},
            "tickangle": -90,
            "automargin": True,
        },
        yaxis={**axes[1], "autorange": "reversed", "automargin": True},
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
