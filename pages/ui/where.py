"""Scores, tab Where: a metric in slices of one captioner's images; beside it the captions of the slice clicked."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from capbias_core.views.choose import Choice
from capbias_core.views.objects import METRIC
from capbias_core.views.slices import MOST, slice_sources
from capbias_core.views.view import View
from capbias_core.views.where import WHERE, WhereOptions, images_of, metrics_of
from pages.ui import controls
from pages.ui.empty import nothing_measured
from pages.ui.evidence import panel
from pages.ui.page import Page
from pages.ui.show import show

USUAL = f"Without a choice: the {MOST} objects that most images have, else the {MOST} words of most human captions."
WORDS = "Words of human captions, such as kitchen|cooking. Commas between slices."


def where_tab(page: Page) -> None:
    if page.choice is None:
        nothing_measured(page, "Slices of images are measured from a finished run of LIC.")
        return
    row = st.container(key="controls_where", horizontal=True)
    names = page.choice.options["captioner"]
    captioner = controls.selectbox(row, "Captioner", names, key="captioner", default=page.choice.captioner, width=240)
    choice = page.choice.of_captioners(captioner)
    metrics = [name for name in metrics_of(choice) if name != METRIC]
    metric = controls.selectbox(row, "Metric", metrics, key="metric", width=240)
    view = WHERE if metric == metrics[0] else replace(WHERE, question=f"Where is {metric} higher?")
    show_where(page, view, choice, _options(choice, metric))


def show_where(page: Page, view: View, choice: Choice, options: WhereOptions) -> None:
    """The view, and the captions of the line that was clicked beside it."""
    rows = page.once(repr(("where", choice.captioner, options)), lambda: WHERE.rows(choice, options))
    line = controls.kept("line")
    if line not in set(rows["line"]):
        show(view, choice, rows)
        return
    left, right = st.container(key="stacks").columns([3, 2], gap="large")
    with left:
        show(view, choice, rows)
    with right:
        work = lambda: images_of(choice, rows, line)  # noqa: E731
        images = page.once(repr(("where", choice.captioner, options, line)), work)
        panel(page, images=images, captioner=choice.captioner)


def _options(choice: Choice, metric: str) -> WhereOptions:
    """What the slices are, from controls that are folded."""
    sources = slice_sources(choice.workspace, choice.collection, choice.run())
    folded = st.expander("Choose slices").container(key="stacks_slices").columns(3, vertical_alignment="bottom")
    objects = controls.multiselect(folded[0], "Objects", sorted(sources.by_object), key="objects", help=USUAL)
    words = controls.text(folded[1], "Words people use", key="words", help=WORDS) if sources.references else ""
    columns = controls.multiselect(folded[2], "Columns", [*sources.columns], key="column", help="A slice per value.")
    texts = tuple(filter(None, (part.strip() for part in words.split(","))))
    return WhereOptions(metric=metric, objects=tuple(objects), words=texts, column=tuple(columns))
