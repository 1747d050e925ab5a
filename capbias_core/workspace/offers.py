"""Several files at once: what each is, what it has in common with the others, and keeping them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from capbias_core.attributes.labels import guess_attributes
from capbias_core.errors import CapbiasError
from capbias_core.load.kinds import BY_COUNT, GENERATED, HUMAN, LABELS, OBJECTS, Likely, kind_of_captions, likely
from capbias_core.types import Attribute
from capbias_core.workspace.ingest import (
    SAMPLES,
    SEGMENTS,
    ImportPreview,
    caption_sets,
    image_ids,
    keep_captions,
    keep_columns,
    keep_objects,
    keep_segments,
    preview_import,
)
from capbias_core.workspace.store import Item, Workspace, content_hash, suggested_name

Key = tuple[Path, bool]
# Whose images a kind of file should know.
BESIDE = {
    GENERATED: (HUMAN, LABELS),
    HUMAN: (GENERATED, LABELS),
    LABELS: (GENERATED, HUMAN),
    OBJECTS: (GENERATED, LABELS),
}
# Kept in this order, so that a collection is whole as soon as its captions are there.
ORDER = (LABELS, HUMAN, OBJECTS, SEGMENTS, GENERATED)


@dataclass(frozen=True)
class Offer:
    """What of one file may be kept. own: what its content suggests. name: what it would be called. preview: None where
    it cannot be read as `kind`, for which `error` is the reason. images: its image ids. beside: whether it is the
    second thing in its file: human captions beside a model's, outlines beside objects. wanted: whether it is kept if
    the user says nothing."""

    path: Path
    kind: str
    own: Likely
    name: str
    preview: ImportPreview | None
    error: CapbiasError | None = None
    images: frozenset[str] = frozenset()
    beside: bool = False
    wanted: bool = True

    @property
    def key(self) -> Key:
        """What tells it from all other offers."""
        return self.path, self.beside


@dataclass(frozen=True)
class Choices:
    """What is said of a file that is kept. attributes: of a table of labels, mapping_details(...) of each column.

    trained: of captions, whether the model was trained on the human captions (None: not known). written: captioner and
    condition of captions. sets: what several captions of an image are, one of `ingest.SETS`.
    """

    attributes: Sequence[dict] = ()
    trained: bool | None = None
    written: dict = field(default_factory=dict)
    sets: str = SAMPLES


def offers_of(
    workspace: Workspace,
    path: Path,
    collection: str,
    kind: str = "",
    columns: dict | None = None,
    references: pd.DataFrame | None = None,
) -> list[Offer]:
    """Read a file as a kind, by default the likely one.

    Human captions beside those of a model are an offer of their own, unless the images got their ids from others.
    references: human captions at hand besides those of the collection.
    """
    first = _offer(workspace, path, collection, kind, columns, references)
    if first.kind != GENERATED or first.preview is None or not first.own.references:
        return [first]
    human = _offer(workspace, path, collection, HUMAN, columns)
    identified = first.own.by_rows and first.images.isdisjoint(human.images)
    return [first] if identified else [first, replace(human, beside=True)]


def outlines_of(workspace: Workspace, path: Path, collection: str) -> list[Offer]:
    """The outlines in a file of COCO's instances, for photographs: an offer beside its objects, if they can be read."""
    outlines = _offer(workspace, path, collection, SEGMENTS, None)
    return [replace(outlines, beside=True)] if outlines.preview else []


def _offer(
    workspace: Workspace,
    path: Path,
    collection: str,
    kind: str,
    columns: dict | None,
    references: pd.DataFrame | None = None,
) -> Offer:
    """A file as a kind, '' for the likely one; one that cannot be read so has the error in it."""
    path, own = Path(path), Likely(kind, "")
    name = suggested_name(path.stem)
    try:
        own = likely(path, columns)
        read = preview_import(workspace, path, kind or own.kind, collection, columns, references=references)
        if read.kind in (GENERATED, HUMAN) and not (own.references or read.prompts):
            found = kind_of_captions(own.kind, read.frame["image_id"].to_list())
            own = own if found == own.kind else replace(own, kind=found, human_by=BY_COUNT)
        if read.kind != (kind or own.kind):
            read = preview_import(workspace, path, own.kind, collection, columns)
        return Offer(path, read.kind, own, name, read, images=frozenset(read.frame["image_id"]))
    except CapbiasError as error:
        return Offer(path, kind or own.kind, own, name, None, error)


