"""Shapes of JSON, each a row of a table: how it is recognised, its rows, and what its parts mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from capbias_core.errors import CapbiasError, short
from capbias_core.load.ids import described, normalise_image_id
from capbias_core.load.photographs import MOST_PIXELS
from capbias_core.load.sheet import Sheet, columns_of, flat_frame, frame_of, listed, mapped, usual_column

RECORDS = 'Write records with names, such as {"image_id": 785, "caption": "a woman on skis"}.'


def _dicts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and any(isinstance(row, dict) for row in value)


def all_texts(values: Any) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def _annotated(key: str) -> Callable[[dict], bool]:
    """Whether an object has images, and annotations with a key."""

    def fits(value: dict) -> bool:
        rows = value.get("annotations") or []
        return "images" in value and _dicts(rows) and any(key in row for row in rows[:50] if isinstance(row, dict))

    return fits


def _coco(value: dict) -> pd.DataFrame:
    """Annotations with the file names of their images, and the names of categories."""
    frame = frame_of([row for row in value["annotations"] if isinstance(row, dict)])
    if "caption" in frame:
        frame = frame.drop(columns="id", errors="ignore")
    categories = [each for each in value.get("categories") or () if isinstance(each, dict)]
    if categories and "category_id" in frame:
        names = {str(each.get("name")): each.get("name") for each in categories}
        names |= {str(each.get("id")): each.get("name") for each in categories}
        frame["category"] = mapped(frame["category_id"], lambda key: names.get(str(key)))
    files = {str(row.get("id")): row.get("file_name") for row in value["images"] or () if isinstance(row, dict)}
    if "image_id" in frame and any(files.values()):
        frame["images.file_name"] = mapped(frame["image_id"], lambda image: files.get(str(image)))
    return frame.astype(object)


def _karpathy(value: dict) -> pd.DataFrame:
    rows = []
    for image in value["images"]:
        others = {key: cell for key, cell in image.items() if key not in ("sentences", "sentids")}
        rows.append(others | {"raw": [sentence["raw"] for sentence in image["sentences"]]})
    return frame_of(rows)


IMAGES = "image_id image_ids images ids id img_id image file_name file_names filename filenames"
TEXTS = "caption captions preds pred prediction predictions hypotheses text texts refs references gts"
LIST_NAMES = f"{IMAGES} {TEXTS} label labels gender"


def _lists(value: dict) -> dict[str, list]:
    """Lists of equal length under an object's keys."""
    lists = {str(key): cells for key, cells in value.items() if isinstance(cells, list) and cells and not _dicts(cells)}
    same = len(lists) > 1 and len({len(cells) for cells in lists.values()}) == 1
    # {"Female": [1, 2], "Male": [3, 4]} are images by label
    return lists if same and usual_column(lists, LIST_NAMES) else {}


def _is_by_column(value: dict) -> bool:
    inner = list(value.values())
    same = all(isinstance(column, dict) and column.keys() == inner[0].keys() for column in inner)
    return same and len(value) < len(inner[0]) and not any(isinstance(cell, dict) for cell in inner[0].values())


def _by_column(value: dict) -> pd.DataFrame:
    """Columns as objects by row: pandas' orient `columns`, or {column: {image: value}}."""
    return _objects({key: {name: column[key] for name, column in value.items()} for key in next(iter(value.values()))})


def _is_captions(value: dict) -> bool:
    return all_texts(value.values()) and sum(" " in text for text in value.values()) > len(value) / 2


def _is_labels(value: dict) -> bool:
    labels = list(value.values())
    few = len(labels) > 1 and all(isinstance(label, str | int) for label in labels)
    return few and len(set(labels)) <= max(2, len(labels) / 5)


def _is_texts(value: dict) -> bool:
    cells = [[cell] if isinstance(cell, str) else cell for cell in value.values()]
    if all(cell and all(map(is_pair, cell)) for cell in cells):  # candidates
        return True
    texts = all(isinstance(cell, list) and all_texts(cell) for cell in cells)
    return texts and any(" " in text for cell in cells for text in cell)


def is_pair(part: Any) -> bool:
    return isinstance(part, list) and len(part) == 2 and isinstance(part[0], str) and isinstance(part[1], int | float)


def _is_objects(value: dict) -> bool:
    rows = list(value.values())
    objects = len(rows) > 1 and all(isinstance(row, dict) and not _dicts(list(row.values())) for row in rows)
    return objects and len({key for row in rows for key in row}) < len(rows) * 2 + 20


