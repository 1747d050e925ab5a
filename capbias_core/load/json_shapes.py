"""JSON: a document or objects one after another, to raw columns, in whichever shape a table is written."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.load.files import whole_text
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.parsed import OBJECTS, REFERENCES, Head, Parsed, Reader, of_records
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.load.rows import RowErrors, checked_names, few_values, guess_columns, listed, names_of, usual_column
from capbias_core.types import counted

LINES = (".jsonl", ".ndjson")
SAMPLE = 50  # entries that are looked at to recognise a shape
DEPTH = 3  # objects within one another in which a table is looked for
SPACE = re.compile(r"\s*")
OUTLINE = re.compile(r'("segmentation"\s*:\s*)(\[[^"{}]*\])')
PICTURE = re.compile(r"\.(jpe?g|png|webp|gif|bmp|tiff?)$", re.IGNORECASE)
# Names under which a record says for certain which image it is of.
SURE_IDS = """
    image_id img_id imageid imgid image_name img_name file_name filename image_file image_path img_path image img cocoid
"""
# Names of the lists of column names, and of the rows, in a table that is an object.
HEADERS, BODIES = ("columns", "fields", "header", "headers"), ("data", "rows", "values", "records")


# files


def parse_json(path: Path) -> Parsed:
    """The content of a JSON file, or of JSON Lines. Raises CapbiasError if it is broken or holds no table."""
    text = whole_text(path)
    start = _after_space(text, 0)
    named_lines = path.suffix.lower() in LINES
    try:
        value, end, text = _first_value(text, start)
    except (ValueError, RecursionError) as error:
        if named_lines:
            return _lines(path, text)
        raise _broken(path, error) from None
    rest = _after_space(text, end)
    if isinstance(value, dict) and (named_lines or text.startswith("{", rest)):
        alone = "\n" not in text[start:end]
        if alone:
            return _lines(path, text)
        if rest < len(text):
            return _objects(path, text)
    if rest < len(text):
        raise _broken(path, json.JSONDecodeError("Extra data", text, rest))
    return document(path, value)


def _first_value(text: str, start: int) -> tuple[Any, int, str]:
    """The first JSON value of a text, where it ends, and the text in which it ends there.

    Polygons become text in the text itself: as numbers they would take ten times the time and memory.
    """
    if '"segmentation"' in text:
        with suppress(ValueError, RecursionError):
            lean = OUTLINE.sub(r'\1"\2"', text)
            return *json.JSONDecoder(strict=False).raw_decode(lean, start), lean
    return *json.JSONDecoder().raw_decode(text, start), text


def _after_space(text: str, place: int) -> int:
    space = SPACE.match(text, place)
    return space.end() if space else place


def _fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"at line {error.lineno}, column {error.colno}: {error.msg}"
    return "lists too deep in one another" if isinstance(error, RecursionError) else str(error)


def _broken(path: Path, error: Exception) -> CapbiasError:
    return CapbiasError(
        f"{path.name} holds broken JSON ({_fault(error)}).", "Write the file again; it may have been cut off."
    )


def _lines(path: Path, text: str) -> Parsed:
    """One object per line, with real line numbers; a broken line is a fault."""
    faults, numbers, records = RowErrors(path.name, "line"), [], []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            faults.add(number, f"broken JSON at column {error.colno} ({error.msg})")
            continue
        except (ValueError, RecursionError) as error:
            faults.add(number, f"broken JSON ({_fault(error)})")
            continue
        numbers.append(number)
        records.append(record)
    if not names_of(records):
        first = f" (line {faults.first[0].line}: {faults.first[0].message})" if faults.first else ""
        raise CapbiasError(
            f"{path.name} is JSON Lines without a usable line{first}.",
            'Write one object per line, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    return of_records(path, "jsonl", "JSON Lines", records, numbers, faults=faults)


def _objects(path: Path, text: str) -> Parsed:
    """Objects one after another, each over as many lines as it likes, as LLaVA's scripts write answers."""
    place, records = _after_space(text, 0), []
    while place < len(text):
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise _broken(path, error) from None
        if not isinstance(value, dict):
            line = text.count("\n", 0, place) + 1
            raise _broken(path, ValueError(f"{described(value)} after an object, at line {line}"))
        records.append(value)
        place = _after_space(text, end)
    return of_records(path, "json_objects", "JSON objects one after another", records)


