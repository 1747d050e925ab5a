"""The bytes of files as values: JSON, tables as text, Excel, Parquet, Arrow, pickles, a text or boxes per image.

What they hold is not known yet; formats.py says it.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
import zipfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from capbias_core.errors import CapbiasError, first_line, short
from capbias_core.load.files import SAVED, SPLITS, STATE, TEXTS, bare_name, contents, decoded, is_workbook
from capbias_core.load.sheet import RowErrors, check_rows, frame_of, listed
from capbias_core.resources import OBJECTS_FILE
from capbias_core.types import counted

csv.field_size_limit(2**31 - 1)  # a caption may be longer than the 128 KiB at which the csv module stops
PARQUET, ARROW = b"PAR1", (b"\xff\xff\xff\xff", b"ARROW1")
PICKLES = (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5", b"(lp0\n", b"(lp1\n", b"]q\x00", b"]q\x01")
INDEX = "__index_level_"  # the start of names that pandas gives to an index
# A sheet may have a row far below, and the reader goes through all before it; Excel has no more.
MOST_SHEET_ROWS, MOST_SHEET_BYTES, MOST_CELLS = 1_048_576, 400_000_000, 50_000_000
# A class, the middle, width and height as shares of the image, and the confidence.
YOLO = re.compile(r"\s*(\d{1,4})((?:\s+(?:0?\.\d+|[01](?:\.\d*)?)(?:e-?\d+)?){4,5})\s*", re.IGNORECASE)
CLASSES = ("classes.txt", "obj.names")  # names of the classes, one per line
OUTLINE = re.compile(r'("segmentation"\s*:\s*)(\[[^"{}]*\])')
# How a table begins, rather than the text of one image.
TABLE = re.compile(r"\s*[\[{]|[^\n]*\b(?:image|img|file)[ _-]?(?:id|name)?\b[^\n]*[\t,;|]", re.IGNORECASE)
LINE_OF_IMAGE = re.compile(
    r"[\"']?(?:\S+\.(?:jpe?g|png|webp|gif|bmp)(?:#\d+)?|\d+)[\"']?\s*[\t,;|](?!\s*[\d.]+\s)", re.I
)
MOST_LINES = 50  # of the text of one image


@dataclass
class Raw:
    """What a file holds, before its format is known."""

    title: str
    name: str
    value: Any  # of JSON, or a DataFrame
    notes: list[str] = field(default_factory=list)
    faults: RowErrors = field(default_factory=lambda: RowErrors(""))
    numbers: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # of a text without a header
    format: str = ""  # if the container says it
    rows: int = 0


def opened(path: Path) -> list[Raw]:
    """What a file, an archive or a folder holds. Raises CapbiasError if nothing in it can be read."""
    files = contents(path)
    if not path.is_dir() and len(files) == 1:
        ((title, data),) = files.items()
        return [_raw(PurePosixPath(title).name, data)]
    result, left_out, reason = [], [], None
    saved = {PurePosixPath(name).parent for name in files if PurePosixPath(name).name in SAVED}
    for root in map(str, sorted(saved, key=lambda folder: len(folder.parts))):  # within another, nothing is left
        inside = {name: data for name, data in files.items() if root == "." or name.startswith(f"{root}/")}
        files = {name: data for name, data in files.items() if name not in inside}
        if inside:
            result.append(_dataset(path.name, root, inside))
    classes = [data for name, data in files.items() if PurePosixPath(name).name in CLASSES]
    texts = {name: data for name, data in files.items() if _is_of_image(PurePosixPath(name), data)}
    if len(texts) > 1 or (texts and len(texts) == len(files)):
        result.append(_by_image(path.name, texts, (classes or [b""])[0]))
        others = ((name, data) for name, data in files.items() if name not in texts)
        files = {name: data for name, data in others if PurePosixPath(name).name not in CLASSES}
    inspect = {name: data for name, data in files.items() if re.fullmatch(r"samples/[^/]*\.json", name)}
    if inspect and "header.json" in files:  # a log of Inspect
        records = [_json(path.name, data.decode()).value for data in inspect.values()]
        return [Raw(path.name, bare_name(path.name), records)]
    for name, data in files.items():
        try:
            raw = _raw(PurePosixPath(name).name, data)
            if raw.lines and not any(fits(raw.lines) for fits in HEADERLESS):
                raise CapbiasError(f"{raw.title} is text in no known format.", "Name a file to read.")
            result.append(raw)
        except CapbiasError as error:
            left_out.append(PurePosixPath(name).name)
            reason = reason or error
    if not result:
        raise reason or CapbiasError(f"{path.name} holds no file that can be read.", "Name a file in it.")
    if left_out:
        result[0].notes.append(f"left out, in no known format: {listed(left_out)}")
    return result


def _raw(title: str, data: bytes) -> Raw:
    name = bare_name(title)
    if not data.strip():
        raise CapbiasError(f"{title} is an empty file.", "Check how it was written.")
    if data.startswith(PARQUET) or data.startswith(ARROW):
        columns, left_out = _arrow(title, data)
        notes = [f"left out, since they hold bytes: {listed(left_out)}"] if left_out else []
        return Raw(title, name, columns, notes)
    if data.startswith(PICKLES):
        from capbias_core.load.lic_release import plain_pickle

        return Raw(title, name, plain_pickle(title, data), format="LIC release (pickle)")
    if is_workbook(data) or title.lower().endswith(".xlsx"):
        return _workbook(title, data)
    text = decoded(title, data)
    if text.lstrip()[:1] in ("[", "{"):
        return _json(title, text)
    if title.lower().endswith(".txt") and _are_boxes(text):
        return _yolo(title, {title: text}, "")
    return _delimited(title, text)


# JSON


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError if a key occurs twice, of which a reader would silently take the last."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {short(twice)!r} occurs twice in an object")
    return value


def _fault(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "lists too deep in one another"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def _json(title: str, text: str) -> Raw:
    """A JSON document, values one after another, JSON Lines, or what Python's `str` made of one."""
    name, decoder = bare_name(title), json.JSONDecoder(object_pairs_hook=_unique)
    if '"segmentation"' in text:
        with suppress(ValueError, RecursionError):  # polygons as numbers would take ten times the time and memory
            return Raw(title, name, json.loads(OUTLINE.sub(r'\1"\2"', text), object_pairs_hook=_unique, strict=False))
    first: Exception | None = None
    try:
        value = decoder.decode(text)
        by_line = title.lower().endswith((".jsonl", ".ndjson")) and isinstance(value, dict)
        return Raw(title, name, [value] if by_line else value)
    except (ValueError, RecursionError) as error:
        first = error
    by_line, numbers, faults = [], [], RowErrors(title, "line")
    lines = text.splitlines()
    if len(lines) > 1 and _is_whole(lines[0]):
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    by_line.append(decoder.decode(line.strip().rstrip(",")))
                    numbers.append(number)
                except (ValueError, RecursionError) as error:
                    where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                    faults.add(number, f"broken JSON{where} ({_fault(error)})")
        if by_line and len(by_line) >= 0.9 * (len(by_line) + faults.count):
            return _joined(Raw(title, name, by_line, faults=faults, numbers=numbers, rows=len(by_line) + faults.count))
    values, at = [], 0
    with suppress(ValueError, RecursionError):  # one after the other, each over several lines
        while at < len(text):
            if text[at] in " \r\n\t,":
                at += 1
                continue
            value, at = decoder.raw_decode(text, at)
            values.append(value)
        return _joined(Raw(title, name, values))
    from ast import literal_eval

    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        if not isinstance(first, RecursionError) and "twice" not in str(first):
            return Raw(title, name, literal_eval(text.strip()), ["written by Python's str(), and read as such"])
    where = f"at line {first.lineno}, column {first.colno}: " if isinstance(first, json.JSONDecodeError) else ""
    message = f"{title} holds broken JSON ({where}{_fault(first)})."
    if len(values) > 1 or len(by_line) > 1:
        message = f"{message[:-1]} after {max(len(values), len(by_line)):,} values."
    raise CapbiasError(message, "Write the file again; it may have been cut off.")


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _joined(raw: Raw) -> Raw:
    """Values one after another as one: lists appended to each other, objects by image, or records."""
    values = raw.value
    if len({type(value) for value in values}) > 1:
        raise CapbiasError(f"{raw.title} holds an object and a list one after another.", "Write one of them to a file.")
    if len(values) == 1:
        return Raw(raw.title, raw.name, values[0] if isinstance(values[0], list) else values, raw.notes, raw.faults)
    if all(isinstance(value, list) and value and isinstance(value[0], dict) for value in values):
        raw.value, raw.numbers = [row for value in values for row in value], []
    elif all(isinstance(value, dict) for value in values):
        pairs = [pair for value in values for pair in value.items()]
        captions = all(isinstance(text, str) and " " in text for _, text in pairs)
        if captions and len(dict(pairs)) == len(pairs):
            raw.value, raw.numbers = [{"image_id": image, "caption": text} for image, text in pairs], []
    return raw


