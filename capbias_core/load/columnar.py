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
PARQUET, STREAM, FILE = b"PAR1", b"\xff\xff\xff\xff", b"ARROW1"
INDEX = "__index_level_"  # the start of names that pandas gives to an index


def _broken(path: Path, reason: str) -> CapbiasError:
    what = "a Parquet file" if path.is_file() and _start(path).startswith(PARQUET) else "a data set"
    return CapbiasError(f"{path.name} is {what} that is broken ({reason}).", "Write it again.")


@contextmanager
def _intact(path: Path) -> Iterator[None]:
    """Any error that pyarrow raises for a damaged file, as a CapbiasError."""
    try:
        yield
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:
        raise _broken(path, str(error).split("\n")[0][:200].rstrip(".")) from None


def _start(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(FILE))


def _is_picture(kind) -> bool:
    from pyarrow import types

    return types.is_struct(kind) and kind.get_field_index("path") >= 0


def _columns_of(path: Path, schema) -> dict[str, str]:
    """Column -> what is read of it: the path of pictures. Columns of bytes and the index of pandas are left out."""
    from pyarrow import types

    columns = {}
    for name in checked_names(path.name, tuple(name for name in schema.names if not name.startswith(INDEX))):
        kind = schema.field(name).type
        if _is_picture(kind):
            columns[name] = f"{name}.path"
        elif not (types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)):
            columns[name] = name
    return columns


def _table(path: Path, file: Path):
    """The table of a Parquet or Arrow file without its columns of bytes, and its whole schema."""
    import pyarrow
    import pyarrow.parquet

    start = _start(file)
    if start.startswith(PARQUET):
        with pyarrow.parquet.ParquetFile(file) as opened:
            schema = opened.schema_arrow
            check_rows(path.name, opened.metadata.num_rows)
            table = opened.read(columns=list(_columns_of(path, schema).values()))
    else:
        opened = pyarrow.ipc.open_file if start == FILE else pyarrow.ipc.open_stream
        with pyarrow.memory_map(str(file)) as source:
            with opened(source) as batches:
                schema = batches.schema
            columns = _columns_of(path, schema)
            fields = [index for index, name in enumerate(schema.names) if name in columns]
            source.seek(0)
            with opened(source, options=pyarrow.ipc.IpcReadOptions(included_fields=fields)) as batches:
                table = batches.read_all()
    table.validate(full=True)  # whatever a stranger wrote, such as columns of different lengths
    return table, schema


def _parse(path: Path) -> Parsed:
    """The rows of a file, or of all splits of a folder. Raises CapbiasError if a file is broken or lacks a column."""
    values: dict[str, list] = {}
    names, splits = [], Counter()
    for split, file in _files(path):
        with readable(file), _intact(path):
            table, schema = _table(path, file)
            columns = _columns_of(path, schema)
            if splits and (missing := [name for name in values if name not in columns]):
                raise _broken(path, f"{file.name} has no column {missing[0]}")
            names = names or schema.names
            values = values or {name: [] for name in columns}
            splits[split] += table.num_rows
            check_rows(path.name, splits.total())
            for name, cells in values.items():
                column = table.column(name)
                read = column.to_pylist()
                picture = _is_picture(column.type)
                cells.extend([cell["path"] if cell else None for cell in read] if picture else read)
    shown = ", ".join(f"{split} {counted(rows, 'row')}" for split, rows in splits.items() if split)
    notes = (f"rows of every split: {shown}",) if shown else ()
    if left_out := [name for name in names if name not in values and not name.startswith(INDEX)]:
        notes += (f"left out, since they hold bytes: {listed(left_out)}",)
    total = splits.total() if values else 0
    parquet = path.is_file() and _start(path).startswith(PARQUET)
    format, title = ("parquet", "Parquet") if parquet else ("datasets", TITLE)
    return Parsed(path, format, title, values, range(1, total + 1), total, RowErrors(path.name, "record"), notes)


def _files(path: Path) -> list[tuple[str, Path]]:
    """Split and path of all files, in the order in which a data set lists them."""
    if not path.is_dir():
        return [("", path)]

    def listing(file: Path, key: str, inner: str = "") -> list[str]:
        """Names in a JSON file of the data set; none leads out of its folder."""
        try:
            with readable(file):
                entries: Any = json.loads(file.read_text("utf-8"))[key]
            names = [entry[inner] if inner else entry for entry in entries]
            if all(isinstance(name, str) and Path(name).name == name for name in names):
                return names
        except (ValueError, LookupError, TypeError, RecursionError):
            pass
        raise _broken(path, f"{file.name} has no list {key} of names")

    parts = [path / name for name in listing(path / SPLITS, "splits")] if (path / SPLITS).is_file() else [path]
    files = [
        (part.name if part != path else "", part / name)
        for part in parts
        for name in listing(part / STATE, "_data_files", "filename")
    ]
    if not files:
        raise _broken(path, "it names no Arrow file")
    return files


READERS = (
    Reader("parquet", "Parquet", lambda head: head.data.startswith(PARQUET), _parse, order=1),
    Reader(
        "datasets",
        TITLE,
        lambda head: is_dataset(head.path) if head.path.is_dir() else head.data.startswith((STREAM, FILE)),
        _parse,
        order=1,
    ),
)
