"""Tables in files that are not JSON: text with a delimiter, lines of image and caption, Excel, Parquet, Arrow, and
folders of the library `datasets`; a folder with one text per image; boxes as YOLO writes them."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES, REFERENCES
from capbias_core.load.account import is_sentence
from capbias_core.load.files import (
    SPLITS,
    STATE,
    TEXTS,
    head_text,
    is_dataset,
    is_table,
    is_workbook,
    most_bytes,
    read_head,
    readable,
    text_lines,
    whole_text,
)
from capbias_core.load.ids import short
from capbias_core.load.parsed import Head, Parsed, Reader, RowErrors, check_rows, checked_names, listed
from capbias_core.load.places import nameable
from capbias_core.resources import OBJECTS_FILE
from capbias_core.types import counted

LINES = "Lines of image and caption"
IMAGE = re.compile(r"(\d+|\S+\.(?:jpe?g|png|webp|gif|bmp))(?:#(\d+))?", re.IGNORECASE)
# A sheet may have a row far below, and the reader goes through all before it; Excel has no more.
MOST_SHEET_ROWS = 1_048_576
MOST_SHEET_BYTES = 400_000_000  # unpacked; a sheet of a million captions has half of it
MOST_CELLS = 50_000_000  # up to the last one of each row, empty ones too
DATA_SET = "Hugging Face data set (folder, zip or Arrow)"
PARQUET, STREAM, FILE = b"PAR1", b"\xff\xff\xff\xff", b"ARROW1"
INDEX = "__index_level_"  # the start of names that pandas gives to an index
FOLDER = "Folder with one text per image"
# A class, the middle, width and height as shares of the image, and the confidence.
YOLO = re.compile(r"\s*(\d{1,4})((?:\s+(?:0?\.\d+|[01](?:\.\d*)?)(?:e-?\d+)?){4,5})\s*", re.IGNORECASE)
YOLO_TITLE = "Boxes of YOLO (text)"
CLASSES = ("classes.txt", "obj.names")  # names of the classes, one per line

# A caption may be longer than the 128 KiB at which the csv module stops.
csv.field_size_limit(2**31 - 1)


# text with a header


def _header(text: str) -> tuple[str, tuple[str, ...]]:
    """Delimiter and column names: the first row, read with the delimiter that gives most columns; none if broken."""
    headers = {}
    for delimiter in (",", "\t", ";", "|"):
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        headers[delimiter] = []
        with suppress(csv.Error):
            headers[delimiter] = next((row for row in rows if row), [])
    delimiter = max(headers, key=lambda delimiter: len(headers[delimiter]))
    return delimiter, _named(headers[delimiter])


def _named(row: list[str]) -> tuple[str, ...]:
    return tuple(name.strip() or f"column {number}" for number, name in enumerate(row, start=1))


def _is_table(head: Head) -> bool:
    """By its ending, or if the first lines have as many fields as the header, which prose seldom has."""
    if head.ending in (".csv", ".tsv"):
        return True
    delimiter, names = _header(head.text)
    lines = csv.reader(io.StringIO(head.text, newline=""), delimiter=delimiter)
    try:
        widths = [len(row) for row, _ in zip(filter(None, lines), range(6), strict=False)]
    except csv.Error:
        return False
    return len(names) > 1 and len(widths) > 1 and len(set(widths)) == 1


def _parse_delimited(path: Path) -> Parsed:
    start = head_text(path, read_head(path)).lstrip()
    delimiter, names = _header(start)
    if not names:
        raise CapbiasError(f"The quotes in the first line of {path.name} are broken.", "Close every quote.")
    checked_names(path.name, names)
    # Flickr30k's file has a blank after each bar, and quotes within captions.
    spaced = delimiter == "|" and "| " in start.split("\n", 1)[0]
    quoting = csv.QUOTE_NONE if spaced else csv.QUOTE_MINIMAL
    faults, rows, numbers = RowErrors(path.name, "line"), [], []
    broken: list[tuple[int, int]] = []  # first line and further lines of rows that hold line breaks
    header_seen = False
    with text_lines(path) as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting, skipinitialspace=spaced)
        while True:
            number = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                last = reader.line_num
                lost = f"{counted(last - number, 'further line')} {'is' if last - number == 1 else 'are'} lost with it"
                through = f" (the row runs to line {last}: {lost})" if last > number else ""
                fault = f'text follows a closing quote{through}; write a quote inside a quoted field twice ("")'
                if "end of data" in str(error):
                    fault = f"a quote is opened and never closed; {lost} to the end of the file (line {last})"
                faults.add(number, fault)
                continue
            if row and header_seen and len(row) != len(names):
                faults.add(number, f"{counted(len(row), 'field')} where the header has {len(names)}")
            elif row and header_seen:
                numbers.append(number)
                rows.append(row)
                broken += [(number, reader.line_num - number)] if reader.line_num > number else []
                check_rows(path.name, len(rows))
            header_seen = header_seen or bool(row)
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    tabs = delimiter == "\t" or (len(names) == 1 and path.suffix.lower() == ".tsv")
    notes = ()
    if broken:
        first, most = max(broken, key=lambda pair: pair[1])
        further = counted(sum(lines for _, lines in broken), "further line")
        notes = (
            f"{counted(len(broken), 'row')} with line breaks within quotes took in {further}, the most from line "
            f"{first} to line {first + most}; if these are separate rows, a quote is not closed",
        )
    name = "tsv" if tabs else "csv"
    return Parsed(path, name, name.upper(), columns, numbers, len(numbers) + faults.count, faults, notes)


# without a header


def _pairs(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, tuple | str]]:
    """Number and (image, number of its caption or None, caption) of each line, or what is wrong with it.

    `dog.jpg<tab>A dog.`, `dog.jpg#0<tab>A dog.` as in Flickr30k, and `image id<tab>[{"caption": ..., "conf": ...}]` as
    Oscar and VinVL write.
    """
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    table = csv.reader(lines, delimiter=delimiter, quoting=quoting)
    for row in filter(None, table):
        image = IMAGE.fullmatch(row[0].strip()) if len(row) == 2 else None
        caption = row[-1]
        if image is None:
            yield table.line_num, f"{short(delimiter.join(row))} where an image and a caption are expected"
            continue
        if caption.startswith("[{"):
            try:
                caption = [entry["caption"] for entry in json.loads(caption)]
            except (ValueError, LookupError, TypeError, RecursionError):
                yield table.line_num, f'{short(caption)} where [{{"caption": ...}}] is expected'
                continue
        yield table.line_num, (image[1], image[2], caption)


def _delimiter(text: str) -> str:
    """What separates image and caption on each of the first lines; '' for another format."""
    for delimiter in ("\t", ","):
        try:
            pairs = [pair for _, pair in _pairs(text.split("\n", 3)[:3], delimiter)]
        except csv.Error:
            continue
        if pairs and all(
            not isinstance(pair, str) and (isinstance(pair[2], list) or is_sentence(pair[2])) for pair in pairs
        ):
            return delimiter
    return ""


def _parse_headerless(path: Path) -> Parsed:
    delimiter = _delimiter(head_text(path, read_head(path)).lstrip())
    faults, numbers, pairs = RowErrors(path.name, "line"), [], []
    with text_lines(path) as lines:
        for number, pair in _pairs(lines, delimiter):
            if isinstance(pair, str):
                faults.add(number, pair)
            else:
                numbers.append(number)
                pairs.append(pair)
    images, indices, captions = zip(*pairs, strict=True) if pairs else ((), (), ())
    numbered = {"comment_number": indices} if any(index not in (None, "0") for index in indices) else {}
    oscar = any(isinstance(caption, list) for caption in captions[:3])
    name, title = ("oscar_tsv", "Captions of Oscar and VinVL (TSV)") if oscar else ("headerless", LINES)
    notes = ("the confidence of each caption is left out",) if oscar else ()
    columns = {"image_id": images, "caption": captions, **numbered}
    kind = REFERENCES if numbered else ""  # as Flickr30k writes human captions
    return Parsed(path, name, title, columns, numbers, len(pairs) + faults.count, faults, notes, kind)


# Excel


def _parse_sheet(path: Path) -> Parsed:
    """The first sheet, every cell as the text that a CSV of it would have; rows are numbered as Excel shows them."""
    from openpyxl import load_workbook

    def too_large(what: str) -> CapbiasError:
        return CapbiasError(f"{path.name} {what} are read.", "Save it as CSV.")

    numbers, rows, cells, most = [], [], 0, min(MOST_SHEET_BYTES, most_bytes(path))
    try:
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as archive:  # which reads no more of a member than it says to have
                size = sum(member.file_size for member in archive.infolist())
            if size > most:
                raise too_large(f"unpacks to {size / 1e9:.1f} GB; at most {most / 1e9:g} GB")
            file.seek(0)
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            try:
                sheet = book.worksheets[0]
                sheet.reset_dimensions()  # what a file says of them fills every row with empty cells
                for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                    cells += len(row)
                    if number > MOST_SHEET_ROWS or cells > MOST_CELLS:
                        raise too_large(f"has a row {number:,}; at most {MOST_SHEET_ROWS:,} rows of few cells")
                    texts = ["" if value is None else str(value) for value in row]
                    while texts and not texts[-1].strip():
                        texts.pop()
                    if texts:
                        numbers.append(number)
                        rows.append(texts)
            finally:
                book.close()
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises its own errors, zipfile's and those of its XML parser
        reason = str(error).split("\n")[0][:200].rstrip(".") or type(error).__name__
        raise CapbiasError(f"{path.name} is an Excel file that cannot be read ({reason}).", "Save it again.") from None
    if not rows:
        raise CapbiasError(f"The first sheet of {path.name} is empty.", "Put the table there, with column names.")
    names = checked_names(path.name, _named(rows[0]))
    columns = {name: [row[index] if index < len(row) else "" for row in rows[1:]] for index, name in enumerate(names)}
    return Parsed(path, "xlsx", "Excel", columns, numbers[1:], len(rows) - 1, RowErrors(path.name, "line"))


# Parquet, Arrow and saved data sets


def _broken(path: Path, reason: str) -> CapbiasError:
    what = "a Parquet file" if path.is_file() and _start(path).startswith(PARQUET) else "a data set"
    return CapbiasError(f"{path.name} is {what} that is broken ({reason}).", "Write it again.")


def _start(file: Path) -> bytes:
    with readable(file), file.open("rb") as opened:
        return opened.read(len(FILE))


def _read_columns(path: Path, file: Path) -> tuple[dict[str, list], int, list[str]]:
    """The values of each column of a Parquet or Arrow file, its number of rows, and the columns left out. Of pictures
    the path is read. Columns of bytes and the index of pandas are left out. path: for messages."""
    import pyarrow
    import pyarrow.parquet
    from pyarrow import types

    def is_picture(kind) -> bool:
        return types.is_struct(kind) and kind.get_field_index("path") >= 0

    def wanted(schema) -> dict[str, str]:
        """Column -> what is read of it."""
        columns = {}
        for name in checked_names(path.name, tuple(name for name in schema.names if not name.startswith(INDEX))):
            kind = schema.field(name).type
            if is_picture(kind):
                columns[name] = f"{name}.path"
            elif not (types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)):
                columns[name] = name
        return columns

    try:
        start = _start(file)
        if start.startswith(PARQUET):
            with pyarrow.parquet.ParquetFile(file) as opened:
                columns, names = wanted(opened.schema_arrow), opened.schema_arrow.names
                check_rows(path.name, opened.metadata.num_rows)  # before they fill the memory
                table = opened.read(columns=list(columns.values()))
        else:
            opened = pyarrow.ipc.open_file if start == FILE else pyarrow.ipc.open_stream
            with pyarrow.memory_map(str(file)) as source:
                with opened(source) as batches:
                    columns, names = wanted(batches.schema), batches.schema.names
                fields = [index for index, name in enumerate(names) if name in columns]
                source.seek(0)
                with opened(source, options=pyarrow.ipc.IpcReadOptions(included_fields=fields)) as batches:
                    table = batches.read_all()
        check_rows(path.name, table.num_rows)  # of Arrow, where equal rows may take no space in the file either
        table.validate(full=True)  # whatever a stranger wrote, such as columns of different lengths
        values = {name: table.column(name).to_pylist(maps_as_pydicts="strict") for name in columns}
        for name, feature in _features(table.schema, file).items():
            if name in values:
                values[name] = [_with_class_names(cell, feature) for cell in values[name]]
        for name in columns:
            if is_picture(table.column(name).type):
                values[name] = [cell["path"] if cell else None for cell in values[name]]
    except (CapbiasError, MemoryError):
        raise
    except Exception as error:  # any error that pyarrow raises for a damaged file
        raise _broken(path, str(error).split("\n")[0][:200].rstrip(".")) from None
    left_out = [name for name in names if name not in columns and not name.startswith(INDEX)]
    return values, table.num_rows, left_out


def _features(schema: Any, file: Path) -> dict[str, Any]:
    """What the library `datasets` says of the columns, in the file or beside it; {} if nothing."""
    about = file.with_name("dataset_info.json")
    text = (schema.metadata or {}).get(b"huggingface")
    try:
        info = json.loads(text)["info"] if text else json.loads(whole_text(about)) if about.is_file() else {}
        return dict(info["features"])
    except (ValueError, LookupError, TypeError, RecursionError, CapbiasError):
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


def _parse_arrow(path: Path) -> Parsed:
    """The rows of a file, or of all splits of a folder. Raises CapbiasError if a file is broken or lacks a column."""
    values: dict[str, list] = {}
    splits, left_out = Counter(), []
    for split, file in _arrow_files(path):
        with readable(file):
            part, rows, others = _read_columns(path, file)
        if not splits:
            values, left_out = {name: [] for name in part}, others
        if missing := [name for name in values if name not in part]:
            raise _broken(path, f"{file.name} has no column {missing[0]}")
        splits[split] += rows
        check_rows(path.name, splits.total())
        for name, cells in values.items():
            cells += part[name]
    shown = ", ".join(f"{split} {counted(rows, 'row')}" for split, rows in splits.items() if split)
    notes = (f"rows of every split: {shown}",) if shown else ()
    if left_out:
        notes += (f"left out, since they hold bytes: {listed(left_out)}",)
    total = splits.total() if values else 0
    parquet = path.is_file() and _start(path).startswith(PARQUET)
    format, title = ("parquet", "Parquet") if parquet else ("datasets", DATA_SET)
    return Parsed(path, format, title, values, range(1, total + 1), total, RowErrors(path.name, "record"), notes)


def _arrow_files(path: Path) -> list[tuple[str, Path]]:
    if not path.is_dir():
        return [("", path)]

    def listing(file: Path, key: str, inner: str = "") -> list[str]:
        """Names in a JSON file of the data set; none leads out of its folder."""
        try:
            with readable(file):
                entries: Any = json.loads(file.read_text("utf-8"))[key]
            names = [entry[inner] if inner else entry for entry in entries]
            if all(isinstance(name, str) and Path(name).name == name for name in names):
                return names
        except (ValueError, LookupError, TypeError, RecursionError):
            pass
        raise _broken(path, f"{file.name} has no list {key} of names")

    parts = [path / name for name in listing(path / SPLITS, "splits")] if (path / SPLITS).is_file() else [path]
    files = [
        (part.name if part != path else "", part / name)
        for part in parts
        for name in listing(part / STATE, "_data_files", "filename")
    ]
    if not files:
        raise _broken(path, "it names no Arrow file")
    return files


# texts by image


def coco_names() -> list[str]:
    """The names of COCO's 80 objects, in the order in which detectors number them."""
    return list(tomllib.loads(OBJECTS_FILE.read_text(encoding="utf-8")))