def document(path: Path, value: Any) -> Parsed:
    """The table that a JSON document holds. Raises CapbiasError if it holds none."""
    parsed = _table(path, value)
    if parsed is None:
        what = "an empty list" if value == [] else described(value)
        if isinstance(value, dict):
            what = f"an object with the keys {listed([str(name) for name in value])}"
        elif value and isinstance(value, list):
            what += f" of {described(value[0])}"
        raise CapbiasError(
            f"{path.name} holds {what}, in which no table is found.",
            'Write a list with one record per row, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    return parsed


# shapes: each gives None for a value of another shape


def _table(path: Path, value: Any, depth: int = 0) -> Parsed | None:
    shapes = LIST_SHAPES if isinstance(value, list) else DICT_SHAPES if isinstance(value, dict) else ()
    for shape in shapes:
        if parsed := shape(path, value):
            break
    else:
        parsed = _within(path, value, depth) if isinstance(value, dict) and depth < DEPTH else None
    if parsed and isinstance(value, dict):
        names, sizes = _images(value.get("images"))
        parsed = replace(parsed, image_names={**names, **parsed.image_names}, sizes={**sizes, **parsed.sizes})
    return parsed


def _within(path: Path, value: dict, depth: int) -> Parsed | None:
    """A table under one of the keys, rather one of captions, else the longest."""
    inner = [(key, own) for key, own in value.items() if isinstance(own, list | dict) and own]
    tables = [(key, len(own), parsed) for key, own in inner if (parsed := _table(path, own, depth + 1))]
    if not tables:
        return None
    roles = {key: sum(name is not None for name in guess_columns(parsed.columns).values()) for key, _, parsed in tables}
    key, _, parsed = max(tables, key=lambda own: (roles[own[0]], own[1]))
    left_out = [str(name) for name in value if name != key]
    notes = (f"rows from {short(key)}", *((f"left out: {listed(left_out)}",) if left_out else ()))
    named = parsed.format in ("coco_results", "json_records")
    title = {"format": "json_within", "title": "JSON records under a key"} if named else {}
    parsed = replace(parsed, notes=(*notes, *parsed.notes), **title)
    schema = value.get("schema")  # pandas' orient "table": its index is no column
    index = schema.get("primaryKey") if isinstance(schema, dict) else None
    if index == ["index"] and len(parsed.columns) > 1:
        return replace(parsed, columns={name: own for name, own in parsed.columns.items() if name != "index"})
    return parsed


def _records(path: Path, value: list) -> Parsed | None:
    if not any(isinstance(record, dict) for record in value):
        return None
    parsed = of_records(path, "json_records", "JSON list of records", value)
    if {"image_id", "caption"} <= set(parsed.columns):
        return replace(parsed, format="coco_results", title="COCO results (JSON)")
    return parsed


def _rows(path: Path, value: list, names: list[str] | None = None) -> Parsed | None:
    """A list of lists of equal length, with the names of columns in its first row, or elsewhere (names)."""
    rows = [row for row in value if isinstance(row, list)]
    widths = Counter(len(row) for row in rows)
    if not rows or widths.most_common(1)[0][0] < 2 or any(isinstance(row, dict) for row in value):
        return None
    width, first = widths.most_common(1)[0][0], 1
    if names is None:
        header = value[0] if isinstance(value[0], list) and all(isinstance(cell, str) for cell in value[0]) else []
        if len(header) == width and usual_column(header, SURE_IDS):
            names, value, first = header, value[1:], 2
        else:
            names = [f"column {place}" for place in range(1, width + 1)]
    if len(names) != width:
        return None
    checked_names(path.name, tuple(names))
    faults, numbers, kept = RowErrors(path.name, "record"), [], []
    for number, row in enumerate(value, start=first):
        if isinstance(row, list) and len(row) == width:
            numbers.append(number)
            kept.append(row)
        else:
            faults.add(number, f"{described(row)} where a list of {width} values is expected")
    columns = dict(zip(names, (list(column) for column in zip(*kept, strict=True)), strict=True))
    if names[0] == "column 1" and width == 2 and _are_images(columns["column 1"]):
        columns = dict(zip(("image_id", _text_column(columns["column 2"])), columns.values(), strict=True))
    return Parsed(path, "json_rows", "JSON list of rows", columns, numbers, len(kept) + faults.count, faults)


def _split(path: Path, value: dict) -> Parsed | None:
    """Names of columns beside rows: orient "split" of pandas, and tables of Weights & Biases."""
    names = next((value[key] for key in HEADERS if isinstance(value.get(key), list)), None)
    rows = next((value[key] for key in BODIES if isinstance(value.get(key), list)), None)
    if not names or not rows or not all(isinstance(name, str) for name in names):
        return None
    parsed = _rows(path, rows, names)
    if parsed is None:
        return None
    # Of an image Weights & Biases writes where its file is.
    columns = {
        name: [cell["path"] if isinstance(cell, dict) and "path" in cell else cell for cell in column]
        for name, column in parsed.columns.items()
    }
    return replace(parsed, columns=columns, title="JSON table of columns and rows")


def _record(path: Path, value: dict) -> Parsed | None:
    """A single record."""
    scalars = all(not isinstance(own, dict | list) for own in value.values())
    if not scalars or not all(guess_columns(value).values()):
        return None
    return of_records(path, "jsonl", "JSON Lines", [value], [1])


def _columns(path: Path, value: dict) -> Parsed | None:
    """Columns of equal length, or columns by row: orients "columns" and "list" of pandas."""
    inner = list(value.values())
    named = guess_columns(value)["image_id"] is not None
    if inner and named and all(isinstance(own, list) and len(own) == len(inner[0]) for own in inner):
        rows, columns = range(len(inner[0])), {name: list(own) for name, own in value.items()}
    elif inner and all(isinstance(own, dict) and own for own in inner):
        rows = list(dict.fromkeys(row for own in inner for row in own))
        nested = any(isinstance(cell, dict) for own in inner for cell in list(own.values())[:SAMPLE])
        if nested or (named and len(value) == 1) or (not named and (not _are_images(rows) or _are_images(list(value)))):
            return None
        columns = {} if named else {"image_id": rows}
        columns |= {name: [own.get(row) for row in rows] for name, own in value.items()}
    else:
        return None
    names = checked_names(path.name, tuple(name for name in columns if not UNSTORABLE.search(name)))
    columns = {name: columns[name] for name in names}
    count = len(rows)
    return Parsed(
        path, "json_columns", "JSON columns", columns, range(1, count + 1), count, RowErrors(path.name, "record")
    )


def _by_image(path: Path, value: dict) -> Parsed | None:
    """Image IDs as keys: of captions, labels or records, or of lists of these; also coco-caption's `imgToEval`."""
    evaluated = value.get("imgToEval")
    entries = evaluated if isinstance(evaluated, dict) and evaluated else value
    keys = list(entries)[:SAMPLE]
    if not keys or not (_are_images(keys) or entries is evaluated):
        return None
    if all(isinstance(own, dict) and len(own) > 1 and _are_images(list(own)) for own in entries.values()):
        return None  # images are a level further down
    plain = [own for own in entries.values() if not isinstance(own, dict)]
    column = _text_column([text for own in plain for text in (own if isinstance(own, list) else [own])])
    if len(plain) * 2 < len(entries):
        column = guess_columns(names_of(entries.values()))["caption"] or column
    records, numbers, faults = [], [], RowErrors(path.name, "record")
    for number, (image, own) in enumerate(entries.items(), start=1):
        for part in own if isinstance(own, list) and any(isinstance(part, dict) for part in own) else [own]:
            if isinstance(part, dict):
                records.append({"image_id": image, **_under_key(part)})
            elif column == "label" or isinstance(part, str | list):
                records.append({"image_id": image, column: part})
            else:
                faults.add(number, f"{described(part)} where a caption is expected")
                continue
            numbers.append(number)
    if not records:
        return None
    parsed = of_records(path, "json_by_image", "JSON object by image", records, numbers, faults=faults)
    beside = [name for name in value if name != "imgToEval"] if entries is evaluated else []
    notes = (f"rows from imgToEval; left out: {listed(beside)}",) if beside else ()
    return replace(parsed, rows=len(entries), notes=notes)


def _under_key(record: dict) -> dict:
    """A record under a key. If it names its image itself, the key may be a row number and gives way."""
    name = usual_column(record, SURE_IDS)
    if name is None:
        return record
    return {"image_id": record[name], **{other: own for other, own in record.items() if other != name}}


def _by_label(path: Path, value: dict) -> Parsed | None:
    """Labels as keys, each with a list of images."""
    lists = all(isinstance(own, list) and own and _are_images(own[:SAMPLE]) for own in value.values())
    if not lists or len(value) < 2 or _are_images(list(value)):
        return None
    records = [{"image_id": image, "label": label} for label, images in value.items() for image in images]
    return of_records(path, "json_by_label", "JSON object of images by label", records)


def _text_column(texts: list) -> str:
    """What a column of unnamed texts is called."""
    return "label" if few_values(texts) or not any(isinstance(text, str) for text in texts) else "caption"


def _are_images(names: list) -> bool:
    """Whether all may be image IDs, which have a digit or the ending of a picture; names of fields have none."""
    return bool(names) and all(
        isinstance(name, int | str)
        and not isinstance(name, bool)
        and (any(character.isdigit() for character in str(name)) or bool(PICTURE.search(str(name))))
        for name in names[:SAMPLE]
    )


# COCO


def _coco(path: Path, value: dict) -> Parsed | None:
    """COCO captions, instances and panoptic annotations."""
    records = value.get("annotations")
    if not isinstance(records, list) or not any(isinstance(record, dict) for record in records):
        return None
    if any(isinstance(record, dict) and "segments_info" in record for record in records):
        return _panoptic(path, value, records)
    parsed = of_records(path, "coco_captions", "COCO captions (JSON)", records)
    if "category_id" in parsed.columns:
        return _instances(path, parsed, value.get("categories"))
    if {"id", "image_id", "caption"} <= set(parsed.columns):
        return replace(parsed, kind=REFERENCES)
    return parsed


def _instances(path: Path, parsed: Parsed, categories: Any, title: str = "COCO instances (JSON)") -> Parsed:
    names = category_names(path, categories)
    nothing = [None] * len(parsed.numbers)
    columns = {name: nothing for name in ("image_id", "iscrowd", "bbox")} | dict(parsed.columns)
    columns["category"] = [
        names.get(str(own)) or (own if isinstance(own, str) and own in names.values() else None)
        for own in columns["category_id"]
    ]
    return replace(parsed, format="coco_instances", title=title, columns=columns, kind=OBJECTS)


def _panoptic(path: Path, value: dict, records: list) -> Parsed:
    """A row per segment; their outlines are PNG files elsewhere."""
    parsed = of_records(path, "", "", records)
    empty = [None] * len(parsed.numbers)
    pairs = zip(parsed.columns.get("image_id", empty), parsed.columns["segments_info"], strict=True)
    rows = [
        [{**own, "image_id": image} for own in found if isinstance(own, dict)]
        if isinstance(found, list)
        else "there is no list of segments (segments_info)"
        for image, found in pairs
    ]
    parsed = parsed.with_rows(rows, ("image_id", "category_id", "iscrowd", "bbox"))
    return _instances(path, parsed, value.get("categories"), "COCO panoptic annotations (JSON)")


def category_names(path: Path, categories: object) -> dict[str, str]:
    """Category ID as text -> name. Raises CapbiasError if no category is usable."""
    names = {}
    for record in categories if isinstance(categories, list) else ():
        given = record.get("name") if isinstance(record, dict) else None
        if not isinstance(given, str) or UNSTORABLE.search(given) or not given.strip(" |"):
            continue
        if isinstance(record.get("id"), int | str):
            names[str(record["id"])] = given
    if not names:
        raise CapbiasError(
            f"{path.name} names no categories.",
            'Load the file as COCO has it, with images, annotations and categories such as {"id": 17, "name": "cat"}.',
        )
    return names


def _images(images: Any) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """Image ID -> file name, and -> (height, width) or (0, 0), of the images that a file lists."""
    names, sizes = {}, {}
    for record in images if isinstance(images, list) else ():
        try:
            image = normalise_image_id(record["id"])
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(name := record.get("file_name"), str) and name:
            names[image] = name
        try:
            height, width = int(record["height"]), int(record["width"])
        except (ValueError, KeyError, TypeError, OverflowError):
            height = width = 0
        sizes[image] = (height, width) if min(height, width) > 0 and height * width <= MOST_PIXELS else (0, 0)
    return names, sizes


def _karpathy(path: Path, value: dict) -> Parsed | None:
    """Karpathy's data sets (`dataset_coco.json`): images with their human captions and splits; every split is read."""
    images = value.get("images")
    if not isinstance(images, list) or not any(isinstance(own, dict) and "sentences" in own for own in images):
        return None
    parsed = of_records(path, "karpathy", "Karpathy's data set (JSON)", images, kind=REFERENCES)
    empty = [None] * len(parsed.numbers)
    ids = [parsed.columns.get(name, empty) for name in ("cocoid", "filename", "imgid")]
    rows, splits = [], Counter()
    for *names, sentences, split in zip(
        *ids, parsed.columns["sentences"], parsed.columns.get("split", empty), strict=True
    ):
        if not isinstance(sentences, list):
            rows.append("an object where an image with a list of sentences is expected")
            continue
        splits[str(split)] += 1
        texts = [own.get("raw") if isinstance(own, dict) else own for own in sentences]
        image = next((name for name in names if name is not None), None)
        rows.append([{"image_id": image, "caption": texts, "split": str(split)}])
    shown = ", ".join(f"{split} {counted(number, 'image')}" for split, number in splits.items())
    return parsed.with_rows(rows, ("image_id", "caption", "split"), notes=(f"images of every split: {shown}",))


Shape = Callable[[Path, Any], Parsed | None]
LIST_SHAPES: tuple[Shape, ...] = (_records, _rows)
DICT_SHAPES: tuple[Shape, ...] = (_karpathy, _coco, _split, _record, _columns, _by_image, _by_label)


def _is_json(head: Head) -> bool:
    return head.text[:1] in ("{", "[") or head.ending == ".json"


READERS = (Reader("json", "JSON or JSON Lines", _is_json, parse_json, place=5),)
