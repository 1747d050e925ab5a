"""A chart of a page: drawn, described, and taken away as a picture or as data."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import streamlit as st

from capbias_core.present.pictures import FORMATS, figure_data, picture, pictures_lack
from pages.ui import present
from pages.ui.base import note

NO_BAR = {"displayModeBar": False}


def draw_chart(figure: Any, *, key: str, alt: str, notes: str = "", headline: str = "", **selecting) -> None:
    """A Plotly figure, what is to be known of it, and its downloads, which are made when they are asked for.

    alt: what it shows, for people who do not see it; the files are called so. headline: of the chart that the page
    presents. selecting: what st.plotly_chart takes of a chart whose points can be selected.
    """
    if headline:
        present.chart(figure, key, alt, headline)
    name = re.sub(r"[^\w.-]+", "_", alt).strip("_")
    lack = pictures_lack()
    camera = {
        "displayModeBar": True,
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": "svg", "filename": name},
    }
    st.plotly_chart(figure, key=key, config=camera if lack else NO_BAR, alt=alt, **selecting)
    if notes:
        note(notes)
    with st.popover("Take away", icon=":material/download:", key=f"take_{key}"):
        if lack:
            note(f"{lack.rstrip('.')}. The camera above the chart saves it as SVG.")
        row = st.container(horizontal=True)
        for format, mime in {} if lack else FORMATS.items():
            _download(row, format.upper(), partial(picture, figure, format), f"{name}.{format}", mime, key)
        _download(row, "Data (CSV)", partial(_csv, figure), f"{name}.csv", "text/csv", key)


def _csv(figure: Any) -> str:
    return figure_data(figure).to_csv(index=False, lineterminator="\n")


def _download(place, label: str, make, file: str, mime: str, key: str) -> None:
    place.download_button(label, make, file, mime, on_click="ignore", key=f"take_{key}_{file.rpartition('.')[2]}")
