"""Opening a file of unknown content: whether it exists, is text, and in which encoding."""

from __future__ import annotations

import codecs
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capbias_core.errors import CapbiasError

HEAD = 1 << 20
READABLE = "Use JSON, a table as text, Parquet, Excel (.xlsx), or a pickle of the LIC release."
PACKED = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive (or a spreadsheet of another kind, which is one)",
    b"BZh91AY&SY": "a bzip2 archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-zip archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
}
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_head(path: Path) -> bytes:
    """The first MiB of a file. Raises CapbiasError for none, a folder, an empty file or an archive."""
    if path.is_dir():
        raise CapbiasError(f"{path.name} is a folder.", "Choose a file in it.")
    with readable(path), path.open("rb") as handle:
        head = handle.read(HEAD)
    if not head[encoding_of(head)[0] :].strip():
        raise CapbiasError(f"{path.name} is an empty file.", "Check how it was written.")
    packed = next((what for mark, what in PACKED.items() if head.startswith(mark)), "")
    if packed and path.suffix.lower() == ".xlsx" and not is_workbook(head):
        raise CapbiasError(f"{path.name} is no Excel file, or it was cut short.", "Save it again, or as CSV.")
    if packed and not is_workbook(head):
        raise CapbiasError(f"{path.name} is {packed}.", "Unpack it first; save a spreadsheet as .xlsx.")
    return head


def is_workbook(head: bytes) -> bool:
    """Whether a file is one of Excel's: an archive with a folder xl/ in it."""
    return head.startswith(b"PK") and b"xl/" in head


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What the operating system says about a file, as a CapbiasError."""
    try:
        yield
    except FileNotFoundError:
        raise CapbiasError(f"{path.name} does not exist.", "Check its name and folder.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CapbiasError(f"{path.name} cannot be read ({reason}).", "Check its permissions.") from None


def file_digest(path: Path) -> str:
    """The SHA-256 digest of a file's bytes. Raises CapbiasError if it cannot be read."""
    if path.is_dir():
        raise CapbiasError(f"{path.name} is a folder, not a file.", "Choose one file in it.")
    with readable(path), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def encoding_of(head: bytes) -> tuple[int, str]:
    """Length of the byte order mark and the encoding that it names; (0, "utf-8") without one."""
    return next(((len(mark), name) for mark, name in MARKS if head.startswith(mark)), (0, "utf-8"))


def head_text(path: Path, head: bytes) -> str:
    """The head as text, cut at a whole character. Raises CapbiasError if it is none."""
    skip, encoding = encoding_of(head)
    if encoding == "utf-8" and head[:1024].count(b"\0") > len(head[:1024]) / 10:
        raise _not_text(path)
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head[skip:])
    except UnicodeDecodeError:
        raise _not_text(path) from None


@contextmanager
def text_lines(path: Path) -> Iterator[io.TextIOBase]:
    """The file as text, line by line with their ends as written. Raises CapbiasError if it is no text."""
    skip, encoding = encoding_of(read_head(path))
    with readable(path), path.open("rb") as raw:
        raw.seek(skip)
        try:
            yield io.TextIOWrapper(raw, encoding=encoding, newline="")
        except UnicodeDecodeError:
            raise _not_text(path) from None


def whole_text(path: Path) -> str:
    """The file as one text. Raises CapbiasError if it is none."""
    with text_lines(path) as handle:
        return handle.read()


def _not_text(path: Path) -> CapbiasError:
    """The error for a file that is not text, naming the first wrong byte unless the file is binary."""
    data = path.read_bytes()
    skip, encoding = encoding_of(data)
    try:
        if encoding != "utf-8" or b"\0" not in data[:1024]:
            data[skip:].decode(encoding)
    except UnicodeDecodeError as error:
        offset = skip + error.start
        line = data[:offset].count(b"\n") + 1
        title = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        return CapbiasError(
            f"{path.name} is not {title} text: the byte at offset {offset} (line {line}) does not belong there.",
            'Save it as UTF-8 (in a spreadsheet program: "CSV UTF-8").',
        )
    return CapbiasError(f"{path.name} holds binary data in no known format.", READABLE)
