"""Which pixels of a photograph are hidden, and what is put in their place (LIC, appendix A.3; DBAC, section 5.2).

    part    = the first round(fraction * |S|) pixels of S, rows from the top, each row from the left
    segment = S
    box     = the pixels that B touches
    object  = O
    both    = S or O

S: the pixels within the person's outline; B: their bounding box; O: those of the object. DBAC does not say which part
of the outline its partial masks hide: here it is the upper one, where faces are. So part <= segment, and every pixel
outside stays as it was. The photograph's file is never written to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.segments import coco_mask, outline_fault, run_length_mask
from capbias_core.vision.overlap import CORNERS, PERSON, iou

HALF = 0.5
MIDDLE_GREY = 128
# The deviation of the Gaussian, as a share of the longer side: a face is a smear, the colours of clothes are left.
BLUR = 1 / 20


def outline_mask(outline: str, height: int, width: int) -> np.ndarray:
    """(height, width) booleans: the pixels within an outline, COCO's `segmentation` as JSON text.

    As COCO's own code draws it. Raises CapbiasError for an outline that is broken, or of another size.
    """
    try:
        found = json.loads(outline)
    except (ValueError, RecursionError):
        found = None
    fault = outline_fault(found, height, width)
    if fault or not isinstance(found, list | dict):
        raise CapbiasError(
            f"The outline cannot be used: {fault}.",
            "Check that segments and photographs are of the same data set, and that no photograph was resized.",
        )
    return coco_mask().decode(_run_lengths(found, height, width)).astype(bool)


def _run_lengths(outline: list | dict, height: int, width: int) -> dict:
    if isinstance(outline, dict):
        return run_length_mask(outline)
    mask = coco_mask()
    return mask.merge(mask.frPyObjects(outline, height, width))


def box_mask(box, height: int, width: int) -> np.ndarray:
    """(height, width) booleans: the pixels that a box (x1, y1, x2, y2) touches; x2 and y2 are exclusive.

    >>> box_mask((0.5, 1, 2, 3), 4, 3).astype(int).tolist()
    [[0, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    found = np.zeros((height, width), dtype=bool)
    left, top = (max(0, int(np.floor(value))) for value in box[:2])
    right, bottom = (max(0, int(np.ceil(value))) for value in box[2:])
    found[top:bottom, left:right] = True
    return found


def part_of(person: np.ndarray, fraction: float) -> np.ndarray:
    """(H, W) booleans: of the person's n pixels the first n * fraction, rounded half up, in reading order.

    >>> part_of(np.array([[0, 1, 1], [1, 1, 1]], dtype=bool), 0.5).astype(int).tolist()
    [[0, 1, 1], [1, 0, 0]]
    """
    if not 0 < fraction <= 1:
        raise CapbiasError(f"The fraction must be above 0 and at most 1, not {fraction:g}.")
    places = np.flatnonzero(person)
    found = np.zeros(person.shape, dtype=bool)
    found.flat[places[: int(np.floor(len(places) * fraction + 0.5))]] = True
    return found


def foreground(rows: pd.DataFrame, chosen=None) -> pd.Series | None:
    """The person in the foreground among the boxes or outlines of one photograph: a row, or None without a person.

    The person of the largest area (of the outline, else of the box; the first of equals); with chosen, the labelled
    person's box (x1, y1, x2, y2), the one whose box overlaps most with it. A crowd is nobody.
    """
    people = people_of(rows)
    if "crowd" in people:
        people = people[~people["crowd"].to_numpy(dtype=bool)]
    if people.empty:
        return None
    score = areas(people) if chosen is None else iou(people[CORNERS].to_numpy(float), np.array([chosen])).ravel()
    return people.iloc[int(np.argmax(score))] if score.max() > 0 else None


def people_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of people."""
    return rows[rows["object"].to_numpy() == PERSON]


def areas(rows: pd.DataFrame) -> np.ndarray:
    """(n,) pixels within each outline; where rows have none (or no size), the area of each box."""
    boxes = rows[CORNERS].to_numpy(dtype=float)
    found = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    if "outline" in rows:
        for place, row in enumerate(rows[["outline", "height", "width"]].itertuples(index=False)):
            if row.height > 0:
                found[place] = coco_mask().area(_run_lengths(json.loads(row.outline), row.height, row.width))
    return found


def region(
    condition: str,
    size: tuple[int, int],
    person_mask: np.ndarray | None = None,
    person_box=None,
    object_mask: np.ndarray | None = None,
    fraction: float = HALF,
) -> np.ndarray:
    """(height, width) booleans: the pixels that a condition hides of one person and the object, as said above.

    size: (height, width). person_box: (x1, y1, x2, y2). What a condition does not need may be left out. Raises
    CapbiasError for an unknown condition, what it needs and does not have, or masks of another size.
    """
    needs = {
        "part": [person_mask],
        "segment": [person_mask],
        "box": [person_box],
        "object": [object_mask],
        "both": [person_mask, object_mask],
    }
    if condition not in needs:
        raise unknown_name("condition", condition, needs)
    if any(given is None for given in needs[condition]):
        raise CapbiasError(f"The condition {condition} needs the outline or box of everything that it hides.")
    if condition == "box":
        return box_mask(person_box, *size)
    for given in needs[condition]:
        _check_size(given, size)
    found = np.logical_or.reduce(needs[condition])
    return part_of(found, fraction) if condition == "part" else found


def _check_size(found: np.ndarray, size: tuple[int, int]) -> None:
    if found.shape != tuple(size):
        raise CapbiasError(
            f"The mask has {found.shape[1]} x {found.shape[0]} pixels, the photograph {size[1]} x {size[0]}.",
            "Check that both are of the same data set.",
        )


def filled(pixels: np.ndarray, hidden: np.ndarray, how: str = "grey") -> np.ndarray:
    """A copy of a photograph, (H, W, 3) uint8, with the pixels of (H, W) booleans filled; the others as they were.

    how: grey (128, 128, 128); mean (of each channel over the whole photograph, rounded); blur (a Gaussian whose
    deviation is a twentieth of the longer side: colours and rough shapes stay); noise (each value uniform in 0..255,
    the same for the same photograph). Raises CapbiasError for another way, or a mask of another size.
    """
    if how not in FILLS:
        raise unknown_name("fill", how, FILLS)
    _check_size(hidden, pixels.shape[:2])
    found = pixels.copy()
    found[hidden] = FILLS[how](pixels)[hidden]
    return found


def _grey(pixels: np.ndarray) -> np.ndarray:
    return np.full_like(pixels, MIDDLE_GREY)


def _mean(pixels: np.ndarray) -> np.ndarray:
    mean = np.rint(pixels.reshape(-1, 3).mean(axis=0)).astype(np.uint8)
    return np.broadcast_to(mean, pixels.shape)


def _blur(pixels: np.ndarray) -> np.ndarray:
    from PIL import Image, ImageFilter

    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(BLUR * max(pixels.shape[:2]))))


def _noise(pixels: np.ndarray) -> np.ndarray:
    """From a digest of the pixels, so that no version of any generator changes it."""
    seed = hashlib.sha256(f"{pixels.shape}".encode() + np.ascontiguousarray(pixels).tobytes()).digest()
    return np.frombuffer(hashlib.shake_256(seed).digest(pixels.size), dtype=np.uint8).reshape(pixels.shape)


# Way to fill -> a photograph to what stands in place of each of its pixels.
FILLS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"grey": _grey, "mean": _mean, "blur": _blur, "noise": _noise}


def dropped_regions(regions: np.ndarray, boxes: np.ndarray, overlap: float = HALF) -> np.ndarray:
    """(n,) booleans: the regions R that a captioner on region features must not see, B being what the boxes cover.

        dropped = |R and B| / |R| > overlap

    regions, boxes: (n, 4) and (m, 4), x1, y1, x2, y2. Appendix A.3 of LIC removes regions whose box "overlaps with the
    ground truth bounding [box] by more than 50 percent", not saying of what: here of the region's own area, so that a
    small region within a large person goes too.
    """
    return covered(regions, boxes) > overlap


def covered(regions: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """(n,) of each region's pixels the share that any of the boxes covers; every pixel that is touched counts.

    regions, boxes: (n, 4) and (m, 4), x1, y1, x2, y2. On a grid of their own edges, so that no size is too large.

    >>> covered(np.array([[0, 0, 4, 2], [3, 0, 5, 1]]), np.array([[0, 0, 2, 2], [1, 0, 3.5, 1]])).tolist()
    [0.75, 0.5]
    """
    edges = np.vstack([regions, boxes])
    edges = np.hstack([np.floor(edges[:, :2]), np.ceil(edges[:, 2:])])
    xs, ys = np.unique(edges[:, ::2]), np.unique(edges[:, 1::2])
    left, right = np.searchsorted(xs, edges[:, 0]), np.searchsorted(xs, edges[:, 2])
    top, bottom = np.searchsorted(ys, edges[:, 1]), np.searchsorted(ys, edges[:, 3])
    pixels = np.outer(np.diff(ys), np.diff(xs))
    cells = [np.s_[top[place] : bottom[place], left[place] : right[place]] for place in range(len(edges))]
    within = np.zeros_like(pixels)
    for cell in cells[len(regions) :]:
        within[cell] = pixels[cell]
    return np.array([within[cell].sum() / pixels[cell].sum() for cell in cells[: len(regions)]])


def most_correlated(objects: pd.Series, departures: Mapping[str, float]) -> str:
    """The name among these whose departure is largest (the first by name of equals), '' if none has one; see
    measures/object_associations.py."""
    known = sorted(set(objects) & set(departures) - {PERSON})
    return max(known, key=lambda name: departures[name], default="")
