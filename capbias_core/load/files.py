"""Opening a file of unknown content: whether it exists, is text, in which encoding; and files out of a .zip or .gz.

Archives are unpacked into a folder of the caller, by the names of files alone, and never beyond the limits.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import lzma
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from capbias_core.errors import CapbiasError
from capbias_core.whole_files import check_file

HEAD = 1 << 20
PACKED = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive (or a spreadsheet of another kind, which is one)",
    b"BZh91AY&SY": "a bzip2 archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"7z\xbc\xaf\x27\x1c": "a 7-zip archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
}
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
ARCHIVES = (".zip", ".gz")
MOST_FILES, MOST_BYTES = 2_000, 4_000_000_000
# Text shrinks to a twentieth, not to a thousandth. A small archive may shrink more.
MOST_TIMES, SMALL = 100, 100_000_000
TEXTS, MOST_TEXTS = (".txt", ".caption"), 200_000  # files with one text per image
MOST_LINES = 50  # of the text of one image
# How a table begins, rather than the text or the boxes of one image.
LINE_OF_IMAGE = re.compile(
    r"[\"']?(?:\S+\.(?:jpe?g|png|webp|gif|bmp)(?:#\d+)?|\d+)[\"']?\s*[\t,;|](?!\s*[\d.]+\s)", re.IGNORECASE
)
NAME_OF_IMAGES = (
    r"(?:(?:image|img|photo|picture|file)[ _-]?(?:id|name|file|path|url|key|number)?|coco[ _-]?id|id|url|path)"
)
HEADER = re.compile(
    rf"(?:[^\t,;|\n]*[\t,;|])*[\"']?{NAME_OF_IMAGES}[\"']?\s*(?:[\t,;|]|$)", re.IGNORECASE | re.MULTILINE
)
RECORD = re.compile(rf'\s*[\[{{].{{0,200}}?"{NAME_OF_IMAGES}"\s*:', re.IGNORECASE | re.DOTALL)
# Files that mark a folder as a data set saved by the library `datasets` (tabular.py).
SPLITS, STATE = SAVED = "dataset_dict.json", "state.json"


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
    """What the operating system says about a file, as a CapbiasError, which is also raised for a pipe or a device."""
    try:
        check_file(path)
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
    for mark, kind in {b"\xff\xd8\xff": "JPEG", b"\x89PNG": "PNG"}.items():
        if data.startswith(mark):
            return CapbiasError(
                f"{path.name} is a picture ({kind}), not a file of captions or labels.",
                "Name it .jpg or .png and drop it on the Data page, or give `capbias import` its folder.",
            )
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
    return CapbiasError(
        f"{path.name} holds binary data in no known format.",
        "Use JSON, a table as text, Parquet, Excel (.xlsx), or a pickle of the LIC release.",
    )


# archives


def is_dataset(path: Path) -> bool:
    """Whether a folder is a saved data set."""
    return any((path / mark).is_file() for mark in SAVED)


def unpacked(path: Path, folder: Path) -> list[Path]:
    """The files of an archive, written into an empty folder; any other file itself.

    Folders within an archive are dropped from the names, and hidden files are left out. A saved data set, and texts of
    one image each, stay one folder. Raises CapbiasError, and leaves nothing, for an archive that is broken, encrypted,
    or holds too many files or more than 4 GB.
    """
    path, folder = Path(path), Path(folder)
    if path.suffix.lower() not in ARCHIVES:
        return [path]
    with _into(path, folder):
        if path.suffix.lower() != ".zip":
            target = folder / (path.stem or "file")
            with gzip.open(path) as source:
                _copied(source, target, most_bytes(path), path)
            return [target]
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
            texts = sum(member.filename.lower().endswith(TEXTS) for member in members)
        if any(PurePosixPath(member.filename).name in SAVED for member in members):
            files = _from_zip(path, folder / path.stem, named=True)
            parents = {file.parent for file in files if file.name in SAVED}
            sets = sorted(parent for parent in parents if not parents.intersection(parent.parents))
            return [*sets, *(file for file in files if not set(sets).intersection(file.parents))]
        if texts > 1:
            files = _from_zip(path, folder / path.stem, named=True)
            tables = [file for file in files if file.suffix.lower() in TEXTS and is_table(_start_of(file))]
            for number, file in enumerate(tables):  # beside the folder, which then holds one text per image
                target = folder / "tables" / str(number) / file.name
                target.parent.mkdir(parents=True)
                tables[number] = file.rename(target)
            others = [file for file in files if file.exists() and file.suffix.lower() not in TEXTS]
            return [*([folder / path.stem] if len(tables) < texts else []), *tables, *others]
        return _from_zip(path, folder, named=False)


def is_table(text: str) -> bool:
    """Whether a text is a table, or the texts of many images, rather than the text of one image.

    >>> [is_table(text) for text in ("image_id;caption\\n1;a dog", "1.jpg#0\\ta dog", "2 dogs, a cat\\nand a man, old")]
    [True, True, False]
    """
    lines = [line for line in text.splitlines() if line.strip()]
    begins = bool(lines) and all(map(LINE_OF_IMAGE.match, lines[:5]))
    return begins or len(lines) > MOST_LINES or bool(RECORD.match(text) or (len(lines) > 1 and HEADER.match(lines[0])))


def _start_of(file: Path) -> str:
    with file.open("rb") as handle:
        data = handle.read(HEAD)
    skip, encoding = encoding_of(data)
    return data[skip:].decode(encoding, "replace")


def unpacked_tree(path: Path, folder: Path) -> dict[str, Path]:
    """The files of a .zip by their names in it, written into an empty folder under these names. Raises CapbiasError as
    `unpacked` does, and for a name that leads out of the folder."""
    path, folder = Path(path), Path(folder)
    with _into(path, folder):
        files = _from_zip(path, folder, named=True, most_texts=MOST_FILES)
        return {file.relative_to(folder).as_posix(): file for file in files}


def most_bytes(path: Path) -> int:
    """What an archive may unpack to, by its size."""
    return min(MOST_BYTES, max(SMALL, MOST_TIMES * path.stat().st_size))


@contextmanager
def _into(path: Path, folder: Path) -> Iterator[None]:
    """A folder to unpack into, which an error removes."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with readable(path):
            path.stat()
        yield
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError, CapbiasError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, CapbiasError):
            raise
        reason = str(error).split("\n")[0][:200].rstrip(".")
        raise CapbiasError(f"{path.name} cannot be unpacked ({reason}).", "Unpack it yourself.") from None


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [
        member
        for member in archive.infolist()
        if not member.is_dir()
        and not any(part.startswith((".", "__MACOSX")) and part != ".." for part in Path(member.filename).parts)
    ]


