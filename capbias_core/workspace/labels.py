"""Labels of images: a protected attribute beside the column and mapping that give its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from capbias_core.attributes import (
    columns_by_labels,
    holds_labels,
    known_attributes,
    plain_attribute,
    read_attribute,
    suggest_mapping,
    values_among,
)
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.report import MOST_LABELS
from capbias_core.types import Attribute
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import Item, Workspace, content_hash

SHOWN_DROPPED = 10
DERIVED = "derived"  # the key in the details of labels that were made from human captions


@dataclass(frozen=True)
class Labels:
    """An attribute together with the labels of images. values: Series image_id -> value of the attribute.

    dropped: raw label -> number of images dropped because the user mapped it to nothing.
    """

    attribute: Attribute
    values: pd.Series
    dropped: dict[str, int]


def keep_attributes(
    workspace: Workspace, frame: pd.DataFrame, name: str, collection: str, source: str, attributes: dict
) -> Item:
    """Store a table of labels with its mapped attributes: {name: mapping_details(...)}.

    Those of the same table that were stored before, under the same name, stay.
    """
    details: dict = {}
    for item in workspace.items("attributes", collection):
        if item.name == name and item.hash == content_hash(frame):
            details = item.details
    details = {**details, "attributes": details.get("attributes", {}) | attributes}
    return workspace.keep("attributes", name, frame, collection, source, details)


def attribute_of(table: Item, name: str) -> tuple[Attribute, dict]:
    """The attribute called `name` in an attribute table, and where its labels are (for RunSpec.labels).

    The mapping kept with the table is used. Raises CapbiasError where the table has no such attribute.
    """
    mapped = table.details.get("attributes", {})
    if name not in mapped:
        raise CapbiasError(
            f"attribute {name!r} in the table {table.name!r}",
            f"one of: {', '.join(mapped) or 'none is mapped'}",
            "Map a column to it on the Data page, or name another attribute.",
        )
    entry = mapped[name]
    return attribute_from(entry["attribute"]), {
        "table": table.hash,
        "column": entry["column"],
        "mapping": entry["mapping"],
    }


def table_with(tables: Iterable[Item], attribute: str) -> Item:
    """The newest of some tables of labels, oldest first, that has an attribute; one of them has.

    Labels that people gave go before labels that were derived from captions. Of one file's columns by several
    annotators, which are a table each, it is the first.
    """
    having = tables_with(tables, attribute)
    given = [own for own in having if not is_derived(own)] or having
    return next(own for own in given if own.hash == given[-1].hash)


def is_derived(table: Item | None) -> bool:
    """Whether labels were made from the words of human captions."""
    return table is not None and DERIVED in table.details


def attributes_in(tables: Iterable[Item]) -> list[str]:
    """Every attribute of some tables of labels, each once."""
    return list(dict.fromkeys(name for table in tables for name in table.details["attributes"]))


def tables_with(tables: Iterable[Item], attribute: str) -> list[Item]:
    """The tables of labels that have an attribute."""
    return [own for own in tables if attribute in own.details.get("attributes", {})]


def table_of(tables: Iterable[Item], attribute: str, where: Mapping) -> Item | None:
    """The table that a run read, of those that have its attribute; None where it is gone. where: RunSpec.labels."""
    having = tables_with(tables, attribute)
    alike = [own for own in having if own.hash == where["table"]]
    return next((own for own in alike if own.details["attributes"][attribute]["column"] == where["column"]), None)


def reads(where: Mapping, attribute: str, table: Item) -> bool:
    """Whether a run read its labels of an attribute in this table. where: RunSpec.labels."""
    return table_of([table], attribute, where) is not None


def find_attribute(
    name: str, columns, raw: Mapping[str, Iterable[str]], column: str | None = None, folder: Path | None = None
) -> tuple[Attribute, str]:
    """The attribute meant by a name (shipped, of the folder, a TOML file, or a column) and the column that holds it.

    raw: column -> its raw labels. column: where the user says it is. folder: attributes of the user's own.
    """
    known = known_attributes(folder)
    if name in known or name.endswith(".toml"):
        attribute = known[name] if name in known else read_attribute(Path(name))
        if column:
            return attribute, column
        by_lower = {column.lower(): column for column in columns}
        for candidate in (*attribute.columns, attribute.name):
            if candidate.lower() in by_lower:
                return attribute, by_lower[candidate.lower()]
        if by_labels := columns_by_labels(attribute, raw):
            return attribute, by_labels[0]
        or_labels = f", or one with the labels {', '.join(attribute.values)}" if attribute.names_values else ""
        raise CapbiasError(
            f"an attribute table with the columns {', '.join(columns)}",
            f"a column for {attribute.name}, called {' or '.join(attribute.columns)}{or_labels}",
            "Rename the column, or name it with --attribute-column.",
        )
    if column:
        return plain_attribute(name, values_among(raw[column])), column
    if name not in columns:
        raise CapbiasError(
            f"attribute {name!r}",
            f"a known attribute ({', '.join(known)}), a TOML file, or a column of the table ({', '.join(columns)})",
            "Check the spelling.",
        )
    return plain_attribute(name, values_among(raw[name])), name


def mapping_details(attribute: Attribute, column: str, mapping: dict[str, str | None]) -> dict:
    """What is kept with an attribute table for one mapped attribute."""
    if len(attribute.values) < 2:
        raise CapbiasError(
            f"the column {column!r} with {len(attribute.values)} different labels",
            "a protected attribute of two values or more",
            "Choose another column.",
        )
    used = set(mapping.values()) - {None}
    if not used >= set(attribute.values):
        missing = [value for value in attribute.values if value not in used]
        held = ", ".join(raw or "(empty)" for raw in list(mapping)[:10])
        raise CapbiasError(
            f"a mapping of the column {column!r} under which no label becomes {' or '.join(missing)}",
            f"labels for each of {', '.join(attribute.values)}",
            f"The column holds {held}. Map at least one label to every value (`capbias import --map`), or choose "
            "another column.",
        )
    return {"column": column, "mapping": mapping, "attribute": asdict(attribute)}


def labels_in(workspace: Workspace, table: Item, name: str) -> Labels:
    """The labels that a kept table has of an attribute. Raises CapbiasError where it has none."""
    attribute, where = attribute_of(table, name)
    return labels_for(workspace.frame(table.hash), attribute, where["column"], where["mapping"])


def suggested_details(name: str, frame: pd.DataFrame, column: str | None = None) -> dict:
    """A mapping suggested from names and aliases: for an attribute (shipped, a TOML file, or a column's name), and
    the column that holds it where its name does not tell."""
    columns = [item for item in frame.columns if item != "image_id"]
    if column and column not in columns:
        raise CapbiasError(f"column {column!r}", f"one of: {', '.join(columns)}", "Check the spelling.")
    raw = {item: frame[item].value_counts().to_dict() for item in columns}
    attribute, column = find_attribute(name, columns, raw, column)
    return mapping_details(attribute, column, suggest_mapping(attribute, raw[column]))


def labels_for(frame: pd.DataFrame, attribute: Attribute, column: str, mapping: dict) -> Labels:
    """Labels of images from a raw attribute table; raw labels mapped to nothing are dropped, and counted."""
    values = frame[column].map(mapping)
    kept = values.isin(attribute.values)
    dropped = frame.loc[~kept, column].value_counts().to_dict()
    series = pd.Series(values[kept].to_numpy(dtype=object), index=frame.loc[kept, "image_id"].to_numpy(dtype=object))
    return Labels(attribute, series, dropped)


# What a user says about labels.


def resolve_attribute(
    frame: pd.DataFrame,
    name: str,
    column: str = "",
    values: Sequence[str] = (),
    overrides: Mapping[str, Mapping[str, str | None]] | None = None,
    folder: Path | None = None,
) -> tuple[str, dict]:
    """The name of the attribute meant, and its mapping as it is stored with the table.

    column: its column, '' to find it. values: the labels to compare if the name is a column's. overrides: attribute ->
    {raw label: value, or None to drop it}, instead of what is suggested. folder: the user's own attributes.
    """
    raw = {item: dict.fromkeys(frame[item]) for item in frame.columns if item != "image_id"}
    if column and column not in raw:
        raise unknown_name("column", column, raw)
    known = known_attributes(folder)
    if not (column or name in known or name in raw or name.endswith(".toml")):
        raise unknown_name("attribute or column", name, [*known, *raw])
    attribute, column = find_attribute(name, list(raw), raw, column, folder)
    if not (name in known or name.endswith(".toml")):
        wanted = tuple(dict.fromkeys(values or attribute.values))
        if not 2 <= len(wanted) <= MOST_LABELS:
            raise CapbiasError(
                f"The column {column} has {len(wanted):,} labels to compare; 2 to {MOST_LABELS} are possible.",
                "Choose them with --values." if len(wanted) > 1 else "Name another column, or more of its labels.",
            )
        attribute = plain_attribute(name, wanted)
    elif values:
        raise CapbiasError(f"{name} has its own values.", "Leave --values out.")
    changes = dict((overrides or {}).get(attribute.name, {}))
    for label, value in changes.items():
        if value is not None and value not in attribute.values:
            raise unknown_name(f"value of {attribute.name}", value, attribute.values)
        if label not in raw[column]:
            raise unknown_name(f"label in the column {column}", label, raw[column])
    return attribute.name, mapping_details(attribute, column, suggest_mapping(attribute, raw[column]) | changes)


def mapping_overrides(pairs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """`gender:f=Female` as {'gender': {'f': 'Female'}}; `gender:f=` drops the label."""
    overrides: dict[str, dict[str, str | None]] = {}
    for pair in pairs:
        attribute, _, rest = pair.partition(":")
        raw, equals, value = rest.rpartition("=")
        if not (attribute and equals):
            raise CapbiasError(f"--map {pair} is not ATTRIBUTE:LABEL=VALUE.", "For example: --map gender:f=Female")
        overrides.setdefault(attribute, {})[raw] = value or None
    return overrides


def guessed_columns(
    frame: pd.DataFrame, folder: Path | None = None, attributes: Iterable[Attribute] | None = None
) -> dict[str, Attribute]:
    """Column -> the attribute that it holds, by its name; if no column has a known name, by its labels."""
    known = list(attributes if attributes is not None else known_attributes(folder).values())
    labels = {column: frame[column].unique() for column in frame.columns if column != "image_id"}
    named = {}
    for column, values in labels.items():
        for attribute in known:
            fits = not attribute.derived or holds_labels(attribute, column, list(values))
            if column.lower() in attribute.columns and fits:
                named.setdefault(column, attribute)
    return named or {column: attribute for attribute in known for column in columns_by_labels(attribute, labels)}


def recognised_columns(frame: pd.DataFrame, folder: Path | None = None) -> list[tuple[str, str]]:
    """(attribute, column) pairs that a table holds. Raises CapbiasError if none is recognised."""
    pairs = [(attribute.name, column) for column, attribute in guessed_columns(frame, folder).items()]
    if not pairs:
        raise CapbiasError(
            f"No column is recognised as an attribute: {', '.join(name for name in frame if name != 'image_id')}.",
            "Name one with --attribute NAME or --attribute NAME=COLUMN.",
        )
    return pairs


def labelled_alike(frame: pd.DataFrame, details: dict) -> list[str]:
    """Other columns with labels of the same attribute, as by another annotator."""
    labels = {name: frame[name].unique() for name in frame.columns if name not in ("image_id", details["column"])}
    return columns_by_labels(attribute_from(details["attribute"]), labels)


def compared_lines(frame: pd.DataFrame, details: dict, folder: Path | None = None) -> list[str]:
    """Which labels of a column are compared, and the known attribute that usually reads such a column."""
    name, column, known = details["attribute"]["name"], details["column"], known_attributes(folder)
    if name in known:
        return []
    counts = frame[column].value_counts()
    shown = ", ".join(f"{value} {counts[value]:,}" for value in details["attribute"]["values"] if value in counts)
    usual = [
        each for each in known.values() if column.lower() in each.columns and holds_labels(each, column, counts.index)
    ]
    hints = [
        f"hint: {each.name} ({', '.join(each.values)}) reads the column {column}: --attribute {each.name}"
        for each in usual
    ]
    return [f"compared: {shown} (labels of the column {column}; --values chooses)", *hints]


def dropped_line(frame: pd.DataFrame, details: dict) -> str:
    """`dropped: Both 813, Unsure 3,410, empty 759`"""
    labels = labels_for(frame, attribute_from(details["attribute"]), details["column"], details["mapping"])
    dropped = sorted(labels.dropped.items(), key=lambda pair: (not pair[0], pair[0]))
    shown = ", ".join(f"{label or 'empty'} {count:,}" for label, count in dropped[:SHOWN_DROPPED])
    more = len(dropped) - SHOWN_DROPPED
    return f"dropped: {shown or 'none'}" + (f" and {more:,} more labels" if more > 0 else "")


def mapping_line(details: dict) -> str:
    """`Female from F, female; Male from M`"""
    by_value: dict[str, list[str]] = {}
    for raw, value in sorted(details["mapping"].items()):
        if value is not None:
            by_value.setdefault(value, []).append(raw or "empty")
    return "; ".join(f"{value} from {', '.join(raw)}" for value, raw in by_value.items())