# text with a delimiter


def _delimited(title: str, text: str) -> Raw:
    """A table with a header, or its lines if it has none. A row of another length is a fault."""
    lines = text.splitlines()
    start = io.StringIO(text.lstrip(), newline="")
    headers = {}
    for mark in (",", "\t", ";", "|"):
        headers[mark] = []
        with suppress(csv.Error):
            start.seek(0)
            headers[mark] = next((row for row in csv.reader(start, delimiter=mark, strict=True) if row), [])
    mark = max(headers, key=lambda mark: len(headers[mark]))
    names = [name.strip() or f"column {number}" for number, name in enumerate(headers[mark], start=1)]
    raw = Raw(title, bare_name(title), None, lines=lines)
    if not names:
        raise CapbiasError(f"The quotes in the first line of {title} are broken.", "Close every quote.")
    if not _is_header(names) or any(fits(lines) for fits in HEADERLESS):
        return raw
    spaced = mark == "|" and "| " in lines[0]  # Flickr30k's file has a blank after each bar, and quotes within captions
    quoting = csv.QUOTE_NONE if spaced else csv.QUOTE_MINIMAL
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=mark, strict=True, quoting=quoting, skipinitialspace=spaced
    )
    rows, faults, header, several = [], RowErrors(title, "line"), False, 0
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            lost = reader.line_num - number
            more = f" ({counted(lost, 'further line')} lost with it)" if lost else ""
            fault = (
                "a quote is opened and never closed" if "end of data" in str(error) else "text follows a closing quote"
            )
            faults.add(number, fault + more)
            continue
        if row and header and len(row) != len(names):
            faults.add(number, f"{counted(len(row), 'field')} where the header has {len(names)}")
        elif row and header:
            raw.numbers.append(number)
            rows.append(row)
            several += reader.line_num > number
        header = header or bool(row)
    check_rows(title, len(rows))
    if faults.count > 0.1 * (len(rows) + faults.count) + 1:
        first = f"{faults.count:,} of {len(rows) + faults.count:,} rows are broken, the first at {faults.first[0]}"
        raise CapbiasError(f"{title} is no table: {first}.", "Put quotes around texts that hold the delimiter.")
    if several:
        raw.notes.append(f"{counted(several, 'row')} with line breaks within quotes")
    if title.lower().endswith((".json", ".jsonl")):
        raw.notes.append("as a table of text, since the file does not begin like JSON")
    if len(set(names)) < len(names):
        raise CapbiasError(f"{title} has two columns of the same name: {listed(names)}.", "Rename or delete one.")
    raw.value = pd.DataFrame(rows, columns=names, dtype=object)
    raw.faults, raw.rows, raw.lines = faults, len(rows) + faults.count, []
    return raw


