"""Charts with their downloads, and tables in which names and captions can be read, however narrow the window."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pandas as pd
import streamlit as st

from capbias_core.spreadsheets import csv_text
from capbias_core.views.pictures import FORMATS, figure_data, file_name, picture, pictures_lack
from pages.ui import present, view
from pages.ui.base import defined, note

# The grid fits a column to its first rows only, and cuts the others. Pixels of a letter at its size of type, of a
# narrow and of a wide one, and beside the text.
LETTER, NARROW, WIDE, BESIDE = 7.2, 4.0, 11.6, 20
WIDE_LETTERS = "mwMW@%"
NARROW_LETTERS = "\N{NO-BREAK SPACE} .,:;'|!()[]fijltrI-"
# Longer text goes over three lines of the other width, for which the grid asks for this height of a row.
WIDEST, OF_THREE_LINES, THREE_LINES = 560, 400, 66
# A number as text, alone or before its interval, spread, share or remark: `8.7 ±0.9 [6.9, 10.4]`, `372 (84)`, `−4%`.
NUMBER = re.compile(r"(?:< )?([+\N{MINUS SIGN}-]?[\d,]*\.?\d+)%?(?=$| [\[(±/·]| to )")
IDS = ("image", "image_id")  # columns of texts, whatever they look like
MOST_ROWS = 300  # of a table whose texts sort by their numbers; longer ones come sorted
TALLEST, ROW = 800, 35  # pixels of a table that is shown whole, and of its rows unless they are set
# A wider first column would leave too little for the others; and a column that stays in view is drawn paler, so only
# tables that are scrolled even in a window of 1280 pixels have one.
WIDEST_PINNED, SCROLLED = 240, 860
# Seconds in which the browser may still send back the row that was selected before.
LATE = 2.0


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
    """A Plotly figure, notes on it, and its downloads.

    alt: what it shows, for people who do not see it; the files are called so. headline, legend: of a chart that the
    page presents; presented: its number among them, and how many there are. selecting: what st.plotly_chart takes for
    a chart whose points can be selected.
    """
    if headline:
        present.chart(figure, key, alt, headline, legend, *presented)
    bar: dict[str, Any] = {"displayModeBar": False}
    if pictures_lack():
        bar = {
            "displayModeBar": True,
            "displaylogo": False,
            "modeBarButtons": [["toImage"]],
            "toImageButtonOptions": {"format": "svg", "filename": file_name(alt)},
        }
    st.plotly_chart(figure, key=key, config=bar, alt=alt, **selecting)
    if notes:
        note(notes)
    chart_downloads(lambda: figure, key, alt, "The camera above the chart saves it as SVG.")


def chart_downloads(make: Callable[[], Any], key: str, alt: str, otherwise: str = "") -> None:
    """The downloads of a chart, which are made when they are asked for.

    make: its Plotly figure. otherwise: what helps if this machine can draw no picture.
    """
    box = st.popover("Download", icon=":material/download:", key=f"take_{key}", on_change="rerun")
    if not box.open:
        return
    chosen = view.choices()
    of = ", ".join(name for key in ("collection", "attribute") for name in chosen.get(key, ()))
    title = f"{alt} ({of})" if of else alt
    lack, name = pictures_lack(), file_name(title)
    files: dict[str, tuple[str, Callable[[], Any], str]] = {}
    if not lack:
        files = {
            ending: (ending.upper(), lambda ending=ending: picture(make(), ending, title), mime)
            for ending, mime in FORMATS.items()
        }
    files["csv"] = "Data (CSV)", lambda: csv_text(figure_data(make())), "text/csv"
    with box:
        if lack:
            note(f"{lack.rstrip('.')}. {otherwise}")
        row = st.container(horizontal=True)
        for ending, (label, data, mime) in files.items():
            row.download_button(label, data, f"{name}.{ending}", mime, on_click="ignore", key=f"take_{key}_{ending}")


class NumberedText(float):
    """A number that a table sorts by and shows as its text. nan for a text without a number."""

    text: str

    def __new__(cls, text: str):
        match = NUMBER.match(text)
        number = super().__new__(cls, match[1].replace(",", "").replace("\N{MINUS SIGN}", "-") if match else "nan")
        number.text = text
        return number


def draw_table(shown, container: Any = st, **settings):
    """A dataframe: each column of text as wide as its longest text, or over several lines.

    shown: a frame, or a styled one. container: to draw in. Columns of one-line texts that begin with a number, as
    `8.7 ±0.9 [6.9, 10.4]`, sort by it. The first column of a wide table stays in view. column_config has precedence;
    row_height=None keeps each text on one line. Returns what st.dataframe does.
    """
    frame = shown if isinstance(shown, pd.DataFrame) else shown.data
    configs = settings.pop("column_config", {})
    set_for: dict[str, dict[str, Any]] = {}  # what column_config sets; a text is the label alone
    for name, config in configs.items():
        settings_of = {"label": config} if isinstance(config, str) else config or {}
        set_for[name] = {key: value for key, value in settings_of.items() if value is not None}
    widths = {name: _width(frame[name]) for name in frame}
    first = next(iter(widths), "")
    total = sum(set_for.get(name, {}).get("width") or width for name, width in widths.items())
    pinned = {first} if total > SCROLLED and widths[first] <= WIDEST_PINNED else {}
    lines = settings.setdefault("row_height", THREE_LINES if max(widths.values(), default=0) > WIDEST else None)
    longest = OF_THREE_LINES if lines else WIDEST
    numbers: dict[str, pd.Series] = {}
    if not lines and frame is shown and len(frame) <= MOST_ROWS:
        for name in filter(lambda name: _is_of_numbers(frame[name]), frame):
            numbers[name] = pd.Series(list(map(NumberedText, frame[name])), frame.index, dtype=object)
        shown = frame.assign(**numbers).style.format(dict.fromkeys(numbers, attrgetter("text")))
    columns = {}
    for name, width in widths.items():
        set_here: dict[str, Any] = {"help": meaning} if (meaning := defined(str(name))) else {}
        if name in pinned or pd.api.types.is_string_dtype(frame[name]):
            set_here |= {"width": width if width <= WIDEST else longest, "pinned": name in pinned or None}
        if name in numbers:
            set_here["alignment"] = "left"
        if set_here:
            columns[name] = st.column_config.Column(**set_here) | set_for.get(name, {})
    if (len(frame) + 1) * (lines or ROW) <= TALLEST:
        settings.setdefault("height", "content")
    settings.setdefault("placeholder", "")  # else `None`
    return container.dataframe(shown, hide_index=True, column_config=configs | columns, **settings)


def _is_of_numbers(column: pd.Series) -> bool:
    """Whether most texts of a column that are not empty begin with a number."""
    if column.name in IDS or not pd.api.types.is_string_dtype(column):
        return False
    texts = [text for text in column if text]
    return 2 * sum(bool(NUMBER.match(text)) for text in texts) > len(texts)


def draw_first_columns(shown: pd.DataFrame, first: int, key: str, **settings) -> None:
    """A table's first columns, and a switch that shows all. first: how many fit a window of 1280 pixels."""
    if shown.shape[1] > first and not view.checkbox(st, "All columns", key=key, draw="toggle"):
        shown = shown.iloc[:, :first]
    draw_table(shown, **settings)


