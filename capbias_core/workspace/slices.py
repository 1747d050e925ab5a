"""Slices of images: rules that pick images by an object, words, a column or a search; and those saved by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import LABELS, OBJECTS, SLICES
from capbias_core.load.tables import BETWEEN, SURE
from capbias_core.prepare.text import tokenize
from capbias_core.workspace.objects import COLUMN as ITS_COLUMN
from capbias_core.workspace.objects import usual_objects
from capbias_core.workspace.store import Item, Workspace

OBJECT, WORDS, COLUMN, SEARCH = "object", "words", "column", "search"
EXAMPLES = "object:dog, words:kitchen|cooking, column:skin=Dark or search:red bus"
OR, IS = "|", "="
PERSON = "person"  # on every image with a label, so it picks nothing
RULE = "rule"  # the key in the details of a saved slice


@dataclass(frozen=True)
class Slice:
    """A rule that picks images. name: the one under which it was saved, if any."""

    kind: str  # OBJECT, WORDS, COLUMN or SEARCH
    # An object; words of human captions with | between alternatives; COLUMN=VALUE; or a text in a captioner's captions.
    value: str
    name: str = ""

    @classmethod
    def parse(cls, rule: str, name: str = "") -> Self:
        """A rule such as `object:dog`. Raises CapbiasError for a text that is no rule.

        >>> Slice.parse("words: kitchen | cooking").rule
        'words:kitchen|cooking'
        """
        kind, colon, value = (part.strip() for part in rule.partition(":"))
        if kind == WORDS:
            value = OR.join(filter(None, (" ".join(tokenize(word)) for word in value.split(OR))))
        if kind not in (OBJECT, WORDS, COLUMN, SEARCH) or not value or (kind == COLUMN and not all(_cell(value))):
            raise CapbiasError(f"{rule[:100]!r} is not a slice.", f"Write {EXAMPLES}.", "slice")
        return cls(kind, value, name)

    @property
    def rule(self) -> str:
        """The rule as text; `parse` reads it."""
        return f"{self.kind}:{self.value}"

    @property
    def title(self) -> str:
        """For a row of a table.

        >>> [Slice.parse(rule).title for rule in ("object:dog", "words:car|bus", "column:skin=Dark", "search:red")]
        ['dog', 'people say “car” or “bus”', 'skin: Dark', 'it says “red”']
        """
        if self.name:
            return self.name
        column, value = _cell(self.value)
        return {
            OBJECT: self.value,
            WORDS: f"people say {self._alternatives}",
            COLUMN: f"{column}: {value}",
            SEARCH: f"it says “{self.value}”",
        }[self.kind]

    @property
    def images(self) -> str:
        """For a sentence: `images with “dog”`."""
        column, value = _cell(self.value)
        text = {
            OBJECT: f"images with “{self.value}”",
            WORDS: f"images whose human captions have {self._alternatives}",
            COLUMN: f"images with {column} {value}",
            SEARCH: f"images whose caption has “{self.value}”",
        }[self.kind]
        return f"{text} (slice {self.name})" if self.name else text

    @property
    def _alternatives(self) -> str:
        return " or ".join(f"“{word}”" for word in self.value.split(OR))


def _cell(value: str, columns: Collection[str] = ()) -> tuple[str, str]:
    """The column and its value. Both may hold `=`: of several readings the first whose column is known counts."""
    parts = value.split(IS)
    pairs = [(IS.join(parts[:end]).strip(), IS.join(parts[end:]).strip()) for end in range(1, len(parts) + 1)]
    return next((pair for pair in pairs if pair[0] in columns), pairs[0])


class Members(NamedTuple):
    """The images that a rule picks, and all images of which it can tell."""

    inside: frozenset[str]
    known: frozenset[str]


@dataclass(frozen=True)
class SliceSources:
    """What rules read in a collection, each source once."""

    workspace: Workspace
    collection: str
    table: Item  # of labels
    captions: str  # content hash of the captioner's captions, for searches
    references: str = ""  # content hash of the human captions, '' for none

    def members(self, chosen: Slice) -> Members:
        """The images of a slice. An image without a row or a caption in the source, or with an empty cell, is neither
        inside nor outside. Raises CapbiasError if the collection has no such source, object, column or value."""
        if chosen.kind == OBJECT:
            if chosen.value not in self.by_object:
                raise unknown_name("object", chosen.value, self.by_object)
            return Members(self.by_object[chosen.value], self.annotated)
        if chosen.kind == COLUMN:
            column, value = _cell(chosen.value, self.columns)
            by_value = self.column(column)
            if value not in by_value:
                raise unknown_name(f"value of {column}", value, by_value)
            return Members(by_value[value], frozenset().union(*by_value.values()))
        if chosen.kind == WORDS:
            images, texts = self._human
            inside = np.zeros(len(texts), dtype=bool)
            for word in chosen.value.split(OR):
                inside |= texts.str.contains(f" {word} ", regex=False).to_numpy(dtype=bool)
        else:
            frame = self.workspace.frame(self.captions)
            images = frame["image_id"].to_numpy(dtype=object)
            inside = frame["caption"].str.contains(chosen.value, case=False, regex=False).to_numpy(dtype=bool)
        return Members(frozenset(images[inside]), frozenset(images))

    def tables(self, chosen: Slice) -> set[str]:
        """Content hashes of the tables of the collection that a rule reads, besides captions."""
        if chosen.kind == COLUMN:
            return {self.columns[name].hash for name in [_cell(chosen.value, self.columns)[0]] if name in self.columns}
        return {self._objects[1]} - {""} if chosen.kind == OBJECT else set()

    @property
    def has_objects(self) -> bool:
        return bool(self._objects[0])

    @property
    def objects_from(self) -> str:
        """The name of the source of objects, '' for none."""
        name = self._objects[0]
        return f"the column objects of {self.table.name}" if name == ITS_COLUMN else name

    @cached_property
    def by_object(self) -> Mapping[str, frozenset[str]]:
        """The images of each object."""
        frame = self._object_rows
        cells = frame.assign(object=frame[OBJECTS].fillna("").str.split(BETWEEN)).explode("object")
        cells["object"] = cells["object"].str.strip().str.replace(SURE, "", regex=True)
        cells = cells[~cells["object"].isin(["", PERSON])]
        return {str(name): frozenset(images) for name, images in cells.groupby("object")["image_id"]}

    @cached_property
    def annotated(self) -> frozenset[str]:
        """The images whose objects are known."""
        return frozenset(self._object_rows["image_id"])

    def column(self, name: str) -> Mapping[str, frozenset[str]]:
        """The images of each value of a column; a list such as cat|dog counts for each of its parts.

        It is looked for in the table of labels, then in the other tables, the newest first. Raises CapbiasError if none
        has it.
        """
        columns = self.columns
        if name not in columns:
            raise unknown_name("column", name, columns)
        frame = self.workspace.frame(columns[name].hash)
        parts = frame[["image_id"]].assign(value=frame[name].fillna("").astype(str).str.split(BETWEEN)).explode("value")
        parts["value"] = parts["value"].str.strip()
        return {
            str(value): frozenset(images) for value, images in parts[parts["value"] != ""].groupby("value")["image_id"]
        }

    @cached_property
    def columns(self) -> dict[str, Item]:
        """The columns of stored tables, each with the table in which it is read."""
        tables = [self.table, *reversed(self.workspace.items(LABELS, self.collection))]
        tables += reversed(self.workspace.items(OBJECTS, self.collection))
        by_name: dict[str, Item] = {}
        for table in tables:
            for name in self.workspace.columns(table.hash):
                if name != "image_id":
                    by_name.setdefault(name, table)
        return by_name

    @cached_property
    def _objects(self) -> tuple[str, str]:
        """Name and content hash of the source of objects; '' without any."""
        return usual_objects(self.workspace, self.collection, self.table)

    @cached_property
    def _object_rows(self) -> pd.DataFrame:
        _, digest = self._objects
        columns = ["image_id", OBJECTS]
        return self.workspace.frame(digest)[columns] if digest else pd.DataFrame(columns=columns)

    @cached_property
    def _human(self) -> tuple[np.ndarray, pd.Series]:
        """(n,) image IDs of human captions, and their words, each between spaces."""
        if not self.references:
            raise CapbiasError("No human captions were compared with, so no words can be looked for in them.")
        texts = pd.Series(self.workspace.tokens(self.references).texts, dtype="str")
        return self.workspace.frame(self.references)["image_id"].to_numpy(dtype=object), " " + texts + " "


def keep_slice(workspace: Workspace, collection: str, chosen: Slice, name: str) -> Item:
    """The stored rule under a name; a slice of the same name is replaced. Raises CapbiasError if the rule has another
    name: exports would have its rows twice."""
    for saved in saved_slices(workspace, collection):
        if saved.rule == chosen.rule and saved.name != name:
            raise CapbiasError(f"{chosen.rule} is saved as {saved.name!r} already.", "Delete that slice first.", "save")
    frame = pd.DataFrame({RULE: [chosen.rule]})
    return workspace.keep(SLICES, name, frame, collection, chosen.rule, {RULE: chosen.rule})


def saved_slices(workspace: Workspace, collection: str) -> list[Slice]:
    """The saved slices of a collection, the oldest first."""
    return [Slice.parse(item.details[RULE], item.name) for item in workspace.items(SLICES, collection)]
