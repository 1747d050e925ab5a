"""Regions of photographs whose features a captioner reads, from a table: image_id, x1, y1, x2, y2, and any others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import normalise_image_id, short
from capbias_core.load.rows import RowErrors, guess_columns, listed, merged, nothing_usable
from capbias_core.load.tabular import read_delimited
from capbias_core.types import BOX_COLUMNS, Problem

SIDES = BOX_COLUMNS[3:]


def read_regions(path: Path) -> tuple[pd.DataFrame, tuple[Problem, ...], int]:
    """The regions in a CSV or TSV file: image_id, x1, y1, x2, y2, line (of the file); the first problems, and how many.

    Raises CapbiasError for another table, or one without a usable row.
    """
    path = Path(path)
    rows = read_delimited(path, partial(_columns, file=path.name))
    faults, kept = RowErrors(path.name, rows.faults.unit), []
    for number, image, *raw in zip(rows.numbers, *rows.values.values(), strict=True):
        try:
            kept.append((normalise_image_id(image), *_corners(raw), number))
        except ValueError as error:
            faults.add(number, str(error))
    problems, count = merged(rows.faults, faults)
    if not kept:
        raise nothing_usable(path.name, rows.total, problems)
    return pd.DataFrame(kept, columns=["image_id", *SIDES, "line"]), problems, count


def _columns(names: tuple[str, ...], file: str) -> tuple[str, ...]:
    by_lower = {name.strip().lower(): name for name in names}
    image = guess_columns(names)["image_id"]
    if image is None or not set(by_lower) >= set(SIDES):
        raise CapbiasError(
            f"{file} with the columns {listed(names)}",
            f"a table of regions with the columns image_id, {', '.join(SIDES)}",
            "Write one row a region, in pixels, x2 and y2 exclusive.",
        )
    return image, *(by_lower[side] for side in SIDES)


def _corners(raw: list[str]) -> tuple[float, ...]:
    try:
        x1, y1, x2, y2 = corners = tuple(float(value) for value in raw)
    except ValueError:
        raise ValueError(f"{', '.join(map(short, raw))}: not four numbers") from None
    if not (0 <= x1 < x2 < float("inf") and 0 <= y1 < y2 < float("inf")):
        raise ValueError(f"a region from ({x1:g}, {y1:g}) to ({x2:g}, {y2:g}), which encloses nothing")
    return corners