def _width(column: pd.Series) -> int:
    """Pixels that the longest text of a column takes, or its name."""
    texts, widest = list(map(str, [column.name, *column])), 0.0
    for text in sorted(texts, key=len, reverse=True):
        if WIDE * len(text) <= widest:  # nor can any shorter one be wider
            break
        narrow, wide = (sum(map(text.count, letters)) for letters in (NARROW_LETTERS, WIDE_LETTERS))
        widest = max(widest, LETTER * (len(text) - narrow - wide) + NARROW * narrow + WIDE * wide)
    return round(widest) + BESIDE


def select_row(key: str, rows: list[int]) -> None:
    """Select a row of a table that is about to be drawn, so that the table follows what is chosen elsewhere."""
    st.session_state[key] = {"selection": {"rows": rows, "columns": []}}
    drawn = st.session_state.setdefault(f"{key}_drawn", [[], [], 0.0])
    if drawn[0] != rows:
        st.session_state[f"{key}_drawn"] = [rows, drawn[0], time.monotonic()]


def selected_row(key: str) -> int | None:
    """The row that a user has just selected; None if it is that of `select_row`, which the browser sends back, or the
    one before, sent back too late."""
    rows = st.session_state[key].selection.rows
    drawn, before, at = st.session_state[f"{key}_drawn"]
    late = rows == before and time.monotonic() - at < LATE
    return rows[0] if rows and rows != drawn and not late else None
