"""Files out of a .zip or .gz: into a folder of the caller's, by their names alone, and never more than is stated."""

from __future__ import annotations

import gzip
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from capbias_core.errors import CapbiasError
from capbias_core.load.datasets import MARKS, with_datasets

ARCHIVES = (".zip", ".gz")
MOST_FILES, MOST_BYTES = 2_000, 4_000_000_000
# Text shrinks to a twentieth, not to a thousandth. A small archive may shrink more.
MOST_TIMES, SMALL = 100, 100_000_000
CHUNK = 1 << 20


def unpacked(path: Path, folder: Path) -> list[Path]:
    """The files of an archive, written into an empty folder; of any other file itself.

    Folders within an archive are left out of the names; so are hidden files. A data set that was saved to disk
    (datasets.py) stays one folder. Raises CapbiasError for an archive that
    is broken, encrypted, or holds more than 2,000 files or 4 GB; nothing of it is left then.
    """
    path, folder = Path(path), Path(folder)
    if path.suffix.lower() not in ARCHIVES:
        return [path]
    with _into(path, folder):
        if path.suffix.lower() != ".zip":
            return [_from_gzip(path, folder)]
        if not _holds_dataset(path):
            return _from_zip(path, folder, _numbered)
        return with_datasets(_from_zip(path, folder / path.stem, _named))


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
        raise CapbiasError(f"{path.name} does not exist.", "Check the path.") from None
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = str(error).split("\n")[0][:200].rstrip(".")
        raise CapbiasError(f"{path.name} cannot be unpacked ({reason}).", "Unpack it first.") from None
    except CapbiasError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _holds_dataset(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(PurePosixPath(name).name in MARKS for name in archive.namelist())


def _numbered(_path: Path, number: int, member: str) -> PurePosixPath:
    """Files of one name in several folders all stay."""
    return PurePosixPath(str(number), Path(member).name)


def _named(path: Path, _number: int, member: str) -> PurePosixPath:
    name = PurePosixPath(member)
    if name.is_absolute() or ".." in name.parts or set(member) & set("\\:") or not member.isprintable():
        raise CapbiasError(
            f"{path.name} holds a file called {member[:100]!r}, which would lie outside of its folder.",
            "Do not trust it; ask for another.",
        )
    return name


def _from_zip(path: Path, folder: Path, place: Callable[[Path, int, str], PurePosixPath]) -> list[Path]:
    with zipfile.ZipFile(path) as archive:
        wanted = [own for own in archive.infolist() if not own.is_dir() and _shown(own.filename)]
        if len(wanted) > MOST_FILES:
            raise CapbiasError(f"{path.name} holds {len(wanted):,} files, more than {MOST_FILES:,}.", "Split it.")
        left, found = _most_bytes(path), []
        for number, member in enumerate(wanted):
            target = folder / place(path, number, member.filename)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise CapbiasError(f"{path.name} holds two files called {member.filename[:100]}.", "Pack it again.")
            with archive.open(member) as source:
                left -= _copied(source, target, left, path)
            found.append(target)
    if not found:
        raise CapbiasError(f"{path.name} is an archive without files.", "Pack it again.")
    return found


def _from_gzip(path: Path, folder: Path) -> Path:
    target = folder / (path.stem or "file")
    with gzip.open(path) as source:
        _copied(source, target, _most_bytes(path), path)
    return target


def _most_bytes(path: Path) -> int:
    """What an archive may unpack to, by its own size."""
    return min(MOST_BYTES, max(SMALL, MOST_TIMES * path.stat().st_size))


def _shown(name: str) -> bool:
    return not any(part.startswith((".", "__MACOSX")) and part != ".." for part in Path(name).parts)


def _copied(source: IO[bytes] | gzip.GzipFile, target: Path, most: int, path: Path) -> int:
    """Bytes written; what an archive says of its sizes is not believed."""
    written = 0
    with target.open("wb") as file:
        for part in _parts(source):
            written += len(part)
            if written > most:
                raise CapbiasError(
                    f"{path.name} unpacks to more than {_most_bytes(path) / 1e9:g} GB.",
                    "Split it, or unpack it first and load the file.",
                )
            file.write(part)
    return written


def _parts(source: IO[bytes] | gzip.GzipFile) -> Iterable[bytes]:
    while part := source.read(CHUNK):
        yield part
