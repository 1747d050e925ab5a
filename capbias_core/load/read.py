"""A file read as whatever it holds: what pages, commands, the API, plans and bundles read tables with.

A path goes to the reader of its format (`parse`), then to plain columns (`refined`), then to a table of a kind
(`readings`). Nothing in a file is ever run.
"""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, taken_twice
from capbias_core.load.files import ARCHIVES, HEAD, is_workbook, read_head, readable, unpacked, whole_text
from capbias_core.load.ids import short
from capbias_core.load.json_files import document
from capbias_core.load.labels import label_text, labels
from capbias_core.load.parsed import (
    BOXES,
    CAPTIONS,
    FEW_VALUES,
    LABELS,
    OBJECTS,
    REFERENCES,
    SEGMENTS,
    USUAL_REFERENCES,
    Head,
    Parsed,
    Reader,
    RowErrors,
    check_rows,
    checked_names,
    chosen_column,
    column_beside,
    few_values,
    guess_columns,
    listed,
)
from capbias_core.load.shapes import refined
from capbias_core.load.tables import (
    BOX_NAMES,
    OBJECT_COLUMNS,
    boxes,
    caption_fault,
    captions,
    is_boxes,
    objects,
    segments,
)
from capbias_core.processes import temporary_folder
from capbias_core.types import Table

TITLES = {
    CAPTIONS: "captions of a model",
    REFERENCES: "human captions",
    LABELS: "labels",
    OBJECTS: "objects in images",
    SEGMENTS: "outlines of objects",
    BOXES: "boxes",
}
HUMAN_NAME = re.compile(r"(^|[^a-z])(refs?|references?|humans?|people|gts?|ground.?truth)([^a-z]|$)", re.IGNORECASE)
SEVERAL = 1.5  # captions per image that suggest human captions
# Columns that hold nothing but captions, and columns that number the human captions of an image.
SURE_CAPTIONS = "caption captions caption_list prediction pred predicted_caption generated_caption"
NUMBERS = {"comment_number", "caption_id", "caption_number"}
# Columns of boxes in Open Images and COCO, besides class and corners.
OF_BOXES = "source isoccluded istruncated isgroupof isdepiction isdepictionof isinside isinsideof bbox category_id id"
BOX_COLUMNS = {"area", "iscrowd", *OF_BOXES.split(), *" ".join(BOX_NAMES.values()).split()}


# a file to columns


@cache
def readers() -> dict[str, Reader]:
    """The readers by name, in the order in which they are asked, from each module of this package with `READERS`."""
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    known = [reader for name in modules for reader in getattr(import_module(f"{__package__}.{name}"), "READERS", ())]
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


