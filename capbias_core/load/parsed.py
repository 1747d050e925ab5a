"""The content of a file as raw columns, and what all readers share: faulty rows, limits, and usual column names."""

from __future__ import annotations

import ast
import json
import math
import re
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.files import head_text
from capbias_core.load.ids import UNSTORABLE, described, short
from capbias_core.types import Problem

KEPT_PROBLEMS = 20
# Limits, so that a small file that unpacks to much does not fill the memory.
MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 5_000_000, 1_000, 1_000_000
SHORT = 5_000  # characters of a caption that may be a literal of Python
WHOLE_NUMBER = re.compile(r"^([+-]?\d+)\.0+$")
# Names of the column of image IDs, the surest first.
SURE_IDS = """
    image_id img_id imageid imgid image_name img_name file_name filename image_file image_path img_path filepath
    image img cocoid
"""
IMAGE_IDS = f"""{SURE_IDS}
    coco_id photo photo_id photograph picture picture_id image_url img_url file path url id question_id idx
"""


class RowErrors:
    """Rows that are left out: their count, and the first of them as problems. unit: "line" or "record"."""

    def __init__(self, file: str, unit: str, first: Iterable[Problem] = (), count: int = 0):
        self.file, self.unit, self.first, self.count = file, unit, list(first), count

    def add(self, number: int, message: str) -> None:
        self.count += 1
        if len(self.first) < KEPT_PROBLEMS or number < self.first[-1].line:
            insort(self.first, Problem(self.file, number, message, self.unit), key=lambda problem: problem.line)
            del self.first[KEPT_PROBLEMS:]

    def copy(self) -> RowErrors:
        return RowErrors(self.file, self.unit, self.first, self.count)


@dataclass(frozen=True)
class Parsed:
    """The content of a file before its kind is known."""

    path: Path
    format: str  # a key such as `coco_results`
    title: str  # the name of the format
    columns: Mapping[str, Sequence]  # raw values, one per row, in file order
    numbers: Sequence[int]  # line or record number of each row
    rows: int  # rows in the file, faulty ones included
    faults: RowErrors
    notes: tuple[str, ...] = ()  # sentences on where columns come from
    kind: str = ""  # if the format fixes it
    by_rows: bool = False  # whether images are known only by their row number
    image_names: Mapping[str, str] = field(default_factory=dict)  # image ID -> file name, if the file lists images
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # image ID -> (height, width), (0, 0) if unknown
    roles: Mapping[str, str] = field(default_factory=dict)  # column -> image_id, caption, ..., if the format fixes it
    left_out: tuple[str, ...] = ()  # fields of the file that no column holds

    @property
    def file(self) -> str:
        return self.path.name

    def values(self, *names: str) -> Iterator[tuple]:
        """The values of some columns row by row; None for a column that the file lacks."""
        nothing = [None] * len(self.numbers)
        return zip(*(self.columns.get(name, nothing) for name in names), strict=True)

    def with_rows(self, rows: Sequence[Sequence[Mapping[str, Any]] | str], *first: str, **more: Any) -> Parsed:
        """The same file with other columns. rows: what each row becomes (values by column), or its fault. first:
        columns that come before others. more: other fields that change."""
        faults, numbers, parts = self.faults.copy(), [], []
        for number, row in zip(self.numbers, rows, strict=True):
            if isinstance(row, str):
                faults.add(number, row)
            else:
                numbers += [number] * len(row)
                parts += row
        names = checked_names(self.file, names_of([dict.fromkeys(first), *parts]))
        columns = {name: [part.get(name) for part in parts] for name in names}
        return replace(self, columns=columns, numbers=numbers, faults=faults, **more)

    def unusable(self, faults: RowErrors, note: str = "") -> CapbiasError:
        """The error for a file without a usable row. faults: those of the file and of its rows."""
        first = f"the first problem is at {faults.first[0]}" if faults.first else ""
        reason = "; ".join(filter(None, (note, first)))
        return CapbiasError(
            f"{self.file} has {self.rows:,} rows and none that can be used{f' ({reason})' if reason else ''}.",
            "Check the file, and that the chosen columns are the right ones.",
        )


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
        """data as text, without leading white space. Raises CapbiasError if the file is not text."""
        return head_text(self.path, self.data).lstrip()


@dataclass(frozen=True)
class Reader:
    """One format. read.py discovers each module of this package that has `READERS`."""

    name: str
    title: str
    recognises: Callable[[Head], bool]  # by the content; the ending settles only what the content leaves open
    parse: Callable[[Path], Parsed]  # raises CapbiasError for a broken file
    # Readers are asked in this order, those of capbias from 0.5 to 11, CSV last. By default a reader follows the binary
    # formats, since `Head.text` raises for them, and precedes other text.
    order: float = 2.5


