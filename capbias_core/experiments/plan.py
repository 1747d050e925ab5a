"""From what is asked for to frozen, hashed runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from capbias_core.attackers import attacker_entry
from capbias_core.attackers.device import training_options
from capbias_core.attributes import known_attributes, plain_attribute, read_attribute, suggest_mapping
from capbias_core.errors import CapbiasError
from capbias_core.experiments.families import FAMILIES
from capbias_core.experiments.models import ENCODER, encoder_option
from capbias_core.experiments.people import PEOPLE, frozen_people
from capbias_core.experiments.photographs import PHOTOGRAPHS, frozen_photographs, made_from, masked_so
from capbias_core.experiments.store import Item, Workspace
from capbias_core.metrics import METRICS, expand_metrics, run_family
from capbias_core.types import Attribute

# Raised when a change of the code changes the numbers, so that earlier runs are not taken for its own.
PROTOCOL = 7

ALL_IMAGES, WITH_REFERENCES = "", "with_references"
OBJECTS = "objects"
JUDGE, SELF = "judge", "self"  # a family and its option; that a captioner judges its own captions
RUN = "run"  # the key in an item's details for the run that made it
CAPTIONER = "captioner"  # the option that names one
# The key in a caption set's details for the captioner and the photographs that it was made with, as runs say them.
MADE_BY = "made_by"
MOST_IMAGES = "most_images"  # the option that limits how many a run reads
COLUMN = "column objects of the labels"
FOUND_BY = "found_by"  # the key in the details of objects that a detector found: the name of its boxes

EMPTY = {"references": "", "attacker": "", "seeds": (0,), "condition": ALL_IMAGES, "merge_masks": False}
TEST_SHARE = {ALL_IMAGES: 0.1, WITH_REFERENCES: 0.2}


@dataclass(frozen=True)
class RunSpec:
    """One run, with everything that its numbers depend on.

    family: a name in FAMILIES. captions, references: content hashes. labels: {'table': hash, 'column': name,
    'mapping': {raw label: value or None}}. attribute: the Attribute as a dict. objects: {'table': hash, 'column':
    name} of the objects of each image, {} for none. options: those of the request that its family reads.
    """

    family: str
    model: str
    captions: str
    references: str
    labels: dict
    attribute: dict
    attacker: str
    seeds: tuple[int, ...]
    condition: str
    merge_masks: bool
    objects: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    protocol: int = PROTOCOL

    @cached_property
    def run_id(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @classmethod
    def from_dict(cls, data: dict) -> RunSpec:
        return cls(**{**data, "seeds": tuple(data["seeds"])})


@dataclass(frozen=True)
class Request:
    """What a user asks for, by name. references: name, or '' for none. words: also per-caption scores and words.

    objects: a name in `object_sources`, or '' for the one where most labelled images have objects. options: further
    choices by the key under which families read them; see FAMILIES.
    """

    collection: str
    captions: tuple[str, ...]
    table: str
    attribute: str
    metrics: tuple[str, ...]
    references: str = ""
    attacker: str = "ngram"
    seeds: int = 10
    merge_masks: bool = False
    words: bool = False
    objects: str = ""
    options: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Labels:
    """An attribute together with the labels of images. values: Series image_id -> value of the attribute.

    dropped: raw label -> number of images dropped because the user mapped it to nothing.
    """

    attribute: Attribute
    values: pd.Series
    dropped: dict[str, int]


def attribute_of(table: Item, name: str) -> tuple[Attribute, dict]:
    """The attribute called `name` in an attribute table, and where its labels are (for RunSpec.labels).

    The mapping kept with the table is used. Raises CapbiasError where the table has no such attribute.
    """
    mapped = table.details.get("attributes", {})
    if name not in mapped:
        raise CapbiasError(
            f"attribute {name!r} in the table {table.name!r}",
            f"one of: {', '.join(mapped) or 'none is mapped'}",
            "Map a column to it on the Data page, or name another attribute.",
        )
    entry = mapped[name]
    return attribute_from(entry["attribute"]), {
        "table": table.hash,
        "column": entry["column"],
        "mapping": entry["mapping"],
    }


def attribute_from(data: dict) -> Attribute:
    """The Attribute whose fields are in a dict, as kept in JSON (lists become tuples again)."""
    return Attribute(**{key: _tupled(value) for key, value in data.items()})


def _tupled(value):
    if isinstance(value, list):
        return tuple(value)
    return {key: _tupled(item) for key, item in value.items()} if isinstance(value, dict) else value


def find_attribute(
    name: str, columns, raw: dict[str, dict[str, int]], column: str | None = None, folder: Path | None = None
) -> tuple[Attribute, str]:
    """The attribute meant by a name (shipped, of the folder, a TOML file, or a column) and the column that holds it.

    raw: column -> {raw label: count}. column: where the user says it is. folder: attributes of the user's own.
    """
    known = known_attributes(folder)
    if name in known or name.endswith(".toml"):
        attribute = known[name] if name in known else read_attribute(Path(name))
        if column:
            return attribute, column
        by_lower = {column.lower(): column for column in columns}
        for candidate in (*attribute.columns, attribute.name):
            if candidate.lower() in by_lower:
                return attribute, by_lower[candidate.lower()]
        raise CapbiasError(
            f"an attribute table with the columns {', '.join(columns)}",
            f"a column for {attribute.name}, called {' or '.join(attribute.columns)}",
            "Rename the column, or name it with --attribute-column.",
        )
    if column:
        return plain_attribute(name, tuple(sorted(label for label in raw[column] if label))), column
    if name not in columns:
        raise CapbiasError(
            f"attribute {name!r}",
            f"a known attribute ({', '.join(known)}), a TOML file, or a column of the table ({', '.join(columns)})",
            "Check the spelling.",
        )
    return plain_attribute(name, tuple(sorted(label for label in raw[name] if label))), name


def mapping_details(attribute: Attribute, column: str, mapping: dict[str, str | None]) -> dict:
    """What is kept with an attribute table for one mapped attribute."""
    if len(attribute.values) < 2:
        raise CapbiasError(
            f"the column {column!r} with {len(attribute.values)} different labels",
            "a protected attribute of two values or more",
            "Choose another column.",
        )
    used = set(mapping.values()) - {None}
    if not used >= set(attribute.values):
        missing = [value for value in attribute.values if value not in used]
        raise CapbiasError(
            f"a mapping of the column {column!r} under which no label becomes {' or '.join(missing)}",
            f"labels for each of {', '.join(attribute.values)}",
            "Map at least one label to every value, or choose another column.",
        )
    return {"column": column, "mapping": mapping, "attribute": asdict(attribute)}


def suggested_details(name: str, frame: pd.DataFrame, column: str | None = None) -> dict:
    """A mapping suggested from names and aliases: for an attribute (shipped, a TOML file, or a column's name), and
    the column that holds it where its name does not tell."""
    columns = [item for item in frame.columns if item != "image_id"]
    if column and column not in columns:
        raise CapbiasError(f"column {column!r}", f"one of: {', '.join(columns)}", "Check the spelling.")
    raw = {item: frame[item].value_counts().to_dict() for item in columns}
    attribute, column = find_attribute(name, columns, raw, column)
    return mapping_details(attribute, column, suggest_mapping(attribute, raw[column]))


def labels_for(frame: pd.DataFrame, attribute: Attribute, column: str, mapping: dict) -> Labels:
    """Labels of images from a raw attribute table; raw labels mapped to nothing are dropped, and counted."""
    values = frame[column].map(mapping)
    kept = values.isin(attribute.values)
    dropped = frame.loc[~kept, column].value_counts().to_dict()
    series = pd.Series(values[kept].to_numpy(dtype=object), index=frame.loc[kept, "image_id"].to_numpy(dtype=object))
    return Labels(attribute, series, dropped)


def compares(metric: str) -> bool:
    """Whether a metric needs the human captions of the same images."""
    return bool(METRICS[metric].of) or metric.endswith("_D") or FAMILIES[METRICS[metric].family].compares


def plan(workspace: Workspace, request: Request) -> list[RunSpec]:
    """The runs that answer a request: one caption set, attribute, metric family, attacker and condition each.

    With references for all labelled images one attack run a set gives LIC_M, LIC_D and LIC (90/10). With
    references for a part of them there are two: LIC_M on all images, and the rest on the images with references
    (80/20). A set of other images than the references gets what needs none.
    """
    if request.seeds < 1:
        raise CapbiasError(f"{request.seeds} seeds", "1 or more", "The papers use 10.")
    if not request.captions:
        raise CapbiasError("no caption set", "at least one", "Choose the captioners to score.")
    request = _with_encoder(workspace, request)
    table = workspace.item("attributes", request.table, request.collection)
    attribute, where = attribute_of(table, request.attribute)
    families = {run_family(name) for name in expand_metrics(request.metrics)}
    for name in sorted(families & {family.name for family in FAMILIES.values() if family.freezes}):
        request = replace(request, options=FAMILIES[name].module.freeze(workspace, request.options, attribute))
    if any(FAMILIES[name].people for name in families):
        frozen = frozen_people(workspace, request.collection, request.options.get(PEOPLE, ""))
        request = replace(request, options=request.options | {PEOPLE: frozen})
    references = workspace.item("references", request.references, request.collection) if request.references else None
    items = [workspace.item("captions", name, request.collection) for name in request.captions]
    conditions = _conditions(workspace, items, references, where, attribute) if references else {}
    objects = _objects(workspace, request, table) if any(FAMILIES[name].objects for name in families) else {}
    common = {"labels": where, "attribute": asdict(attribute), "objects": objects}
    specs: list[RunSpec] = []
    for item in items:
        own = {**common, "model": item.name, "captions": item.hash}
        condition = conditions.get(item.name)
        against = {"references": references.hash, "condition": condition} if condition is not None else {}
        for family in FAMILIES:  # in the order of that table
            if family in families and (against or not FAMILIES[family].compares):
                asked = _with_photographs(workspace, request, item) if FAMILIES[family].photographs else request
                asked = OWN[family](workspace, asked, item) if family in OWN else asked
                specs += _runs(family, asked, own, against)
        if request.words:
            specs.append(_spec("captions", request, own))
    if request.words and references:
        specs.append(_spec("captions", request, {**common, "model": references.name, "captions": references.hash}))
    return specs


def _with_encoder(workspace: Workspace, request: Request) -> Request:
    """The attacker as results name it, and the digest of its pretrained encoder where it has one."""
    entry = attacker_entry(request.attacker)
    if not entry.model:
        return request
    return replace(request, attacker=entry.name, options=request.options | {ENCODER: encoder_option(workspace, entry)})


def _judged(workspace: Workspace, request: Request, item: Item) -> Request:
    """The captioner that wrote a set as its own judge, where that is asked for."""
    if request.options.get(JUDGE) != SELF:
        return request
    wrote = _writer(item, "--judge")
    return replace(request, options=request.options | {JUDGE: wrote | {SELF: True}})


def _explained(workspace: Workspace, request: Request, item: Item) -> Request:
    """The captioner whose words are explained: as asked for, else the one that wrote the set."""
    if CAPTIONER in request.options:
        return request
    return replace(request, options=request.options | {CAPTIONER: _writer(item, f"--{CAPTIONER}")})


def _writer(item: Item, option: str) -> dict:
    """The captioner that wrote a set. Raises CapbiasError for a set from a file: which weights wrote it is not known.

    option: where a captioner is named in a terminal.
    """
    if MADE_BY not in item.details:
        raise CapbiasError(
            f"captions of {item.name} to be read by the captioner that wrote them, which is not known here",
            "captions that were made by `caption` in this collection",
            f"Name the captioner: {option} FOLDER.",
        )
    return item.details[MADE_BY][CAPTIONER]


# Families whose captioner may be the one that wrote each set.
OWN = {JUDGE: _judged, "attribution": _explained}


def _with_photographs(workspace: Workspace, request: Request, item: Item) -> Request:
    """The photographs that a caption set is read with: as asked for, else those that it was made from; of a set from
    a file, those masked as its condition says."""
    asked = request.options.get(PHOTOGRAPHS)
    if not asked and MADE_BY in item.details:
        asked = made_from(workspace, request.collection, item.details[MADE_BY][PHOTOGRAPHS])
    asked = asked or masked_so(workspace, request.collection, item.details.get("condition"))
    frozen = frozen_photographs(workspace, request.collection, asked)
    return replace(request, options=request.options | {PHOTOGRAPHS: frozen})


def object_sources(workspace: Workspace, collection: str, table: Item) -> dict[str, str]:
    """Where the objects of images may be read: kept files by name, and COLUMN for the attribute table; their hashes."""
    found = {item.name: item.hash for item in workspace.items(OBJECTS, collection)}
    return found | ({COLUMN: table.hash} if OBJECTS in workspace.frame(table.hash).columns else {})


def _objects(workspace: Workspace, request: Request, table: Item) -> dict:
    """Where the objects are (for RunSpec.objects): as asked for, else where most labelled images have some."""
    sources = object_sources(workspace, request.collection, table)
    if request.objects and request.objects not in sources:
        workspace.item(OBJECTS, request.objects, request.collection)
    if not request.objects:
        sources = _annotated(workspace, request.collection, sources)
    files = [name for name in sources if name != COLUMN]
    if len(files) > 1 and not request.objects:
        raise CapbiasError(
            f"{len(files)} files of objects in {request.collection} ({', '.join(files)})",
            "one of them",
            "Choose one on the Scores page, or with --objects in a terminal; or delete the others.",
        )
    chosen = request.objects or _fullest(workspace, sources, table)
    return {"table": sources[chosen], "column": OBJECTS} if chosen else {}


def _annotated(workspace: Workspace, collection: str, sources: dict[str, str]) -> dict[str, str]:
    """Those of these sources that people annotated; where there is none, those that a detector found."""
    found = {item.name for item in workspace.items(OBJECTS, collection) if FOUND_BY in item.details}
    return {name: digest for name, digest in sources.items() if name not in found} or sources


def reads_its_column(workspace: Workspace, collection: str, table: Item) -> bool:
    """Whether runs on a table of labels read its own column of objects, where no objects are asked for."""
    sources = _annotated(workspace, collection, object_sources(workspace, collection, table))
    return _fullest(workspace, sources, table) == COLUMN


def _fullest(workspace: Workspace, sources: dict[str, str], table: Item) -> str:
    """The source that has objects of most labelled images, '' where there is none; counted once."""
    if len(sources) < 2:
        return next(iter(sources), "")

    def count() -> dict[str, int]:
        labelled = set(workspace.frame(table.hash)["image_id"])
        return {own: len(labelled & set(workspace.frame(own)["image_id"])) for own in sources.values()}

    counts = workspace.derived(f"objects of {table.hash}: {' '.join(sorted(sources.values()))}", count)
    return max(sources, key=lambda name: counts[sources[name]])


def _runs(family: str, request: Request, own: dict, against: dict) -> list[RunSpec]:
    """A family's runs on one set: two for one with both sides where a part of the images has references, else one."""
    if FAMILIES[family].both_sides:
        part = against.get("condition") == WITH_REFERENCES
        return [_spec(family, request, own | given) for given in ([{}, against] if part else [against])]
    return [_spec(family, request, own | (against if FAMILIES[family].compares else {}))]


def _spec(name: str, request: Request, own: dict) -> RunSpec:
    """A run with those of the request's choices that its numbers depend on."""
    family = FAMILIES[name]
    attacked = {"attacker": request.attacker, "merge_masks": request.merge_masks} if family.attacked else {}
    if family.seeded:
        attacked["seeds"] = tuple(range(request.seeds))
    with_key = {ENCODER: family.attacked, PHOTOGRAPHS: family.photographs, PEOPLE: family.people}
    keys = (*family.options, *(key for key, has in with_key.items() if has))
    chosen = {key: request.options[key] for key in keys if key in request.options}
    if not own.get("references"):
        chosen.pop("alignment", None)  # what is aligned is human captions
    chosen = training_options(chosen, family.attacked and attacker_entry(request.attacker).in_process)
    own = own | {"objects": own["objects"] if family.objects else {}}
    return RunSpec(**{**EMPTY, **own, **attacked, "family": name, "options": chosen})


def _conditions(
    workspace: Workspace, items: list[Item], references: Item, where: dict, attribute: Attribute
) -> dict[str, str]:
    """For each set whether all of its labelled images have references, or a part; sets without any are left out.

    Raises CapbiasError where no set has any.
    """
    counts = {item.name: _coverage(workspace, item, references, where, attribute) for item in items}
    if not any(covered for _, covered in counts.values()):
        name, (captioned, _) = next(iter(counts.items()))
        raise CapbiasError(
            f"references {references.name}, which have none of the {captioned:,} labelled images of {name}",
            "human captions of the same images",
            "Check the image ids of both files, or choose no references.",
        )
    return {
        name: ALL_IMAGES if covered == captioned else WITH_REFERENCES
        for name, (captioned, covered) in counts.items()
        if covered
    }


def _coverage(workspace: Workspace, item: Item, references: Item, where: dict, attribute: Attribute) -> list[int]:
    """How many labelled images have captions, and how many of those have references; counted once."""

    def count() -> list[int]:
        labels = labels_for(workspace.frame(where["table"]), attribute, where["column"], where["mapping"]).values
        captioned = set(workspace.frame(item.hash)["image_id"]) & set(labels.index)
        return [len(captioned), len(captioned & set(workspace.frame(references.hash)["image_id"]))]

    return workspace.derived(f"coverage {item.hash} {references.hash} {json.dumps(where, sort_keys=True)}", count)