def _is_header(names: list[str]) -> bool:
    """Whether a first row names columns: short names of which none is a number, an address, or a picture."""
    if any(re.search(r"://|^[\d.,]+$|\.(?:jpe?g|png|webp)(?:#\d+)?$|.{100}", name, re.I) for name in names):
        return False
    return len(names) > 1 and (len(names) > 2 or not any(name.count(" ") > 3 for name in names))


def _pairs(lines: list[str], first: str, second: str) -> bool:
    rows = [line.split("\t") for line in lines[:1000] if line.strip()]
    fits = [len(row) == 2 and re.match(first, row[0]) and re.match(second, row[1]) for row in rows]
    return bool(rows) and sum(map(bool, fits)) >= 0.9 * len(rows)


# Lines without a header: Flickr30k's tokens, predictions of Oscar and VinVL, Conceptual Captions.
HEADERLESS = (
    lambda lines: _pairs(lines, r".+#\d+$", "."),
    lambda lines: _pairs(lines, r"\S+$", r"\[\{"),
    lambda lines: _pairs(lines, ".", r"https?://"),
)


# Excel


def _workbook(title: str, data: bytes) -> Raw:
    """The only sheet with a table, every cell as the text that a CSV of it would have; a title may stand above."""
    from openpyxl import load_workbook

    def too_large(what: str) -> CapbiasError:
        return CapbiasError(f"{title} {what} are read.", "Save it as CSV.")

    tables: dict[str, tuple[int, pd.DataFrame]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:  # which reads no more of a member than it says to have
            size = sum(member.file_size for member in archive.infolist())
        if size > MOST_SHEET_BYTES:
            raise too_large(f"unpacks to {size / 1e9:.1f} GB; at most {MOST_SHEET_BYTES / 1e9:g} GB")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        cells = 0
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what a file says of them fills every row with empty cells
            rows = []
            for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                cells += len(row)
                if number > MOST_SHEET_ROWS or cells > MOST_CELLS:
                    raise too_large(f"has a row {number:,}; at most {MOST_SHEET_ROWS:,} rows of few cells")
                values = [None if cell is None or str(cell).strip() == "" else cell for cell in row]
                if any(cell is not None for cell in values):
                    rows.append(values)
            if table := _table_of(title, rows):
                tables[sheet.title] = table
        book.close()
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises its own errors, zipfile's and those of its XML parser
        reason = first_line(error)
        raise CapbiasError(f"{title} is an Excel file that cannot be read ({reason}).", "Save it again.") from None
    if len(tables) != 1:
        number = f"{len(tables)} of its sheets hold" if tables else "none of its sheets holds"
        raise CapbiasError(
            f"{title}: {number} a table with a header ({listed(tables)}).", "Keep one sheet with a table."
        )
    ((sheet, (top, frame)),) = tables.items()
    notes = [f"from the sheet {short(sheet)}"] if len(book.sheetnames) > 1 else []
    return Raw(title, bare_name(title), frame, notes + ([f"header in row {top + 1}"] if top else []), format="Excel")


def _table_of(title: str, rows: list[list]) -> tuple[int, pd.DataFrame] | None:
    widest = max((sum(cell is not None for cell in row) for row in rows), default=0)
    for top, row in enumerate(rows[:6]):
        places = [place for place, cell in enumerate(row) if cell is not None]
        names = [str(row[place]).strip() for place in places]
        texts = all(isinstance(row[place], str) for place in places)
        if len(names) < 2 or len(names) < widest / 2 or not texts or not rows[top + 1 :]:
            continue
        columns = {}
        for name, place in zip(names, places, strict=True):
            cells = [other[place] if place < len(other) else None for other in rows[top + 1 :]]
            if any(isinstance(cell, int | float) and abs(cell) >= 10**15 for cell in cells):
                raise CapbiasError(
                    f"{title}: the column {short(name)} holds numbers of 16 digits, which a spreadsheet rounds.",
                    "Save them as text.",
                )
            columns[name] = ["" if cell is None else str(cell) for cell in cells]
        if len(columns) < len(names):
            raise CapbiasError(f"{title} has two columns of the same name: {listed(names)}.", "Rename one.")
        return top, pd.DataFrame(columns, dtype=object)
    return None


# Parquet, Arrow and saved data sets


def _arrow(title: str, data: bytes, about: bytes = b"") -> tuple[pd.DataFrame, list[str]]:
    """The columns of a Parquet or Arrow file, and the names of those left out: bytes, and the index of pandas. Of
    pictures the path is read. about: the data set's dataset_info.json."""
    import pyarrow
    import pyarrow.parquet
    from pyarrow import types

    def is_picture(kind: Any) -> bool:
        return types.is_struct(kind) and kind.get_field_index("path") >= 0

    def wanted(schema: Any) -> dict[str, str]:
        """Column -> what is read of it."""
        names = [name for name in schema.names if not name.startswith(INDEX)]
        if len(set(names)) < len(names):
            raise CapbiasError(f"{title} has two columns of the same name: {listed(names)}.", "Rename or delete one.")
        kinds = {name: schema.field(name).type for name in names}
        binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
        columns = {name: f"{name}.path" if is_picture(kind) else name for name, kind in kinds.items()}
        return {name: column for name, column in columns.items() if not any(test(kinds[name]) for test in binary)}

    try:
        if data.startswith(PARQUET):
            with pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data)) as file:
                columns, names = wanted(file.schema_arrow), file.schema_arrow.names
                check_rows(title, file.metadata.num_rows)  # before they fill the memory
                table = file.read(columns=list(columns.values()))
        else:
            form = pyarrow.ipc.open_file if data.startswith(b"ARROW1") else pyarrow.ipc.open_stream
            with form(pyarrow.BufferReader(data)) as batches:
                columns, names = wanted(batches.schema), batches.schema.names
            fields = [index for index, name in enumerate(names) if name in columns]
            with form(
                pyarrow.BufferReader(data), options=pyarrow.ipc.IpcReadOptions(included_fields=fields)
            ) as batches:
                table = batches.read_all()
        check_rows(title, table.num_rows)
        table.validate(full=True)  # whatever a stranger wrote, such as columns of different lengths
        values = {name: table.column(name).to_pylist(maps_as_pydicts="strict") for name in columns}
        for name, feature in _features(table.schema, about).items():
            if name in values:
                values[name] = [_with_class_names(cell, feature) for cell in values[name]]
        for name in columns:
            if is_picture(table.column(name).type):
                values[name] = [cell["path"] if cell else None for cell in values[name]]
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # any error that pyarrow raises for a damaged file
        what = "a Parquet file" if data.startswith(PARQUET) else "a data set"
        reason = first_line(error)
        raise CapbiasError(f"{title} is {what} that is broken ({reason}).", "Write it again.") from None
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in values.items()})
    return frame, [name for name in names if name not in columns and not name.startswith(INDEX)]


