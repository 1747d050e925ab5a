"""From raw rows to a table of attribute labels."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import UNSTORABLE, described, normalise_image_id, short
from capbias_core.load.parsed import Parsed
from capbias_core.load.rows import RowErrors, chosen_column, guess_columns, listed, merged, nothing_usable
from capbias_core.types import Table


def labels(parsed: Parsed, columns: Mapping[str, str] = {}, several: str = "") -> Table:
    """The labels of a file: one row per image, every other column as text ('' if empty).

    An image that comes again with the same labels is counted; with other labels it is a problem, and the first stays.
    Raises CapbiasError for a file without image IDs, labels or a usable row.
    """
    names = tuple(parsed.columns)
    given = columns.get("image_id")
    image_id = chosen_column(parsed.file, names, given) if given else guess_columns(names)["image_id"]
    labelled = [name for name in names if name != image_id]
    if image_id is None or not labelled:
        raise CapbiasError(
            f"{parsed.file} has the columns {listed(names)}, but labels need a column of image IDs and one of labels.",
            "Choose the column of image IDs: on the Data page, or with --image-id-column.",
        )
    faults, duplicates = RowErrors(parsed.file, parsed.faults.unit), 0
    images: dict[str, tuple[str, ...]] = {}
    raw_columns = [parsed.columns[name] for name in (image_id, *labelled)]
    for number, raw_id, *raw in zip(parsed.numbers, *raw_columns, strict=True):
        try:
            image, row = normalise_image_id(raw_id), tuple(map(label_text, raw))
        except ValueError as error:
            faults.add(number, str(error))
            continue
        known = images.setdefault(image, row)
        if known is row:
            continue
        if known == row:
            duplicates += 1
        else:
            faults.add(number, _conflict(image, labelled, known, row))
    problems, count = merged(parsed.faults, faults)
    if not images:
        raise nothing_usable(parsed.file, parsed.rows, problems)
    kept = ["image_id", *(f"{name} (in the file)" if name == "image_id" else name for name in labelled)]
    frame = pd.DataFrame([(image, *row) for image, row in images.items()], columns=kept, dtype="str")
    return Table(frame, parsed.rows, duplicates=duplicates, problems=problems, problem_count=count, notes=parsed.notes)


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
