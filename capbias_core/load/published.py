"""A results table (CSV): the papers' printed figures, our own measured rows, or human scores of captioners."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, short
from capbias_core.load.formats import sheets_of
from capbias_core.load.sheet import is_missing
from capbias_core.resources import PUBLISHED_FILE, PUBLISHED_MEASURED, PUBLISHED_NOTES
from capbias_core.types import PUBLISHED_COLUMNS, RESULT_COLUMNS

HINT = "Use a file that `score` or `export` wrote, or one in the columns of assets/published/results.csv."
NUMBERS = ("value", "spread", "scale", "ci_low", "ci_high")
COUNTS = ("seeds", "training", "n")


def published_results() -> pd.DataFrame:
    """The bundled figures of the papers (see `read_results`)."""
    return _cached(PUBLISHED_FILE).copy()


def bundled_measured() -> pd.DataFrame:
    """The bundled results of capbias for the captioners of LIC's main table (see `read_results`)."""
    return _cached(PUBLISHED_MEASURED).copy()


def published_notes(rows: pd.DataFrame) -> tuple[pd.Series, dict[tuple[str, str], str]]:
    """What contradicts printed numbers in the papers themselves, with table and value: of each row, '' for nothing; and
    what is said of whole tables, by paper and table.

    rows: of `published_results`, with further columns or without. A note belongs to the rows that agree with each cell
    that it fills in assets/published/notes.csv.
    """
    notes, of_tables = pd.Series("", rows.index, dtype=object), {}
    for cells in pd.read_csv(PUBLISHED_NOTES, dtype=str, keep_default_na=False).to_dict("records"):
        given = {name: cell for name, cell in cells.items() if cell and name != "note"}
        if given.keys() == {"paper", "table"}:
            of_tables[given["paper"], given["table"]] = cells["note"]
            continue
        hit = np.logical_and.reduce([rows[name] == cell for name, cell in given.items()])
        notes[hit] = [f"{note} {cells['note']}".strip() for note in notes[hit]]
    return notes, of_tables


def read_results(path: Path) -> pd.DataFrame:
    """A results table, one row a number, in RESULT_COLUMNS.

    value / scale is the quantity in its own unit. Numbers are floats (missing if the cell is empty), seeds and n
    integers (0 if empty), everything else text ('' if empty). Columns after `scale` may be absent from the file, others
    are left out. Raises CapbiasError for a file without rows or columns, or with a value that is no number.
    """
    cells, lines = _cells(path, PUBLISHED_COLUMNS)
    frame = cells.reindex(columns=list(RESULT_COLUMNS), fill_value="")
    for column in NUMBERS:
        frame[column] = _numbers(frame[column], lines, path)
    for column in COUNTS:
        frame[column] = _numbers(frame[column].str.strip().replace("", "0"), lines, path, int)
    if not frame["scale"].dropna().between(0, math.inf, inclusive="neither").all():
        raise CapbiasError(f"{path.name} has a scale that is not above 0.", "Correct the column scale.")
    return frame


_cached = cache(read_results)


def read_human_scores(path: Path) -> pd.Series:
    """Human scores of captioners, from a table with the columns model and value, one row a captioner: model -> value.
    Raises CapbiasError for anything else, and for a captioner that occurs twice."""
    cells, lines = _cells(path, ("model", "value"))
    scores = _numbers(cells["value"], lines, path).set_axis(cells["model"]).dropna()
    if scores.empty or scores.index.has_duplicates:
        raise CapbiasError(f"{path.name} holds no score, or several of a captioner.", "Give each captioner one row.")
    return scores.rename_axis(None).rename(None)


def _cells(path: Path, needed: tuple[str, ...]) -> tuple[pd.DataFrame, Sequence[int]]:
    """The cells of a table as text, and the line of each row."""
    (sheet, *_) = sheets_of(path, str(path))
    if missing := [name for name in needed if name not in sheet.columns]:
        raise CapbiasError(f"{path.name} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}.", HINT)
    if sheet.faults.count:
        raise CapbiasError(f"{path.name}, {sheet.faults.first[0]}.", "Correct that line.")
    if sheet.frame.empty:
        raise CapbiasError(f"{path.name} holds no row.", HINT)
    texts = sheet.frame.map(lambda cell: "" if is_missing(cell) else str(cell))
    return texts.astype(object), sheet.numbers


def _numbers(cells: pd.Series, lines: Sequence[int], path: Path, kind: type = float) -> pd.Series:
    """Cells to numbers; an empty one is missing."""
    numbers = []
    for line, cell in zip(lines, cells, strict=True):
        try:
            numbers.append(kind(cell) if cell.strip() else math.nan)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise CapbiasError(
                f"{path.name}, line {line}: {short(cell)!r} in the column {cells.name} is not {expected}.",
                "Correct that cell.",
            ) from None
    return pd.Series(numbers, index=cells.index, dtype=kind)
