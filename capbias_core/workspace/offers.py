"""Several files at once: what each is, what it has in common with the others, and keeping them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capbias_core.attributes import holds_labels
from capbias_core.errors import CapbiasError
from capbias_core.load.kinds import GENERATED, HUMAN, LABELS, OBJECTS, likely_kind, looks_human
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import (
    SEGMENTS,
    ImportPreview,
    keep_attributes,
    keep_captions,
    keep_objects,
    keep_segments,
    preview_import,
)
from capbias_core.workspace.store import ACTIVE, Item, Workspace, suggested_name

# Whose images a kind of file should know.
BESIDE = {GENERATED: (LABELS,), HUMAN: (GENERATED, LABELS), LABELS: (GENERATED, HUMAN), OBJECTS: (GENERATED, LABELS)}
# Kept in this order, so that a collection is whole as soon as its captions are there.
ORDER = (LABELS, HUMAN, OBJECTS, SEGMENTS, GENERATED)


@dataclass(frozen=True)
class Offer:
    """One file that may be kept. likely: the kind that its content suggests. preview: None where it cannot be read as
    `kind`, for which `error` is the reason. name: what it would be called."""

    path: Path
    kind: str
    likely: str
    name: str
    preview: ImportPreview | None
    error: CapbiasError | None = None

    @property
    def images(self) -> set[str]:
        """The image ids of the file."""
        return set(self.preview.frame["image_id"]) if self.preview else set()


@dataclass(frozen=True)
class Choices:
    """What is said of a file that is kept. attributes: of a table of labels, {name: mapping_details(...)}.

    trained: of captions, whether the model was trained on the human captions (None: not known). written: captioner and
    condition of captions.
    """

    attributes: dict = field(default_factory=dict)
    trained: bool | None = None
    written: dict = field(default_factory=dict)


def offer(workspace: Workspace, path: Path, collection: str, kind: str = "", columns: dict | None = None) -> Offer:
    """Read a file as a kind, by default the likely one; a file that cannot be read so has the error in it."""
    path, likely = Path(path), kind
    name = suggested_name(path.stem)
    try:
        likely = likely_kind(path)
        read = preview_import(workspace, path, kind or likely, collection, columns)
        several = read.kind in (GENERATED, HUMAN) and looks_human(read.frame["image_id"].to_list())
        if several and likely == GENERATED:
            likely = HUMAN
            read = read if kind else preview_import(workspace, path, likely, collection, columns)
        return Offer(path, read.kind, likely, name, read)
    except CapbiasError as error:
        return Offer(path, kind or likely, likely, name, None, error)


def in_common(workspace: Workspace, collection: str, offers: Sequence[Offer]) -> dict[Path, int | None]:
    """How many images of each file the files beside it, or those of the collection, know; None where there is nothing
    to compare with."""
    kept = {kind: _kept_images(workspace, collection, kind) for kind in (GENERATED, HUMAN, LABELS)}
    found = {}
    for own in offers:
        beside = BESIDE.get(own.kind, ())
        known = [other.images for other in offers if other is not own and other.kind in beside and other.preview]
        known += [kept[kind] for kind in beside if kept.get(kind)]
        found[own.path] = len(own.images & set().union(*known)) if known and own.preview else None
    return found


def _kept_images(workspace: Workspace, collection: str, kind: str) -> set[str]:
    return {
        image for item in workspace.items(kind, collection) for image in workspace.frame(item.hash)["image_id"].unique()
    }


def known_column(known: Iterable[Attribute], column: str, labels: Iterable[str]) -> Attribute | None:
    """The attribute that a column holds, by its name; of one whose labels can be derived, also by a label."""
    for attribute in known:
        named = column.lower() in attribute.columns
        if named and (not attribute.derived or holds_labels(attribute, column, list(labels))):
            return attribute
    return None


def keep_offers(
    workspace: Workspace, collection: str, offers: Sequence[Offer], choices: Mapping[Path, Choices]
) -> list[Item]:
    """Keep files that could be read, labels first.

    Raises CapbiasError, and keeps none of them, where two would have one name, or a run reads what one would replace.
    """
    read = [own for own in offers if own.preview is not None]
    if twice := same_names(read):
        raise CapbiasError(
            f"several files that would be called {', '.join(twice)}", "a name each", "Rename all but one."
        )
    for own in read:
        for item in workspace.items(own.kind, collection):
            if item.name == own.name and any(run.status in ACTIVE for run in workspace.using(item)):
                raise CapbiasError(
                    f"{item.name}, which a run is reading", "no run under way on it", "Cancel the run, or wait for it."
                )
    return [
        _keep(workspace, collection, own, choices.get(own.path, Choices()))
        for own in sorted(read, key=lambda own: ORDER.index(own.kind))
    ]


def same_names(offers: Sequence[Offer]) -> list[str]:
    """Names that several files of one kind would have, so that the last would replace the others."""
    counts = Counter((own.kind, own.name) for own in offers)
    return [name for (_, name), count in counts.items() if count > 1]


def _keep(workspace: Workspace, collection: str, own: Offer, said: Choices) -> Item:
    assert own.preview is not None
    if own.kind == LABELS:
        return keep_attributes(workspace, own.preview.frame, own.name, collection, own.path.name, said.attributes)
    if own.kind in (OBJECTS, SEGMENTS):
        keep = keep_objects if own.kind == OBJECTS else keep_segments
        return keep(workspace, own.preview, own.name, collection, own.path.name)
    return keep_captions(workspace, own.preview, own.name, collection, own.path.name, said.trained, **said.written)
