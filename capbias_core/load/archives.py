"""Files out of a .zip or .gz: into a folder of the caller's, by their names alone, and never more than is stated."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from capbias_core.errors import CapbiasError

ARCHIVES = (".zip", ".gz")
MOST_FILES, MOST_BYTES = 2_000, 4_000_000_000
# Text shrinks to a twentieth, not to a thousandth. A small archive may shrink more.
MOST_TIMES, SMALL = 100, 100_000_000
TEXTS, MOST_TEXTS = (".txt", ".caption"), 200_000  # files of which each is of an image
LINE_OF_IMAGE = re.compile(r"\S+\.(jpe?g|png|webp|gif|bmp)(#\d+)?[\t,|]|\d+[\t,]", re.IGNORECASE)
CHUNK = 1 << 20
# Files by which a folder is known as a data set of the library `datasets`, saved to disk (columnar.py).
SPLITS, STATE = MARKS = "dataset_dict.json", "state.json"


def is_dataset(path: Path) -> bool:
    """Whether a folder is a data set as it was saved."""
    return any((path / mark).is_file() for mark in MARKS)


def with_datasets(paths: Sequence[Path]) -> list[Path]:
    """Paths, with each saved data set as its folder in place of the files in it."""
    parents = {own.parent for own in paths if own.name in MARKS}
    folders = sorted(own for own in parents if not parents.intersection(own.parents))
    return [*folders, *(own for own in paths if not set(folders).intersection(own.parents))]


def unpacked(path: Path, folder: Path) -> list[Path]:
    """The files of an archive, written into an empty folder; of any other file itself.

    Folders within an archive are left out of the names; so are hidden files. A data set that was saved to disk, and
    texts of which each is of an image, stay one folder. Raises CapbiasError for an archive that is broken, encrypted,
    or holds too many files or more than 4 GB; nothing of it is left then.
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
            members = list(filter(_is_wanted, archive.infolist()))
            texts = [own for own in members if own.filename.lower().endswith(TEXTS)]
            one_per_image = len(texts) > 1 and _is_plain(archive, texts[0])
        if any(PurePosixPath(own.filename).name in MARKS for own in members):
            return with_datasets(_from_zip(path, folder / path.stem, _named))
        if one_per_image:
            files = _from_zip(path, folder / path.stem, _named)
            return [folder / path.stem, *(own for own in files if own.suffix.lower() not in TEXTS)]
        return _from_zip(path, folder, _numbered)


def _is_plain(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Whether a text may be of one image: its first line names none."""
    with archive.open(member) as source:
        return not LINE_OF_IMAGE.match(source.readline(1000).decode("utf-8", "replace"))


def unpacked_tree(path: Path, folder: Path) -> dict[str, Path]:
    """The files of a .zip by their names in it, written into an empty folder under these names, folders too.

    Raises CapbiasError as `unpacked` does, and for a name that leads out of the folder.
    """
    path, folder = Path(path), Path(folder)
    with _into(path, folder):
        found = _from_zip(path, folder, _named)
    return {own.relative_to(folder).as_posix(): own for own in found}


@contextmanager
def _into(path: Path, folder: Path) -> Iterator[None]:
    """A folder for what is unpacked; after a fault nothing of it is left."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)
        raise CapbiasError(f"{path.name} does not exist.", "Check its name and folder.") from None
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = str(error).split("\n")[0][:200].rstrip(".")
        raise CapbiasError(f"{path.name} cannot be unpacked ({reason}).", "Unpack it yourself.") from None
    except CapbiasError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _numbered(_path: Path, number: int, member: str) -> PurePosixPath:
    """Files of one name in several folders all stay."""
    return PurePosixPath(str(number), Path(member).name)


def _named(path: Path, _number: int, member: str) -> PurePosixPath:
    name = PurePosixPath(member)
    if name.is_absolute() or ".." in name.parts or set(member) & set("\\:") or not member.isprintable():
        raise CapbiasError(
            f"{path.name} holds a file whose name leads out of the archive: {member[:100]!r}.", "Do not trust it."
        )
    return name


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    """Whether a member is a file, and no hidden one."""
    parts = Path(member.filename).parts
    return not member.is_dir() and not any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)


def _from_zip(path: Path, folder: Path, place: Callable[[Path, int, str], PurePosixPath]) -> list[Path]:
    with zipfile.ZipFile(path) as archive:
        members = list(filter(_is_wanted, archive.infolist()))
        texts = sum(member.filename.lower().endswith(TEXTS) for member in members)
        if texts > MOST_TEXTS or len(members) - texts > MOST_FILES:
            raise CapbiasError(f"{path.name} holds {len(members):,} files, more than {MOST_FILES:,}.", "Split it.")
        left, files = most_bytes(path), []
        for number, member in enumerate(members):
            target = folder / place(path, number, member.filename)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise CapbiasError(f"{path.name} holds two files called {member.filename[:100]}.", "Pack it again.")
            with archive.open(member) as source:
                left -= _copied(source, target, left, path)
            files.append(target)
    if not files:
        raise CapbiasError(f"{path.name} is an archive without files.", "Pack it again.")
    return files


def most_bytes(path: Path) -> int:
    """What an archive may unpack to, by its own size."""
    return min(MOST_BYTES, max(SMALL, MOST_TIMES * path.stat().st_size))


def _copied(source: IO[bytes] | gzip.GzipFile, target: Path, most: int, path: Path) -> int:
    """Bytes written; what an archive says of its sizes is not believed."""
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
