"""The shape of a bundle: its manifest, its rows and its tables. All of it is checked before any of it is used."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from pandas.api.types import infer_dtype

from capbias_core.errors import CapbiasError
from capbias_core.typed import shown
from capbias_core.types import BOTH, BOX_COLUMNS, CONDITIONS, RESULT_COLUMNS, SEGMENT_COLUMNS
from capbias_core.workspace.labels import DERIVED
from capbias_core.workspace.spec import ALL_IMAGES, WITH_REFERENCES
from capbias_core.workspace.store import HASH, checked_name

FORMAT = 2
MANIFEST, ROWS = "manifest.json", "rows.json"
# Of these files, which are read and checked piece by piece; a bundle of 40,000 rows is smaller.
MOST_BYTES = {MANIFEST: 4_000_000, ROWS: 32_000_000}
# In the details of items: places on the machine that wrote the bundle, which mean nothing on another.
PLACES = ("path", "folder", "run", "size", "modified")
TEXT = re.compile(r".{0,10000}", re.DOTALL)


def _name(value: Any) -> bool:
    try:
        return isinstance(value, str) and checked_name(value) == value
    except CapbiasError:
        return False


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _number(value: Any) -> bool:
    return type(value) is float and value == value or type(value) is int and abs(value) < 2**53


def _whole(value: Any) -> bool:
    return _number(value) and abs(value) < 2**53 and value == int(value)


def _never(_value: Any) -> bool:
    return False


# A shape is a type, an expression that a text matches, a function that says yes or no, a constant, a tuple of shapes of
# which one fits, a list with the shape of all items, a dict with a shape by key (`key?` may be missing, and others may
# be there), or a dict with the one key `str` and the shape of all values.
REFERENCE = {"name?": TEXT, "item?": HASH, "digest?": HASH, "kind?": TEXT, "delta?": _number}
ATTRIBUTE = dict.fromkeys(("name", "title", "mask_token", "note"), TEXT) | {
    "values": [TEXT],
    "words": {str: [TEXT]},
    "columns": [TEXT],
    "aliases": {str: TEXT},
}
MAPPING = {str: (TEXT, None)}
DETAILS = dict.fromkeys((f"{name}?" for name in PLACES), _never) | {
    "trained_on_references?": (bool, None),
    "captioner?": _name,
    "condition?": CONDITIONS,
    "cut?": [(TEXT, _count)],
    "account?": [[TEXT]],
    "made_by?": {str: REFERENCE},
    "found_by?": TEXT,
    "dimension?": _count,
    "bare?": [TEXT],
    "attributes?": {str: {"column": TEXT, "mapping": MAPPING, "attribute": ATTRIBUTE, "forms?": [[TEXT]]}},
    f"{DERIVED}?": {"references": HASH, "precedence": [TEXT], "at_least?": _count, "both?": BOTH},
}
ITEM = {
    "kind": TEXT,
    "name": _name,
    "file": TEXT,
    "hash": HASH,
    "content": ("", HASH),
    "rows": _count,
    "images": _count,
    "details": DETAILS,
}
# The fields of a RunSpec; its options are checked by its measure.
RUN = {
    "measure": TEXT,
    "version": _count,
    "model": _name,
    "captions": HASH,
    "references": ("", HASH),
    "labels": {"table": HASH, "column": TEXT, "mapping": MAPPING},
    "attribute": ATTRIBUTE,
    "objects": ({"table": HASH, "column": TEXT}, {"table?": _never}),
    "coverage": (ALL_IMAGES, WITH_REFERENCES),
    "shared_with": ("", HASH),
    "options": dict,
}
WHOLE = {"format": FORMAT, "collection": _name, "rows": _count, "versions?": {str: TEXT}}
WHOLE |= {"items": [ITEM], "runs": [RUN]}
ROW = (
    dict.fromkeys(RESULT_COLUMNS, (TEXT, None))
    | dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), (_number, None))
    | dict.fromkeys(("seeds", "training", "n"), (_whole, None))
)

# Kinds of items whose content is a table, with its columns by what they hold: text, bytes or numbers. A table of labels
# has others, of text. Photographs are never in a bundle.
CAPTIONS = {"image_id": "text", "caption": "text", "caption_index": "number"}
TABLES = {
    "captions": CAPTIONS,
    "references": CAPTIONS,
    "attributes": {"image_id": "text"},
    "objects": {"image_id": "text", "objects": "text"},
    "vectors": {"word": "text", "vector": "bytes"},
    "boxes": dict.fromkeys(BOX_COLUMNS, "number") | dict.fromkeys(("image_id", "object"), "text"),
    "segments": dict.fromkeys(SEGMENT_COLUMNS, "number") | dict.fromkeys(("image_id", "object", "outline"), "text"),
}
HELD = {"string": "text", "bytes": "bytes"} | dict.fromkeys(("integer", "floating", "boolean"), "number")


def manifest_fault(manifest: Any, rows: Any) -> str:
    """The first part of a manifest and its rows that is wrong, such as `manifest.items[2].hash`; '' for none."""
    if path := _misfit(manifest, WHOLE, "manifest") or _misfit(rows, [ROW], "rows"):
        return path
    if not rows or len(rows) != manifest["rows"]:
        return "rows"
    names = set()
    for number, item in enumerate(manifest["items"]):
        path, of_table = f"manifest.items[{number}]", bool(item["content"])
        if (item["kind"], item["name"]) in names:
            return f"{path}.name"
        names.add((item["kind"], item["name"]))
        if item["file"] and not of_table or of_table and item["kind"] not in TABLES:
            return f"{path}.kind"
        # Vectors are named by the file that they are an excerpt of, everything else by its content.
        if of_table and item["kind"] != "vectors" and item["hash"] != item["content"]:
            return f"{path}.hash"
        entries = item["details"].get("attributes", {})
        if item["kind"] == "attributes" and not entries or DERIVED in item["details"] and len(entries) != 1:
            return f"{path}.details"
        for name, entry in entries.items():
            if _attribute_fault(entry["attribute"], entry["mapping"]):
                return f"{path}.details.attributes.{name}"
    for number, run in enumerate(manifest["runs"]):
        if run.keys() != RUN.keys() or _attribute_fault(run["attribute"], run["labels"]["mapping"]):
            return f"manifest.runs[{number}]"
    return ""


def _attribute_fault(attribute: dict[str, Any], mapping: dict[str, str | None]) -> bool:
    """Whether an attribute has unknown fields, lacks two values, or words and labels name others."""
    values = attribute["values"]
    held = {*mapping.values(), *attribute["words"], *attribute["aliases"].values()}
    wrong = len(values) < 2 or len({*values}) < len(values) or not held - {None} <= {*values}
    return wrong or attribute.keys() > ATTRIBUTE.keys()


def table_fault(item: dict[str, Any], frame: pd.DataFrame) -> str:
    """The first column of an item's table that is missing or holds something else, such as `column 'age'`; '' for
    none. A column may have no name."""
    wanted = TABLES[item["kind"]]
    others = dict.fromkeys(frame.columns, "text") if item["kind"] == "attributes" else {}
    others |= {entry["column"]: "text" for entry in item["details"].get("attributes", {}).values()}
    for column, held in (others | wanted).items():
        wrong = column not in frame or list(frame.columns).count(column) > 1
        wrong = wrong or bool(len(frame)) and HELD.get(infer_dtype(frame[column], skipna=False)) != held
        if wrong or frame[column].isna().any():
            return f"column {shown(column)}"
    return ""


def _misfit(value: Any, shape: Any, path: str) -> str:
    """The path of the first part of a value that is not of a shape; '' if all are. path: of the value."""
    parts = []  # value, shape and path
    if isinstance(shape, dict | list) and type(value) is not type(shape):
        return path
    if isinstance(shape, list):
        parts = [(part, shape[0], f"{path}[{number}]") for number, part in enumerate(value)]
    elif isinstance(shape, dict) and str in shape and isinstance(value, dict):
        parts = [(part, shape[str], f"{path}.{key}") for key, part in value.items()]
    elif isinstance(shape, dict):
        for key, part in shape.items():
            name = key.removesuffix("?")
            if name in value:
                parts.append((value[name], part, f"{path}.{name}"))
            elif key == name:
                return f"{path}.{name}"
    elif isinstance(shape, tuple):
        return "" if any(not _misfit(value, alternative, "x") for alternative in shape) else path
    elif isinstance(shape, re.Pattern):
        return "" if isinstance(value, str) and shape.fullmatch(value) else path
    elif isinstance(shape, type):
        return "" if type(value) is shape else path
    elif callable(shape):
        return "" if shape(value) else path
    else:
        return "" if type(value) is type(shape) and value == shape else path
    return next((fault for part in parts if (fault := _misfit(*part))), "")
