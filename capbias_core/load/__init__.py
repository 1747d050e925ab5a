"""Files of captions and labels to tables, with all faults counted and named; nothing in a file is ever run.

To add a format, write its file here: a module with `READERS` is discovered (see parsed.py).
"""

from __future__ import annotations

from capbias_core.load.ids import normalise_image_id
from capbias_core.load.parse import parse, parse_table, readers
from capbias_core.load.parsed import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS, Parsed, Reader
from capbias_core.load.read import TITLES, Guess, Reading, guess_kind, read_file, read_records, unknown_format
from capbias_core.load.report import (
    ImportReport,
    report_attributes,
    report_boxes,
    report_captions,
    report_objects,
    report_segments,
)

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
    "report_boxes",
    "report_captions",
    "report_objects",
    "report_segments",
    "unknown_format",
]
