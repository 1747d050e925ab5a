"""A file read as whatever it holds: what pages, commands, the API and bundles read tables with.

A path goes to the reader of its format (`parse`), then to plain columns (`refined`), then to a table of a kind
(`readings`). Nothing in a file is ever run.
"""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

import capbias_core.load as package
from capbias_core.entry_points import load_entry_points
from capbias_core.errors import CapbiasError, taken_twice
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.account import Choices, OpenQuestion, Roles, captions_table, question_of, roles_of, rows_of
from capbias_core.load.files import ARCHIVES, HEAD, is_workbook, read_head, readable, unpacked
from capbias_core.load.ids import short
from capbias_core.load.json_files import document
from capbias_core.load.labels import labels
from capbias_core.load.parsed import Head, Parsed, Reader, RowErrors, check_rows, checked_names, listed
from capbias_core.load.shapes import refined
from capbias_core.load.tables import BOX_NAMES, OBJECT_COLUMNS, boxes, is_boxes, objects, segments
from capbias_core.processes import temporary_folder
from capbias_core.types import Table

# Columns of boxes in Open Images and COCO, besides class and corners.
OF_BOXES = "source isoccluded istruncated isgroupof isdepiction isdepictionof isinside isinsideof bbox category_id id"
BOX_COLUMNS = {"area", "iscrowd", *OF_BOXES.split(), *" ".join(BOX_NAMES.values()).split()}


# a file to columns


_ADDED: list[Reader] = []


def add(reader: Reader) -> None:
    """Make a format known. Raises CapbiasError if its name is taken."""
    if reader.name in readers():
        raise taken_twice("reader", reader.name, ["load/"])
    _ADDED.append(reader)
    readers.cache_clear()


@cache
def readers() -> dict[str, Reader]:
    """The readers by name, in the order in which they are asked, from each module of this package with `READERS`, and
    those that were added."""
    load_entry_points()
    modules = [module.name for module in pkgutil.iter_modules(package.__path__)]
    known = [reader for name in modules for reader in getattr(import_module(f"{__package__}.{name}"), "READERS", ())]
    known += _ADDED
    if twice := [name for name, count in Counter(reader.name for reader in known).items() if count > 1]:
        raise taken_twice("reader", twice[0], ["load/"])
    return {reader.name: reader for reader in sorted(known, key=lambda reader: (reader.order, reader.name))}


def parse(path: Path) -> Parsed:
    """The content of a file, of a folder that is one, or of an archive with one file in it.

    Parsed.path is then the file in the archive, as if it lay beside it. Raises CapbiasError for a file in no known
    format, or one that cannot be read.
    """
    path = Path(path)
    archive = path.suffix.lower() in ARCHIVES and path.is_file()
    if archive:
        with readable(path), path.open("rb") as file:
            archive = not is_workbook(file.read(HEAD))
    if not archive:
        return _content(path)
    with temporary_folder() as folder:
        inside = unpacked(path, folder / "files")
        known = inside if len(inside) == 1 else []
        for file in inside if len(inside) > 1 else ():
            with suppress(CapbiasError):
                _reader_of(file)
                known.append(file)
        if len(known) != 1:
            names = listed([file.name for file in known or inside])
            number = f"{len(known)} files" if known else "no file"
            raise CapbiasError(
                f"{path.name} holds {number} in a known format ({names}), where one is expected.",
                "Unpack it, and name the file.",
            )
        parsed = _content(known[0])
    return replace(parsed, path=path.with_name(known[0].name))


def _content(path: Path) -> Parsed:
    """A file in plain columns, with a note if its name says JSON and its content is something else."""
    reader = _reader_of(path)
    parsed = refined(reader.parse(path))
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson") and reader.name != "json":
        parsed = replace(parsed, notes=(f"as {parsed.title}, since the file does not begin like JSON", *parsed.notes))
    return parsed


