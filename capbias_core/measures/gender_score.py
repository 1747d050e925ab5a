"""Values and objects in captions (Sabir and Padró, 2023): co-occurrence, distances, Gender Score and estimation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from capbias_core.aggregate import NOTHING_MORE, Needs
from capbias_core.attributes import word_forms
from capbias_core.errors import CapbiasError
from capbias_core.load.files import file_digest
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.base import Job, Measure, Outcome, group_of
from capbias_core.measures.gender_score_common import (
    CAPTION,
    CONFIDENCE,
    PAPER,
    Counted,
    EncoderChoices,
    Gendered,
    ObjectChoices,
    Sums,
    TextJob,
    Texts,
    VariantChoices,
    count_images,
    counted,
    cut_notes,
    estimator_metrics,
    frozen_forms,
    model_choice,
    outcome,
    ratio_metric,
    score_metrics,
    score_sums,
    similarities,
)
from capbias_core.measures.options import option
from capbias_core.metrics.gender_score import chosen, gender_score, object_distance
from capbias_core.types import Attribute, Progress, Vectors
from capbias_core.workspace.models import model_option, resolve_model, vectors_option
from capbias_core.workspace.objects import OBJECTS, objects_in
from capbias_core.workspace.spec import ItemReference, ModelReference
from capbias_core.workspace.store import Workspace

COOCCURRENCE = "object_gender_cooccurrence"
COOCCURRENCE_COUNT = f"{COOCCURRENCE}_count"
DISTANCE = "gender_object_distance"
WORD_DISTANCE = "word_object_distance"
METRIC = "gender_score"
ENCODE, READ = 0.3, 0.9  # shares of a run's time: the sentence encoder, then the language model

# Column -> the models that its rows depend on.
MODELS: dict[str, tuple[str, ...]] = {
    METRIC: ("language_model", "sentence_encoder"),
    "weighted_cooccurrence": ("language_model", "sentence_encoder"),
    "estimation": ("language_model", "sentence_encoder"),
    "language_model": ("language_model",),
    "masked_model": ("masked_model",),
}

COOCCURRENCE_METRICS = estimator_metrics(
    COOCCURRENCE,
    COOCCURRENCE_COUNT,
    "object-gender co-occurrence",
    "Captions that name the value (and no other) and an object",
    f"Zhao et al., EMNLP 2017; {PAPER}, Tables 4 and 6",
    COOCCURRENCE,
)
DISTANCE_METRICS = score_metrics(
    DISTANCE,
    "Gender Object Distance",
    (-1, 1),
    f"{PAPER}, section 3",
    "Cosine (closeness, though the paper says distance) of the caption with the value's words and the object, under a "
    "sentence encoder. Averaged over captions and their objects.",
)
WORD_DISTANCE_METRICS = score_metrics(
    WORD_DISTANCE,
    "Gender Object Distance of words",
    (-1, 1),
    f"{PAPER}, section 3",
    "Cosine of the value's word and the object's, in a file of word vectors. Averaged over captions and their objects.",
)
SCORE_METRICS = (
    *score_metrics(
        METRIC,
        "Gender Score",
        (0, 1),
        f"{PAPER}, Eq. 3",
        "Mean token probability of the caption with the value's words, raised if caption and object are close in "
        "meaning. Averaged over captions and their objects.",
    ),
    ratio_metric(
        "weighted_cooccurrence",
        "co-occurrence weighted by the Gender Score",
        f"{PAPER}, Table 4",
        "Gender Scores of the captions that name the value, as written, of those of all values.",
        "weighted_cooccurrence",
    ),
)


# Column -> what its metrics are called, by which model a variant scores highest, and what they read besides.
ESTIMATES = {
    "estimation": ("Gender estimation", "the Gender Score", NOTHING_MORE),
    "language_model": ("estimation by the language model alone", "the language model, without objects", NOTHING_MORE),
    "masked_model": ("estimation by a masked language model", "a masked language model", Needs(model="masked_model")),
}
ESTIMATION_METRICS = tuple(
    metric
    for column, (title, by, needs) in ESTIMATES.items()
    for metric in estimator_metrics(
        *(f"{column}_ratio", f"{column}_count", title),
        f"Captions whose variant with the value scores highest by {by}",
        *(f"{PAPER}, Tables 5 and 6", column, needs),
    )
)
METRICS = (*SCORE_METRICS, *ESTIMATION_METRICS)  # of the measure gender_score


@dataclass(frozen=True)
class WordDistanceOptions(VariantChoices):
    """Choices of the word level. word_vectors: must be named."""

    word_vectors: ModelReference | str | None = option(
        None, "word vectors for word_god (GloVe, word2vec, fastText)", flag="--word-vectors", metavar="FILE"
    )


@dataclass(frozen=True)
class GenderScoreOptions(EncoderChoices):
    """Choices of the Gender Score. language_model: None for the paper's. masked_model: None for none."""

    language_model: ModelReference | str | None = model_choice("language_model")
    masked_model: ModelReference | str | None = model_choice(
        "masked_model", "left out unless named; the paper's is {usual}"
    )
    object_confidence: float = option(
        CONFIDENCE,
        "P(c) of objects without a detector's confidence, such as cat:0.93",
        flag="--object-confidence",
        above=0,
        at_most=1,
        metavar="P",
    )
    object_sources: tuple[str | ItemReference, ...] = option(
        (),
        "further tables of the objects of the images, by their names in the collection; an object counts if one source "
        "names it, or --object-votes of them",
        flag="--object-sources",
        metavar="NAME",
    )
    object_votes: int = option(
        1,
        "how many sources must name an object, --objects and --object-sources together",
        flag="--object-votes",
        at_least=1,
        metavar="N",
    )
    least_similarity: float | None = option(
        None,
        "leave out objects whose cosine with the caption is lower under the sentence encoder (default: none)",
        flag="--least-similarity",
        above=-1,
        at_most=1,
        metavar="COSINE",
    )

    @property
    def kinds(self) -> list[str]:
        """The kinds of models that are read."""
        return ["language_model", "sentence_encoder"] + (["masked_model"] if self.masked_model else [])


