"""A view of the core on a page: its sentence, chart, table and notes, and its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.components.v2 import component

from capbias_core.errors import CapbiasError
from capbias_core.views.choose import Choice
from capbias_core.views.draw import drawable, figure, forest_height, forest_html
from capbias_core.views.files import content
from capbias_core.views.markup import style
from capbias_core.views.view import Forest, Table, View
from pages.ui import controls
from pages.ui.base import note, notes, show_error
from pages.ui.plain import plain

TALLEST, ROW = 800, 35  # pixels of a table that is shown whole, and of one of its rows
MOST_STYLED = 500  # rows whose numbers are shown with their intervals
DOWNLOADS = {"csv": "CSV", "json": "JSON", "tex": "LaTeX", "svg": "SVG", "png": "PNG", "pdf": "PDF"}
# Lines are buttons: a click tells the page the name of the line.
CLICKED = """
export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector("section")
  root.innerHTML = data
  for (const line of root.querySelectorAll("[data-name]"))
    line.onclick = () => setTriggerValue("clicked", line.dataset.name)
}"""


def sentence(view: View, choice: Choice | None, rows: pd.DataFrame) -> None:
    """What follows from a view's rows."""
    st.text(view.sentence(choice, rows))


def forest(view: View, rows: pd.DataFrame, read: str, key: str, on_click: Callable[[str], None]) -> None:
    """A view's forest whose lines can be clicked. read: the line that is emphasised. on_click: gets a line's name."""
    lines = component("capbias_forest", html="<section></section>", css=style("forest"), js=CLICKED)

    def clicked() -> None:
        if name := st.session_state[key].get("clicked"):
            on_click(name)

    html = forest_html(view, rows, read, clickable=True)
    lines(data=html, key=key, on_clicked_change=clicked, height=forest_height(view, rows))


def read_captioner(name: str) -> None:
    """A click on a captioner reads it, here and on all pages."""
    controls.choose(captioner=name)


def chart(
    view: View,
    choice: Choice,
    rows: pd.DataFrame,
    on_click: Callable[[str], None] | None = None,
    clickable: bool = True,
) -> None:
    """A view's chart: a forest as HTML, any other by Plotly."""
    if not drawable(view, rows):
        return
    if isinstance(view.chart, Forest) and not view.chart.panel and not clickable:
        st.html(forest_html(view, rows))
        return
    key = f"{view.name}_chart"
    if isinstance(view.chart, Forest) and not view.chart.panel:
        on_click = on_click or (read_captioner if view.by == "captioner" else lambda name: controls.choose(line=name))
        read = choice.captioner if view.by == "captioner" else controls.kept("line")
        forest(view, rows, read, key, on_click)
        return
    try:
        drawn = figure(view, rows, choice.captioner)
    except CapbiasError as error:
        show_error(error)
        return
    st.plotly_chart(drawn, key=key, config={"displayModeBar": False}, height=drawn.layout.height)


def table(
    shown: Table, key: str, on_select: Callable[[int], None] | None = None, container: Any = st, **more: Any
) -> None:
    """A table whose numbers sort as numbers. on_select: gets the number of a row that was clicked."""
    config = {
        heading: st.column_config.TextColumn(heading, help=column.help or None)
        if column.digits is None
        else st.column_config.NumberColumn(heading, help=column.help or None, alignment="left")
        for heading, column in shown.fields.items()
    }
    if on_select:

        def selected() -> None:
            if rows := st.session_state[key].selection.rows:
                on_select(rows[0])

        more |= {"on_select": selected, "selection_mode": "single-row"}
    height = min(TALLEST, ROW * (len(shown.numbers) + 1) + 3)
    frame = shown.styled if len(shown.numbers) <= MOST_STYLED else shown.numbers
    container.dataframe(
        frame,
        hide_index=True,
        column_config=config | more.pop("column_config", {}),
        key=key,
        height=height,
        placeholder="",
        **more,
    )


def show(
    view: View,
    choice: Choice,
    rows: pd.DataFrame,
    on_click: Callable[[str], None] | None = None,
    clickable: bool = True,
) -> None:
    """A view as a whole; a click on a line of the chart or table chooses it, unless nothing is behind a line."""
    st.header(plain(view.question), anchor=False)
    if rows.empty:
        note("Not measured yet.")
        return
    sentence(view, choice, rows)
    chart(view, choice, rows, on_click, clickable)
    shown = view.table(rows)
    choose_line = on_click or (read_captioner if view.by == "captioner" else lambda name: controls.choose(line=name))
    lines = list(dict.fromkeys(rows[view.by]))
    table(shown, f"{view.name}_table", (lambda row: choose_line(str(lines[row]))) if clickable else None)
    downloads(view, choice, rows)
    notes(view.notes(choice, rows))


def downloads(view: View, choice: Choice | None, rows: pd.DataFrame) -> None:
    """A view's files, made when they are asked for."""
    box = st.popover("Download", icon=":material/download:", key=f"{view.name}_files", on_change="rerun")
    if not box.open:
        return
    endings = [ending for ending in DOWNLOADS if ending in ("csv", "json", "tex") or drawable(view, rows)]
    row = box.container(horizontal=True)
    about = (choice.collection, choice.attribute) if choice else ()
    for ending in endings:
        name = f"{'_'.join((view.name, *about))}.{ending}".replace(" ", "_")
        row.download_button(
            DOWNLOADS[ending],
            lambda ending=ending: content(view, choice, rows, ending),
            name,
            on_click="ignore",
            key=f"{view.name}_{ending}",
        )


def frame_table(frame: pd.DataFrame, container: Any = st, **more: Any) -> Any:
    """A frame that belongs to no view, as a table. Returns what st.dataframe does."""
    counts = dict.fromkeys(frame.select_dtypes("integer"), st.column_config.NumberColumn(format="localized"))
    more["column_config"] = counts | more.get("column_config", {})
    height = min(TALLEST // 2, ROW * (len(frame) + 1) + 3)  # so that nothing moves when it arrives
    return container.dataframe(frame, hide_index=True, placeholder="", height=height, **more)
