"""Files of captions and labels to tables, with every fault counted and named; nothing in a file is ever run.

To add a format, write its file here: a module with `READERS` is found by itself (see parsed.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.joining import joined
from capbias_core.load.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS, Guess, guess_kind
from capbias_core.load.labels import labels
from capbias_core.load.parse import Parsed, Reader, parse, parse_table, readers
from capbias_core.load.read import TITLES, Reading, read_file, read_records, unknown_format
from capbias_core.load.report import ImportReport, report_attributes, report_captions, report_objects, report_segments
from capbias_core.load.rows import guess_columns
from capbias_core.load.tables import boxes, captions, objects, segments
from capbias_core.types import Table

__all__ = [
    "BOXES",
    "CAPTIONS",
    "LABELS",
    "OBJECTS",
    "REFERENCES",
    "SEGMENTS",
    "TITLES",
    "Guess",
    "ImportReport",
    "Parsed",
    "Reader",
    "Reading",
    "guess_kind",
    "normalise_image_id",
    "parse",
    "parse_table",
    "read_file",
    "read_records",
    "readers",
    "report_attributes",
    "report_captions",
    "report_objects",
    "report_segments",
    "unknown_format",
]


# The older functions, which go when their last callers have gone.

KINDS = ("generated", "reference")


@dataclass(frozen=True)
class Detected:
    """format, and columns of a file. guess: for "image_id" and "caption", the column that usually holds it, or None."""

    format: str
    columns: tuple[str, ...]
    guess: dict[str, str | None]


def detect(path: Path) -> Detected:
    parsed = parse(path)
    names = tuple(parsed.columns)
    return Detected(parsed.format, names, guess_columns(names))


def read_captions(
    path: Path,
    columns: dict[str, str | None] | None = None,
    kind: str = "generated",
    references: pd.DataFrame | None = None,
) -> Table:
    if kind not in KINDS:
        raise unknown_name("kind of captions", kind, KINDS)
    parsed = parse(path)
    chosen = {role: name for role, name in (columns or {}).items() if name}
    table = captions(parsed, chosen, human=kind == "reference")
    if kind == "reference" or references is None or not parsed.by_rows:
        return table
    return joined(table, captions(parsed, chosen, human=True).frame, references, parsed.file)


def read_attributes(path: Path, id_column: str | None = None) -> Table:
    parsed = parse(path)
    if parsed.format == "coco_captions":
        raise CapbiasError(f"{parsed.file} holds {parsed.title}, not labels.", "Load it as captions.")
    return labels(parsed, {"image_id": id_column} if id_column else {})


def read_objects(path: Path, id_column: str | None = None) -> Table:
    return objects(parse(path), {"image_id": id_column} if id_column else {})


def read_boxes(path: Path) -> Table:
    return boxes(parse(path))


def read_segments(path: Path, images: set[str] | None = None) -> pd.DataFrame:
    return segments(parse(path), images).frame
