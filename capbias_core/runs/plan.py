"""From what is asked for to frozen, hashed runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, partial
from typing import NamedTuple

from capbias_core.attackers import DEFAULT_ATTACKER, attacker_entry, need_packages
from capbias_core.attackers.device import AUTO, DEVICES
from capbias_core.attributes import lacking_words
from capbias_core.errors import CapbiasError, flag_name, installed, missing_extra, unknown_name
from capbias_core.measures.base import Measure, Metric
from capbias_core.measures.options import Attacked, OnDevice, Options, PeopleMarked, Photographed
from capbias_core.measures.registry import MEASURES, METRICS, expand_metrics, measure_of, needs_references
from capbias_core.runs.run import needs_workers
from capbias_core.types import Attribute
from capbias_core.workspace.labels import attribute_of, labels_for
from capbias_core.workspace.models import encoder_option
from capbias_core.workspace.objects import OBJECTS, chosen_objects
from capbias_core.workspace.person_regions import resolve_person_regions
from capbias_core.workspace.photographs import MADE_BY, frozen_photographs, made_from, masked_so
from capbias_core.workspace.spec import ALL_IMAGES, WITH_REFERENCES, PhotographsReference, RunSpec, attribute_from
from capbias_core.workspace.store import Item, Workspace, images_in

# The measure whose runs give scores and words of each caption, beside whatever is asked for.
PER_CAPTION = "caption_scores"


class Lack(NamedTuple):
    """What an input would have to be for a metric. arguments: of `capbias.score` that give it."""

    text: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What a user asks for, by name. references: name, or '' for none. words: also per-caption scores and words.

    metrics: groups or names. seeds: None for the usual number of each measure. objects: a name in `object_sources`, or
    '' for the one where most labelled images have objects. options: further choices by the name of the field in a
    measure's Options.
    """

    collection: str
    captions: tuple[str, ...]
    table: str
    attribute: str
    metrics: tuple[str, ...]
    references: str = ""
    attacker: str = DEFAULT_ATTACKER
    seeds: int | None = None
    merge_masks: bool = False
    words: bool = False
    objects: str = ""
    options: dict = field(default_factory=dict)

    @property
    def choices(self) -> dict:
        """Every choice by the name of its field."""
        named = {"attacker": self.attacker, "merge_masks": self.merge_masks}
        return named | ({} if self.seeds is None else {"seeds": self.seeds}) | self.options


def plan(workspace: Workspace, request: Request) -> list[RunSpec]:
    """The runs that answer a request: one caption set, attribute, measure, attacker and coverage each.

    With references for all labelled images one run of a measure that scores both sides gives LIC_M, LIC_D and LIC. With
    references for a part of them there are two: LIC_M on all images, and everything on the images with references. A
    set of other images than the references gets what needs none. Raises CapbiasError for choices that no measure has,
    or that are not allowed. A run whose device is left open is the one that finished on a device by its name.
    """
    if not request.captions:
        raise CapbiasError("No captions are chosen.", "Choose one captioner or more.")
    _check_known(request.options)
    table = workspace.item("attributes", request.table, request.collection)
    attribute, where = attribute_of(table, request.attribute)
    metrics = expand_metrics(request.metrics) if request.metrics or not request.words else ()
    names = {measure_of(name).name for name in metrics}
    chosen = {name: _options(workspace, request, MEASURES[name], attribute) for name in MEASURES if name in names}
    references = workspace.item("references", request.references, request.collection) if request.references else None
    items = [workspace.item("captions", name, request.collection) for name in request.captions]
    coverage = _coverages(workspace, items, references, where, attribute) if references else {}
    objects = _objects(workspace, request, table) if any(MEASURES[name].needs.objects for name in names) else {}
    common = {"labels": where, "attribute": asdict(attribute)}
    scores = MEASURES[PER_CAPTION]
    of_captions = _options(workspace, request, scores, attribute) if request.words else None
    specs: list[RunSpec] = []
    for item in items:
        of_set = {**common, "model": item.name, "captions": item.hash}
        part = coverage.get(item.name)
        against = {"references": references.hash, "coverage": part} if references and part is not None else {}
        for name, options in chosen.items():
            measure = MEASURES[name]
            if against or not measure.compares:
                options = _of_set(workspace, request, measure, options, item)
                reads = {"objects": objects} if measure.needs.objects else {}
                specs += _runs(measure, options, of_set | reads, against)
        if of_captions:
            specs.append(spec_of(scores, of_captions, of_set))
    if of_captions and references:
        human = {**common, "model": references.name, "captions": references.hash}
        specs.append(spec_of(scores, of_captions, human))
    return _where_finished(workspace, specs)


