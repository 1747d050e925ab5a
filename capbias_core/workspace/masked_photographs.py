"""Folders of masked photographs: made once for the same photographs, marks and rule, under a digest of all of them.

A folder is written under another name and gets its own at the end, so that it is whole or not there. The originals are
only read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from capbias_core.errors import CapbiasError, MissingExtra, need
from capbias_core.load.photographs import read_photograph
from capbias_core.types import Progress
from capbias_core.vision.masking import (
    CORNERS,
    NO_OBJECT,
    OF_OBJECTS,
    MaskRule,
    NothingToMask,
    filled,
    hidden_pixels,
    people_of,
)
from capbias_core.whole_files import private_folder
from capbias_core.workspace.store import MADE, Workspace

if TYPE_CHECKING:
    from PIL import PngImagePlugin

WAY = 1  # raised when a change of the code changes the pixels
THREADS = 2
FORGOTTEN = 3600.0
# PNG without loss; more effort would save a tenth of the bytes and take three times as long.
EFFORT = 1
SOFTWARE, OURS = "Software", "capbias mask"  # the text in a PNG file by which it is known as made here


@dataclass(frozen=True)
class Masking:
    """How a folder is masked. fill: a name in FILLS. people, labelled: content hashes of kept outlines or boxes of what
    photographs show, and of kept boxes of the labelled people ('' for none)."""

    rule: MaskRule
    fill: str
    people: str
    labelled: str = ""

    def digest(self, content: str) -> str:
        """The name of the folder. content: a digest of the photographs."""
        labelled = {"labelled": self.labelled} if self.labelled else {}
        read = {**self.rule.used(), "fill": self.fill, "people": self.people, **labelled}
        text = json.dumps([WAY, content, read], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Masked:
    """A folder of masked photographs. kept: rows with image_id, file and hidden (the share of pixels). left_out: reason
    by image id, of the others. bare: images kept that show no such object: under `object` they are as they were, under
    `both` only the person is hidden."""

    folder: Path
    kept: pd.DataFrame
    left_out: dict[str, str]
    bare: tuple[str, ...] = ()


def masked_folder(
    workspace: Workspace, files: Mapping[str, Path], content: str, masking: Masking, progress: Progress
) -> Masked:
    """The folder of photographs masked in one way; written if it is not there yet.

    files: the originals by image id; content: a digest of their contents. Photographs that cannot be read, are of
    another size than their outlines, or show nothing to hide (see `MaskRule`) are left out. progress may stop the work
    by raising; then nothing is left. Raises CapbiasError if nothing can be masked.
    """
    home = workspace.folder / "pictures"
    folder = home / masking.digest(content)
    if not (folder / MADE).is_file():
        private_folder(home)
        _forget_old(home)
        with _written(folder) as place:
            labelled = labelled_boxes(workspace, masking.labelled) if masking.labelled else {}
            _write_all(place, files, workspace.frame(masking.people), masking, progress, labelled)
    found = json.loads((folder / MADE).read_text(encoding="utf-8"))
    return Masked(folder, pd.DataFrame(found["kept"]), found["left_out"], tuple(found["bare"]))


def labelled_boxes(workspace: Workspace, digest: str) -> dict[str, tuple]:
    """The box (x1, y1, x2, y2) of the labelled person by image id, the first of its image. digest: of kept boxes."""
    people = people_of(workspace.frame(digest)).drop_duplicates("image_id")
    return dict(zip(people["image_id"], people[CORNERS].itertuples(index=False, name=None), strict=True))


@contextmanager
def _written(folder: Path) -> Iterator[Path]:
    """A place to write in; it becomes the folder at the end, and goes if that is not reached."""
    place = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    private_folder(place)
    try:
        yield place
        try:
            place.replace(folder)
        except OSError:  # another process was as quick, with the same content
            if not (folder / MADE).is_file():
                raise
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _forget_old(home: Path) -> None:
    """Remove what processes left that were killed while they wrote."""
    for place in home.glob(".*-*"):
        if place.is_dir() and time.time() - place.stat().st_mtime > FORGOTTEN:
            shutil.rmtree(place, ignore_errors=True)


def _write_all(
    place: Path,
    files: Mapping[str, Path],
    rows: pd.DataFrame,
    masking: Masking,
    progress: Progress,
    labelled: Mapping[str, tuple],
) -> None:
    """Mask every photograph into the place, with what became of each in the file MADE."""
    own = dict(list(rows[rows["image_id"].isin(set(files))].groupby("image_id")))
    nothing, names = rows.iloc[:0], masked_names(files)
    found: dict = {"kept": [], "left_out": {}, "bare": []}

    def one(image: str) -> dict:
        marks, target = own.get(image, nothing), place / names[image]
        return _mask_one(files[image], marks, masking, target, labelled.get(image))

    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for done, (image, outcome) in enumerate(zip(files, pool.map(one, files), strict=True), start=1):
                _note(found, image, names[image], outcome)
                progress(done / len(files), f"masked {done:,} of {len(files):,} photographs")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if len(found["kept"]) == (len(found["bare"]) if masking.rule.condition == "object" else 0):
        raise _nothing(dict.fromkeys(found["bare"], NO_OBJECT) | found["left_out"])
    (place / MADE).write_text(json.dumps(found), encoding="utf-8")


def _note(found: dict, image: str, file: str, outcome: dict) -> None:
    if "reason" in outcome:
        found["left_out"][image] = outcome["reason"]
        return
    found["kept"].append({"image_id": image, "file": file, "hidden": outcome["hidden"]})
    found["bare"] += [image] if outcome["bare"] else []


def _mask_one(file: Path, rows: pd.DataFrame, masking: Masking, target: Path, labelled=None) -> dict:
    """Mask one photograph into a PNG; the share hidden, or the reason why there is none."""
    rule = masking.rule
    try:
        pixels = read_photograph(file)
        hidden = hidden_pixels(rows, pixels.shape[:2], rule, labelled)
    except NothingToMask as error:
        return {"reason": str(error)}
    except MissingExtra:
        raise
    except CapbiasError as error:
        return {"reason": error.message}
    bare = rule.condition in OF_OBJECTS and not rule.object_on(rows)
    if not hidden.any() and not bare:
        return {"reason": "with an outline or box in which there is no pixel"}
    from PIL import Image

    Image.fromarray(filled(pixels, hidden, masking.fill)).save(target, compress_level=EFFORT, pnginfo=_signed())
    return {"hidden": round(float(hidden.mean()), 6), "bare": bare}


def _signed() -> PngImagePlugin.PngInfo:
    from PIL import PngImagePlugin

    text = PngImagePlugin.PngInfo()
    text.add_text(SOFTWARE, OURS)
    return text


def made_here(file: Path) -> bool:
    """Whether a file is a masked photograph that this program wrote."""
    need("Telling masked photographs from others", "PIL")
    from PIL import Image

    try:
        with Image.open(file) as image:
            return image.info.get(SOFTWARE) == OURS
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return False


def masked_names(files: Mapping[str, Path]) -> dict[str, str]:
    """The name of each masked photograph: that of its original, as PNG; with a number where two have one name."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for image, file in files.items():
        number, name = 1, file.stem
        while name.lower() in taken:
            number += 1
            name = f"{file.stem}-{number}"
        taken.add(name.lower())
        names[image] = f"{name}.png"
    return names


def _nothing(left_out: Mapping[str, str]) -> CapbiasError:
    first = next(iter(left_out.items()), ("", "there is none"))
    return CapbiasError(
        f"None of {len(left_out):,} photographs can be masked ({first[0]}: {first[1].rstrip('.')}).",
        "Check that the photographs and the outlines or boxes are of the same data set.",
    )
