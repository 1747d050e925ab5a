"""A folder with one text per image, whose name is the image ID: captions, or boxes as YOLO writes them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.archives import TEXTS
from capbias_core.load.files import whole_text
from capbias_core.load.ids import short
from capbias_core.load.parsed import BOXES, Parsed, Reader, RowErrors, check_rows
from capbias_core.load.places import nameable
from capbias_core.resources import OBJECTS_FILE

# A class, the middle, width and height as shares of the image, and the confidence.
YOLO = re.compile(r"\s*(\d{1,4})((?:\s+(?:0?\.\d+|[01](?:\.\d*)?)(?:e-?\d+)?){4,5})\s*", re.IGNORECASE)
CLASSES = ("classes.txt", "obj.names")  # names of the classes, one per line
COLUMNS = ("image", "class", "confidence", "x1", "y1", "x2", "y2")


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
    columns = {"image_id": [file.stem for file in texts], "caption": [text.strip() for text in texts.values()]}
    return Parsed(path, "text_files", "Folder with one text per image", columns, numbers, len(files), faults)


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
    columns = {name: [row[index] for row in rows] for index, name in enumerate(COLUMNS)}
    notes = (f"names of classes from {beside.name if beside else 'COCO, since no classes.txt is beside it'}",)
    total = len(rows) + faults.count
    return Parsed(path, "yolo", "Boxes of YOLO (text)", columns, numbers, total, faults, notes, BOXES)


READERS = (
    Reader(
        "text_files",
        "Folder with one text per image",
        lambda head: head.path.is_dir() and bool(_texts(head.path)),
        _parse_folder,
        order=1.5,
    ),
    Reader(
        "yolo",
        "Boxes of YOLO (text)",
        lambda head: head.ending == ".txt" and _are_boxes(head.text),
        lambda path: _boxes(path, {path: whole_text(path)}),
        order=9.2,
    ),
)