def spec_of(measure: Measure, options: Options, further: dict) -> RunSpec:
    """A run of a measure. further: the other fields of RunSpec."""
    changed = {"alignment": None} if measure.aligned and not further.get("references") else {}  # nothing to align
    chosen = options.effective().with_(**changed).to_dict()
    return RunSpec(measure.name, measure.version_with(chosen.get("attacker", "")), options=chosen, **further)


def _where_finished(workspace: Workspace, specs: list[RunSpec]) -> list[RunSpec]:
    """The same runs; in place of one whose device is left open, one that has finished on a device that was named."""
    named = {
        spec.run_id: [replace(spec, options={**spec.options, "device": device}) for device in DEVICES if device != AUTO]
        for spec in specs
        if _device_is_open(spec)
    }
    known = workspace.runs_of([*named, *(run.run_id for others in named.values() for run in others)])

    def finished(spec: RunSpec) -> bool:
        return spec.run_id in known and known[spec.run_id].status == "finished"

    return [next((run for run in (spec, *named.get(spec.run_id, ())) if finished(run)), spec) for spec in specs]


def _device_is_open(spec: RunSpec) -> bool:
    """Whether a run computes with networks, on whatever device there is."""
    named = spec.options.keys() & {"device", "deterministic"}
    return issubclass(MEASURES[spec.measure].options, OnDevice) and needs_workers(spec) and not named


def useful(specs: Sequence[RunSpec], request: Request) -> tuple[list[RunSpec], dict[Lack, list[str]]]:
    """The runs that give something that was asked for, and what cannot be had: reason -> names of metrics.

    Raises CapbiasError if that is everything.
    """
    kept: set[str] = set()
    reasons: dict[Lack, list[str]] = {}
    for name in expand_metrics(request.metrics):
        able = [spec for spec in specs if spec.measure == measure_of(name).name]
        giving = [spec for spec in able if not lacks(METRICS[name], spec)]
        kept |= {spec.run_id for spec in giving}
        for reason in _why_not(name, able, giving, request):
            reasons.setdefault(reason, []).append(name)
    if not kept:
        arguments = dict.fromkeys(name for lack in reasons for name in lack.arguments)
        raise CapbiasError(
            "None of the metrics can be measured.", f"{'. '.join(left_out(reasons, False))}.", *arguments
        )
    return [spec for spec in specs if spec.run_id in kept or spec.measure == PER_CAPTION], reasons


def left_out(reasons: dict[Lack, list[str]], flags: bool = True) -> list[str]:
    """A line for each reason: `LIC, LIC_D left out: human captions are needed (--references)`. flags: name flags."""
    lines = []
    for lack, names in reasons.items():
        named = ", ".join(map(flag_name, lack.arguments if flags else ()))
        lines.append(f"{', '.join(names)} left out: {lack.text}" + (f" ({named})" if named else ""))
    return lines


def _why_not(name: str, able: list[RunSpec], giving: list[RunSpec], request: Request) -> Iterable[Lack]:
    if needs_references(name) and not request.references:
        return [Lack("human captions are needed", ("references",))]
    had = {spec.model for spec in giving}
    reasons = [lacks(METRICS[name], spec) for spec in able if spec.model not in had]
    planned = {spec.model for spec in able}
    if lost := [model for model in request.captions if model not in planned]:
        reasons.append(Lack(f"no labelled image of {', '.join(lost)} has references"))
    return dict.fromkeys(lack for lack in reasons if lack)


def lacks(metric: Metric, spec: RunSpec) -> Lack | None:
    """What a run would need to give a metric; None if nothing."""
    attribute, measure = attribute_from(spec.attribute), MEASURES[spec.measure]
    if missing := [name for name in measure.packages if not installed(name)]:
        return Lack(str(missing_extra(missing, "it")))
    for needs in (measure.needs, metric.needs):
        if needs.words and (reason := lacking_words(attribute, needs.words == "every")):
            return Lack(reason)
        if needs.values and len(attribute.values) != needs.values:
            return Lack(f"{attribute.name} has {len(attribute.values)} values, and {metric.name} is of {needs.values}")
        if needs.vectors and not spec.options.get("alignment"):
            return Lack("word vectors and contextual alignment are needed", ("vectors", "alignment"))
        if needs.objects == "required" and not spec.objects:
            return Lack("the objects of the images are not known", ("objects",))
        if needs.model and not spec.options.get(needs.model):
            return lacking_model(needs.model)
        if needs.references == "required" and not spec.references:
            return Lack(f"no labelled image of {spec.model} has references")
    return None


