"""Gender Object Distance of words, in a file of word vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from capbias_core.aggregate import Estimate
from capbias_core.attributes import word_forms
from capbias_core.errors import CapbiasError
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome
from capbias_core.measures.caption_variants import (
    VariantChoices,
    frozen_forms,
    score_metrics,
    score_statistics,
    score_sums,
)
from capbias_core.measures.gender_score_common import (
    IMAGE,
    PAPER,
    Label,
    gendered,
    method,
    note,
    outcome,
    outcome_estimates,
)
from capbias_core.measures.options import option
from capbias_core.metrics.object_distance import object_distance
from capbias_core.types import Attribute, Vectors
from capbias_core.workspace.models import file_path, vectors_option
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import RunRow, Workspace

METRIC = "word_object_distance"

METRICS = score_metrics(
    METRIC,
    "Gender Object Distance of words",
    (-1, 1),
    f"{PAPER}, section 3",
    "Cosine of the value's word and the object's, in a file of word vectors. Averaged over captions and their objects.",
)


@dataclass(frozen=True)
class WordDistanceOptions(VariantChoices):
    """Choices of Gender Object Distance of words. word_vectors: must be named."""

    word_vectors: ModelReference | str | None = option(
        None, "word vectors for word_god (GloVe, word2vec, fastText)", flag="--word-vectors", metavar="FILE"
    )


def freeze(
    workspace: Workspace, collection: str, options: WordDistanceOptions, attribute: Attribute
) -> WordDistanceOptions:
    """The options with the vectors by their content, and the words of the values."""
    return options.with_(word_vectors=vectors_option(workspace, options.word_vectors), forms=frozen_forms(attribute))


def run(job: Job) -> Outcome:
    """The cosine of each value's word and each object's, for every object of every caption."""
    options = job.options
    named = gendered(job.frame, job.attribute, job.objects(), options, IMAGE, tokens=job.tokens)
    data = named.with_objects()
    words = (options.forms or word_forms(job.attribute))[0]
    job.progress(0.0, "reading word vectors")
    wanted = {*words, *(word for name in data.objects for word in name.split())}
    vectors = read_vectors(file_path(job.workspace, options.word_vectors), wanted)
    cosines = cosines_of(words, data.objects, vectors)  # (L, K + 1)
    sums = score_sums(data, cosines[data.pairs[1]], score_statistics(METRIC, job.attribute))
    label = Label.of(job, method(data, f"; words {', '.join(words)}"), options.word_vectors["name"])
    missing = [name for name, row in zip(data.objects, cosines, strict=True) if np.isnan(row).any()]
    notes = (f"Objects without a vector, left out: {', '.join(missing)}.",) if missing else ()
    return outcome(sums, label, (note(data, len(named.captions)), *notes))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The values over the set again, by metric and direction."""
    return outcome_estimates(workspace, run, partial(score_statistics, METRIC))


def cosines_of(words, objects, vectors: Vectors) -> np.ndarray:
    """(L, K + 1) cosines of each object and each word. An object of several words has the mean of their vectors; nan
    if none has one. Raises CapbiasError if a value's word has none."""
    by_word = dict(zip(vectors.words, vectors.matrix, strict=True))
    lost = [word for word in words if word not in by_word]
    if lost:
        raise CapbiasError(
            f"The word vectors lack {', '.join(lost)}, which name the values.", "Use another file of vectors."
        )
    empty = np.zeros(vectors.matrix.shape[1])
    own = [[by_word[word] for word in name.split() if word in by_word] or [empty] for name in objects]
    of_objects = np.stack([np.mean(found, axis=0) for found in own]).astype(float)  # (L, d)
    return np.column_stack([object_distance(of_objects, by_word[word].astype(float)) for word in words])


MEASURE = Measure(
    name="word_distance",
    title="Gender Object Distance of words",
    place=12,
    metrics=METRICS,
    groups=(Group("word_god", "Gender Object Distance of words", tuple(own.name for own in METRICS)),),
    options=WordDistanceOptions,
    needs=Needs(objects="optional", words="every"),
    seconds=30.0,
    run=run,
    estimates=estimates,
    freeze=freeze,
    per_object=True,
    in_process=False,
)
