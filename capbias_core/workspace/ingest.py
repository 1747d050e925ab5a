"""From a file to the workspace: read, report, keep. Nothing is kept before the user has seen the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.load import (
    read_attributes,
    read_captions,
    read_objects,
    report_attributes,
    report_captions,
    report_objects,
    report_segments,
)
from capbias_core.load.photographs import find_pictures, picture_files
from capbias_core.load.places import shown
from capbias_core.load.report import ImportReport
from capbias_core.prepare import derive_labels
from capbias_core.resources import DEMO_FOLDER
from capbias_core.types import PRECEDENCE, Attribute, Derivation, Table
from capbias_core.workspace.conditions import condition_details
from capbias_core.workspace.labels import DERIVED, mapping_details, suggested_details
from capbias_core.workspace.photographs import KIND, ORIGINALS
from capbias_core.workspace.store import Item, Workspace, content_hash
from capbias_core.workspace.tokens import keep_tokens
from capbias_core.workspace.vectors import look_up_new_words

DEMO = "demo"
DEFAULT_COLLECTION = "my captions"
LONGEST_NAME = 80
SETS = SAMPLES, EACH, BY_PROMPT = "samples", "each", "prompt"
TWINS = "twins"  # in the details of photographs: how many files are left out, as others are of the same image
SEGMENTS = "segments"  # the kind of items of outlines
LARGE_FILE = 20_000_000  # of a file of outlines with more bytes, only those of images that the collection has are kept


@dataclass(frozen=True)
class ImportPreview:
    """A file that was read and may be kept. prompts: the prompt of each caption, if they answer several."""

    kind: str
    frame: pd.DataFrame
    report: ImportReport
    prompts: tuple[str, ...] = ()


def image_ids(workspace: Workspace, kind: str, collection: str) -> set[str] | None:
    """The image ids of all items of a kind, None where there is no item."""
    items = workspace.items(kind, collection)
    return {image for item in items for image in workspace.frame(item.hash)["image_id"]} if items else None


def preview_import(
    workspace: Workspace,
    path: Path,
    kind: str,
    collection: str,
    columns: dict | None = None,
    table: Table | None = None,
    references: pd.DataFrame | None = None,
) -> ImportPreview:
    """Read a file as captions, references, attributes, objects or segments (outlines of objects), and report on it
    beside what the collection holds.

    columns: names for "image_id" and "caption", where they cannot be guessed. table: the captions of the file, where
    they were read already. references: human captions at hand besides those of the collection, by which images without
    ids are told apart. Raises CapbiasError for a wrong file.
    """
    path = Path(path)
    if kind == "attributes":
        table = read_attributes(path, (columns or {}).get("image_id"))
        report = report_attributes(table, path.name, image_ids(workspace, "captions", collection))
        return ImportPreview(kind, table.frame, report)
    if kind == "objects":
        objects = read_objects(path, (columns or {}).get("image_id"))
        report = report_objects(objects, path.name, image_ids(workspace, "attributes", collection))
        return ImportPreview(kind, objects.frame, report)
    if kind == SEGMENTS:
        return _offer_segments(workspace, path, collection)
    written_by = "reference" if kind == "references" else "generated"
    human = human_captions(workspace, collection) if kind == "captions" else None
    at_hand = [own for own in (human, references) if own is not None]
    table = table or read_captions(path, columns, written_by, pd.concat(at_hand) if at_hand else None)
    with_references = None if human is None else set(human["image_id"])
    report = report_captions(
        table, path.name, image_ids(workspace, "attributes", collection), with_references, written_by
    )
    return ImportPreview(kind, table.frame, report, table.prompts)


def human_captions(workspace: Workspace, collection: str) -> pd.DataFrame | None:
    """All human captions of a collection, None where it has none."""
    items = workspace.items("references", collection)
    return pd.concat([workspace.frame(item.hash) for item in items]) if items else None


def caption_sets(preview: ImportPreview, name: str, sets: str) -> dict[str, ImportPreview]:
    """The caption sets that a file is, by name. sets: what several captions of an image are, one of SETS.

    `samples`: samples of one set. `each`: the first captions of all images are a set, the second ones and so on.
    `prompt`: those of one prompt are. Raises CapbiasError for prompts of a file that has none.
    """
    if sets not in SETS:
        raise CapbiasError(f"--sets {sets!r}", f"one of: {', '.join(SETS)}", "Choose what captions of an image are.")
    frame = preview.frame
    if sets == BY_PROMPT and not preview.prompts:
        raise CapbiasError(
            f"{preview.report.file}, whose captions do not answer several prompts",
            "a column of prompts with two or more, such as prompt or question",
            "Take several captions of an image as samples, or a set each.",
        )
    if sets == SAMPLES:
        return {name: preview}
    of = frame["caption_index"].to_numpy() if sets == EACH else pd.factorize(pd.Series(preview.prompts))[0]
    stem = name if sets == EACH else f"{name} prompt"
    parts = {f"{stem} {number + 1}": frame[of == number] for number in range(of.max() + 1)}
    return {own: replace(preview, frame=_renumbered(part)) for own, part in parts.items()}


def _renumbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Captions of an image counted from 0."""
    frame = frame.reset_index(drop=True)
    return frame.assign(caption_index=frame.groupby("image_id", sort=False).cumcount())


