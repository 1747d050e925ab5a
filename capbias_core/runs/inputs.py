"""The inputs of a question: files are stored, names are looked up, and what does not belong together is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attributes import attribute_folder
from capbias_core.data import Captions, Data
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import (
    BOXES,
    CAPTIONS,
    LABELS,
    OBJECTS,
    REFERENCES,
    SEGMENTS,
    VECTORS,
    checked_name,
    kind_title,
    suggested_name,
)
from capbias_core.load.checks import refuse
from capbias_core.load.columns import Wanted
from capbias_core.load.places import checked_path
from capbias_core.load.read import Part
from capbias_core.load.read import read as read_parts
from capbias_core.prepare.align import DELTA
from capbias_core.question import Question
from capbias_core.runs.plan import load_asked
from capbias_core.types import Attribute, counted
from capbias_core.whole_files import typed_path
from capbias_core.workspace.content import content_of
from capbias_core.workspace.derived import (
    Derived,
    as_derived,
    check_derived,
    defined,
    derivable,
    derive_from,
    keep_derived,
)
from capbias_core.workspace.ingest import WARNINGS, item_name, name_conflicts, read_part, store
from capbias_core.workspace.labels import (
    compared_lines,
    dropped_line,
    labels_for,
    mapped_attribute,
    table_with,
    tables_with,
)
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.sources import InHand
from capbias_core.workspace.spec import AlignmentReference
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.vectors import (
    CONSTANT,
    OfferedVectors,
    alignment_option,
    keep_vectors,
    look_up,
    offer_vectors,
    words_in,
)

Tell = Callable[[str], None]
HUMAN_KEY = "human captions"  # how runs on data in hand name these, whatever captioners are called


@dataclass(frozen=True)
class Files:
    """What the files of a question hold: its captions, and what belongs to them."""

    captions: list[Part]
    references: Part | None
    objects: Part | None
    labels: Part | None  # None if they are derived from the references
    derived: Derived | None
    attribute: Attribute  # as its labels give it
    values: pd.Series  # the label of each image
    people: Part | None
    photographs: Path | None
    options: dict[str, Any]  # of the question, which name photographs and people as items are named

    def question(self, asked: Question, labels: str, options: Mapping[str, Any]) -> Question:
        """The question by the names of what the files hold."""
        return replace(
            asked,
            captions=tuple(map(item_name, self.captions)),
            labels=labels,
            attribute=self.attribute.name,
            references=item_name(self.references) if self.references else "",
            objects=item_name(self.objects) if self.objects else "",
            options={**self.options, **options},
            files=(),
        )


def read_files(question: Question, tell: Tell, own_attributes: Path | None = None) -> Files:
    """Read the files of a question. tell: gets each line for the user. own_attributes: a folder of the user's TOML
    files. Raises CapbiasError for anything that cannot be read or does not belong together."""
    attribute = defined(question.attribute, own_attributes)
    wanted = Wanted(attribute.name if attribute else question.attribute, attribute)
    result = read_parts(question.files, question.given, [wanted], values=question.values, needed=True)
    parts = [part for part in result.parts if part.kind != SEGMENTS]
    warn(parts, tell)
    captions, every = result.of(CAPTIONS), result.of(OBJECTS)
    if len(every) > 1:
        titles = ", ".join(part.title for part in every)
        raise CapbiasError(f"Several files hold objects: {titles}.", "Name the file to use.", "objects")
    references, labels, objects = (next(iter(result.of(kind)), None) for kind in (REFERENCES, LABELS, OBJECTS))
    if references and references.beside:
        tell(f"note: human captions are those in {references.title}")
    derived, people, photographs = None, None, None
    if labels:
        details = labels.mapping[0]
        table, column, mapping = labels.frame, details["column"], details["mapping"]
        of_labels = mapped_attribute(details)
        tell(f"labels: {of_labels.name} from the column {column} of {labels.title}")
        for line in [*compared_lines(labels.frame, details, own_attributes), dropped_line(labels.frame, details)]:
            tell(line)
    elif question.values or question.given.attribute_column:
        raise CapbiasError(
            f"Only a table of labels has columns and values to choose; labels of {wanted.name} are derived.",
            "Name a table of labels, or leave the choice out.",
            "labels",
            "values",
            "attribute_column",
        )
    else:
        assert references and attribute
        derived = derive_from(references.frame, attribute)
        tell(derived.line(references.title))
        check_derived(derived, item_name(references))
        of_labels, column = as_derived(attribute), attribute.name
        table, mapping = derived.frame, {value: value for value in attribute.values}
    images = frozenset[str]().union(*(part.images for part in captions))
    if objects and not objects.images & images:
        shown = f"({min(objects.images, default='none')} here, {min(images, default='none')} there)"
        raise CapbiasError(
            f"No image of {objects.title} is in {captions[0].title} {shown}.",
            "Check that the files belong together.",
            "objects",
        )
    _compare_with_people(captions, references, tell)
    if twice := name_conflicts([part for part in (labels, references, objects, *captions) if part]):
        raise CapbiasError(f"Several files would be called {', '.join(twice)}.", "Give each another name.")
    options = dict(question.options)
    if (source := options.get("people")) is not None:
        path = typed_path(source) if isinstance(source, str | os.PathLike) else None
        kind = SEGMENTS if path and path.suffix.lower() == ".json" else BOXES
        people = read_part(path or source, kind, "" if path and path.suffix else "people")
        warn([people], tell)
        options["people"] = item_name(people)
    if options.get("photographs"):
        photographs = checked_path(options["photographs"]).resolve()
        # Named as the folder is, so that results name the masked photographs that a judge saw.
        options["photographs"] = suggested_name(photographs.name)
    values = labels_for(table, of_labels, column, mapping).values
    return Files(captions, references, objects, labels, derived, of_labels, values, people, photographs, options)


def _compare_with_people(captions: Sequence[Part], references: Part | None, tell: Tell) -> None:
    if references is None:
        return
    lacking: dict[str, list[str]] = {}
    for part in captions:
        if lost := len(part.images - references.images):
            lacking.setdefault(f"{lost:,} of {counted(len(part.images), 'image')}", []).append(part.name)
    for images, names in lacking.items():
        tell(f"warning: {', '.join(names)}: {images} have no human captions and count for LIC_M only.")
    if (references.frame["caption_index"] > 0).any():
        return
    for part in captions:
        if (part.frame["caption_index"] > 0).any():
            tell(
                f"warning: {part.title} has several captions per image and {references.title} has one. "
                "Are captions and references swapped?"
            )


def read(question: Question, tell: Tell) -> tuple[Data, Question]:
    """The data in the files of a question, and the question by their names. Nothing is stored. Raises as
    `read_files`."""
    sources = InHand()
    files = read_files(question, tell)
    frames = {item_name(part): part.frame for part in files.captions}
    human = files.references.frame if files.references else None
    with_objects = files.labels if files.labels and OBJECTS in files.labels.frame else None
    source = files.objects or with_objects
    objects = source.frame if source else None
    if files.photographs:
        sources.add_photographs(files.photographs, files.options["photographs"])
    if files.people:
        sources.add_people(files.people.frame, files.options["people"], files.people.kind)
    options = {}
    if question.alignment != CONSTANT:
        words = words_in([*frames.values(), *([human] if human is not None else [])])
        offered = look_up(checked_path(question.vectors or ""), words)
        sources.add(offered.frame, offered.hash)
        options["alignment"] = _aligned_by(offered, offered.found, len(offered.frame), question, tell)
    read = None if objects is None else objects.set_index("image_id")[OBJECTS]
    data = Data(
        files.attribute,
        lambda: files.values,
        {name: Captions(name, lambda frame=frame: frame) for name, frame in frames.items()},
        Captions(item_name(files.references), lambda: human, key=HUMAN_KEY) if files.references else None,
        None if read is None else lambda: read,
        sources,
        objects_key={} if read is None else {"table": OBJECTS, "column": OBJECTS},
    )
    origin = files.labels or files.references
    assert origin
    labels = item_name(origin) if files.labels else f"{files.attribute.name} from {item_name(origin)}"
    resolved = files.question(question, labels, options)
    _check_content(data, resolved, tell)
    return data, resolved


def resolve(workspace: Workspace, question: Question, tell: Tell) -> Question:
    """The question with names of stored items: files are stored, names are looked up. Raises as `read_files`."""
    if not question.files:
        resolved = _by_name(workspace, question, tell)
    else:
        collection = question.collection
        files = read_files(question, tell, attribute_folder(workspace.folder))
        parts = (files.labels, files.references, files.objects, files.people, *files.captions)
        items = store(workspace, collection, [part for part in parts if part])
        if files.derived:
            human = next(item for item in items if item.kind == REFERENCES)
            labels = keep_derived(workspace, replace(files.derived, references=human)).name
        else:  # of tables by several annotators the first
            tables = (item for item in items if item.kind == LABELS)
            labels = next(table.name for table in tables if files.attribute.name in table.details["attributes"])
        if files.photographs:
            keep_images(workspace, files.photographs, collection, files.options["photographs"])
        resolved = files.question(question, labels, _alignment(workspace, question, tell))
    _check_content(load_asked(workspace, resolved), resolved, tell)
    return resolved


def _check_content(data: Data, question: Question, tell: Tell) -> None:
    """Tell what the content checks find in captions with their labels and human captions. Raises CapbiasError if they
    are not to be scored."""
    for captions in data.captions.values():
        found = content_of(data, captions)
        refuse(found, captions.name, question.options.get("shuffled", False))
        for each in found:
            tell(f"warning: {captions.name}: {each.text}")


# names of items


def _by_name(workspace: Workspace, question: Question, tell: Tell) -> Question:
    """All captions if none is named, the newest table with the attribute, the only references."""
    collection, attribute = question.collection, question.attribute
    if collection not in workspace.collections():
        raise unknown_name("collection", collection, workspace.collections())
    items = workspace.items(collection=collection)
    tables = [item for item in items if item.kind == LABELS]
    tables = [workspace.item(LABELS, question.labels, collection)] if question.labels else tables
    if not tables_with(tables, attribute) and derivable(attribute, attribute_folder(workspace.folder)):
        raise CapbiasError(
            f"No table of the collection {collection!r} has labels of {attribute!r}.",
            f"Derive them from human captions: capbias labels derive {attribute} --references NAME "
            f'--collection "{collection}"',
        )
    table = table_with(tables, attribute).name
    if others := [item.name for item in tables if attribute in item.details["attributes"] and item.name != table]:
        tell(f"labels of {attribute}: {table}; not used: {', '.join(others)}")
    captions = question.captions or tuple(item.name for item in items if item.kind == CAPTIONS)
    human = [item.name for item in items if item.kind == REFERENCES]
    if not question.references and len(human) > 1:
        raise CapbiasError(
            f"{collection} has {len(human)} sets of references: {', '.join(human)}.",
            "Name the set to compare with.",
            "references",
        )
    for item in items:
        for warning in item.details.get(WARNINGS, ()) if item.kind == CAPTIONS and item.name in captions else ():
            tell(f"warning: {item.name}: {warning}")
    return replace(
        question,
        captions=captions,
        labels=table,
        references=question.references or "".join(human),
        options=question.options | _alignment(workspace, question, tell),
    )


# files


def warn(parts: Iterable[Part], tell: Tell) -> None:
    """Send each account, warning and note of parts once, with the files that it is about."""
    files: dict[str, dict[str, None]] = {}
    for part in parts:
        account = (f"{label[0].lower()}{label[1:]}: {text}" for label, text in part.account)
        told = {"read": ["; ".join([kind_title(part.kind), *account])], "warning": part.told, "note": part.notes}
        for name, texts in told.items():
            for text in texts:
                files.setdefault(f"{name}: {{}}: {text}", {})[part.title] = None
    for line, names in files.items():
        tell(line.replace("{}", ", ".join(names), 1))


# alignment


def _alignment(workspace: Workspace, question: Question, tell: Tell) -> dict[str, Any]:
    """The choice `alignment` of measures. The words of the stored captions are looked up in the vectors first."""
    collection = question.collection
    if question.alignment == CONSTANT:
        return {}
    if question.files:
        path = checked_path(question.vectors or "")
        name = checked_name(path.stem)
        item = keep_vectors(workspace, offer_vectors(workspace, path, collection), name, collection)
    else:
        names = [item.name for item in workspace.items(VECTORS, collection)]
        if not question.vectors and len(names) != 1:
            raise CapbiasError(
                f"{collection} has {len(names)} files of word vectors ({', '.join(names) or 'none'}).",
                "Name the file to use, or import one: capbias import --kind vectors FILE.",
                "vectors",
            )
        item = workspace.item(VECTORS, question.vectors or names[0], collection)
    return {"alignment": _aligned_by(item, item.details["found"], item.rows, question, tell)}


def _aligned_by(
    vectors: Item | OfferedVectors, found: int, words: int, question: Question, tell: Tell
) -> AlignmentReference:
    tell(f"{vectors.name}: {found:,} of {words:,} words of the captions have a vector")
    return alignment_option(vectors, DELTA if question.delta is None else question.delta)
