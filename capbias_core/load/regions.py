"""Regions of photographs whose features a captioner reads, from a table: image_id, x1, y1, x2, y2, and any others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import normalise_image_id, short
from capbias_core.load.parse import parse
from capbias_core.load.rows import RowErrors, guess_columns, listed, merged, nothing_usable
from capbias_core.types import BOX_COLUMNS, Problem

SIDES = BOX_COLUMNS[3:]


def read_regions(path: Path) -> tuple[pd.DataFrame, tuple[Problem, ...], int]:
    """The regions in a table: image_id, x1, y1, x2, y2, line (of the file); the first problems, and how many.

    Raises CapbiasError for another table, or one without a usable row.
    """
    parsed = parse(path)
    by_lower = {name.strip().lower(): column for name, column in parsed.columns.items()}
    image = guess_columns(parsed.columns)["image_id"]
    if image is None or not set(by_lower) >= set(SIDES):
        raise CapbiasError(
            f"{parsed.file} has the columns {listed(tuple(parsed.columns))}, but regions need the columns image_id, "
            f"{', '.join(SIDES)}.",
            "Write one row per region, in pixels, x2 and y2 exclusive.",
        )
    faults, kept = RowErrors(parsed.file, parsed.faults.unit), []
    columns = (parsed.columns[image], *(by_lower[side] for side in SIDES))
    for number, name, *raw in zip(parsed.numbers, *columns, strict=True):
        try:
            kept.append((normalise_image_id(name), *_corners(raw), number))
        except ValueError as error:
            faults.add(number, str(error))
    problems, count = merged(parsed.faults, faults)
    if not kept:
        raise nothing_usable(parsed.file, parsed.rows, problems)
    return pd.DataFrame(kept, columns=["image_id", *SIDES, "line"]), problems, count


def _corners(raw: Sequence) -> tuple[float, ...]:
    try:
        x1, y1, x2, y2 = corners = tuple(float(value) for value in raw)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{', '.join(short(str(value)) for value in raw)}: not four numbers") from None
    if not (0 <= x1 < x2 < float("inf") and 0 <= y1 < y2 < float("inf")):
        raise ValueError(f"a region from ({x1:g}, {y1:g}) to ({x2:g}, {y2:g}), which encloses nothing")
    return corners
