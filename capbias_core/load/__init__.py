"""Files of captions and labels to tables, with every fault counted and named; nothing in a file is ever run.

To add a format, write its two functions (column names; rows of chosen columns), name it in `FORMATS`, and let
`sniff` recognise it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import coco, jsonl, lic_release, tabular
from capbias_core.load.boxes import box_rows, choose_boxes, is_boxes, objects_of_boxes
from capbias_core.load.captions import caption_table
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.labels import attribute_table
from capbias_core.load.objects import choose_objects, object_rows, read_instances
from capbias_core.load.report import (
    AttributeReport,
    ImportReport,
    ObjectReport,
    SegmentReport,
    report_attributes,
    report_captions,
    report_objects,
    report_segments,
)
from capbias_core.load.rows import Choose, Rows, choose_captions, choose_labels, guess_columns
from capbias_core.load.sniff import sniff
from capbias_core.types import AttributeTable, BoxTable, CaptionTable, ObjectTable

__all__ = [
    "FORMATS",
    "AttributeReport",
    "Detected",
    "Format",
    "ImportReport",
    "ObjectReport",
    "SegmentReport",
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


@dataclass(frozen=True)
class Format:
    """title: as shown. columns: the names in a file. read: the chosen columns of a file, row by row."""

    title: str
    columns: Callable[[Path], tuple[str, ...]]
    read: Callable[[Path, Choose], Rows]


FORMATS = {
    "coco_results": Format("COCO results (JSON)", coco.record_columns, coco.read_records),
    "coco_captions": Format("COCO captions (JSON)", coco.annotation_columns, coco.read_annotations),
    "json_records": Format("JSON list of records", coco.record_columns, coco.read_records),
    "lic_release": Format("LIC release (pickle)", lic_release.lic_columns, lic_release.read_lic),
    "csv": Format("CSV", tabular.delimited_columns, tabular.read_delimited),
    "tsv": Format("TSV", tabular.delimited_columns, tabular.read_delimited),
    "jsonl": Format("JSON Lines", jsonl.line_columns, jsonl.read_lines),
    "parquet": Format("Parquet", tabular.parquet_columns, tabular.read_parquet),
}
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
    name = sniff(path)
    columns = FORMATS[name].columns(path)
    return Detected(name, columns, guess_columns(columns))


def read_captions(path: Path, columns: dict[str, str | None] | None = None, kind: str = "generated") -> CaptionTable:
    """The captions of a file.

    columns: names for "image_id" and "caption"; needed only where `detect` guesses None.
    kind: "generated" drops exact repeats of an image and a caption; "reference" keeps them, since people may
    well write the same. Raises CapbiasError for a file without a usable caption.
    """
    path = Path(path)
    if kind not in KINDS:
        raise unknown_name("kind of captions", kind, KINDS)
    choose = partial(choose_captions, file=path.name, given=columns or {})
    return caption_table(FORMATS[sniff(path)].read(path, choose), path.name, drop_repeats=kind == "generated")


def read_attributes(path: Path, id_column: str | None = None) -> AttributeTable:
    """The labels of a file: one row an image, every other column as text ('' where empty).

    id_column: the column of image ids; needed only where no usual name is found. Raises CapbiasError for a file
    without image ids, labels or a usable row.
    """
    path = Path(path)
    name = sniff(path)
    if name == "coco_captions":
        raise CapbiasError(
            f"{path.name}, {FORMATS[name].title}", "a table of labels, one row an image", "Load it as captions."
        )
    choose = partial(choose_labels, file=path.name, id_column=id_column)
    return attribute_table(FORMATS[name].read(path, choose), path.name)


def read_objects(path: Path, id_column: str | None = None) -> ObjectTable:
    """The objects of images: from COCO instances, a table with a column of objects (`cat|dog`), or boxes of a detector.

    id_column: the column of image ids of a table; needed only where no usual name is found. Raises CapbiasError for
    a file that is none of these, or names no object.
    """
    path = Path(path)
    name = sniff(path)
    if name == "coco_captions":
        return read_instances(path)
    if is_boxes(FORMATS[name].columns(path)):
        return objects_of_boxes(read_boxes(path))
    choose = partial(choose_objects, file=path.name, id_column=id_column)
    return object_rows(FORMATS[name].read(path, choose), path.name)


def read_boxes(path: Path) -> BoxTable:
    """The boxes in a table with the columns image, class, confidence, x1, y1, x2, y2, as `detect` writes it.

    Raises CapbiasError for a file that is none, or without a usable box.
    """
    path = Path(path)
    choose = partial(choose_boxes, file=path.name)
    return box_rows(FORMATS[sniff(path)].read(path, choose), path.name)
