"""Labels of images: a protected attribute beside the column and mapping that give its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from capbias_core.attributes import (
    columns_by_labels,
    known_attributes,
    plain_attribute,
    read_attribute,
    suggest_mapping,
    values_among,
)
from capbias_core.errors import CapbiasError
from capbias_core.types import Attribute
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import Item, Workspace

DERIVED = "derived"  # the key in the details of labels that were made from human captions


@dataclass(frozen=True)
class Labels:
    """An attribute together with the labels of images. values: Series image_id -> value of the attribute.

    dropped: raw label -> number of images dropped because the user mapped it to nothing.
    """

    attribute: Attribute
    values: pd.Series
    dropped: dict[str, int]


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
