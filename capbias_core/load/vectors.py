"""Word vectors of a file as text: GloVe's, or the .vec of word2vec and fastText, plain or gzipped.

A file of several gigabytes streams through; only the rows of the requested words stay.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.errors import CapbiasError, short
from capbias_core.load.files import GZIP, readable
from capbias_core.types import Vectors

CHUNK = 1 << 20
HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})\s*")
NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")
MOST_NUMBERS = 20_000
# A gzip archive of vectors unpacks to three times its size, not to a thousand times. A small one may shrink more.
MOST_TIMES, SMALL = 20, 100_000_000
DAMAGED = "Check how the file was written, or download it again."


def read_vectors(path: Path, wanted: Collection[str], dimension: int | None = None) -> Vectors:
    """The vectors of the wanted words that the file has, in file order; the first row of a word counts.

    dimension: of vectors that these are used with, if any. Each row must have as many numbers as the first; numbers are
    only read for the wanted words. Raises CapbiasError with the line for a file without vectors, of another dimension,
    cut off, or with none of the words.
    """
    path = Path(path)
    if path.is_dir():
        raise CapbiasError(f"{path.name} is a folder.", "Choose a file of word vectors in it.")
    asked = {word.encode() for word in wanted}
    rows: dict[bytes, np.ndarray] = {}
    with _opened(path) as handle:
        size, expected = _dimension(path, handle.peek(), dimension)
        total, left = 0, max(SMALL, MOST_TIMES * path.stat().st_size)
        for line, text in enumerate(iter(lambda: handle.readline(CHUNK), b""), 1):
            left -= len(text)
            if left < 0:
                raise CapbiasError(f"{path.name} unpacks to more than {MOST_TIMES} times its size.", "Unpack it first.")
            if (line == 1 and expected is not None) or not (text := text.rstrip()):
                continue
            total += 1
            if text.count(b" ") != size:  # tabs, a word with spaces, or another dimension
                numbers = text.split()[1:]
                if len(numbers) < size or (len(numbers) > size and _is_number(numbers[0])):
                    other = f"a row of another dimension, with {len(numbers)} numbers instead of {size}"
                    raise CapbiasError(f"{path.name}, line {line}: {other}.", DAMAGED)
                if len(numbers) > size:  # a word with spaces in it, which no caption has
                    continue
            word = text.split(None, 1)[0]
            if word not in asked or word in rows:
                continue
            numbers = text.split()[-size:]
            if wrong := next((number for number in numbers if not _is_number(number)), b""):
                shown = short(wrong.decode("utf-8", "replace"))
                raise CapbiasError(f"{path.name}, line {line}: not a number ({shown}).", DAMAGED)
            rows[word] = np.array([*map(float, numbers)]).astype(np.float32)
    if expected not in (None, total):
        raise CapbiasError(f"{path.name} has {total:,} rows; its first line says {expected:,}.", "Download it again.")
    if not rows:
        raise CapbiasError(
            f"{path.name} has a vector for none of the {len(asked):,} words of the captions.",
            "Use vectors of words in the captions' language, in lower case.",
        )
    return Vectors(tuple(word.decode() for word in rows), np.stack([*rows.values()]))


def _dimension(path: Path, head: bytes, wanted: int | None) -> tuple[int, int | None]:
    """How many numbers a row has, and how many rows the first line says, if it does. head: how the file begins."""
    first, _, rest = head.partition(b"\n")
    header = HEADER.fullmatch(first)
    size = int(header[2]) if header else len(first.split()) - 1
    numbers = header or all(map(_is_number, first.split()[1:]))
    if not numbers or not 0 < size <= MOST_NUMBERS or NOT_TEXT.search(rest):
        raise CapbiasError(
            f"{path.name} is not a vector file as text.",
            "Use word vectors as GloVe, word2vec or fastText write them as text, plain or .gz.",
        )
    if wanted not in (None, size):
        raise CapbiasError(
            f"The vectors of {path.name} have {size} numbers, those in the collection {wanted}.",
            "Use the same file, or one of the same dimension.",
        )
    return size, int(header[1]) if header else None


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader[Any]]:
    """The file's bytes, unpacked if it is a gzip archive. A fault of the file becomes a CapbiasError."""
    try:
        with readable(path), path.open("rb", 0) as file:
            raw = BufferedReader(file, CHUNK)
            yield BufferedReader(gzip.GzipFile(fileobj=raw), CHUNK) if raw.peek().startswith(GZIP) else raw
    except (EOFError, zlib.error):
        raise CapbiasError(f"{path.name} is a gzip archive that is cut off or damaged.", "Download it again.") from None


def _is_number(text: bytes) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
