"""Excel files (.xlsx): the first sheet as a table, every cell as the text that a CSV of it would have."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.files import is_workbook
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows, checked_names

MOST_ROWS = 1_048_576  # as Excel has it; a file may name a row far below, and the reader goes through all before it
MOST_BYTES = 1_000_000_000  # unpacked; a sheet of a million captions has a fifth of it


def sheet_columns(path: Path) -> tuple[str, ...]:
    """The column names: the first row that is not empty. Raises CapbiasError where there is none."""
    with _rows(path) as rows:
        return _names(path, rows)


def read_sheet(path: Path, choose: Choose) -> Rows:
    """The chosen columns of the first sheet; rows are numbered as Excel shows them."""
    with _rows(path) as rows:
        names = _names(path, rows)
        columns = choose(names)
        places = [names.index(name) for name in columns]
        values: list[list[str]] = [[] for _ in columns]
        numbers: list[int] = []
        for number, row in rows:
            numbers.append(number)
            for column, place in zip(values, places, strict=True):
                column.append(row[place] if place < len(row) else "")
    return Rows(dict(zip(columns, values, strict=True)), numbers, len(numbers), RowErrors(path.name, "line"))


def _names(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[str, ...]:
    _, row = next(rows, (0, []))
    if not row:
        raise CapbiasError(
            f"{path.name}, whose first sheet is empty", "column names in its first row", "Put the table there."
        )
    return checked_names(path.name, tuple(name.strip() or f"column {place}" for place, name in enumerate(row, start=1)))


@contextmanager
def _rows(path: Path) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Number and texts of each row that is not empty, without the empty cells at its end."""
    from openpyxl import load_workbook

    try:
        with path.open("rb") as file:
            _check_size(path, file)
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            try:
                yield _texts(path, book.worksheets[0].iter_rows(values_only=True))
            finally:
                book.close()
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises its own errors, zipfile's and those of its XML parser
        reason = str(error).split("\n")[0][:200].rstrip(".") or type(error).__name__
        raise CapbiasError(
            f"{path.name}, an Excel file that cannot be read ({reason})", "a whole .xlsx file", "Save it again."
        ) from None


def _texts(path: Path, rows) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(rows, start=1):
        if number > MOST_ROWS:
            raise CapbiasError(f"{path.name} with a row {number:,}", f"at most {MOST_ROWS:,} rows", "Save it as CSV.")
        texts = ["" if value is None else str(value) for value in row]
        while texts and not texts[-1].strip():
            texts.pop()
        if texts:
            yield number, texts


def _check_size(path: Path, file) -> None:
    """zipfile reads no more of a member than it says to have."""
    with zipfile.ZipFile(file) as archive:
        size = sum(own.file_size for own in archive.infolist())
    file.seek(0)
    if size > MOST_BYTES:
        raise CapbiasError(
            f"{path.name}, which unpacks to {size / 1e9:.1f} GB", f"at most {MOST_BYTES / 1e9:g} GB", "Save it as CSV."
        )


def _is_sheet(head: Head) -> bool:
    return is_workbook(head.data)


READERS = (Reader("xlsx", "Excel", _is_sheet, sheet_columns, read_sheet, place=1),)
