"""A JSON object with the records under one of its keys: `{"model": "sat", "predictions": [{"image_id": ..., ...}]}`."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from capbias_core.load.coco import KEY, SAMPLE, parse, wrong_shape
from capbias_core.load.files import head_text, read_head
from capbias_core.load.ids import short
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, Rows, checked_names, guess_columns, listed, names_of, rows_of_records

LISTS = re.compile(r'"([^"\\]{1,80})"\s*:\s*\[\s*(?=\{)')
BETWEEN = re.compile(r"[\s,]*")
LOOKED_AT = 20  # lists: a file may have as many as it has brackets
DECODER = json.JSONDecoder()


def _first(text: str) -> tuple[str, list[Any]]:
    """The first key with a list of captions, and its first records; '' where there is none."""
    for found in islice(LISTS.finditer(text), LOOKED_AT):
        records, place = [], found.end()
        with suppress(ValueError, RecursionError):  # the head may end within a record
            while len(records) < SAMPLE and text.startswith("{", place):
                record, place = DECODER.raw_decode(text, place)
                records.append(record)
                between = BETWEEN.match(text, place)
                place = between.end() if between else place
        if all(guess_columns(names_of(records)).values()):
            return found[1], records
    return "", []


def recognises(head: Head) -> bool:
    """Whether an object that is no COCO file has a list of captions."""
    return head.text.startswith("{") and not KEY.search(head.text) and bool(_first(head.text)[0])


def columns(path: Path) -> tuple[str, ...]:
    """The keys of the first records."""
    return checked_names(path.name, names_of(_first(head_text(path, read_head(path)))[1]))


def read(path: Path, choose: Choose) -> Rows:
    """The records of that list; what else the object holds is named and left out."""
    key, whole = _first(head_text(path, read_head(path)))[0], parse(path)
    records = whole.get(key) if isinstance(whole, dict) else None
    if not isinstance(records, list):  # the list lies deeper
        raise wrong_shape(path, whole)
    left_out = [name for name in whole if name != key]
    notes = (f"captions from {short(key)}",) + ((f"left out: {listed(left_out)}",) if left_out else ())
    return replace(rows_of_records(records, choose, path.name), notes=notes)


READERS = (Reader("json_within", "JSON records under a key", recognises, columns, read, place=5.5),)
