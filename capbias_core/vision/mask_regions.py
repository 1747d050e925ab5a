"""What a condition hides of one photograph, by the outlines or boxes of what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.vision.masking import (
    HALF,
    box_mask,
    dropped_regions,
    foreground,
    most_correlated,
    outline_mask,
    people_of,
    region,
)
from capbias_core.vision.overlap import CORNERS

WHOSE = FOREGROUND, EVERYBODY = "foreground", "all"
OF_OUTLINES = ("part", "segment")
OF_OBJECTS = ("object", "both")
NO_PERSON = "without a person"
NOT_LABELLED = "without a person where the label says"
NO_OBJECT = "without one of the correlated objects"
NOTHING_MARKED = "without an outline or box of anything"
# How far a box may reach over the edge, as a share of the longer side; beyond, it is of a photograph of another size.
OVER_THE_EDGE = 0.05


@dataclass(frozen=True)
class MaskRule:
    """What is hidden of a photograph. condition: a name in `region`. fraction: of the outline, for part. whose: the
    person in the foreground, or everybody (crowds too). departures: of the objects that may be hidden; of those on a
    photograph the one that departs most. only_masked: of `object` and `both`, whether a photograph that shows no such
    object is left out; else `object` hides nothing of it, and `both` the person, as in LIC: its sets of masked images
    hold all 10,780 images of the original one, so that their LIC_M (Table 4) is over the same images."""

    condition: str
    fraction: float = HALF
    whose: str = FOREGROUND
    departures: Mapping[str, float] = field(default_factory=dict)
    only_masked: bool = False

    def used(self) -> dict:
        """The choices that this condition reads, by name.

        >>> MaskRule("part").used()
        {'condition': 'part', 'fraction': 0.5, 'whose': 'foreground'}
        >>> MaskRule("object", departures={"tie": 0.2}).used()
        {'condition': 'object', 'departures': {'tie': 0.2}, 'only_masked': False}
        """
        found: dict = {"condition": self.condition}
        if self.condition == "part":
            found["fraction"] = self.fraction
        if self.condition != "object":
            found["whose"] = self.whose
        if self.condition in OF_OBJECTS:
            found |= {"departures": dict(self.departures), "only_masked": self.only_masked}
        return found


class NothingToMask(Exception):
    """Why a photograph is left out: it shows no person, or (if that is asked) no such object."""


def hidden_pixels(rows: pd.DataFrame, size: tuple[int, int], rule: MaskRule, labelled=None) -> np.ndarray:
    """(height, width) booleans: what is hidden of a photograph of this size.

    rows: its outlines (SEGMENT_COLUMNS) or boxes (BOX_COLUMNS); with boxes, they stand for outlines under `object` and
    `both`. labelled: the box (x1, y1, x2, y2) of the person who is labelled, if that is known. A photograph without
    the object: see `MaskRule`; one of which nothing is marked is left out, since nobody knows what it shows. Raises
    NothingToMask, and CapbiasError for outlines or boxes of a photograph of another size.
    """
    check_size(rows, size)
    thing = _object(rows, size, rule) if rule.condition in OF_OBJECTS else None
    if rule.condition == "object":
        return region("object", size, object_mask=thing)
    people = _people(rows, rule.whose, labelled)
    if not people:
        raise NothingToMask(NOTHING_MARKED if rows.empty else NO_PERSON if labelled is None else NOT_LABELLED)
    of = _drawn(rows, size) if rule.condition != "box" else lambda person: None
    parts = (region(rule.condition, size, of(person), person[CORNERS], thing, rule.fraction) for person in people)
    return np.logical_or.reduce(list(parts))


def _people(rows: pd.DataFrame, whose: str, labelled=None) -> list[pd.Series]:
    if whose == EVERYBODY:
        return [row for _, row in people_of(rows).iterrows()]
    person = foreground(rows, labelled)
    return [] if person is None else [person]


def shows_object(rows: pd.DataFrame, rule: MaskRule) -> bool:
    """Whether a photograph shows one of the objects that may be hidden. rows: its outlines or boxes."""
    return bool(most_correlated(rows["object"], rule.departures))


def _object(rows: pd.DataFrame, size: tuple[int, int], rule: MaskRule) -> np.ndarray:
    """Every object of the name that departs most; nothing where the photograph shows none of those known."""
    if not shows_object(rows, rule):
        if rows.empty or rule.only_masked:
            raise NothingToMask(NO_OBJECT if rule.only_masked else NOTHING_MARKED)
        return np.zeros(size, dtype=bool)
    name = most_correlated(rows["object"], rule.departures)
    own = [row for _, row in rows[rows["object"] == name].iterrows()]
    return np.logical_or.reduce(list(map(_drawn(rows, size), own)))


def _drawn(rows: pd.DataFrame, size: tuple[int, int]) -> Callable[[pd.Series], np.ndarray]:
    """How a row becomes a mask: by its outline, or where there are none by its box."""
    if "outline" in rows:
        return lambda row: outline_mask(row["outline"], *size)
    return lambda row: box_mask(row[CORNERS], *size)


def check_size(rows: pd.DataFrame, size: tuple[int, int]) -> None:
    """Raises CapbiasError for outlines, or boxes, of a photograph of another size than (height, width)."""
    if rows.empty:
        return
    others = _sizes(rows, size)
    if others:
        raise CapbiasError(
            f"A photograph of {size[1]} x {size[0]} pixels has {others}.",
            "Check that both are of the same data set, and that the photograph was not resized.",
        )


def _sizes(rows: pd.DataFrame, size: tuple[int, int]) -> str:
    """What is known to be of another size, in words; '' where nothing is."""
    if "height" in rows:
        known = rows.loc[rows["height"] > 0, ["height", "width"]].drop_duplicates().itertuples(index=False)
        other = next((own for own in known if tuple(own) != tuple(size)), None)
        return "" if other is None else f"outlines on {other.width} x {other.height} pixels"
    right, bottom, reach = rows["x2"].max(), rows["y2"].max(), OVER_THE_EDGE * max(size)
    fits = right <= size[1] + reach and bottom <= size[0] + reach
    return "" if fits else f"boxes that reach to x = {right:.0f} and y = {bottom:.0f}"


def regions_to_drop(regions: pd.DataFrame, rows: pd.DataFrame, rule: MaskRule, labelled=None) -> np.ndarray:
    """(n,) booleans: the regions of one photograph that a captioner must not read, as LIC's appendix A.3 has it: those
    of which the boxes around what is hidden cover more than half.

    regions: x1, y1, x2, y2. rows: the photograph's outlines or boxes. labelled: as in `hidden_pixels`. Under part and
    segment too the person's box counts. Where there is nothing to hide, nothing is dropped.
    """
    people = _people(rows, rule.whose, labelled) if rule.condition != "object" else []
    name = most_correlated(rows["object"], rule.departures) if rule.condition in OF_OBJECTS else ""
    boxes = [row[CORNERS] for row in people] + [row for _, row in rows.loc[rows["object"] == name, CORNERS].iterrows()]
    return dropped_regions(regions[CORNERS].to_numpy(dtype=float), np.array(boxes, dtype=float).reshape(-1, 4))
