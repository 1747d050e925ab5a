"""Uploads on disk: they are written at once and removed when they are saved or their page is closed."""

from __future__ import annotations

import shutil
import time
import uuid
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from capbias_core.errors import CapbiasError, short
from capbias_core.load.files import unpacked_parts
from capbias_core.load.places import named
from capbias_core.whole_files import HEX, private_file, private_folder
from capbias_core.workspace.limited import within_limits

FORGOTTEN = 3600  # seconds
STATE = "uploads_held"


def uploaded_path(folder: str, upload) -> Path:
    """Where this upload is on disk; earlier ones of the session are removed."""
    return held_paths(folder, [upload])[0]


def held_paths(folder: str, uploads) -> list[Path]:
    """Where these uploads are on disk, archives unpacked; others of the session are removed.

    Raises CapbiasError for an archive that cannot be unpacked.
    """

    def write(upload) -> Callable[[Path], list[Path]]:
        return lambda folder: _unpacked(_written(upload, folder), folder / "unpacked")

    return _held(folder, {upload.file_id: write(upload) for upload in uploads})


def kept_paths_of(folder: str, path: Path) -> list[Path]:
    """A file on the server, where it is; what is in an archive, unpacked among the uploads."""
    stamp = uuid.uuid5(uuid.NAMESPACE_URL, f"{path} {path.stat().st_mtime_ns}").hex
    return _held(folder, {stamp: lambda uploads: _unpacked(path, uploads / "unpacked")})


def _unpacked(path: Path, folder: Path) -> list[Path]:
    """The files of a .zip, in the folder; any other file itself, and a .zip that is one thing, which readers open."""
    if path.suffix.lower() != ".zip":
        return [path]
    private_folder(folder)
    files = within_limits(path.name, unpacked_parts, path, folder)
    # A child that was taken over must not make the server read other files.
    return [file for file in files if file.resolve().is_relative_to(folder.resolve())] or [path]


def _held(folder: str, sources: Mapping[str, Callable[[Path], list[Path]]]) -> list[Path]:
    """Files on disk by their source, each in a folder called after it; those that are there already are not written
    again, so that what was read from them stays valid."""
    held = st.session_state.get(STATE)
    if not held or not all(path.exists() for paths in held.paths.values() for path in paths):
        discard()
        held = st.session_state[STATE] = _Held(_new_folder(folder))
    for gone in held.paths.keys() - sources.keys():
        shutil.rmtree(held.folder / gone, ignore_errors=True)
        del held.paths[gone]
    for source, write in sources.items():
        if source not in held.paths:
            held.paths[source] = write(held.folder / source)
    return [path for source in sources for path in held.paths[source]]


class _Held:
    """The uploads of a session, by source. Their folder goes with it: when its tab is closed, or the server ends."""

    def __init__(self, folder: Path):
        self.folder, self.paths = folder, dict[str, list[Path]]()
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


def path_in_uploads(path: Path) -> str:
    """The path within the uploads, which stays the same if they are written anew; the whole path of any other file."""
    held = st.session_state.get(STATE)
    return str(path.relative_to(held.folder) if held and path.is_relative_to(held.folder) else path)


def uploaded_paths(folder: str, uploads) -> list[Path]:
    """Where several uploads are on disk, in a new folder; of equal names the last."""
    new = _new_folder(folder)
    return sorted({_written(upload, new) for upload in uploads})


def _new_folder(folder: str) -> Path:
    """A new folder for uploads; folders that were forgotten are removed."""
    home = Path(folder) / "uploads"
    for old in home.glob(HEX * 32):
        if time.time() - old.stat().st_mtime > FORGOTTEN:
            shutil.rmtree(old, ignore_errors=True)
    return home / uuid.uuid4().hex


def _written(upload, folder: Path) -> Path:
    """An upload as a file of its name in a folder. Raises CapbiasError if it cannot be written."""
    path = folder / _file_name(upload.name)
    try:
        private_folder(folder)
        with private_file(path).open("wb") as target:
            shutil.copyfileobj(upload, target)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CapbiasError(
            f"{path.name} cannot be written into the workspace ({error.strerror}).",
            "Free some space or allow writing, and upload it again.",
        ) from None
    return path


def _file_name(name: str) -> str:
    """The name of an upload as one that every file system takes, without folders.

    >>> [_file_name(name) for name in ("sat.json", "../../x.csv", "..")]
    ['sat.json', 'x.csv', 'file']
    """
    path = Path("".join(letter for letter in Path(name).name if letter.isprintable()).lstrip(". ") or "file")
    return path.stem[:50] + path.suffix[:10]


def discard() -> None:
    """Remove this session's uploads from disk."""
    if held := st.session_state.pop(STATE, None):
        held.remove()


def server_path(text: str) -> Path:
    """A path that a visitor typed. Raises CapbiasError if no file is there, or it may not be named."""
    path = named(text.strip())
    if path.is_dir():
        files = ", ".join(sorted(file.name for file in path.iterdir() if file.is_file())[:5])
        examples = f", such as {files}" if files else ""
        raise CapbiasError(f"{short(text, 200)!r} is a folder.", f"Name a file in it{examples}.")
    if not path.exists():
        raise CapbiasError(
            f"There is no file {short(text, 200)!r} on the computer that runs the dashboard.", "Check the spelling."
        )
    return path
