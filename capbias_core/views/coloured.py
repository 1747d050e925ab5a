"""Captions whose words are coloured by what they add to the guess, as escaped HTML; attention charts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from itertools import islice
from typing import Any

import numpy as np
from markupsafe import Markup

from capbias_core.attackers import attacker_entry
from capbias_core.errors import CapbiasError, need
from capbias_core.prepare.tasks import function_words
from capbias_core.types import Attention, Attribute
from capbias_core.views.markup import html
from capbias_core.views.palette import BLUE, ramp
from capbias_core.views.scored import Line, toward
from capbias_core.views.sentence import say, signed

MOST_DRAWN = 1_000  # words of a caption; a longer one would send megabytes to the browser


def coloured_words(
    tokens: Sequence[str],
    values: np.ndarray,
    ends: Attribute,
    originals: Sequence[str] | None = None,
    largest: float = 0.0,
    alone: Collection[str] = (),
    plain: Collection[str] = (),
) -> str:
    """HTML of one caption, what each word adds under it.

    tokens: T masked tokens; values: (T,) signed contributions (negative pushes toward the first of the values of
    `ends`, positive toward the second). originals: the T words that stood there before masking. largest: the value that
    gets the full colour; 0 takes this caption's largest. alone: words that captions beside it do not have, in bold.
    plain: tokens without a colour and a number, such as function words; what they add is on hover.
    """
    largest = largest or max((abs(float(value)) for value in values), default=0.0)
    words = []
    for token, value, original in islice(zip(tokens, map(float, values), originals or tokens, strict=True), MOST_DRAWN):
        added = say("captions.adds", value=signed(value, 3), toward=ends.values[int(value >= 0)])
        word: dict[str, Any] = {"text": original, "title": added, "kinds": ["alone"] if original in alone else []}
        if token == ends.mask_token:
            word["kinds"].append("masked")
            word |= {"title": f"{say('captions.masked', token=token)}: {added}", "number": signed(value, 2)}
        elif token not in plain:
            word["kinds"].append("first" if value < 0 else "second")
            word |= {"number": signed(value, 2), "colour": ramp(value, largest)}
        words.append(word)
    more = len(tokens) - MOST_DRAWN
    return html("words", words=words, more=say("captions.more_words", count=more) if more > 0 else "")


def line_words(line: Line, largest: float = 0.0, alone: Collection[str] = ()) -> str:
    """HTML of the words of a caption; without colours if it is not scored."""
    if line.scores is None:
        return html("words", words=(), more=line.written)
    ends, values = toward(line.scores.attribute, line.words, int(line.shares.argmax()))
    return coloured_words(line.tokens, values, ends, line.shown, largest, alone, function_words(line.tokens))


def guess_text(line: Line) -> str:
    """`guess: Female, 84%`; '' if it is not scored."""
    if line.scores is None:
        return ""
    guess = int(line.shares.argmax())
    return say("captions.guess", value=line.scores.attribute.values[guess], share=float(line.shares[guess]))


def sum_text(line: Line) -> str:
    """How the logit adds up, and by which method words got their numbers; '' if it is not scored."""
    if line.scores is None:
        return ""
    row, attribute = line.of_row, line.scores.attribute
    guess = int(row["predicted"])
    column = 0 if len(attribute.values) == 2 else guess
    parts = {
        "logit": signed(row[f"logit{column}"], 2),
        "intercept": signed(row[f"baseline{column}"], 2),
        "words": signed(float(line.words[:, column].sum()), 2),
        "toward": attribute.values[-1 if len(attribute.values) == 2 else guess],
    }
    text = say("captions.sum", **parts)
    method = attacker_entry(line.scores.run.spec.attacker).attribution
    delta = say("captions.delta", delta=row["delta"]) if row["delta"] >= 0.0005 else ""
    return " ".join(filter(None, (text, f"{method[:1].upper()}{method[1:]}." if method else "", delta)))


def section(
    name: str,
    line: Line,
    largest: float = 0.0,
    alone: Collection[str] = (),
    read: bool = False,
    rest: Sequence[str] = (),
) -> str:
    """HTML of one captioner's column. read: whether it is the captioner that is read. rest: its other captions."""
    words = Markup(line_words(line, largest, alone))  # noqa: S704
    return html("section", name=name, guess=guess_text(line), words=words, read=read, rest=rest)


def columns(sections: Sequence[str]) -> str:
    """HTML of columns, as many beside each other as fit. sections: of `section`."""
    return f'<div class="cb-columns">{"".join(sections)}</div>'


def legend(attribute: Attribute, beside: bool = False) -> str:
    """HTML that names both ends of the ramp. beside: captions are compared, and words of only one are marked."""
    two = len(attribute.values) == 2
    names = attribute.values if two else (say("captions.away"), say("captions.guessed"))
    ends = [(name, side, ramp(sign, 1.0)) for name, side, sign in zip(names, ("first", "second"), (-1, 1), strict=True)]
    return html("legend", ends=ends, masked=bool(attribute.masked_words), beside=beside)


# attention between the words of a caption

# Where the reproduction of LIC (Baratov et al. 2023) found what its classes hang on, counted from 1.
PAPERS_LAYER, PAPERS_HEAD = 4, 2
CLASS_TOKENS = ("[CLS]", "<s>")  # of BERT and RoBERTa, whose state stands for the whole text


def first_shown(attention: Attention) -> tuple[int, int]:
    """Layer and head to begin with, from 1: those of the reproducibility paper, or the last where there are fewer."""
    layers, heads = attention.weights.shape[:2]
    return min(PAPERS_LAYER, layers), min(PAPERS_HEAD, heads)


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
    if first in CLASS_TOKENS:
        return f"the class token {first}", weights[:, 0]
    return "the mean over words", weights.mean(axis=1)


def attention_map(attention: Attention, layer: int, head: int = 0, largest: float = 1.0):
    """A heat map: how much each word (row) reads of each (column) in a head, counted from 1; for 0, how much each head
    reads of each word for the caption as a whole. Darker is more, from 0 to `largest`."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    words = [escape(word) for word in attention.words]
    if head:
        weights, readers, title = weights_of(attention, layer, head), words, "is read"
    else:
        reader, weights = class_token_weights(attention, layer)
        readers, title = [f"head {number}" for number in range(1, len(weights) + 1)], f"is read by {reader}"
    figure = go.Figure(
        go.Heatmap(
            z=weights,
            hovertext=[[f"{reader} reads {share:.2f} of {read}" for read, share in zip(words, row, strict=True)]
                       for reader, row in zip(readers, weights, strict=True)],
            **{"hoverinfo": "text", "zmin": 0, "zmax": largest, "showscale": False, "xgap": 2, "ygap": 2},
            colorscale=[[0, "rgba(29,95,168,0.04)"], [1, "rgb({},{},{})".format(*BLUE)]],
        )
    )  # fmt: skip
    look = {"showgrid": False, "zeroline": False, "automargin": True}
    above = {"side": "top", "title": {"text": title, "standoff": 12}, "tickangle": -90}
    figure.update_xaxes(tickvals=list(range(len(words))), ticktext=words, **look, **above)
    figure.update_yaxes(tickvals=list(range(len(readers))), ticktext=readers, autorange="reversed", **look)
    height, margin = 120 + 30 * len(readers), {"l": 10, "r": 10, "t": 60, "b": 30}
    clear = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "dragmode": False}
    return figure.update_layout(height=height, margin=margin, **clear)
