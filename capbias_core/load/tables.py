"""Objects, boxes and outlines of a file as a table; every row that is left out is counted.

An outline is kept as the JSON text of COCO's `segmentation`: a list of polygons `[x1, y1, x2, y2, ...]`, or
`{"size": [height, width], "counts": ...}` with run lengths down the columns, as numbers or in COCO's compressed text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, short
from capbias_core.kinds import BOXES, OBJECTS, SEGMENTS
from capbias_core.load.ids import described, normalise_image_id
from capbias_core.load.parts import Part, Piece
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.load.sheet import NAMES, RowErrors, Sheet, listed, literal, usual_column
from capbias_core.types import BOX_COLUMNS, SEGMENT_COLUMNS

BETWEEN = "|"  # between the names of objects
# How sure a detector is of an object, behind its name: `cat:0.93`.
SURE = r":(?:0(?:\.\d*)?|1(?:\.0*)?|\.\d+|\d(?:\.\d*)?[eE]-\d+)$"
OBJECT_COLUMNS = "objects object categories category"
# Roles of the columns of a table of boxes -> their usual names.
SIDES = ("x1", "y1", "x2", "y2")
BOX_NAMES = {
    "class": "class object label name class_name category category_name labelname",
    "confidence": "confidence score conf",
    "bbox": "bbox box",
    "x1": "x1 xmin",
    "y1": "y1 ymin",
    "x2": "x2 xmax",
    "y2": "y2 ymax",
}
# Codes of Open Images for people.
PEOPLE = {"/m/01g317": "person", "/m/03bt1vf": "woman", "/m/04yx4": "man", "/m/05r655": "girl", "/m/01bl7v": "boy"}
# How far a polygon may reach over the edge of its image, as a share of the longer side: people draw a little too far.
OVER_THE_EDGE = 0.05
CORNERS = 3


def _columns_of(sheet: Sheet, image_id: str, needed: Mapping[str, str], hint: str) -> list[str]:
    """The column of image IDs, '' for a usual one, then one per needed role (role -> usual names)."""
    names = [usual_column(sheet.columns, usual) for usual in (" ".join(NAMES["image"]), *needed.values())]
    found = list(filter(None, [image_id or names[0], *names[1:]]))
    if len(set(found)) <= len(needed):
        roles = listed(["image_id", *needed])
        raise CapbiasError(f"{sheet.title} has the columns {listed(sheet.columns)}; needed are {roles}.", hint)
    return found


def _read_rows(sheet: Sheet, rows: Iterable[tuple], read: Callable[..., Any]) -> tuple[list, RowErrors]:
    """What `read` makes of each row; a row for which it raises ValueError is a fault, and None is left out."""
    faults, values = sheet.faults.copy(), []
    for number, row in zip(sheet.numbers, rows, strict=True):
        try:
            if (value := read(*row)) is not None:
                values.append(value)
        except ValueError as error:
            faults.add(number, str(error))
    return values, faults


def _part(piece: Piece, kind: str, frame: pd.DataFrame, faults: RowErrors, note: str = "", others: int = 0) -> Part:
    """Rows as a part. others: rows of images that are not asked for. Raises CapbiasError without rows."""
    if frame.empty:
        note = f"{others:,} are of images that the collection does not have" if others else ""
        raise piece.sheet.unusable(faults, note)
    return piece.part(kind, piece.file.name or piece.sheet.name, frame, {"Others": f"{others:,}"}, faults, [note])


# objects


def objects(piece: Piece, image_id: str = "") -> Part:
    """The objects of images (image_id, objects): of COCO instances, of boxes, or of a column such as `cat|dog`.

    An image has an object once; images that COCO lists without an object are kept. image_id: its column, '' for a
    usual one. Raises CapbiasError for a file without objects.
    """
    sheet = piece.sheet
    of_coco = sheet.format == "COCO instances"
    if is_boxes(sheet) and not of_coco:
        kept, faults = _read_rows(sheet, sheet.values(*_box_columns(sheet)[:3]), _boxed)
        shown = pd.DataFrame(kept, columns=list(BOX_COLUMNS[:3]))
        return _part(piece, OBJECTS, object_texts(shown, list(dict.fromkeys(shown["image_id"]))), faults)
    columns = ["image_id", "category_id", "category"]
    if not of_coco:
        columns = _columns_of(sheet, image_id, {"objects": OBJECT_COLUMNS}, "Objects are written as cat|dog.")

    def read(image: object, raw: Any, name: str | None = None) -> tuple[str, set[str]]:
        text = BETWEEN.join(map(str, raw)) if isinstance(raw, list) else str(raw or "")
        shown = {_category(raw, name)} if of_coco else set(map(kept_name, text.split(BETWEEN)))
        return normalise_image_id(image), shown - {""}

    images: dict[str, set[str]] = {image: set() for image in sheet.sizes} if of_coco else {}
    rows, faults = _read_rows(sheet, sheet.values(*columns), read)
    for image, shown in rows:
        images.setdefault(image, set()).update(shown)
    if images and not any(images.values()):
        raise CapbiasError(
            f"{sheet.title} names no object on any of its {len(images):,} images.",
            "Check the file, and its column of objects.",
        )
    listed = [shown for shown in images.values() if shown]
    if all(len(shown) == 1 for shown in listed):
        marked = [name for shown in listed for name in shown if any(mark in name for mark in ",;/")]
        if 2 * len(marked) > len(listed):
            raise CapbiasError(
                f"{sheet.title} separates objects by another sign than {BETWEEN}, such as {short(marked[0])!r}.",
                "Write the objects of an image as cat|dog, or as a list in JSON.",
            )
    texts = [(image, BETWEEN.join(sorted(shown))) for image, shown in images.items()]
    return _part(piece, OBJECTS, pd.DataFrame(texts, columns=["image_id", "objects"]), faults)


def _category(category: object, name: str | None) -> str:
    """The name of an annotation's category. Raises ValueError for one that the file does not list."""
    if name:
        return kept_name(name)
    shown = category if isinstance(category, int | str) else described(category)
    raise ValueError(f"the category {short(shown)} is not among the categories of the file")


