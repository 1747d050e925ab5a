"""JSON files: COCO results, COCO captions, COCO instances, and any other list of records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.files import head_text, read_head, whole_text
from capbias_core.load.ids import described
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, Rows, checked_names, listed, names_of, rows_of_records

SAMPLE = 50
CAPTIONS = "coco_captions"
KEY = re.compile(r'"(?:images|annotations)"\s*:\s*\[')
OUTLINE = re.compile(r'("segmentation"\s*:\s*)(\[[^"{}]*\])')
BETWEEN = re.compile(r"[\s,]*")
SHAPES = 'a list of {"image_id", "caption"}, or an object with "images" and "annotations" (COCO captions)'
INSTANCES = 'COCO instances: "images", "annotations" (each with image_id and category_id) and "categories"'


def parse(path: Path, shapes: str = SHAPES) -> Any:
    """The whole file as JSON. Raises CapbiasError with line and column where it is broken.

    Outlines of objects go as soon as they are read: they are most of a large file, and nothing here uses them.
    """
    try:
        return json.loads(whole_text(path), object_hook=_without_outlines)
    except json.JSONDecodeError as error:
        fault = f"at line {error.lineno}, column {error.colno} ({error.msg})"
    except (RecursionError, ValueError) as error:
        fault = "(lists too deep in one another)" if isinstance(error, RecursionError) else f"({error})"
    raise CapbiasError(
        f"{path.name}, JSON that is broken {fault}", shapes, "Write the file again; it may have been cut off."
    )


def _without_outlines(record: dict) -> dict:
    record.pop("segmentation", None)
    record.pop("bbox", None)
    return record


def wrong_shape(path: Path, value: Any) -> CapbiasError:
    """The error for JSON that holds no list of records."""
    what = "an empty list" if value == [] else described(value)
    if isinstance(value, dict):
        what = f"an object with the keys {listed(list(value))}"
    elif value:
        what += f" of {described(value[0])}" if isinstance(value, list) else ""
    return CapbiasError(f"{path.name}, JSON that holds {what}", SHAPES, "Write a list with one record for each row.")


def records_of(path: Path) -> list:
    """The records of a JSON list. Raises CapbiasError for any other shape."""
    return _checked(path, parse(path))


def annotations_of(path: Path) -> list:
    """The annotations of a COCO file. Raises CapbiasError for any other shape."""
    value = parse(path)
    if not isinstance(value, dict) or "annotations" not in value:
        raise wrong_shape(path, value)
    return _checked(path, value["annotations"])


def outlined_instances_of(path: Path) -> dict:
    """A COCO instances file with the outlines of its annotations: run lengths as they are, polygons as JSON text, of
    which most of a large file consists. Raises CapbiasError for any other shape."""
    try:
        # Polygons become text in the file itself: as numbers they would take ten times the time and memory.
        value = json.loads(OUTLINE.sub(r'\1"\2"', whole_text(path)), strict=False)
    except (ValueError, RecursionError):
        value = parse(path, INSTANCES)  # says where it is broken
    return _checked_instances(path, value)


def instances_of(path: Path) -> dict:
    """A COCO instances file, without outlines. Raises CapbiasError for any other shape."""
    return _checked_instances(path, parse(path, INSTANCES))


def _checked_instances(path: Path, value: Any) -> dict:
    records = value.get("annotations") if isinstance(value, dict) else None
    if not isinstance(records, list) or not any(_has_category(record) for record in records):
        what = "no annotation with a category_id" if isinstance(records, list) else "no list of annotations"
        raise CapbiasError(f"{path.name}, JSON with {what}", INSTANCES, "Load another file, or captions as captions.")
    return {"images": None, "categories": None, **value}


def _has_category(record: Any) -> bool:
    return isinstance(record, dict) and "category_id" in record


def _checked(path: Path, records: Any) -> list:
    if not isinstance(records, list) or not any(isinstance(record, dict) for record in records):
        raise wrong_shape(path, records)
    return records


def first_records(path: Path) -> list:
    """Up to 50 records from the start of a JSON list, so that a large file is not read only to be recognised."""
    text = head_text(path, read_head(path))
    decoder, records, position = json.JSONDecoder(), [], text.find("[") + 1
    while position and len(records) < SAMPLE:
        between = BETWEEN.match(text, position)
        try:
            record, position = decoder.raw_decode(text, between.end() if between else position)
        except (ValueError, RecursionError):
            break
        records.append(record)
    return records if names_of(records) else records_of(path)


def record_columns(path: Path) -> tuple[str, ...]:
    """The keys of the first records of a JSON list."""
    return checked_names(path.name, names_of(first_records(path)))


def read_records(path: Path, choose: Choose) -> Rows:
    """A JSON list of records, COCO results among them."""
    return rows_of_records(records_of(path), choose, path.name)


def annotation_columns(path: Path) -> tuple[str, ...]:
    """The keys of the annotations of a COCO file."""
    return checked_names(path.name, names_of(annotations_of(path)))


def read_annotations(path: Path, choose: Choose) -> Rows:
    """The annotations of a COCO captions file; record numbers count annotations."""
    return rows_of_records(annotations_of(path), choose, path.name)


def _is_annotations(head: Head) -> bool:
    """An object of JSON that is no line of JSON Lines (which are asked for before). Raises CapbiasError for others."""
    if not head.text.startswith("{"):
        return False
    if not KEY.search(head.text):
        raise wrong_shape(head.path, parse(head.path))
    return True


def _is_list(head: Head) -> bool:
    return head.text.startswith("[") or head.ending == ".json"


def _is_results(head: Head) -> bool:
    return _is_list(head) and {"image_id", "caption"} <= set(record_columns(head.path))


READERS = (
    Reader(CAPTIONS, "COCO captions (JSON)", _is_annotations, annotation_columns, read_annotations, place=6),
    Reader("coco_results", "COCO results (JSON)", _is_results, record_columns, read_records, place=7),
    Reader("json_records", "JSON list of records", _is_list, record_columns, read_records, place=8),
)