def _objects(value: dict) -> pd.DataFrame:
    """Objects by image; keys that only number the rows are no column."""
    numbered = list(value) == list(map(str, range(len(value))))
    named = usual_column(next(iter(value.values())), "image_id image img_id file_name filename image_path")
    return flat_frame(
        [({} if numbered and named else {"image_id" if not named else "key": key}) | row for key, row in value.items()]
    )


def _keyed(name: str) -> Callable[[dict], pd.DataFrame]:
    return lambda value: columns_of({"image_id": list(value), name: list(value.values())})


class Shape(NamedTuple):
    """A shape of a JSON object. roles: of its columns, if the shape says them."""

    name: str
    fits: Callable[[dict], Any]
    rows: Callable[[dict], pd.DataFrame]
    roles: Mapping[str, Any] = {}


# Specific before general.
# fmt: off
SHAPES = (
    Shape("COCO captions", _annotated("caption"), _coco, {"reference": ["caption"], "image": "image_id"}),
    Shape("COCO instances", _annotated("category_id"), _coco, {"objects": True, "image": "image_id"}),
    Shape("Karpathy's data set", lambda value: _dicts(value["images"]) and "sentences" in value["images"][0],
          _karpathy, {"reference": ["raw"]}),
    Shape("lists of equal length", _lists, lambda value: columns_of(_lists(value))),
    Shape("columns by row", _is_by_column, _by_column),
    Shape("captions by image", _is_captions, _keyed("caption"), {"caption": ["caption"], "image": "image_id"}),
    Shape("labels by image", _is_labels, _keyed("label"), {"label": ["label"], "image": "image_id"}),
    Shape("several texts by image", _is_texts, _keyed("captions")),
    Shape("rows by image", lambda value: all(_dicts(rows) for rows in value.values()) and len(value) != 1,
          lambda value: flat_frame([{"image_id": key, **row} for key, rows in value.items() for row in rows])),
    Shape("an object by image", _is_objects, _objects),
)
# fmt: on


def sheet_of(title: str, value: Any) -> Sheet:
    """The table in a value of JSON. Raises CapbiasError without rows."""
    if _dicts(value):
        return Sheet(title, flat_frame(value), "records")
    if isinstance(value, dict) and value:
        if usual_column(value, "image_id image file_name") and not any(
            isinstance(cell, dict | list) for cell in value.values()
        ):
            return Sheet(title, flat_frame([value]), "records")
        for shape in SHAPES:
            with suppress(KeyError, TypeError, AttributeError, IndexError):
                if shape.fits(value) and len(frame := shape.rows(value)):
                    sizes = _sizes(value["images"]) if "annotations" in value else {}
                    return Sheet(title, frame, shape.name, shape.roles, sizes=sizes)
        inside = _under(value)
        if len(inside) > 1:  # rather rows that name images
            inside = [key for key in inside if _dicts(value[key]) and usual_column(value[key][0], IMAGES)] or inside
        if len(inside) == 1:
            return sheet_of(title, value[inside[0]])
        if inside:
            raise CapbiasError(f"{title} holds rows under {listed(inside)}.", "Write those to read into a file.")
    what = "an empty list" if value == [] else described(value)
    if isinstance(value, dict) and value:
        what = f"an object with the keys {listed(value)}"
    if isinstance(value, list) and value:
        kinds = {list: "lists without names of columns or images", str: "texts without image IDs"}
        what = f"{len(value):,} {kinds.get(type(value[0]), 'values')}, such as {short(value[0])}"
    raise CapbiasError(f"{title} holds {what}, in which no table is found.", RECORDS)


def _under(value: dict) -> list[str]:
    """Keys under which there are rows."""

    def fits(inner: Any) -> bool:
        if not isinstance(inner, dict) or not inner:
            return _dicts(inner)
        numbered = all(re.search(r"\d", str(key)) for key in inner) and _is_captions(inner)
        return len(inner) > 12 or numbered or bool(_under(inner) or _lists(inner))

    return [key for key, inner in value.items() if fits(inner)] if len(value) <= 40 else []


def _sizes(images: list) -> dict[str, tuple[int, int]]:
    """Image ID -> (height, width) of the images that COCO lists, (0, 0) if unknown."""
    sizes: dict[str, tuple[int, int]] = {}
    for record in images:
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            image = normalise_image_id(record["id"])
            sizes[image] = (0, 0)
            height, width = int(record["height"]), int(record["width"])
            if min(height, width) > 0 and height * width <= MOST_PIXELS:
                sizes[image] = (height, width)
    return sizes