def objects_in(cells: pd.Series) -> pd.DataFrame:
    """A row for each object in texts such as `cat:0.93|dog`, in their order: image_id, object, confidence (nan without
    a detector's). cells: texts by image ID.

    >>> objects_in(pd.Series({"1": "cat:0.93| dog", "2": ""})).values.tolist()
    [['1', 'cat', 0.93], ['1', 'dog', nan]]
    """
    texts = cells.fillna("").astype(str).str.split(BETWEEN).explode().str.strip()
    texts = texts[texts != ""]
    sure = texts.str.extract(f"({SURE})", expand=False)
    return pd.DataFrame(
        {
            "image_id": texts.index.to_numpy(dtype=object),
            "object": texts.str.replace(SURE, "", regex=True).to_numpy(dtype=object),
            "confidence": sure.str[1:].to_numpy(dtype=float, na_value=np.nan),
        }
    )


def kept_name(name: str) -> str:
    """The stored name of an object: lower case, single spaces, without BETWEEN."""
    return " ".join(name.replace(BETWEEN, " ").lower().split())


# boxes


def is_boxes(sheet: Sheet) -> bool:
    """Whether a file has the columns of boxes."""
    has = {role: usual_column(sheet.columns, names) is not None for role, names in BOX_NAMES.items()}
    return has["class"] and (has["bbox"] or all(has[side] for side in SIDES))


def _box_columns(sheet: Sheet) -> list[str]:
    """The columns of image, class and confidence ('' for none), then that of boxes, or of their four sides."""
    columns = {role: usual_column(sheet.columns, names) or "" for role, names in BOX_NAMES.items()}
    box = ["bbox"] if columns["bbox"] else SIDES
    needed = {role: BOX_NAMES[role] for role in ("class", *box)}
    image, name, *sides = _columns_of(sheet, "", needed, "`capbias images detect` writes such a table.")
    return [image, name, columns["confidence"], *sides]