def _features(schema: Any, about: bytes) -> Mapping[str, Any]:
    """What the library `datasets` says of the columns, in the file or beside it; {} if nothing."""
    text = (schema.metadata or {}).get(b"huggingface")
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        return dict((json.loads(text)["info"] if text else json.loads(about or b"{}"))["features"])
    return {}


def _with_class_names(cell: Any, feature: Any) -> Any:
    """A cell with the names of classes in place of their numbers; -1 is no class. ValueError for a number without a
    name."""
    inner = feature[0] if isinstance(feature, list) and feature else feature
    if not isinstance(inner, dict) or cell is None:
        return cell
    kind = inner.get("_type")
    if kind == "ClassLabel" and isinstance(cell, int):
        names = inner.get("names") or ()
        if cell >= len(names):
            raise ValueError(f"class {cell} has no name")
        return names[cell] if cell >= 0 else None
    inner = inner.get("feature", inner) if isinstance(kind, str) else inner
    if isinstance(cell, dict):
        return {name: _with_class_names(value, inner.get(name)) for name, value in cell.items()}
    return [_with_class_names(value, inner) for value in cell] if isinstance(cell, list) else cell


def _dataset(title: str, root: str, files: Mapping[str, bytes]) -> Raw:
    """The rows of all splits of a saved data set. Raises CapbiasError if a file is broken or lacks a column."""

    def at(*parts: str) -> str:
        return PurePosixPath(root, *parts).as_posix()

    def broken(reason: str) -> CapbiasError:
        return CapbiasError(f"{title} is a data set that is broken ({reason}).", "Write it again.")

    def names(file: str, key: str, inner: str = "") -> list[str]:
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            return [str(entry[inner] if inner else entry) for entry in json.loads(files[file])[key]]
        raise broken(f"{PurePosixPath(file).name} has no list {key} of names")

    splits = names(at(SPLITS), "splits") if at(SPLITS) in files else [""]
    frames, counts, left_out = [], {}, []
    for split in splits:
        for file in names(at(split, STATE), "_data_files", "filename"):
            if at(split, file) not in files:
                raise broken(f"{file} is missing")
            frame, left_out = _arrow(title, files[at(split, file)], files.get(at(split, "dataset_info.json"), b""))
            if frames and set(frame) != set(frames[0]):
                raise broken(f"{file} has other columns")
            frames.append(frame)
            counts[split] = counts.get(split, 0) + len(frame)
    if not frames:
        raise broken("it names no Arrow file")
    shown = ", ".join(f"{split} {counted(rows, 'row')}" for split, rows in counts.items() if split)
    notes = [f"rows of every split: {shown}"] if shown else []
    notes += [f"left out, since they hold bytes: {listed(left_out)}"] if left_out else []
    name = bare_name(title if root == "." else PurePosixPath(root).name)
    return Raw(title, name, pd.concat(frames, ignore_index=True), notes, format="Hugging Face data set")


