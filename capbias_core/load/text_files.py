"""A folder with one text per image, whose name is the image ID: captions, or boxes as YOLO writes them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.archives import TEXTS
from capbias_core.load.files import whole_text
from capbias_core.load.ids import short
from capbias_core.load.parsed import BOXES, Head, Parsed, Reader
from capbias_core.load.places import nameable
from capbias_core.load.rows import RowErrors, check_rows
from capbias_core.resources import OBJECTS_FILE

# A class, the middle, width and height as shares of the image, and how sure the detector is.
YOLO = re.compile(r"\s*(\d{1,4})((?:\s+(?:0?\.\d+|[01](?:\.\d*)?)(?:e-?\d+)?){4,5})\s*", re.IGNORECASE)
CLASSES = ("classes.txt", "obj.names")  # names of the classes, one per line
COLUMNS = ("image", "class", "confidence", "x1", "y1", "x2", "y2")


def _texts(folder: Path) -> list[Path]:
    """The files of texts in a folder, in folders within it too; links only to what may be named here."""
    files = (own for ending in TEXTS for own in folder.rglob(f"*{ending}"))
    return sorted(
        own
        for own in files
        if own.is_file()
        and own.name not in CLASSES
        and own.stem.lower() not in ("readme", "license")
        and not any(part.startswith(".") for part in own.relative_to(folder).parts)
        and (not own.is_symlink() or nameable(own))
    )


def _are_boxes(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(YOLO.fullmatch(line) for line in lines[:50])


def _parse_folder(path: Path) -> Parsed:
    """A row per file, or per box. Raises CapbiasError for a file that is no text."""
    files = _texts(path)
    check_rows(path.name, len(files))
    faults, texts = RowErrors(path.name, "record"), {}
    for number, own in enumerate(files, start=1):
        try:
            texts[own] = whole_text(own) if own.stat().st_size else ""
        except CapbiasError as error:
            faults.add(number, error.message.rstrip("."))
    if any(map(_are_boxes, texts.values())):
        return _boxes(path, texts)
    columns = {"image_id": [own.stem for own in texts], "caption": [text.strip() for text in texts.values()]}
    numbers = [number for number, own in enumerate(files, start=1) if own in texts]
    return Parsed(path, "text_files", "Folder with one text per image", columns, numbers, len(files), faults)


def _parse_boxes(path: Path) -> Parsed:
    return _boxes(path, {path: whole_text(path)})


def _boxes(path: Path, texts: dict[Path, str]) -> Parsed:
    """Boxes in YOLO's text files. Without a file of names, the classes are taken to be COCO's."""
    folder = path if path.is_dir() else path.parent
    beside = next((own for name in CLASSES for own in (folder / name, folder.parent / name) if own.is_file()), None)
    beside = beside if beside and nameable(beside) else None
    names = [line.strip() for line in whole_text(beside).splitlines()] if beside else coco_names()
    one = len(texts) == 1
    faults, numbers, rows = RowErrors(path.name, "line" if one else "record"), [], []
    for place, (file, text) in enumerate(texts.items(), start=1):
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            match, where = YOLO.fullmatch(line), number if one else place
            if match is None:
                faults.add(where, f"{short(line)} where a class and four shares of the image are expected")
                continue
            x, y, width, height, *sure = map(float, match[2].split())
            index = int(match[1])
            name = names[index] if index < len(names) else f"class {index}"
            corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            numbers.append(where)
            rows.append((file.stem, name, sure[0] if sure else 1.0, *corners))
    columns = {name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}
    source = beside.name if beside else "COCO, since no classes.txt is beside it"
    notes = (f"names of classes from {source}",)
    return Parsed(
        path, "yolo", "Boxes of YOLO (text)", columns, numbers, len(rows) + faults.count, faults, notes, BOXES
    )


def coco_names() -> list[str]:
    """The names of COCO's 80 objects, in the order in which detectors number them."""
    return list(tomllib.loads(OBJECTS_FILE.read_text(encoding="utf-8")))


def _is_folder(head: Head) -> bool:
    return head.path.is_dir() and bool(_texts(head.path))


def _is_box_file(head: Head) -> bool:
    return head.ending == ".txt" and _are_boxes(head.text)


READERS = (
    Reader("text_files", "Folder with one text per image", _is_folder, _parse_folder, place=1.5),
    Reader("yolo", "Boxes of YOLO (text)", _is_box_file, _parse_boxes, place=9.2),
)
