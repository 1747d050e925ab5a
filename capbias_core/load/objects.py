"""Which objects images show: from COCO instances or a table, to one row an image."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.coco import instances_of
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.labels import label_text
from capbias_core.load.rows import RowErrors, Rows, chosen_column, guess_columns, listed, merged, nothing_usable
from capbias_core.types import Table

USUAL_COLUMNS = ("objects", "object", "categories", "category")
BETWEEN = "|"
# How sure a detector is of an object, behind its name: `cat:0.93`.
SURE = r":(?:0(?:\.\d*)?|1(?:\.0*)?|\.\d+)$"


def read_instances(path: Path) -> Table:
    """The objects of a COCO instances file. Raises CapbiasError for another file, or one that names no object.

    An image has an object once, however often it shows it; a crowd (iscrowd) of an object counts as one, and is
    counted. Images without an annotation are kept, without objects. Annotations that cannot be read are faults.
    """
    content = instances_of(path)
    records, names = content["annotations"], category_names(path, content["categories"])
    faults = RowErrors(path.name, "record")
    images = {image: set() for image in _image_ids(content.get("images"))}
    crowds = 0
    for number, record in enumerate(records, start=1):
        try:
            image, name = normalise_image_id(record["image_id"]), names[record["category_id"]]
        except (ValueError, KeyError, TypeError) as error:
            faults.add(number, annotation_fault(record, error))
            continue
        images.setdefault(image, set()).add(name)
        crowds += bool(record.get("iscrowd"))
    return _object_table(images, path.name, len(records), crowds, faults)


def category_names(path: Path, categories: object) -> dict:
    """Category id -> name as it is kept. Raises CapbiasError where no category is usable."""
    names = {}
    for record in categories if isinstance(categories, list) else ():
        given = record.get("name") if isinstance(record, dict) else None
        if not isinstance(given, str) or UNSTORABLE.search(given):
            continue
        if isinstance(record.get("id"), (int, str)) and (name := kept_name(given)):
            names[record["id"]] = name
    if not names:
        raise CapbiasError(
            f"{path.name} without categories",
            'categories such as {"id": 17, "name": "cat"}',
            "Load the file as COCO has it, with images, annotations and categories.",
        )
    return names


def _image_ids(images: object) -> Iterable[str]:
    """Ids of the images that a file lists; what cannot be read has no annotation to lose."""
    for record in images if isinstance(images, list) else ():
        try:
            yield normalise_image_id(record["id"])
        except (ValueError, KeyError, TypeError):
            continue


def annotation_fault(record: object, error: Exception) -> str:
    """What is wrong with an annotation of a COCO instances file, by the error that reading it gave."""
    if not isinstance(record, dict):
        return f"{described(record)} where an object is expected"
    if isinstance(error, ValueError):
        return str(error)
    if "image_id" not in record:
        return "there is no image_id"
    category = record.get("category_id")
    shown = category if isinstance(category, (int, str)) else described(category)
    return f"the category {short(str(shown))} is not among the categories of the file"


def object_rows(rows: Rows, file: str) -> Table:
    """The objects of rows with two columns, image ids and text such as `cat|dog`; rows of one image are put together.

    Raises CapbiasError where no row is usable, or none names an object.
    """
    faults = RowErrors(file, rows.faults.unit)
    images: dict[str, set[str]] = {}
    for number, raw_id, raw in zip(rows.numbers, *rows.values.values(), strict=True):
        try:
            image, text = normalise_image_id(raw_id), label_text(raw)
        except ValueError as error:
            faults.add(number, str(error))
            continue
        images.setdefault(image, set()).update(filter(None, map(kept_name, text.split(BETWEEN))))
    return _object_table(images, file, rows.total, 0, rows.faults, faults)


def choose_objects(names: tuple[str, ...], file: str, id_column: str | None) -> tuple[str, ...]:
    """The column of image ids and that of objects."""
    image_id = chosen_column(file, names, id_column) if id_column else guess_columns(names)["image_id"]
    by_lower = {name.strip().lower(): name for name in names}
    objects = next((by_lower[name] for name in USUAL_COLUMNS if name in by_lower), None)
    if image_id is None or objects is None or image_id == objects:
        raise CapbiasError(
            f"{file} with the columns {listed(names)}",
            "a column image_id, and a column objects with text such as cat|dog",
            "Rename the columns, or load COCO's instances JSON.",
        )
    return image_id, objects


def kept_name(name: str) -> str:
    """A name of an object as it is kept: lower case, single spaces, without what stands between names."""
    return " ".join(name.replace(BETWEEN, " ").lower().split())


def _object_table(images: dict[str, set[str]], file: str, rows: int, crowds: int, *faults: RowErrors) -> Table:
    problems, count = merged(*faults)
    if not images:
        raise nothing_usable(file, rows, problems)
    if not any(images.values()):
        raise CapbiasError(
            f"{file}, in which none of {len(images):,} images has an object",
            "names of objects, such as cat|dog, for some images",
            "Check the file, and its column of objects.",
        )
    frame = pd.DataFrame({"image_id": list(images), "objects": list(map(_joined, images.values()))}, dtype="str")
    return Table(frame, rows, crowds=crowds, problems=problems, problem_count=count)


def _joined(names: Iterable[str]) -> str:
    return BETWEEN.join(sorted(names))
