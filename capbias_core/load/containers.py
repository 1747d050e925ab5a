"""The bytes of files as tables: JSON, text, Excel, Parquet, Arrow, pickles of the release, a text per image.

What their columns mean is not known yet; formats.py says it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, first_line, short
from capbias_core.load.files import SAVED, SPLITS, STATE, TEXTS, ZIP, bare_name, contents, decoded
from capbias_core.load.shapes import sheet_of
from capbias_core.load.sheet import MOST_ROWS, RowErrors, Sheet, check_rows, frame_of, listed
from capbias_core.types import counted

csv.field_size_limit(2**31 - 1)  # a caption may be longer than the 128 KiB at which the csv module stops
PARQUET, ARROW = b"PAR1", (b"\xff\xff\xff\xff", b"ARROW1")
PICKLES = (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5")
INDEX = "__index_level_"  # the start of names that pandas gives to an index
OUTLINE = re.compile(r'("segmentation"\s*:\s*)(\[[^"{}]*\])')
BETWEEN_VALUES = re.compile(r"[\s,]*")
NO_NAME = re.compile(r"://|^[\d.,]+$|\.(?:jpe?g|png|webp)(?:#\d+)?$|.{100}", re.IGNORECASE)
# Lines without a header: name, how both parts of a line begin.
TOKENS = "tokens of Flickr30k"
HEADERLESS = {TOKENS: (r".+#\d+$", "."), "predictions of Oscar and VinVL": (r"\S+$", r"\[\{")}


def opened(path: Path) -> list[Sheet]:
    """What a file, an archive or a folder holds. Raises CapbiasError if nothing in it can be read."""
    files = contents(path)
    if not path.is_dir() and len(files) == 1:
        ((title, data),) = files.items()
        return [_sheet(PurePosixPath(title).name, data)]
    result, left_out, reason = [], [], None
    saved = {PurePosixPath(name).parent for name in files if PurePosixPath(name).name in SAVED}
    for root in map(str, sorted(saved, key=lambda folder: len(folder.parts))):  # within another, nothing is left
        inside = {name: data for name, data in files.items() if root == "." or name.startswith(f"{root}/")}
        files = {name: data for name, data in files.items() if name not in inside}
        if inside:
            result.append(_dataset(path.name, root, inside))
    texts = {PurePosixPath(name): data for name, data in files.items() if name.lower().endswith(TEXTS)}
    texts = {own: data for own, data in texts.items() if own.stem.lower() not in ("readme", "license")}
    if len(texts) > 1:
        files = {name: data for name, data in files.items() if PurePosixPath(name) not in texts}
        rows = [{"image_id": own.stem, "caption": decoded(own.name, data).strip()} for own, data in texts.items()]
        roles = {"caption": ["caption"], "image": "image_id"}
        result.append(Sheet(path.name, "", bare_name(path.name), frame_of(rows), "a text per image", roles))
    for name, data in files.items():
        try:
            result.append(_sheet(PurePosixPath(name).name, data))
        except CapbiasError as error:
            left_out.append(PurePosixPath(name).name)
            reason = reason or error
    if not result:
        raise reason or CapbiasError(f"{path.name} holds no file that can be read.", "Name a file in it.")
    if left_out:
        result[0].notes.append(f"left out, in no known format: {listed(left_out)}")
    return result


def _sheet(title: str, data: bytes) -> Sheet:
    name = bare_name(title)
    if data.startswith((PARQUET, *ARROW)):
        frame, notes = _arrow(title, data)
        return Sheet(title, "", name, frame, notes=notes)
    if data.startswith(PICKLES):
        from capbias_core.load.lic_release import plain_pickle

        return sheet_of(title, name, plain_pickle(title, data))
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


def _next_value(text: str, at: int) -> int:
    between = BETWEEN_VALUES.match(text, at)
    return between.end() if between else at


def _json(title: str, text: str) -> Sheet:
    """A JSON document, or values one after another, as in JSON Lines, which become one list."""
    if '"segmentation"' in text:  # polygons as numbers would take ten times the time and memory
        text = OUTLINE.sub(r'\1"\2"', text)
    decoder, values = json.JSONDecoder(object_pairs_hook=_unique, strict=False), []
    at = _next_value(text, 0)
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _next_value(text, at)
    except (ValueError, RecursionError) as error:
        reason = "lists too deep in one another" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"at line {error.lineno}, column {error.colno}: {error.msg}"
        after = f" after {len(values):,} values" if values else ""
        raise CapbiasError(
            f"{title} holds broken JSON{after} ({reason}).", "Write the file again; it may have been cut off."
        ) from None
    by_line = title.lower().endswith((".jsonl", ".ndjson"))
    if len({type(value) for value in values}) > 1:
        raise CapbiasError(f"{title} holds an object and a list one after another.", "Write one of them to a file.")
    if isinstance(values[0], list):
        values = [row for value in values for row in value]
    elif len(values) == 1 and not by_line:
        values = values[0]
    return sheet_of(title, bare_name(title), values)


# text with a delimiter


def _delimited(title: str, text: str) -> Sheet:
    """A table with a header, or lines of a known format without one. A row of another length is a fault."""
    lines = [line for line in text.splitlines() if line.strip()]
    for known, (first, second) in HEADERLESS.items():
        parts = [line.split("\t") for line in lines]
        if all(len(row) == 2 and re.match(first, row[0]) and re.match(second, row[1]) for row in parts):
            ids = [re.sub(r"#\d+$", "", image) for image, _ in parts]
            frame = pd.DataFrame({"image_id": ids, "caption": [text for _, text in parts]}, dtype=object)
            role = "reference" if known == TOKENS and len(set(ids)) < len(ids) else "caption"
            return Sheet(title, "", bare_name(title), frame, known, {role: ["caption"], "image": "image_id"})
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
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=mark,
        strict=True,
        quoting=csv.QUOTE_NONE if spaced else csv.QUOTE_MINIMAL,
        skipinitialspace=spaced,
    )
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
    return Sheet(title, "", bare_name(title), frame, faults=faults, numbers=numbers[1:])


# Excel


def _workbook(title: str, data: bytes) -> Sheet:
    """The only sheet with a table, every cell as the text that a CSV of it would have."""
    try:
        how = {"dtype": object, "keep_default_na": False, "na_values": [""], "nrows": MOST_ROWS, "engine": "openpyxl"}
        sheets = pd.read_excel(io.BytesIO(data), sheet_name=None, header=None, **how)
    except MemoryError:
        raise
    except Exception as error:  # openpyxl raises its own errors, zipfile's and those of its XML parser
        reason = first_line(error)
        raise CapbiasError(f"{title} is an Excel file that cannot be read ({reason}).", "Save it again.") from None
    tables = {}
    for sheet, cells in sheets.items():
        cells = cells.dropna(how="all").dropna(how="all", axis=1)
        if len(cells) > 1 and len(cells.columns) > 1 and cells.iloc[0].map(type).eq(str).all():
            tables[str(sheet)] = cells.iloc[1:].set_axis(cells.iloc[0].str.strip(), axis=1)
    if len(tables) != 1:
        number = f"{len(tables)} of its sheets hold" if tables else "none of its sheets holds"
        raise CapbiasError(
            f"{title}: {number} a table with a header in its first row ({listed(tables)}).",
            "Keep one sheet with a table.",
        )
    ((sheet, table),) = tables.items()
    frame = table.map(str).where(table.notna(), "").astype(object)
    notes = [f"from the sheet {short(sheet)}"] if len(sheets) > 1 else []
    return Sheet(title, "", bare_name(title), frame, notes=notes)


# Parquet, Arrow and saved data sets


def _arrow(title: str, data: bytes) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a Parquet or Arrow file, and a note on those left out, which hold bytes. Of pictures the path is
    read."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet
    from pyarrow import types

    try:
        if data.startswith(PARQUET):
            file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
            schema = file.schema_arrow
            check_rows(title, file.metadata.num_rows)  # before they fill the memory
        else:
            form = pyarrow.ipc.open_file if data.startswith(b"ARROW1") else pyarrow.ipc.open_stream
            file = form(pyarrow.BufferReader(data)).read_all()
            schema = file.schema
            check_rows(title, file.num_rows)
        kinds = {name: schema.field(name).type for name in schema.names if not name.startswith(INDEX)}
        binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
        names = [name for name, kind in kinds.items() if not any(test(kind) for test in binary)]
        pictures = {name for name in names if types.is_struct(kinds[name]) and kinds[name].get_field_index("path") >= 0}
        table = file
        if data.startswith(PARQUET):
            table = file.read(columns=[f"{name}.path" if name in pictures else name for name in names])
        table.validate(full=True)  # whatever a stranger wrote, such as columns of different lengths
        columns = {name: table.column(name) for name in names}
        columns |= {name: pyarrow.compute.struct_field(columns[name], "path") for name in pictures}
        frame = pd.DataFrame(
            {name: pd.Series(own.to_pylist(maps_as_pydicts="strict"), dtype=object) for name, own in columns.items()}
        )
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # any error that pyarrow raises for a damaged file
        what = "a Parquet file" if data.startswith(PARQUET) else "a data set"
        raise CapbiasError(f"{title} is {what} that is broken ({first_line(error)}).", "Write it again.") from None
    left_out = [name for name in kinds if name not in names]
    return frame, [f"left out, since they hold bytes: {listed(left_out)}"] if left_out else []


def _dataset(title: str, root: str, files: Mapping[str, bytes]) -> Sheet:
    """The rows of all splits of a saved data set. Raises CapbiasError if a file is broken or lacks a column."""

    def at(*parts: str) -> str:
        return PurePosixPath(root, *parts).as_posix()

    frames, counts, left_out = [], Counter(), []
    try:
        splits = json.loads(files[at(SPLITS)])["splits"] if at(SPLITS) in files else [""]
        for split in splits:
            for file in json.loads(files[at(split, STATE)])["_data_files"]:
                frame, left_out = _arrow(title, files[at(split, file["filename"])])
                if frames and set(frame) != set(frames[0]):
                    raise ValueError(f"{file['filename']} has other columns")
                frames.append(frame)
                counts[split] += len(frame)
        rows = pd.concat(frames, ignore_index=True)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else first_line(error)
        raise CapbiasError(f"{title} is a data set that is broken ({reason}).", "Write it again.") from None
    shown = ", ".join(f"{split} {counted(number, 'row')}" for split, number in counts.items() if split)
    notes = [f"rows of every split: {shown}"] if shown else []
    name = bare_name(title if root == "." else PurePosixPath(root).name)
    return Sheet(title, "", name, rows, "Hugging Face data set", notes=notes + left_out)
