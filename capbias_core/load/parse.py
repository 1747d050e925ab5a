"""From a file to its content as raw columns, whatever its format. Nothing in a file is ever run."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, taken_twice
from capbias_core.load.archives import ARCHIVES, unpacked
from capbias_core.load.files import HEAD, is_workbook, read_head, readable
from capbias_core.load.json_shapes import document
from capbias_core.load.parsed import Head, Parsed, Reader, RowErrors, check_rows, checked_names, listed
from capbias_core.load.shapes import refined


@cache
def readers() -> dict[str, Reader]:
    """The readers by name, in the order in which they are asked, from each module of this package with `READERS`."""
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    known = [reader for name in modules for reader in getattr(import_module(f"{__package__}.{name}"), "READERS", ())]
    if twice := [name for name, count in Counter(reader.name for reader in known).items() if count > 1]:
        raise taken_twice("reader", twice[0], ["load/"])
    return {reader.name: reader for reader in sorted(known, key=lambda reader: (reader.order, reader.name))}


def parse(path: Path) -> Parsed:
    """The content of a file, of a folder that is one, or of an archive with one file in it.

    Parsed.path is then the file in the archive, as if it lay beside it. Raises CapbiasError for a file in no known
    format, or one that cannot be read.
    """
    path = Path(path)
    archive = path.suffix.lower() in ARCHIVES and path.is_file()
    if archive:
        with readable(path), path.open("rb") as file:
            archive = not is_workbook(file.read(HEAD))
    if not archive:
        return refined(_reader_of(path).parse(path))
    with TemporaryDirectory(prefix="capbias-") as folder:
        inside = unpacked(path, Path(folder) / "files")
        known = inside if len(inside) == 1 else []
        for file in inside if len(inside) > 1 else ():
            with suppress(CapbiasError):
                _reader_of(file)
                known.append(file)
        if len(known) != 1:
            names = listed([file.name for file in known or inside])
            number = f"{len(known)} files" if known else "no file"
            raise CapbiasError(
                f"{path.name} holds {number} in a known format ({names}), where one is expected.",
                "Unpack it, and name the file.",
            )
        parsed = refined(_reader_of(known[0]).parse(known[0]))
    return replace(parsed, path=path.with_name(known[0].name))


def _reader_of(path: Path) -> Reader:
    """The first reader that recognises a file. Raises CapbiasError without one."""
    head = Head(path, b"" if path.is_dir() else read_head(path))
    for reader in readers().values():
        if reader.recognises(head):
            return reader
    if path.is_dir():
        raise CapbiasError(f"{path.name} is a folder without a data set or texts in it.", "Choose a file in it.")
    titles = dict.fromkeys(reader.title for reader in readers().values())
    raise CapbiasError(
        f"{path.name} is text in no known format.",
        f"Save it as one of: {', '.join(titles)}; for example as CSV whose first line names the columns, one of them "
        "image_id.",
    )


def parse_table(table: Any, name: str) -> Parsed:
    """The content of a DataFrame, a list of dicts, or a dict in any shape of JSON files. name: for messages.

    Raises CapbiasError for anything else.
    """
    if isinstance(table, pd.DataFrame):
        frame = table.reset_index() if table.index.name else table
        names = checked_names(name, tuple(map(str, frame.columns)))
        check_rows(name, len(frame))
        columns = {column: [_plain(value) for value in frame.iloc[:, index]] for index, column in enumerate(names)}
        numbers = range(1, len(frame) + 1)
        return refined(Parsed(Path(name), "table", "table", columns, numbers, len(frame), RowErrors(name, "record")))
    if isinstance(table, str | bytes) or not hasattr(table, "__iter__"):
        raise CapbiasError(f"{name} is a {type(table).__name__}.", "Give a path, a DataFrame or a list of dicts.")
    return refined(document(Path(name), _plain(table if isinstance(table, Mapping) else list(table))))


def _plain(value: Any) -> Any:
    """A value of numpy, pandas or torch as one of Python; missing ones as None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) or value is pd.NaT or value is pd.NA:
        return None if value is pd.NaT or value is pd.NA or value != value else value
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value.item() if hasattr(value, "item") else value
