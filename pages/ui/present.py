"""Present mode: one chart or one caption fills the screen, for people who sit far away.

It is on where the address says `present=1`; p turns it on and off, Escape off. A page hands its main chart or caption
to a function here, which draws it alone where it is presented, and ends the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from capbias_core.prepare import tokenize
from capbias_core.runs.engine import Engine
from capbias_core.views.captions import CaptionScores, toward
from capbias_core.views.charts import enlarged
from capbias_core.views.sentence import APART, probabilities_text
from capbias_core.views.words import LARGE, large_words, pushes
from capbias_core.workspace.labels import is_derived, table_of
from capbias_core.workspace.photographs import picture_path
from pages.ui import cached, view

SCORE = (
    "Percentages: probability of each value, by classifiers that did not train on this image. Under each word: its "
    "contribution to the logit, which is {} without any word. Masked words are hidden from the classifier."
)
# What lies below keeps its place and its state, but is neither seen nor reached.
CSS = """<style>
[data-testid="stSidebar"] *, [data-testid="stHeader"] *, [data-testid="stSidebar"], [data-testid="stHeader"],
[data-testid="stMain"] *:not(.st-key-presented, .st-key-presented *) {visibility: hidden !important}
.st-key-presented {visibility: visible; position: fixed; inset: 0; z-index: 999999; overflow: auto;
  padding: 1.5rem 2.5rem 1rem; background: light-dark(#FFFFFF, #12171E); justify-content: safe center;
  flex-wrap: nowrap}
.st-key-presented h1 {font-size: clamp(26px, 2.2vw, 40px) !important; line-height: 1.3; padding: 0 !important}
.st-key-presented [data-testid="stElementContainer"]:has([data-testid="stPlotlyChart"]) {flex: 1 1 0 !important;
  height: auto !important; min-height: 22rem}
.st-key-presented .cb-rows, .st-key-presented .cb-axis, .st-key-presented .cb-rows .cb-small,
.st-key-presented .cb-legend {font-size: 28px}
.st-key-presented > :has(.st-key-present_ways) {position: sticky; bottom: -1rem; flex: none;
  padding-bottom: 1rem; background: light-dark(#FFFFFF, #12171E)}
.st-key-presented img {max-height: 60vh; width: auto !important; max-width: 100%}
</style>"""
HUMAN = 5  # human captions shown
NUMBER = "chart_number"  # in the address: which of several charts is presented
# Streamlit measures a chart as it lies on the screen, so that its type cannot be enlarged by a style.
LARGER = 1.6


def on() -> bool:
    """Whether the page is presented."""
    return view.state("present", False)


def chart(figure, key: str, alt: str, headline: str, legend: str = "", number: int = 1, of: int = 1) -> None:
    """A chart of a page on the whole screen, if the page is presented and this chart is the chosen one.

    headline: the text above it. legend: what marks mean. number, of: its place among the charts that the page presents;
    the arrow keys go through them.
    """
    if not (_presenting() if number == 1 else on()) or number != min(view.state(NUMBER, 1), of):
        return
    before, after = ({NUMBER: to} if 1 <= to <= of else {} for to in (number - 1, number + 1))
    with _screen(headline, (before, after) if of > 1 else None):
        st.plotly_chart(enlarged(figure, LARGER), key=key, height="stretch", config={"displayModeBar": False}, alt=alt)
        _legend(legend)
    view.stop()


def rows(html: str, headline: str, legend: str = "") -> None:
    """The same of a chart that is drawn as rows of text."""
    if not _presenting():
        return
    with _screen(headline):
        st.html(html)
        _legend(legend)
    view.stop()


def marks(second: bool, letters: Mapping[str, str]) -> str:
    """What hollow dots and letters of a chart of intervals mean, in a line; '' where it has neither."""
    hollow = "Hollow: LIC_by_H; if its whole interval is above 0, the captioner amplifies." if second else ""
    same = "Same letter: no significant difference." if any(letters.values()) else ""
    other = APART if any(own.isupper() for own in letters.values()) else ""
    return " ".join(filter(None, (hollow, same, other)))


def _legend(text: str) -> None:
    if text:
        st.html(f'<div class="cb-legend">{escape(text)}</div>')


def present_caption(engine: Engine, collection: str, own: CaptionScores, chosen: pd.DataFrame) -> None:
    """One caption, where it is presented: the photograph where there is one, each word with its value, the score.

    chosen: the captions that the page lists, in its order, with the rows of own.table as index. The arrow keys go
    through them, from the image that the page shows.
    """
    if not _presenting() or chosen.empty:
        return
    at = _position(chosen)
    row, attribute = own.table.loc[chosen.index[at]], own.attribute
    with _screen(f"{own.run.spec.model}, image {row['image_id']} ({at + 1:,} of {len(chosen):,})", _steps(chosen, at)):
        picture = picture_path(engine.workspace, collection, row["image_id"])
        left, right = st.columns([1, 2], gap="large") if picture else (None, st.container())
        if left and picture:
            left.image(str(picture), alt=f"Photograph {row['image_id']}")
        with right:
            shares = probabilities_text(attribute.values, own.probabilities_of(chosen.index[at]))
            label = attribute.values[int(row["label"])]
            score = f'<div class="cb-score">{escape(shares)}</div>'
            given = "by the words of human captions" if _derived(engine, own) else "in the table of labels"
            ends = toward(attribute, own.words[:0], int(row["predicted"]))[0]
            about = f"Labelled {escape(label)} {given}. {SCORE.format(escape(pushes(own.intercept(row), ends)))}"
            said = f'<div class="cb-said">{about}</div>'
            st.html(LARGE + score + _words(engine, own, row) + said + _human(engine, collection, own, row["image_id"]))
    view.stop()


def _human(engine: Engine, collection: str, own: CaptionScores, image: str) -> str:
    """HTML: the human captions of the image; '' for those of people themselves, or if there are none."""
    sets = {item.hash for item in engine.workspace.items("references", collection)} - {own.run.spec.captions}
    frames = [cached.captions(engine.folder, content) for content in sets]
    lines = [line for frame in frames for line in frame["caption"][frame["image_id"] == image]]
    if not lines:
        return ""
    return '<div class="cb-said"><b>People</b><br>' + "<br>".join(map(escape, lines[:HUMAN])) + "</div>"


def _derived(engine: Engine, own: CaptionScores) -> bool:
    """Whether the labels were made from human captions."""
    tables, labels = engine.workspace.items("attributes"), own.run.spec.labels
    return is_derived(table_of(tables, own.attribute.name, labels))


def _words(engine: Engine, own: CaptionScores, row: pd.Series) -> str:
    tokens, place = row["masked"].split(), int(np.flatnonzero(own.table.index == row.name)[0])
    written = tokenize(cached.captions(engine.folder, own.run.spec.captions)["caption"].iloc[row["kept_at"]])
    ends, values = toward(own.attribute, own.words_of(place), int(row["predicted"]))
    return large_words(tokens, values, ends, written if len(written) == len(tokens) else tokens)


def _position(chosen: pd.DataFrame) -> int:
    """The place in the order that the address names; that of the image that the page shows, where it is another one."""
    image, at = st.session_state.get("image", "").strip(), view.state("at", 1) - 1
    of_image = np.flatnonzero(chosen["image_id"] == image)
    if len(of_image) and (at >= len(chosen) or chosen["image_id"].iloc[at] != image):
        return int(of_image[0])
    return min(max(at, 0), len(chosen) - 1)


def _steps(chosen: pd.DataFrame, at: int) -> tuple[dict, dict]:
    """The choices that show the caption before and the one after; none at an end."""
    before, after = (
        {"at": to + 1, "image": chosen["image_id"].iloc[to]} if 0 <= to < len(chosen) else {} for to in (at - 1, at + 1)
    )
    return before, after


def _presenting() -> bool:
    """Whether the page is presented; in its sidebar stands the button with the key for it."""
    st.sidebar.button(
        "Present",
        key="present_button",
        icon=":material/fullscreen:",
        shortcut="p",
        on_click=view.choose,
        args=("present", not on()),
        help="Fill the screen, in large type. Escape leaves it.",
    )
    return on()


@contextmanager
def _screen(headline: str, steps: tuple[dict, dict] | None = None) -> Iterator[None]:
    """A layer over the window for what is drawn within, with buttons to leave it and to go on.

    steps: the choices, by key of the address, of what comes before and after; an empty one at an end.
    """
    st.html(CSS)
    with st.container(key="presented"):
        if headline:
            st.html(f"<h1>{escape(headline)}</h1>")
        yield
        with st.container(horizontal=True, key="present_ways"):
            for (label, key), step in zip((("Previous", "Left"), ("Next", "Right")), steps or (), strict=False):
                st.button(
                    label, key=f"present_{key}", shortcut=key, disabled=not step, on_click=_choose_all, args=(step,)
                )
            st.button("Leave", key="present_leave", shortcut="Escape", on_click=view.choose, args=("present", False))


def _choose_all(choices: dict) -> None:
    for key, value in choices.items():
        view.choose(key, value)
