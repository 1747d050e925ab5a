"""From a name on the command line to an attribute and what each label of its column means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.attributes import get_attribute, holds_labels, known_attributes, plain_attribute, suggest_mapping
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.report import MOST_LABELS
from capbias_core.present.table import counted
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import dropped_labels
from capbias_core.workspace.labels import find_attribute, mapping_details

SHOWN_DROPPED = 10


def mapped(
    frame: pd.DataFrame,
    name: str,
    column: str = "",
    values: Sequence[str] | None = None,
    overrides=None,
    folder: Path | None = None,
) -> tuple[str, dict]:
    """The name of the attribute meant, and its mapping as it is kept with the table.

    column: its column, or '' to find it. values: the labels to compare, where the name is a column's.
    overrides: attribute -> {raw label: value or None}, in place of what is suggested. folder: attributes of the
    user's own.
    """
    raw = {item: dict.fromkeys(frame[item]) for item in frame.columns if item != "image_id"}
    if column and column not in raw:
        raise unknown_name("column", column, raw)
    attribute, column = find_attribute(name, list(raw), raw, column, folder)
    if not (name in known_attributes(folder) or name.endswith(".toml")):
        attribute = _of_labels(name, column, tuple(dict.fromkeys(values or attribute.values)))
    elif values:
        raise CapbiasError(f"--values with {name}", "--values with a column of labels", "Leave --values out.")
    own = (overrides or {}).get(attribute.name, {})
    _check_overrides(own, attribute, column, raw[column])
    return attribute.name, mapping_details(attribute, column, suggest_mapping(attribute, raw[column]) | own)


def derivable(name: str, folder: Path | None = None) -> Attribute | None:
    """The attribute of this name, where its labels can be derived from human captions."""
    known = name in known_attributes(folder) or name.endswith(".toml")
    attribute = get_attribute(name, folder) if known else None
    return attribute if attribute and attribute.derived else None


def holds(frame: pd.DataFrame, attribute: Attribute) -> bool:
    """Whether a table has a column with labels of the attribute."""
    return any(holds_labels(attribute, column, frame[column].unique()) for column in frame.columns)


def _of_labels(name: str, column: str, values: tuple[str, ...]) -> Attribute:
    """An attribute that is labels of a column. No column of free text is taken for one."""
    if not 2 <= len(values) <= MOST_LABELS:
        raise CapbiasError(
            f"{counted(len(values), 'label')} of the column {column} to compare",
            f"2 to {MOST_LABELS}",
            "Choose them with --values." if len(values) > 1 else "Name another column, or more of its labels.",
        )
    return plain_attribute(name, values)


def _check_overrides(own: dict[str, str | None], attribute: Attribute, column: str, labels) -> None:
    for raw, value in own.items():
        if value is not None and value not in attribute.values:
            raise unknown_name(f"value of {attribute.name}", value, attribute.values)
        if raw not in labels:
            raise CapbiasError(
                f"--map with the label {raw!r}", f"a label of the column {column}", "Check the spelling."
            )


def compared_lines(frame: pd.DataFrame, details: dict, folder: Path | None = None) -> list[str]:
    """Which labels of a column are compared, and the attribute that usually reads such a column; none of an attribute
    that is known by name."""
    name, column = details["attribute"]["name"], details["column"]
    known = known_attributes(folder)
    if name in known:
        return []
    counts = frame[column].value_counts()
    values = [value for value in details["attribute"]["values"] if value in counts]
    shown = ", ".join(f"{value} {counts[value]:,}" for value in values)
    usual = [own for own in known.values() if column.lower() in own.columns and holds_labels(own, column, counts.index)]
    hints = [f"{own.name} ({', '.join(own.values)}) reads the column {column}: --attribute {own.name}" for own in usual]
    return [
        f"compared: {shown} (labels of the column {column}; --values chooses)",
        *(f"hint: {hint}" for hint in hints),
    ]


def dropped_line(frame: pd.DataFrame, details: dict) -> str:
    """`dropped: Both 813, Unsure 3,410, empty 759`"""
    dropped = sorted(dropped_labels(frame, details).items(), key=lambda pair: (not pair[0], pair[0]))
    shown = ", ".join(f"{label or 'empty'} {count:,}" for label, count in dropped[:SHOWN_DROPPED])
    more = len(dropped) - SHOWN_DROPPED
    return f"dropped: {shown or 'no label'}" + (f" and {more:,} more labels" if more > 0 else "")
