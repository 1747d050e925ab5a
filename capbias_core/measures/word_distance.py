"""Gender Object Distance of words, in a file of word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capbias_core.attributes import word_forms
from capbias_core.errors import CapbiasError
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.base import Job, Measure, Needs, Outcome, group_of
from capbias_core.measures.gender_score_common import (
    PAPER,
    Counted,
    TextJob,
    VariantChoices,
    count_images,
    frozen_forms,
    outcome,
    score_metrics,
    score_sums,
)
from capbias_core.measures.options import option
from capbias_core.metrics.gender_score import object_distance
from capbias_core.types import Attribute, Vectors
from capbias_core.workspace.models import file_path, vectors_option
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Workspace

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
    words = (job.options.forms or word_forms(job.attribute))[0]
    file = file_path(job.workspace, job.options.word_vectors)

    def count(job: TextJob) -> Counted:
        data = job.data
        job.progress(0.0, "reading word vectors")
        vectors = read_vectors(file, {*words, *(word for name in data.objects for word in name.split())})
        cosines = cosines_of(words, data.objects, vectors)  # (L, K + 1)
        name = job.options.word_vectors["name"]
        sums = score_sums(METRIC, METRICS, job.attribute, data, cosines[data.pairs[1]], name)
        missing = [name for name, row in zip(data.objects, cosines, strict=True) if np.isnan(row).any()]
        notes = (f"Objects without a vector, left out: {', '.join(missing)}.",) if missing else ()
        return Counted([sums], data, f"; words {', '.join(words)}", notes)

    return outcome(*count_images(job, count))


def cosines_of(words: Sequence[str], objects: Sequence[str], vectors: Vectors) -> np.ndarray:
    """(L, K + 1) cosines of each object and each word. An object of several words has the mean of their vectors; nan
    if none has one. Raises CapbiasError if a value's word has none."""
    by_word = dict(zip(vectors.words, vectors.matrix, strict=True))
    if lacking := [word for word in words if word not in by_word]:
        raise CapbiasError(
            f"The word vectors lack {', '.join(lacking)}, which name the values.", "Use another file of vectors."
        )
    empty = np.zeros(vectors.matrix.shape[1])
    parts = [[by_word[word] for word in name.split() if word in by_word] or [empty] for name in objects]
    of_objects = np.stack([np.mean(part, axis=0) for part in parts]).astype(float)  # (L, d)
    return np.column_stack([object_distance(of_objects, by_word[word].astype(float)) for word in words])


MEASURE = Measure(
    name="word_distance",
    title="Gender Object Distance of words",
    place=12,
    metrics=METRICS,
    groups=(group_of("word_god", "Gender Object Distance of words", METRICS),),
    options=WordDistanceOptions,
    needs=Needs(objects="optional", words="every"),
    version=2,
    seconds=30.0,
    run=run,
    freeze=freeze,
    per_object=True,
    in_process=False,
)
