"""Which format a file has, by its content; the ending only settles what the content leaves open."""

from __future__ import annotations

import re
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load import coco, jsonl, lic_release, tabular
from capbias_core.load.files import KNOWN_FORMATS, head_text, read_head
from capbias_core.load.rows import guess_columns

COCO_KEY = re.compile(r'"(?:images|annotations)"\s*:\s*\[')
JSONL_ENDINGS = (".jsonl", ".ndjson")
TABLE_ENDINGS = (".csv", ".tsv")


def sniff(path: Path) -> str:
    """The name of the format. Raises CapbiasError for a file that is none of them."""
    head, ending = read_head(path), path.suffix.lower()
    if head.startswith(b"PAR1"):
        return "parquet"
    if lic_release.looks_pickled(head, ending):
        return "lic_release"
    text = head_text(path, head).lstrip()
    if text.startswith("{"):
        return _object_format(path, text)
    if text.startswith("[") or ending == ".json":
        names = coco.record_columns(path)
        return "coco_results" if {"image_id", "caption"} <= set(names) else "json_records"
    return _table_format(path)


def _object_format(path: Path, text: str) -> str:
    """JSON Lines where the first line is a whole record, else COCO captions."""
    lines = [line for line in text.split("\n", 2)[:2] if line.strip()]
    try:
        first = jsonl.parsed_line(lines[0])
    except ValueError:
        first = None
    is_record = isinstance(first, dict) and "annotations" not in first
    if path.suffix.lower() in JSONL_ENDINGS or (is_record and (len(lines) > 1 or guess_columns(first)["image_id"])):
        return "jsonl"
    if not COCO_KEY.search(text):
        raise coco.wrong_shape(path, coco.parse(path))
    return "coco_captions"


def _table_format(path: Path) -> str:
    """CSV or TSV: by its ending, or where the first lines have one width."""
    delimiter, names = tabular.table_header(path)
    if path.suffix.lower() not in TABLE_ENDINGS and not tabular.same_width(path):
        raise CapbiasError(
            f"{path.name}, text in no format that is known",
            KNOWN_FORMATS,
            "Save it in one of these, such as CSV with a first line of column names, one of them image_id.",
        )
    return "tsv" if delimiter == "\t" or (len(names) == 1 and path.suffix.lower() == ".tsv") else "csv"
