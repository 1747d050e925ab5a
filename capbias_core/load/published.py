"""A results table (CSV): the papers' printed figures, our own measured rows, or human scores of captioners."""

from __future__ import annotations

import csv
import io
import math
from functools import cache
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.files import readable
from capbias_core.resources import PUBLISHED_FILE
from capbias_core.spreadsheets import unquoted
from capbias_core.types import PUBLISHED_COLUMNS, RESULT_COLUMNS

REMEDY = "Take a file that `score` or `export` wrote, or one in the columns of assets/published/results.csv."
NUMBERS = ("value", "spread", "scale", "ci_low", "ci_high")
COUNTS = ("seeds", "training", "n")
HUMAN_COLUMNS = ("model", "value")


def published_results() -> pd.DataFrame:
    """The bundled figures of the papers (see `read_results`)."""
    return _bundled().copy()


@cache
def _bundled() -> pd.DataFrame:
    return read_results(PUBLISHED_FILE)


def read_results(path: Path) -> pd.DataFrame:
    """A results table, one row a number, in RESULT_COLUMNS.

    value / scale is the quantity in its own unit. Numbers are floats (missing where the cell is empty), seeds and n
    integers (0 where empty), everything else text ('' where empty). Columns after `scale` may be absent from the file,
    others are left out. Raises CapbiasError for a file without rows or columns, or with a value that is no number.
    """
    path = Path(path)
    rows = _rows(path, PUBLISHED_COLUMNS)
    frame = pd.DataFrame([row for _, row in rows]).reindex(columns=list(RESULT_COLUMNS), fill_value="")
    lines = [line for line, _ in rows]
    for column in (*NUMBERS, *COUNTS):
        frame[column] = _numbers(frame[column], lines, path, column)
    frame[list(COUNTS)] = frame[list(COUNTS)].fillna(0).astype(int)
    for line, scale in zip(lines, frame["scale"], strict=True):
        if not 0 < scale < math.inf:
            raise _unreadable(path, line, "scale", scale, "a number above 0")
    return frame


def read_human_scores(path: Path) -> pd.Series:
    """Human scores of captioners, from a CSV with the columns model and value, one row a captioner: model -> value.

    Raises CapbiasError for anything else, and for a captioner that stands there twice.
    """
    path = Path(path)
    rows = _rows(path, HUMAN_COLUMNS)
    values = _numbers(pd.Series([row["value"] for _, row in rows]), [line for line, _ in rows], path, "value")
    scores = pd.Series(values.to_numpy(), index=[row["model"] for _, row in rows]).dropna()
    if scores.empty or not scores.index.is_unique:
        twice = ", ".join(sorted(set(scores.index[scores.index.duplicated()])))
        got = f"{path.name}, with {'several scores of ' + twice if twice else 'no score'}"
        raise CapbiasError(got, "one score a captioner", "Give each captioner one row.")
    return scores


def _rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Line and cells of each row, as they were before they were written for spreadsheet programs."""
    reader = csv.DictReader(io.StringIO(_text(path)), strict=True)
    try:
        names = reader.fieldnames or ()
        missing = [name for name in needed if name not in names]
        if missing:
            raise CapbiasError(
                f"{path.name}, without the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
                f"a CSV with the columns {', '.join(needed)}",
                REMEDY,
            )
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        got = f"{path.name}, which is no CSV at line {reader.reader.line_num} ({error})"
        raise CapbiasError(got, "a results table as CSV", REMEDY) from None
    for line, row in rows:
        if None in row or None in row.values():
            got = f"{path.name}, line {line}, with {'more' if None in row else 'fewer'} cells than the header"
            raise CapbiasError(got, f"{len(names)} cells", "Repair that line.")
    if not rows:
        raise CapbiasError(f"{path.name}, which holds no row", "a results table with one row a number", REMEDY)
    return [(line, {name: unquoted(cell) for name, cell in row.items()}) for line, row in rows]


def _text(path: Path) -> str:
    with readable(path):
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"{path.name}, which is not UTF-8 text (byte {error.start})"
        raise CapbiasError(got, "a results table as CSV", REMEDY) from None
    if not text.strip():
        raise CapbiasError(f"{path.name}, an empty file", "a results table as CSV", REMEDY)
    return text


def _numbers(cells: pd.Series, lines: list[int], path: Path, column: str) -> pd.Series:
    """Cells to floats; an empty one is missing."""
    kind = int if column in COUNTS else float
    found = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            found.append(kind(cell) if cell.strip() else math.nan)
        except ValueError:
            raise _unreadable(path, line, column, cell, "a whole number" if kind is int else "a number") from None
    return pd.Series(found, index=cells.index, dtype=float)


def _unreadable(path: Path, line: int, column: str, cell: object, expected: str) -> CapbiasError:
    return CapbiasError(
        f"{path.name}, line {line}, with {str(cell)[:40]!r} in the column {column}", expected, "Repair that cell."
    )
