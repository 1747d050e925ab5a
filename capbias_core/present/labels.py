"""Names beside the points of a chart, none over another, over a point or out of the chart.

A page's window is not known when a chart is made, so a place counts as free only if it is free in the smallest and in
the largest one, by width and by height: what lies apart in these lies apart in all between.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from capbias_core.present.colour import GREY

# Pixels: a plot in the narrowest and the widest window, a letter and a line of the name, a point with its margin.
WIDTHS = (280, 1400)
WIDE = 620
# Of the usual height, since a chart that is presented fills the window.
HEIGHTS = (0.75, 1.7)
LETTER, LINE = 7.5, 17
POINT = 8
LONGEST_NAME = 24
# Right, left, above and below, for each distance; those next to the point need no line to it.
SIDES = ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
NEAR = 14
DISTANCES = (NEAR, *range(28, 400, LINE))
CLOSE = DISTANCES[:4]
Box = tuple[float, float, float, float]


def name_places(
    points: np.ndarray, names: Sequence[str], height: float, taken: Sequence[Box] = (), lines: Sequence[Box] = ()
) -> list[tuple[float, float] | None]:
    """Where the middle of each name goes, in pixels right of and below its point; None if no place is free.

    points: (N, 2), the share of the plot's width from the left and of its height from the top. height: of the plot in
    pixels, usually. taken: boxes that names keep off as well: left, top, right, bottom, in the same shares. lines: such
    boxes too, which are only kept off if a place near the point allows it. Where nothing is free in the narrowest
    window, it is looked for from WIDE on. The first names are placed first, so the same points always give the same
    places.
    """
    sizes = [np.array([width, height * times]) for width in (WIDTHS[0], WIDE, WIDTHS[1]) for times in HEIGHTS]
    full, thin = (
        [[np.array(box) * np.tile(size, 2) for box in boxes] for size in sizes] for boxes in (list(taken), list(lines))
    )
    for own, size in zip(full, sizes, strict=True):
        own += [_around(point * size, POINT, POINT) for point in points]
    every, wide = range(len(sizes)), range(len(HEIGHTS), len(sizes))
    off_lines = [[*own, *more] for own, more in zip(full, thin, strict=True)]
    found = []
    for point, name in zip(points, names, strict=True):
        width = len(cut(name)) * LETTER
        tries = ((every, off_lines, CLOSE), (every, full, DISTANCES), (wide, off_lines, CLOSE), (wide, full, DISTANCES))
        offset = next(filter(None, (_free(point, width, sizes, *own) for own in tries)), None)
        for size, *held in zip(sizes, full, off_lines, strict=True) if offset else ():
            for own in held:
                own.append(_around(point * size + np.array(offset), width / 2, LINE / 2))
        found.append(offset)
    return found


def _free(
    point: np.ndarray,
    width: float,
    sizes: list[np.ndarray],
    which: Sequence[int],
    full: list[list[np.ndarray]],
    distances: Sequence[int],
) -> tuple[float, float] | None:
    """The first place that is free in these of the sizes."""
    for distance in distances:
        for across, down in SIDES:
            offset = np.array([across * (distance * 0.8 + width / 2), down * distance])
            boxes = {place: _around(point * sizes[place] + offset, width / 2, LINE / 2) for place in which}
            if all(
                (box[:2] >= 0).all()
                and (box[2:] <= sizes[place]).all()
                and not any(_overlap(box, other) for other in full[place])
                for place, box in boxes.items()
            ):
                return float(offset[0]), float(offset[1])
    return None


def _around(middle: np.ndarray, half_width: float, half_height: float) -> np.ndarray:
    half = np.array([half_width, half_height])
    return np.concatenate([middle - half, middle + half])


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all())


def cut(name: str) -> str:
    """Only as much of a name as there is room for."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def name_points(figure, across, up, names: Sequence[str], places: Sequence[tuple[float, float] | None]) -> None:
    """Write names where `name_places` puts them, with a line to the point from further off."""
    for x, y, name, place in zip(across, up, names, places, strict=True):
        if place:
            far = abs(place[1]) > NEAR or place[1] == 0
            figure.add_annotation(
                x=x,
                y=y,
                ax=place[0],
                ay=place[1],
                text=escape(cut(name)),
                font={"size": 13},
                showarrow=True,
                arrowhead=0,
                arrowwidth=1,
                arrowcolor=GREY if far else "rgba(0,0,0,0)",
                standoff=6,
                borderpad=0,
            )
