"""The most revealing words as diverging bars, the captioner's beside the human captions', and what they say."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

import pandas as pd

from capbias_core.errors import need
from capbias_core.present.colour import BLUE_MARK, GREY, ORANGE_MARK
from capbias_core.present.sentence import signed
from capbias_core.types import Attribute

WORD_HEIGHT, MARGINS = 27, 96
FUNCTION = "function word"


def word_chart(words: pd.DataFrame, attribute: Attribute, name: str, human: str, functional: Collection[str]):
    """A bar per word for what it adds to the logit, and a grey one for what it adds in the human captions.

    words: of analysis.read.top_words, with human_mean where human names a set of human captions. name: the captioner.
    functional: words that are marked as function words. Of two values a bar to the left pushes toward the first.
    """
    need("A chart", "plotly")
    import plotly.graph_objects as go

    two = len(attribute.values) == 2
    rows = words.sort_values("mean", ascending=True) if two else words.sort_values(["toward", "mean"])
    names = [_label(row, attribute, functional) for row in rows.itertuples()]
    places = list(range(len(rows)))
    figure = go.Figure()
    if human:
        figure.add_bar(
            y=places,
            x=rows["human_mean"],
            orientation="h",
            name=f"{escape(human)} (human)",
            marker={"color": GREY, "pattern": {"shape": "/", "solidity": 0.35}},
            customdata=rows["word"],
            hovertext=[
                f"{signed(row.human_mean, 3)} in {row.human_count:,} human captions" if row.human_count else "in none"
                for row in rows.itertuples()
            ],
            hoverinfo="text",
        )
    figure.add_bar(
        y=places,
        x=rows["mean"],
        orientation="h",
        name=escape(name),
        showlegend=False,
        marker={"color": [ORANGE_MARK if two and value < 0 else BLUE_MARK for value in rows["mean"]]},
        customdata=rows["word"],
        hovertext=[f"{signed(row.mean, 3)} in {row.count:,} captions" for row in rows.itertuples(index=False)],
        hoverinfo="text",
    )
    # Its bars have two colours; the legend tells them from the hatched ones.
    key = {"symbol": "square", "size": 11, "color": GREY}
    figure.add_scatter(x=[None], y=[None], mode="markers", marker=key, name=escape(name), hoverinfo="skip")
    figure.add_vline(x=0, line={"color": GREY, "width": 1.5})
    ends = f"← {attribute.values[0]} · added to the logit on average · {attribute.values[1]} →"
    figure.update_layout(
        height=MARGINS + WORD_HEIGHT * max(len(rows), 3),
        margin={"l": 10, "r": 10, "t": 34, "b": 46},
        barmode="group",
        bargap=0.25,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "reversed"},
        xaxis={"title": {"text": escape(ends) if two else "added to the logit of the value on average"}},
        yaxis={"tickvals": places, "ticktext": names, "automargin": True},
        dragmode=False,
    )
    return figure


def _label(row, attribute: Attribute, functional: Collection[str]) -> str:
    marks = [FUNCTION] if row.word in functional else []
    if len(attribute.values) > 2:
        marks.append(escape(attribute.values[row.toward]))
    return escape(row.word) + (f" ({', '.join(marks)})" if marks else "")


def where_words_come_from(words: pd.DataFrame, name: str, smallest_count: int) -> str:
    """Which words push as the human captions do, so that the data may explain them, and which are the captioner's.

    words: of analysis.read.beside_human.
    """
    data, own = (list(words.loc[words["from_data"] == kind, "word"]) for kind in (True, False))
    said = []
    if data:
        said.append(
            f"In human captions too, the same way and at least half as strong, so the data may explain them: "
            f"{', '.join(data)}."
        )
    if own:
        said.append(
            f"Not so there (weaker, the other way, or in fewer than {smallest_count} human captions), so {name} may "
            f"add them: {', '.join(own)}."
        )
    if said:
        said.append("What words add has no interval here: with other captions a word may change sides.")
    return " ".join(said)
