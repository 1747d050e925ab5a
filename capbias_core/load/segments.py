"""Outlines of objects as COCO writes them: polygons, and masks as run lengths.

An outline is kept as the JSON text of COCO's `segmentation`: a list of polygons `[x1, y1, x2, y2, ...]`, or
`{"size": [height, width], "counts": ...}` with run lengths down the columns, as numbers or in COCO's compressed text.
"""

from __future__ import annotations

import json
import math
from typing import Any

from capbias_core.errors import need
from capbias_core.load.ids import described
from capbias_core.load.parsed import literal
from capbias_core.load.photographs import MOST_PIXELS

# How far a polygon may reach over the edge of its image, as a share of the longer side: people draw a little too far.
OVER_THE_EDGE = 0.05
CORNERS = 3


def read_outline(given: object, height: int = 0, width: int = 0) -> tuple[Any, str]:
    """An outline and its JSON text, from COCO's `segmentation` as files have it: also as text, and a mask in a list.
    height, width: of its image, for a mask without a size. Raises ValueError with the fault."""
    if given is None:
        raise ValueError("there is no outline (segmentation)")
    outline: Any = _from_text(given) if isinstance(given, str) else given
    plain: Any = outline
    if isinstance(plain, list) and plain and all(type(value) in (int, float) for value in plain):
        plain = [plain]
    if isinstance(plain, list) and plain and all(isinstance(part, dict) for part in plain):
        masks = [_plain_mask(part, height, width) for part in plain]
        plain = masks[0]
        if len(masks) > 1:  # one mask for the parts of an object
            if fault := next(filter(None, (outline_fault(mask, 0, 0) for mask in masks)), ""):
                raise ValueError(fault)
            if any(mask["size"] != plain["size"] for mask in masks):
                raise ValueError("run lengths of several sizes in one outline")
            merged = coco_mask().merge([run_length_mask(mask) for mask in masks])
            plain = {"size": plain["size"], "counts": merged["counts"].decode()}
    elif isinstance(plain, dict):
        plain = _plain_mask(plain, height, width)
    return plain, given if isinstance(given, str) and plain is outline else json.dumps(plain)


def _from_text(text: str) -> Any:
    if (value := literal(text)) is None:
        raise ValueError("the outline is neither polygons nor run lengths")
    return value


def _plain_mask(mask: dict, height: int, width: int) -> dict:
    """A mask with its size; compressed run lengths become text if they are bytes, or bytes as Python prints them."""
    counts = mask.get("counts")
    if isinstance(counts, str) and counts.startswith(("b'", 'b"')):
        counts = _from_text(counts)
    if isinstance(counts, bytes):
        counts = counts.decode("ascii", "replace")
    plain = mask if counts is mask.get("counts") else {**mask, "counts": counts}
    return {"size": [height, width], **plain} if height and "size" not in mask else plain


def outline_fault(outline: object, height: int, width: int) -> str:
    """Why an outline cannot be used for an image of this size (0 if unknown), or ''.

    >>> outline_fault([[0, 0, 4, 0, 4, 4]], 10, 10), outline_fault([[0, 0, 90, 0, 4, 4]], 10, 10)
    ('', 'a point of the outline is not on the image of 10 x 10 pixels')
    """
    if isinstance(outline, dict):
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
        pixels = size[0] * size[1]
        return "" if sum(runs) == pixels else f"run lengths for {sum(runs):,} pixels where the outline has {pixels:,}"
    if not isinstance(outline, list):
        return f"the outline is {described(outline)}, neither polygons nor run lengths"
    sides, reach = (width, height) if height else (MOST_PIXELS, MOST_PIXELS), OVER_THE_EDGE * max(width, height)
    for polygon in outline:
        if not isinstance(polygon, list) or len(polygon) < 2 * CORNERS or len(polygon) % 2:
            return f"a polygon is not a list of {CORNERS} or more points (x, y)"
        if not set(map(type, polygon)) <= {int, float}:
            return "a polygon holds something else than numbers"
        for values, side in zip((polygon[::2], polygon[1::2]), sides, strict=True):
            if min(values) < -reach or max(values) > side + reach or not math.isfinite(sum(values)):
                size = f"{width} x {height}" if height else "at most 64 million"
                return f"a point of the outline is not on the image of {size} pixels"
    return "" if outline else "the outline is empty"


def run_lengths(counts: object) -> list[int] | None:
    """Run lengths, as numbers or in COCO's compressed text, as whole numbers of 0 or more; None for anything else.

    Compressed, a character from "0" on has six bits: five of a number, lowest first, and one if the number goes on.
    From the fourth number on, it is the difference to the last but one.

    >>> run_lengths("132"), run_lengths([1, 3, 2]), run_lengths("1 3")
    ([1, 3, 2], [1, 3, 2], None)
    """
    runs: list = counts if isinstance(counts, list) else []
    value = shift = 0
    for character in counts if isinstance(counts, str) else "":
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 30:
            return None
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (1 << shift) if bits & 16 else 0
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    if shift or not isinstance(counts, list | str) or not all(type(run) is int and run >= 0 for run in runs):
        return None
    return runs


def extent(outline: list | dict) -> tuple[float, float, float, float]:
    """The box around an outline: x1, y1, x2, y2."""
    if isinstance(outline, dict):
        x, y, width, height = (float(value) for value in coco_mask().toBbox(run_length_mask(outline)))
        return x, y, x + width, y + height
    xs, ys = ([value for polygon in outline for value in polygon[axis::2]] for axis in (0, 1))
    return min(xs), min(ys), max(xs), max(ys)


def run_length_mask(outline: dict) -> dict:
    """A mask as run lengths in the form in which pycocotools reads it."""
    return coco_mask().frPyObjects({**outline, "counts": run_lengths(outline["counts"])}, *outline["size"])


def coco_mask() -> Any:
    """The module pycocotools.mask. Raises MissingExtra if it is not installed."""
    need("Reading outlines as run lengths", "pycocotools")
    from pycocotools import mask

    return mask
