"""Files as bytes: what the system says of them, and what is in archives and folders. Nothing is written but by
`unpacked_tree`."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from capbias_core.errors import CapbiasError, first_line, short
from capbias_core.load.places import nameable
from capbias_core.whole_files import check_file

HEAD = 1 << 20
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
GZIP, ZIP, BZIP2, XZ = b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00"
STREAMS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {GZIP: gzip.open, BZIP2: bz2.open, XZ: lzma.open}  # pyright: ignore[reportAssignmentType]
REFUSED = {b"7z\xbc\xaf\x27\x1c": "a 7-zip archive", b"\x28\xb5\x2f\xfd": "a Zstandard archive"}
PICTURES = {b"\xff\xd8\xff": "JPEG", b"\x89PNG": "PNG"}
MOST_FILES, MOST_BYTES = 2_000, 4_000_000_000
# Text shrinks to a twentieth, not to a thousandth. A small archive may shrink more.
MOST_TIMES, SMALL = 100, 100_000_000
TEXTS, MOST_TEXTS = (".txt", ".caption"), 200_000  # files with one text per image
# Files that mark a folder as a data set saved by the library `datasets`.
SPLITS, STATE = SAVED = "dataset_dict.json", "state.json"
ENDINGS = r"\.(?:jsonl?|ndjson|csv|tsv|txt|gz|bz2|xz|zip|tar|tgz|parquet|arrow|xlsx|token|pkl|pickle|p|eval)"


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


def is_dataset(path: Path) -> bool:
    """Whether a folder is a saved data set."""
    return any((path / mark).is_file() for mark in SAVED)


def bare_name(title: str) -> str:
    """The name of a file without its endings: `sat` of `sat.json.gz`."""
    return re.sub(f"(?:{ENDINGS})+$", "", PurePosixPath(title).name, flags=re.IGNORECASE) or title


# text


def decoded(title: str, data: bytes) -> str:
    """The text in a file's bytes. Raises CapbiasError with the first wrong byte if it is none."""
    if kind := next((kind for mark, kind in PICTURES.items() if data.startswith(mark)), ""):
        raise CapbiasError(
            f"{title} is a picture ({kind}), not a file of captions or labels.",
            "Name it .jpg or .png and drop it on the Data page, or give `capbias import` its folder.",
        )
    mark, encoding = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", "utf-8"))
    text = data[len(mark) :]
    if encoding == "utf-8" and text[:1024].count(b"\0") > len(text[:1024]) / 10:
        raise CapbiasError(
            f"{title} holds binary data in no known format.",
            "Use JSON, a table as text, Parquet, Excel (.xlsx), or a pickle of the LIC release.",
        )
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        offset = len(mark) + error.start
        name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        line = data[:offset].count(b"\n") + 1
        raise CapbiasError(
            f"{title} is not {name} text: the byte at offset {offset} (line {line}) does not belong there.",
            'Save it as UTF-8 (in a spreadsheet program: "CSV UTF-8").',
        ) from None


# archives and folders


