"""Boxes of what photographs show, from a table as `detect` writes it; and the objects that they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import normalise_image_id, short
from capbias_core.load.objects import BETWEEN, kept_name
from capbias_core.load.rows import RowErrors, Rows, guess_columns, listed, merged, nothing_usable
from capbias_core.types import BOX_COLUMNS, Table

CLASSES = ("class", "object", "label", "name")
NUMBERS = BOX_COLUMNS[2:]


def is_boxes(names: Sequence[str]) -> bool:
    """Whether a table with these columns is one of boxes."""
    lower = {name.strip().lower() for name in names}
    return lower >= set(NUMBERS) and bool(lower & set(CLASSES))


def choose_boxes(names: tuple[str, ...], file: str) -> tuple[str, ...]:
    """The columns of image, class and numbers. Raises CapbiasError where one is missing."""
    by_lower = {name.strip().lower(): name for name in names}
    image_id = guess_columns(names)["image_id"]
    if image_id is None or not is_boxes(names):
        raise CapbiasError(
            f"{file} with the columns {listed(names)}",
            "a table of boxes with the columns image, class, confidence, x1, y1, x2, y2",
            "Write it with: python -m capbias_core detect.",
        )
    name = next(by_lower[name] for name in CLASSES if name in by_lower)
    return image_id, name, *(by_lower[name] for name in NUMBERS)


def box_rows(rows: Rows, file: str) -> Table:
    """The boxes of rows (see `choose_boxes`); those that are none are faults. Raises CapbiasError where all are.

    The image id is read from the file's name, whatever folder stands before it.
    """
    faults, kept = RowErrors(file, rows.faults.unit), []
    for number, image, name, *raw in zip(rows.numbers, *rows.values.values(), strict=True):
        try:
            kept.append((_image_id(image), _name(name), *_numbers(raw)))
        except ValueError as error:
            faults.add(number, str(error))
    problems, count = merged(rows.faults, faults)
    if not kept:
        raise nothing_usable(file, rows.total, problems)
    return Table(pd.DataFrame(kept, columns=list(BOX_COLUMNS)), rows.total, problems=problems, problem_count=count)


def _image_id(value: object) -> str:
    return normalise_image_id(PurePath(value).name if isinstance(value, str) else value)


def _name(value: object) -> str:
    name = kept_name(str(value or ""))
    if not name:
        raise ValueError("the class is empty")
    return name


def _numbers(raw: Sequence) -> tuple[float, ...]:
    try:
        confidence, x1, y1, x2, y2 = (float(value) for value in raw)
    except (TypeError, ValueError):
        raise ValueError(f"{', '.join(short(str(value)) for value in raw)}: not five numbers") from None
    if not 0 < confidence <= 1:
        raise ValueError(f"a confidence of {confidence:g}, not above 0 and at most 1")
    if not (0 <= x1 < x2 < math.inf and 0 <= y1 < y2 < math.inf):
        raise ValueError(f"a box from ({x1:g}, {y1:g}) to ({x2:g}, {y2:g}), which encloses nothing on a photograph")
    return confidence, x1, y1, x2, y2


def object_texts(boxes: pd.DataFrame, images: Sequence[str]) -> pd.DataFrame:
    """The objects of images with a detector's confidence in the surest box of each: image_id, objects.

    boxes: in BOX_COLUMNS. images: those that were looked at; one without a box has ''.

    >>> rows = [("1", "cat", 0.5, 0, 0, 1, 1), ("1", "cat", 0.75, 0, 0, 2, 2), ("1", "dog", 0.25, 0, 0, 1, 1)]
    >>> object_texts(pd.DataFrame(rows, columns=list(BOX_COLUMNS)), ["1", "2"])["objects"].tolist()
    ['cat:0.75|dog:0.25', '']
    """
    surest = boxes.groupby(["image_id", "object"], sort=True)["confidence"].max().reset_index()
    surest = surest.sort_values("confidence", ascending=False, kind="stable")
    texts: dict[str, list[str]] = {image: [] for image in images}
    for image, name, confidence in surest.itertuples(index=False):
        texts.setdefault(image, []).append(f"{kept_name(name)}:{confidence:.4g}")
    return pd.DataFrame({"image_id": list(texts), "objects": list(map(BETWEEN.join, texts.values()))}, dtype="str")


def objects_of_boxes(table: Table) -> Table:
    """The objects of a table of boxes."""
    images = list(dict.fromkeys(table.frame["image_id"]))
    return Table(
        object_texts(table.frame, images), table.rows, problems=table.problems, problem_count=table.problem_count
    )
