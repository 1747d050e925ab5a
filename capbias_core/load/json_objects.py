"""JSON objects one after another, each over as many lines as it likes, as LLaVA's scripts write answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.coco import SAMPLE
from capbias_core.load.files import head_text, read_head, whole_text
from capbias_core.load.ids import described
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, Rows, checked_names, listed, names_of, rows_of_records

SPACE = re.compile(r"\s*")
DECODER = json.JSONDecoder()


def _objects(text: str) -> Iterator[dict]:
    """The objects of a text that holds nothing else. A ValueError says where it does not."""
    place = _after_space(text, 0)
    while place < len(text):
        value, end = DECODER.raw_decode(text, place)
        if not isinstance(value, dict):
            raise ValueError(f"{described(value)} after an object, at line {text.count(chr(10), 0, place) + 1}")
        yield value
        place = _after_space(text, end)


def _after_space(text: str, place: int) -> int:
    space = SPACE.match(text, place)
    return space.end() if space else place


def recognises(head: Head) -> bool:
    """Whether a whole object is followed by the start of another."""
    if not head.text.startswith("{"):
        return False
    try:
        _, end = DECODER.raw_decode(head.text)
    except (ValueError, RecursionError):
        return False
    return head.text.startswith("{", _after_space(head.text, end))


def columns(path: Path) -> tuple[str, ...]:
    """The keys of the first objects."""
    found = []
    with suppress(ValueError, RecursionError):  # the head may end within an object
        for record in islice(_objects(head_text(path, read_head(path))), SAMPLE):
            found.append(record)
    return checked_names(path.name, names_of(found))


def read(path: Path, choose: Choose) -> Rows:
    """Every object as a row. Raises CapbiasError where one is broken, since the next cannot be told from it."""
    try:
        records = list(_objects(whole_text(path)))
    except json.JSONDecodeError as error:
        fault = f"at line {error.lineno}, column {error.colno} ({error.msg})"
    except (ValueError, RecursionError) as error:
        fault = f"({error})" if isinstance(error, ValueError) else "(lists too deep in one another)"
    else:
        rows = rows_of_records(records, choose, path.name)
        left_out = [name for name in names_of(records) if name not in rows.values]
        return replace(rows, notes=(f"left out: {listed(left_out)}",)) if left_out else rows
    raise CapbiasError(
        f"{path.name}, JSON objects one after another, broken {fault}",
        'objects such as {"image_id": 785, "text": "a woman on skis"}',
        "Write the file again; it may have been cut off.",
    )


READERS = (Reader("json_objects", "JSON objects one after another", recognises, columns, read, place=5),)
