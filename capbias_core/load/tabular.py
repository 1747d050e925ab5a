"""Tables as text (separated by commas, tabs, semicolons or bars, with or without a header), and Excel."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.archives import most_bytes
from capbias_core.load.files import head_text, is_workbook, read_head, text_lines
from capbias_core.load.ids import short
from capbias_core.load.parsed import Head, Parsed, Reader, RowErrors, check_rows, checked_names, is_sentence
from capbias_core.types import counted

ENDINGS = (".csv", ".tsv")
DELIMITERS = (",", "\t", ";", "|")
HEADERLESS = ("\t", ",")
LINES = "Lines of image and caption"
LOOKED_AT = 3  # lines of a file without a header
IMAGE = re.compile(r"(\d+|\S+\.(?:jpe?g|png|webp|gif|bmp))(?:#(\d+))?", re.IGNORECASE)
# A sheet may have a row far below, and the reader goes through all before it; Excel has no more.
MOST_SHEET_ROWS = 1_048_576
MOST_SHEET_BYTES = 400_000_000  # unpacked; a sheet of a million captions has half of it
MOST_CELLS = 50_000_000  # up to the last one of each row, empty ones too

# A caption may be longer than the 128 KiB at which the csv module stops.
csv.field_size_limit(2**31 - 1)


# with a header


def _header(text: str) -> tuple[str, tuple[str, ...]]:
    """Delimiter and column names: the first row, read with the delimiter that gives most columns; none if broken."""
    headers = {}
    for delimiter in DELIMITERS:
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
    if head.ending in ENDINGS:
        return True
    delimiter, names = _header(head.text)
    lines = csv.reader(io.StringIO(head.text, newline=""), delimiter=delimiter)
    try:
        widths = [len(row) for row, _ in zip(filter(None, lines), range(6), strict=False)]
    except csv.Error:
        return False
    return len(names) > 1 and len(widths) > 1 and len(set(widths)) == 1


def _parse_delimited(path: Path) -> Parsed:
    """A table with a header. Rows with another number of fields are faults."""
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
            f"{first} to line {first + most}; if these are rows of their own, a quote is not closed",
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
    for delimiter in HEADERLESS:
        try:
            pairs = [pair for _, pair in _pairs(text.split("\n", LOOKED_AT)[:LOOKED_AT], delimiter)]
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
    oscar = any(isinstance(caption, list) for caption in captions[:LOOKED_AT])
    name, title = ("oscar_tsv", "Captions of Oscar and VinVL (TSV)") if oscar else ("headerless", LINES)
    notes = ("the confidence of each caption is left out",) if oscar else ()
    columns = {"image_id": images, "caption": captions, **numbered}
    return Parsed(path, name, title, columns, numbers, len(pairs) + faults.count, faults, notes)


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


READERS = (
    Reader("xlsx", "Excel", lambda head: is_workbook(head.data), _parse_sheet, order=1),
    Reader("headerless", LINES, lambda head: bool(_delimiter(head.text)), _parse_headerless, order=9.5),
    Reader("csv", "CSV or TSV", _is_table, _parse_delimited, order=11),
)
