"""Photographs that are named one by one or by their folders, as files and as a folder that a workspace holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load import normalise_image_id
from capbias_core.load.files import readable
from capbias_core.load.photographs import find_pictures
from capbias_core.workspace.inputs import checked_path
from capbias_core.workspace.photographs import KIND, ORIGINALS
from capbias_core.workspace.store import Item, Workspace


def named_files(given: Sequence[str]) -> dict[str, Path]:
    """The file of each photograph by its name, or by its path where two have one name; folders give what is in them.

    A file that is missing or no picture is not noticed before it is read. Raises CapbiasError for a folder without any.
    """
    places = [checked_path(text).expanduser() for text in given]
    files = [file for place in places for file in (_within(place) if place.is_dir() else [place])]
    files = list(dict.fromkeys(files))
    names = [file.name for file in files]
    return {(file.name if names.count(file.name) == 1 else str(file)): file for file in files}


def _within(folder: Path) -> list[Path]:
    return [folder / name for name in find_pictures(folder)["file"]]


def keep_named(workspace: Workspace, places: Sequence[str], collection: str) -> Item:
    """Keep the place of files and of the photographs in folders as the collection's originals.

    Raises CapbiasError for a place that is not there, and for two files of the same image id.
    """
    files = list(dict.fromkeys(_there(file) for file in named_files(places).values()))
    root = Path(os.path.commonpath([file.parent for file in files]))
    frame = pd.DataFrame(
        {
            "image_id": [normalise_image_id(file.name) for file in files],
            "file": [str(file.relative_to(root)) for file in files],
        }
    )
    twice = frame[frame["image_id"].duplicated(keep=False)].sort_values("image_id", kind="stable")
    if len(twice):
        raise CapbiasError(
            f"Several files belong to the image {twice['image_id'].iloc[0]}: {', '.join(twice['file'].iloc[:2])}.",
            "A file name is the image ID. Leave one out.",
        )
    return workspace.keep(KIND, ORIGINALS, frame, collection, str(root), {"folder": str(root)})


def _there(file: Path) -> Path:
    with readable(file):
        file.stat()
    return file.resolve()
