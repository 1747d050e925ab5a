"""Tables: CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.files import head_text, read_head, text_lines
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import MOST_ROWS, Choose, RowErrors, Rows, checked_names
from capbias_core.types import counted

ENDINGS = (".csv", ".tsv")
DELIMITERS = (",", "\t", ";")

# A caption may be longer than the 128 KiB at which the csv module stops.
csv.field_size_limit(2**31 - 1)


def table_header(path: Path) -> tuple[str, tuple[str, ...]]:
    """Delimiter and column names: the first row, read with the delimiter that gives most columns; none if broken."""
    text = head_text(path, read_head(path))
    headers = [(delimiter, _first_row(text, delimiter)) for delimiter in DELIMITERS]
    delimiter, row = max(headers, key=lambda header: len(header[1]))
    return delimiter, tuple(name.strip() or f"column {place}" for place, name in enumerate(row, start=1))


def _first_row(text: str, delimiter: str) -> list[str]:
    try:
        return next(
            (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row), []
        )
    except csv.Error:
        return []


def same_width(path: Path, rows: int = 5) -> bool:
    """Whether the first lines after the header have its number of fields, which prose seldom has."""
    delimiter, names = table_header(path)
    with text_lines(path) as lines:
        table = (row for row in csv.reader(lines, delimiter=delimiter) if row)
        widths = [len(row) for row, _ in zip(table, range(rows + 1), strict=False)]
    return len(names) > 1 and len(widths) > 1 and len(set(widths)) == 1


def delimited_columns(path: Path) -> tuple[str, ...]:
    """The column names. Raises CapbiasError where there are none or two are the same."""
    return _usable_header(path)[1]


def _usable_header(path: Path) -> tuple[str, tuple[str, ...]]:
    delimiter, names = table_header(path)
    if not names:
        got = f"{path.name} with a first line whose quotes are broken"
        raise CapbiasError(got, "a first line of column names", "Close every quote.")
    return delimiter, checked_names(path.name, names)


def read_delimited(path: Path, choose: Choose) -> Rows:
    """A CSV or TSV file with a header. Rows with another number of fields than the header are faults."""
    delimiter, names = _usable_header(path)
    columns, faults = choose(names), RowErrors(path.name, "line")
    places = [names.index(name) for name in columns]
    values: list[list[str]] = [[] for _ in columns]
    numbers: list[int] = []
    broken: list[tuple[int, int]] = []  # first line and further lines of rows that hold line breaks
    for number, last, row in _fields(path, delimiter, faults):
        if len(row) != len(names):
            faults.add(number, f"{len(row)} fields where the header has {len(names)}")
            continue
        numbers.append(number)
        broken += [(number, last - number)] if last > number else []
        for column, place in zip(values, places, strict=True):
            column.append(row[place])
    return Rows(dict(zip(columns, values, strict=True)), numbers, len(numbers) + faults.count, faults, _breaks(broken))


def _breaks(broken: list[tuple[int, int]]) -> tuple[str, ...]:
    """What is said of rows that run over several lines: a stray quote takes in the lines after it."""
    if not broken:
        return ()
    first, most = max(broken, key=lambda own: own[1])
    return (
        f"{counted(len(broken), 'row')} with line breaks within quotes took in "
        f"{counted(sum(further for _, further in broken), 'further line')}, the most from line {first} to line "
        f"{first + most}; if these are rows of their own, a quote is not closed",
    )


def _fields(path: Path, delimiter: str, faults: RowErrors) -> Iterator[tuple[int, int, list[str]]]:
    """First and last line and fields of every row after the header; blank lines are passed over, bad quotes faults."""
    with text_lines(path) as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        header_seen = False
        while True:
            number = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                faults.add(number, _quote_fault(error, number, reader.line_num))
                continue
            if row and header_seen:
                yield number, reader.line_num, row
            header_seen = header_seen or bool(row)


def _quote_fault(error: csv.Error, first: int, last: int) -> str:
    if "end of data" in str(error):
        return f"a quote is opened and never closed; {_lost(first, last)} to the end of the file (line {last})"
    through = f" (the row runs to line {last}: {_lost(first, last)})" if last > first else ""
    return f'text follows a closing quote{through}; write a quote inside a quoted field twice ("")'


def _lost(first: int, last: int) -> str:
    return f"{counted(last - first, 'further line')} {'is' if last - first == 1 else 'are'} lost with it"


def parquet_columns(path: Path) -> tuple[str, ...]:
    """The column names, without the index that pandas may add."""
    with _parquet(path) as file:
        return arrow_columns(path, file.schema_arrow)


def read_parquet(path: Path, choose: Choose) -> Rows:
    """The chosen columns of a Parquet file."""
    with _parquet(path) as file:
        schema, total = file.schema_arrow, file.metadata.num_rows
        columns = choose(arrow_columns(path, schema))
        check_rows(path, total)
        try:
            pictures = [name for name in columns if is_picture(schema.field(name).type)]
            table = file.read(columns=[f"{name}.path" if name in pictures else name for name in columns])
            values = {name: arrow_values(table.column(name)) for name in columns}
        except MemoryError:
            raise
        except Exception as error:  # pyarrow raises its own errors and Python's for damaged pages
            raise _broken(path, error) from None
    return Rows(values, range(1, total + 1), total, RowErrors(path.name, "record"))


def check_rows(path: Path, total: int) -> None:
    """Raises CapbiasError for more rows than are read of any file."""
    if total > MOST_ROWS:
        raise CapbiasError(f"{path.name} with {total:,} rows", f"at most {MOST_ROWS:,}", "Split the file.")


def arrow_columns(path: Path, schema) -> tuple[str, ...]:
    """The names of an Arrow schema, without the index that pandas may add."""
    return checked_names(path.name, tuple(name for name in schema.names if not name.startswith("__index_level_")))


def is_picture(own) -> bool:
    """Whether an Arrow type is that of pictures as `datasets` keeps them: their bytes, and the path they came from."""
    from pyarrow import types

    return types.is_struct(own) and own.get_field_index("path") >= 0


def arrow_values(column) -> list:
    """The values of an Arrow column; of pictures their paths."""
    values = column.to_pylist()
    return [own["path"] if own else None for own in values] if is_picture(column.type) else values


def _parquet(path: Path):
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path)
    except MemoryError:
        raise
    except Exception as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> CapbiasError:
    reason = str(error).split("\n")[0][:200].rstrip(".")
    return CapbiasError(
        f"{path.name}, a Parquet file that is broken ({reason})", "a whole Parquet file", "Write it again."
    )


def _is_parquet(head: Head) -> bool:
    return head.data.startswith(b"PAR1")


def _is_table(head: Head) -> bool:
    """By its ending, or where the first lines have one width."""
    return head.ending in ENDINGS or same_width(head.path)


def _is_tsv(head: Head) -> bool:
    delimiter, names = table_header(head.path)
    return (delimiter == "\t" or (len(names) == 1 and head.ending == ".tsv")) and _is_table(head)


READERS = (
    Reader("parquet", "Parquet", _is_parquet, parquet_columns, read_parquet, place=1),
    Reader("tsv", "TSV", _is_tsv, delimited_columns, read_delimited, place=10),
    Reader("csv", "CSV", _is_table, delimited_columns, read_delimited, place=11),
)
