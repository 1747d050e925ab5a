"""Several tables of labels of one attribute: how far two of them agree, and the labels on which they do."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from capbias_core.aggregate.comparison import LabelAgreement, label_agreement
from capbias_core.errors import CapbiasError
from capbias_core.workspace.labels import keep_attributes, labels_in, mapping_details
from capbias_core.workspace.store import Item, Workspace


def tables_of(workspace: Workspace, collection: str) -> dict[str, list[Item]]:
    """Attributes that several tables of a collection hold, each with these tables, oldest first."""
    found: dict[str, list[Item]] = {}
    for item in workspace.items("attributes", collection):
        for name in item.details.get("attributes", {}):
            found.setdefault(name, []).append(item)
    return {name: tables for name, tables in found.items() if len(tables) > 1}


def compared(workspace: Workspace, name: str, one: Item, other: Item) -> LabelAgreement:
    """How far two tables agree on an attribute. Raises CapbiasError where they give it different values."""
    first, second = (labels_in(workspace, table, name) for table in (one, other))
    values = first.attribute.values
    if sorted(values) != sorted(second.attribute.values):
        raise CapbiasError(
            f"The tables {one.name} and {other.name} give {name} different values.", "Map both to the same attribute."
        )
    return label_agreement(first.values, second.values, values)


def keep_agreed(workspace: Workspace, name: str, tables: Sequence[Item], called: str) -> Item:
    """Keep the labels on which all of some tables agree, of images that all of them label, as another table."""
    every = [labels_in(workspace, table, name) for table in tables]
    labels = pd.concat([own.values for own in every], axis=1, join="inner")
    same, attribute = labels[labels.nunique(axis=1) == 1].iloc[:, 0], every[0].attribute
    if missing := [value for value in attribute.values if value not in set(same)]:
        raise CapbiasError(f"The tables agree on no image that is {' or '.join(missing)}.", "Choose other tables.")
    frame = pd.DataFrame({"image_id": same.index.to_numpy(dtype=object), name: same.to_numpy(dtype=object)})
    details = mapping_details(attribute, name, {value: value for value in attribute.values})
    source = f"where {' and '.join(table.name for table in tables)} agree"
    return keep_attributes(workspace, frame, called, tables[0].collection, source, {name: details})
