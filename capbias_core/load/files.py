"""Opening a file of unknown content: is it there, is it text, in which encoding."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capbias_core.errors import CapbiasError

HEAD = 1 << 20
READABLE = "JSON, a table as text, Parquet, Excel (.xlsx), or a pickle of the LIC release"
ARCHIVES = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive (or a spreadsheet of another kind, which is one)"),
    (b"BZh91AY&SY", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-zip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
)
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_head(path: Path) -> bytes:
    """The first MiB of a file. Raises CapbiasError for none, a folder, an empty file or an archive."""
    if path.is_dir():
        raise CapbiasError(f"{path.name}, a folder", "a file", "Choose one file in it.")
    with readable(path), path.open("rb") as handle:
        head = handle.read(HEAD)
    if not head[encoding_of(head)[0] :].strip():
        raise CapbiasError(f"{path.name}, an empty file", READABLE, "Check how the file was written.")
    if is_workbook(head):
        return head
    if path.suffix.lower() == ".xlsx" and head.startswith(b"PK"):
        raise CapbiasError(
            f"{path.name}, which is named as an Excel file and is another archive, or is cut short",
            "a whole .xlsx file",
            "Save it again, or as CSV.",
        )
    for mark, what in ARCHIVES:
        if head.startswith(mark):
            raise CapbiasError(
                f"{path.name}, {what}", READABLE, "Unpack it first (save a spreadsheet as .xlsx) and load the file."
            )
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
        raise CapbiasError(f"{path.name}, which does not exist", "a file", "Check its name and folder.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CapbiasError(
            f"{path.name}, which cannot be read ({reason})", "a readable file", "Check its rights."
        ) from None


def encoding_of(head: bytes) -> tuple[int, str]:
    """Length of the byte order mark and the encoding that it names; (0, "utf-8") without one."""
    return next(((len(mark), name) for mark, name in MARKS if head.startswith(mark)), (0, "utf-8"))


def head_text(path: Path, head: bytes) -> str:
    """The head as text, cut at a whole character. Raises CapbiasError where it is none."""
    skip, encoding = encoding_of(head)
    if encoding == "utf-8" and head[:1024].count(b"\0") > len(head[:1024]) / 10:
        raise _binary(path)
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head[skip:])
    except UnicodeDecodeError:
        raise _not_text(path) from None


@contextmanager
def text_lines(path: Path) -> Iterator[io.TextIOBase]:
    """The file as text, line by line with their ends as written. Raises CapbiasError where it is no text."""
    skip, encoding = encoding_of(read_head(path))
    with readable(path), path.open("rb") as raw:
        raw.seek(skip)
        try:
            yield io.TextIOWrapper(raw, encoding=encoding, newline="")
        except UnicodeDecodeError:
            raise _not_text(path) from None


def whole_text(path: Path) -> str:
    """The file as one text. Raises CapbiasError where it is none."""
    with text_lines(path) as handle:
        return handle.read()


def _binary(path: Path) -> CapbiasError:
    return CapbiasError(f"{path.name}, binary data", READABLE, "Check that it is the file you meant.")


def _not_text(path: Path) -> CapbiasError:
    """The error for a file that does not decode, naming the first byte that is wrong."""
    data = path.read_bytes()
    skip, encoding = encoding_of(data)
    if encoding == "utf-8" and b"\0" in data[:1024]:
        return _binary(path)
    try:
        data[skip:].decode(encoding)
    except UnicodeDecodeError as error:
        offset = skip + error.start
        line = data[:offset].count(b"\n") + 1
        title = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        got = f"{path.name}, which is not {title}: the byte at offset {offset} (line {line}) does not belong there"
        return CapbiasError(got, "UTF-8 text", 'Save the file as UTF-8 (in a spreadsheet program: "CSV UTF-8").')
    return _binary(path)
