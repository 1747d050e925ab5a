"""Photographs of a collection: where they are, and what a run says of them, by the contents of the files.

The digest of a file is kept with its size and the time of its last change, so that a large folder is read once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pandas as pd

from capbias_core.databases import ByteCache, byte_cache
from capbias_core.errors import CapbiasError
from capbias_core.load.files import file_digest
from capbias_core.load.photographs import find_pictures, picture_files
from capbias_core.types import CONDITIONS
from capbias_core.workspace.models import register_model, resolve_model
from capbias_core.workspace.spec import ModelReference, PhotographsReference
from capbias_core.workspace.store import Item, Workspace

# The key in a caption set's details for its `captioner` and its `photographs`, as the run that made it names them.
MADE_BY = "made_by"
KIND = "images"
ORIGINALS = "photographs"
TWINS = "twins"  # the key in the details for how many files are left out because another has the same image id
READERS = 8


def keep_images(
    workspace: Workspace, folder: Path, collection: str, name: str = ORIGINALS, details: dict | None = None
) -> Item:
    """Remember the folder of a collection's photographs; the photographs themselves stay there.

    details: of masked ones `condition`, and `of`, the name of the originals.
    """
    folder = Path(folder).expanduser().resolve()
    frame = find_pictures(folder)
    details = {"folder": str(folder), TWINS: len(picture_files(folder)) - len(frame), **(details or {})}
    return workspace.keep(KIND, name, frame, collection, str(folder), details)


def twins_text(photographs: Item) -> str:
    """A sentence on photographs that were left out because another has the same image id; '' if there are none."""
    number = photographs.details.get(TWINS, 0)
    files = "1 file was" if number == 1 else f"{number:,} files were"
    return f"{files} left out: another has the same image id in its name." if number else ""


def picture_path(workspace: Workspace, collection: str, image_id: str) -> Path | None:
    """The photograph of an image, None if there is none."""
    for item in workspace.items(KIND, collection):
        if "condition" in item.details:
            continue
        frame = workspace.frame(item.hash)
        for name in frame.loc[frame["image_id"] == image_id, "file"]:
            path = Path(item.details["folder"]) / name
            if path.is_file():
                return path
    return None


def photograph_sets(workspace: Workspace, collection: str) -> list[Item]:
    """The folders of photographs of a collection: the originals, and those that were masked."""
    return workspace.items(KIND, collection)


def frozen_photographs(
    workspace: Workspace, collection: str, name: str | PhotographsReference | None = ""
) -> PhotographsReference:
    """What a run says of photographs. item: hash of their list; digest: of the contents of the files.

    name: of a folder of photographs of the collection, '' for the originals; a reference is the answer already. Raises
    CapbiasError if the collection has none.
    """
    if isinstance(name, dict):
        return name
    if not photograph_sets(workspace, collection):
        raise CapbiasError(
            f"The photographs of the collection {collection!r} are not known.",
            "Name their folder, or load it (`capbias import FOLDER`).",
            "photographs",
        )
    item = workspace.item(KIND, name or ORIGINALS, collection)
    folder = item.details["folder"]
    reference = register_model(workspace, item.name, folder, _contents(workspace, Path(folder), item.hash))
    return PhotographsReference(**reference, item=item.hash)


def masked_so(workspace: Workspace, collection: str, condition: str | None) -> str:
    """The name of the folder of photographs masked under a condition, '' for the originals if nothing is masked.

    Raises CapbiasError if the collection has no such folder, or several.
    """
    if condition in (None, CONDITIONS[0]):
        return ""
    names = [item.name for item in photograph_sets(workspace, collection) if item.details.get("condition") == condition]
    if len(names) == 1:
        return names[0]
    folders = f"several folders ({', '.join(names)})" if names else "no folder"
    raise CapbiasError(
        f"{collection!r} has {folders} of photographs for captions of the condition {condition!r}.",
        "Name one, mask photographs (`capbias images mask`), or load a folder (`capbias import FOLDER`).",
        "photographs",
    )


def made_from(workspace: Workspace, collection: str, option: PhotographsReference) -> str:
    """The name of the folder with the photographs that captions were made from. option: those, as their run said.

    Raises CapbiasError if the collection has them no more.
    """
    alike = [item.name for item in photograph_sets(workspace, collection) if item.hash == option["item"]]
    for name in sorted(alike, key=lambda name: name != option["name"]):
        if frozen_photographs(workspace, collection, name)["digest"] == option["digest"]:
            return name
    raise CapbiasError(
        f"The photographs {option['name']!r} of these captions are no longer in {collection!r}, or have changed.",
        "Caption the photographs again, or name those to read.",
        "photographs",
    )


def writer_of(captions: Item, flag: str) -> ModelReference:
    """The captioner that wrote a set. Raises CapbiasError for a set from a file, whose captioner is not known.

    flag: where a captioner is named in a terminal.
    """
    if MADE_BY not in captions.details:
        raise CapbiasError(
            f"The captioner that wrote the captions {captions.name} is not known here.", f"Name it: {flag} FOLDER."
        )
    return captions.details[MADE_BY]["captioner"]


def photograph_files(workspace: Workspace, option: PhotographsReference) -> dict[str, Path]:
    """The file of each image of a run. Raises CapbiasError if they are gone, or are others now."""
    folder = resolve_model(workspace, option, lambda path: _contents(workspace, Path(path), option["item"]))
    return _files(Path(folder), workspace.frame(option["item"]))


def workspace_cache(workspace: Workspace) -> AbstractContextManager[ByteCache]:
    """The workspace's cache of what follows from the bytes of files."""
    return byte_cache(workspace.folder / "cache.sqlite", "digests and boxes of photographs", "they are computed again")


def file_digests(workspace: Workspace, files: Sequence[Path]) -> list[str]:
    """The digest of each file's bytes, '' if it cannot be read; read once as long as size and time stay the same."""
    keys: dict[Path, str] = {}
    for file in files:
        with suppress(OSError):
            status = file.stat()
            keys[file] = f"digest {file} {status.st_size} {status.st_mtime_ns}"

    def digest(file: Path) -> bytes:
        with suppress(CapbiasError):
            return file_digest(file)[:32].encode()
        return b""

    with workspace_cache(workspace) as cache:
        known = cache.get(keys.values())
        missing = [file for file, key in keys.items() if key not in known]
        with ThreadPoolExecutor(READERS) as pool:
            fresh = {keys[file]: each for file, each in zip(missing, pool.map(digest, missing), strict=True) if each}
        with cache.locked():
            cache.put(fresh)
    known |= fresh
    return [known.get(keys.get(file, ""), b"").decode() for file in files]


def _contents(workspace: Workspace, folder: Path, index: str) -> str:
    """A digest of the contents of the listed files."""
    files = _files(folder, workspace.frame(index))
    digests = dict(zip(files, file_digests(workspace, list(files.values())), strict=True))
    text = "".join(f"{image}\x1f{digest}\x1e" for image, digest in sorted(digests.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def _files(folder: Path, index: pd.DataFrame) -> dict[str, Path]:
    return {image: folder / name for image, name in zip(index["image_id"], index["file"], strict=True)}
