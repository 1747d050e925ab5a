"""The bytes of files as tables: JSON, text, Excel, Parquet, pickles of the release, a text per image.

What their columns mean is not known yet; formats.py says it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, first_line, short
from capbias_core.load.files import TEXTS, ZIP, contents, decoded
from capbias_core.load.lic_release import plain_pickle
from capbias_core.load.shapes import sheet_of
from capbias_core.load.sheet import MOST_ROWS, RowErrors, Sheet, check_rows, frame_of, listed
from capbias_core.types import counted

csv.field_size_limit(2**31 - 1)  # a caption may be longer than the 128 KiB at which the csv module stops
PARQUET, ARROW = b"PAR1", (b"\xff\xff\xff\xff", b"ARROW1")
PICKLES = (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5")
INDEX = "__index_level_"  # the start of names that pandas gives to an index
OUTLINE = re.compile(r'("segmentation"\s*:\s*)(\[[^"{}]*\])')
BETWEEN_VALUES = re.compile(r"[\s,]*")
NO_NAME = re.compile(r"://|^[\d.,]*$|\.(?:jpe?g|png|webp)(?:#\d+)?$|.{100}", re.IGNORECASE)
TOKEN = re.compile(r"([^\t]+)#\d+\t([^\t]+)")  # a line of Flickr30k's token file, which has no header


def opened(path: Path) -> list[Sheet]:
    """What a file, an archive or a folder holds. Raises CapbiasError if nothing in it can be read."""
    files = contents(path)
    if not path.is_dir() and len(files) == 1:
        return [_sheet(*files.popitem())]
    result: list[Sheet] = []
    texts = {PurePosixPath(name): name for name in files if name.lower().endswith(TEXTS)}
    texts = {own: name for own, name in texts.items() if own.stem.lower() not in ("readme", "license")}
    if len(texts) > 1:
        rows = [
            {"image_id": own.stem, "caption": decoded(own.name, files.pop(name)).strip()} for own, name in texts.items()
        ]
        roles = {"caption": ["caption"], "image": "image_id"}
        result.append(Sheet(path.name, frame_of(rows), "a text per image", roles))
    faults: dict[str, CapbiasError] = {}
    for name, data in files.items():
        try:
            result.append(_sheet(name, data))
        except CapbiasError as error:
            faults[name] = error
    if not result:
        raise faults[max(faults, key=lambda name: len(files[name]))]
    if faults:
        names = listed(PurePosixPath(name).name for name in faults)
        result[0].notes.append(f"left out, in no known format: {names}")
    return result


def _sheet(name: str, data: bytes) -> Sheet:
    title = PurePosixPath(name).name
    if data.startswith(PARQUET):
        return _parquet(title, data)
    if data.startswith(ARROW):
        raise CapbiasError(f"{title} is an Arrow file, which is not read.", "Write Parquet: dataset.to_parquet(FILE).")
    if data.startswith(PICKLES):
        return sheet_of(title, plain_pickle(title, data))
    if data.startswith(ZIP):
        return _workbook(title, data)
    text = decoded(title, data)
    if not text.strip():
        raise CapbiasError(f"{title} is an empty file.", "Check how it was written.")
    return _json(title, text) if text.lstrip()[0] in "[{" else _delimited(title, text)


# JSON


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if a key occurs twice, of which a reader would silently take the last."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {short(twice)!r} occurs twice in an object")
    return value


def _json(title: str, text: str) -> Sheet:
    """A JSON document, or values one after another, as in JSON Lines, which become one list."""
    if '"segmentation"' in text:  # polygons as numbers would take ten times the time and memory
        text = OUTLINE.sub(r'\1"\2"', text)
    decoder, values, at = json.JSONDecoder(object_pairs_hook=_unique, strict=False), [], 0
    try:
        while (between := BETWEEN_VALUES.match(text, at)) and between.end() < len(text):
            value, at = decoder.raw_decode(text, between.end())
            values.append(value)
    except (ValueError, RecursionError) as error:
        reason = "lists too deep in one another" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"at line {error.lineno}, column {error.colno}: {error.msg}"
        after = f" after {len(values):,} values" if values else ""
        raise CapbiasError(
            f"{title} holds broken JSON{after} ({reason}).", "Write the file again; it may have been cut off."
        ) from None
    if len({type(value) for value in values}) > 1:
        raise CapbiasError(f"{title} holds an object and a list one after another.", "Write one of them to a file.")
    if isinstance(values[0], list):
        values = [row for value in values for row in value]
    elif len(values) == 1 and not title.lower().endswith((".jsonl", ".ndjson")):
        values = values[0]
    return sheet_of(title, values)


# text with a delimiter


def _delimited(title: str, text: str) -> Sheet:
    """A table with a header, or Flickr30k's token file. A row of another length is a fault."""
    lines = [line for line in text.splitlines() if line.strip()]
    tokens = [hit.groups() for hit in map(TOKEN.fullmatch, lines) if hit]
    if len(tokens) == len(lines):
        frame = pd.DataFrame(tokens, columns=["image_id", "caption"], dtype=object)
        roles = {"reference" if frame["image_id"].duplicated().any() else "caption": ["caption"], "image": "image_id"}
        return Sheet(title, frame, "tokens of Flickr30k", roles)
    headers = {mark: next(csv.reader(lines[:1], delimiter=mark)) for mark in ",\t;|"}
    mark = max(headers, key=lambda mark: len(headers[mark]))
    names = [name.strip() or f"column {number}" for number, name in enumerate(headers[mark], start=1)]
    prose = len(names) == 2 and any(name.count(" ") > 3 for name in names)
    if len(names) < 2 or prose or any(map(NO_NAME.search, names)):
        raise CapbiasError(
            f"{title} is text without a header, in no known format; its first line is {short(lines[0])!r}.",
            "Put the names of the columns above it, such as image_id,caption.",
        )
    spaced = mark == "|" and "| " in lines[0]  # Flickr30k's file has a blank after each bar, and quotes within captions
    how = {"quoting": csv.QUOTE_NONE if spaced else csv.QUOTE_MINIMAL, "skipinitialspace": spaced}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True, **how)
    rows, numbers, faults, number = [], [], RowErrors(title, "line"), 1
    try:
        for row in reader:
            if len(row) == len(names):
                rows.append(row)
                numbers.append(number)
            elif row:
                faults.add(number, f"{counted(len(row), 'field')} where the header has {len(names)}")
            number = reader.line_num + 1
    except csv.Error as error:
        unclosed = "end of data" in str(error)
        what = "a quote is opened and never closed" if unclosed else "text follows a closing quote"
        raise CapbiasError(f"{title}, line {number}: {what}.", "Double each quote within a quoted text.") from None
    total = len(rows) - 1 + faults.count
    if faults.count > 0.1 * total + 1:
        first = f"{faults.count:,} of {total:,} rows are broken, the first at {faults.first[0]}"
        raise CapbiasError(f"{title} is no table: {first}.", "Put quotes around texts that hold the delimiter.")
    frame = pd.DataFrame(rows[1:], columns=names, dtype=object)
    return Sheet(title, frame, faults=faults, numbers=numbers[1:])


