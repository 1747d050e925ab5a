"""Files of captions and labels to tables, with every fault counted and named; nothing in a file is ever run.

To add a format, write its file here: a module with `READERS` is found by itself (see reader.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.boxes import box_rows, choose_boxes, is_boxes, objects_of_boxes
from capbias_core.load.captions import caption_table
from capbias_core.load.coco import CAPTIONS as COCO_CAPTIONS
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.joining import joined
from capbias_core.load.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.labels import attribute_table
from capbias_core.load.objects import choose_objects, object_rows, read_instances
from capbias_core.load.read import TITLES, Reading, read_file, read_records, unknown_format
from capbias_core.load.reader import Reader
from capbias_core.load.report import ImportReport, report_attributes, report_captions, report_objects, report_segments
from capbias_core.load.rows import choose_captions, choose_labels, guess_columns
from capbias_core.load.sniff import reader_of, readers
from capbias_core.types import Table

__all__ = [
    "BOXES",
    "CAPTIONS",
    "LABELS",
    "OBJECTS",
    "REFERENCES",
    "SEGMENTS",
    "TITLES",
    "Reading",
    "read_file",
    "read_records",
    "unknown_format",
    "FORMATS",
    "Detected",
    "ImportReport",
    "Reader",
    "detect",
    "normalise_image_id",
    "read_attributes",
    "read_boxes",
    "read_captions",
    "read_objects",
    "report_attributes",
    "report_captions",
    "report_objects",
    "report_segments",
]


# Name -> reader, in the order in which they are asked.
FORMATS = readers()
KINDS = ("generated", "reference")


@dataclass(frozen=True)
class Detected:
    """format: a name in `FORMATS`. columns: the names to choose from. guess: for "image_id" and "caption", the
    column that usually holds it, or None where the user has to say."""

    format: str
    columns: tuple[str, ...]
    guess: dict[str, str | None]


def detect(path: Path) -> Detected:
    """Format and columns of a file, by its content. Raises CapbiasError for a file that cannot be loaded."""
    path = Path(path)
    reader = reader_of(path)
    columns = reader.columns(path)
    return Detected(reader.name, columns, guess_columns(columns))


def read_captions(
    path: Path,
    columns: dict[str, str | None] | None = None,
    kind: str = "generated",
    references: pd.DataFrame | None = None,
) -> Table:
    """The captions of a file. Of one with a model's captions and human ones beside them, those of the kind.

    columns: names for "image_id" and "caption"; needed only where `detect` guesses None.
    kind: "generated" drops exact repeats of an image and a caption; "reference" keeps them, since people may
    well write the same. references: human captions at hand, by whose text images without ids are told apart.
    Raises CapbiasError for a file without a usable caption.
    """
    path = Path(path)
    if kind not in KINDS:
        raise unknown_name("kind of captions", kind, KINDS)
    reader, human = reader_of(path), kind == "reference"
    choose = partial(choose_captions, file=path.name, given=columns or {}, human=human)
    table = caption_table(reader.read(path, choose), path.name, drop_repeats=not human)
    if human or references is None or not reader.by_rows:
        return table
    return joined(table, read_captions(path, columns, "reference").frame, references, path.name)


def read_attributes(path: Path, id_column: str | None = None) -> Table:
    """The labels of a file: one row an image, every other column as text ('' where empty).

    id_column: the column of image ids; needed only where no usual name is found. Raises CapbiasError for a file
    without image ids, labels or a usable row.
    """
    path = Path(path)
    reader = reader_of(path)
    if reader.name == COCO_CAPTIONS:
        raise CapbiasError(
            f"{path.name}, {reader.title}", "a table of labels, one row per image", "Load it as captions."
        )
    choose = partial(choose_labels, file=path.name, id_column=id_column)
    return attribute_table(reader.read(path, choose), path.name)


def read_objects(path: Path, id_column: str | None = None) -> Table:
    """The objects of images: from COCO instances, a table with a column of objects (`cat|dog`), or boxes of a detector.

    id_column: the column of image ids of a table; needed only where no usual name is found. Raises CapbiasError for
    a file that is none of these, or names no object.
    """
    path = Path(path)
    reader = reader_of(path)
    if reader.name == COCO_CAPTIONS:
        return read_instances(path)
    if is_boxes(reader.columns(path)):
        return objects_of_boxes(read_boxes(path))
    choose = partial(choose_objects, file=path.name, id_column=id_column)
    return object_rows(reader.read(path, choose), path.name)


def read_boxes(path: Path) -> Table:
    """The boxes in a table with the columns image, class, confidence, x1, y1, x2, y2, as `detect` writes it.

    Raises CapbiasError for a file that is none, or without a usable box.
    """
    path = Path(path)
    choose = partial(choose_boxes, file=path.name)
    return box_rows(reader_of(path).read(path, choose), path.name)
