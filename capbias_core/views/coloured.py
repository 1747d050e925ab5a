"""Captions whose words are coloured by what they add to the guess, as escaped HTML; attention charts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from itertools import islice
from typing import Any

from markupsafe import Markup

from capbias_core.attackers import attacker_entry
from capbias_core.errors import need
from capbias_core.prepare.tasks import function_words
from capbias_core.types import Attention, Attribute
from capbias_core.views.markup import html
from capbias_core.views.palette import BLUE, ramp
from capbias_core.views.scored import CaptionScores, Line, toward
from capbias_core.views.sentence import say, signed

MOST_DRAWN = 1_000  # words of a caption; a longer one would send megabytes to the browser


def line_words(line: Line, largest: float = 0.0, alone: Collection[str] = ()) -> str:
    """HTML of a caption, what each word adds under it; without colours if no attacker read it.

    largest: the value that gets the full colour; 0 takes this caption's largest. alone: words that captions beside it
    do not have, in bold. What function words add is on hover.
    """
    if line.read is None or line.attribute is None:
        return html("words", words=(), more=line.written)
    tokens = line.read.tokens
    ends, values = toward(line.attribute, line.read.words, int(line.read.probabilities.argmax()))
    largest = largest or float(abs(values).max(initial=0.0))
    plain, words = function_words(tokens), []
    for token, value, written in islice(zip(tokens, map(float, values), line.words, strict=True), MOST_DRAWN):
        added = say("captions.adds", value=signed(value, 3), toward=ends.values[int(value >= 0)])
        word: dict[str, Any] = {"text": written, "title": added, "kinds": ["alone"] if written in alone else []}
        if token == ends.mask_token:
            word["kinds"].append("masked")
            word |= {"title": f"{say('captions.masked', token=token)}: {added}", "number": signed(value, 2)}
        elif token not in plain:
            word["kinds"].append("first" if value < 0 else "second")
            word |= {"number": signed(value, 2), "colour": ramp(value, largest)}
        words.append(word)
    more = len(tokens) - MOST_DRAWN
    return html("words", words=words, more=say("captions.more_words", count=more) if more > 0 else "")


def guess_text(line: Line) -> str:
    """`guess: Female, 84%`; '' if no attacker read it."""
    if line.read is None or line.attribute is None:
        return ""
    guess = int(line.read.probabilities.argmax())
    return say("captions.guess", value=line.attribute.values[guess], share=float(line.read.probabilities[guess]))


def sum_text(line: Line, scores: CaptionScores) -> str:
    """How the logit of a scored caption adds up, and by which method words got their numbers."""
    read, values = scores.read(line.row), scores.attribute.values
    guess = int(read.probabilities.argmax())
    column, value = (0, values[-1]) if len(values) == 2 else (guess, values[guess])
    numbers = {"logit": read.logit[column], "intercept": read.baseline[column], "words": read.words[:, column].sum()}
    text = say("captions.sum", toward=value, **{name: signed(float(added), 2) for name, added in numbers.items()})
    method, delta = attacker_entry(scores.run.spec.attacker).attribution, scores.table.at[line.row, "delta"]
    unexplained = say("captions.delta", delta=delta) if delta >= 0.0005 else ""
    return " ".join(filter(None, (text, f"{method[:1].upper()}{method[1:]}." if method else "", unexplained)))


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


def first_shown(attention: Attention) -> tuple[int, int]:
    """Layer and head to begin with, from 1: those of the reproducibility paper, or the last where there are fewer."""
    layers, heads = attention.weights.shape[:2]
    return min(PAPERS_LAYER, layers), min(PAPERS_HEAD, heads)


def attention_map(attention: Attention, layer: int, head: int):
    """A heat map: how much each word (row) reads of each (column) in a head. Darker is more. layer, head: from 1."""
    need("A chart", "plotly")
    import plotly.graph_objects as go

    words, weights = [escape(word) for word in attention.words], attention.weights[layer - 1, head - 1]
    texts = [
        [f"{reader} reads {share:.2f} of {read}" for read, share in zip(words, row, strict=True)]
        for reader, row in zip(words, weights, strict=True)
    ]
    colours = [[0, "rgba(29,95,168,0.04)"], [1, "rgb({},{},{})".format(*BLUE)]]
    look = {"hoverinfo": "text", "zmin": 0, "zmax": 1, "showscale": False, "xgap": 2, "ygap": 2, "colorscale": colours}
    axis = {"showgrid": False, "zeroline": False, "automargin": True, "ticktext": words}
    axis["tickvals"] = list(range(len(words)))
    figure = go.Figure(go.Heatmap(z=weights, hovertext=texts, **look))
    figure.update_xaxes(side="top", title={"text": "is read", "standoff": 12}, tickangle=-90, **axis)
    figure.update_yaxes(autorange="reversed", **axis)
    clear = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "dragmode": False}
    return figure.update_layout(height=120 + 30 * len(words), margin={"l": 10, "r": 10, "t": 60, "b": 30}, **clear)