def _reader_of(path: Path) -> Reader:
    """The first reader that recognises a file. Raises CapbiasError without one."""
    head = Head(path, b"" if path.is_dir() else read_head(path))
    for reader in readers().values():
        if reader.recognises(head):
            return reader
    if path.is_dir():
        raise CapbiasError(f"{path.name} is a folder without a data set or texts in it.", "Choose a file in it.")
    titles = dict.fromkeys(reader.title for reader in readers().values())
    raise CapbiasError(
        f"{path.name} is text in no known format; it begins with {short(head.text)!r}.",
        f"These formats are read: {', '.join(titles)}. The first line of a CSV names the columns, image_id among them.",
    )


def unknown_format(path: Path) -> CapbiasError | None:
    """Why a file cannot be parsed, None if it can."""
    try:
        parse(path)
    except CapbiasError as error:
        return error
    return None


MEDIA = ("Image", "Audio", "Video")  # what columns of a Dataset may hold besides data


def parse_table(table: Any, name: str) -> Parsed:
    """The content of a DataFrame, a Dataset of Hugging Face, a table of another library, a list of dicts, or a dict in
    any shape of JSON files. name: for messages. Raises CapbiasError for anything else."""
    try:
        return _parse_table(table, name)
    except RecursionError:
        raise CapbiasError(
            f"{name} is nested too deeply, or holds itself.", "Give a path, a DataFrame or a list of dicts."
        ) from None


def _parse_table(table: Any, name: str) -> Parsed:
    if hasattr(table, "to_pandas"):
        table = as_frame(table)
    if isinstance(table, pd.DataFrame):
        frame = table.reset_index() if table.index.name else table
        names = checked_names(name, tuple(map(str, frame.columns)))
        check_rows(name, len(frame))
        columns = {column: [_plain(value) for value in frame.iloc[:, index]] for index, column in enumerate(names)}
        numbers = range(1, len(frame) + 1)
        return refined(Parsed(Path(name), "table", "table", columns, numbers, len(frame), RowErrors(name, "record")))
    if isinstance(table, str | bytes) or not hasattr(table, "__iter__"):
        raise CapbiasError(f"{name} is a {type(table).__name__}.", "Give a path, a DataFrame or a list of dicts.")
    return refined(document(Path(name), _plain(table if isinstance(table, Mapping) else list(table))))


def as_frame(table: Any) -> pd.DataFrame | pd.Series:
    """A table of polars, Arrow or Hugging Face's `datasets` as a DataFrame: classes by their names, and without columns
    of pictures, sound and films, which would be decoded. A single column, such as Arrow's arrays, as a Series."""
    features = getattr(table, "features", None) or {}
    media = [column for column, feature in features.items() if getattr(feature, "_type", "") in MEDIA]
    frame = (table.remove_columns(media) if media else table).to_pandas()
    for column in frame.columns if isinstance(frame, pd.DataFrame) else ():
        if names := getattr(features.get(column), "names", None):
            frame[column] = [names[value] if value >= 0 else None for value in frame[column].fillna(-1).astype(int)]
    return frame


def check_one_table(source: Any) -> None:
    """Raises CapbiasError for a DatasetDict, whose splits are no captioners."""
    if isinstance(source, Mapping) and hasattr(source, "num_rows"):
        raise CapbiasError(
            f"This data set has several splits: {', '.join(source)}.",
            f"Give one of them, as in dataset[{next(iter(source))!r}], or concatenate_datasets of several.",
        )