def _offer_segments(workspace: Workspace, path: Path, collection: str) -> ImportPreview:
    from capbias_core.load.segments import segment_table  # with what draws outlines, which most pages never need

    photographs = image_ids(workspace, KIND, collection)
    wanted = (
        photographs or image_ids(workspace, "attributes", collection) or image_ids(workspace, "captions", collection)
    )
    large = path.is_file() and path.stat().st_size > LARGE_FILE
    table = segment_table(path, wanted if large else None)
    return ImportPreview(SEGMENTS, table.frame, report_segments(table, path.name, photographs))


def keep_segments(workspace: Workspace, offered: ImportPreview, name: str, collection: str, source: str) -> Item:
    """Keep the outlines of what images show."""
    return workspace.keep(SEGMENTS, name, offered.frame, collection, source)


def keep_captions(
    workspace: Workspace,
    offered: ImportPreview,
    name: str,
    collection: str,
    source: str,
    trained: bool | None = None,
    captioner: str = "",
    condition: str = "",
) -> Item:
    """Keep a caption set or references. trained: whether the model was trained on these references (None: not said).

    captioner, condition: who wrote a caption set, and what was masked on the photographs; '' for what its name
    suggests. Its new words are looked up in the collection's word vectors.
    """
    details = {}
    if offered.kind == "captions":
        details = {"trained_on_references": trained} | condition_details(name, captioner, condition)
    item = workspace.keep(offered.kind, name, offered.frame, collection, source, details)
    keep_tokens(workspace, item.hash, offered.frame)
    look_up_new_words(workspace, item.collection)
    return item


def keep_attributes(
    workspace: Workspace, frame: pd.DataFrame, name: str, collection: str, source: str, attributes: dict
) -> Item:
    """Keep an attribute table with its mapped attributes: {name: mapping_details(...)}.

    Those of the same table that were kept before, under the same name, stay.
    """
    if not attributes:
        raise CapbiasError(
            "an attribute table none of whose columns is mapped", "at least one mapped attribute", "Map a column."
        )
    for item in workspace.items("attributes", collection):
        if item.name == name and item.hash == content_hash(frame):
            attributes = item.details["attributes"] | attributes
    return workspace.keep("attributes", name, frame, collection, source, {"attributes": attributes})


def keep_columns(
    workspace: Workspace, frame: pd.DataFrame, name: str, collection: str, source: str, mapped: Sequence[dict]
) -> list[Item]:
    """Keep the columns of an attribute table that are mapped, each as mapping_details(...) has it.

    Several columns of one attribute are labels by several annotators: each is a table, called after its column, so
    that they can be compared.
    """
    names = [own["attribute"]["name"] for own in mapped]
    alone = {own: details for own, details in zip(names, mapped, strict=True) if names.count(own) == 1}
    tables = [(name, alone)] if alone or not mapped else []
    for own, details in zip(names, mapped, strict=True):
        if own not in alone:
            tables.append((f"{name} {details['column']}"[:LONGEST_NAME].strip(), {own: details}))
    return [keep_attributes(workspace, frame, called, collection, source, own) for called, own in tables]


def keep_objects(workspace: Workspace, offered: ImportPreview, name: str, collection: str, source: str) -> Item:
    """Keep the objects of images."""
    return workspace.keep("objects", name, offered.frame, collection, source)


