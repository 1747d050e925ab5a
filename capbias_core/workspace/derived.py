"""Labels of images that follow from what a collection has: from words of human captions, or from two attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.kinds import LONGEST_NAME
from capbias_core.load.labels import mapping_details
from capbias_core.prepare.labels import LEAST, cells, crossed, crossed_name, derive_labels
from capbias_core.types import PRECEDENCE, WITHIN, Attribute, Derivation
from capbias_core.workspace.labels import DERIVED, keep_attributes, labels_in, table_with, tables_with
from capbias_core.workspace.store import Item, Workspace


@dataclass(frozen=True)
class Derived:
    """Labels derived from human captions, before they are stored."""

    attribute: Attribute
    references: Item | None  # the human captions, if they are stored
    frame: pd.DataFrame  # image_id and a column named after the attribute, '' if no caption names a value
    counts: dict[str, int]  # value -> images, in the order of the values
    neither: int  # images without a label, which are left out

    def line(self, origin: str) -> str:
        """`age derived from captions.json: young 963, old 1,303; neither 184, left out`"""
        counts = ", ".join(f"{value} {count:,}" for value, count in self.counts.items())
        return f"{self.attribute.name} derived from {origin}: {counts}; {self.without} {self.neither:,}, left out"

    @property
    def without(self) -> str:
        """What the captions say about images without a label."""
        none = "neither" if len(self.counts) == 2 else "none of them"
        agreed = self.attribute.derived and self.attribute.derived.both != PRECEDENCE
        return f"several or {none}" if agreed else none


def defined(name: str, folder: Path | None = None) -> Attribute | None:
    """The attribute of this name; None for a column of the labels. folder: of attributes that users defined."""
    return get_attribute(name, folder) if name in known_attributes(folder) or name.endswith(".toml") else None


def derivable(name: str, folder: Path | None = None) -> Attribute | None:
    """The attribute of this name if human captions can give its labels. folder: as of `defined`."""
    attribute = defined(name, folder)
    return attribute if attribute and attribute.derived else None


def derive(workspace: Workspace, references: Item, attribute: Attribute) -> Derived:
    """Labels of images by the words of stored human captions. Nothing is stored."""
    return replace(derive_from(workspace.frame(references.hash), attribute), references=references)


def derive_from(human: pd.DataFrame, attribute: Attribute) -> Derived:
    """Labels of images by the words of human captions."""
    frame = derive_labels(human, attribute)
    images = frame[attribute.name].value_counts().to_dict()
    counts = {value: images.get(value, 0) for value in attribute.values}
    return Derived(attribute, None, frame, counts, images.get("", 0))


def keep_derived(workspace: Workspace, derived: Derived, name: str = "") -> Item:
    """The stored table of derived labels, with the rule behind them. Raises CapbiasError if no image has some value."""
    attribute, references = derived.attribute, derived.references
    assert references
    check_derived(derived, references.name)
    rule = attribute.derived or Derivation()
    mapping = {value: value for value in attribute.values} | ({"": None} if derived.neither else {})
    details = {
        "attributes": {attribute.name: mapping_details(as_derived(attribute), attribute.name, mapping)},
        DERIVED: {
            "references": references.hash,
            "precedence": list(rule.precedence),
            "at_least": rule.at_least,
            "both": rule.both,
        },
    }
    name = name or f"{attribute.name} from {references.name}"[:LONGEST_NAME].strip()
    source = f"derived from {references.name}"
    return workspace.keep("labels", name, derived.frame, references.collection, source, details)


def check_derived(derived: Derived, origin: str) -> None:
    """Raises CapbiasError if no image has some value. origin: the human captions."""
    if missing := [value for value, count in derived.counts.items() if not count]:
        raise CapbiasError(
            f"By the human captions {origin}, no image is {' or '.join(missing)}.",
            f"Check the captions and the words of {derived.attribute.name}.",
        )


def derive_missing(workspace: Workspace, collection: str, attribute: Attribute) -> Derived | None:
    """Labels from human captions, stored, if a collection has captions and human captions and no labels at all."""
    kinds = {item.kind for item in workspace.items(collection=collection)}
    if "labels" in kinds or not {"captions", "references"} <= kinds:
        return None
    derived = derive(workspace, workspace.items("references", collection)[-1], attribute)
    if not all(derived.counts.values()):
        return None
    keep_derived(workspace, derived)
    return derived


def as_derived(attribute: Attribute) -> Attribute:
    """The attribute with the title and the note of labels that were derived from captions."""
    rule = attribute.derived or Derivation()
    note = f"{rule.note} By the rule, an image gets {rule.text}." if rule.note else attribute.note
    return replace(attribute, title=rule.title or attribute.title, note=note)


def outdated(workspace: Workspace, item: Item) -> bool:
    """Whether labels were derived from human captions that the collection no longer has."""
    origin = item.details.get(DERIVED, {}).get("references")
    return bool(origin) and origin not in {each.hash for each in workspace.items("references", item.collection)}


@dataclass(frozen=True)
class Crossing:
    """Labels of two attributes combined, before they are stored."""

    sides: tuple[Attribute, Attribute]
    name: str  # of the combined attribute
    frame: pd.DataFrame  # image_id, and the cell under that name
    counts: dict[str, int]  # images of each cell, also of empty ones
    source: str  # the tables of the labels
    refused: tuple[str, ...]  # cells with fewer than LEAST images, which are left out

    def line(self) -> str:
        """`gender of labels x race of labels: Female, Dark 300; ...; left out with fewer than 100 images: none`"""
        kept = "; ".join(f"{cell} {count:,}" for cell, count in self.counts.items() if cell not in self.refused)
        small = "; ".join(f"{cell} {self.counts[cell]:,}" for cell in self.refused) or "none"
        return f"{self.source}: {kept}; left out with fewer than {LEAST} images: {small}"


def cross(workspace: Workspace, collection: str, first: str, second: str, table: str = "") -> Crossing:
    """Two attributes of a collection combined, each by the named table of labels, else by `table_with`. Nothing is
    stored. Raises CapbiasError if no table has labels of one of them."""
    tables = workspace.items("labels", collection)
    chosen = [
        next((item for item in tables_with(tables, name) if item.name == table), None) or table_with(tables, name)
        for name in (first, second)
    ]
    one, other = (labels_in(workspace, item, name) for item, name in zip(chosen, (first, second), strict=True))
    labels, name = pd.concat([one.values, other.values], axis=1, join="inner"), crossed_name(first, second)
    both = labels.iloc[:, 0] + WITHIN + labels.iloc[:, 1]
    images = both.value_counts().to_dict()
    counts = {cell: int(images.get(cell, 0)) for cell in cells(one.attribute, other.attribute)}
    frame = {"image_id": both.index.to_numpy(dtype=object), name: both.to_numpy(dtype=object)}
    source = f"{first} of {chosen[0].name} x {second} of {chosen[1].name}"
    refused = tuple(cell for cell, count in counts.items() if count < LEAST)
    return Crossing((one.attribute, other.attribute), name, pd.DataFrame(frame), counts, source, refused)


def keep_crossed(workspace: Workspace, collection: str, crossing: Crossing) -> Item:
    """The stored table of combined labels, without the cells that are left out. Raises CapbiasError if fewer than two
    cells are large enough."""
    attribute = crossed(*crossing.sides, crossing.counts)
    mapping = {cell: cell if cell in attribute.values else None for cell, count in crossing.counts.items() if count}
    details = {attribute.name: mapping_details(attribute, attribute.name, mapping)}
    name = attribute.name[:LONGEST_NAME]
    return keep_attributes(workspace, crossing.frame, name, collection, crossing.source, details)
