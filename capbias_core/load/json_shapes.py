"""JSON: a document, or objects one after another, in whichever shape its table is written."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
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
IMAGE = re.compile(r".*\d.*|.*\.(jpe?g|png|webp|gif|bmp|tiff?)", re.IGNORECASE | re.DOTALL)
# Names under which a record says for certain which image it is of.
SURE_IDS = """
    image_id img_id imageid imgid image_name img_name file_name filename image_file image_path img_path image img cocoid
"""
# Names of the lists of column names, and of the rows, in a table that is an object.
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


def parse_json(path: Path) -> Parsed:
    """The content of a JSON file, or of JSON Lines. Raises CapbiasError if it is broken or holds no table."""
    text = whole_text(path)
    start, named_lines = _after_space(text, 0), path.suffix.lower() in LINES
    try:
        value, end, text = _first_value(text, start)
    except (ValueError, RecursionError) as error:
        if named_lines:
            return _lines(path, text)
        raise _broken(path, error) from None
    rest = _after_space(text, end)
    several = rest < len(text) and text[rest] == "{"
    if isinstance(value, dict) and (several or named_lines) and not re.search("[\r\n]", text[start:end]):
        return _lines(path, text)
    if not (isinstance(value, dict) and several):
        if rest < len(text):
            raise _broken(path, json.JSONDecodeError("Extra data", text, rest))
        return document(path, value)
    records = [value]
    while rest < len(text):  # each over as many lines as it likes, as LLaVA's scripts write answers
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, rest)
        except (ValueError, RecursionError) as error:
            raise _broken(path, error) from None
        records.append(value)
        rest = _after_space(text, end)
    return of_records(path, "json_objects", TITLES["json_objects"], records)


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


def _broken(path: Path, error: Exception) -> CapbiasError:
    fault = "lists too deep in one another" if isinstance(error, RecursionError) else str(error)
    if isinstance(error, json.JSONDecodeError):
        fault = f"at line {error.lineno}, column {error.colno}: {error.msg}"
    return CapbiasError(f"{path.name} holds broken JSON ({fault}).", "Write the file again; it may have been cut off.")


def _lines(path: Path, text: str) -> Parsed:
    """One object per line, with real line numbers; a broken line is a fault."""
    faults, numbers, records = RowErrors(path.name, "line"), [], []
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
            numbers.append(number)
        except json.JSONDecodeError as error:
            faults.add(number, f"broken JSON at column {error.colno} ({error.msg})")
        except (ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            faults.add(number, f"broken JSON ({'lists too deep in one another' if deep else error})")
    if not names_of(records):
        first = f" (line {faults.first[0].line}: {faults.first[0].message})" if faults.first else ""
        raise CapbiasError(
            f"{path.name} is JSON Lines without a usable line{first}.",
            'Write one object per line, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    return of_records(path, "jsonl", TITLES["jsonl"], records, numbers, faults=faults)


def document(path: Path, value: Any) -> Parsed:
    """The table that a JSON document holds. Raises CapbiasError if it holds none."""
    found = _find(value, path.name)
    if found is None:
        what = "an empty list" if value == [] else described(value)
        if isinstance(value, dict):
            what = f"an object with the keys {listed([str(name) for name in value])}"
        elif value and isinstance(value, list):
            what += f" of {described(value[0])}"
        raise CapbiasError(
            f"{path.name} holds {what}, in which no table is found.",
            'Write a list with one record per row, such as {"image_id": 785, "caption": "a woman on skis"}.',
        )
    names, sizes = _images(value.get("images") if isinstance(value, dict) else None)
    parsed = of_records(path, found.format, found.title or TITLES[found.format], found.records, notes=found.notes)
    kind = found.kind
    if found.format == "coco_captions" and {"id", "image_id", "caption"} <= set(parsed.columns):
        kind = REFERENCES
    return replace(parsed, kind=kind, image_names=names, sizes=sizes)


# shapes: each gives None for a value of another shape


@dataclass(frozen=True)
class Found:
    """A table in JSON. records: one per row. kind: as in Parsed."""

    format: str
    records: list
    notes: tuple[str, ...] = ()
    kind: str = ""
    title: str = ""


def _find(value: Any, file: str, depth: int = 0) -> Found | None:
    if isinstance(value, list):
        return _records(value) or _rows(value)
    if not isinstance(value, dict):
        return None
    if found := next((own for shape in SHAPES if (own := shape(value, file))), None):
        return found
    inner = {str(key): own for key, own in value.items() if isinstance(own, list | dict) and own}
    tables = {key: found for key, own in inner.items() if depth < DEPTH and (found := _find(own, file, depth + 1))}
    if not tables:
        return None

    def roles_and_rows(key: str) -> tuple[int, int]:  # rather a table of captions, else the longest
        guess = guess_columns(names_of(tables[key].records[:SAMPLE]))
        return sum(name is not None for name in guess.values()), len(tables[key].records)

    key = max(tables, key=roles_and_rows)
    found, left_out = tables[key], [str(name) for name in value if name != key]
    schema = value.get("schema")  # pandas' orient "table": its index is no column
    if isinstance(schema, dict) and schema.get("primaryKey") == ["index"]:
        for record in filter(lambda own: isinstance(own, dict), found.records):
            record.pop("index", None)
    notes = (f"rows from {short(key)}", *((f"left out: {listed(left_out)}",) if left_out else ()), *found.notes)
    plain = found.format in ("coco_results", "json_records")
    return replace(found, format="json_within" if plain else found.format, notes=notes)


def _records(value: list) -> Found | None:
    if not any(isinstance(record, dict) for record in value):
        return None
    sure = {"image_id", "caption"} <= set(names_of(value[:SAMPLE]))
    return Found("coco_results" if sure else "json_records", value)


def _rows(value: list, names: list[str] | None = None) -> Found | None:
    """Lists of equal length, with the names of columns in the first of them, or elsewhere (names)."""
    width, rows = (
        Counter(len(row) for row in value if isinstance(row, list)).most_common(1)[0]
        if value and all(isinstance(row, list) for row in value)
        else (0, 0)
    )
    if width < 2 or rows * 2 < len(value) or len(names or value[0]) != width:
        return None
    if names is None:
        header = (
            value[0] if all(isinstance(cell, str) for cell in value[0]) and usual_column(value[0], SURE_IDS) else []
        )
        names, value = header or [f"column {place}" for place in range(1, width + 1)], value[bool(header) :]
        if not header and width == 2 and _are_images([row[0] for row in value[:SAMPLE] if row]):
            names = ["image_id", _text_column([row[-1] for row in value if row])]
    # Of an image Weights & Biases writes where its file is.
    plain = [[own.get("path") if isinstance(own, dict) else own for own in row] for row in value]
    return Found("json_rows", [dict(zip(names, row, strict=True)) if len(row) == width else row for row in plain])


def _split(value: dict, file: str) -> Found | None:
    """Names of columns beside rows: orient "split" of pandas, and tables of Weights & Biases."""
    names = next((value[key] for key in HEADERS if isinstance(value.get(key), list)), None)
    rows = next((value[key] for key in BODIES if isinstance(value.get(key), list)), None)
    if not names or not rows or not all(isinstance(name, str) for name in names):
        return None
    index = value.get("index")  # which may be that of images
    if guess_columns(names)["image_id"] is None and isinstance(index, list) and _are_images(index):
        rows = [[image, *row] for image, row in zip(index, rows, strict=False) if isinstance(row, list)]
        names = ["image_id", *names]
    return _rows(rows, list(checked_names(file, tuple(names))))


def _record(value: dict, file: str) -> Found | None:
    """A single record."""
    scalars = all(not isinstance(own, dict | list) for own in value.values())
    return Found("jsonl", [value]) if scalars and all(guess_columns(value).values()) else None


def _columns(value: dict, file: str) -> Found | None:
    """Columns of equal length, or columns by row: orients "list" and "columns" of pandas."""
    inner = list(value.values())
    named = guess_columns(value)["image_id"] is not None
    if named and all(isinstance(own, list) and len(own) == len(inner[0]) for own in inner):
        return Found("json_columns", [dict(zip(value, row, strict=True)) for row in zip(*inner, strict=True)])
    if not inner or not all(isinstance(own, dict) and own for own in inner) or (named and len(value) == 1):
        return None
    checked_names(file, tuple(value)[: 2 * SAMPLE])
    rows = list(dict.fromkeys(row for own in inner for row in own))
    nested = any(isinstance(cell, dict) for own in inner for cell in list(own.values())[:SAMPLE])
    if nested or not (named or (_are_images(rows) and not _are_images(list(value)))):
        return None
    ids = {} if named else {row: {"image_id": row} for row in rows}
    return Found(
        "json_columns", [{**ids.get(row, {}), **{name: own.get(row) for name, own in value.items()}} for row in rows]
    )


def _by_image(value: dict, file: str) -> Found | None:
    """Image IDs as keys: of captions, labels or records, or of lists of these; also coco-caption's `imgToEval`."""
    evaluated = value.get("imgToEval")
    entries = evaluated if isinstance(evaluated, dict) and evaluated else value
    named = all(isinstance(own, dict) and _names_image(own) for own in list(entries.values())[:SAMPLE])
    if not entries or (entries is value and not named and not _are_images(list(value))):
        return None
    if all(isinstance(own, dict) and len(own) > 1 and _are_images(list(own)) for own in entries.values()):
        return None  # images are a level further down
    parts = [
        (image, part)
        for image, own in entries.items()
        for part in (own if isinstance(own, list) and any(isinstance(part, dict) for part in own) else [own])
    ]
    plain = [part for _, part in parts if not isinstance(part, dict)]
    column = _text_column([text for part in plain for text in (part if isinstance(part, list) else [part])])
    if len(plain) * 2 < len(parts):
        column = guess_columns(names_of(part for _, part in parts))["caption"] or column
    lists = any(isinstance(part, list) for part in plain)
    records = []
    for image, part in parts:
        if isinstance(part, dict):
            # A record that names its image itself: the key may be a row number, and gives way.
            name = usual_column(part, SURE_IDS)
            others = {key: own for key, own in part.items() if key != name}
            records.append({"image_id": part[name] if name else image, **others})
        elif column == "label" or isinstance(part, str | list):
            records.append({"image_id": image, column: [part] if lists and isinstance(part, str) else part})
        else:
            records.append(part)
    beside = [name for name in value if name != "imgToEval"] if entries is evaluated else []
    return Found("json_by_image", records, (f"rows from imgToEval; left out: {listed(beside)}",) if beside else ())


