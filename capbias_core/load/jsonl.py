"""JSON Lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.coco import SAMPLE
from capbias_core.load.files import text_lines
from capbias_core.load.ids import described
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows, checked_names, guess_columns, names_of, rows_of_numbered

ENDINGS = (".jsonl", ".ndjson")


def parsed_line(line: str) -> Any:
    """One line as JSON; a ValueError says what is wrong with it."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON at column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise ValueError("broken JSON (lists too deep in one another)") from None


def numbered_objects(path: Path, faults: RowErrors) -> Iterator[tuple[int, dict]]:
    """Line number and object of every line that holds one; blank lines are passed over."""
    with text_lines(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = parsed_line(line)
            except ValueError as error:
                faults.add(number, str(error))
                continue
            if isinstance(record, dict):
                yield number, record
            else:
                faults.add(number, f"{described(record)} where an object is expected")


def line_columns(path: Path) -> tuple[str, ...]:
    """The keys of the first objects."""
    faults = RowErrors(path.name, "line")
    names = names_of(record for _, record in islice(numbered_objects(path, faults), SAMPLE))
    if not names:
        raise _refused(path, faults)
    return checked_names(path.name, names)


def read_lines(path: Path, choose: Choose) -> Rows:
    """Every object of the file, with real line numbers."""
    faults = RowErrors(path.name, "line")
    numbered = list(numbered_objects(path, faults))
    if not names_of(record for _, record in numbered):
        raise _refused(path, faults)
    return rows_of_numbered(numbered, choose, faults)


def _refused(path: Path, faults: RowErrors) -> CapbiasError:
    first = f" (line {faults.first[0].line}: {faults.first[0].message})" if faults.first else ""
    return CapbiasError(
        f"{path.name}, JSON Lines without a usable line{first}",
        'one object a line, such as {"image_id": 785, "caption": "a woman on skis"}',
        "Write the file again, one record a line.",
    )


def _is_lines(head: Head) -> bool:
    """Whether the first line is a whole record: an object that is not all of a COCO file."""
    if not head.text.startswith("{"):
        return False
    lines = [line for line in head.text.split("\n", 2)[:2] if line.strip()]
    try:
        first = parsed_line(lines[0])
    except ValueError:
        first = None
    if head.ending in ENDINGS:
        return True
    if not isinstance(first, dict) or "annotations" in first:
        return False
    return len(lines) > 1 or guess_columns(first)["image_id"] is not None


READERS = (Reader("jsonl", "JSON Lines", _is_lines, line_columns, read_lines, place=4),)
