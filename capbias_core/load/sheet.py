"""A file as rows and columns, whatever its format, with what the format says of the columns."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import tomllib
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, short
from capbias_core.load.ids import UNSTORABLE, described
from capbias_core.types import Problem

_USUAL = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
NAMES = {name: tuple(text.split()) for name, text in _USUAL.items()}  # the usual names of columns and values
KEPT_PROBLEMS = 20
# Limits, so that a small file that unpacks to much does not fill the memory.
MOST_ROWS, MOST_COLUMNS, MOST_CHARACTERS = 5_000_000, 1_000, 1_000_000
WHOLE_NUMBER = re.compile(r"^([+-]?\d+)\.0+$")
SHORT = 5_000  # characters of a caption that may be a literal of Python
BESIDE = re.compile(r"['\"]\s+['\"]")  # texts in a list as numpy prints it, which Python would join to one
ENDINGS = r"\.(?:jsonl?|ndjson|csv|tsv|txt|gz|zip|parquet|arrow|xlsx|token|pkl|pickle|p)"
FENCE = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.DOTALL)


@dataclass
class RowErrors:
    """Rows that are left out: their count, and the first of them as problems. unit: "line" or "record"."""

    file: str
    unit: str = "record"
    first: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, number: int, message: str) -> None:
        self.count += 1
        if len(self.first) < KEPT_PROBLEMS or number < self.first[-1].line:
            insort(self.first, Problem(self.file, number, message, self.unit), key=lambda problem: problem.line)
            del self.first[KEPT_PROBLEMS:]

    def copy(self) -> RowErrors:
        return replace(self, first=list(self.first))


@dataclass
class Sheet:
    """One table of a file."""

    title: str  # the file's name, for messages
    frame: pd.DataFrame  # raw values as objects of Python
    format: str = "table"
    roles: Mapping[str, Any] = field(default_factory=dict)  # what the format says of the columns, see formats.py
    path: str = ""  # the file as the user named it, for answers; the name of an argument of Python
    name: str = ""  # of the captioner, if it holds captions
    notes: list[str] = field(default_factory=list)
    faults: RowErrors = field(default_factory=lambda: RowErrors(""))
    rows: int = 0  # in the file, faulty ones included
    numbers: Sequence[int] = ()  # line or record number of each row
    fields: set[str] = field(default_factory=set)  # columns that were fields of a text
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # image ID -> (height, width), (0, 0) if unknown

    ids: dict[str, pd.Series] = field(default_factory=dict)  # column -> IDs of its rows, once they were needed

    def __post_init__(self) -> None:
        names = [str(name) for name in self.frame.columns]
        if len(names) > MOST_COLUMNS:
            count = f"{len(names):,} columns; at most {MOST_COLUMNS:,} are read"
            raise CapbiasError(f"{self.title} has {count}.", "Delete some.")
        if len(set(names)) < len(names):
            raise CapbiasError(f"{self.title} has two columns of the same name: {listed(names)}.", "Rename one.")
        check_rows(self.title, len(self.frame))
        self.frame = self.frame.set_axis(names, axis=1).reset_index(drop=True)
        self.name = self.name or bare_name(self.title)
        self.faults.file = self.title
        self.rows = self.rows or len(self.frame) + self.faults.count
        self.numbers = self.numbers if len(self.numbers) == len(self.frame) else range(1, len(self.frame) + 1)

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self.frame.columns)

    def values(self, *names: str) -> Iterator[tuple]:
        """The values of some columns row by row; None for a column that the file lacks."""
        nothing = [None] * len(self.frame)
        return zip(*(self.frame[name].tolist() if name in self.frame else nothing for name in names), strict=True)

    def kept(self, keep: pd.Series) -> Sheet:
        """The same with some rows."""
        numbers = [number for number, kept in zip(self.numbers, keep, strict=True) if kept]
        return replace(self, frame=self.frame[keep], numbers=numbers, notes=list(self.notes), ids={})

    def unusable(self, faults: RowErrors, note: str = "") -> CapbiasError:
        """The error for a file without a usable row. faults: those of the file and of its rows."""
        first = f"the first problem is at {faults.first[0]}" if faults.first else ""
        reason = "; ".join(filter(None, (note, first)))
        return CapbiasError(
            f"{self.title} has {self.rows:,} rows and none that can be used{f' ({reason})' if reason else ''}.",
            "Check the file, and that the chosen columns are the right ones.",
        )


def bare_name(title: str) -> str:
    """The name of a file without its endings: `sat` of `sat.json.gz`."""
    return re.sub(f"(?:{ENDINGS})+$", "", PurePosixPath(title).name, flags=re.IGNORECASE) or title


def check_rows(title: str, total: int) -> None:
    """Raises CapbiasError for more rows than are read of any file."""
    if total > MOST_ROWS:
        raise CapbiasError(f"{title} has {total:,} rows; at most {MOST_ROWS:,} are read.", "Split the file.")


def listed(names: Iterable[object], most: int = 12) -> str:
    """Names for a message, cut if they are many or long."""
    names = [short(name) for name in names]
    shown = ", ".join(names[:most]) or "(none)"
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def literal(text: str, most: int = MOST_CHARACTERS) -> Any:
    """What a text says in JSON or as a literal of Python; None if it is neither. most: characters that are read as
    Python, which takes longer.

    >>> literal('{"a": 1}'), literal("['a', 'b']"), literal("['a' 'b']"), literal("a dog")
    ({'a': 1}, ['a', 'b'], ['a', 'b'], None)
    """
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    if len(text) > most:
        return None
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = ast.literal_eval(text)
        if isinstance(value, list) and BESIDE.search(text) and all(isinstance(item, str) for item in value):
            tokens = tokenize.generate_tokens(io.StringIO(text.strip()).readline)
            value = [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
        return value
    return None


def fields_in(text: Any) -> Any:
    """The object or list that a text holds: JSON or Python, in a code fence or not; else None."""
    if not isinstance(text, str):
        return text if isinstance(text, dict | list) else None
    inner = fenced[1] if (fenced := FENCE.fullmatch(text)) else text.strip()
    value = literal(inner) if inner[:1] in ("{", "[") else None
    return value if isinstance(value, dict | list) else None


def is_missing(cell: object) -> bool:
    """Whether a cell has no value: None, NaN, an empty text or list."""
    return cell is None or (isinstance(cell, float) and cell != cell) or (isinstance(cell, str | list) and not cell)


def present(column: Iterable) -> list:
    """The values of a column that are not missing."""
    return [cell for cell in column if not is_missing(cell)]


def cell_text(value: object) -> str:
    """A cell as stripped text: '' if empty, whole numbers without decimals, lists joined with `|`, objects only named.

    >>> [cell_text(value) for value in (" Male ", 3, 1.0, None, ["person", "dog"], {"a": 1}, [[1], "x"])]
    ['Male', '3', '1', '', 'person|dog', '(an object)', '(a list)|x']
    """
    texts = []
    for item in value if isinstance(value, list | tuple) else (value,):
        item = "" if is_missing(item) else item
        text = f"({described(item)})" if isinstance(item, list | tuple | dict | bytes) else str(item).strip()
        text = WHOLE_NUMBER.sub(r"\1", text)  # one empty cell makes all integers of a column floats
        texts.append(UNSTORABLE.sub("\ufffd", text))
    return "|".join(texts)


def is_scalar(column: Iterable) -> bool:
    """Whether a column holds texts, numbers and truth values alone."""
    return all(cell is None or isinstance(cell, str | int | float) for cell in column)


def last_part(column: str) -> str:
    """The last part of the name of a nested column, in lower case with `_`: `Input.Image-URL` is image_url."""
    return column.rpartition(".")[2].strip().lower().replace(" ", "_").replace("-", "_")


def usual_column(names: Iterable[str], usual: str) -> str | None:
    """The column with the first of the usual names, as the file writes it."""
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(last_part(name), name)
    return next((known[name] for name in usual.split() if name in known), None)


def plain(value: Any) -> Any:
    """A value of numpy, pandas or torch as one of Python; missing ones as None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(inner) for inner in value]
    if isinstance(value, float) or value is pd.NaT or value is pd.NA:
        return None if value is pd.NaT or value is pd.NA or value != value else float(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return plain(value.item()) if hasattr(value, "item") else value


def flat(row: Mapping, before: str = "") -> dict[str, Any]:
    """Objects within an object as columns `outer.inner`.

    >>> flat({"a": {"b": 1, "c": {"d": 2}}, "e": []})
    {'a.b': 1, 'a.c.d': 2, 'e': []}
    """
    columns: dict[str, Any] = {}
    for key, value in row.items():
        columns |= flat(value, f"{before}{key}.") if isinstance(value, dict) and value else {f"{before}{key}": value}
    return columns


def columns_of(columns: Mapping[Any, Sequence]) -> pd.DataFrame:
    """Columns as a frame of objects. Names that cannot be stored, which pandas does not take, are left out."""
    columns = {name: cells for name, cells in columns.items() if not UNSTORABLE.search(str(name))}
    return pd.DataFrame(columns, dtype=object)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Records as a frame of objects; absent fields are None."""
    names = dict.fromkeys(name for row in rows for name in row)
    return columns_of({name: [row.get(name) for row in rows] for name in names})


def flat_frame(rows: Sequence) -> pd.DataFrame:
    """The same with objects within them as columns; what is no record is left out."""
    return frame_of([flat(row) for row in rows if isinstance(row, dict)])


def mapped(column: pd.Series, of: Callable[[Any], Any]) -> pd.Series:
    """A column of objects, changed cell by cell, where None stays None."""
    return pd.Series([of(cell) for cell in column], index=column.index, dtype=object)
