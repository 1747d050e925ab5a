"""Groups that cross: the labels of two attributes of a collection as one table of cells."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from capbias_core.errors import unknown_name
from capbias_core.prepare.cross import LEAST, cells, cross_labels, crossed, crossed_name
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import LONGEST_NAME
from capbias_core.workspace.labels import keep_attributes, labels_in, mapping_details, table_with
from capbias_core.workspace.store import Item, Workspace


@dataclass(frozen=True)
class Crossing:
    """Two attributes crossed. name: of the crossed attribute. frame: image_id and the cell, under that name. counts:
    images of each cell, those without any, too. source: whose labels they are."""

    sides: tuple[Attribute, Attribute]
    frame: pd.DataFrame
    counts: dict[str, int]
    source: str

    @property
    def name(self) -> str:
        return crossed_name(*(own.name for own in self.sides))

    @property
    def refused(self) -> tuple[str, ...]:
        """Cells with fewer than LEAST images, which are left out."""
        return tuple(cell for cell, count in self.counts.items() if count < LEAST)

    def line(self) -> str:
        """`gender of labels x race of labels: Female, Dark 300; ...; left out with fewer than 100 images: none`"""
        kept = "; ".join(f"{cell} {count:,}" for cell, count in self.counts.items() if cell not in self.refused)
        small = "; ".join(f"{cell} {self.counts[cell]:,}" for cell in self.refused) or "none"
        return f"{self.source}: {kept}; left out with fewer than {LEAST} images: {small}"


def cross(workspace: Workspace, collection: str, first: str, second: str, table: str = "") -> Crossing:
    """Two attributes that tables of a collection hold, each by the named table, else by `table_with`. Nothing is kept.

    Raises CapbiasError where no table holds one of them.
    """
    tables = workspace.items("attributes", collection)
    held = [_table(tables, name, table) for name in (first, second)]
    one, other = (labels_in(workspace, own, name) for own, name in zip(held, (first, second), strict=True))
    both = cross_labels(one.values, other.values)
    counted = both.value_counts().to_dict()
    counts = {cell: int(counted.get(cell, 0)) for cell in cells(one.attribute, other.attribute)}
    name = crossed_name(first, second)
    frame = pd.DataFrame({"image_id": both.index.to_numpy(dtype=object), name: both.to_numpy(dtype=object)})
    return Crossing(
        (one.attribute, other.attribute), frame, counts, f"{first} of {held[0].name} x {second} of {held[1].name}"
    )


def _table(tables: list[Item], name: str, table: str) -> Item:
    """The table of an attribute's labels."""
    holding = [own for own in tables if name in own.details.get("attributes", {})]
    if not holding:
        known = dict.fromkeys(own for item in tables for own in item.details.get("attributes", {}))
        raise unknown_name("attribute", name, known)
    return next((own for own in holding if own.name == table), None) or table_with(holding, name)


def keep_crossed(workspace: Workspace, collection: str, found: Crossing) -> Item:
    """Keep the cells as a table of labels; images of cells that are left out have no label. Raises CapbiasError where
    fewer than two cells are large enough."""
    attribute = crossed(*found.sides, found.counts)
    mapping = {cell: cell if cell in attribute.values else None for cell, count in found.counts.items() if count}
    details = {attribute.name: mapping_details(attribute, attribute.name, mapping)}
    name = attribute.name[:LONGEST_NAME]
    return keep_attributes(workspace, found.frame, name, collection, found.source, details)
