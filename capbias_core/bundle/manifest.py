"""The shape of a bundle: its manifest, its rows and its tables. All of it is checked before any of it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Annotated, Any

import pandas as pd
from pandas.api.types import infer_dtype
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from capbias_core.errors import CapbiasError
from capbias_core.typed import shown
from capbias_core.types import BOTH, BOX_COLUMNS, CONDITIONS, RESULT_COLUMNS, SEGMENT_COLUMNS
from capbias_core.workspace.spec import ALL_IMAGES, HASH, WITH_REFERENCES, ContentHash
from capbias_core.workspace.store import checked_name

FORMAT = 2
MANIFEST, ROWS = "manifest.json", "rows.json"
# Of these files, which are read and checked piece by piece; a bundle of 40,000 rows is smaller.
MOST_BYTES = {MANIFEST: 4_000_000, ROWS: 32_000_000}
# In the details of items: places on the machine that wrote the bundle, which mean nothing on another.
PLACES = ("path", "folder", "run", "size", "modified")


def _check(holds: Callable[[Any], bool]) -> AfterValidator:
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


Text = Annotated[str, StringConstraints(max_length=10_000)]
Name = Annotated[str, _check(_is_name)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Whole = Annotated[float, _check(lambda value: abs(value) < 2**53 and value == int(value))]
HashOrNone = Annotated[str, StringConstraints(pattern=f"^(?:|{HASH.pattern})$")]
Mapped = dict[str, Text | None]
CONFIG = ConfigDict(strict=True, allow_inf_nan=False)


class Shape(BaseModel):
    """What is read of a part of a bundle; it may hold more."""

    model_config = CONFIG | {"extra": "allow"}


class Exact(BaseModel):
    """A part of a bundle that holds nothing else."""

    model_config = CONFIG | {"extra": "forbid"}


class AttributeEntry(Exact):
    name: Text
    title: Text
    mask_token: Text
    note: Text
    values: Annotated[list[Text], Field(min_length=2), _check(lambda values: len({*values}) == len(values))]
    words: dict[str, list[Text]]
    columns: list[Text]
    aliases: dict[str, Text]

    @model_validator(mode="after")
    def names_its_values(self) -> AttributeEntry:
        return _of_values(self, self.words, self.aliases)


def _of_values(attribute: AttributeEntry, *named: Mapping[str, Any]) -> AttributeEntry:
    """Refuses words, aliases or a mapping of values the attribute lacks. named: words by value, mappings to one."""
    words, *mappings = named
    if not {*words, *(value for mapping in mappings for value in mapping.values())} - {None} <= {*attribute.values}:
        raise ValueError("other values")
    return attribute


class Reference(Shape):
    name: Text = ""
    item: ContentHash = ""
    digest: ContentHash = ""
    kind: Text = ""
    delta: float = 0.0


class LabelEntry(Shape):
    column: Text
    mapping: Mapped
    attribute: AttributeEntry
    forms: list[list[Text]] = []

    @model_validator(mode="after")
    def maps_to_values(self) -> LabelEntry:
        _of_values(self.attribute, {}, self.mapping)
        return self


class Derived(Shape):
    references: ContentHash
    precedence: list[Text]
    at_least: Count = 1
    both: Annotated[str, _check(BOTH.__contains__)] = ""


class Details(Shape):
    trained_on_references: bool | None = None
    captioner: Name = ""
    condition: Annotated[str, _check(CONDITIONS.__contains__)] = ""
    cut: list[Text | Count] = []
    account: list[list[Text]] = []
    made_by: dict[str, Reference] = {}
    found_by: Text = ""
    dimension: Count = 0
    bare: list[Text] = []
    attributes: dict[str, LabelEntry] = {}
    derived: Derived | None = None

    @model_validator(mode="before")
    @classmethod
    def names_no_place(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() & set(PLACES):
            raise ValueError("a place")
        return value


class ItemEntry(Shape):
    kind: Text
    name: Name
    file: Text
    hash: ContentHash
    content: HashOrNone
    rows: Count
    images: Count
    details: Details

    @model_validator(mode="after")
    def fits_its_kind(self) -> ItemEntry:
        of_table = bool(self.content)
        if (self.file and not of_table) or (of_table and self.kind not in TABLES):
            raise ValueError("kind")
        # Vectors are named by the file that they are an excerpt of, everything else by its content.
        if of_table and self.kind != "vectors" and self.hash != self.content:
            raise ValueError("hash")
        entries = self.details.attributes
        if (self.kind == "labels" and not entries) or (self.details.derived and len(entries) != 1):
            raise ValueError("details")
        return self


class LabelsEntry(Shape):
    table: ContentHash
    column: Text
    mapping: Mapped


class RunEntry(Exact):
    """The fields of a RunSpec; its options are checked by its measure."""

    measure: Text
    version: Count
    model: Name
    captions: ContentHash
    references: HashOrNone
    labels: LabelsEntry
    attribute: AttributeEntry
    objects: dict[str, Text]
    coverage: Annotated[str, _check((ALL_IMAGES, WITH_REFERENCES).__contains__)]
    shared_with: HashOrNone
    options: dict[str, Any]

    @model_validator(mode="after")
    def reads_what_it_names(self) -> RunEntry:
        _of_values(self.attribute, {}, self.labels.mapping)
        if "table" in self.objects and not (HASH.fullmatch(self.objects["table"]) and "column" in self.objects):
            raise ValueError("objects")
        return self


class Manifest(Shape):
    format: Annotated[int, _check(lambda value: value == FORMAT)]
    collection: Name
    rows: Annotated[Count, Field(gt=0)]
    items: Annotated[
        list[ItemEntry], _check(lambda items: len({(item.kind, item.name) for item in items}) == len(items))
    ]
    runs: list[RunEntry]
    versions: dict[str, Text] = {}


_of_column: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS, (Text | None, ...))
_of_column |= dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), (float | None, ...))
_of_column |= dict.fromkeys(("seeds", "training", "n"), (Whole | None, ...))
_rows: Any = GenericAlias(list, create_model("Row", __base__=Shape, **_of_column))
Rows = TypeAdapter(_rows)


# Kinds of items whose content is a table, with its columns by what they hold: text, bytes or numbers. A table of labels
# has others, of text. Photographs are never in a bundle.
CAPTIONS = {"image_id": "text", "caption": "text", "caption_index": "number"}
TABLES = {
    "captions": CAPTIONS,
    "references": CAPTIONS,
    "labels": {"image_id": "text"},
    "objects": {"image_id": "text", "objects": "text"},
    "vectors": {"word": "text", "vector": "bytes"},
    "boxes": dict.fromkeys(BOX_COLUMNS, "number") | dict.fromkeys(("image_id", "object"), "text"),
    "segments": dict.fromkeys(SEGMENT_COLUMNS, "number") | dict.fromkeys(("image_id", "object", "outline"), "text"),
}
HELD = {"string": "text", "bytes": "bytes"} | dict.fromkeys(("integer", "floating", "boolean"), "number")


def manifest_fault(manifest: Any, rows: Any) -> str:
    """The first part of a manifest and its rows that is wrong, such as `manifest.items[2].hash`; '' for none."""
    for name, check, value in (("manifest", Manifest.model_validate, manifest), ("rows", Rows.validate_python, rows)):
        try:
            check(value)
        except ValidationError as error:
            place = error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]
            return name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        except OverflowError:
            return name
    return "" if len(rows) == manifest["rows"] else "rows"


def table_fault(item: dict[str, Any], frame: pd.DataFrame) -> str:
    """The first column of an item's table that is missing or holds something else, such as `column 'age'`; '' for
    none. A column may have no name."""
    wanted = TABLES[item["kind"]]
    others = dict.fromkeys(frame.columns, "text") if item["kind"] == "labels" else {}
    others |= {entry["column"]: "text" for entry in item["details"].get("attributes", {}).values()}
    for column, held in (others | wanted).items():
        wrong = column not in frame or list(frame.columns).count(column) > 1
        wrong = wrong or bool(len(frame)) and HELD.get(infer_dtype(frame[column], skipna=False)) != held
        if wrong or frame[column].isna().any():
            return f"column {shown(column)}"
    return ""