def _boxed(image: object, name: object, sure: object) -> tuple[str, str, float]:
    """Image ID, name and confidence of what is in a box. The image ID is the file's name, without its folders."""
    image = normalise_image_id(PurePath(image).name if isinstance(image, str) else image)
    text = "" if name is None else str(name).strip()
    name = PEOPLE.get(text) or kept_name(text)
    if not name or name.isdigit():
        raise ValueError("the class has no name")
    (confidence,) = _floats([1 if sure is None or sure == "" else sure])
    if not 0 < confidence <= 1:
        raise ValueError(f"a confidence of {confidence:g}, not above 0 and at most 1")
    return image, name, confidence


def boxes(piece: Piece) -> Part:
    """The boxes of a file, in BOX_COLUMNS; a box that reaches over the edge of its image is cut there. Raises
    CapbiasError for a file without a usable box, or with boxes as shares of their image."""
    sheet, cut, largest = piece.sheet, 0.0, 0.0

    def read(image: object, name: object, sure: object, *box: object) -> tuple:
        nonlocal cut, largest
        known = _boxed(image, name, sure)
        given = _floats(box if len(box) == 4 else _corners(box[0]))
        inside = _on_image(given, *sheet.sizes.get(known[0], (0, 0)))
        cut, largest = cut + (inside != tuple(given)), max(largest, *inside)
        return *known, *inside

    kept, faults = _read_rows(sheet, sheet.values(*_box_columns(sheet)), read)
    if kept and largest <= 1.5:  # rounding may bring a share above 1
        raise CapbiasError(
            f"{sheet.title} gives its boxes as shares of their images.", "Write them in pixels, or run `images detect`."
        )
    note = f"boxes cut at the edge of their image: {cut:,.0f}" if cut else ""
    return _part(piece, BOXES, pd.DataFrame(kept, columns=list(BOX_COLUMNS)), faults, note)


def _corners(box: object) -> tuple:
    """x1, y1, x2, y2 of COCO's [x, y, width, height]; anything else with None."""
    if isinstance(box, list) and len(box) == 4 and all(type(value) in (int, float) for value in box):
        return box[0], box[1], box[0] + box[2], box[1] + box[3]
    return box, None, None, None


def _floats(raw: Sequence) -> list[float]:
    try:
        return [float(value) for value in raw]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{', '.join(short(value) for value in raw)}: not numbers") from None


def _on_image(corners: Sequence[float], height: int, width: int) -> tuple[float, ...]:
    """The part of a box on its image. height, width: 0 if unknown. ValueError if there is none."""
    x1, y1, x2, y2 = (max(value, 0.0) for value in corners)
    x2, y2 = min(x2, width or x2), min(y2, height or y2)
    if not (x1 < x2 < math.inf and y1 < y2 < math.inf):
        raise ValueError(f"a box ({', '.join(f'{value:g}' for value in corners)}) that encloses nothing on its image")
    return x1, y1, x2, y2


def object_texts(boxes: pd.DataFrame, images: Sequence[str]) -> pd.DataFrame:
    """The objects of images with a detector's confidence in the surest box of each: image_id, objects.

    boxes: in BOX_COLUMNS. images: those that were looked at; '' without a box.

    >>> rows = [("1", "cat", 0.5, 0, 0, 1, 1), ("1", "cat", 0.75, 0, 0, 2, 2), ("1", "dog", 0.25, 0, 0, 1, 1)]
    >>> object_texts(pd.DataFrame(rows, columns=list(BOX_COLUMNS)), ["1", "2"])["objects"].tolist()
    ['cat:0.75|dog:0.25', '']
    """
    surest = boxes.groupby(["image_id", "object"], sort=True)["confidence"].max().reset_index()
    surest = surest.sort_values("confidence", ascending=False, kind="stable")
    texts: dict[str, list[str]] = {image: [] for image in images}
    for image, name, confidence in surest.itertuples(index=False):
        texts.setdefault(image, []).append(f"{kept_name(name)}:{confidence:.4g}")
    return pd.DataFrame({"image_id": list(texts), "objects": list(map(BETWEEN.join, texts.values()))}, dtype="str")


# outlines


