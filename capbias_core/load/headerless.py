"""Lines of an image and a caption without a header: `dog.jpg<tab>A dog.`, and `dog.jpg#0` as Flickr's files say it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from capbias_core.load.files import head_text, read_head, text_lines
from capbias_core.load.ids import short
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import Choose, RowErrors, Rows, rows_of_numbered

COLUMNS = ("image_id", "caption")
IMAGE = re.compile(r"(\d+|\S+\.(?:jpe?g|png|webp|gif|bmp))(?:#\d+)?", re.IGNORECASE)
WORDS = re.compile(r"[^\W\d_]+")
LEAST_WORDS = 3  # of a caption, which a label seldom has
LOOKED_AT = 3  # lines
DELIMITERS = ("\t", ",")


def _pair(row: list[str]) -> tuple[str, str] | None:
    """The image and the caption of the fields of a line, None where they are something else."""
    if len(row) != len(COLUMNS):
        return None
    image = IMAGE.fullmatch(row[0].strip())
    return (image[1], row[1]) if image else None


def _delimiter(text: str) -> str:
    """What stands between image and caption on each of the first lines; '' for another format."""
    lines = text.split("\n", LOOKED_AT)[:LOOKED_AT]
    for delimiter in DELIMITERS:
        pairs = [_pair(row) for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter) if row]
        if pairs and all(pair and len(WORDS.findall(pair[1])) >= LEAST_WORDS for pair in pairs):
            return delimiter
    return ""


def recognises(head: Head) -> bool:
    """Whether each of the first lines is an image and a caption."""
    return bool(_delimiter(head.text))


def columns(path: Path) -> tuple[str, ...]:
    """The names under which ids and captions are offered."""
    return COLUMNS


def read(path: Path, choose: Choose) -> Rows:
    """A row a line."""
    delimiter = _delimiter(head_text(path, read_head(path)).lstrip())
    faults, numbered = RowErrors(path.name, "line"), []
    with text_lines(path) as lines:
        quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
        table = csv.reader(lines, delimiter=delimiter, quoting=quoting)
        for row in table:
            pair = _pair(row)
            if pair:
                numbered.append((table.line_num, dict(zip(COLUMNS, pair, strict=True))))
            elif row:
                faults.add(table.line_num, f"{short(delimiter.join(row))} where an image and a caption are expected")
    return rows_of_numbered(numbered, choose, faults, COLUMNS)


READERS = (Reader("headerless", "Lines of image and caption", recognises, columns, read, place=9.5),)
