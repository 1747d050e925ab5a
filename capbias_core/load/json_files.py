"""JSON: a document, or objects one after another, in whichever shape its table is written."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from capbias_core.errors import CapbiasError
from capbias_core.kinds import OBJECTS, REFERENCES
from capbias_core.load.account import CAPTION_NAMES, LABELS, TEXTUAL, content
from capbias_core.load.files import whole_text
from capbias_core.load.ids import IMAGE_NAME, UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.parsed import (
    IMAGE_IDS,
    SURE_IDS,
    Parsed,
    Reader,
    RowErrors,
    checked_names,
    listed,
    names_of,
    of_records,
    usual_column,
)
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.types import counted

SAMPLE = 50  # entries that are looked at to recognise a shape
DEPTH = 3  # nested objects that are searched for a table
SPACE = re.compile(r"\s*")
OUTLINE = re.compile(r'("segmentation"\s*:\s*)(\[[^"{}]*\])')
ROLES = {"image_id": "image_id", "caption": "caption"}  # of columns that a format fixes
# Names of the lists of column names and of rows, in a table that is an object.
HEADERS, BODIES = ("columns", "fields", "header", "headers"), ("data", "rows", "values", "records")
TITLES = {
    "coco_results": "COCO results (JSON)",
    "json_records": "JSON list of records",
    "json_rows": "JSON table of rows",
    "json_columns": "JSON table of columns",
    "json_by_image": "JSON object by image",
    "json_by_label": "JSON object of images by label",
    "json_within": "JSON records under a key",
    "jsonl": "JSON Lines",
    "json_objects": "JSON objects one after another",
    "coco_captions": "COCO captions (JSON)",
    "coco_instances": "COCO instances (JSON)",
    "karpathy": "Karpathy's data set (JSON)",
}


# files


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if a key occurs twice, of which a reader would silently take the last."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {short(twice)!r} occurs twice in an object")
    return value


def parse_json(path: Path) -> Parsed:
    """The content of a JSON file, or of JSON Lines. Raises CapbiasError if it is broken or holds no table."""
    text, by_line = whole_text(path), path.suffix.lower() in (".jsonl", ".ndjson")

    def after_space(index: int) -> int:
        space = SPACE.match(text, index)
        return space.end() if space else index

    decoder, start = json.JSONDecoder(strict=False, object_pairs_hook=_unique), after_space(0)
    value, end = None, 0
    try:
        if '"segmentation"' in text:
            with suppress(ValueError, RecursionError):  # polygons as numbers would take ten times the time and memory
                lean = OUTLINE.sub(r'\1"\2"', text)
                value, end = decoder.raw_decode(lean, start)
                text = lean
        if not end:
            value, end = json.JSONDecoder(object_pairs_hook=_unique).raw_decode(text, start)
        rest = after_space(end)
        several = isinstance(value, dict) and text[rest : rest + 1] == "{"
        by_line = (several or by_line) and isinstance(value, dict) and not re.search("[\r\n]", text[start:end])
        if not by_line and not several:
            if rest < len(text):
                raise json.JSONDecodeError("Extra data", text, rest)
            return document(path, value)
        if not by_line:
            records = [value]
            while rest < len(text):  # each over several lines, as LLaVA's scripts write answers
                value, end = decoder.raw_decode(text, rest)
                records.append(value)
                rest = after_space(end)
            return of_records(path, "json_objects", TITLES["json_objects"], records)
    except (ValueError, RecursionError) as error:
        if not by_line:
            where = f"at line {error.lineno}, column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
            raise CapbiasError(
                f"{path.name} holds broken JSON ({where}{_fault(error)}).",
                "Write the file again; it may have been cut off.",
            ) from None
    faults, numbers, records = RowErrors(path.name, "line"), [], []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        try:
            if line.strip():
                records.append(json.loads(line, object_pairs_hook=_unique))
                numbers.append(number)
        except (ValueError, RecursionError) as error:
            where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
            faults.add(number, f"broken JSON{where} ({_fault(error)})")
    if not names_of(records):
        first = f" (line {faults.first[0].line}: {faults.first[0].message})" if faults.first else ""
        raise CapbiasError(
            f"{path.name} is JSON Lines without a usable line{first}.",
            'Write one object per line, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    return of_records(path, "jsonl", TITLES["jsonl"], records, numbers, faults=faults)


def _fault(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "lists too deep in one another"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def document(path: Path, value: Any) -> Parsed:
    """The table that a JSON document holds. Raises CapbiasError without one."""
    table = _find(value, path.name)
    if table is None:
        what = "an empty list" if value == [] else described(value)
        if isinstance(value, dict):
            what = f"an object with the keys {listed([str(name) for name in value])}"
        elif value and isinstance(value, list):
            what += f" of {described(value[0])}"
        raise CapbiasError(
            f"{path.name} holds {what}, in which no table is found.",
            'Write a list with one record per row, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    images = value.get("images") if isinstance(value, dict) else None
    names, sizes = {}, {}  # of the images that the file lists
    for record in images if isinstance(images, list) else ():
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            image = normalise_image_id(record["id"])
            sizes[image] = (0, 0)
            if isinstance(name := record.get("file_name"), str) and name:
                names[image] = name
            height, width = int(record["height"]), int(record["width"])
            if min(height, width) > 0 and height * width <= MOST_PIXELS:
                sizes[image] = (height, width)
    title = table.title or TITLES[table.format]
    more = {"notes": table.notes, "kind": table.kind, "roles": table.roles, "left_out": table.left_out}
    parsed = of_records(path, table.format, title, table.records, image_names=names, sizes=sizes, **more)
    human = table.format == "coco_captions" and {"id", "image_id", "caption"} <= set(parsed.columns)
    return replace(parsed, kind=REFERENCES) if human else parsed


class Rows(NamedTuple):
    """A table in JSON. records: one per row. The others as in Parsed."""

    format: str
    records: list
    notes: tuple[str, ...] = ()
    kind: str = ""
    title: str = ""
    left_out: tuple[str, ...] = ()
    roles: Mapping[str, str] = {}


def _find(value: Any, file: str, depth: int = 0) -> Rows | None:
    if isinstance(value, list):
        if not any(isinstance(record, dict) for record in value):
            return _rows(value)
        sure = {"image_id", "caption"} <= set(names_of(value[:SAMPLE]))
        return Rows("coco_results" if sure else "json_records", value)
    if not isinstance(value, dict):
        return None
    if table := next((table for shape in SHAPES if (table := shape(value, file))), None):
        return table
    tables = {}
    for name, inner in value.items():
        if depth < DEPTH and inner and isinstance(inner, list | dict) and (table := _find(inner, file, depth + 1)):
            tables[str(name)] = table
    if not tables:
        return None
    with_image, with_texts = set(), set()
    for key, table in tables.items():
        rows = [row for row in table.records[:: max(1, len(table.records) // SAMPLE)] if isinstance(row, dict)]
        with_image |= {key} if usual_column(names_of(rows), IMAGE_IDS) else set()
        texts = any(content([row.get(name) for row in rows]) in TEXTUAL for name in names_of(rows))
        with_texts |= {key} if texts else set()
    if len(both := sorted(with_image & with_texts)) > 1:
        raise CapbiasError(
            f"{file} holds texts of images under {listed(both)}.", "Write the one to read into a separate file."
        )
    # rather a table of captions, else the longest
    key = max(tables, key=lambda key: ((key in with_image) + (key in with_texts), len(tables[key].records)))
    table, left_out = tables[key], [str(name) for name in value if name != key]
    schema = value.get("schema")  # pandas' orient "table": its index is not a column
    if isinstance(schema, dict) and schema.get("primaryKey") == ["index"]:
        for record in table.records:
            if isinstance(record, dict):
                record.pop("index", None)
    notes = (f"rows from {short(key)}", *table.notes)
    plain = table.format in ("coco_results", "json_records")
    left_out = (*map(str, left_out), *table.left_out)
    return table._replace(format="json_within" if plain else table.format, notes=notes, left_out=left_out)


def _text_column(texts: list) -> str:
    """What to call a column of plain values by image."""
    return "caption" if any(isinstance(text, str) for text in texts) and content(texts) != LABELS else "label"


def _are_images(names: list) -> bool:
    """Whether the first names may be image IDs, with a digit or the ending of a picture; row numbers from 0 are not."""
    if not names or (len(names) > 1 and [str(name) for name in names] == [str(row) for row in range(len(names))]):
        return False
    return all(type(name) in (int, str) and IMAGE_NAME.fullmatch(str(name)) for name in names[:SAMPLE])


# shapes: each gives None for a value of another shape


def _rows(value: list, names: list[str] | None = None) -> Rows | None:
    """Lists of equal length, with the names of columns in the first of them, or elsewhere (names)."""
    if not value or not all(isinstance(row, list) for row in value):
        return None
    width, rows = Counter(map(len, value)).most_common(1)[0]
    if width < 2 or rows * 2 < len(value) or len(names or value[0]) != width:
        return None
    if names is None:
        texts = all(isinstance(cell, str) for cell in value[0])
        header = value[0] if texts and usual_column(value[0], SURE_IDS) else []
        names, value = header or [f"column {number}" for number in range(1, width + 1)], value[bool(header) :]
        if not header and width == 2 and _are_images([row[0] for row in value[:SAMPLE] if row]):
            names = ["image_id", _text_column([row[-1] for row in value if row])]
    # Weights & Biases writes the path of an image's file.
    plain = [[cell.get("path") if isinstance(cell, dict) else cell for cell in row] for row in value]
    return Rows("json_rows", [dict(zip(names, row, strict=True)) if len(row) == width else row for row in plain])


def _split(value: dict, file: str) -> Rows | None:
    """Names of columns beside rows: orient "split" of pandas, and tables of Weights & Biases."""
    names = next((value[key] for key in HEADERS if isinstance(value.get(key), list)), None)
    rows = next((value[key] for key in BODIES if isinstance(value.get(key), list)), None)
    if not names or not rows or not all(isinstance(name, str) for name in names):
        return None
    index = value.get("index")  # which may be that of images
    if usual_column(names, IMAGE_IDS) is None and isinstance(index, list) and _are_images(index):
        rows = [[image, *row] for image, row in zip(index, rows, strict=False) if isinstance(row, list)]
        names = ["image_id", *names]
    return _rows(rows, list(checked_names(file, tuple(names))))


def _columns(value: dict, file: str) -> Rows | None:
    """A single record; columns of equal length, or by row: orients "list" and "columns" of pandas."""
    inner, named = list(value.values()), usual_column(value, IMAGE_IDS) is not None
    if named and usual_column(value, CAPTION_NAMES) and not any(isinstance(column, dict | list) for column in inner):
        return Rows("jsonl", [value])
    if named and all(isinstance(column, list) and len(column) == len(inner[0]) for column in inner):
        return Rows("json_columns", [dict(zip(value, row, strict=True)) for row in zip(*inner, strict=True)])
    if not inner or not all(isinstance(column, dict) and column for column in inner) or (named and len(value) == 1):
        return None
    checked_names(file, tuple(value)[: 2 * SAMPLE])
    rows = list(dict.fromkeys(row for column in inner for row in column))
    nested = any(isinstance(cell, dict) for column in inner for cell in list(column.values())[:SAMPLE])
    if nested or not (named or (_are_images(rows) and not _are_images(list(value)))):
        return None
    records = [
        {**({} if named else {"image_id": row}), **{name: column.get(row) for name, column in value.items()}}
        for row in rows
    ]
    return Rows("json_columns", records)


def _by_image(value: dict, file: str) -> Rows | None:
    """Image IDs as keys of captions, labels or records, or of lists of these."""
    named = True  # whether each record names its image; columns of equal length name many
    for record in list(value.values())[:SAMPLE]:
        name = usual_column(record, SURE_IDS) if isinstance(record, dict) else None
        named = named and name is not None and isinstance(record[name], str | int)
    if not value or not (named or _are_images(list(value))):
        return None
    if all(isinstance(entry, dict) and len(entry) > 1 and _are_images(list(entry)) for entry in value.values()):
        return None  # images are a level further down
    parts = [
        (image, part)
        for image, entry in value.items()
        for part in (entry if isinstance(entry, list) and any(isinstance(part, dict) for part in entry) else [entry])
    ]
    plain = [part for _, part in parts if not isinstance(part, dict)]
    column = _text_column([text for part in plain for text in (part if isinstance(part, list) else [part])])
    if len(plain) * 2 < len(parts):
        column = usual_column(names_of(part for _, part in parts), CAPTION_NAMES) or column
    lists = any(isinstance(part, list) for part in plain)
    records = []
    for image, part in parts:
        if isinstance(part, dict):
            name = usual_column(part, SURE_IDS)  # if a record names its image, the key may be a row number
            others = {key: inner for key, inner in part.items() if key != name}
            records.append({"image_id": part[name] if name else image, **others})
        elif column == "label" or isinstance(part, str | list):
            records.append({"image_id": image, column: [part] if lists and isinstance(part, str) else part})
        else:
            records.append(part)
    return Rows("json_by_image", records)


def _by_label(value: dict, file: str) -> Rows | None:
    lists = all(isinstance(images, list) and _are_images(images) for images in value.values())
    if not lists or len(value) < 2 or _are_images(list(value)):
        return None
    records = [{"image_id": image, "label": label} for label, images in value.items() for image in images]
    return Rows("json_by_label", records)


def _karpathy(value: dict, file: str) -> Rows | None:
    """Karpathy's data sets (`dataset_coco.json`): images with their human captions and splits; all splits are read."""
    images = value.get("images")
    if not isinstance(images, list) or not any(isinstance(image, dict) and "sentences" in image for image in images):
        return None
    records, splits = [], Counter()
    for image in images:
        sentences = image.get("sentences") if isinstance(image, dict) else None
        if not isinstance(sentences, list):
            records.append("an image without sentences")
            continue
        split = str(image.get("split"))
        splits[split] += 1
        texts = [sentence.get("raw") if isinstance(sentence, dict) else sentence for sentence in sentences]
        name = next((image[key] for key in ("cocoid", "filename", "imgid") if image.get(key) is not None), None)
        records.append({"image_id": name, "caption": texts, "split": split})
    shown = ", ".join(f"{split} {counted(number, 'image')}" for split, number in splits.items())
    return Rows("karpathy", records, (f"images of every split: {shown}",), REFERENCES, roles=ROLES)