def _plain(value: Any) -> Any:
    """A value of numpy, pandas or torch as one of Python; missing ones as None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) or value is pd.NaT or value is pd.NA:
        return None if value is pd.NaT or value is pd.NA or value != value else value
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value.item() if hasattr(value, "item") else value


# columns to a table


@dataclass(frozen=True)
class Reading:
    """One thing that a file holds, read as a kind."""

    kind: str  # as asked for or detected, '' if that is open
    title: str = ""  # of the format
    guess: str = ""  # the kind that the content alone suggests
    columns: tuple[str, ...] = ()  # names to choose from
    table: Table | None = None  # None if the file cannot be read as this kind
    error: CapbiasError | None = None  # why it cannot be read
    question: OpenQuestion | None = None  # what to ask, if the error is one
    second: bool = False  # human captions beside a model's, or outlines beside objects
    by_rows: bool = False  # whether images are known only by their row
    image_names: Mapping[str, str] = field(default_factory=dict)  # image ID -> file name, if the file lists both
    near: str = ""  # two image IDs, here and in another file, that may mean the same image


def _guess(parsed: Parsed) -> str:
    """What the content alone says; '' if that is open."""
    with suppress(CapbiasError):
        roles = roles_of(parsed, Choices())
        return roles.kind or _kind_without_captions(parsed, roles)
    return ""


def _kind_without_captions(parsed: Parsed, roles: Roles) -> str:
    others = {name.strip().lower() for name in parsed.columns if name != roles.image_id}
    if parsed.kind or (is_boxes(parsed) and others <= BOX_COLUMNS):
        return parsed.kind or BOXES
    return OBJECTS if others and others <= set(OBJECT_COLUMNS.split()) else LABELS


def read_file(path: Path, *given: Any) -> list[Reading]:
    """What a file holds. given: as for `readings`. Raises CapbiasError for an unknown format."""
    return readings(parse(path), *given)


def readings(
    parsed: Parsed,
    kind: str = "",
    given: Mapping[str, Any] | None = None,
    several: str = "",
    wanted: Collection[str] | None = None,
) -> list[Reading]:
    """What a file or table holds, read as a kind, by default the one of its content.

    given: what the user said, as for `Choices.of`; columns that the file lacks are ignored. several: the rule for
    several label rows per image. wanted: read only the outlines of these images.
    """
    chosen = Choices.of(given or {}, parsed)
    names = {"image_names": parsed.image_names, "by_rows": parsed.by_rows, "columns": tuple(parsed.columns)}
    empty = Reading(kind, parsed.title, _guess(parsed) if kind else "", **names)

    def read(kind: str, table: Callable[[], Table], second: bool = False) -> Reading:
        """The reading with its table, or with the error."""
        try:
            return replace(empty, kind=kind, table=table(), second=second)
        except CapbiasError as error:
            return replace(empty, kind=kind, error=error, question=question_of(error), second=second)

    image = {"image_id": chosen.image_id} if chosen.image_id else {}
    tables: dict[str, Callable[[], Table]] = {
        LABELS: lambda: labels(parsed, image, several),
        OBJECTS: lambda: objects(parsed, image),
        SEGMENTS: lambda: segments(parsed, wanted),
        BOXES: lambda: boxes(parsed),
    }
    if kind in ("", CAPTIONS, REFERENCES):
        try:
            roles = roles_of(parsed, chosen, kind)
            rows = rows_of(parsed, roles, chosen, bool(kind)) if roles.kind else None
        except CapbiasError as error:
            return [replace(empty, error=error, question=question_of(error))]
        kind = roles.kind or _kind_without_captions(parsed, roles)
        empty = replace(empty, guess=empty.guess or kind)
        kind = OBJECTS if kind == BOXES else kind  # boxes are stored as boxes only if the user says so
        if rows:
            table = partial(captions_table, parsed, roles, rows, chosen)
            first = read(kind, partial(table, kind == REFERENCES))
            if kind == REFERENCES or not roles.references or first.table is None:
                return [first]
            return [first, read(REFERENCES, partial(table, True), second=True)]
    first = read(kind, tables[kind])
    outlines = kind == OBJECTS and first.table is not None and "segmentation" in parsed.columns
    second = [read(SEGMENTS, tables[SEGMENTS], second=True)] if outlines else []
    return [first, *(reading for reading in second if reading.table is not None)]
