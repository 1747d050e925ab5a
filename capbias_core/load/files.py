"""Files as bytes: what the system says of them, and what is in archives and folders."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from capbias_core.errors import CapbiasError, first_line, short
from capbias_core.load.places import nameable
from capbias_core.whole_files import check_file

GZIP, ZIP, EMPTY = b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MOST_TEXTS, MOST_FILES, MOST_BYTES = 200_000, 2_000, 4_000_000_000  # that are read, and that are written
TEXTS = (".txt", ".caption")  # endings of files with the text of one image


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


def decoded(title: str, data: bytes) -> str:
    """The text in a file's bytes. Raises CapbiasError with the first wrong byte if it is none."""
    encoding = "utf-16" if data.startswith(UTF16) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CapbiasError(
            f"{title} is neither {encoding.upper().removesuffix('-SIG')} text (the byte at offset {error.start}, line "
            f"{line}, does not belong there) nor of another known format.",
            'Save it as UTF-8 (in a spreadsheet program: "CSV UTF-8"), or as Excel (.xlsx) or Parquet.',
        ) from None


# archives and folders


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of a file by its name; of a .zip or folder those of all files in it, hidden ones left out. Excel's
    files, a .zip with a folder xl/, are one file.

    Raises CapbiasError for an archive that is broken, encrypted, or holds too many files or more than 4 GB.
    """
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _hidden(file.relative_to(path))]
        files = [file for file in files if not file.is_symlink() or nameable(file)]
        _check_size(path, len(files))
        return {file.relative_to(path).as_posix(): _read(file) for file in files}
    data, name = _read(path), path.name
    with _unpacking(path):
        if data.startswith(GZIP):
            with gzip.open(path) as file:
                data, name = file.read(MOST_BYTES + 1), name.removesuffix(".gz")
            _check_size(path, 1, len(data))
        if data.startswith((ZIP, EMPTY)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                if not any(name.startswith("xl/") for name in archive.namelist()):
                    return {member.filename: archive.read(member) for member in _members(path, archive)}
    return {name: data}


def _read(path: Path) -> bytes:
    with readable(path):
        return path.read_bytes()


def _hidden(path: PurePosixPath | Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in path.parts)


def _check_size(path: Path, files: int, size: int = 0, most: int = MOST_TEXTS) -> None:
    if not files:
        raise CapbiasError(f"{path.name} holds no files.", "Pack it again.")
    if files > most or size > MOST_BYTES:
        limit = f"{most:,} files" if files > most else f"{MOST_BYTES / 1e9:g} GB"
        raise CapbiasError(f"{path.name} holds more than {limit}.", "Split it.")


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Errors of archives as a CapbiasError."""
    try:
        yield
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, RuntimeError, NotImplementedError, ValueError) as error:
        raise CapbiasError(f"{path.name} cannot be unpacked ({first_line(error)}).", "Unpack it yourself.") from None


def _members(path: Path, archive: zipfile.ZipFile, most: int = MOST_TEXTS) -> list[zipfile.ZipInfo]:
    """The files in a .zip, of which zipfile reads no more than they say to hold."""
    files = [own for own in archive.infolist() if not own.is_dir() and not _hidden(PurePosixPath(own.filename))]
    _check_size(path, len(files), sum(own.file_size for own in files), most)
    for name in (PurePosixPath(own.filename) for own in files):
        if name.is_absolute() or ".." in name.parts:
            raise CapbiasError(
                f"{path.name} holds a file whose name leads out of the archive: {short(name)!r}.", "Do not trust it."
            )
    return files


def unpacked_parts(path: Path, folder: Path) -> list[Path]:
    """The files of a .zip, written into an empty folder; none if it holds texts by image."""
    with readable(path), _unpacking(path), zipfile.ZipFile(path) as archive:
        texts = sum(own.filename.lower().endswith(TEXTS) for own in _members(path, archive))
    return [] if texts > 1 else list(unpacked_tree(path, folder).values())


def unpacked_tree(path: Path, folder: Path) -> dict[str, Path]:
    """The files of a .zip by their names in it, written into an empty folder. Raises CapbiasError, and leaves nothing,
    as `contents` does."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with readable(path), _unpacking(path), zipfile.ZipFile(path) as archive:
            return {own.filename: Path(archive.extract(own, folder)) for own in _members(path, archive, MOST_FILES)}
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
