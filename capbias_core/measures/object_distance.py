"""Runs of the family 'object_distance': Gender Object Distance of captions, under a sentence encoder."""

from __future__ import annotations

from functools import partial

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import Job, Outcome, Progress
from capbias_core.measures.caption_variants import Texts, frozen_forms, score_sums, score_ways, similarities, texts_of
from capbias_core.measures.gender_score_common import (
    IMAGE,
    Gendered,
    Label,
    Sums,
    gendered,
    method,
    note,
    outcome,
    outcome_estimates,
)
from capbias_core.prepare.variants import FORMS_METHOD
from capbias_core.types import Attribute
from capbias_core.workspace.models import model_option, model_path
from capbias_core.workspace.store import RunRow, Workspace

METRIC = "gender_object_distance"


def freeze(workspace: Workspace, options: dict, attribute: Attribute) -> dict:
    """The options with the encoder by its content, and the words that are put in each other's place."""
    encoder = model_option(workspace, "sentence_encoder", options.get("sentence_encoder"))
    return options | {"sentence_encoder": encoder, "forms": frozen_forms(attribute)}


def run(job: Job) -> Outcome:
    """The cosine of every variant of a caption and every object beside it."""
    options = job.spec.options
    named = gendered(job.frame, job.attribute, job.objects(), options, IMAGE)
    data = named.with_objects()
    texts = texts_of(data, job.attribute, options["forms"])
    path = model_path(job.workspace, options["sentence_encoder"])
    sums = distances(data, texts, path, job.attribute, job.progress)
    name = options["sentence_encoder"]["name"]
    label = Label.of(job, name, method(data, f"; {FORMS_METHOD}"))
    return outcome(sums, label, (note(data, len(named.captions)),))


def distances(data: Gendered, texts: Texts, path: str, attribute: Attribute, progress: Progress) -> Sums:
    """Sums of the cosines under the sentence encoder in this folder."""
    from capbias_core.language.sentences import SentenceEncoder

    progress(0.0, "loading the sentence encoder")
    encode = SentenceEncoder(path).encode
    cosines = similarities(data, texts, encode, lambda share: progress(share, "reading captions"))
    return score_sums(data, cosines, score_ways(METRIC, attribute))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The values over the set again, by metric and direction."""
    return outcome_estimates(workspace, run, partial(score_ways, METRIC))
