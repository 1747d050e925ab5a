"""The shape of what a workspace or a bundle stores: items and their tables. A stranger may have written it, so it is
checked before it is used. spec.py has the shape of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired

import pandas as pd
from pandas.api.types import infer_dtype
from pydantic import AfterValidator, with_config
from typing_extensions import TypedDict

from capbias_core.errors import CapbiasError
from capbias_core.kinds import (
    BOXES,
    CAPTIONS,
    LABELS,
    OBJECTS,
    PHOTOGRAPHS,
    REFERENCES,
    SEGMENTS,
    VECTORS,
    checked_name,
)
from capbias_core.typed import shown
from capbias_core.types import BOTH, BOX_COLUMNS, CONDITIONS, SEGMENT_COLUMNS
from capbias_core.workspace.spec import (
    OPEN,
    ContentHash,
    Count,
    ModelReference,
    PhotographsReference,
    StoredAttribute,
    Text,
    maps_to_values,
)


def that(holds: Callable[[Any], object]) -> AfterValidator:
    """Refuses a value of which this does not hold."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError("not allowed")
        return value

    return AfterValidator(check)


def _is_name(value: str) -> bool:
    try:
        return checked_name(value) == value
    except CapbiasError:
        return False


Name = Annotated[str, that(_is_name)]


class _Entry(TypedDict):
    column: Text
    mapping: dict[str, Text | None]
    attribute: StoredAttribute
    forms: NotRequired[list[list[Text]]]


# An attribute that a table of labels has, as `mapping_details` gives it.
LabelEntry = Annotated[_Entry, that(lambda entry: maps_to_values(entry["attribute"], entry["mapping"]))]


class DerivedFrom(TypedDict):
    """How labels were derived from human captions."""

    references: ContentHash
    precedence: list[Text]
    at_least: NotRequired[Count]
    both: NotRequired[Annotated[str, that(BOTH.__contains__)]]


class MadeBy(TypedDict):
    """What made captions."""

    captioner: ModelReference
    photographs: PhotographsReference


@with_config(OPEN)
class Details(TypedDict, total=False):
    """What is known of an item, by kind; it may hold more."""

    path: Text
    folder: Text
    run: Text
    dimension: Count
    found: Count
    twins: Count
    trained_on_references: bool | None
    captioner: Name
    condition: Annotated[str, that(CONDITIONS.__contains__)]
    account: list[list[Text]]
    warnings: list[Text]
    made_by: MadeBy
    found_by: Text
    bare: list[Text]
    attributes: dict[str, LabelEntry]
    derived: DerivedFrom


# Places on the machine that wrote a bundle, which mean nothing on another.
PLACES = ("path", "folder", "run")
NEEDED = {LABELS: "attributes", PHOTOGRAPHS: "folder", VECTORS: "dimension"}

# Kinds of items whose content is a table, with its columns by what they hold: text, bytes or numbers. A table of labels
# has others, of text. Photographs are never in a bundle.
_CAPTIONS = {"image_id": "text", "caption": "text", "caption_index": "number"}
TABLES = {
    CAPTIONS: _CAPTIONS,
    REFERENCES: _CAPTIONS,
    LABELS: {"image_id": "text"},
    OBJECTS: {"image_id": "text", "objects": "text"},
    VECTORS: {"word": "text", "vector": "bytes"},
    BOXES: dict.fromkeys(BOX_COLUMNS, "number") | dict.fromkeys(("image_id", "object"), "text"),
    SEGMENTS: dict.fromkeys(SEGMENT_COLUMNS, "number") | dict.fromkeys(("image_id", "object", "outline"), "text"),
}
HELD = {"string": "text", "bytes": "bytes"} | dict.fromkeys(("integer", "floating", "boolean"), "number")


def table_fault(kind: str, details: Mapping[str, Any], frame: pd.DataFrame) -> str:
    """The first column of an item's table that is missing or holds something else, such as `column 'age'`; '' for
    none. A column may have no name."""
    wanted = TABLES[kind]
    others = dict.fromkeys(frame.columns, "text") if kind == LABELS else {}
    others |= {entry["column"]: "text" for entry in details.get("attributes", {}).values()}
    for column, held in (others | wanted).items():
        wrong = column not in frame or list(frame.columns).count(column) > 1
        wrong = wrong or bool(len(frame)) and HELD.get(infer_dtype(frame[column], skipna=False)) != held
        if wrong or frame[column].isna().any():
            return f"column {shown(column)}"
    return ""