def _names_image(record: dict) -> bool:
    """Whether a record names one image; columns of equal length name many."""
    name = usual_column(record, SURE_IDS)
    return name is not None and isinstance(record[name], str | int)


def _by_label(value: dict, file: str) -> Found | None:
    """Labels as keys, each with a list of images."""
    lists = all(isinstance(own, list) and _are_images(own) for own in value.values())
    if not lists or len(value) < 2 or _are_images(list(value)):
        return None
    return Found("json_by_label", [{"image_id": image, "label": name} for name, own in value.items() for image in own])


def _text_column(texts: list) -> str:
    """What a column of unnamed texts is called."""
    return "label" if few_values(texts) or not any(isinstance(text, str) for text in texts) else "caption"


def _are_images(names: list) -> bool:
    """Whether the first may be image IDs, which have a digit or the ending of a picture; names of fields have none.
    Neither have numbers of rows, from 0 on."""
    if not names or (len(names) > 1 and [str(name) for name in names] == [str(place) for place in range(len(names))]):
        return False
    return all(type(name) in (int, str) and IMAGE.fullmatch(str(name)) for name in names[:SAMPLE])


def _karpathy(value: dict, file: str) -> Found | None:
    """Karpathy's data sets (`dataset_coco.json`): images with their human captions and splits; every split is read."""
    images = value.get("images")
    if not isinstance(images, list) or not any(isinstance(own, dict) and "sentences" in own for own in images):
        return None
    records, splits = [], Counter()
    for image in images:
        sentences = image.get("sentences") if isinstance(image, dict) else None
        if not isinstance(sentences, list):
            records.append("an image without sentences")
            continue
        splits[str(image.get("split"))] += 1
        texts = [own.get("raw") if isinstance(own, dict) else own for own in sentences]
        name = next((image[key] for key in ("cocoid", "filename", "imgid") if image.get(key) is not None), None)
        records.append({"image_id": name, "caption": texts, "split": str(image.get("split"))})
    shown = ", ".join(f"{split} {counted(number, 'image')}" for split, number in splits.items())
    return Found("karpathy", records, (f"images of every split: {shown}",), REFERENCES)


def _coco(value: dict, file: str) -> Found | None:
    """COCO captions, instances and panoptic annotations."""
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
        return Found("coco_captions", records)
    names = {}
    for own in value.get("categories") or ():
        name = own.get("name") if isinstance(own, dict) else None
        if isinstance(name, str) and name.strip(" |") and not UNSTORABLE.search(name):
            names[str(own.get("id"))] = name
    if not names:
        raise CapbiasError(
            f"{file} names no categories.",
            'Load the file as COCO has it, with images, annotations and categories such as {"id": 17, "name": "cat"}.',
        )
    for record in records:
        if isinstance(record, dict):  # a category is a number, a number as text, or its name
            own = record.get("category_id")
            record["category"] = names.get(str(own)) or next((name for name in names.values() if name == own), None)
    return Found("coco_instances", records, (), OBJECTS, title)


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


SHAPES: tuple[Callable[[dict, str], Found | None], ...] = (
    _karpathy,
    _coco,
    _split,
    _record,
    _columns,
    _by_image,
    _by_label,
)


def _is_json(head: Head) -> bool:
    return head.text[:1] in ("{", "[") or head.ending == ".json"


READERS = (Reader("json", "JSON or JSON Lines", _is_json, parse_json, place=5),)
