"""From a question to frozen, hashed runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from capbias_core.aggregate import Metric
from capbias_core.attackers import attacker_entry
from capbias_core.attributes import lacking_words
from capbias_core.data import Captions, Data
from capbias_core.errors import CapbiasError, flag_name, installed, missing_extra, need
from capbias_core.measures.base import Measure
from capbias_core.measures.options import Attacked, Options, PeopleMarked, Photographed
from capbias_core.measures.protocols import chosen_beside_usual
from capbias_core.measures.registry import (
    MEASURES,
    METRICS,
    check_choices,
    expand_metrics,
    measure_of,
    needs_references,
)
from capbias_core.question import Question
from capbias_core.workspace.models import encoder_option
from capbias_core.workspace.sources import load
from capbias_core.workspace.spec import ALL_IMAGES, WITH_REFERENCES, RunSpec, attribute_from
from capbias_core.workspace.store import Workspace

PER_CAPTION = "caption_scores"  # the measure that gives scores and words of each caption
WORDS_COMPARED = "word_comparison"  # the measure that compares words with those of human captions


def plan(workspace: Workspace, question: Question, refused: dict[str, CapbiasError] | None = None) -> list[RunSpec]:
    """The runs that answer a question about items of a workspace. As `runs_for`."""
    if not question.captions:
        raise CapbiasError("No captions are chosen.", "Choose one captioner or more.")
    return runs_for(load_asked(workspace, question), question, refused)


def load_asked(workspace: Workspace, question: Question) -> Data:
    """What a question names in a workspace."""
    metrics = expand_metrics(question.metrics) if question.metrics or not question.words else ()
    objects = question.objects if any(measure_of(name).needs.objects for name in metrics) else None
    named = question.captions, question.labels, question.attribute, question.references
    return load(workspace, question.collection, *named, objects)


def runs_for(data: Data, question: Question, refused: dict[str, CapbiasError] | None = None) -> list[RunSpec]:
    """The runs that answer a question: one captioner, measure, attacker and coverage each.

    With references for all labelled images one run of a measure that scores both sides gives LIC_M, LIC_D and LIC. With
    references for a part of them there are two: LIC_M on all images, and everything on the images with references. Sets
    without any image of the references get what needs none. refused: gets the error of each attacker that cannot be
    planned, by name, if another can. Raises CapbiasError for choices that no measure has, or that are not allowed.
    """
    specs: dict[str, RunSpec] = {}
    errors: dict[str, CapbiasError] = {}
    for name in question.attacker:
        try:
            specs |= {spec.run_id: spec for spec in _runs_for(data, replace(question, attacker=(name,)))}
        except CapbiasError as error:
            errors[name] = error
    if errors and (refused is None or not specs):
        raise next(iter(errors.values()))
    if refused is not None:
        refused |= errors
    return list(specs.values())


def _runs_for(data: Data, question: Question) -> list[RunSpec]:
    """The runs of one attacker."""
    check_choices(question.choices)
    references = data.references if question.references else None
    metrics = expand_metrics(question.metrics) if question.metrics or not question.words else ()
    names = {measure_of(name).name for name in metrics}
    chosen = {name: _options(data, question, MEASURES[name]) for name in MEASURES if name in names}
    needed = not question.words or any(map(needs_references, metrics))  # words can be scored without
    coverage = _coverages(data, references, needed) if references else {}
    common = {"labels": dict(data.labels_key), "attribute": data.attribute.stored()}
    scores = MEASURES[PER_CAPTION]
    of_captions = _options(data, question, scores) if question.words else None
    specs: list[RunSpec] = []
    for captions in data.captions.values():
        of_set = {**common, "model": captions.name, "captions": captions.key}
        part = coverage.get(captions.name)
        against = {"references": references.key, "coverage": part} if references and part is not None else {}
        for name, options in chosen.items():
            measure = MEASURES[name]
            if measure.compares and not against:
                continue
            if measure.needs.photographs and isinstance(options, Photographed):
                options = options.with_(photographs=data.sources.choose_photographs(options.photographs, captions))
            options = measure.for_set(options, captions)
            inputs = of_set | ({"objects": dict(data.objects_key)} if measure.needs.objects else {})
            if measure.both_sides and part == WITH_REFERENCES:
                specs.append(spec_of(measure, options, inputs))
            specs.append(
                spec_of(measure, options, inputs | (against if measure.both_sides or measure.compares else {}))
            )
        if of_captions:
            specs.append(spec_of(scores, of_captions, of_set))
            if references and part is not None:
                compared = {**of_set, "references": references.key}  # on the images with human captions, in any case
                specs.append(spec_of(MEASURES[WORDS_COMPARED], of_captions, compared))
    if of_captions and references:
        human = {**common, "model": references.name, "captions": references.key}
        specs.append(spec_of(scores, of_captions, human))
    return specs


def spec_of(measure: Measure, options: Options, inputs: dict) -> RunSpec:
    """A run of a measure. inputs: the other fields of RunSpec."""
    changed: dict[str, Any] = {"protocol": chosen_beside_usual(measure.name, options.protocol)}
    if measure.aligned and not inputs.get("references"):  # nothing to align
        changed["alignment"] = None
    chosen = options.effective().with_(**changed).to_dict()
    return RunSpec(measure.name, measure.version_with(chosen.get("attacker", "")), options=chosen, **inputs)


def _options(data: Data, question: Question, measure: Measure) -> Options:
    """A question's choices for a measure; files and items that they name are named by their content."""
    options = measure.options.read(question.choices)
    if isinstance(options, Attacked):
        entry = attacker_entry(options.attacker)
        need(f"The attacker {entry.name}", *entry.packages)
        if entry.model:
            options = options.with_(attacker=entry.name, encoder=encoder_option(data.sources, entry))
    if measure.needs.people and isinstance(options, PeopleMarked):
        options = options.with_(people=data.sources.choose_people(options.people))
    return measure.freeze(options, data)


