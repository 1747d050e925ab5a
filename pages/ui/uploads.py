"""Files on their way in: an upload goes to disk at once and is removed when it is kept, refused or forgotten."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from capbias_core.errors import CapbiasError
from capbias_core.load.archives import ARCHIVES, unpacked
from capbias_core.load.datasets import is_dataset
from capbias_core.load.places import named
from capbias_core.workspace.limited import within_limits

FORGOTTEN = 3600
STATE = "uploads_held"


def uploaded_path(folder: str, upload) -> Path:
    """Where this upload lies on disk; earlier ones of the session are removed."""
    return held_paths(folder, [upload])[0]


def held_paths(folder: str, uploads) -> list[Path]:
    """Where these uploads lie on disk, archives unpacked; others of the session are removed.

    Raises CapbiasError for an archive that cannot be unpacked.
    """

    def write(upload) -> Callable[[Path], list[Path]]:
        return lambda place: _unpacked(_written(upload, place), place / "unpacked")

    return _held(folder, {upload.file_id: write(upload) for upload in uploads})


def held_from(folder: str, path: Path) -> list[Path]:
    """A file on the server, where it is; what is in an archive, unpacked among the uploads."""
    stamp = uuid.uuid5(uuid.NAMESPACE_URL, f"{path} {path.stat().st_mtime_ns}").hex
    return _held(folder, {stamp: lambda place: _unpacked(path, place / "unpacked")})


def _unpacked(path: Path, folder: Path) -> list[Path]:
    return within_limits(path.name, unpacked, path, folder) if path.suffix.lower() in ARCHIVES else [path]


def _held(folder: str, sources: Mapping[str, Callable[[Path], list[Path]]]) -> list[Path]:
    """Files on disk by their source, each in a folder called after it; those that are there already are not written
    again, so that what was read of them holds."""
    held = st.session_state.get(STATE)
    if not held or not all(path.exists() for paths in held["paths"].values() for path in paths):
        discard()
        held = st.session_state[STATE] = {"folder": _new_folder(folder), "paths": {}}
    paths: dict[str, list[Path]] = held["paths"]
    for gone in paths.keys() - sources.keys():
        shutil.rmtree(held["folder"] / gone, ignore_errors=True)
        del paths[gone]
    for source, write in sources.items():
        if source not in paths:
            paths[source] = write(held["folder"] / source)
    return [path for source in sources for path in paths[source]]


def place_of(path: Path) -> str:
    """A file by its place among the uploads, which stays if they are written anew; any other by its path."""
    held = st.session_state.get(STATE)
    return str(path.relative_to(held["folder"]) if held and path.is_relative_to(held["folder"]) else path)


def uploaded_paths(folder: str, uploads) -> list[Path]:
    """Where several uploads lie on disk, in a folder of their own; of equal names the last."""
    own = _new_folder(folder)
    return sorted({_written(upload, own) for upload in uploads})


def _new_folder(folder: str) -> Path:
    """A folder of uploads that is not there yet; those that were forgotten go."""
    home = Path(folder) / "uploads"
    for own in home.glob("*"):
        if time.time() - own.stat().st_mtime > FORGOTTEN:
            shutil.rmtree(own, ignore_errors=True)
    return home / uuid.uuid4().hex


def _written(upload, folder: Path) -> Path:
    """An upload as a file of its name in a folder. Raises CapbiasError where it cannot be written."""
    path = folder / (Path(upload.name).name or "file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as target:
            shutil.copyfileobj(upload, target)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CapbiasError(
            f"{path.name} cannot be written into the workspace ({error.strerror}).",
            "Free some space or allow writing, and upload it again.",
        ) from None
    return path


def discard() -> None:
    """Remove this session's uploads from disk."""
    held = st.session_state.pop(STATE, None)
    if held:
        shutil.rmtree(held["folder"], ignore_errors=True)


def server_path(text: str) -> Path:
    """A path that a visitor typed. Raises CapbiasError where no file is there, or it may not be named."""
    path = named(text.strip())
    if path.is_dir() and not is_dataset(path):
        inside = ", ".join(sorted(own.name for own in path.iterdir() if own.is_file())[:5])
        such = f", such as {inside}" if inside else ""
        raise CapbiasError(f"{text.strip()[:200]!r} is a folder, not a file.", f"Name a file in it{such}.")
    if not path.exists():
        raise CapbiasError(f"There is no file {text.strip()[:200]!r} on the computer that runs the dashboard.")
    return path
