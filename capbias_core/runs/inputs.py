"""The inputs of a question: files are stored, names are looked up, and what does not belong together is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capbias_core.attributes import get_attribute, known_attributes
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
from capbias_core.load.checks import findings, refuse
from capbias_core.load.columns import Wanted
from capbias_core.load.photographs import find_pictures
from capbias_core.load.places import checked_path
from capbias_core.load.read import Part
from capbias_core.load.read import read as read_parts
from capbias_core.prepare.align import DELTA
from capbias_core.question import Question
from capbias_core.types import Attribute, Progress, counted, silent
from capbias_core.whole_files import typed_path
from capbias_core.workspace.conditions import CUT
from capbias_core.workspace.content import content_of
from capbias_core.workspace.derived import as_derived, check_derived, derivable, derive, derive_from, keep_derived
from capbias_core.workspace.ingest import WARNINGS, item_name, name_conflicts, read_part, store
from capbias_core.workspace.labels import (
    attribute_of,
    compared_lines,
    dropped_line,
    labels_for,
    mapped_attribute,
    table_with,
    tables_with,
)
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.objects import (
    BARE,
    CONFIDENCE,
    WEIGHTS,
    Detections,
    about_boxes,
    boxes_of,
    keep_objects_of,
    objects_shown,
    weights_option,
)
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.sources import InHand, Stored
from capbias_core.workspace.spec import AlignmentReference, ModelReference, RunSpec
from capbias_core.workspace.store import Workspace, default_folder
from capbias_core.workspace.vectors import CONSTANT, alignment_option, keep_vectors, look_up, offer_vectors, words_in

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Files:
    """The parts of the files of a question: its captions, and what belongs to them."""

    captions: list[Part]
    references: Part | None
    objects: Part | None
    labels: Part | None  # with its mapping; None if labels are derived from the references
    people: Part | None


def read_files(question: Question, tell: Tell, own_attributes: Path | None = None) -> Files:
    """Read the files of a question. tell: gets each line for the user. own_attributes: a folder of the user's TOML
    files. Raises CapbiasError for anything that cannot be read or does not belong together."""
    attribute = _defined(question, own_attributes)
    wanted = Wanted(attribute.name if attribute else question.attribute, attribute)
    result = read_parts(question.files, question.given, [wanted], values=question.values, needed=True)
    parts = [part for part in result.parts if part.kind != SEGMENTS]
    tell("; ".join(f"{title}: {' and '.join(kinds)}" for title, kinds in _kinds(parts).items()))
    warn(parts, tell)
    objects = [part for part in parts if part.kind == OBJECTS]
    if len(objects) > 1:
        titles = ", ".join(part.title for part in objects)
        raise CapbiasError(f"Several files hold objects: {titles}.", "Name the file to use.", "objects")
    references, labels = (next((part for part in parts if part.kind == kind), None) for kind in (REFERENCES, LABELS))
    if references and references.beside:
        tell(f"note: human captions are those in {references.title}")
    if labels:
        details = labels.mapping[0]
        tell(f"labels: {details['attribute']['name']} from the column {details['column']} of {labels.title}")
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
    captions = [part for part in parts if part.kind == CAPTIONS]
    images = frozenset[str]().union(*(part.images for part in captions))
    for part in objects:
        if not part.images & images:
            shown = f"({min(part.images, default='none')} here, {min(images, default='none')} there)"
            raise CapbiasError(
                f"No image of {part.title} is in {captions[0].title} {shown}.",
                "Check that the files belong together.",
                "objects",
            )
    _compare_with_people(captions, references, tell)
    everything = [part for part in (labels, references, *objects, *captions) if part]
    if twice := name_conflicts(everything):
        raise CapbiasError(f"Several files would be called {', '.join(twice)}.", "Give each another name.")
    people = None
    if (source := question.options.get("people")) is not None:
        path = typed_path(source) if isinstance(source, str | os.PathLike) else None
        kind = SEGMENTS if path and path.suffix.lower() == ".json" else BOXES
        people = read_part(path or source, kind, "" if path and path.suffix else "people")
        warn([people], tell)
    return Files(captions, references, objects[0] if objects else None, labels, people)


def _kinds(parts: Sequence[Part]) -> dict[str, list[str]]:
    """File -> what it holds, each kind once."""
    kinds: dict[str, dict[str, None]] = {}
    for part in parts:
        kinds.setdefault(part.title, {})[kind_title(part.kind)] = None
    return {title: list(names) for title, names in kinds.items()}


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


def read(
    question: Question, tell: Tell, progress: Progress = silent, own_attributes: Path | None = None
) -> tuple[Data, Question]:
    """The data in the files of a question, and the question by their names. Nothing is stored. Raises as
    `read_files`."""
    files, sources = read_files(question, tell, own_attributes), InHand()
    sets = {item_name(part): part.frame for part in files.captions}
    human = _frame_of(files.references)
    references = Captions(item_name(files.references), lambda: human, key=HUMAN_KEY) if files.references else None
    if files.labels:
        table, details = _frame_of(files.labels), files.labels.mapping[0]
        attribute = mapped_attribute(details)
        labels = labels_for(table, attribute, details["column"], details["mapping"]).values
        name = item_name(files.labels)
    else:
        rule = derivable(question.attribute, own_attributes)
        assert references is not None and files.references is not None and rule is not None
        derived = derive_from(references.frame, rule)
        tell(derived.line(files.references.title))
        check_derived(derived, references.name)
        attribute, table = as_derived(rule), derived.frame
        labels = labels_for(table, attribute, rule.name, {value: value for value in rule.values}).values
        name = f"{rule.name} from {references.name}"
    objects = _frame_of(files.objects)
    if objects is None and OBJECTS in table.columns:
        objects = table
    captions = {each: Captions(each, lambda frame=frame: frame) for each, frame in sets.items()}
    options = dict(question.options)
    if folder := options.get("photographs"):
        # Named as the folder is, so that results name the masked photographs that a judge saw.
        folder = checked_path(folder).resolve()
        options["photographs"] = suggested_name(folder.name)
        sources.add_photographs(folder, options["photographs"])
    if files.people:
        options["people"] = item_name(files.people)
        sources.add_people(_frame_of(files.people), options["people"], files.people.kind)
    if question.weights:
        boxes, option = _detected(sources, question, tell, progress)
        objects = objects_shown(boxes.frame, about_boxes(boxes, option, CONFIDENCE)[1][BARE], OBJECTS)
    if question.alignment != CONSTANT:
        texts = [*sets.values(), *([human] if human is not None else [])]
        options["alignment"] = _aligned_by(sources, question, words_in(texts), tell)
    read = objects.set_index("image_id")[OBJECTS] if objects is not None else None
    data = Data(
        attribute,
        lambda: labels,
        captions,
        references,
        None if read is None else lambda: read,
        sources,
        objects_key={} if read is None else {"table": OBJECTS, "column": OBJECTS},
    )
    for each in captions.values():
        found = findings(each.frame, attribute, labels, human)
        refuse(found, each.name, question.options.get("shuffled", False))
        for finding in found:
            tell(f"warning: {each.name}: {finding.text}")
    resolved = replace(
        question,
        captions=tuple(captions),
        labels=name,
        attribute=attribute.name,
        references=references.name if references else "",
        objects=OBJECTS if files.objects or question.weights else "",
        options=options,
        files=(),
    )
    return data, resolved


HUMAN_KEY = "human captions"  # how runs on data in hand name these, whatever captioners are called


def _frame_of(part: Part | None) -> Any:
    return part.frame if part else None


def resolve(
    workspace: Workspace,
    question: Question,
    tell: Tell,
    progress: Progress = silent,
    own_attributes: Path | None = None,
) -> Question:
    """The question with names of stored items: files are stored, names are looked up. Raises as `read_files`."""
    if not question.files:
        return _by_name(workspace, question, tell, own_attributes)
    files, collection = read_files(question, tell, own_attributes), question.collection
    parts = [part for part in (files.labels, files.references, files.objects, *files.captions) if part]
    items = store(workspace, collection, parts)
    names = {kind: [item.name for item in items if item.kind == kind] for kind in (CAPTIONS, REFERENCES, OBJECTS)}
    if files.labels:
        attribute = files.labels.mapping[0]["attribute"]["name"]
        tables = (item for item in items if item.kind == LABELS and attribute in item.details["attributes"])
        table = next(tables).name
    else:
        rule = derivable(question.attribute, own_attributes)
        assert files.references is not None and rule is not None
        derived = derive(workspace, workspace.item(REFERENCES, names[REFERENCES][0], collection), rule)
        tell(derived.line(files.references.title))
        table, attribute = keep_derived(workspace, derived).name, rule.name
    options = dict(question.options)
    if folder := options.get("photographs"):
        options["photographs"] = suggested_name(checked_path(folder).resolve().name)
        keep_images(workspace, checked_path(folder), collection, options["photographs"])
    if files.people:
        options["people"] = store(workspace, collection, [files.people])[0].name
    if question.weights:
        boxes, option = _detected(Stored(workspace), question, tell, progress)
        item = workspace.keep(BOXES, OBJECTS, boxes.frame, collection, *about_boxes(boxes, option, CONFIDENCE))
        names[OBJECTS] = [keep_objects_of(workspace, item).name]
    resolved = replace(
        question,
        captions=tuple(names[CAPTIONS]),
        labels=table,
        attribute=attribute,
        references="".join(names[REFERENCES][:1]),
        objects="".join(names[OBJECTS][:1]),
        options=options | _alignment(workspace, question, tell),
        files=(),
    )
    _check_content(workspace, resolved, tell)
    return resolved


def _check_content(workspace: Workspace, question: Question, tell: Tell) -> None:
    """Tell what the content checks find in captions with their labels and human captions. Raises CapbiasError if they
    are not to be scored."""
    collection = question.collection
    names_values, where = attribute_of(workspace.item(LABELS, question.labels, collection), question.attribute)
    human = question.references
    references = workspace.item(REFERENCES, human, collection).hash if human else ""
    for name in question.captions:
        captions = workspace.item(CAPTIONS, name, collection).hash
        findings = content_of(workspace, RunSpec("", 0, name, captions, references, where, names_values.stored()))
        refuse(findings, name, question.options.get("shuffled", False))
        for each in findings:
            tell(f"warning: {name}: {each.text}")


# names of items


def _by_name(workspace: Workspace, question: Question, tell: Tell, own_attributes: Path | None) -> Question:
    """All captions if none is named, the newest table with the attribute, the only references."""
    collection, attribute = question.collection, question.attribute
    if collection not in workspace.collections():
        raise unknown_name("collection", collection, workspace.collections())
    items = workspace.items(collection=collection)
    tables = [item for item in items if item.kind == LABELS]
    if question.labels:
        if question.labels not in [item.name for item in tables]:
            raise unknown_name("table of labels", question.labels, [item.name for item in tables])
        tables = [item for item in tables if item.name == question.labels]
    if not tables_with(tables, attribute) and derivable(attribute, own_attributes):
        raise CapbiasError(
            f"No table of the collection {collection!r} has labels of {attribute!r}.",
            f"Derive them from human captions: capbias labels derive {attribute} --references NAME "
            f'--collection "{collection}"',
        )
    table = table_with(tables, attribute).name
    if others := [item.name for item in tables if attribute in item.details["attributes"] and item.name != table]:
        tell(f"labels of {attribute}: {table}; not used: {', '.join(others)}")
    captions = question.captions or tuple(
        item.name for item in items if item.kind == CAPTIONS and CUT not in item.details
    )
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
    resolved = replace(
        question,
        captions=captions,
        labels=table,
        references=question.references or "".join(human),
        options=question.options | _alignment(workspace, question, tell),
    )
    _check_content(workspace, resolved, tell)
    return resolved


# files


def _defined(question: Question, own_attributes: Path | None) -> Attribute | None:
    """The attribute that the question names; None for a column of the labels."""
    defined = question.attribute in known_attributes(own_attributes) or question.attribute.endswith(".toml")
    return get_attribute(question.attribute, own_attributes) if defined else None


def warn(parts: Iterable[Part], tell: Tell) -> None:
    """Send each account, warning and note of parts once, with the files that it is about."""
    files: dict[str, dict[str, None]] = {}
    for part in parts:
        account = ["; ".join(f"{label[0].lower()}{label[1:]}: {text}" for label, text in part.account)]
        for name, texts in (("read", filter(None, account)), ("warning", part.told), ("note", part.notes)):
            for text in texts:
                files.setdefault(f"{name}: {{}}: {text}", {})[part.title] = None
    for line, names in files.items():
        tell(line.replace("{}", ", ".join(names), 1))


# photographs


def _detected(sources: Any, question: Question, tell: Tell, progress: Progress) -> tuple[Detections, ModelReference]:
    """The boxes that a detector finds on the photographs, and the detector."""
    folder = question.options.get("photographs")
    if any(OBJECTS in file.kinds for file in question.files) or not folder:
        raise CapbiasError(
            "A detector finds objects on photographs if no objects are given.",
            "Give photographs, and either a detector or objects.",
            "photographs",
            "weights",
            "objects",
        )
    # A download outlives data in hand.
    option = weights_option(sources, question.weights, default_folder() / WEIGHTS)
    pictures = find_pictures(checked_path(folder))
    files = {
        image: checked_path(folder) / name for image, name in zip(pictures["image_id"], pictures["file"], strict=True)
    }
    boxes = boxes_of(sources.folder, files, resolve_model(sources, option), CONFIDENCE, progress)
    for name, error in boxes.refused.items():
        tell(f"left out: {name}: {error}")
    if not boxes.read:
        raise CapbiasError(f"None of {len(files):,} photographs can be read.", "The lines above say why.")
    tell(
        f"{len(boxes.frame):,} boxes on {len(boxes.read):,} photographs by {option['name']}; {boxes.computed:,} "
        f"detected now, {len(boxes.read) - boxes.computed:,} before"
    )
    return boxes, option


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
    tell(f"{item.name}: {item.details['found']:,} of {item.rows:,} words of the captions have a vector")
    return {"alignment": alignment_option(item, DELTA if question.delta is None else question.delta)}


def _aligned_by(sources: InHand, question: Question, words: set[str], tell: Tell) -> AlignmentReference:
    """The choice `alignment` of measures of data in hand, whose words are looked up in the vectors."""
    offered = look_up(checked_path(question.vectors or ""), words)
    tell(f"{offered.name}: {offered.found:,} of {len(offered.frame):,} words of the captions have a vector")
    sources.add(offered.frame, offered.hash)
    return alignment_option(offered, DELTA if question.delta is None else question.delta)