# Excel and Parquet


def _workbook(title: str, data: bytes) -> Sheet:
    """The only sheet with a table, every cell as the text that a CSV of it would have."""
    try:
        how = {"dtype": str, "keep_default_na": False, "nrows": MOST_ROWS, "engine": "openpyxl"}
        sheets = pd.read_excel(io.BytesIO(data), sheet_name=None, header=None, **how)
    except MemoryError:
        raise
    except Exception as error:  # openpyxl raises its own errors, zipfile's and those of its XML parser
        reason = first_line(error)
        raise CapbiasError(f"{title} is an Excel file that cannot be read ({reason}).", "Save it again.") from None
    tables = {}
    for sheet, cells in sheets.items():
        cells = cells.loc[(cells != "").any(axis=1), (cells != "").any()]
        if min(cells.shape) > 1 and not any(map(NO_NAME.search, cells.iloc[0])):
            tables[str(sheet)] = cells.iloc[1:].set_axis(cells.iloc[0].str.strip(), axis=1).astype(object)
    if len(tables) != 1:
        number = f"{len(tables)} of its sheets hold" if tables else "none of its sheets holds"
        raise CapbiasError(
            f"{title}: {number} a table with a header in its first row ({listed(tables)}).",
            "Keep one sheet with a table.",
        )
    ((sheet, table),) = tables.items()
    notes = [f"from the sheet {short(sheet)}"] if len(sheets) > 1 else []
    return Sheet(title, table, notes=notes)


def _parquet(title: str, data: bytes) -> Sheet:
    """The rows of a Parquet file. What holds bytes is left out, so that of pictures the path is read."""
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
        check_rows(title, file.metadata.num_rows)  # before they fill the memory
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise ValueError("two columns of the same name")
        parts = [file.schema.column(place) for place in range(len(file.schema))]
        parts = [part for part in parts if not part.path.startswith(INDEX)]
        texts = [part.path for part in parts if "BYTE" not in part.physical_type or part.logical_type.type != "NONE"]
        table = file.read(columns=texts)
        table.validate(full=True)  # whatever a stranger wrote, such as columns of different lengths
        sheet = sheet_of(title, table.to_pylist(maps_as_pydicts="strict"))
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # any error that pyarrow raises for a damaged file
        raise CapbiasError(
            f"{title} is a Parquet file that is broken ({first_line(error)}).", "Write it again."
        ) from None
    if left_out := [part.path for part in parts if part.path not in texts]:
        sheet.notes.append(f"left out, since they hold bytes: {listed(left_out)}")
    return sheet
