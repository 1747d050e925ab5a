"""One photograph: what it shows, what each condition hides of it, its captions and their scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from capbias_core.analysis.read import CaptionScores
from capbias_core.attackers.what_if import Rescored, StoredAttackers
from capbias_core.errors import CapbiasError
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.photographs import PICTURES, check_photograph
from capbias_core.load.report import PHOTOGRAPHS
from capbias_core.types import CONDITIONS
from capbias_core.vision.masking import (
    HALF,
    OF_OUTLINES,
    PERSON,
    MaskRule,
    NothingToMask,
    box_mask,
    filled,
    hidden_pixels,
    outline_mask,
)
from capbias_core.whole_files import private_folder
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import MADE_BY, ORIGINALS, keep_images
from capbias_core.workspace.store import UPLOADED, Item, Workspace, content_hash

# The conditions that can be made here; `person` is a person mask from another source.
STRIP = tuple(condition for condition in CONDITIONS if condition != "person")
BOX = ["x1", "y1", "x2", "y2"]


def photographs_of(workspace: Workspace, collection: str, name: str = ORIGINALS) -> dict[str, Path]:
    """The file of each photograph of a folder of a collection, by image id; empty where there is no such folder."""
    found = [item for item in workspace.items(PHOTOGRAPHS, collection) if item.name == name]
    if not found:
        return {}
    folder, frame = Path(found[0].details["folder"]), workspace.frame(found[0].hash)
    return {image: folder / file for image, file in zip(frame["image_id"], frame["file"], strict=True)}


def masked_folders(
    workspace: Workspace, collection: str, sets: Mapping[str, Item] = MappingProxyType({})
) -> dict[str, Item]:
    """A kept folder of masked photographs of each condition: the one that its caption set was made from, where that is
    known and still here, else the newest. sets: caption sets by condition."""
    kept = workspace.items(PHOTOGRAPHS, collection)
    found = {item.details.get("condition", ORIGINAL): item for item in kept}
    for condition, item in sets.items():
        read = item.details.get(MADE_BY, {}).get("photographs", {})
        same = [own for own in kept if (own.name, own.hash) == (read.get("name"), read.get("item"))]
        found |= {condition: same[0]} if same else {}
    return {condition: found[condition] for condition in CONDITIONS if condition in found and condition != ORIGINAL}


def objects_on(rows: pd.DataFrame, departures: Mapping[str, float]) -> list[str]:
    """The names of what is marked on a photograph but people: the largest departure first, then the largest in size."""
    sizes = ((rows["x2"] - rows["x1"]) * (rows["y2"] - rows["y1"])).groupby(rows["object"]).sum()
    names = [name for name in sizes.index if name != PERSON]
    return sorted(names, key=lambda name: (-departures.get(name, 0.0), -sizes[name]))


def mask_of(rows: pd.DataFrame, height: int, width: int) -> np.ndarray:
    """(height, width) booleans: what all rows cover, by their outlines, else by their boxes."""
    found = np.zeros((height, width), dtype=bool)
    for row in rows.to_dict("records"):
        box = [row[side] for side in BOX]
        found |= outline_mask(row["outline"], height, width) if "outline" in row else box_mask(box, height, width)
    return found


def hidden_of(
    rows: pd.DataFrame, size: tuple[int, int], chosen: str = "", fraction: float = HALF
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """What each condition hides of a photograph, (height, width) booleans, and why others hide nothing.

    rows: its outlines or boxes. size: (height, width). chosen: the object that is hidden. Raises CapbiasError for
    outlines of another size.
    """
    hidden: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    for condition in STRIP[1:]:
        if condition in OF_OUTLINES and "outline" not in rows:
            reasons[condition] = "its people have boxes, and no outlines" if len(rows) else "nothing is marked on it"
            continue
        try:
            only = condition == "object"  # a photograph that stays as it is would be no variant of it
            rule = MaskRule(condition, fraction, departures={chosen: 1.0}, only_masked=only)
            hidden[condition] = hidden_pixels(rows, size, rule)
        except NothingToMask:
            reasons[condition] = "no such object is marked on it" if condition == "object" else "nobody is marked on it"
    return hidden, reasons


def variants(pixels: np.ndarray, hidden: dict[str, np.ndarray], fill: str) -> dict[str, np.ndarray]:
    """The photograph under each condition, the original first."""
    return {ORIGINAL: pixels} | {condition: filled(pixels, own, fill) for condition, own in hidden.items()}


def image_captions(frame: pd.DataFrame, image: str) -> list[str]:
    """The captions of an image in a kept set."""
    return list(frame.loc[frame["image_id"] == image, "caption"])


def rescored(scores: CaptionScores, attackers: StoredAttackers, image: str, captions: Sequence[str]) -> list[Rescored]:
    """Captions of an image scored by the attackers of one set, so that those of every condition are scored alike.

    An image of the set is scored by the attacker of the fold that held it out, another one by the mean of all.
    """
    folds = scores.table.loc[scores.table["image_id"] == image, "fold"]
    fold = int(folds.iloc[0]) if len(folds) else None
    merge = scores.run.spec.merge_masks
    return [attackers.score(text, scores.attribute, fold, merge) for text in captions]


def upload_folder(workspace: Workspace, collection: str) -> Path:
    """Where photographs that are uploaded to a collection are kept.

    Raises CapbiasError where the collection's photographs are in a folder of the user's.
    """
    name = content_hash(pd.DataFrame({"collection": [collection]}))
    folder = (workspace.folder / "pictures" / f"{UPLOADED}{name}").resolve()
    held = [item for item in workspace.items(PHOTOGRAPHS, collection) if item.name == ORIGINALS]
    if held and Path(held[0].details["folder"]) != folder:
        raise CapbiasError(
            f"The photographs of the collection {collection!r} are in {held[0].details['folder']}.",
            "Copy more to that folder, or upload them to another collection.",
        )
    return folder


def keep_uploaded(
    workspace: Workspace, collection: str, files: Sequence[Path], tried: Collection[Path] = ()
) -> tuple[Item, dict[str, str]]:
    """Keep photographs that were uploaded, beside earlier ones; the item, and why others were refused.

    files: where they lie; those that can be read are moved. One of the same name is replaced; one of another name for
    an image that is there already is refused. tried: files in which `photograph_fault` found nothing.
    Raises CapbiasError where none can be kept.
    """
    folder = upload_folder(workspace, collection)
    private_folder(folder)
    refused: dict[str, str] = {}
    for file in files:
        try:
            if file not in tried and (fault := photograph_fault(file)):
                raise fault
            _check_other_name(folder, file)
            file.replace(folder / file.name)
        except CapbiasError as error:
            refused[file.name] = error.message
    if not any(folder.iterdir()):
        folder.rmdir()
        raise CapbiasError(" ".join(refused.values()) or "No photograph was uploaded.")
    return keep_images(workspace, folder, collection), refused


def photograph_fault(file: Path) -> CapbiasError | None:
    """Why an uploaded file cannot be kept as a photograph; None where it can."""
    if file.suffix.lower() not in PICTURES:
        ends = ", ".join(sorted(PICTURES))
        return CapbiasError(f"{file.name} is not a photograph: its name ends in none of {ends}.")
    try:
        within_limits(file.name, check_photograph, file)
    except CapbiasError as error:
        return error
    return None


def _check_other_name(folder: Path, file: Path) -> None:
    """Raises CapbiasError where the folder has a photograph of the same image under another name."""
    image = normalise_image_id(file.name)
    for path in folder.iterdir():
        if path.name != file.name and normalise_image_id(path.name) == image:
            raise CapbiasError(
                f"{file.name} is a photograph of the image {image}, as {path.name} already is.",
                "Rename it, or upload it under that name.",
            )
