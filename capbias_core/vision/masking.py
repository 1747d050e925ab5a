"""Which pixels of a photograph are hidden, in grey (LIC, appendix A.3; DBAC, section 5.2).

    part    = the first round(fraction * |S|) pixels of S, rows from the top, each row from the left
    segment = S
    box     = the pixels that B touches
    object  = O
    both    = S or O

S: the pixels within the person's outline; B: their bounding box; O: those of the object. DBAC does not say which part
of the outline its partial masks hide: here it is the upper one, where faces are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, need
from capbias_core.load.tables import outline_fault

CORNERS = ["x1", "y1", "x2", "y2"]
PERSON = "person"
OF_OUTLINES = ("part", "segment")
OF_OBJECTS = ("object", "both")
NO_PERSON = "without a person"
NO_OBJECT = "without one of the correlated objects"
NOTHING_MARKED = "without an outline or box of anything"
HALF = 0.5
MIDDLE_GREY = 128
# How far a box may reach over the edge, as a share of the longer side; beyond, it is of a photograph of another size.
OVER_THE_EDGE = 0.05


@dataclass(frozen=True)
class MaskRule:
    """What is hidden of a photograph. One without such an object stays as it is under `object`, and has only the person
    hidden under `both`: LIC's masked sets hold all 10,780 images, so its Table 4 compares LIC_M over the same ones.
    """

    condition: str  # as above
    fraction: float = HALF  # part: the share of the outline that is hidden
    departures: Mapping[str, float] = field(default_factory=dict)  # objects to hide; the largest on a photograph counts

    def used(self) -> dict:
        """The choices that this condition reads, by name.

        >>> MaskRule("object", departures={"tie": 0.2}).used()
        {'condition': 'object', 'departures': {'tie': 0.2}}
        """
        used: dict = {"condition": self.condition}
        if self.condition == "part":
            used["fraction"] = self.fraction
        if self.condition in OF_OBJECTS:
            used["departures"] = dict(self.departures)
        return used

    def object_on(self, rows: pd.DataFrame) -> str:
        """The object that is hidden of a photograph, '' if it shows none. rows: its outlines or boxes."""
        known = sorted((set(rows["object"]) & set(self.departures)) - {PERSON}) if self.condition in OF_OBJECTS else []
        return max(known, key=lambda name: self.departures[name], default="")


class NothingToMask(Exception):
    """Why a photograph is left out: it shows no person, or nothing is marked on it."""


def hidden_pixels(rows: pd.DataFrame, size: tuple[int, int], rule: MaskRule) -> np.ndarray:
    """(height, width) booleans: what is hidden of a photograph of this size.

    rows: its outlines (SEGMENT_COLUMNS) or boxes (BOX_COLUMNS); under `object` and `both` boxes stand for outlines. A
    photograph of which nothing is marked is left out: nobody knows what it shows. Raises NothingToMask, CapbiasError.
    """
    check_size(rows, size)
    hidden = np.zeros(size, dtype=bool)
    if rule.condition in OF_OBJECTS:
        name = rule.object_on(rows)
        if rows.empty:
            raise NothingToMask(NOTHING_MARKED)
        hidden |= marked_pixels(rows[rows["object"] == name], *size)
    if rule.condition != "object":
        person = foreground(rows)
        if person is None:
            raise NothingToMask(NOTHING_MARKED if rows.empty else NO_PERSON)
        row = person.to_frame().T
        drawn = marked_pixels(row.drop(columns="outline", errors="ignore") if rule.condition == "box" else row, *size)
        hidden |= part_of(drawn, rule.fraction) if rule.condition == "part" else drawn
    return hidden


def check_size(rows: pd.DataFrame, size: tuple[int, int]) -> None:
    """Raises CapbiasError for outlines or boxes of a photograph of another size than (height, width)."""
    if "height" in rows:
        known = rows.loc[rows["height"] > 0, ["height", "width"]].drop_duplicates().itertuples(index=False)
        other = next(
            (f"outlines on {row.width} x {row.height} pixels" for row in known if tuple(row) != tuple(size)), ""
        )
    else:
        right, bottom, reach = rows["x2"].max(), rows["y2"].max(), OVER_THE_EDGE * max(size)
        beyond = right > size[1] + reach or bottom > size[0] + reach
        other = f"boxes that reach to x = {right:.0f} and y = {bottom:.0f}" if beyond else ""
    if other:
        raise CapbiasError(
            f"A photograph of {size[1]} x {size[0]} pixels has {other}.",
            "Check that both are of the same data set, and that the photograph was not resized.",
        )


def marked_pixels(rows: pd.DataFrame, height: int, width: int) -> np.ndarray:
    """(height, width) booleans: the pixels of any of these rows, by their outlines, else by their boxes."""
    marked = np.zeros((height, width), dtype=bool)
    for row in rows.to_dict("records"):
        if "outline" in row:
            marked |= outline_mask(row["outline"], height, width)
        else:
            marked |= box_mask([row[name] for name in CORNERS], height, width)
    return marked


def outline_mask(outline: str, height: int, width: int) -> np.ndarray:
    """(height, width) booleans: the pixels within an outline, COCO's `segmentation` as JSON text. As COCO's own code
    draws it. Raises CapbiasError for an outline that is broken, or of another size."""
    try:
        parsed = json.loads(outline)
    except (ValueError, RecursionError):
        parsed = None
    fault = outline_fault(parsed, height, width)
    if fault or not isinstance(parsed, list | dict):
        raise CapbiasError(
            f"The outline cannot be used: {fault}.",
            "Check that segments and photographs are of the same data set, and that no photograph was resized.",
        )
    return coco_mask().decode(_run_lengths(parsed, height, width)).astype(bool)


def _run_lengths(outline: list | dict, height: int, width: int) -> dict:
    """An outline in the form in which pycocotools reads it."""
    if isinstance(outline, dict) and isinstance(outline["counts"], str):
        return outline
    mask = coco_mask()
    made = mask.frPyObjects(outline, height, width)
    return made if isinstance(outline, dict) else mask.merge(made)


def coco_mask() -> Any:
    """The module pycocotools.mask. Raises MissingExtra if it is not installed."""
    need("Drawing outlines", "pycocotools")
    from pycocotools import mask

    return mask


def box_mask(box, height: int, width: int) -> np.ndarray:
    """(height, width) booleans: the pixels that a box (x1, y1, x2, y2) touches; x2 and y2 are exclusive.

    >>> box_mask((0.5, 1, 2, 3), 4, 3).astype(int).tolist()
    [[0, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    mask = np.zeros((height, width), dtype=bool)
    left, top = (max(0, int(np.floor(value))) for value in box[:2])
    right, bottom = (max(0, int(np.ceil(value))) for value in box[2:])
    mask[top:bottom, left:right] = True
    return mask


def part_of(person: np.ndarray, fraction: float) -> np.ndarray:
    """(H, W) booleans: of the person's n pixels the first n * fraction, rounded half up, in reading order.

    >>> part_of(np.array([[0, 1, 1], [1, 1, 1]], dtype=bool), 0.5).astype(int).tolist()
    [[0, 1, 1], [1, 0, 0]]
    """
    pixels = np.flatnonzero(person)
    part = np.zeros(person.shape, dtype=bool)
    part.flat[pixels[: int(np.floor(len(pixels) * fraction + 0.5))]] = True
    return part


def people_of(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["object"].to_numpy() == PERSON]


def foreground(rows: pd.DataFrame) -> pd.Series | None:
    """The row of the person in the foreground of one photograph, None without a person: that of the largest area (of
    the outline, else of the box; the first of equals). A crowd is nobody."""
    people = people_of(rows)
    if "crowd" in people:
        people = people[~people["crowd"].to_numpy(dtype=bool)]
    if people.empty:
        return None
    boxes = people[CORNERS].to_numpy(dtype=float)
    score = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    if "outline" in people:
        for number, row in enumerate(people[["outline", "height", "width"]].itertuples(index=False)):
            if row.height > 0:
                score[number] = coco_mask().area(_run_lengths(json.loads(row.outline), row.height, row.width))
    return people.iloc[int(np.argmax(score))] if score.max() > 0 else None


def filled(pixels: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """A copy of a photograph, (H, W, 3) uint8, with the pixels of (H, W) booleans in grey (128, 128, 128)."""
    copy = pixels.copy()
    copy[hidden] = MIDDLE_GREY
    return copy