def of_records(
    path: Path, name: str, title: str, records: Sequence, numbers: Sequence[int] = (), **more: Any
) -> Parsed:
    """The content of a list of dicts; other entries are faults, and absent keys give None. numbers: the line of each
    record, by default they are counted. more: further fields of Parsed."""
    faults = more.pop("faults", None) or RowErrors(path.name, "line" if numbers else "record")
    numbers = numbers or range(1, len(records) + 1)
    total = len(records) + faults.count
    if not all(isinstance(record, dict) for record in records):
        for number, record in zip(numbers, records, strict=True):
            if not isinstance(record, dict):
                faults.add(number, f"{described(record)} where an object is expected")
        numbers = [number for number, record in zip(numbers, records, strict=True) if isinstance(record, dict)]
        records = [record for record in records if isinstance(record, dict)]
    names = checked_names(path.name, names_of(records))
    columns = {name: [record.get(name) for record in records] for name in names}
    return Parsed(path, name, title, columns, numbers, total, faults, **more)


# names of columns


def names_of(records: Iterable) -> tuple[str, ...]:
    """The keys of all records that are dicts, in order of appearance, without those that cannot be stored."""
    names = dict.fromkeys(name for record in records if isinstance(record, dict) for name in record)
    return tuple(name for name in names if not UNSTORABLE.search(name))


def plain_name(name: str) -> str:
    """A name in lower case with `_` for blanks and hyphens, without the `Input.` of Mechanical Turk.

    >>> plain_name("Input.Image-URL ")
    'image_url'
    """
    return name.strip().lower().replace(" ", "_").replace("-", "_").removeprefix("input.")


def usual_column(names: Iterable[str], usual: str) -> str | None:
    """The column with the first of the usual names, as the file writes it."""
    known = {}
    for name in names:
        known.setdefault(plain_name(name), name)
    return next((known[name] for name in usual.split() if name in known), None)


def chosen_column(file: str, names: Iterable[str], name: str) -> str:
    """`name`, if the file has it; raises CapbiasError otherwise."""
    if name not in (names := tuple(names)):
        raise CapbiasError(f"{file} has no column {short(name)!r}.", f"Its columns are {listed(names)}.")
    return name


def checked_names(file: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of columns. Raises CapbiasError for too many, and for two equal ones."""
    if len(names) > MOST_COLUMNS:
        raise CapbiasError(f"{file} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read.", "Delete some.")
    if len(set(names)) < len(names):
        raise CapbiasError(f"{file} has two columns of the same name: {listed(names)}.", "Rename or delete one.")
    return names


def check_rows(file: str, total: int) -> None:
    """Raises CapbiasError for more rows than are read of any file."""
    if total > MOST_ROWS:
        raise CapbiasError(f"{file} has {total:,} rows; at most {MOST_ROWS:,} are read.", "Split the file.")


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, cut if they are many or long."""
    shown = ", ".join(map(short, names[:most])) or "(none)"
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def literal(text: str, most: int = MOST_CHARACTERS) -> Any:
    """What a text says in JSON or as a literal of Python; None if it is neither. most: characters that are read as
    Python, which takes longer.

    >>> literal('{"a": 1}'), literal("['a']"), literal("a dog")
    ({'a': 1}, ['a'], None)
    """
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ast.literal_eval(text) if len(text) <= most else None
    return None


def cell_text(value: object) -> str:
    """A cell as stripped text: '' if empty, whole numbers without decimals (one empty cell makes all integers of a
    column floats), lists joined with `|`, objects and bytes only named.

    >>> [cell_text(value) for value in (" Male ", 3, 3.0, None, ["person", "dog"], {"a": 1}, [[1], "x"])]
    ['Male', '3', '3', '', 'person|dog', '(an object)', '(a list)|x']
    """
    texts = []
    for item in value if isinstance(value, list | tuple) else (value,):
        if item is None or (isinstance(item, float) and math.isnan(item)):
            item = ""
        text = f"({described(item)})" if isinstance(item, list | tuple | dict | bytes) else str(item).strip()
        texts.append(WHOLE_NUMBER.sub(r"\1", text))
    return "|".join(texts)


def label_text(value: object) -> str:
    """A raw label as `cell_text` gives it. ValueError for text that cannot be stored."""
    text = cell_text(value)
    if UNSTORABLE.search(text):
        raise ValueError("a label holds a NUL character or half a surrogate pair")
    return text
