"""A chart of a page: drawn, described, and taken away as a picture or as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

from capbias_core.spreadsheets import csv_text
from capbias_core.views.pictures import FORMATS, figure_data, picture, pictures_lack
from pages.ui import present
from pages.ui.base import note

NO_BAR = {"displayModeBar": False}


def draw_chart(
    figure: Any,
    *,
    key: str,
    alt: str,
    notes: str = "",
    headline: str = "",
    legend: str = "",
    presented: tuple[int, int] = (1, 1),
    **selecting,
) -> None:
    """A Plotly figure, what is to be known of it, and its downloads.

    alt: what it shows, for people who do not see it; the files are called so. headline, legend: of a chart that the
    page presents; presented: its place among them, and their number. selecting: what st.plotly_chart takes of a chart
    whose points can be selected.
    """
    if headline:
        present.chart(figure, key, alt, headline, legend, *presented)
    lack = pictures_lack()
    camera = {
        "displayModeBar": True,
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": "svg", "filename": _file_name(alt)},
    }
    st.plotly_chart(figure, key=key, config=camera if lack else NO_BAR, alt=alt, **selecting)
    if notes:
        note(notes)
    take_away(lambda: figure, key, alt, "The camera above the chart saves it as SVG.")


def take_away(make: Callable[[], Any], key: str, alt: str, without: str = "") -> None:
    """The downloads of a chart, which are made when they are asked for.

    make: its Plotly figure. without: what helps where this machine can draw no picture.
    """
    box = st.popover("Download", icon=":material/download:", key=f"take_{key}", on_change="rerun")
    if not box.open:
        return
    lack, name = pictures_lack(), _file_name(alt)
    with box:
        if lack:
            note(f"{lack.rstrip('.')}. {without}")
        row = st.container(horizontal=True)
        for format, mime in {} if lack else FORMATS.items():
            _download(row, format.upper(), lambda own=format: picture(make(), own), f"{name}.{format}", mime, key)
        _download(row, "Data (CSV)", lambda: _csv(make()), f"{name}.csv", "text/csv", key)


def _file_name(alt: str) -> str:
    return re.sub(r"[^\w.-]+", "_", alt).strip("_")


def _csv(figure: Any) -> str:
    return csv_text(figure_data(figure))


def _download(place, label: str, make, file: str, mime: str, key: str) -> None:
    place.download_button(label, make, file, mime, on_click="ignore", key=f"take_{key}_{file.rpartition('.')[2]}")
