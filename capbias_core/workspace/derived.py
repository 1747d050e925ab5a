"""Labels of images, derived from the words of their human captions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.prepare import derive_labels
from capbias_core.types import PRECEDENCE, Attribute, Derivation
from capbias_core.workspace.ingest import LONGEST_NAME
from capbias_core.workspace.labels import DERIVED, mapping_details
from capbias_core.workspace.store import Item, Workspace


@dataclass(frozen=True)
class Derived:
    """Labels derived from human captions, before they are stored.

    frame: image_id and a column named after the attribute, '' if no caption names a value. counts: value -> images, in
    the order of the values. neither: images without a label, which are left out.
    """

    attribute: Attribute
    references: Item
    frame: pd.DataFrame
    counts: dict[str, int]
    neither: int

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


def derivable(name: str, folder: Path | None = None) -> Attribute | None:
    """The attribute of this name if human captions can give its labels. folder: of attributes that users defined."""
    attribute = get_attribute(name, folder) if name in known_attributes(folder) or name.endswith(".toml") else None
    return attribute if attribute and attribute.derived else None


def derive(workspace: Workspace, references: Item, attribute: Attribute) -> Derived:
    """Labels of images by the words of stored human captions. Nothing is stored."""
    frame = derive_labels(workspace.frame(references.hash), attribute)
    images = frame[attribute.name].value_counts().to_dict()
    counts = {value: images.get(value, 0) for value in attribute.values}
    return Derived(attribute, references, frame, counts, images.get("", 0))


def keep_derived(workspace: Workspace, derived: Derived, name: str = "") -> Item:
    """Store derived labels as an attribute table beside their captions, with the rule behind them.

    Raises CapbiasError if no image gets one of the values.
    """
    attribute, references = derived.attribute, derived.references
    rule = attribute.derived or Derivation()
    missing = [value for value, count in derived.counts.items() if not count]
    if missing:
        raise CapbiasError(
            f"By the human captions {references.name}, no image is {' or '.join(missing)}.",
            f"Check the captions and the words of {attribute.name}.",
        )
    mapping = {**{value: value for value in attribute.values}, **({"": None} if derived.neither else {})}
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
    return workspace.keep("attributes", name, derived.frame, references.collection, source, details)


def derive_missing(workspace: Workspace, collection: str, attribute: Attribute) -> Derived | None:
    """Labels from human captions, stored, if a collection has captions and human captions and no labels at all.

    None if it has labels or lacks the captions, or if no caption names one of the values.
    """
    kinds = {item.kind for item in workspace.items(collection=collection)}
    if "attributes" in kinds or not kinds >= {"captions", "references"}:
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
    """Whether labels were derived from human captions that the collection no longer holds."""
    origin = item.details.get(DERIVED, {}).get("references")
    return bool(origin) and origin not in {each.hash for each in workspace.items("references", item.collection)}
