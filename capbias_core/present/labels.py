"""Names beside the points of a chart, none over another, over a point or out of the chart.

A page's window is not known when a chart is made, so a place counts as free only if it is free in every one: left or
right of each other name, or above or below it, both in the smallest window and in the largest. A name's edges move
evenly with the window, so it is then free in all between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from capbias_core.present.colour import GREY

# Pixels: a plot in the narrowest and the widest window, a letter and a line of the name, a point with its margin.
WIDTHS = (280, 1400)
# Of the usual height, since a chart that is presented fills the window.
HEIGHTS = (0.75, 1.7)
LETTER, LINE = 7.5, 17
POINT = 8
LONGEST_NAME = 24
# Right, left, above and below, for each distance; those next to the point need no line to it.
SIDES = ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
NEAR = 14
CLOSE = (NEAR, 28, 45, 62)
# How many places across and down are tried further off.
GRID = (15, 29)
Box = tuple[float, float, float, float]


class Place(NamedTuple):
    """Where the middle of a name goes: so many pixels right of and below its point, or in shares of the plot from the
    left and the top."""

    across: float
    down: float
    of_plot: bool = False

    def middle(self, point: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """In pixels of plots of these sizes, (..., 2). point: in shares of them."""
        own = np.array([self.across, self.down])
        return own * sizes if self.of_plot else point * sizes + own


def name_places(
    points: np.ndarray, names: Sequence[str], height: float, taken: Sequence[Box] = (), lines: Sequence[Box] = ()
) -> list[Place | None]:
    """Where each name goes; None if no place is free.

    points: (N, 2), the share of the plot's width from the left and of its height from the top. height: of the plot in
    pixels, usually. taken: boxes that names keep off as well: left, top, right, bottom, in the same shares. lines: such
    boxes too, which are only kept off if a place near the point allows it. The first names are placed first, so the
    same points always give the same places.
    """
    sizes = np.array([WIDTHS, np.multiply(height, HEIGHTS)]).T
    scale = np.tile(sizes, 2)
    full = [np.array(box) * scale for box in taken] + [_around(point * sizes, POINT, POINT) for point in points]
    thin = [np.array(box) * scale for box in lines]
    found = []
    for point, name in zip(points, names, strict=True):
        half = np.array([len(cut(name)) * LETTER, LINE]) / 2
        place = _free(_close(half), point, half, sizes, full + thin) or _free(_far(point), point, half, sizes, full)
        if place:
            full.append(_around(place.middle(point, sizes), *half))
        found.append(place)
    return found


def _close(half: np.ndarray) -> Iterator[Place]:
    for distance in CLOSE:
        for across, down in SIDES:
            yield Place(across * (distance * 0.8 + half[0]), down * distance)


def _far(point: np.ndarray) -> list[Place]:
    """Places all over the plot, the nearest first. In shares of it, so that names never meet as it widens."""
    places = [Place(x, y, True) for x in np.linspace(0, 1, GRID[0]) for y in np.linspace(0, 1, GRID[1])]
    return sorted(places, key=lambda place: float(np.hypot(place.across - point[0], place.down - point[1])))


def _free(
    places: Iterable[Place], point: np.ndarray, half: np.ndarray, sizes: np.ndarray, held: Sequence[np.ndarray]
) -> Place | None:
    """The first place that is free whatever the size. sizes: (2, 2), the smallest and the largest. held: boxes."""
    others = np.array(held)
    for place in places:
        box = _around(place.middle(point, sizes), *half)
        inside = (box[:, :2] >= 0).all() and (box[:, 2:] <= sizes).all()
        if inside and _apart(box, others).all():
            return place
    return None


def _around(middle: np.ndarray, half_width: float, half_height: float) -> np.ndarray:
    """(2, 4): left, top, right and bottom in the smallest and the largest window. middle: (2, 2)."""
    half = np.array([half_width, half_height])
    return np.concatenate([middle - half, middle + half], axis=1)


def _apart(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(N,) booleans: which of (N, 2, 4) boxes a box keeps off, on the same side of it in both windows."""
    after, before = box[:, :2] >= others[..., 2:], box[:, 2:] <= others[..., :2]
    return np.any(after.all(axis=1) | before.all(axis=1), axis=-1)


def cut(name: str) -> str:
    """Only as much of a name as there is room for."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def name_points(
    figure, across, up, names: Sequence[str], places: Sequence[Place | None], ends: Sequence[tuple[float, float]]
) -> None:
    """Write names where `name_places` puts them, with a line to the point from further off.

    ends: the lowest and the highest value that the plot shows, across and up.
    """
    (left, right), (bottom, top) = ends
    for x, y, name, place in zip(across, up, names, places, strict=True):
        if not place:
            continue
        far = place.of_plot or abs(place.down) > NEAR or place.down == 0
        at = {"ax": place.across, "ay": place.down}
        if place.of_plot:
            at = {"ax": left + place.across * (right - left), "ay": top - place.down * (top - bottom)}
            at |= {"axref": "x", "ayref": "y"}
        figure.add_annotation(
            x=x,
            y=y,
            **at,
            text=escape(cut(name)),
            font={"size": 13},
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=GREY if far else "rgba(0,0,0,0)",
            standoff=6,
            borderpad=0,
        )
