"""Gender Object Distance of captions, under a sentence encoder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome
from capbias_core.measures.caption_variants import (
    EncoderChoices,
    Texts,
    frozen_forms,
    score_metrics,
    score_statistics,
    score_sums,
    similarities,
    text_model,
    texts_of,
    variants_cut,
    variants_of_texts,
)
from capbias_core.measures.gender_score_common import (
    IMAGE,
    PAPER,
    Gendered,
    Label,
    Sums,
    TextJob,
    TextSums,
    gendered,
    method,
    note,
    outcome,
    outcome_estimates,
)
from capbias_core.prepare.variants import FORMS_METHOD
from capbias_core.types import Attribute, Progress
from capbias_core.workspace.models import model_option, model_path
from capbias_core.workspace.store import RunRow, Workspace

METRIC = "gender_object_distance"

METRICS = score_metrics(
    METRIC,
    "Gender Object Distance",
    (-1, 1),
    f"{PAPER}, section 3",
    "Cosine (closeness, though the paper says distance) of the caption with the value's words and the object, under a "
    "sentence encoder. Averaged over captions and their objects.",
)


@dataclass(frozen=True)
class DistanceOptions(EncoderChoices):
    """Choices of Gender Object Distance."""


def freeze(workspace: Workspace, collection: str, options: DistanceOptions, attribute: Attribute) -> DistanceOptions:
    """The options with the encoder by its content, and the words that are put in each other's place."""
    encoder = model_option(workspace, "sentence_encoder", options.sentence_encoder)
    return options.with_(sentence_encoder=encoder, forms=frozen_forms(attribute))


def run(job: Job) -> Outcome:
    """The cosine of every variant of a caption and every object beside it."""
    options = job.options
    named = gendered(job.frame, job.attribute, job.objects(), options, IMAGE, tokens=job.tokens)
    data = named.with_objects()
    texts = texts_of(data, job.attribute, options.forms)
    path = model_path(job.workspace, options.sentence_encoder)
    sums, cut = distances(data, texts, path, job.attribute, job.progress)
    label = Label.of(job, method(data, f"; {FORMS_METHOD}"), options.sentence_encoder["name"])
    return outcome(sums, label, (note(data, len(named.captions)), *cut))


def of_texts(job: TextJob) -> list[TextSums]:
    """The cosine of every variant of a plain text and every object that it names."""
    data, texts, how = variants_of_texts(job)
    files = text_model("sentence_encoder", job.options.sentence_encoder)
    sums, cut = distances(data, texts, files.path, job.attribute, job.progress)
    return [TextSums(sums, "; ".join([how, *cut]), files.name)]


def distances(
    data: Gendered, texts: Texts, path: str, attribute: Attribute, progress: Progress
) -> tuple[Sums, list[str]]:
    """Sums of the cosines under the sentence encoder in this folder, and a note where it reads texts in part."""
    from capbias_core.language.sentences import SentenceEncoder

    progress(0.0, "loading the sentence encoder")
    encoder = SentenceEncoder(path)
    cosines = similarities(data, texts, encoder.encode, lambda share: progress(share, "reading captions"))
    return score_sums(data, cosines, score_statistics(METRIC, attribute)), variants_cut(encoder.cut, texts)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The values over the set again, by metric and direction."""
    return outcome_estimates(workspace, run, partial(score_statistics, METRIC))


MEASURE = Measure(
    name="object_distance",
    title="Gender Object Distance",
    place=11,
    metrics=METRICS,
    groups=(Group("god", "Gender Object Distance", tuple(own.name for own in METRICS)),),
    options=DistanceOptions,
    needs=Needs(objects="optional", words="every"),
    seconds=100.0,
    run=run,
    estimates=estimates,
    freeze=freeze,
    per_object=True,
    of_texts=of_texts,
    in_process=False,
)