# texts by image


def coco_names() -> list[str]:
    """The names of COCO's 80 objects, in the order in which detectors number them."""
    return list(tomllib.loads(OBJECTS_FILE.read_text(encoding="utf-8")))


def _is_of_image(path: PurePosixPath, data: bytes) -> bool:
    """Whether a file is the text of one image, rather than a table, or the texts of many images."""
    if not path.name.lower().endswith(TEXTS) or path.name in CLASSES or path.stem.lower() in ("readme", "license"):
        return False
    text = data[:100_000].decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_LINES or text.lstrip().startswith("[{") or (len(lines) > 1 and TABLE.match(text)):
        return False
    return not lines or not all(map(LINE_OF_IMAGE.match, lines[:5]))


def _are_boxes(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(YOLO.fullmatch(line) for line in lines[:50])


def _by_image(title: str, texts: Mapping[str, bytes], classes: bytes) -> Raw:
    """A row per file, or per box. A file that is not text is a fault."""
    faults, inside = RowErrors(title, "record"), {}
    for number, (name, data) in enumerate(texts.items(), start=1):
        try:
            inside[name] = decoded(PurePosixPath(name).name, data)
        except CapbiasError as error:
            faults.add(number, error.message.rstrip("."))
    if any(map(_are_boxes, inside.values())):
        return _yolo(title, inside, classes.decode("utf-8", "replace"))
    rows = [{"image_id": PurePosixPath(name).stem, "caption": text.strip()} for name, text in inside.items()]
    return Raw(title, bare_name(title), frame_of(rows), faults=faults, format="a text per image", rows=len(texts))


def _yolo(title: str, texts: Mapping[str, str], classes: str) -> Raw:
    """Boxes in YOLO's text files. Without a file of names, the classes are taken to be COCO's."""
    names = [line.strip() for line in classes.splitlines()] or coco_names()
    faults, rows = RowErrors(title, "line" if len(texts) == 1 else "record"), []
    for record, (name, text) in enumerate(texts.items(), start=1):
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            if (match := YOLO.fullmatch(line)) is None:
                fault = f"{short(line)} where a class and four shares of the image are expected"
                faults.add(number if len(texts) == 1 else record, fault)
                continue
            x, y, width, height, *sure = map(float, match[2].split())
            index = int(match[1])
            corners = dict(x1=x - width / 2, y1=y - height / 2, x2=x + width / 2, y2=y + height / 2)
            named = names[index] if index < len(names) else f"class {index}"
            rows.append(
                {"image": PurePosixPath(name).stem, "class": named, "confidence": sure[0] if sure else 1.0, **corners}
            )
    note = f"names of classes from {'the list of classes' if classes else 'COCO, since no classes.txt is beside it'}"
    return Raw(
        title, bare_name(title), frame_of(rows), [note], faults, format="boxes of YOLO", rows=len(rows) + faults.count
    )
