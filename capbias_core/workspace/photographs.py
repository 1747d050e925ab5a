"""Photographs of a collection, by which runs name them, and where people are on them."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.data import Captions
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import BOXES, PHOTOGRAPHS, SEGMENTS
from capbias_core.language.files import ModelFiles
from capbias_core.load.files import file_digest
from capbias_core.load.photographs import find_pictures, picture_files
from capbias_core.types import CONDITIONS
from capbias_core.vision.masking import check_size, marked_pixels, people_of
from capbias_core.whole_files import typed_path
from capbias_core.workspace.models import register_model, resolve_model
from capbias_core.workspace.spec import ModelReference, PeopleReference, PhotographsReference
from capbias_core.workspace.store import Item, Workspace

# The key in a caption set's details for its `captioner` and its `photographs`, as the run that made it names them.
MADE_BY = "made_by"
ORIGINALS = "photographs"
TWINS = "twins"  # the key in the details for how many files are left out because another has the same image ID
PEOPLE = {SEGMENTS: "outlines", BOXES: "boxes"}  # kinds of items that say where people are; the closer outline first


def keep_images(
    workspace: Workspace, folder: Path, collection: str, name: str = ORIGINALS, details: dict | None = None
) -> Item:
    """The stored item of a folder of photographs, which stay there. details: of masked ones `condition`, and `of`, the
    name of the originals."""
    folder = typed_path(folder).resolve()
    frame = find_pictures(folder)
    details = {"folder": str(folder), TWINS: len(picture_files(folder)) - len(frame), **(details or {})}
    return workspace.keep(PHOTOGRAPHS, name, frame, collection, str(folder), details)


def twins_text(photographs: Item) -> str:
    """A sentence on photographs that were left out because another has the same image id; '' if there are none."""
    number = photographs.details.get(TWINS, 0)
    files = "1 file was" if number == 1 else f"{number:,} files were"
    return f"{files} left out: another has the same image id in its name." if number else ""


def picture_path(workspace: Workspace, collection: str, image_id: str) -> Path | None:
    """The photograph of an image, None if there is none."""
    for item in workspace.items(PHOTOGRAPHS, collection):
        if "condition" in item.details:
            continue
        frame = workspace.frame(item.hash)
        for name in frame.loc[frame["image_id"] == image_id, "file"]:
            path = Path(item.details["folder"]) / name
            if path.is_file():
                return path
    return None


def frozen_photographs(
    workspace: Workspace, collection: str, name: str | PhotographsReference | None = ""
) -> PhotographsReference:
    """The reference of a run to photographs of a collection. name: of a folder, '' for the originals, or a reference,
    which is returned. Raises CapbiasError if there are none."""
    if isinstance(name, dict):
        return name
    if not workspace.items(PHOTOGRAPHS, collection):
        raise CapbiasError(
            f"The photographs of the collection {collection!r} are not known.",
            "Name their folder, or load it (`capbias import FOLDER`).",
            "photographs",
        )
    item = workspace.item(PHOTOGRAPHS, name or ORIGINALS, collection)
    return reference_to(workspace, item.name, Path(item.details["folder"]), item.hash)


def reference_to(sources: Any, name: str, folder: Path, index: str) -> PhotographsReference:
    """The reference of a run to a folder of photographs. index: the key of the list of its files."""
    reference = register_model(sources, ModelFiles(name, str(folder), _contents(sources, folder, index)))
    return PhotographsReference(**reference, item=index)


def masked_so(workspace: Workspace, collection: str, condition: str | None) -> str:
    """The name of the folder of photographs masked under a condition, '' for the originals if nothing is masked. Raises
    CapbiasError if the collection has no such folder, or several."""
    if condition in (None, CONDITIONS[0]):
        return ""
    names = [
        item.name for item in workspace.items(PHOTOGRAPHS, collection) if item.details.get("condition") == condition
    ]
    if len(names) == 1:
        return names[0]
    found = f"several folders ({', '.join(names)})" if names else "no folder"
    raise CapbiasError(
        f"{collection!r} has {found} of photographs for captions of the condition {condition!r}.",
        "Name one, mask photographs (`capbias images mask`), or load a folder (`capbias import FOLDER`).",
        "photographs",
    )


def made_from(workspace: Workspace, collection: str, option: PhotographsReference) -> str:
    """The name of the folder with the photographs that captions were made from. option: of the run that made them.
    Raises CapbiasError if the collection no longer has these photographs."""
    alike = [item.name for item in workspace.items(PHOTOGRAPHS, collection) if item.hash == option["item"]]
    for name in sorted(alike, key=lambda name: name != option["name"]):
        if frozen_photographs(workspace, collection, name)["digest"] == option["digest"]:
            return name
    raise CapbiasError(
        f"The photographs {option['name']!r} of these captions are no longer in {collection!r}, or have changed.",
        "Caption the photographs again, or name those to read.",
        "photographs",
    )


def writer_of(captions: Captions, option: str) -> ModelReference:
    """The captioner that wrote a set. option: that names it. Raises CapbiasError for a set from a file, whose captioner
    is not known."""
    if MADE_BY not in captions.details:
        raise CapbiasError(
            f"The captioner that wrote the captions {captions.name} is not known here.",
            f"Name it with --option {option}=FOLDER.",
        )
    return captions.details[MADE_BY]["captioner"]


def photograph_files(workspace: Any, option: PhotographsReference) -> dict[str, Path]:
    """The file of each image of a run. Raises CapbiasError if they are missing or have changed."""
    folder = resolve_model(workspace, option, lambda path: _contents(workspace, path, option["item"])).path
    return files_in(Path(folder), workspace.frame(option["item"]))


def _contents(sources: Any, folder: Path, index: str) -> str:
    """A digest of the contents of the photographs of a folder, which are read once while sizes and times stay."""
    files = files_in(folder, sources.frame(index))

    def state(file: Path) -> tuple[int, int]:
        with suppress(OSError):
            status = file.stat()
            return status.st_size, status.st_mtime_ns
        return 0, 0

    def digest(file: Path) -> str:
        with suppress(CapbiasError):
            return file_digest(file)[:32]
        return ""

    def read() -> str:
        text = "".join(f"{image}\x1f{digest(file)}\x1e" for image, file in sorted(files.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    states = hashlib.sha256(repr([(str(file), *state(file)) for file in files.values()]).encode()).hexdigest()
    return sources.derived(f"contents {index} {states}", read, str)


def files_in(folder: Path, index: pd.DataFrame) -> dict[str, Path]:
    """The file of each image. index: from `find_pictures`."""
    return {image: folder / name for image, name in zip(index["image_id"], index["file"], strict=True)}


# people on photographs


def people_sources(workspace: Workspace, collection: str) -> list[Item]:
    """Stored outlines and boxes of a collection, outlines first."""
    return [item for kind in PEOPLE for item in workspace.items(kind, collection)]


def resolve_person_regions(
    workspace: Workspace, collection: str, name: str | PeopleReference | None = ""
) -> PeopleReference:
    """The reference of a run to outlines or boxes of a collection. name: '' for the only ones (outlines before boxes),
    or a reference, which is returned. Raises CapbiasError if there are none, or several and none is named."""
    if isinstance(name, dict):
        return name
    sources = people_sources(workspace, collection)
    if not sources:
        raise CapbiasError(
            f"Where people are on the photographs of {collection!r} is not known.",
            "Load outlines (`capbias import --kind segments`), or detect people (`capbias images detect`).",
            "people",
        )
    if name and name not in {item.name for item in sources}:
        raise unknown_name("outlines or boxes", name, [item.name for item in sources])
    chosen = [item for item in sources if item.name == name]
    chosen = chosen or [item for item in sources if item.kind == sources[0].kind]
    if len(chosen) > 1 and not name:
        names = ", ".join(item.name for item in chosen)
        raise CapbiasError(
            f"{collection} has {len(chosen)} sets of {PEOPLE[chosen[0].kind]} ({names}).",
            "Name the set to use.",
            "people",
        )
    return PeopleReference(name=chosen[0].name, kind=chosen[0].kind, item=chosen[0].hash)


class People:
    """Where people are, photograph by photograph. frame: stored outlines or boxes. rows: by image ID."""

    def __init__(self, frame: pd.DataFrame):
        self.rows = dict(list(people_of(frame).groupby("image_id")))

    def mask(self, image: str, height: int, width: int) -> np.ndarray:
        """(height, width) booleans, true on the people of a photograph of `rows`. Crowds count as people. Raises
        CapbiasError for outlines of a photograph of another size."""
        rows = self.rows[image]
        if "outline" in rows:
            check_size(rows, (height, width))
        return marked_pixels(rows, height, width)
