"""A view of the core on a page: its sentence, chart, table and notes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from capbias_core.views.view import Shown, exported
from pages.ui.base import notes
from pages.ui.drawing import draw_chart, draw_table

FILES = {"csv": "CSV", "tex": "LaTeX"}


def draw_shown(shown: Shown, key: str, **selecting: Any) -> Any:
    """Draws a view. selecting: what st.dataframe takes for a table whose rows can be selected. Returns the table."""
    if shown.sentence:
        st.markdown(shown.sentence)
    if shown.chart:
        draw_chart(shown.chart(), key=f"{key}_chart", alt=shown.title)
    drawn = draw_table(shown.for_reader, key=f"{key}_table", **selecting)
    downloads(shown, key)
    notes(shown.notes)
    return drawn


def downloads(shown: Shown, key: str) -> None:
    """Buttons that save the rows of a view."""
    row = st.container(horizontal=True)
    for ending, label in FILES.items():
        name = f"{key}.{ending}"
        row.download_button(
            label, lambda name=name: exported(shown, name), name, on_click="ignore", key=f"{key}_{ending}"
        )
