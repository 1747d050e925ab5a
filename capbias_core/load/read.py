"""A file read as whatever it holds: the function that page, command, API, plan and bundle read tables with."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.files import whole_text
from capbias_core.load.labels import label_text, labels
from capbias_core.load.parse import parse, parse_table
from capbias_core.load.parsed import (
    BOXES,
    CAPTIONS,
    FEW_VALUES,
    LABELS,
    OBJECTS,
    REFERENCES,
    SEGMENTS,
    USUAL_REFERENCES,
    Parsed,
    chosen_column,
    column_beside,
    few_values,
    guess_columns,
    listed,
)
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


def read_file(
    path: Path,
    kind: str = "",
    columns: Mapping[str, str] | None = None,
    several: str = "",
    wanted: Collection[str] | None = None,
) -> list[Reading]:
    """What a file holds, read as a kind, by default the likely one.

    columns: names for "image_id" and "caption", ignored if the file lacks them. several: the rule for several label
    rows per image. wanted: read only the outlines of these images. Raises CapbiasError for an unknown format.
    """
    return _readings(parse(path), kind, columns, several, wanted)


def read_records(
    records: Any, name: str, kind: str = "", columns: Mapping[str, str] | None = None, several: str = ""
) -> list[Reading]:
    """What a table, list or dict of Python holds, as `read_file` reads files. name: for messages."""
    return _readings(parse_table(records, name), kind, columns, several, None)


def _readings(
    parsed: Parsed, kind: str, columns: Mapping[str, str] | None, several: str, wanted: Collection[str] | None
) -> list[Reading]:
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


def unknown_format(path: Path) -> CapbiasError | None:
    """Why a file cannot be parsed, None if it can."""
    try:
        parse(path)
    except CapbiasError as error:
        return error
    return None


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
            raise CapbiasError(f"No column of {path.name} holds texts ({listed(names)}).", "Name it.", "column")
        raw = parsed.columns[chosen_column(path.name, names, chosen)]
        usable = [index for index, text in enumerate(raw) if not caption_fault(text) and text.strip()]
        texts = [raw[index].strip() for index in usable]
        if label_column:
            labels = parsed.columns[chosen_column(path.name, names, label_column)]
            values = [label_text(labels[index]) for index in usable]
    if not texts:
        raise CapbiasError(f"{path.name} holds no text.", "Write one text per line, or a column of texts.")
    return texts, values