def freeze(
    workspace: Workspace, collection: str, options: GenderScoreOptions, attribute: Attribute
) -> GenderScoreOptions:
    """The options with models and sources of objects by their content."""
    sources = [
        {"name": source, "item": workspace.item(OBJECTS, source, collection).hash}
        if isinstance(source, str)
        else source
        for source in options.object_sources
    ]
    if options.object_votes > 1 + len(sources):
        raise CapbiasError(
            f"{options.object_votes} votes are asked for, and {1 + len(sources)} sources name objects.",
            "Name more tables, or ask for fewer votes.",
            "object_sources",
        )
    if sources and options.objects_from == CAPTION:
        raise CapbiasError(
            "Objects that captions name have no further sources.", "Leave one out.", "objects_from", "object_sources"
        )
    models = {kind: model_option(workspace, kind, getattr(options, kind)) for kind in options.kinds}
    return options.with_(**models, object_sources=tuple(sources), forms=frozen_forms(attribute))


def count_scores(job: Job) -> Outcome:
    """The scores over the set and by object."""
    options = job.options
    others = [objects_in(job.workspace, source["item"]) for source in options.object_sources]
    sources = {"confidence": options.object_confidence, "others": others, "votes": options.object_votes}
    return outcome(*count_images(job, score_texts, **sources))


def score_texts(job: TextJob) -> Counted:
    """Gender Scores of each variant of a caption and each object of it, and what the variants suggest."""
    from capbias_core.language.models import CausalModel, MaskedModel, SentenceEncoder

    options, least = job.options, job.options.least_similarity
    data, texts, how = job.variants()
    job.progress(0.0, "loading the models")
    files = {kind: job.model(kind) for kind in options.kinds}
    sentences, language = SentenceEncoder(files["sentence_encoder"].path), CausalModel(files["language_model"].path)
    masked = MaskedModel(files["masked_model"].path).word_probability if "masked_model" in files else None
    names = {kind: model.name for kind, model in files.items()}
    models = sentences.encode, language.mean_token_probability, masked
    sums = scored(data, texts, *models, job.attribute, job.progress, least, names)
    kept = sums[METRIC].n  # captions with an object that is similar enough
    notes = [*cut_notes(sentences.cut, texts), *cut_notes(language.cut, texts)]
    notes += [
        f"{name}: {kept - column_sums.n:,} captions do not count, since two of their versions score the same."
        for name, column_sums in sums.items()
        if column_sums.n < kept
    ]
    how += f"; mean token probability; confidence {options.object_confidence:g} in objects without a detector's"
    if least is not None:
        how += f"; objects with a cosine of {least:g} or more with the caption"
    if kept < len(data.captions):
        similar = f"a cosine of {least:g} or more"
        notes.append(f"{len(data.captions) - kept:,} captions do not count, since none of their objects has {similar}.")
    return Counted(list(sums.values()), data, how, tuple(notes))


