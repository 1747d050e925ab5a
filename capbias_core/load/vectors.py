"""Word vectors of a file: GloVe's text, the text (.vec) and binary (.bin) of word2vec and fastText, plain or gzipped.

A file of several gigabytes streams through; only the rows of the words that are asked for stay.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from capbias_core.errors import CapbiasError
from capbias_core.load.files import readable
from capbias_core.load.ids import short
from capbias_core.types import Vectors

EXPECTED = "word vectors: GloVe's text, or the text or binary of word2vec and fastText (plain or .gz)"
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20
HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})\s*")
NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")
MOST_NUMBERS = 20_000


@dataclass(frozen=True)
class _Layout:
    """How a file is written. dimension: numbers a word. rows: as its first line says, None without such a line."""

    file: str
    binary: bool
    dimension: int
    rows: int | None


def read_vectors(path: Path, wanted: Collection[str], dimension: int | None = None) -> Vectors:
    """The vectors of those of the wanted words that the file has, in the order of the file.

    A word that stands there twice has the vector of its first row. dimension: that of vectors which these will be used
    beside; None where there are none. Every row must have as many numbers as the first; the numbers themselves are
    only read for the wanted words. Raises CapbiasError with the line (binary: the row) for a file that is none, is of
    another dimension, is cut off, or has none of the words.
    """
    path = Path(path)
    layout = _layout(path)
    if dimension not in (None, layout.dimension):
        raise CapbiasError(
            f"{path.name}, a vector file of another dimension: {layout.dimension} numbers a word",
            f"{dimension}, as in the vectors that it is used beside",
            "Use the same file, or one of the same dimension.",
        )
    asked = {word.encode() for word in wanted}
    found: dict[bytes, np.ndarray] = {}
    with _opened(path) as handle:
        for row, word, numbers in (_binary_rows if layout.binary else _text_rows)(handle, layout):
            if word in asked and word not in found:
                found[word] = _parsed(numbers, row, layout)
    if not found:
        raise CapbiasError(
            f"{path.name}, which has a vector for none of the {len(asked):,} words of the captions",
            "vectors of words in the captions' language, in lower case",
            "Check that it is the file you meant.",
        )
    return Vectors(tuple(word.decode() for word in found), np.stack([*found.values()]))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked if it is a gzip archive. What is wrong with it as a file becomes a CapbiasError."""
    try:
        with readable(path), path.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
    except (EOFError, zlib.error):
        raise CapbiasError(
            f"{path.name}, a gzip archive that is cut off or damaged", EXPECTED, "Get it again."
        ) from None


def _layout(path: Path) -> _Layout:
    """What the first bytes say. Raises CapbiasError where they are not those of a vector file."""
    if path.is_dir():
        raise CapbiasError(f"{path.name}, a folder", "a file of word vectors", "Choose one file in it.")
    with _opened(path) as handle:
        first = handle.readline(CHUNK)
        head = handle.read(CHUNK)
    header = HEADER.fullmatch(first)
    binary = NOT_TEXT.search(head) is not None
    if header and 0 < int(header[2]) <= MOST_NUMBERS:
        return _Layout(path.name, binary, int(header[2]), int(header[1]))
    numbers = first.split()[1:]
    if header or binary or not 0 < len(numbers) <= MOST_NUMBERS or not all(map(_is_number, numbers)):
        raise CapbiasError(f"{path.name}, which is not a vector file", EXPECTED, "Check that it is the file you meant.")
    return _Layout(path.name, False, len(numbers), None)


def _text_rows(handle: BinaryIO, layout: _Layout) -> Iterator[tuple[int, bytes, bytes]]:
    """(line, word, its row as written) of every row. A word with spaces in it, which no caption has, is passed over."""
    rows, line = 0, 0
    while text := handle.readline(CHUNK):
        line += 1
        text = text.rstrip()
        if (line == 1 and layout.rows is not None) or not text:
            continue
        rows += 1
        if text.count(b" ") == layout.dimension or _of_dimension(text, line, layout):
            yield line, text.split(None, 1)[0], text
    if layout.rows not in (None, rows):
        raise _cut_off(layout, rows)


def _of_dimension(text: bytes, line: int, layout: _Layout) -> bool:
    """Whether a row that is not a word and as many spaces as numbers is one all the same (tabs); False for a word with
    spaces in it. Raises CapbiasError for a row of another dimension."""
    numbers = text.split()[1:]
    if len(numbers) < layout.dimension or (len(numbers) > layout.dimension and _is_number(numbers[0])):
        raise CapbiasError(
            f"{layout.file}, line {line}: a row of another dimension, {len(numbers)} numbers long",
            f"{layout.dimension} numbers after every word, as in the rows before",
            "Check how the file was written, or get it again.",
        )
    return len(numbers) == layout.dimension


def _binary_rows(handle: BinaryIO, layout: _Layout) -> Iterator[tuple[int, bytes, bytes]]:
    """(row, word, its numbers as little-endian 32-bit floats) of every row."""
    handle.readline()
    pending, start, size = b"", 0, 4 * layout.dimension
    for row in range(1, (layout.rows or 0) + 1):
        while (end := pending.find(b" ", start)) < 0 or len(pending) < end + 1 + size:
            chunk = handle.read(CHUNK)
            if not chunk or (end < 0 and len(pending) - start > CHUNK):
                raise _cut_off(layout, row - 1)
            pending, start = pending[start:] + chunk, 0
        yield row, pending[start:end].lstrip(b"\n"), pending[end + 1 : end + 1 + size]
        start = end + 1 + size


def _cut_off(layout: _Layout, rows: int) -> CapbiasError:
    return CapbiasError(
        f"{layout.file}, with {rows:,} rows", f"{layout.rows:,} rows, as its first line says", "Get the file again."
    )


def _parsed(row: bytes, place: int, layout: _Layout) -> np.ndarray:
    """(dimension,) float32 of one row; every number finite."""
    numbers = [] if layout.binary else row.split()[-layout.dimension :]
    try:
        values = np.frombuffer(row, dtype="<f4") if layout.binary else np.array([*map(float, numbers)])
    except ValueError:
        values = np.array([np.nan])
    if np.isfinite(values).all():
        return values.astype(np.float32)
    where = f"row {place}" if layout.binary else f"line {place}"
    wrong = next((short(text.decode("utf-8", "replace")) for text in numbers if not _is_number(text)), "")
    raise CapbiasError(
        f"{layout.file}, {where}: not a number{f' ({wrong})' if wrong else ''}",
        "a number",
        "Check how the file was written.",
    )


def _is_number(text: bytes) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
