"""Word vectors of a file as text: GloVe's, or the .vec of word2vec and fastText, plain or gzipped.

A file of several gigabytes streams through; only the rows of the requested words stay.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

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
    with _opened(path) as handle:
        first, head = handle.readline(CHUNK), handle.read(CHUNK)
    header = HEADER.fullmatch(first)
    size = int(header[2]) if header else len(first.split()) - 1
    numbers = header or all(map(_is_number, first.split()[1:]))
    if not numbers or not 0 < size <= MOST_NUMBERS or NOT_TEXT.search(head):
        raise CapbiasError(
            f"{path.name} is not a vector file as text.",
            "Use word vectors as GloVe, word2vec or fastText write them as text, plain or .gz.",
        )
    if dimension not in (None, size):
        raise CapbiasError(
            f"The vectors of {path.name} have {size} numbers, those in the collection {dimension}.",
            "Use the same file, or one of the same dimension.",
        )
    asked = {word.encode() for word in wanted}
    rows: dict[bytes, np.ndarray] = {}
    with _opened(path) as handle:
        for line, word, text in _rows(handle, path, size, int(header[1]) if header else None):
            if word not in asked or word in rows:
                continue
            texts = text.split()[-size:]
            if wrong := next((text for text in texts if not _is_number(text)), b""):
                shown = short(wrong.decode("utf-8", "replace"))
                raise CapbiasError(f"{path.name}, line {line}: not a number ({shown}).", DAMAGED)
            rows[word] = np.array([*map(float, texts)]).astype(np.float32)
    if not rows:
        raise CapbiasError(
            f"{path.name} has a vector for none of the {len(asked):,} words of the captions.",
            "Use vectors of words in the captions' language, in lower case.",
        )
    return Vectors(tuple(word.decode() for word in rows), np.stack([*rows.values()]))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked if it is a gzip archive. A fault of the file becomes a CapbiasError."""
    try:
        with readable(path), path.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw
    except (EOFError, zlib.error):
        raise CapbiasError(f"{path.name} is a gzip archive that is cut off or damaged.", "Download it again.") from None


def _rows(handle: IO[bytes], path: Path, size: int, expected: int | None) -> Iterator[tuple[int, bytes, bytes]]:
    """(line, word, its row as written) of all rows. A word with spaces in it, which no caption has, is skipped."""
    rows, line, left = 0, 0, max(SMALL, MOST_TIMES * path.stat().st_size)
    while text := handle.readline(CHUNK):
        line, left = line + 1, left - len(text)
        if left < 0:
            raise CapbiasError(f"{path.name} unpacks to more than {MOST_TIMES} times its size.", "Unpack it first.")
        text = text.rstrip()
        if (line == 1 and expected is not None) or not text:
            continue
        rows += 1
        if text.count(b" ") != size:  # tabs, a word with spaces, or another dimension
            numbers = text.split()[1:]
            if len(numbers) < size or (len(numbers) > size and _is_number(numbers[0])):
                raise CapbiasError(
                    f"{path.name}, line {line}: a row of another dimension, with {len(numbers)} numbers instead of "
                    f"{size}.",
                    DAMAGED,
                )
            if len(numbers) > size:
                continue
        yield line, text.split(None, 1)[0], text
    if expected not in (None, rows):
        raise CapbiasError(f"{path.name} has {rows:,} rows; its first line says {expected:,}.", "Download it again.")


def _is_number(text: bytes) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