def scored(
    data: Gendered,
    texts: Texts,
    encode: Callable,
    language: Callable,
    masked: Callable | None,
    attribute: Attribute,
    progress: Progress,
    least: float | None = None,
    names: dict[str, str] | None = None,
) -> dict[str, Sums]:
    """The sums of everything that the models give, by column.

    encode: texts to (n, d) vectors. language: texts to (n,) P(g). masked: (before, word, after) to (n,) probabilities
    of the words, None for none. Each also takes a function that is called with the share done. least: cosine of objects
    that count. names: of the models, by kind. Raises CapbiasError if no object is similar enough.
    """
    k = len(attribute.values)
    cosines = similarities(data, texts, encode, lambda share: progress(ENCODE * share, "sentence encoder"))
    if least is not None:
        caption, column, confidence = data.pairs
        # Of the caption as written; named is -1, the neutral version, if it names no value.
        kept = cosines[np.arange(len(caption)), data.named[caption]] >= least
        if not kept.any():
            raise CapbiasError(
                f"No object has a cosine of {least:g} or more with its caption.",
                "Lower the least similarity.",
                "least_similarity",
            )
        left = csr_array((confidence[kept], (caption[kept], column[kept])), shape=data.confidence.shape)
        having = np.diff(left.indptr) > 0
        versions = tuple(texts.variants[row] for row in np.flatnonzero(having))
        texts = replace(texts, variants=versions, code=texts.code[having])
        data, cosines = replace(data, confidence=left).having(having), cosines[kept]
    caption, _, confidence = data.pairs
    likelihood = language(texts.distinct, lambda share: progress(ENCODE + (READ - ENCODE) * share, "language model"))[
        texts.code
    ]  # (n, K + 1)
    scores = gender_score(likelihood[caption], cosines, confidence[:, None])  # (p, K + 1)
    n, objects = len(data.captions), np.bincount(caption)
    mean = np.column_stack([np.bincount(caption, scores[:, value], n) / objects for value in range(k)])
    suggested = {"estimation": mean, "language_model": likelihood[:, :k]}
    if masked:
        # The word of each value at the first place that names the value, all else in neutral words.
        asked = [
            (version.places[-1][0], version.places[value][1], version.places[-1][2])
            for version in texts.variants
            for value in range(k)
        ]
        row = {question: number for number, question in enumerate(dict.fromkeys(asked))}
        answers = masked(list(row), lambda share: progress(READ, "masked language model"))
        suggested["masked_model"] = answers[[row[question] for question in asked]].reshape(n, k)

    def encoder(column: str) -> str:
        return " + ".join(names[kind] for kind in MODELS[column]) if names else ""

    written = scores[np.arange(len(caption)), data.value[caption]]
    sums = {METRIC: score_sums(METRIC, METRICS, attribute, data, scores, encoder(METRIC))}
    counts: dict[str, Any] = {"weighted_cooccurrence": (data.value, written)}
    for column, values in suggested.items():
        picked = chosen(values)
        counts[column] = np.where(picked.any(axis=1), picked.argmax(axis=1), -1), np.ones(len(caption))
    for column, (value, weight) in counts.items():
        sums[column] = counted(column, METRICS, attribute, data, value, weight, encoder(column))
    return sums


def count_cooccurrence(job: TextJob) -> Counted:
    """Captions by the value that they name, over the set and beside each object."""
    weight = np.ones(job.data.confidence.nnz)
    sums = counted(COOCCURRENCE, COOCCURRENCE_METRICS, job.attribute, job.data, job.data.value, weight)
    return Counted([sums], job.data)


