"""From what is asked for to frozen, hashed runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

from capbias_core.attackers import attacker_entry
from capbias_core.attackers.device import training_options
from capbias_core.errors import CapbiasError
from capbias_core.measures import FAMILIES
from capbias_core.measures.base import ALL_IMAGES, CAPTIONER, EMPTY, JUDGE, SELF, WITH_REFERENCES, RunSpec
from capbias_core.metrics import METRICS, expand_metrics, run_family
from capbias_core.types import Attribute
from capbias_core.workspace.labels import attribute_of, labels_for
from capbias_core.workspace.models import ENCODER, encoder_option
from capbias_core.workspace.objects import COLUMN, OBJECTS, _annotated, _fullest, object_sources
from capbias_core.workspace.person_regions import PEOPLE, resolve_person_regions
from capbias_core.workspace.photographs import MADE_BY, PHOTOGRAPHS, frozen_photographs, made_from, masked_so
from capbias_core.workspace.store import Item, Workspace


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
        frozen = resolve_person_regions(workspace, request.collection, request.options.get(PEOPLE, ""))
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
