"""Combined attributes: the labels of two attributes of a collection as one table of cells."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from capbias_core.prepare.labels import LEAST, cells, cross_labels, crossed, crossed_name
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import LONGEST_NAME
from capbias_core.workspace.labels import keep_attributes, labels_in, mapping_details, table_with, tables_with
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
        return crossed_name(*(side.name for side in self.sides))

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
    """Two attributes of a collection, each by the named table of labels, else by `table_with`. Nothing is stored.

    Raises CapbiasError if no table holds one of them.
    """
    tables = workspace.items("attributes", collection)
    chosen = [
        next((item for item in tables_with(tables, name) if item.name == table), None) or table_with(tables, name)
        for name in (first, second)
    ]
    one, other = (labels_in(workspace, item, name) for item, name in zip(chosen, (first, second), strict=True))
    both = cross_labels(one.values, other.values)
    images = both.value_counts().to_dict()
    counts = {cell: int(images.get(cell, 0)) for cell in cells(one.attribute, other.attribute)}
    frame = {"image_id": both.index.to_numpy(dtype=object), crossed_name(first, second): both.to_numpy(dtype=object)}
    source = f"{first} of {chosen[0].name} x {second} of {chosen[1].name}"
    return Crossing((one.attribute, other.attribute), pd.DataFrame(frame), counts, source)


def keep_crossed(workspace: Workspace, collection: str, crossing: Crossing) -> Item:
    """Store the cells as a table of labels, without the cells that are left out. Raises CapbiasError if fewer than two
    cells are large enough."""
    attribute = crossed(*crossing.sides, crossing.counts)
    mapping = {cell: cell if cell in attribute.values else None for cell, count in crossing.counts.items() if count}
    details = {attribute.name: mapping_details(attribute, attribute.name, mapping)}
    name = attribute.name[:LONGEST_NAME]
    return keep_attributes(workspace, crossing.frame, name, collection, crossing.source, details)