def cooccurrence(job: Job) -> tuple[list[Sums], dict[str, str], tuple[str, ...]]:
    """See `count_images`; no text is copied."""
    return count_images(replace(job, frame=job.frame.assign(caption=0)), count_cooccurrence, CAPTION)


def count_distance(job: TextJob) -> Counted:
    """The cosine of each variant of a caption and each object of it."""
    from capbias_core.language.models import SentenceEncoder

    data, texts, how = job.variants()
    job.progress(0.0, "loading the sentence encoder")
    files = job.model("sentence_encoder")
    encoder = SentenceEncoder(files.path)
    cosines = similarities(data, texts, encoder.encode, lambda share: job.progress(share, "reading captions"))
    sums = score_sums(DISTANCE, DISTANCE_METRICS, job.attribute, data, cosines, files.name)
    return Counted([sums], data, how, cut_notes(encoder.cut, texts))


def count_word_distance(job: Job) -> Outcome:
    """The cosine of each value's word and each object's, for each object of each caption."""
    option = job.options.word_vectors
    words = (job.options.forms or word_forms(job.attribute))[0]
    file = Path(resolve_model(job.workspace, option, file_digest).path)

    def count(job: TextJob) -> Counted:
        data = job.data
        job.progress(0.0, "reading word vectors")
        vectors = read_vectors(file, {*words, *(word for name in data.objects for word in name.split())})
        cosines = cosines_of(words, data.objects, vectors)  # (L, K + 1)
        scores = cosines[data.pairs[1]]
        sums = score_sums(WORD_DISTANCE, WORD_DISTANCE_METRICS, job.attribute, data, scores, option["name"])
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


MEASURES = (
    Measure(
        name="object_cooccurrence",
        title="objects and values named together",
        place=9,
        metrics=COOCCURRENCE_METRICS,
        groups=(group_of("cooccurrence", "objects and values named together", COOCCURRENCE_METRICS),),
        options=ObjectChoices,
        needs=Needs(objects="optional", words="any"),
        version=5,
        count=lambda job: outcome(*cooccurrence(job)),
        per_object=True,
        of_texts=count_cooccurrence,
    ),
    Measure(
        name="object_distance",
        title="Gender Object Distance",
        place=11,
        metrics=DISTANCE_METRICS,
        groups=(group_of("god", "Gender Object Distance", DISTANCE_METRICS),),
        options=EncoderChoices,
        needs=Needs(objects="optional", words="every"),
        version=3,
        seconds=100.0,
        count=lambda job: outcome(*count_images(job, count_distance)),
        freeze=lambda workspace, collection, options, attribute: options.with_(
            sentence_encoder=model_option(workspace, "sentence_encoder", options.sentence_encoder),
            forms=frozen_forms(attribute),
        ),
        per_object=True,
        of_texts=count_distance,
        in_process=False,
    ),
    Measure(
        name="word_distance",
        title="Gender Object Distance of words",
        place=12,
        metrics=WORD_DISTANCE_METRICS,
        groups=(group_of("word_god", "Gender Object Distance of words", WORD_DISTANCE_METRICS),),
        options=WordDistanceOptions,
        needs=Needs(objects="optional", words="every"),
        version=3,
        seconds=30.0,
        count=count_word_distance,
        freeze=lambda workspace, collection, options, attribute: options.with_(
            word_vectors=vectors_option(workspace, options.word_vectors), forms=frozen_forms(attribute)
        ),
        per_object=True,
        in_process=False,
    ),
    Measure(
        name="gender_score",
        title="Gender Score",
        place=13,
        metrics=METRICS,
        groups=(
            group_of("gs", "Gender Score", SCORE_METRICS),
            group_of("estimation", "Gender estimation", ESTIMATION_METRICS),
        ),
        options=GenderScoreOptions,
        needs=Needs(objects="optional", words="every"),
        version=4,
        seconds=900.0,
        count=count_scores,
        freeze=freeze,
        per_object=True,
        of_texts=score_texts,
        in_process=False,
    ),
)
