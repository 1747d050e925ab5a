"""Files written whole or not at all, files and folders that only their owner can read, and checks of paths and of the
folders of workspaces."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from capbias_core.errors import CapbiasError, short

PRIVATE, USUAL = 0o600, 0o666
HEX = "[0-9a-f]"  # in the patterns of names that this program made, and may remove
CATALOGUE = "capbias.sqlite"
FOLDERS = ("alive", "attributes", "data", "embeddings", "models", "pictures", "unfinished", "uploads", "weights")
SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
LINK = {stat.S_IFLNK: "a symbolic link"}


def check_file(path: str | os.PathLike) -> None:
    """Raises CapbiasError for a pipe, socket, device or file of the system, whose reading may never end; OSError from
    the system."""
    what = SPECIAL.get(stat.S_IFMT(os.stat(path).st_mode))
    if what or Path(path).resolve().is_relative_to("/proc"):  # where some files never end
        what = what or "a file of the system"
        raise CapbiasError(
            f"{Path(path).name} is {what}, not a file.", "Write its content to a file first, or leave it out."
        )


def typed_path(given: str | os.PathLike, to_read: bool = True) -> Path:
    """A path that a person typed, with ~ as their home; it need not exist.

    Raises CapbiasError for a path that the system rejects, such as ~ before an unknown name or a loop of links; and,
    to_read, for a pipe, socket or device.
    """
    try:
        path = Path(given).expanduser()
        if to_read:
            check_file(path)
        else:
            path.stat()
    except (FileNotFoundError, NotADirectoryError):  # opening it raises a clearer error
        return Path(given).expanduser()
    except PermissionError:
        raise CapbiasError(f"{given} is in a folder that may not be read.", "Check its permissions.") from None
    except (OSError, ValueError, RuntimeError) as error:
        shown = short("".join(letter if letter.isprintable() else "?" for letter in os.fspath(given)), 80)
        reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        raise CapbiasError(f"{shown!r} is no path that this system takes ({reason}).", "Check its spelling.") from None
    return path


def workspace_parts(folder: Path) -> list[Path]:
    """The files and folders of a workspace that this program reads and writes; a folder may hold others too."""
    return [*folder.glob(f"{CATALOGUE}*"), *(folder / name for name in FOLDERS)]


def check_contained(workspace: Path) -> None:
    """Raises CapbiasError if something in a workspace is neither a file nor a folder: in a stranger's, a link makes
    this program read or delete files elsewhere, and a pipe would block it."""
    for part in workspace_parts(workspace):
        with suppress(OSError):  # one that does not exist, or that nothing can be read from
            if strange := _strange(str(part), part.lstat().st_mtime_ns):
                what = (SPECIAL | LINK)[stat.S_IFMT(os.lstat(strange).st_mode)]
                raise CapbiasError(
                    f"{strange} is {what}, and a workspace has only files and folders.",
                    "Remove it if you do not know it. The folder of the whole workspace may be a link.",
                )


@lru_cache(maxsize=256)
def _strange(path: str, _changed: int) -> str:
    """The first path here or below that is neither a file nor a folder, '' if there is none."""
    mode = os.lstat(path).st_mode
    if not stat.S_ISDIR(mode):
        return "" if stat.S_ISREG(mode) else path
    with os.scandir(path) as entries:
        below = [entry for entry in entries if not entry.is_file(follow_symlinks=False)]
    return next(
        filter(None, (_strange(entry.path, entry.stat(follow_symlinks=False).st_mtime_ns) for entry in below)), ""
    )


def private_folder(path: Path) -> Path:
    """The folder; it and missing parents are made so that only their owner can read them."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def private_file(path: Path) -> Path:
    """The file; a missing one is made, empty, so that only its owner can read it."""
    if not path.exists():
        path.touch(mode=PRIVATE)
    return path


@contextmanager
def whole_file(path: Path, mode: int = PRIVATE) -> Iterator[Path]:
    """A temporary path to write to, which replaces the file at the end of the block. If the block raises, the file is
    unchanged. mode: its permissions."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        temporary.touch(mode=mode)
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Write a file at once, as `whole_file` does. Raises OSError."""
    with whole_file(path, mode) as temporary:
        temporary.write_bytes(data)
