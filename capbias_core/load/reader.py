"""What a format says of itself: how a file of it is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from capbias_core.load.files import head_text
from capbias_core.load.rows import Choose, Rows

# `Head.text` raises for a file that is no text, so whoever reads it comes after the formats that are none.
AFTER_BINARY = 2.5


@dataclass(frozen=True)
class Head:
    """The start of a file, from which its format is recognised. data: its first MiB."""

    path: Path
    data: bytes

    @property
    def ending(self) -> str:
        """The ending of the name in lower case, such as `.json`."""
        return self.path.suffix.lower()

    @cached_property
    def text(self) -> str:
        """The same as text, without white space before it. Raises CapbiasError where it is none."""
        return head_text(self.path, self.data).lstrip()


@dataclass(frozen=True)
class Reader:
    """One format. A module of this package with `READERS` is found by itself (sniff.py).

    title: as shown. recognises: whether a file is of this format, by its content; the ending only settles what the
    content leaves open. It raises CapbiasError for a file that can be of no other format and is broken. columns: the
    names in a file. read: the chosen columns of a file, row by row. place: readers are asked in this order, smaller
    first; those that come with capbias have 0.5 to 11, and any text that looks like a table is CSV in the end. Without
    one a reader is asked after Parquet, Excel and pickles, which are no text, and before every other text. holds:
    `references` if its captions are always people's. by_rows: whether an image is only known by its row in the file
    (`row 0`), so that its human captions must tell which one it is (joining.py).
    """

    name: str
    title: str
    recognises: Callable[[Head], bool]
    columns: Callable[[Path], tuple[str, ...]]
    read: Callable[[Path, Choose], Rows]
    place: float = AFTER_BINARY
    holds: str = ""
    by_rows: bool = False
