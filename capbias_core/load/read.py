"""A file read as whatever it holds: the only function that page, command, API, plan and bundle read tables with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS, guess_kind
from capbias_core.load.labels import labels
from capbias_core.load.parse import Parsed, parse, parse_table
from capbias_core.load.tables import boxes, captions, objects, segments
from capbias_core.types import Table

TITLES = {
    CAPTIONS: "captions of a model",
    REFERENCES: "human captions",
    LABELS: "labels",
    OBJECTS: "objects in images",
    SEGMENTS: "outlines of objects",
    BOXES: "boxes",
}


@dataclass(frozen=True)
class Reading:
    """One thing that a file holds, read as a kind.

    kind: as asked for or guessed. title: the format. guess: what the content suggests. certain: whether the content
    alone settles that. hint: what speaks for human captions. near: two image ids, here and in another file, that may be
    meant as one. suggests: the kind to preselect on a page. columns: names
    to choose from. table: None if the file cannot be read as this kind; `error` says why. second: human captions beside
    a model's, or outlines beside objects. by_rows: whether images are known only by their row. image_names: image ID ->
    file name, where the file lists both.
    """

    kind: str
    title: str = ""
    guess: str = ""
    certain: bool = False
    hint: str = ""
    suggests: str = ""
    columns: tuple[str, ...] = ()
    table: Table | None = None
    error: CapbiasError | None = None
    second: bool = False
    by_rows: bool = False
    image_names: Mapping[str, str] = field(default_factory=dict)
    near: str = ""


def read_file(
    path: Path,
    kind: str = "",
    columns: Mapping[str, str] | None = None,
    several: str = "",
    wanted: Collection[str] | None = None,
) -> list[Reading]:
    """What a file holds, read as a kind, by default the likely one.

    columns: names for "image_id" and "caption"; those that the file lacks are ignored. several: the rule for several
    label rows of an image. wanted: read only the outlines of these images. Raises CapbiasError for a file in no known
    format.
    """
    return _readings(parse(path), kind, columns or {}, several, wanted)


def read_records(
    records: Any, name: str, kind: str = "", columns: Mapping[str, str] | None = None, several: str = ""
) -> list[Reading]:
    """What a table, list or dict of Python holds, as `read_file` reads files. name: what messages call it."""
    return _readings(parse_table(records, name), kind, columns or {}, several, None)


def unknown_format(path: Path) -> CapbiasError | None:
    """Why no reader knows a file; None if one does."""
    try:
        parse(path)
    except CapbiasError as error:
        return error
    return None


def _readings(
    parsed: Parsed, kind: str, columns: Mapping[str, str], several: str, wanted: Collection[str] | None
) -> list[Reading]:
    names = tuple(parsed.columns)
    columns = {role: name for role, name in columns.items() if name in names}
    guess = guess_kind(parsed, columns)
    if guess.kind == REFERENCES and not guess.certain:  # a page asks whether people wrote them; nothing else assumes it
        guess = replace(guess, kind=CAPTIONS, suggests=REFERENCES)
    first = Reading(
        kind or (OBJECTS if guess.kind == BOXES else guess.kind),
        parsed.title,
        guess.kind,
        guess.certain,
        guess.hint,
        guess.suggests,
        names,
        by_rows=parsed.by_rows,
        image_names=parsed.image_names,
    )
    first = _read(first, parsed, columns, several, wanted)
    if first.table is None:
        return [first]
    if first.kind == CAPTIONS and guess.references_beside:
        return [first, _read(replace(first, kind=REFERENCES, second=True), parsed, columns, several, wanted)]
    if first.kind == OBJECTS and "segmentation" in names:
        outlines = _read(replace(first, kind=SEGMENTS, second=True), parsed, columns, several, wanted)
        return [first, *([outlines] if outlines.table is not None else [])]
    return [first]


def _read(
    reading: Reading, parsed: Parsed, columns: Mapping[str, str], several: str, wanted: Collection[str] | None
) -> Reading:
    """The reading with its table, or with the error."""
    try:
        if reading.kind in (CAPTIONS, REFERENCES):
            table = captions(parsed, columns, human=reading.kind == REFERENCES)
        elif reading.kind == LABELS:
            table = labels(parsed, columns, several)
        elif reading.kind == OBJECTS:
            table = objects(parsed, columns)
        elif reading.kind == SEGMENTS:
            table = segments(parsed, wanted)
        else:
            table = boxes(parsed)
        return replace(reading, table=table, error=None)
    except CapbiasError as error:
        return replace(reading, table=None, error=error)
