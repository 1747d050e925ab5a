"""Rows of results: as CSV, or for a person as columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from capbias_core.cli.terminal import on_terminal, show, write_output
from capbias_core.present.table import row_table, to_csv, to_text


def write_rows(frame: pd.DataFrame, path: Path | None, defined: bool = False) -> None:
    """Rows in RESULT_COLUMNS as CSV to a file or a pipe; on a terminal, one line a number.

    defined: leave out those without a value there.
    """
    if path or not on_terminal():
        write_output(to_csv(frame), path)
    else:
        show(to_text(row_table(frame.dropna(subset=["value"]) if defined else frame)).rstrip("\n"))
