"""Present mode: one chart or one caption fills the screen, for people who sit far away.

It is on if the address has `present=1`; p turns it on and off, Escape off. A page gives its main chart or caption to a
function here, which draws it alone if it is presented, and ends the page. Answer has several slides: sentence, chart,
words and a caption to try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from capbias_core.aggregate import Ranking
from capbias_core.prepare import tokenize
from capbias_core.prepare.tasks import function_words
from capbias_core.views.captions import CaptionScores, toward
from capbias_core.views.charts import enlarged
from capbias_core.views.sentence import probabilities_text
from capbias_core.views.words import LARGE, large_words, pushes
from capbias_core.workspace.labels import is_derived, table_of
from capbias_core.workspace.photographs import picture_path
from pages.ui import cached, view
from pages.ui.bar import Bar

SCORE = (
    "Percentages: probability of each value, by classifiers that did not train on this image. Under each word: its "
    "contribution to the logit, which is {} without any word. Masked words are hidden from the classifier."
)
# What is below keeps its position and state, but is neither seen nor reached.
CSS = """<style>
[data-testid="stSidebar"] *, [data-testid="stHeader"] *, [data-testid="stSidebar"], [data-testid="stHeader"],
[data-testid="stMain"] *:not(.st-key-presented, .st-key-presented *) {visibility: hidden !important}
.st-key-presented {visibility: visible; position: fixed; inset: 0; z-index: 999999; overflow: auto;
  padding: 1.5rem 2.5rem 1rem; background: light-dark(#FFFFFF, #12171E); justify-content: safe center;
  flex-wrap: nowrap}
.st-key-presented h1 {font-size: clamp(28px, 2.2vw, 40px) !important; line-height: 1.3; padding: 0 !important}
.st-key-presented [data-testid="stElementContainer"]:has([data-testid="stPlotlyChart"]) {flex: 1 1 0 !important;
  height: auto !important; min-height: 22rem}
.st-key-presented :is(.cb-legend, .cb-words, .cb-note, .cb-answer b, .cb-answer p, .cb-said, .cb-large small,
  .cb-name small, b:has(+ .cb-note), input, button p) {font-size: 28px !important; max-width: none}
.st-key-presented [class*="st-key-strip"] {grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)) !important}
.st-key-presented :is(.st-key-strip_bare, [class*="st-key-cell_"] .cb-note) {display: none}
.st-key-presented div:has(+ .cb-words) {font-size: 28px}
.st-key-presented :is([data-testid="stTextInputRootElement"], button) {height: auto !important; min-height: 3.5rem}
.st-key-presented > :has(.st-key-present_ways) {position: sticky; bottom: -1rem; flex: none;
  padding-bottom: 1rem; background: light-dark(#FFFFFF, #12171E)}
.st-key-presented img {max-height: 60vh; width: auto !important; max-width: 100%}
</style>"""
HUMAN = 5  # human captions shown
NUMBER = "chart_number"  # in the address: which of several charts is presented
# Streamlit measures a chart as it lies on the screen, so that its type cannot be enlarged by a style.
LARGER = 2  # 28 pixels


def on() -> bool:
    """Whether the page is presented."""
    return view.state("present", False)


def slide(draw: Callable[[], object], headline: str, legend: str = "", number: int = 1, of: int = 1) -> None:
    """What `draw` draws on the whole screen, if the page is presented and this slide is the chosen one.

    headline: the text above it. legend: what marks mean. number, of: its number among the slides of the page, drawn in
    this order, and how many there are; the arrow keys go through them.
    """
    if not (_presenting() if number == 1 else on()) or number != min(view.state(NUMBER, 1), of):
        return
    before, after = ({NUMBER: to} if 1 <= to <= of else {} for to in (number - 1, number + 1))
    with _screen(headline, (before, after) if of > 1 else None):
        draw()
        _legend(legend)
    view.stop()


def chart(figure, key: str, alt: str, headline: str, legend: str = "", number: int = 1, of: int = 1) -> None:
    """`slide` for a chart of a page."""

    def draw() -> None:
        large = enlarged(figure, LARGER)
        st.plotly_chart(large, key=key, height="stretch", config={"displayModeBar": False}, alt=alt)

    slide(draw, headline, legend, number, of)


@contextmanager
def whole(headline: str, container: DeltaGenerator | None = None) -> Iterator[None]:
    """What is drawn within, on the page, in this container; on the whole screen alone if the page is presented."""
    if not _presenting():
        with container or st.container():
            yield
        return
    with _screen(headline):
        yield
    view.stop()


def marks(second: bool, pairs: Ranking) -> str:
    """What hollow dots and letters of a chart of intervals mean, in a line; '' if it has neither."""
    hollow = (
        "Hollow: LIC_by_H, at equal length if that is lower. Amplifies: its interval is above 0. Reduces: the "
        "interval of LIC_by_M (not drawn) is below 0."
        if second
        else ""
    )
    same = "Same letter: no significant difference." if any(pairs.letters.values()) else ""
    if pairs.provisional:
        same = f"No difference is shown ({pairs.provisional})."
    return " ".join(filter(None, (hollow, same)))


def _legend(text: str) -> None:
    if text:
        st.html(f'<div class="cb-legend">{escape(text)}</div>')


def present_caption(bar: Bar, scores: CaptionScores, listed: pd.DataFrame) -> None:
    """One caption, if it is presented: the photograph if there is one, each word with its value, the score.

    listed: the captions that the page lists, in its order, with rows of scores.table as index. The arrow keys go
    through them, from the image that the page shows.
    """
    if not _presenting() or listed.empty:
        return
    image, at = st.session_state.get("image", "").strip(), view.state("at", 1) - 1
    of_image = np.flatnonzero(listed["image_id"] == image)
    if len(of_image) and (at >= len(listed) or listed["image_id"].iloc[at] != image):
        at = int(of_image[0])  # the page shows another image than the address names
    at = min(max(at, 0), len(listed) - 1)
    before, after = (
        {"at": to + 1, "image": listed["image_id"].iloc[to]} if 0 <= to < len(listed) else {} for to in (at - 1, at + 1)
    )
    index = listed.index[at]
    row, attribute = scores.table.loc[index], scores.attribute
    spec = scores.run.spec
    with _screen(f"{spec.model}, image {row['image_id']} ({at + 1:,} of {len(listed):,})", (before, after)):
        picture = picture_path(bar.workspace, bar.collection, row["image_id"])
        left, right = st.columns([1, 2], gap="large") if picture else (None, st.container())
        if left and picture:
            left.image(str(picture), alt=f"Photograph {row['image_id']}")
        table = table_of(bar.workspace.items("labels"), attribute.name, spec.labels)
        by = "by the words of human captions" if is_derived(table) else "in the table of labels"
        ends, values = toward(attribute, scores.words_of(index), int(row["predicted"]))
        no_words = SCORE.format(escape(pushes(scores.intercept(row), ends)))
        tokens = row["masked"].split()
        written = tokenize(cached.captions(bar.folder, spec.captions)["caption"].iloc[row["kept_at"]])
        shown = written if len(written) == len(tokens) else tokens
        words = large_words(tokens, values, ends, shown, function_words(tokens))
        shares = escape(probabilities_text(attribute.values, scores.probabilities_of(index)))
        label = escape(attribute.values[int(row["label"])])
        others = {item.hash for item in bar.items("references")} - {spec.captions}
        frames = [cached.captions(bar.folder, content) for content in others]
        human = [line for frame in frames for line in frame["caption"][frame["image_id"] == row["image_id"]]]
        people = f'<div class="cb-said"><b>People</b><br>{"<br>".join(map(escape, human[:HUMAN]))}</div>'
        right.html(
            f'{LARGE}<div class="cb-score">{shares}</div>{words}'
            f'<div class="cb-said">Labelled {label} {by}. {no_words}</div>{people if human else ""}'
        )
    view.stop()


def _presenting() -> bool:
    """Whether the page is presented; in its sidebar is the button with the key for it."""
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

    def choose(choices: dict) -> None:
        for key, value in choices.items():
            view.choose(key, value)

    st.html(CSS)
    with st.container(key="presented"):
        if headline:
            st.html(f"<h1>{escape(headline)}</h1>")
        yield
        with st.container(horizontal=True, key="present_ways"):
            for (label, key), step in zip((("Previous", "Left"), ("Next", "Right")), steps or (), strict=False):
                st.button(label, key=f"present_{key}", shortcut=key, disabled=not step, on_click=choose, args=(step,))
            st.button("Leave", key="present_leave", shortcut="Escape", on_click=view.choose, args=("present", False))
