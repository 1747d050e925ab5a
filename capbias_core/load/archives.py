"""Files out of a .zip or .gz: into a folder of the caller, by their names alone, and never more than the limits."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from capbias_core.errors import CapbiasError

ARCHIVES = (".zip", ".gz")
MOST_FILES, MOST_BYTES = 2_000, 4_000_000_000
# Text shrinks to a twentieth, not to a thousandth. A small archive may shrink more.
MOST_TIMES, SMALL = 100, 100_000_000
TEXTS, MOST_TEXTS = (".txt", ".caption"), 200_000  # files with one text per image
LINE_OF_IMAGE = re.compile(r"\S+\.(jpe?g|png|webp|gif|bmp)(#\d+)?[\t,|]|\d+[\t,]", re.IGNORECASE)
CHUNK = 1 << 20
# Files that mark a folder as a data set saved by the library `datasets` (columnar.py).
SPLITS, STATE = MARKS = "dataset_dict.json", "state.json"


def is_dataset(path: Path) -> bool:
    """Whether a folder is a saved data set."""
    return any((path / mark).is_file() for mark in MARKS)


def with_datasets(paths: Sequence[Path]) -> list[Path]:
    """Paths, with the folder of each saved data set in place of its files."""
    parents = {path.parent for path in paths if path.name in MARKS}
    folders = sorted(parent for parent in parents if not parents.intersection(parent.parents))
    return [*folders, *(path for path in paths if not set(folders).intersection(path.parents))]


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
            texts = [member for member in members if member.filename.lower().endswith(TEXTS)]
            one_per_image = False  # if the first line of a text names no image
            if len(texts) > 1:
                with archive.open(texts[0]) as source:
                    one_per_image = not LINE_OF_IMAGE.match(source.readline(1000).decode("utf-8", "replace"))
        if any(PurePosixPath(member.filename).name in MARKS for member in members):
            return with_datasets(_from_zip(path, folder / path.stem, named=True))
        if one_per_image:
            files = _from_zip(path, folder / path.stem, named=True)
            return [folder / path.stem, *(file for file in files if file.suffix.lower() not in TEXTS)]
        return _from_zip(path, folder, named=False)


def unpacked_tree(path: Path, folder: Path) -> dict[str, Path]:
    """The files of a .zip by their names in it, written into an empty folder under these names.

    Raises CapbiasError as `unpacked` does, and for a name that leads out of the folder.
    """
    path, folder = Path(path), Path(folder)
    with _into(path, folder):
        return {file.relative_to(folder).as_posix(): file for file in _from_zip(path, folder, named=True)}


def most_bytes(path: Path) -> int:
    """What an archive may unpack to, by its size."""
    return min(MOST_BYTES, max(SMALL, MOST_TIMES * path.stat().st_size))


@contextmanager
def _into(path: Path, folder: Path) -> Iterator[None]:
    """A folder to unpack into, which an error removes."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError, CapbiasError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, CapbiasError):
            raise
        if isinstance(error, FileNotFoundError):
            raise CapbiasError(f"{path.name} does not exist.", "Check its name and folder.") from None
        reason = str(error).split("\n")[0][:200].rstrip(".")
        raise CapbiasError(f"{path.name} cannot be unpacked ({reason}).", "Unpack it yourself.") from None


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files in a .zip that are not hidden."""
    hidden = (".", "__MACOSX")
    return [
        member
        for member in archive.infolist()
        if not member.is_dir()
        and not any(part.startswith(hidden) and part != ".." for part in Path(member.filename).parts)
    ]


def _from_zip(path: Path, folder: Path, named: bool) -> list[Path]:
    """The files of a .zip, under their whole names, or each in a folder with a number, so that equal names all stay."""
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        texts = sum(member.filename.lower().endswith(TEXTS) for member in members)
        if texts > MOST_TEXTS or len(members) - texts > MOST_FILES:
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
        while part := source.read(CHUNK):
            written += len(part)
            if written > most:
                raise CapbiasError(
                    f"{path.name} unpacks to more than {most_bytes(path) / 1e9:g} GB.",
                    "Split it, or unpack it first and load the file.",
                )
            file.write(part)
    return written