def lacking_model(model: str) -> Lack:
    """What a metric lacks that needs a pretrained model, such as `language_model`."""
    return Lack(f"a {model.replace('_', ' ')} is needed", (model,))


def _check_known(options: dict) -> None:
    known = {option.name for measure in MEASURES.values() for option in fields(measure.options)}
    known |= {"photographs", "people"}
    for name in options:
        if name not in known:
            raise unknown_name("option", name, sorted(known))


def _options(workspace: Workspace, request: Request, measure: Measure, attribute: Attribute) -> Options:
    """A request's choices for a measure; what they name by file or name stands by its content."""
    options = measure.options.read(request.choices)
    if isinstance(options, Attacked):
        entry = attacker_entry(options.attacker)
        need_packages(entry)
        if entry.model:
            options = options.with_(attacker=entry.name, encoder=encoder_option(workspace, entry))
    if measure.needs.people and isinstance(options, PeopleMarked):
        people = resolve_person_regions(workspace, request.collection, options.people or "")
        options = options.with_(people=people)
    return measure.freeze(workspace, request.collection, options, attribute)


def _of_set(workspace: Workspace, request: Request, measure: Measure, options: Options, item: Item) -> Options:
    """A measure's choices for one caption set."""
    if measure.needs.photographs and isinstance(options, Photographed):
        options = options.with_(photographs=_photographs(workspace, request, options.photographs, item))
    return measure.for_set(workspace, options, item)


def _photographs(
    workspace: Workspace, request: Request, asked: str | PhotographsReference | None, item: Item
) -> PhotographsReference:
    """The photographs that a caption set is read with: as asked for, else those that it was made from; of a set from
    a file, those masked as its condition says."""
    if not asked and MADE_BY in item.details:
        asked = made_from(workspace, request.collection, item.details[MADE_BY]["photographs"])
    asked = asked or masked_so(workspace, request.collection, item.details.get("condition"))
    return frozen_photographs(workspace, request.collection, asked)


def _objects(workspace: Workspace, request: Request, table: Item) -> dict:
    """Where the objects are (for RunSpec.objects): as asked for, else where most labelled images have some."""
    chosen = chosen_objects(workspace, request.collection, table, request.objects)
    return {"table": chosen, "column": OBJECTS} if chosen else {}


def _runs(measure: Measure, options: Options, further: dict, against: dict) -> list[RunSpec]:
    """A measure's runs on one set: two for one with both sides where a part of the images has references, else one."""
    if measure.both_sides:
        part = against.get("coverage") == WITH_REFERENCES
        return [spec_of(measure, options, further | given) for given in ([{}, against] if part else [against])]
    return [spec_of(measure, options, further | (against if measure.compares else {}))]


def _coverages(
    workspace: Workspace, items: list[Item], references: Item, where: dict, attribute: Attribute
) -> dict[str, str]:
    """For each set whether all of its labelled images have references, or a part; sets without any are left out.

    How many labelled images have captions, and how many of those references, is counted once. Raises CapbiasError where
    no set has any.
    """

    @cache
    def labelled() -> set[str]:
        frame = workspace.frame(where["table"])
        return set(labels_for(frame, attribute, where["column"], where["mapping"]).values.index)

    @cache
    def referred() -> set[str]:
        return images_in(workspace.frame(references.hash))

    def count(item: Item) -> list[int]:
        captioned = images_in(workspace.frame(item.hash)) & labelled()
        return [len(captioned), len(captioned & referred())]

    of = f"{references.hash} {json.dumps(where, sort_keys=True)}"
    counts = {item.name: workspace.derived(f"coverage {item.hash} {of}", partial(count, item)) for item in items}
    if not any(covered for _, covered in counts.values()):
        name, (captioned, _) = next(iter(counts.items()))
        raise CapbiasError(
            f"The references {references.name} have none of the {captioned:,} labelled images of {name}.",
            "Check the image ids of both files, or choose no references.",
        )
    return {
        name: ALL_IMAGES if covered == captioned else WITH_REFERENCES
        for name, (captioned, covered) in counts.items()
        if covered
    }