def is_workbook(data: bytes) -> bool:
    """Whether a file is one of Excel's: an archive with a folder xl/ in it."""
    return data.startswith(ZIP) and b"xl/" in data[:HEAD]


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of a file by its name; of an archive or folder those of all files in it, hidden ones left out.

    Raises CapbiasError for an archive that is broken, encrypted, or holds too many files or more than 4 GB.
    """
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _hidden(file.relative_to(path))]
        files = [file for file in files if not file.is_symlink() or nameable(file)]
        _check_count(path, len(files))
        return {file.relative_to(path).as_posix(): _read(file) for file in files}
    data, name = _read(path), path.name
    if what := next((what for mark, what in REFUSED.items() if data.startswith(mark)), ""):
        raise CapbiasError(f"{name} is {what}.", "Unpack it first.")
    most = most_bytes(path)
    with unpacking(path):
        if opened := next((opened for mark, opened in STREAMS.items() if data.startswith(mark)), None):
            data, name = _limited(opened(io.BytesIO(data)), most, path), re.sub(r"\.(gz|bz2|xz|tgz)$", "", name)
        if data.startswith((ZIP, b"PK\x05\x06")) and not is_workbook(data):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
                return _members(path, members, archive.open)
        if data[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                return _members(
                    path, {member.name: member for member in archive if member.isfile()}, archive.extractfile
                )
    if not data.strip(b" \t\r\n\0\xef\xbb\xbf\xff\xfe"):
        raise CapbiasError(f"{path.name} is an empty file.", "Check how it was written.")
    return {name: data}


def _read(path: Path) -> bytes:
    with readable(path):
        return path.read_bytes()


def _hidden(path: PurePosixPath | Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts)


def _check_count(path: Path, files: int) -> None:
    if files > MOST_TEXTS + MOST_FILES:
        raise CapbiasError(f"{path.name} holds {files:,} files, more than {MOST_TEXTS:,}.", "Split it.")
    if not files:
        raise CapbiasError(f"{path.name} holds no files.", "Pack it again.")


def _members(path: Path, members: dict, opened: Callable) -> dict[str, bytes]:
    shown = {name: member for name, member in members.items() if not _hidden(PurePosixPath(name))}
    _check_count(path, len(shown))
    left, result = most_bytes(path), {}
    for name, member in shown.items():
        with opened(member) as source:
            result[name] = _limited(source, left, path)
        left -= len(result[name])
    return result


def _limited(source: IO[bytes], most: int, path: Path) -> bytes:
    """What a stream holds, counted here: an archive may lie about its sizes."""
    data = source.read(most + 1)
    if len(data) > most:
        raise _too_large(path)
    return data


def _too_large(path: Path) -> CapbiasError:
    return CapbiasError(f"{path.name} unpacks to more than {most_bytes(path) / 1e9:g} GB.", "Split it.")


def most_bytes(path: Path) -> int:
    """What an archive may unpack to, by its size."""
    return min(MOST_BYTES, max(SMALL, MOST_TIMES * path.stat().st_size))


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Errors of archives as a CapbiasError."""
    try:
        with readable(path):
            path.stat()
        yield
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        reason = first_line(error)
        raise CapbiasError(f"{path.name} cannot be unpacked ({reason}).", "Unpack it yourself.") from None


def unpacked_parts(path: Path, folder: Path) -> list[Path]:
    """The files of a .zip, written into an empty folder; none if the .zip is one thing: texts by image, a data set."""
    with unpacking(path), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not _hidden(PurePosixPath(name))]
    one_thing = sum(name.lower().endswith(TEXTS) for name in names) > 1 or any(
        PurePosixPath(name).name in (*SAVED, "header.json") for name in names
    )
    return [] if one_thing else list(unpacked_tree(path, folder).values())


def unpacked_tree(path: Path, folder: Path) -> dict[str, Path]:
    """The files of a .zip by their names in it, written into an empty folder under these names. Raises CapbiasError,
    and leaves nothing, as `contents` does and for a name that leads out of the folder."""
    path, folder, files = Path(path), Path(folder), {}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with unpacking(path), zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            members = [member for member in members if not _hidden(PurePosixPath(member.filename))]
            if len(members) > MOST_FILES:
                raise CapbiasError(f"{path.name} holds {len(members):,} files, more than {MOST_FILES:,}.", "Split it.")
            if not members:
                raise CapbiasError(f"{path.name} is an archive without files.", "Pack it again.")
            left = most_bytes(path)
            for member in members:
                name = PurePosixPath(member.filename)
                outside = name.is_absolute() or ".." in name.parts or set(member.filename) & set("\\:")
                if outside or not member.filename.isprintable():
                    raise CapbiasError(
                        f"{path.name} holds a file whose name leads out of the archive: {short(member.filename)!r}.",
                        "Do not trust it.",
                    )
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.exists():
                    raise CapbiasError(
                        f"{path.name} holds two files called {short(member.filename)}.", "Pack it again."
                    )
                with archive.open(member) as source, target.open("wb") as file:
                    while part := source.read(HEAD):
                        if (left := left - len(part)) < 0:
                            raise _too_large(path)
                        file.write(part)
                files[name.as_posix()] = target
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return files
