"""A JSON object whose keys are image ids or file names: `{id: caption}`, `{id: [captions]}`, or coco-caption's
`{"imgToEval": {id: {"caption": ...}}}`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.coco import SAMPLE, parse
from capbias_core.load.ids import described
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows, guess_columns, listed, rows_of_numbered

EVALUATED = "imgToEval"
EVALUATED_KEY = re.compile(rf'"{EVALUATED}"\s*:\s*\{{')
ENTRY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*')
COLUMNS = ("image_id", "caption")
SHAPE = 'an object such as {"785": "a woman on skis"}'


def _first_entries(text: str) -> list[tuple[str, Any]]:
    """Up to 50 keys with their values from the start of an object."""
    entries, place = [], 1
    while len(entries) < SAMPLE and (key := ENTRY.match(text, place)):
        try:
            value, place = json.JSONDecoder().raw_decode(text, key.end())
        except (ValueError, RecursionError):
            break
        entries.append((key[1], value))
    return entries


def _names_an_image(key: str) -> bool:
    """Whether a key may be an image id, which has a digit; names of fields have none."""
    return any(character.isdigit() for character in key)


def _captions(value: Any) -> Any:
    """The captions of an image: text, a list, or what a record calls its caption; None for anything else."""
    if isinstance(value, dict):
        value = value.get(guess_columns(value)["caption"])
    return value if isinstance(value, str | list) else None


def recognises(head: Head) -> bool:
    """Whether every entry at the start has an image for its key and captions for its value."""
    if not head.text.startswith("{"):
        return False
    entries = _first_entries(head.text)
    by_image = [_names_an_image(key) and _captions(value) is not None for key, value in entries]
    return (bool(entries) and all(by_image)) or EVALUATED_KEY.search(head.text) is not None


def columns(path: Path) -> tuple[str, ...]:
    """The names under which keys and captions are offered."""
    return COLUMNS


def read(path: Path, choose: Choose) -> Rows:
    """A row an image. What is beside `imgToEval` is left out."""
    whole = parse(path, SHAPE)
    evaluated = whole.get(EVALUATED, whole) if isinstance(whole, dict) else whole
    if not isinstance(evaluated, dict):
        raise CapbiasError(f"{path.name}, JSON that holds {described(evaluated)}", SHAPE, "Write the file again.")
    faults, numbered = RowErrors(path.name, "record"), []
    for number, (image, value) in enumerate(evaluated.items(), start=1):
        captions = _captions(value)
        if captions is None:
            faults.add(number, f"{described(value)} where a caption is expected")
        else:
            numbered.append((number, {"image_id": image, "caption": captions}))
    beside = [name for name in whole if name != EVALUATED] if evaluated is not whole else []
    notes = (f"captions are taken from {EVALUATED}; left out: {listed(beside)}",) if beside else ()
    return rows_of_numbered(numbered, choose, faults, COLUMNS, notes)


READERS = (Reader("json_by_image", "JSON object of captions by image", recognises, columns, read, place=5),)
