"""Gender Object Distance of captions, under a sentence encoder."""

from __future__ import annotations

from capbias_core.measures.base import Job, Measure, Needs, Outcome, group_of
from capbias_core.measures.gender_score_common import (
    PAPER,
    Counted,
    EncoderChoices,
    TextJob,
    count_images,
    cut_notes,
    frozen_forms,
    outcome,
    score_metrics,
    score_sums,
    similarities,
)
from capbias_core.types import Attribute
from capbias_core.workspace.models import model_option
from capbias_core.workspace.store import Workspace

METRIC = "gender_object_distance"

METRICS = score_metrics(
    METRIC,
    "Gender Object Distance",
    (-1, 1),
    f"{PAPER}, section 3",
    "Cosine (closeness, though the paper says distance) of the caption with the value's words and the object, under a "
    "sentence encoder. Averaged over captions and their objects.",
)


def freeze(workspace: Workspace, collection: str, options: EncoderChoices, attribute: Attribute) -> EncoderChoices:
    """The options with the encoder by its content, and the words that are put in each other's place."""
    encoder = model_option(workspace, "sentence_encoder", options.sentence_encoder)
    return options.with_(sentence_encoder=encoder, forms=frozen_forms(attribute))


def run(job: Job) -> Outcome:
    """The cosines over the set and by object."""
    return outcome(*count_images(job, count))


def count(job: TextJob) -> Counted:
    """The cosine of every variant of a caption and every object of it."""
    from capbias_core.language.models import SentenceEncoder

    data, texts, how = job.variants()
    job.progress(0.0, "loading the sentence encoder")
    files = job.model("sentence_encoder")
    encoder = SentenceEncoder(files.path)
    cosines = similarities(data, texts, encoder.encode, lambda share: job.progress(share, "reading captions"))
    sums = score_sums(METRIC, METRICS, job.attribute, data, cosines, files.name)
    return Counted([sums], data, how, cut_notes(encoder.cut, texts))


MEASURE = Measure(
    name="object_distance",
    title="Gender Object Distance",
    place=11,
    metrics=METRICS,
    groups=(group_of("god", "Gender Object Distance", METRICS),),
    options=EncoderChoices,
    needs=Needs(objects="optional", words="every"),
    version=2,
    seconds=100.0,
    run=run,
    freeze=freeze,
    per_object=True,
    of_texts=count,
    in_process=False,
)