def _coco(value: dict, file: str) -> Rows | None:
    records = value.get("annotations")
    if not isinstance(records, list) or not any(isinstance(record, dict) for record in records):
        return None
    title = TITLES["coco_instances"]
    if any(isinstance(record, dict) and "segments_info" in record for record in records):
        title = "COCO panoptic annotations (JSON)"
        records = [
            {**segment, "image_id": record.get("image_id")} if isinstance(segment, dict) else segment
            for record in records
            for segment in (record.get("segments_info") or () if isinstance(record, dict) else (record,))
        ]
    if not any(isinstance(record, dict) and "category_id" in record for record in records):
        return Rows("coco_captions", records, roles=ROLES)
    names = {}
    for category in value.get("categories") or ():
        name = category.get("name") if isinstance(category, dict) else None
        if isinstance(name, str) and name.strip(" |") and not UNSTORABLE.search(name):
            names[str(category.get("id"))] = name
    if not names:
        raise CapbiasError(
            f"{file} names no categories.",
            'Load the file as COCO has it, with images, annotations and categories such as {"id": 17, "name": "cat"}.',
        )
    for record in records:
        if isinstance(record, dict):  # a category is a number, a number as text, or its name
            category = record.get("category_id")
            record["category"] = names.get(str(category)) or (category if category in names.values() else None)
    return Rows("coco_instances", records, (), OBJECTS, title)


SHAPES: tuple[Callable[[dict, str], Rows | None], ...] = (_karpathy, _coco, _split, _columns, _by_image, _by_label)
READERS = (Reader("json", "JSON or JSON Lines", lambda head: head.text[:1] in ("{", "["), parse_json, order=5),)