@dataclass(frozen=True)
class Derived:
    """Labels made from human captions, which may be kept.

    frame: image_id and a column called as the attribute, '' where no caption names a value. counts: value -> images,
    in the order of the values. neither: images without a label, which are left out.
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
        """What captions call the images without a label."""
        none = "neither" if len(self.counts) == 2 else "none of them"
        agreed = self.attribute.derived and self.attribute.derived.both != PRECEDENCE
        return f"several or {none}" if agreed else none


def derive(workspace: Workspace, references: Item, attribute: Attribute) -> Derived:
    """Labels of images by the words of kept human captions. Nothing is kept."""
    frame = derive_labels(workspace.frame(references.hash), attribute)
    images = frame[attribute.name].value_counts().to_dict()
    counts = {value: images.get(value, 0) for value in attribute.values}
    return Derived(attribute, references, frame, counts, images.get("", 0))


def keep_derived(workspace: Workspace, derived: Derived, name: str = "") -> Item:
    """Keep derived labels as an attribute table beside their captions, with the rule that they were made by."""
    attribute, references = derived.attribute, derived.references
    rule = attribute.derived or Derivation()
    missing = [value for value, count in derived.counts.items() if not count]
    if missing:
        raise CapbiasError(
            f"human captions {references.name} ({shown(references.source)}), "
            f"by which no image is {' or '.join(missing)}",
            f"captions with words for each of {', '.join(attribute.values)}",
            f"Check the captions, and the words of {attribute.name}.",
        )
    mapping = {**{value: value for value in attribute.values}, **({"": None} if derived.neither else {})}
    details = {
        "attributes": {attribute.name: mapping_details(as_derived(attribute), attribute.name, mapping)},
        DERIVED: {"references": references.hash, "precedence": list(rule.precedence)}
        | {"at_least": rule.at_least, "both": rule.both},
    }
    name = name or f"{attribute.name} from {references.name}"[:LONGEST_NAME].strip()
    source = f"derived from {references.name}"
    return workspace.keep("attributes", name, derived.frame, references.collection, source, details)


def derive_missing(workspace: Workspace, collection: str, attribute: Attribute) -> Derived | None:
    """Labels from human captions, kept, where a collection has captions and human captions and no labels at all.

    None where it has labels or lacks the captions, and where no caption names one of the values.
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
    """The attribute with the title and the note of labels that were made from captions."""
    rule = attribute.derived or Derivation()
    note = f"{rule.note} By the rule, an image gets {rule.text}." if rule.note else attribute.note
    return replace(attribute, title=rule.title or attribute.title, note=note)


def outdated(workspace: Workspace, item: Item) -> bool:
    """Whether labels were derived from human captions that the collection no longer holds."""
    origin = item.details.get(DERIVED, {}).get("references")
    return bool(origin) and origin not in {own.hash for own in workspace.items("references", item.collection)}


def references_in(workspace: Workspace, collection: str, name: str) -> Item:
    """Human captions of a collection, from which labels can be derived. Raises CapbiasError where it has none."""
    if not workspace.items("references", collection):
        raise CapbiasError(
            f"the collection {collection!r}, which holds no human captions",
            "human captions, from whose words labels are derived",
            "Load them first, with the kind references.",
        )
    return workspace.item("references", name, collection)


def keep_images(
    workspace: Workspace, folder: Path, collection: str, name: str = ORIGINALS, details: dict | None = None
) -> Item:
    """Remember where photographs of a collection are; the photographs themselves stay where they are.

    details: of masked ones `condition`, and `of`, the name of the originals.
    """
    folder = Path(folder).expanduser().resolve()
    frame = find_pictures(folder)
    details = {"folder": str(folder), TWINS: len(picture_files(folder)) - len(frame), **(details or {})}
    return workspace.keep(KIND, name, frame, collection, str(folder), details)


def twins_text(photographs: Item) -> str:
    """A sentence on the files that were left out of kept photographs as others are of the same image, '' for none."""
    number = photographs.details.get(TWINS, 0)
    said = "1 file was" if number == 1 else f"{number:,} files were"
    return f"{said} left out: another has the same image id in its name." if number else ""


def picture_path(workspace: Workspace, collection: str, image_id: str) -> Path | None:
    """The photograph of an image, where there is one."""
    for item in workspace.items(KIND, collection):
        if "condition" in item.details:
            continue
        frame = workspace.frame(item.hash)
        for name in frame.loc[frame["image_id"] == image_id, "file"]:
            path = Path(item.details["folder"]) / name
            if path.is_file():
                return path
    return None


def load_demo(workspace: Workspace) -> None:
    """Keep the bundled demo data (made by scripts/demo.py) in the collection `demo`."""
    labels = read_attributes(DEMO_FOLDER / "attributes.csv").frame
    keep_attributes(workspace, labels, "labels", DEMO, "bundled", {"gender": suggested_details("gender", labels)})
    human = read_captions(DEMO_FOLDER / "references.json", kind="reference").frame
    workspace.keep("references", "human", human, DEMO, "bundled")
    keep_images(workspace, DEMO_FOLDER / "images", DEMO)
    outlines = preview_import(workspace, DEMO_FOLDER / "instances.json", SEGMENTS, DEMO)
    keep_segments(workspace, outlines, "outlines", DEMO, "bundled")
    for path in sorted((DEMO_FOLDER / "results").glob("*.json")):
        details = {"trained_on_references": True} | condition_details(path.stem)
        workspace.keep("captions", path.stem, read_captions(path).frame, DEMO, "bundled", details)
