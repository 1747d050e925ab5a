"""From raw rows to a table of attribute labels."""

from __future__ import annotations

import math

import pandas as pd

from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.rows import RowErrors, Rows, merged, nothing_usable
from capbias_core.types import Table


def attribute_table(rows: Rows, file: str) -> Table:
    """Labels of rows whose first column holds image ids. Raises CapbiasError where no row is usable.

    An image that comes again with the same labels is counted; with other labels it is a problem, and the first stays.
    """
    faults = RowErrors(file, rows.faults.unit)
    names = list(rows.values)[1:]
    images, duplicates = _by_image(rows, names, faults)
    problems, count = merged(rows.faults, faults)
    if not images:
        raise nothing_usable(file, rows.total, problems)
    columns = ["image_id", *(f"{name} (in the file)" if name == "image_id" else name for name in names)]
    frame = pd.DataFrame([(image, *labels) for image, labels in images.items()], columns=columns, dtype="str")
    return Table(frame, rows.total, duplicates=duplicates, problems=problems, problem_count=count)


def _by_image(rows: Rows, names: list[str], faults: RowErrors) -> tuple[dict[str, tuple[str, ...]], int]:
    """The labels of each image in file order, and how many rows repeat an image with the same labels."""
    images: dict[str, tuple[str, ...]] = {}
    duplicates = 0
    for number, raw_id, *raw in zip(rows.numbers, *rows.values.values(), strict=True):
        try:
            image, labels = normalise_image_id(raw_id), tuple(map(label_text, raw))
        except ValueError as error:
            faults.add(number, str(error))
            continue
        known = images.setdefault(image, labels)
        if known is labels:
            continue
        if known == labels:
            duplicates += 1
        else:
            faults.add(number, _conflict(image, names, known, labels))
    return images, duplicates


def _conflict(image: str, names: list[str], known: tuple[str, ...], labels: tuple[str, ...]) -> str:
    name, before, now = next(each for each in zip(names, known, labels, strict=True) if each[1] != each[2])
    change = f"{short(name)} {short(now)!r}, before {short(before)!r}"
    return f"image {short(image)} comes again with {change}; the first is kept"


def label_text(value: object) -> str:
    """A raw label as stripped text: '' where empty, lists joined with `|`, objects and bytes only named.

    ValueError for text that cannot be kept.

    >>> [label_text(value) for value in (" Male ", 3, None, ["person", "dog"], {"a": 1}, [[1], "x"])]
    ['Male', '3', '', 'person|dog', '(an object)', '(a list)|x']
    """
    if isinstance(value, (list, tuple)):
        return "|".join(map(_scalar_text, value))
    return _scalar_text(value)


def _scalar_text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (list, tuple, dict, bytes)):
        return f"({described(value)})"
    text = str(value).strip()
    if UNSTORABLE.search(text):
        raise ValueError("a label holds a NUL character or half a surrogate pair")
    return text


RULES = {
    "both": "no label if its rows differ",
    "majority": "the label of most rows",
    "first": "the label of its first row",
}


def labels(parsed, columns=None, several=""):
    """TEMPORARY until the labels branch lands."""
    from capbias_core.load.rows import Rows, choose_labels

    chosen = choose_labels(tuple(parsed.columns), parsed.file, (columns or {}).get("image_id"))
    rows = Rows(
        {name: parsed.columns[name] for name in chosen}, parsed.numbers, parsed.rows, parsed.faults, parsed.notes
    )
    return attribute_table(rows, parsed.file)