def parse_table(table: Any, name: str) -> Parsed:
    """The content of a DataFrame, a list of dicts, or a dict in any shape of JSON files. name: for messages. Raises
    CapbiasError for anything else."""
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
    """One thing that a file holds, read as a kind.

    kind: as asked for or guessed. title: the format. guess: the likely kind. certain: whether the format or an
    unmistakable column says so, never the file's name or the number of captions per image. hint: other signs of human
    captions, shown and never acted upon. suggests: the kind that a page preselects for the user to confirm. columns:
    names to choose from. table: None if the file cannot be read as this kind; `error` says why. second: human captions
    beside a model's, or outlines beside objects. by_rows: images are known only by their row. image_names: image ID ->
    file name, if the file lists both. human_column: of human captions beside those of a model. near: two image IDs,
    here and in another file, that may mean the same image.
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
    human_column: str = ""
    near: str = ""


def guess_kind(parsed: Parsed, columns: Mapping[str, str] = {}) -> Reading:
    """What a file likely holds, by its format and columns, without its table. columns: role ("image_id", "caption") ->
    the user's column.

    Human captions are certain only in COCO's annotation format; otherwise they are read as captions of a model, and
    the user is asked. Captions of a model are certain if their column says so.
    """
    names = tuple(parsed.columns)
    named = {role: name for role, name in columns.items() if name in names}

    def guess(kind: str, certain: bool, hint: str = "", suggests: str = "", human_column: str = "") -> Reading:
        more = {"image_names": parsed.image_names, "by_rows": parsed.by_rows, "human_column": human_column}
        read_as = OBJECTS if kind == BOXES else kind
        return Reading(read_as, parsed.title, kind, certain, hint, suggests, names, **more)

    if parsed.kind == REFERENCES and parsed.format != "coco_captions":
        return guess(CAPTIONS, False, f"{parsed.title} holds human captions", REFERENCES)
    if parsed.kind:
        return guess(parsed.kind, True)
    by_role = {**guess_columns(names), **named}
    image, caption = by_role["image_id"], by_role["caption"]
    others = {name.strip().lower() for name in names if name != image}
    sure = caption is not None and ("caption" in named or caption.strip().lower() in SURE_CAPTIONS.split())
    if caption is not None and (sure or not few_values(parsed.columns[caption])):
        beside = column_beside(names, USUAL_REFERENCES) or ""
        if not beside and (parsed.format == "coco_captions" or others & NUMBERS):
            sign = "its captions are numbered" if others & NUMBERS else "it is laid out as COCO's human captions"
            return guess(CAPTIONS, False, sign, REFERENCES)
        each = 0.0  # captions per image
        if image and not parsed.by_rows and (images := {str(value) for value in parsed.columns[image]}):
            each = sum(len(raw) if isinstance(raw, list) else 1 for raw in parsed.columns[caption]) / len(images)
        signs = ["its name says so"] if HUMAN_NAME.search(parsed.path.stem) else []
        signs += [f"its images have {each:.2g} captions each"] if each >= SEVERAL else []
        suggests = REFERENCES if len(signs) == 2 and not beside else ""
        return guess(CAPTIONS, sure, " and ".join(signs), suggests, beside)
    if is_boxes(parsed) and others <= BOX_COLUMNS:
        return guess(BOXES, True)
    if others and others <= set(OBJECT_COLUMNS.split()):
        return guess(OBJECTS, True)
    columns_of_labels = [values for name, values in parsed.columns.items() if name != image]
    few = any(len(set(map(str, values))) <= min(FEW_VALUES, max(1, len(values) - 1)) for values in columns_of_labels)
    return guess(LABELS, image is not None and few)


def read_file(path: Path, *given: Any) -> list[Reading]:
    """What a file holds. given: as for `readings`. Raises CapbiasError for an unknown format."""
    return readings(parse(path), *given)


def readings(
    parsed: Parsed,
    kind: str = "",
    columns: Mapping[str, str] | None = None,
    several: str = "",
    wanted: Collection[str] | None = None,
) -> list[Reading]:
    """What a file or table holds, read as a kind, by default the likely one.

    columns: names for "image_id" and "caption", ignored if the file lacks them. several: the rule for several label
    rows per image. wanted: read only the outlines of these images.
    """
    columns = {role: name for role, name in (columns or {}).items() if name in parsed.columns}
    guess = guess_kind(parsed, columns)

    def read(kind: str, second: bool = False) -> Reading:
        """The reading with its table, or with the error."""
        try:
            if kind in (CAPTIONS, REFERENCES):
                table = captions(parsed, columns, human=kind == REFERENCES)
            elif kind == LABELS:
                table = labels(parsed, columns, several)
            elif kind == OBJECTS:
                table = objects(parsed, columns)
            else:
                table = segments(parsed, wanted) if kind == SEGMENTS else boxes(parsed)
            return replace(guess, kind=kind, table=table, second=second)
        except CapbiasError as error:
            return replace(guess, kind=kind, error=error, second=second)

    first = read(kind or guess.kind)
    if first.table is not None and first.kind == CAPTIONS and guess.human_column:
        return [first, read(REFERENCES, second=True)]
    if first.table is not None and first.kind == OBJECTS and "segmentation" in parsed.columns:
        outlines = read(SEGMENTS, second=True)
        return [first, *([outlines] if outlines.table is not None else [])]
    return [first]


# plain texts without images


def text_lines(text: str) -> list[str]:
    """The lines of a text that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip() and not caption_fault(line)]


def read_texts(
    path: Path, column: str | None = None, label_column: str | None = None
) -> tuple[list[str], list[str] | None]:
    """The texts of a file that are not empty, and their labels, or None without a column of labels.

    A .txt file has one text per line; in any other table the column is `column`, or the one that usually holds text.
    Raises CapbiasError for a file without a usable text or without the column.
    """
    values = None
    if path.suffix.lower() == ".txt" and not column and not label_column:
        texts = text_lines(whole_text(path))
    else:
        parsed = parse(path)
        names = tuple(parsed.columns)
        chosen = column or (names[0] if len(names) == 1 else guess_columns(names)["caption"])
        if chosen is None:
            raise CapbiasError(
                f"No column of {path.name} holds texts ({listed(names)}).", "Name the column that holds them.", "column"
            )
        raw = parsed.columns[chosen_column(path.name, names, chosen)]
        usable = [index for index, text in enumerate(raw) if not caption_fault(text) and text.strip()]
        texts = [raw[index].strip() for index in usable]
        if label_column:
            labels = parsed.columns[chosen_column(path.name, names, label_column)]
            values = [label_text(labels[index]) for index in usable]
    if not texts:
        raise CapbiasError(f"{path.name} holds no text.", "Write one text per line, or a column of texts.")
    return texts, values
