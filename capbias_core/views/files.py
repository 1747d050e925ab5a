"""A view in a terminal and as a file: csv and json hold its rows, tex and txt its table, svg, png and pdf its chart."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table as Terminal
from rich.text import Text

from capbias_core.spreadsheets import csv_text
from capbias_core.views.choose import Choice
from capbias_core.views.draw import figure
from capbias_core.views.latex import to_latex
from capbias_core.views.pictures import FORMATS as PICTURES
from capbias_core.views.pictures import picture
from capbias_core.views.view import Table, View

WIDE = 200  # columns of a text that no terminal shows


def json_text(rows: pd.DataFrame) -> str:
    """Rows as a JSON list of objects; nothing is rounded, and what is not there is null."""
    cells = rows.astype(object)
    return json.dumps(cells.where(cells.notna(), None).to_dict("records"), indent=2, ensure_ascii=False) + "\n"


def printed(view: View, choice: Choice | None, rows: pd.DataFrame, width: int | None = None) -> str:
    """The view's sentence, table and notes as plain text, in so many columns (default: as wide as it is)."""
    notes = "\n".join(f"note: {note}" for note in view.notes(choice, rows))
    parts = [view.sentence(choice, rows), view_table(view.table(rows), width), notes]
    return "\n\n".join(parts if notes else parts[:-1]) + "\n"


def view_table(shown: Table, width: int | None = None) -> str:
    """A table as text, or as several that begin with the first column if it is wider."""
    numbers = [heading for heading, column in shown.fields.items() if column.digits is not None]
    return "\n\n".join(text_table(part, numbers, width) for part in fitting(shown.texts, width))


def fitting(texts: pd.DataFrame, width: int | None) -> Iterator[pd.DataFrame]:
    """A table as one that fits a width, with each interval under its number if need be, or as several that begin with
    the first column."""
    if width and _width(texts) > width:
        texts = texts.map(lambda text: text.replace(" [", "\n["))
    columns: list[str] = []
    first, others = texts.columns[:1], texts.columns[1:]
    for name in others:
        if width and columns and _width(texts[[*first, *columns, name]]) > width:
            yield texts[[*first, *columns]]
            columns = []
        columns.append(name)
    yield texts[[*first, *columns]]


def _width(texts: pd.DataFrame) -> int:
    lines = ([heading, *(line for text in texts[heading] for line in text.split("\n"))] for heading in texts)
    return sum(max(map(len, each)) + 2 for each in lines) - 2


def text_table(texts: pd.DataFrame, right: Collection[str] = (), width: int | None = None) -> str:
    """Texts in columns, in so many columns of a terminal (default: as wide as they are). right: headings of columns
    that are aligned to the right."""
    table = Terminal(box=None, pad_edge=False, header_style="")
    for heading in texts:
        table.add_column(Text(heading), justify="right" if heading in right else "left", overflow="fold")
    for row in texts.itertuples(index=False, name=None):
        table.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=width or 10_000, color_system=None, legacy_windows=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # pyright: ignore[reportAttributeAccessIssue]


def _picture(ending: str) -> Callable[[View, Choice | None, pd.DataFrame], bytes]:
    return lambda view, choice, rows: picture(
        figure(view, rows, choice.captioner if choice else ""), ending, view.title(choice)
    )


# Ending of a file -> what it holds.
FILES: dict[str, Callable[[View, Choice | None, pd.DataFrame], Any]] = {
    "csv": lambda view, choice, rows: csv_text(rows),
    "json": lambda view, choice, rows: json_text(rows),
    "tex": lambda view, choice, rows: to_latex(view.table(rows), view.title(choice), view.sentence(choice, rows)),
    "txt": lambda view, choice, rows: printed(view, choice, rows, WIDE),
    **{ending: _picture(ending) for ending in PICTURES},
}


def content(view: View, choice: Choice | None, rows: pd.DataFrame, ending: str) -> bytes:
    """The view as the content of a file. Raises CapbiasError for a picture of a view without a chart."""
    made = FILES[ending](view, choice, rows)
    return made if isinstance(made, bytes) else made.encode()
