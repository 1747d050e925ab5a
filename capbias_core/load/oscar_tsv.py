"""What Oscar and VinVL write: no header, then `image id <tab> [{"caption": ..., "conf": ...}]` a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capbias_core.load.files import text_lines
from capbias_core.load.ids import short
from capbias_core.load.jsonl import parsed_line
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows, rows_of_numbered

COLUMNS = ("image_id", "caption")


def _captions(line: str) -> tuple[str, list[Any]]:
    """The image id and the captions of a line. A ValueError says what is wrong with it."""
    image, tab, written = line.strip().partition("\t")
    found = parsed_line(written) if tab else None
    if not isinstance(found, list) or not all(isinstance(own, dict) and "caption" in own for own in found):
        raise ValueError(f'{short(line)} where an image id, a tab and [{{"caption": ...}}] are expected')
    return image, [own["caption"] for own in found]


def recognises(head: Head) -> bool:
    """Whether the first line is one of these."""
    try:
        return bool(_captions(head.text.split("\n", 1)[0])[1])
    except ValueError:
        return False


def columns(path: Path) -> tuple[str, ...]:
    """The names under which ids and captions are offered."""
    return COLUMNS


def read(path: Path, choose: Choose) -> Rows:
    """A row a line; what else than captions stands in the list (`conf`) is left out."""
    faults, numbered = RowErrors(path.name, "line"), []
    with text_lines(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                image, captions = _captions(line)
            except ValueError as error:
                faults.add(number, str(error))
                continue
            numbered.append((number, {"image_id": image, "caption": captions}))
    return rows_of_numbered(numbered, choose, faults, COLUMNS, ("the confidence of each caption is left out",))


READERS = (Reader("oscar_tsv", "Captions of Oscar and VinVL (TSV)", recognises, columns, read, place=9),)