def _coverages(data: Data, references: Captions, needed: bool) -> dict[str, str]:
    """For each set whether all of its labelled images have references, or a part; sets without any are left out. Raises
    CapbiasError if no set has any and they are needed."""

    def count(captions: Captions) -> tuple[int, int]:
        captioned = captions.images & set(data.labels.index)
        return len(captioned), len(captioned & references.images)

    inputs = f"{references.key} {json.dumps(data.labels_key, sort_keys=True)}"
    counts = {
        name: data.sources.derived(f"coverage {captions.key} {inputs}", partial(count, captions), tuple[int, int])
        for name, captions in data.captions.items()
    }
    if needed and not any(covered for _, covered in counts.values()):
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


# metrics that cannot be measured


class Lack(NamedTuple):
    """Why a metric cannot be measured. arguments: of `capbias.score` that would change it."""

    text: str
    arguments: tuple[str, ...] = ()


def useful(specs: Sequence[RunSpec], question: Question) -> tuple[list[RunSpec], dict[Lack, list[str]]]:
    """The runs that give some metric of the question, and why others cannot be measured: reason -> names of metrics.
    Raises CapbiasError if there are no such runs."""
    run_ids: set[str] = set()
    reasons: dict[Lack, list[str]] = {}
    for name in expand_metrics(question.metrics):
        able = [spec for spec in specs if spec.measure == measure_of(name).name]
        giving = [spec for spec in able if not lacks(METRICS[name], spec)]
        run_ids |= {spec.run_id for spec in giving}
        models = {spec.model for spec in giving}
        lacking = {lacks(METRICS[name], spec): None for spec in able if spec.model not in models}
        if lost := [model for model in question.captions if model not in {spec.model for spec in able}]:
            lacking[Lack(f"no labelled image of {', '.join(lost)} has references")] = None
        if needs_references(name) and not question.references:
            lacking = {Lack("human captions are needed", ("references",)): None}
        for reason in filter(None, lacking):
            reasons.setdefault(reason, []).append(name)
    if not run_ids:
        arguments = dict.fromkeys(name for lack in reasons for name in lack.arguments)
        raise CapbiasError(
            "None of the metrics can be measured.", f"{'. '.join(left_out(reasons, False))}.", *arguments
        )
    return [spec for spec in specs if spec.run_id in run_ids or spec.measure in (PER_CAPTION, WORDS_COMPARED)], reasons


def left_out(reasons: dict[Lack, list[str]], flags: bool = True) -> list[str]:
    """A line for each reason: `LIC, LIC_D left out: human captions are needed (--references)`."""
    lines = []
    for lack, names in reasons.items():
        named = ", ".join(map(flag_name, lack.arguments if flags else ()))
        lines.append(f"{', '.join(names)} left out: {lack.text}" + (f" ({named})" if named else ""))
    return lines


def lacks(metric: Metric, spec: RunSpec) -> Lack | None:
    """Why a run cannot give a metric; None if it can."""
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
            return Lack(f"a {needs.model.replace('_', ' ')} is needed", (needs.model,))
        if needs.references == "required" and not spec.references:
            return Lack(f"no labelled image of {spec.model} has references")
    return None