def references_among(offers: Sequence[Offer]) -> pd.DataFrame | None:
    """The human captions of some files whose images have ids, None where there are none."""
    human = [own.preview.frame for own in offers if own.kind == HUMAN and own.preview and not own.own.by_rows]
    return pd.concat(human) if human else None


def choose_references(offers: Sequence[Offer], kept: Mapping[str, set[str]]) -> list[Offer]:
    """The offers; human captions beside a model's are wanted only for images that have none elsewhere."""
    known = set(kept.get(HUMAN, ())).union(*(own.images for own in offers if own.kind == HUMAN and not own.beside))
    chosen = []
    for own in offers:
        beside = own.beside and own.kind == HUMAN
        chosen.append(replace(own, wanted=not own.images <= known) if beside else own)
        known |= own.images if beside else set()
    return chosen


def kept_images(workspace: Workspace, collection: str) -> dict[str, set[str]]:
    """The image ids that a collection holds, by kind; kinds without any are left out."""
    found = {kind: image_ids(workspace, kind, collection) for kind in (GENERATED, HUMAN, LABELS)}
    return {kind: images for kind, images in found.items() if images}


def in_common(offers: Sequence[Offer], kept: Mapping[str, set[str]]) -> dict[Key, int | None]:
    """How many images of each offer the files beside it, or those of the collection, know; None where there is nothing
    to compare with. kept: as `kept_images` has it."""
    found = {}
    for own in offers:
        beside = BESIDE.get(own.kind, ())
        known = [other.images for other in offers if other is not own and other.kind in beside and other.images]
        known += [kept[kind] for kind in beside if kind in kept]
        found[own.key] = len(own.images.intersection(set().union(*known))) if known and own.images else None
    return found


def guessed_columns(known: Collection[Attribute], frame: pd.DataFrame) -> dict[str, Attribute]:
    """Column -> the attribute that it holds, as `guess_attributes` finds it."""
    return guess_attributes(known, {column: frame[column].unique() for column in frame.columns if column != "image_id"})


def keep_offers(
    workspace: Workspace, collection: str, offers: Sequence[Offer], choices: Mapping[Key, Choices]
) -> list[Item]:
    """Keep files that could be read, labels first.

    Raises CapbiasError, and keeps none of them, where two would have one name, or a run reads what one would replace.
    """
    read = [part for own in offers for part in _parts(own, choices.get(own.key, Choices()))]
    if twice := same_names(read):
        raise CapbiasError(
            f"several files that would be called {', '.join(twice)}", "a name each", "Rename all but one."
        )
    for own in read:
        assert own.preview is not None
        workspace.check_replaceable(own.kind, own.name, own.preview.frame, collection)
    kept: list[Item] = []
    for own in sorted(read, key=lambda own: ORDER.index(own.kind)):
        kept += _keep(workspace, collection, own, choices.get(own.key, Choices()))
    return kept


def _parts(own: Offer, said: Choices) -> list[Offer]:
    """The sets that an offer is kept as; none of one that could not be read."""
    if own.preview is None:
        return []
    sets = caption_sets(own.preview, own.name, said.sets if own.kind == GENERATED else SAMPLES)
    return [replace(own, name=name, preview=part) for name, part in sets.items()]


def same_names(offers: Sequence[Offer]) -> list[str]:
    """Names that several files of one kind would have, so that the last would replace the others."""
    counts = Counter((own.kind, own.name) for own in offers)
    return [name for (_, name), count in counts.items() if count > 1]


def replaced(workspace: Workspace, collection: str, offers: Sequence[Offer]) -> list[str]:
    """Names of kept items whose place files of other content would take, so that their results would go."""
    kept = {(item.kind, item.name): item.hash for item in workspace.items(collection=collection)}
    found = []
    for own in offers:
        before = kept.get((own.kind, own.name))
        if before and own.preview and content_hash(own.preview.frame) != before:
            found.append(own.name)
    return found


def _keep(workspace: Workspace, collection: str, own: Offer, said: Choices) -> list[Item]:
    assert own.preview is not None
    if own.kind == LABELS:
        return keep_columns(workspace, own.preview.frame, own.name, collection, own.path.name, said.attributes)
    if own.kind in (OBJECTS, SEGMENTS):
        keep = keep_objects if own.kind == OBJECTS else keep_segments
        return [keep(workspace, own.preview, own.name, collection, own.path.name)]
    return [keep_captions(workspace, own.preview, own.name, collection, own.path.name, said.trained, **said.written)]
