"""Which format a file has, by its content: the first reader that recognises it."""

from __future__ import annotations

import pkgutil
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

from capbias_core.errors import CapbiasError, taken_twice
from capbias_core.load.files import read_head
from capbias_core.load.reader import Head, Reader


@cache
def readers() -> dict[str, Reader]:
    """Every format by name, in the order in which they are asked: of each module of this package with `READERS`."""
    names = [own.name for own in pkgutil.iter_modules([str(Path(__file__).parent)])]
    modules = [import_module(f"{__package__}.{name}") for name in names]
    found = [reader for module in modules for reader in getattr(module, "READERS", ())]
    if twice := [name for name, count in Counter(reader.name for reader in found).items() if count > 1]:
        raise taken_twice("reader", twice[0], ["load/"])
    return {reader.name: reader for reader in sorted(found, key=lambda reader: (reader.place, reader.name))}


def reader_of(path: Path) -> Reader:
    """The reader of a file. Raises CapbiasError for a file that none recognises."""
    head = Head(path, b"" if path.is_dir() else read_head(path))
    for reader in readers().values():
        if reader.recognises(head):
            return reader
    raise CapbiasError(
        f"{path.name}, text in no format that is known",
        f"one of: {', '.join(dict.fromkeys(reader.title for reader in readers().values()))}; or COCO instances (JSON)",
        "Save it in one of these, such as CSV with a first line of column names, one of them image_id.",
    )


def sniff(path: Path) -> str:
    """The name of a file's format. Raises CapbiasError for a file that is none of them."""
    return reader_of(path).name
