"""Parquet, Arrow, and what the library `datasets` of Hugging Face saves to disk: a folder with `state.json` and Arrow
files, or a folder of such folders, one per split, with `dataset_dict.json`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.archives import SPLITS, STATE, is_dataset
from capbias_core.load.files import readable
from capbias_core.load.parsed import Parsed, Reader, RowErrors, check_rows, checked_names, listed
from capbias_core.types import counted

TITLE = "Hugging Face data set (folder, zip or Arrow)"
STREAM, FILE = b"\xff\xff\xff\xff", b"ARROW1"


@contextmanager
def _whole(path: Path, what: str) -> Iterator[None]:
    """Any error that pyarrow raises for a damaged file, as a CapbiasError."""
    try:
        yield
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:
        raise _broken(path, what, str(error).split("\n")[0][:200].rstrip(".")) from None


def _broken(path: Path, what: str, reason: str) -> CapbiasError:
    return CapbiasError(f"{path.name} is {what} that is broken ({reason}).", "Write it again.")


def _readable_columns(path: Path, schema) -> dict[str, str]:
    """Column -> what is read of it: the path of pictures. Columns of bytes and the index of pandas are left out."""
    from pyarrow import types

    names = checked_names(path.name, tuple(name for name in schema.names if not name.startswith("__index_level_")))
    read = {}
    for name in names:
        kind = schema.field(name).type
        if types.is_struct(kind) and kind.get_field_index("path") >= 0:
            read[name] = f"{name}.path"
        elif not (types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)):
            read[name] = name
    return read


def _values(column) -> list:
    """The values of an Arrow column; of pictures their paths."""
    from pyarrow import types

    values = column.to_pylist()
    picture = types.is_struct(column.type) and column.type.get_field_index("path") >= 0
    return [value["path"] if value else None for value in values] if picture else values


def _parsed(path: Path, format: str, title: str, values: dict[str, list], names: list[str], notes=()) -> Parsed:
    lengths = {len(column) for column in values.values()} or {0}
    if len(lengths) > 1:
        raise _broken(path, title, "its columns have different lengths")
    if left_out := [name for name in names if name not in values and not name.startswith("__index_level_")]:
        notes += (f"left out, since they hold bytes: {listed(left_out)}",)
    total = lengths.pop()
    return Parsed(path, format, title, values, range(1, total + 1), total, RowErrors(path.name, "record"), notes)


def _parse_parquet(path: Path) -> Parsed:
    import pyarrow.parquet

    with _whole(path, "a Parquet file"), pyarrow.parquet.ParquetFile(path) as file:
        columns = _readable_columns(path, file.schema_arrow)
        check_rows(path.name, file.metadata.num_rows)
        table = file.read(columns=list(columns.values()))
        values = {name: _values(table.column(name)) for name in columns}
        return _parsed(path, "parquet", "Parquet", values, file.schema_arrow.names)


def _parse_dataset(path: Path) -> Parsed:
    """The rows of all splits. Raises CapbiasError if a file is broken or lacks a column."""
    values: dict[str, list] = {}
    names, splits = [], Counter()
    for split, file in _arrow_files(path):
        with readable(file), _whole(path, "a data set"):
            table, schema = _arrow_table(path, file)
            columns = _readable_columns(path, schema)
            if splits and (missing := [name for name in values if name not in columns]):
                raise _broken(path, "a data set", f"{file.name} has no column {missing[0]}")
            names = names or schema.names
            values = values or {name: [] for name in columns}
            splits[split] += table.num_rows
            check_rows(path.name, splits.total())
            for name, column in values.items():
                column.extend(_values(table.column(name)))
    shown = ", ".join(f"{split} {counted(rows, 'row')}" for split, rows in splits.items() if split)
    notes = (f"rows of every split: {shown}",) if shown else ()
    return _parsed(path, "datasets", TITLE, values, names, notes)


def _arrow_table(path: Path, file: Path):
    """The table of an Arrow file without its columns of bytes, and its whole schema."""
    import pyarrow

    with file.open("rb") as start:
        opened = pyarrow.ipc.open_file if start.read(len(FILE)) == FILE else pyarrow.ipc.open_stream
    with pyarrow.memory_map(str(file)) as source:
        with opened(source) as batches:
            schema = batches.schema
        columns = _readable_columns(path, schema)
        fields = [index for index, name in enumerate(schema.names) if name in columns]
        source.seek(0)
        with opened(source, options=pyarrow.ipc.IpcReadOptions(included_fields=fields)) as batches:
            table = batches.read_all()
    table.validate(full=True)  # whatever a stranger wrote
    return table, schema


def _arrow_files(path: Path) -> list[tuple[str, Path]]:
    """Split and path of all Arrow files, in the order in which the data set names them."""
    if not path.is_dir():
        return [("", path)]
    parts = [path / name for name in _listed(path, path / SPLITS, "splits")] if (path / SPLITS).is_file() else [path]
    files = [
        (part.name if part != path else "", part / name)
        for part in parts
        for name in _listed(path, part / STATE, "_data_files", "filename")
    ]
    if not files:
        raise _broken(path, "a data set", "it names no Arrow file")
    return files


def _listed(path: Path, file: Path, key: str, inner: str = "") -> list[str]:
    """Names that a JSON file of the data set lists; none leads out of its folder."""
    try:
        with readable(file):
            entries: Any = json.loads(file.read_text("utf-8"))[key]
        names = [entry[inner] if inner else entry for entry in entries]
        if not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise TypeError
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _broken(path, "a data set", f"{file.name} has no list {key} of names") from None
    return names


READERS = (
    Reader("parquet", "Parquet", lambda head: head.data.startswith(b"PAR1"), _parse_parquet, order=1),
    Reader(
        "datasets",
        TITLE,
        lambda head: is_dataset(head.path) if head.path.is_dir() else head.data.startswith((STREAM, FILE)),
        _parse_dataset,
        order=1,
    ),
)