def segments(piece: Piece, wanted: Collection[str] | None = None) -> Part:
    """The outlines in a COCO instances file (SEGMENT_COLUMNS), of all images or of those wanted.

    Annotations without an outline, or with one that is broken or of another size than the image, are counted as
    problems. Raises CapbiasError for another file, or one without a usable outline.
    """
    sheet = piece.sheet
    if sheet.format != "COCO instances" or "segmentation" not in sheet.columns:
        raise CapbiasError(f"{sheet.title} holds no outlines.", "Load COCO instances with a segmentation of each.")
    others = 0

    def read(raw_id: object, category: object, name: str | None, crowd: object, box: object, given: object) -> Any:
        nonlocal others
        image = normalise_image_id(raw_id)
        if wanted is not None and image not in wanted:
            others += 1
            return None
        height, width = sheet.sizes.get(image, (0, 0))
        outline = literal(given) if isinstance(given, str) else given
        if fault := outline_fault(outline, height, width):
            raise ValueError(fault)
        if not height and isinstance(outline, dict):
            height, width = outline["size"]
        around = _on_image(_floats(_corners(box)), height, width)
        text = given if isinstance(given, str) else json.dumps(outline)
        return image, _category(category, name), bool(crowd), height, width, *around, text

    names = ("image_id", "category_id", "category", "iscrowd", "bbox", "segmentation")
    rows, faults = _read_rows(sheet, sheet.values(*names), read)
    return _part(piece, SEGMENTS, pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS)), faults, others=others)


def outline_fault(outline: object, height: int, width: int) -> str:
    """Why an outline cannot be used for an image of this size (0 if unknown), or ''.

    >>> outline_fault([[0, 0, 4, 0, 4, 4]], 10, 10), outline_fault([[0, 0, 90, 0, 4, 4]], 10, 10)
    ('', 'a point of the outline is not on the image of 10 x 10 pixels')
    """
    if isinstance(outline, dict):
        size, runs = outline.get("size"), run_lengths(outline.get("counts"))
        if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int and side > 0 for side in size):
            return "run lengths without their size [height, width]"
        if height and tuple(size) != (height, width):
            return f"an outline of {size[1]} x {size[0]} pixels on an image of {width} x {height}"
        if size[0] * size[1] > MOST_PIXELS:
            return f"an outline of {size[1]} x {size[0]} pixels, more than {MOST_PIXELS // 1_000_000} million"
        if runs is None:
            return "run lengths that are neither whole numbers nor COCO's compressed text"
        pixels = size[0] * size[1]
        return "" if sum(runs) == pixels else f"run lengths for {sum(runs):,} pixels where the outline has {pixels:,}"
    if not isinstance(outline, list) or not outline:
        return f"the outline is {described(outline) if outline else 'missing'}, neither polygons nor run lengths"
    sides, reach = (width, height) if height else (MOST_PIXELS, MOST_PIXELS), OVER_THE_EDGE * max(width, height)
    for polygon in outline:
        if not isinstance(polygon, list) or len(polygon) < 2 * CORNERS or len(polygon) % 2:
            return f"a polygon is not a list of {CORNERS} or more points (x, y)"
        if not set(map(type, polygon)) <= {int, float}:
            return "a polygon holds something else than numbers"
        for values, side in zip((polygon[::2], polygon[1::2]), sides, strict=True):
            if min(values) < -reach or max(values) > side + reach or not math.isfinite(sum(values)):
                size = f"{width} x {height}" if height else "at most 64 million"
                return f"a point of the outline is not on the image of {size} pixels"
    return ""


def run_lengths(counts: object) -> list[int] | None:
    """Run lengths, as numbers or in COCO's compressed text, as whole numbers of 0 or more; None for anything else.

    Compressed, a character from "0" on has six bits: five of a number, lowest first, and one if the number goes on.
    From the fourth number on, it is the difference to the last but one.

    >>> run_lengths("132"), run_lengths([1, 3, 2]), run_lengths("1 3")
    ([1, 3, 2], [1, 3, 2], None)
    """
    runs: list = counts if isinstance(counts, list) else []
    value = shift = 0
    for character in counts if isinstance(counts, str) else "":
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 30:
            return None
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (1 << shift) if bits & 16 else 0
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    if shift or not isinstance(counts, list | str) or not all(type(run) is int and run >= 0 for run in runs):
        return None
    return runs
