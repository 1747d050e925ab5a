"""The inputs of a question: files are stored, names are looked up, and what does not belong together is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import (
    BOXES,
    CAPTIONS,
    LABELS,
    OBJECTS,
    REFERENCES,
    SEGMENTS,
    VECTORS,
    kind_title,
)
from capbias_core.load.checks import refuse
from capbias_core.load.photographs import find_pictures
from capbias_core.load.places import checked_path
from capbias_core.prepare.align import DELTA
from capbias_core.question import Question
from capbias_core.types import Attribute, Progress, silent
from capbias_core.whole_files import typed_path
from capbias_core.workspace.conditions import CUT
from capbias_core.workspace.content import content_of
from capbias_core.workspace.derived import derivable, derive, keep_derived
from capbias_core.load.columns import Wanted
from capbias_core.load.read import Part, read
from capbias_core.workspace.ingest import WARNINGS, read_part, store
from capbias_core.workspace.labels import (
    attribute_of,
    compared_lines,
    dropped_line,
    table_with,
    tables_with,
)
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.objects import (
    CONFIDENCE,
    WEIGHTS,
    Detections,
    about_boxes,
    boxes_of,
    keep_objects_of,
    weights_option,
)
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.spec import ModelReference, RunSpec
from capbias_core.workspace.store import Workspace, checked_name, default_folder, suggested_name
from capbias_core.workspace.vectors import CONSTANT, alignment_option, keep_vectors, offer_vectors

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Files:
    """The parts of the files of a question: its captions, and what belongs to them."""

    captions: list[Part]
    references: Part | None
    objects: Part | None
    labels: Part | None  # with its mapping; None if labels are derived from the references


def read_files(question: Question, tell: Tell, own_attributes: Path | None = None) -> Files:
    """Read the files of a question. tell: gets each line for the user. own_attributes: a folder of the user's TOML
    files. Raises CapbiasError for anything that cannot be read or does not belong together."""
    attribute = _defined(question, own_attributes)
    wanted = Wanted(attribute.name if attribute else question.attribute, attribute)
    result = read(question.files, question.given, [wanted], values=question.values, needed=True)
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
    _check_swapped(captions, references, tell)
    return Files(captions, references, objects[0] if objects else None, labels)


def _kinds(parts: Sequence[Part]) -> dict[str, list[str]]:
    """File -> what it holds, each kind once."""
    kinds: dict[str, dict[str, None]] = {}
    for part in parts:
        kinds.setdefault(part.title, {})[kind_title(part.kind)] = None
    return {title: list(names) for title, names in kinds.items()}


def _check_swapped(captions: Sequence[Part], references: Part | None, tell: Tell) -> None:
    if references is None or (references.frame["caption_index"] > 0).any():
        return
    for part in captions:
        if (part.frame["caption_index"] > 0).any():
            tell(
                f"warning: {part.title} has several captions per image and {references.title} has one. Are captions and "
                "references swapped?"
            )


def resolve(
    workspace: Workspace,
    question: Question,
    tell: Tell,
    progress: Progress = silent,
    own_attributes: Path | None = None,
) -> Question:
    """The question with names of stored items: its files are stored, its names are looked up. Raises as `read_files`."""
    if not question.files:
        return _by_name(workspace, question, tell, own_attributes)
    files = read_files(question, tell, own_attributes)
    captions, references, objects, labels = files.captions, files.references, files.objects, files.labels
    items = store(workspace, question.collection, [part for part in (labels, references, objects, *captions) if part])
    names = {kind: [item.name for item in items if item.kind == kind] for kind in (CAPTIONS, REFERENCES, OBJECTS)}
    if labels:
        attribute = labels.mapping[0]["attribute"]["name"]
        tables = (item for item in items if item.kind == LABELS and attribute in item.details["attributes"])
        table = next(tables).name
    else:
        rule = derivable(question.attribute, own_attributes)
        assert references is not None and rule is not None
        derived = derive(workspace, workspace.item(REFERENCES, names[REFERENCES][0], question.collection), rule)
        tell(derived.line(references.title))
        table, attribute = keep_derived(workspace, derived).name, rule.name
    options = dict(question.options)
    if folder := options.get("photographs"):
        # Named as the folder is, so that results name the masked photographs that a judge saw.
        options["photographs"] = suggested_name(checked_path(folder).resolve().name)
        keep_images(workspace, checked_path(folder), question.collection, options["photographs"])
    if (people := options.get("people")) is not None:
        path = typed_path(people) if isinstance(people, str | os.PathLike) else None
        kind = SEGMENTS if path and path.suffix.lower() == ".json" else BOXES
        part = read_part(path or people, kind, "" if path and path.suffix else "people")
        warn([part], tell)
        options["people"] = store(workspace, question.collection, [part])[0].name
    if question.weights:
        names[OBJECTS] = [_detect_objects(workspace, question, tell, progress)]
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
        refuse(findings, name)
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


def _detect_objects(workspace: Workspace, question: Question, tell: Tell, progress: Progress) -> str:
    """The name of the stored objects that a detector finds on the photographs; its boxes are stored too."""
    folder = question.options.get("photographs")
    if any(OBJECTS in file.kinds for file in question.files) or not folder:
        raise CapbiasError(
            "A detector finds objects on photographs if no objects are given.",
            "Give photographs, and either a detector or objects.",
            "photographs",
            "weights",
            "objects",
        )
    # A download outlives this workspace.
    option = weights_option(workspace, question.weights, default_folder() / WEIGHTS)
    pictures = find_pictures(checked_path(folder))
    files = {
        image: checked_path(folder) / name for image, name in zip(pictures["image_id"], pictures["file"], strict=True)
    }
    boxes = looked_at(workspace, files, option, CONFIDENCE, tell, progress)
    item = workspace.keep(BOXES, OBJECTS, boxes.frame, question.collection, *about_boxes(boxes, option, CONFIDENCE))
    return keep_objects_of(workspace, item).name


def looked_at(
    workspace: Workspace,
    files: Mapping[str, Path],
    option: ModelReference,
    confidence: float,
    tell: Tell,
    progress: Progress = silent,
) -> Detections:
    """The boxes of photographs. option: what `weights_option` gave. Raises CapbiasError if none can be read."""
    boxes = boxes_of(workspace.folder, files, resolve_model(workspace, option), confidence, progress)
    for name, error in boxes.refused.items():
        tell(f"left out: {name}: {error}")
    if not boxes.read:
        raise CapbiasError(f"None of {len(files):,} photographs can be read.", "The lines above say why.")
    tell(
        f"{len(boxes.frame):,} boxes on {len(boxes.read):,} photographs by {option['name']}; {boxes.computed:,} "
        f"detected now, {len(boxes.read) - boxes.computed:,} before"
    )
    return boxes


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
