"""One photograph: what it shows, what each condition hides of it, its captions and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.experiments.browse import PICTURES
from capbias_core.experiments.conditions import ORIGINAL
from capbias_core.experiments.ingest import keep_images
from capbias_core.experiments.photographs import KIND, ORIGINALS
from capbias_core.experiments.read import CaptionScores
from capbias_core.experiments.store import Item, Workspace, content_hash
from capbias_core.explain.what_if import Rescored, StoredAttackers
from capbias_core.load.photographs import read_photograph
from capbias_core.types import CONDITIONS
from capbias_core.vision.masking import HALF, PERSON, box_mask, filled, foreground, outline_mask, region

# The conditions that can be made here; `person` is somebody else's mask.
STRIP = tuple(condition for condition in CONDITIONS if condition != "person")
BOX = ["x1", "y1", "x2", "y2"]


def photographs_of(workspace: Workspace, collection: str, name: str = ORIGINALS) -> dict[str, Path]:
    """The file of each photograph of a folder of a collection, by image id; empty where there is no such folder."""
    found = [item for item in workspace.items(KIND, collection) if item.name == name]
    if not found:
        return {}
    folder, frame = Path(found[0].details["folder"]), workspace.frame(found[0].hash)
    return {image: folder / file for image, file in zip(frame["image_id"], frame["file"], strict=True)}


def masked_folders(workspace: Workspace, collection: str) -> dict[str, Item]:
    """The newest kept folder of masked photographs of each condition."""
    found = {item.details.get("condition", ORIGINAL): item for item in workspace.items(KIND, collection)}
    return {condition: found[condition] for condition in CONDITIONS if condition in found and condition != ORIGINAL}


@dataclass(frozen=True)
class Shown:
    """What people or a detector marked on one photograph: the rows of its outlines (in SEGMENT_COLUMNS) and of its
    boxes (in BOX_COLUMNS). Both may be empty."""

    segments: pd.DataFrame
    boxes: pd.DataFrame

    @property
    def objects(self) -> list[str]:
        """The names of what it shows but people, the largest first."""
        for rows in (self.segments, self.boxes):
            if len(rows):
                sizes = (rows["x2"] - rows["x1"]) * (rows["y2"] - rows["y1"])
                order = sizes.groupby(rows["object"]).sum().sort_values(ascending=False).index
                return [name for name in order if name != PERSON]
        return []

    @property
    def person(self) -> pd.Series | None:
        """The person in the foreground: of the outlines where there is one, else of the boxes; None without one."""
        people = (foreground(rows) for rows in (self.segments, self.boxes) if len(rows))
        return next((found for found in people if found is not None), None)


def person_mask(shown: Shown, height: int, width: int) -> np.ndarray | None:
    """(height, width) booleans: the outline of the person in the foreground; None where there is no outline.

    Raises CapbiasError for an outline of a photograph of another size.
    """
    person = shown.person
    return None if person is None or "outline" not in person else outline_mask(person["outline"], height, width)


def object_mask(shown: Shown, name: str, height: int, width: int) -> np.ndarray | None:
    """(height, width) booleans: every object of this name, by outlines where there are some, else by boxes."""
    for rows, of in ((shown.segments, _outline), (shown.boxes, _box)):
        own = rows[rows["object"] == name] if len(rows) else rows
        if len(own):
            return np.logical_or.reduce([of(row, height, width) for row in own.to_dict("records")])
    return None


def _outline(row: dict, height: int, width: int) -> np.ndarray:
    return outline_mask(row["outline"], height, width)


def _box(row: dict, height: int, width: int) -> np.ndarray:
    return box_mask([row[side] for side in BOX], height, width)


LACKING = {
    "part": "no outline of a person is known", "segment": "no outline of a person is known",
    "box": "no person is known on it", "object": "no such object is known on it",
    "both": "an outline of a person and an object are needed",
}  # fmt: skip


def hidden_of(shown: Shown, size: tuple[int, int], chosen: str = "", fraction: float = HALF) -> dict[str, np.ndarray]:
    """What each condition hides of a photograph: (height, width) booleans. Those that cannot be had are left out.

    size: (height, width). chosen: the object that is hidden. Raises CapbiasError for outlines of another size.
    """
    person, outline = shown.person, person_mask(shown, *size)
    box = None if person is None else tuple(person[side] for side in BOX)
    thing = object_mask(shown, chosen, *size) if chosen else None
    needs = {"part": [outline], "segment": [outline], "box": [box], "object": [thing], "both": [outline, thing]}
    return {
        condition: region(condition, size, outline, box, thing, fraction)
        for condition, needed in needs.items()
        if all(given is not None for given in needed)
    }


def variants(pixels: np.ndarray, hidden: dict[str, np.ndarray], how: str) -> dict[str, np.ndarray]:
    """The photograph under each condition, the original first."""
    return {ORIGINAL: pixels} | {condition: filled(pixels, own, how) for condition, own in hidden.items()}


def image_captions(frame: pd.DataFrame, image: str) -> list[str]:
    """The captions of an image in a kept set."""
    return list(frame.loc[frame["image_id"] == image, "caption"])


def rescored(scores: CaptionScores, attackers: StoredAttackers, image: str, captions: Sequence[str]) -> list[Rescored]:
    """Captions of an image scored by the attackers of one set, so that those of every condition are scored alike.

    An image of the set is scored by the attacker of the fold that held it out, another one by the mean of all.
    """
    folds = scores.table.loc[scores.table["image_id"] == image, "fold"]
    fold = int(folds.iloc[0]) if len(folds) else None
    merge = scores.run.spec["merge_masks"]
    return [attackers.score(text, scores.attribute, fold, merge) for text in captions]


def upload_folder(workspace: Workspace, collection: str) -> Path:
    """Where photographs that are uploaded to a collection are kept.

    Raises CapbiasError where the collection's photographs are in a folder of the user's.
    """
    name = content_hash(pd.DataFrame({"collection": [collection]}))
    folder = workspace.folder / "pictures" / f"uploaded-{name}"
    held = [item for item in workspace.items(KIND, collection) if item.name == ORIGINALS]
    if held and Path(held[0].details["folder"]) != folder:
        raise CapbiasError(
            f"photographs for the collection {collection!r}, whose photographs are in {held[0].details['folder']}",
            "a collection without photographs, or with uploaded ones",
            "Upload them to another collection, or copy them to that folder.",
        )
    return folder


def keep_uploaded(workspace: Workspace, collection: str, files: Sequence[Path]) -> tuple[Item, dict[str, str]]:
    """Keep photographs that were uploaded, beside earlier ones; the item, and why others were refused.

    files: where they lie; those that can be read are moved. Raises CapbiasError where none can.
    """
    folder = upload_folder(workspace, collection)
    folder.mkdir(parents=True, exist_ok=True)
    refused: dict[str, str] = {}
    for file in files:
        try:
            if file.suffix.lower() not in PICTURES:
                raise CapbiasError(f"{file.name}, which ends in none of {', '.join(sorted(PICTURES))}", "", "")
            read_photograph(file)
            file.replace(folder / file.name)
        except CapbiasError as error:
            refused[file.name] = error.got
    if not any(folder.iterdir()):
        folder.rmdir()
        raise CapbiasError(
            "; ".join(refused.values()) or "no photograph", "at least one JPEG, PNG or WebP file", "Choose others."
        )
    return keep_images(workspace, folder, collection), refused