def _texts(folder: Path) -> list[Path]:
    """The text files in a folder and its subfolders; links only to files that may be named here."""
    return sorted(
        file
        for ending in TEXTS
        for file in folder.rglob(f"*{ending}")
        if file.is_file()
        and file.name not in CLASSES
        and file.stem.lower() not in ("readme", "license")
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and (not file.is_symlink() or nameable(file))
    )


def _are_boxes(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(YOLO.fullmatch(line) for line in lines[:50])


def _parse_folder(path: Path) -> Parsed:
    """A row per file, or per box. A file that is not text is a fault."""
    files = _texts(path)
    check_rows(path.name, len(files))
    faults, numbers, texts = RowErrors(path.name, "record"), [], {}
    for number, file in enumerate(files, start=1):
        try:
            texts[file] = whole_text(file) if file.stat().st_size else ""
            numbers.append(number)
        except CapbiasError as error:
            faults.add(number, error.message.rstrip("."))
    if any(map(_are_boxes, texts.values())):
        return _boxes(path, texts)
    if tables := [file.name for file, text in texts.items() if is_table(text)]:
        raise CapbiasError(
            f"{path.name} holds tables ({listed(tables, 3)}), where one text per image is expected.",
            "Name each table, or move it out of the folder.",
        )
    columns = {"image_id": [file.stem for file in texts], "caption": [text.strip() for text in texts.values()]}
    return Parsed(path, "text_files", FOLDER, columns, numbers, len(files), faults)


def _boxes(path: Path, texts: dict[Path, str]) -> Parsed:
    """Boxes in YOLO's text files. Without a file of names, the classes are taken to be COCO's."""
    folder = path if path.is_dir() else path.parent
    listed = (parent / name for name in CLASSES for parent in (folder, folder.parent))
    beside = next((file for file in listed if file.is_file()), None)
    beside = beside if beside and nameable(beside) else None
    names = [line.strip() for line in whole_text(beside).splitlines()] if beside else coco_names()
    faults, numbers, rows = RowErrors(path.name, "line" if len(texts) == 1 else "record"), [], []
    for record, (file, text) in enumerate(texts.items(), start=1):
        for line_number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            match, number = YOLO.fullmatch(line), line_number if len(texts) == 1 else record
            if match is None:
                faults.add(number, f"{short(line)} where a class and four shares of the image are expected")
                continue
            x, y, width, height, *sure = map(float, match[2].split())
            index = int(match[1])
            name = names[index] if index < len(names) else f"class {index}"
            corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            numbers.append(number)
            rows.append((file.stem, name, sure[0] if sure else 1.0, *corners))
    names = ("image", "class", "confidence", "x1", "y1", "x2", "y2")
    columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
    notes = (f"names of classes from {beside.name if beside else 'COCO, since no classes.txt is beside it'}",)
    total = len(rows) + faults.count
    return Parsed(path, "yolo", YOLO_TITLE, columns, numbers, total, faults, notes, BOXES)


READERS = (
    Reader("xlsx", "Excel", lambda head: is_workbook(head.data), _parse_sheet, order=1),
    Reader("parquet", "Parquet", lambda head: head.data.startswith(PARQUET), _parse_arrow, order=1),
    Reader(
        "datasets",
        DATA_SET,
        lambda head: is_dataset(head.path) if head.path.is_dir() else head.data.startswith((STREAM, FILE)),
        _parse_arrow,
        order=1,
    ),
    Reader("text_files", FOLDER, lambda head: head.path.is_dir() and bool(_texts(head.path)), _parse_folder, order=1.5),
    Reader(
        "yolo",
        YOLO_TITLE,
        lambda head: head.ending == ".txt" and _are_boxes(head.text),
        lambda path: _boxes(path, {path: whole_text(path)}),
        order=9.2,
    ),
    Reader("headerless", LINES, lambda head: bool(_delimiter(head.text)), _parse_headerless, order=9.5),
    Reader("csv", "CSV or TSV", _is_table, _parse_delimited, order=11),
)