def _from_zip(path: Path, folder: Path, named: bool, most_texts: int = MOST_TEXTS) -> list[Path]:
    """The files of a .zip, under their whole names, or each in a folder with a number, so that equal names all stay."""
    with zipfile.ZipFile(path) as archive:
        if (count := len(archive.infolist())) > 2 * (most_texts + MOST_FILES):  # hidden files and folders included
            raise CapbiasError(f"{path.name} holds {count:,} files, more than {MOST_FILES:,}.", "Split it.")
        members = _members(archive)
        texts = sum(member.filename.lower().endswith(TEXTS) for member in members)
        if texts > most_texts or len(members) - texts > MOST_FILES:
            raise CapbiasError(f"{path.name} holds {len(members):,} files, more than {MOST_FILES:,}.", "Split it.")
        left, files = most_bytes(path), []
        for number, member in enumerate(members):
            name = PurePosixPath(member.filename)
            outside = name.is_absolute() or ".." in name.parts or set(member.filename) & set("\\:")
            if named and (outside or not member.filename.isprintable()):
                raise CapbiasError(
                    f"{path.name} holds a file whose name leads out of the archive: {member.filename[:100]!r}.",
                    "Do not trust it.",
                )
            target = folder / (name if named else PurePosixPath(str(number), Path(member.filename).name))
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise CapbiasError(f"{path.name} holds two files called {member.filename[:100]}.", "Pack it again.")
            with archive.open(member) as source:
                left -= _copied(source, target, left, path)
            files.append(target)
    if not files:
        raise CapbiasError(f"{path.name} is an archive without files.", "Pack it again.")
    return files


def _copied(source: IO[bytes] | gzip.GzipFile, target: Path, most: int, path: Path) -> int:
    """Bytes written, counted here: an archive may lie about its sizes."""
    written = 0
    with target.open("wb") as file:
        while part := source.read(HEAD):
            written += len(part)
            if written > most:
                raise CapbiasError(
                    f"{path.name} unpacks to more than {most_bytes(path) / 1e9:g} GB.",
                    "Split it, or unpack it first and load the file.",
                )
            file.write(part)
    return written
