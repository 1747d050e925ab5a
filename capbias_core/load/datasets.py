"""What the library `datasets` of Hugging Face saves to disk: a folder with `state.json` and Arrow files, or a folder of
such folders, one a split, with `dataset_dict.json`. Also an Arrow file alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.files import readable
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows
from capbias_core.load.tabular import arrow_columns, arrow_values, check_rows
from capbias_core.types import counted

SPLITS, STATE = MARKS = "dataset_dict.json", "state.json"
STREAM, FILE = b"\xff\xff\xff\xff", b"ARROW1"


def is_dataset(path: Path) -> bool:
    """Whether a folder is a data set as it was saved."""
    return any((path / mark).is_file() for mark in MARKS)


def with_datasets(paths: Sequence[Path]) -> list[Path]:
    """Paths, with each saved data set as its folder in place of the files in it."""
    parents = {own.parent for own in paths if own.name in MARKS}
    folders = sorted(own for own in parents if not parents.intersection(own.parents))
    return [*folders, *(own for own in paths if not set(folders).intersection(own.parents))]


def recognises(head: Head) -> bool:
    """A folder of a data set, or an Arrow file by its first bytes."""
    return is_dataset(head.path) if head.path.is_dir() else head.data.startswith((STREAM, FILE))


def columns(path: Path) -> tuple[str, ...]:
    """The names of the first Arrow file."""
    _, first = _files(path)[0]
    with _opened(path, first) as batches:
        return arrow_columns(path, batches.schema)


def read(path: Path, choose: Choose) -> Rows:
    """The chosen columns of all splits. Raises CapbiasError if a file is broken or lacks a column."""
    names = choose(columns(path))
    values, splits = {name: [] for name in names}, Counter()
    for split, file in _files(path):
        with _opened(path, file, names) as batches:
            if missing := [name for name in names if name not in batches.schema.names]:
                raise _broken(path, f"{file.name} has no column {missing[0]}")
            table = batches.read_all()
            table.validate(full=True)  # whatever a stranger wrote
            splits[split] += table.num_rows
            check_rows(path, splits.total())
            for name in names:
                values[name].extend(arrow_values(table.column(name)))
    total = splits.total()
    said = ", ".join(f"{split} {counted(rows, 'row')}" for split, rows in splits.items() if split)
    notes = (f"rows of every split are taken: {said}",) if said else ()
    return Rows(values, range(1, total + 1), total, RowErrors(path.name, "record"), notes)


def _files(path: Path) -> list[tuple[str, Path]]:
    """Split and place of every Arrow file, in the order in which the data set names them."""
    if not path.is_dir():
        return [("", path)]
    parts = [path / name for name in _listed(path, path / SPLITS, "splits")] if (path / SPLITS).is_file() else [path]
    files = [
        (part.name if part != path else "", part / name)
        for part in parts
        for name in _listed(path, part / STATE, "_data_files", "filename")
    ]
    if not files:
        raise _broken(path, "it names no Arrow file")
    return files


def _listed(path: Path, file: Path, key: str, inner: str = "") -> list[str]:
    """Names that a JSON file of the data set lists; none leads out of its folder."""
    try:
        with readable(file):
            listed = json.loads(file.read_text("utf-8"))[key]
        names = [own[inner] if inner else own for own in listed]
        if not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise TypeError
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _broken(path, f"{file.name} has no list {key} of names") from None
    return names


@contextmanager
def _opened(path: Path, file: Path, names: Sequence[str] = ()) -> Iterator[Any]:
    """A reader of an Arrow file, of the named columns alone (default: all). Any fault becomes a CapbiasError."""
    import pyarrow

    with readable(file), file.open("rb") as start:
        is_file = start.read(len(FILE)) == FILE
    opened = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
    try:
        with pyarrow.memory_map(str(file)) as source:
            with opened(source) as batches:
                places = [place for place, name in enumerate(batches.schema.names) if name in names]
            source.seek(0)
            with opened(source, options=pyarrow.ipc.IpcReadOptions(included_fields=places)) as batches:
                yield batches
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # pyarrow raises its own errors and Python's for damaged files
        raise _broken(path, str(error).split("\n")[0][:200].rstrip(".")) from None


def _broken(path: Path, reason: str) -> CapbiasError:
    return CapbiasError(
        f"{path.name}, a data set that is broken ({reason})",
        "what save_to_disk of the library datasets wrote, whole, or one Arrow file",
        "Save it again, or as Parquet.",
    )


READERS = (Reader("datasets", "Hugging Face data set (folder, zip or Arrow)", recognises, columns, read, place=1),)
