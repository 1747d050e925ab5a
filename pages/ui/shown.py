"""A view of the core on a page: its sentence, chart, table and notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from pandas.io.formats.style import Styler

from capbias_core.views.view import Shown, exported
from pages.ui.base import box, notes
from pages.ui.drawing import draw_chart, draw_first_columns, draw_table
from pages.ui.plain import plain

FILES = {"csv": "CSV", "tex": "LaTeX"}


def draw_shown(
    shown: Shown,
    key: str,
    *,
    boxed: bool = False,
    headline: str = "",
    legend: str = "",
    presented: tuple[int, int] = (1, 1),
    folded: str = "",
    first: int = 0,
    styled: Callable[[Styler], Styler] | None = None,
    **settings: Any,
) -> Any:
    """Draws a view. Returns its table.

    boxed: sentence and first note as the answer of the page. headline, legend, presented: of a chart that is presented
    (`draw_chart`). folded: title of an expander for the table. first: how many columns are shown at first (default:
    all). styled: sets colours of cells. settings: what st.dataframe takes.
    """
    lines = shown.notes
    if boxed:
        box(shown.sentence, lines[0])
        lines = lines[1:]
    elif shown.sentence:
        st.markdown(plain(shown.sentence))
    figure = shown.chart() if shown.chart else None
    if figure:
        draw_chart(figure, key=f"{key}_chart", alt=shown.title, headline=headline, legend=legend, presented=presented)
    settings = {"key": f"{key}_table", "alt": shown.title} | settings
    with st.expander(plain(folded), key=f"{key}_open") if folded else st.container():
        if first:
            del settings["key"]
            drawn = draw_first_columns(shown.for_reader, first, f"{key}_columns", **settings)
        else:
            drawn = draw_table(styled(shown.for_reader.style) if styled else shown.for_reader, **settings)
        downloads(shown, key)
    notes(lines)
    return drawn


def downloads(shown: Shown, key: str) -> None:
    """Buttons that save the rows of a view."""
    row = st.container(horizontal=True)
    for ending, label in FILES.items():
        name = f"{key}.{ending}"
        row.download_button(
            label, lambda name=name: exported(shown, name), name, on_click="ignore", key=f"{key}_{ending}"
        )
