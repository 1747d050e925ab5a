"""From a file to its content as raw columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.load.coco import CAPTIONS, outlined_instances_of, read_annotations
from capbias_core.load.ids import described, normalise_image_id
from capbias_core.load.objects import category_names
from capbias_core.load.parsed import Parsed
from capbias_core.load.rows import RowErrors, rows_of_records
from capbias_core.load.sniff import reader_of

__all__ = ["Parsed", "parse", "parse_table"]


def parse(path: Path) -> Parsed:
    """The content of a file. Raises CapbiasError for a file in no known format, or one that cannot be read."""
    path = Path(path)
    reader = reader_of(path)
    if reader.name == CAPTIONS:
        return _coco(path, reader.title)
    rows = reader.read(path, lambda names: names)
    kind = reader.holds
    return Parsed(
        path,
        reader.name,
        reader.title,
        dict(rows.values),
        rows.numbers,
        rows.total,
        rows.faults,
        rows.notes,
        kind,
        reader.by_rows,
    )


def parse_table(table: Any, name: str) -> Parsed:
    """A DataFrame, a list of dicts, or a dict of columns or by image that was given in Python, as `parse` has files."""
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    rows = rows_of_records(records, lambda names: names, name)
    return Parsed(Path(name), "table", "table", dict(rows.values), rows.numbers, rows.total, rows.faults)


def _coco(path: Path, title: str) -> Parsed:
    content = read_annotations(path, lambda names: names)
    images: Any = None
    if "category_id" in content.values:
        whole = outlined_instances_of(path)
        images, names = whole["images"], category_names(path, whole["categories"])
        faults, numbers, records = RowErrors(path.name, "record"), [], []
        for number, record in enumerate(whole["annotations"], start=1):
            if isinstance(record, dict):
                numbers.append(number)
                records.append(record)
            else:
                faults.add(number, f"{described(record)} where an object is expected")
        taken = ("image_id", "category_id", "iscrowd", "bbox", "score", "segmentation")
        columns = {name: [record.get(name) for record in records] for name in taken}
        columns["category"] = [
            names.get(category) if isinstance(category, int | str) else None for category in columns["category_id"]
        ]
        sizes = _sizes(images)
        return Parsed(
            path,
            "coco_instances",
            "COCO instances (JSON)",
            columns,
            numbers,
            len(whole["annotations"]),
            faults,
            kind="objects",
            image_names=_names(images),
            sizes=sizes,
        )
    import json

    from capbias_core.load.files import whole_text

    images = json.loads(whole_text(path)).get("images")
    kind = "references" if {"id", "image_id", "caption"} <= set(content.values) else ""
    return Parsed(
        path,
        CAPTIONS,
        title,
        dict(content.values),
        content.numbers,
        content.total,
        content.faults,
        kind=kind,
        image_names=_names(images),
        sizes=_sizes(images),
    )


def _listed(images: Any):
    for record in images if isinstance(images, list) else ():
        try:
            yield normalise_image_id(record["id"]), record
        except (ValueError, KeyError, TypeError):
            continue


def _names(images: Any) -> dict[str, str]:
    return {image: str(record["file_name"]) for image, record in _listed(images) if record.get("file_name")}


def _sizes(images: Any) -> dict[str, tuple[int, int]]:
    from capbias_core.load.photographs import MOST_PIXELS

    sizes = {}
    for image, record in _listed(images):
        try:
            height, width = int(record["height"]), int(record["width"])
        except (ValueError, KeyError, TypeError, OverflowError):
            height = width = 0
        sizes[image] = (height, width) if height > 0 and width > 0 and height * width <= MOST_PIXELS else (0, 0)
    return sizes
