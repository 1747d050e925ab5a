"""Labels of images: a protected attribute with the column and mapping that give its values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attributes import known_attributes
from capbias_core.attributes.labels import label_columns
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.labels import SHOWN_LABELS
from capbias_core.types import Attribute
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import Item, Workspace, content_hash

DERIVED = "derived"  # the key in the details of labels that were made from human captions


@dataclass(frozen=True)
class Labels:
    """Labels of images. values: Series image_id -> value of the attribute. dropped: raw label that is mapped to nothing
    -> number of images."""

    attribute: Attribute
    values: pd.Series
    dropped: dict[str, int]


def keep_attributes(
    workspace: Workspace, frame: pd.DataFrame, name: str, collection: str, source: str, attributes: dict
) -> Item:
    """The stored table of labels with its mapped attributes ({name: mapping_details(...)}), besides those that an
    earlier item of this name and content has."""
    stored = {item.name: item for item in workspace.items("labels", collection)}.get(name)
    details = stored.details if stored and stored.hash == content_hash(frame) else {}
    details = {**details, "attributes": details.get("attributes", {}) | attributes}
    return workspace.keep("labels", name, frame, collection, source, details)


def attribute_of(table: Item, name: str) -> tuple[Attribute, dict]:
    """The attribute called `name` in an attribute table, and where its labels are (for RunSpec.labels). The mapping
    kept with the table is used. Raises CapbiasError where the table has no such attribute."""
    mapped = table.details.get("attributes", {})
    if name not in mapped:
        raise CapbiasError(
            f"The table {table.name} has no labels of {name!r}; it has {', '.join(mapped) or 'none'}.",
            "Map a column to it on the Data page, or name another attribute.",
        )
    entry = mapped[name]
    return mapped_attribute(entry), {"table": table.hash, "column": entry["column"], "mapping": entry["mapping"]}


def mapped_attribute(details: Mapping[str, Any]) -> Attribute:
    """The attribute of a mapped column. details: of `mapping_details`."""
    return replace(attribute_from(details["attribute"]), forms=tuple(map(tuple, details.get("forms", ()))))


def table_with(tables: Iterable[Item], attribute: str) -> Item:
    """The newest table of labels (given oldest first) that has an attribute, if possible one that was not derived from
    captions. Of tables with one content, by several annotators, it is the first. Raises CapbiasError if none has it."""
    tables = list(tables)
    matching = tables_with(tables, attribute)
    if not matching:
        raise unknown_name("attribute", attribute, attributes_in(tables))
    given = [table for table in matching if not is_derived(table)] or matching
    return next(table for table in given if table.hash == given[-1].hash)


def is_derived(table: Item | None) -> bool:
    """Whether labels were derived from the words of human captions."""
    return table is not None and DERIVED in table.details


def attributes_in(tables: Iterable[Item]) -> list[str]:
    """The attributes of some tables of labels, each once."""
    return list(dict.fromkeys(name for table in tables for name in table.details["attributes"]))


def tables_with(tables: Iterable[Item], attribute: str) -> list[Item]:
    """The tables of labels that have an attribute."""
    return [table for table in tables if attribute in table.details.get("attributes", {})]


# lines about a mapping


def compared_lines(frame: pd.DataFrame, details: dict, folder: Path | None = None) -> list[str]:
    """The labels that are compared, for `score`. Of a known attribute: how its labels are read, unless they are spelled
    as its values. Of a column: its labels, and the attribute that usually reads them."""
    name, column = details["attribute"]["name"], details["column"]
    known = known_attributes(folder)
    if name in known:
        mapping = details["mapping"].items()
        same = all(raw.strip().casefold() == value.casefold() for raw, value in mapping if value is not None)
        return [] if same else [f"labels read: {mapping_line(details)}"]
    counts = frame[column].value_counts()
    shown = ", ".join(f"{value} {counts[value]:,}" for value in details["attribute"]["values"] if value in counts)
    usual = [each for each in known.values() if any(label_columns(each, {column: counts.index}).values())]
    hints = [
        f"hint: the attribute {one.name} ({', '.join(one.values)}) also reads the column {column}" for one in usual
    ]
    return [f"compared: {shown} (labels of the column {column}; `values` chooses others)", *hints]


def mapping_line(details: Mapping) -> str:
    """`Female from F, female; Male from M`"""
    by_value = {value: [] for value in details["attribute"]["values"]}
    for raw, value in sorted(details["mapping"].items()):
        if value is not None:
            by_value[value].append(raw or "empty")
    return "; ".join(f"{value} from {', '.join(raw)}" for value, raw in by_value.items() if raw)


def dropped_line(frame: pd.DataFrame, details: Mapping) -> str:
    """`dropped: Both 813, Unsure 3,410, empty 759`"""
    attribute = attribute_from(details["attribute"])
    labels = labels_for(frame, attribute, details["column"], details["mapping"]).dropped
    dropped = sorted(labels.items(), key=lambda pair: (not pair[0], pair[0]))
    shown = ", ".join(f"{label or 'empty'} {count:,}" for label, count in dropped[:SHOWN_LABELS])
    more = len(dropped) - SHOWN_LABELS
    return f"dropped: {shown or 'none'}" + (f" and {more:,} more labels" if more > 0 else "")


# the labels of images


def labels_in(workspace: Workspace, table: Item, name: str) -> Labels:
    """The labels that a stored table has of an attribute. Raises CapbiasError if it has none."""
    attribute, where = attribute_of(table, name)
    return labels_for(workspace.frame(table.hash), attribute, where["column"], where["mapping"])


def labels_of(workspace: Workspace, attribute: Attribute, where: Mapping) -> pd.Series:
    """image_id -> value of an attribute, as a run reads it. where: RunSpec.labels."""
    return labels_for(workspace.frame(where["table"]), attribute, where["column"], where["mapping"]).values


@dataclass(frozen=True)
class ImagesUsed:
    """How many images of a caption set count for an attribute: with a caption and a label, and of these with human
    captions (None if there are no human captions). by_value: value -> the images that are left, before balancing."""

    labelled: int
    with_human: int | None
    by_value: Mapping[str, int]

    @property
    def balanced(self) -> int:
        """The images that are left when every value has as many as the rarest."""
        return len(self.by_value) * min(self.by_value.values())


def images_used(labels: Labels, captioned: Collection[str], human: Collection[str] | None) -> ImagesUsed:
    """What counts of a caption set. captioned: its images. human: those with human captions, None if there are none."""
    of_set = labels.values[labels.values.index.isin(captioned)]
    left = of_set if human is None else of_set[of_set.index.isin(human)]
    counts = left.value_counts()
    by_value = {value: int(counts.get(value, 0)) for value in labels.attribute.values}
    return ImagesUsed(len(of_set), None if human is None else len(left), by_value)


def labels_for(frame: pd.DataFrame, attribute: Attribute, column: str, mapping: dict) -> Labels:
    """Labels of images from the raw labels of a table."""
    values = frame[column].map(mapping)
    labelled = values.isin(attribute.values)
    dropped = frame.loc[~labelled, column].value_counts().to_dict()
    images = frame.loc[labelled, "image_id"].to_numpy(dtype=object)
    return Labels(attribute, pd.Series(values[labelled].to_numpy(dtype=object), index=images), dropped)
