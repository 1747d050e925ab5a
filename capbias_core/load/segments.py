"""Outlines of what images show, from a COCO instances file: polygons, and masks as run lengths.

An outline is kept as the JSON text of COCO's `segmentation`: a list of polygons `[x1, y1, x2, y2, ...]`, or
`{"size": [height, width], "counts": ...}` with run lengths down the columns, as numbers or in COCO's compressed text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, need
from capbias_core.load.coco import outlined_instances_of
from capbias_core.load.ids import described, normalise_image_id
from capbias_core.load.objects import annotation_fault, category_names
from capbias_core.load.parsed import Parsed
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.load.rows import RowErrors, merged, nothing_usable
from capbias_core.load.tables import known_category
from capbias_core.types import SEGMENT_COLUMNS, Table

# How far a polygon may reach over the edge of its image, as a share of the longer side: people draw a little too far.
OVER_THE_EDGE = 0.05
CORNERS = 3


def read_segments(path: Path, images: Collection[str] | None = None) -> pd.DataFrame:
    """The outlines of `segment_table`, without what is said about the others."""
    return segment_table(path, images).frame


def segment_table(path: Path, images: Collection[str] | None = None) -> Table:
    """The outlines in a COCO instances file, of all images or of these.

    Annotations without an outline, or with one that is broken or of another size than the image, are faults. Raises
    CapbiasError for another file, or one without a usable outline.
    """
    path = Path(path)
    content = outlined_instances_of(path)
    records, names = content["annotations"], category_names(path, content["categories"])
    sizes, faults = _sizes(content["images"]), RowErrors(path.name, "record")
    rows, others = [], 0
    for number, record in enumerate(records, start=1):
        try:
            image = normalise_image_id(record["image_id"])
            if images is not None and image not in images:
                others += 1
                continue
            rows.append(_row(image, names[record["category_id"]], record, sizes.get(image, (0, 0))))
        except _BadOutline as error:
            faults.add(number, str(error))
        except (ValueError, KeyError, TypeError) as error:
            faults.add(number, annotation_fault(record, error))
    if not rows:
        note = f"{others:,} are of images that the collection does not have" if others else ""
        raise nothing_usable(path.name, len(records), tuple(faults.first), note)
    frame = pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))
    return Table(frame, len(records), others=others, problems=tuple(faults.first), problem_count=faults.count)


def segments(parsed: Parsed, wanted: Collection[str] | None = None) -> Table:
    """The outlines in a COCO instances file (SEGMENT_COLUMNS), of all images or of those wanted.

    Annotations without an outline, or with one that is broken or of another size than the image, are counted as
    problems. Raises CapbiasError for another file, or one without a usable outline.
    """
    if not {"image_id", "segmentation", "category"} <= set(parsed.columns):
        raise CapbiasError(
            f"{parsed.file} ({parsed.title}) holds no outlines.",
            'Load COCO instances: JSON with "images", "annotations" and "categories".',
        )
    faults = RowErrors(parsed.file, parsed.faults.unit)
    names = ("image_id", "category_id", "category", "iscrowd", "bbox", "segmentation")
    rows, others = [], 0
    for number, (raw_id, category, name, crowd, box, given) in zip(
        parsed.numbers, zip(*(parsed.columns[name] for name in names), strict=True), strict=True
    ):
        try:
            image = normalise_image_id(raw_id)
            if wanted is not None and image not in wanted:
                others += 1
                continue
            record = {"segmentation": given, "bbox": box, "iscrowd": crowd}
            rows.append(_row(image, known_category(category, name), record, parsed.sizes.get(image, (0, 0))))
        except (_BadOutline, ValueError) as error:
            faults.add(number, str(error))
    problems, count = merged(parsed.faults, faults)
    if not rows:
        note = f"{others:,} are of images that the collection does not have" if others else ""
        raise nothing_usable(parsed.file, parsed.rows, problems, note)
    frame = pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))
    return Table(frame, parsed.rows, others=others, problems=problems, problem_count=count)


class _BadOutline(Exception):
    """What is wrong with the outline of an annotation."""


def _sizes(images: object) -> dict[str, tuple[int, int]]:
    """(height, width) by image id, where the file says them."""
    sizes = {}
    for record in images if isinstance(images, list) else ():
        try:
            height, width = int(record["height"]), int(record["width"])
            fine = height > 0 and width > 0 and height * width <= MOST_PIXELS
            sizes[normalise_image_id(record["id"])] = (height, width) if fine else (0, 0)
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    return sizes


def _row(image: str, name: str, record: dict, size: tuple[int, int]) -> tuple:
    given = record.get("segmentation")
    if given is None:
        raise _BadOutline("there is no outline (segmentation)")
    text = given if isinstance(given, str) else json.dumps(given)
    outline = _parsed(text)
    if fault := outline_fault(outline, *size):
        raise _BadOutline(fault)
    if size == (0, 0) and isinstance(outline, dict):
        size = tuple(outline["size"])
    box = _given_box(record.get("bbox")) or _extent(outline)
    return image, name, bool(record.get("iscrowd")), *size, *box, text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _BadOutline("the outline is neither polygons nor run lengths") from None


def outline_fault(outline: object, height: int, width: int) -> str:
    """What makes an outline unusable for an image of this size (0 where the size is not known), or ''.

    >>> outline_fault([[0, 0, 4, 0, 4, 4]], 10, 10), outline_fault([[0, 0, 90, 0, 4, 4]], 10, 10)
    ('', 'a point of the outline is not on the image of 10 x 10 pixels')
    """
    if isinstance(outline, list):
        faults = (_polygon_fault(polygon, height, width) for polygon in outline)
        return next(filter(None, faults), "") if outline else "the outline is empty"
    if isinstance(outline, dict):
        return _runs_fault(outline, height, width)
    return f"the outline is {described(outline)}, neither polygons nor run lengths"


def _polygon_fault(polygon: object, height: int, width: int) -> str:
    if not isinstance(polygon, list) or len(polygon) < 2 * CORNERS or len(polygon) % 2:
        return f"a polygon that is no list of {CORNERS} or more points (x, y)"
    if not set(map(type, polygon)) <= {int, float}:
        return "a polygon with something else than numbers"
    sides = (width, height) if height else (MOST_PIXELS, MOST_PIXELS)
    reach = OVER_THE_EDGE * max(width, height)
    for values, side in zip((polygon[::2], polygon[1::2]), sides, strict=True):
        if min(values) < -reach or max(values) > side + reach or not math.isfinite(sum(values)):
            size = f"{width} x {height}" if height else "at most 64 million"
            return f"a point of the outline is not on the image of {size} pixels"
    return ""


def _runs_fault(outline: dict, height: int, width: int) -> str:
    size = outline.get("size")
    if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int and side > 0 for side in size):
        return "run lengths without their size [height, width]"
    if height and tuple(size) != (height, width):
        return f"an outline of {size[1]} x {size[0]} pixels on an image of {width} x {height}"
    if size[0] * size[1] > MOST_PIXELS:
        return f"an outline of {size[1]} x {size[0]} pixels, more than {MOST_PIXELS // 1_000_000} million"
    runs = run_lengths(outline.get("counts"))
    if runs is None:
        return "run lengths that are neither whole numbers nor COCO's compressed text"
    if sum(runs) != size[0] * size[1]:
        return f"run lengths for {sum(runs):,} pixels where the outline has {size[0] * size[1]:,}"
    return ""


def run_lengths(counts: object) -> list[int] | None:
    """Run lengths, as numbers or in COCO's compressed text, as whole numbers of 0 or more; None for anything else.

    >>> run_lengths("132"), run_lengths([1, 3, 2]), run_lengths("1 3")
    ([1, 3, 2], [1, 3, 2], None)
    """
    runs = _unpacked(counts) if isinstance(counts, str) else counts
    if not isinstance(runs, list) or not all(type(run) is int and run >= 0 for run in runs):
        return None
    return runs


def _unpacked(text: str) -> list[int] | None:
    """COCO's compressed run lengths: six bits a character from "0" on, five of them of the number, lowest first, one
    that says whether it goes on; from the fourth number on the difference to the last but one."""
    runs: list[int] = []
    value, shift = 0, 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 30:
            return None
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        value -= (1 << shift) if bits & 16 else 0
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value, shift = 0, 0
    return None if shift else runs


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _given_box(box: object) -> tuple[float, float, float, float] | None:
    """COCO's [x, y, width, height] as x1, y1, x2, y2; None where it is none."""
    if not isinstance(box, list) or len(box) != 4 or not all(map(_number, box)) or min(box[2:]) <= 0:
        return None
    return box[0], box[1], box[0] + box[2], box[1] + box[3]


def _extent(outline: list | dict) -> tuple[float, float, float, float]:
    """The box around an outline."""
    if isinstance(outline, dict):
        x, y, width, height = (float(value) for value in coco_mask().toBbox(run_length_mask(outline)))
        return x, y, x + width, y + height
    xs = [x for polygon in outline for x in polygon[::2]]
    ys = [y for polygon in outline for y in polygon[1::2]]
    return min(xs), min(ys), max(xs), max(ys)


def run_length_mask(outline: dict) -> dict:
    """A mask as run lengths in the form in which pycocotools reads it."""
    return coco_mask().frPyObjects({**outline, "counts": run_lengths(outline["counts"])}, *outline["size"])


def coco_mask() -> Any:
    """The module pycocotools.mask. Raises MissingExtra if it is not installed."""
    need("Reading outlines as run lengths", "pycocotools")
    from pycocotools import mask

    return mask
