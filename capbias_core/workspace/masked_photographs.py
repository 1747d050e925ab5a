"""Folders of masked photographs, named by a digest of the photographs, the outlines or boxes, and the rule.

A folder gets its name when it is complete. The originals are only read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph
from capbias_core.types import Progress
from capbias_core.vision.masking import NO_OBJECT, OF_OBJECTS, MaskRule, NothingToMask, filled, hidden_pixels
from capbias_core.whole_files import HEX, private_folder
from capbias_core.workspace.store import MADE

VERSION = 1  # raised when a change of the code changes the pixels
THREADS = 2
ABANDONED = 3600.0  # seconds
COMPRESSION = 1  # more would save a tenth of the bytes of a PNG file and take three times as long


@dataclass(frozen=True)
class Masked:
    """A folder of masked photographs."""

    folder: Path
    kept: pd.DataFrame  # image_id, file and hidden (the share of pixels)
    left_out: dict[str, str]  # reason by ID of other images
    # Kept images without such an object: unchanged under `object`, with only the person hidden under `both`.
    bare: tuple[str, ...] = ()


def masked_folder(
    home: Path,
    table: Callable[[str], pd.DataFrame],
    files: Mapping[str, Path],
    content: str,
    rule: MaskRule,
    people: str,
    progress: Progress,
) -> Masked:
    """The folder of photographs masked in one way; written if it does not exist.

    home: the folder for it. table: content hash to stored outlines or boxes; people: the hash of those. files: the
    originals by image ID. content: a digest of their contents. Photographs that cannot be read, differ in size from
    their outlines, or show nothing to hide (see `MaskRule`) are left out. progress may stop the work by raising; then
    nothing is left. Raises CapbiasError if nothing can be masked.
    """
    used = rule.used() | {"fill": "grey", "people": people}  # folders of versions with more fills stay
    used |= {} if rule.condition == "object" else {"whose": "foreground"}
    text = json.dumps([VERSION, content, used], sort_keys=True)
    folder = home / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not (folder / MADE).is_file():
        private_folder(home)
        for left in home.glob(f".{HEX * 16}-{HEX * 32}"):  # by processes that were killed while they wrote
            if left.is_dir() and time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        target = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
        private_folder(target)
        try:
            rows = table(people)
            by_image = dict(list(rows[rows["image_id"].isin(set(files))].groupby("image_id")))
            nothing = rows.iloc[:0]
            made: dict = {"kept": [], "left_out": {}, "bare": []}

            def mask(image: str) -> tuple[str, dict]:
                marks = by_image.get(image, nothing)
                return image, _mask_one(files[image], marks, rule, target / f"{image}.png")

            with ThreadPoolExecutor(THREADS) as pool:
                try:
                    for done, (image, outcome) in enumerate(pool.map(mask, files), start=1):
                        if "reason" in outcome:
                            made["left_out"][image] = outcome["reason"]
                        else:
                            made["kept"].append(
                                {"image_id": image, "file": f"{image}.png", "hidden": outcome["hidden"]}
                            )
                            made["bare"] += [image] * outcome["bare"]
                        progress(done / len(files), f"masked {done:,} of {len(files):,} photographs")
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            if len(made["kept"]) == (len(made["bare"]) if rule.condition == "object" else 0):
                reasons = dict.fromkeys(made["bare"], NO_OBJECT) | made["left_out"]
                image, reason = next(iter(reasons.items()), ("", "there is none"))
                raise CapbiasError(
                    f"None of {len(reasons):,} photographs can be masked ({image}: {reason.rstrip('.')}).",
                    "Check that the photographs and the outlines or boxes are of the same data set.",
                )
            (target / MADE).write_text(json.dumps(made), encoding="utf-8")
            try:
                target.replace(folder)
            except OSError:  # another process was faster, with the same content
                if not (folder / MADE).is_file():
                    raise
        finally:
            shutil.rmtree(target, ignore_errors=True)
    made = json.loads((folder / MADE).read_text(encoding="utf-8"))
    return Masked(folder, pd.DataFrame(made["kept"]), made["left_out"], tuple(made["bare"]))


def _mask_one(file: Path, rows: pd.DataFrame, rule: MaskRule, target: Path) -> dict:
    """Mask one photograph into a PNG; the share hidden, or the reason if nothing is."""
    try:
        pixels = read_photograph(file)
        hidden = hidden_pixels(rows, pixels.shape[:2], rule)
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

    Image.fromarray(filled(pixels, hidden)).save(target, compress_level=COMPRESSION)
    return {"hidden": round(float(hidden.mean()), 6), "bare": bare}
