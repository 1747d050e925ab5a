"""What a reader is, and what every reader gives: the content of a file as raw columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from capbias_core.load.files import head_text
from capbias_core.load.ids import described
from capbias_core.load.rows import RowErrors, checked_names, merged, names_of

# `Head.text` raises for a file that is no text, so readers of text come after the binary formats.
AFTER_BINARY = 2.5
# What a file may hold.
CAPTIONS, REFERENCES, LABELS, OBJECTS = "captions", "references", "attributes", "objects"
SEGMENTS, BOXES = "segments", "boxes"


@dataclass(frozen=True)
class Parsed:
    """The content of a file before anyone has decided what it is.

    format: a key such as `coco_results`; title: the same as shown. columns: raw values, one per row, in file order.
    numbers: line or record number of each row. rows: rows in the file, those in `faults` included. notes: sentences on
    what was taken from where. kind: only if the format itself fixes it (CAPTIONS and so on). by_rows: images are known
    by their row number alone. image_names: image ID -> file name, and sizes: image ID -> (height, width) or (0, 0), of
    the images that the file lists.
    """

    path: Path
    format: str
    title: str
    columns: Mapping[str, Sequence]
    numbers: Sequence[int]
    rows: int
    faults: RowErrors
    notes: tuple[str, ...] = ()
    kind: str = ""
    by_rows: bool = False
    image_names: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    def values(self, *names: str) -> Iterator[tuple]:
        """Row by row the values of some columns; None where the file lacks the column."""
        nothing = [None] * len(self.numbers)
        return zip(*(self.columns.get(name, nothing) for name in names), strict=True)

    def with_rows(self, rows: Iterable[Sequence[Mapping[str, Any]] | str], names: Sequence[str], **more: Any) -> Parsed:
        """The same file with other columns. rows: for each row the values by column of what becomes of it, or what is
        wrong with it. more: further fields that change."""
        faults = RowErrors(self.file, self.faults.unit)
        numbers, values = [], {name: [] for name in names}
        for number, row in zip(self.numbers, rows, strict=True):
            if isinstance(row, str):
                faults.add(number, row)
                continue
            for part in row:
                numbers.append(number)
                for name in names:
                    values[name].append(part.get(name))
        first, faults.count = merged(self.faults, faults)
        faults.first = list(first)
        return replace(self, columns=values, numbers=numbers, faults=faults, **more)


@dataclass(frozen=True)
class Head:
    """The start of a file, by which its format is recognised. data: its first MiB."""

    path: Path
    data: bytes

    @property
    def ending(self) -> str:
        """The ending of the name in lower case, such as `.json`."""
        return self.path.suffix.lower()

    @cached_property
    def text(self) -> str:
        """The same as text, without white space before it. Raises CapbiasError for a file that is no text."""
        return head_text(self.path, self.data).lstrip()


@dataclass(frozen=True)
class Reader:
    """One format. A module of this package with `READERS` is discovered (parse.py).

    title: as shown. recognises: whether a file is of this format, by its content; the ending only settles what the
    content leaves open. parse: its content; raises CapbiasError for a file that is broken. place: readers are asked in
    this order, smaller first; those that come with capbias have 0.5 to 11, and any text that looks like a table is CSV
    in the end. Without one a reader is asked after the binary formats, and before every other text.
    """

    name: str
    title: str
    recognises: Callable[[Head], bool]
    parse: Callable[[Path], Parsed]
    place: float = AFTER_BINARY


def of_records(
    path: Path, name: str, title: str, records: Sequence, numbers: Sequence[int] = (), **more: Any
) -> Parsed:
    """The content of a list of dicts; anything else in the list is a fault, and absent keys give None.

    numbers: the line of each record; the records are counted without them. more: further fields of Parsed.
    """
    faults = more.pop("faults", None) or RowErrors(path.name, "line" if numbers else "record")
    numbers = numbers or range(1, len(records) + 1)
    wrong = [place for place, record in enumerate(records) if not isinstance(record, dict)]
    if wrong:
        for place in wrong:
            faults.add(numbers[place], f"{described(records[place])} where an object is expected")
        skipped = set(wrong)
        numbers = [number for place, number in enumerate(numbers) if place not in skipped]
        records = [record for place, record in enumerate(records) if place not in skipped]
    names = checked_names(path.name, names_of(records))
    columns = {name: [record.get(name) for record in records] for name in names}
    return Parsed(path, name, title, columns, numbers, len(records) + faults.count, faults, **more)
