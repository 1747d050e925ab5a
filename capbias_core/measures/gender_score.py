"""Values and objects in captions (Sabir and Padró, 2023): co-occurrence, distances, Gender Score and estimation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.aggregate import NOTHING_MORE, Needs
from capbias_core.attributes import word_forms
from capbias_core.data import Data
from capbias_core.errors import CapbiasError
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.base import Measure, Outcome, group_of
from capbias_core.measures.gender_score_common import (
    CAPTION,
    CONFIDENCE,
    PAPER,
    EncoderChoices,
    Gendered,
    ObjectChoices,
    Texts,
    VariantChoices,
    Weights,
    by_pair,
    by_value,
    captions_of,
    cut_notes,
    estimator_metrics,
    evidence,
    frozen_forms,
    model_choice,
    model_files,
    ratio_metric,
    score_metrics,
    similarities,
    varied,
)
from capbias_core.measures.options import option
from capbias_core.metrics.gender_score import chosen, gender_score, object_distance
from capbias_core.types import Progress, Vectors
from capbias_core.workspace.models import model_option, vectors_option
from capbias_core.workspace.spec import ModelReference

COOCCURRENCE = "object_gender_cooccurrence"
COOCCURRENCE_COUNT = f"{COOCCURRENCE}_count"
DISTANCE = "gender_object_distance"
WORD_DISTANCE = "word_object_distance"
METRIC = "gender_score"
WEIGHTED = "weighted_cooccurrence"
ENCODE, READ = 0.3, 0.9  # shares of a run's time: the sentence encoder, then the language model

# Column -> the models that its rows depend on.
MODELS: dict[str, tuple[str, ...]] = {
    METRIC: ("language_model", "sentence_encoder"),
    WEIGHTED: ("language_model", "sentence_encoder"),
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
        WEIGHTED,
        "co-occurrence weighted by the Gender Score",
        f"{PAPER}, Table 4",
        "Gender Scores of the captions that name the value, as written, of those of all values.",
        WEIGHTED,
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

    @property
    def kinds(self) -> list[str]:
        """The kinds of models that are read."""
        return ["language_model", "sentence_encoder"] + (["masked_model"] if self.masked_model else [])


def freeze(options: GenderScoreOptions, data: Data) -> GenderScoreOptions:
    """The options with models by their content."""
    models = {kind: model_option(data.sources, kind, getattr(options, kind)) for kind in options.kinds}
    return options.with_(**models, forms=frozen_forms(data.attribute))


def count_scores(data: Data, options: Any, progress: Progress) -> Outcome:
    """Gender Scores of each variant of a caption and each object of it, and what the variants suggest."""
    from capbias_core.language.encoder import text_encoder
    from capbias_core.language.models import CausalModel, MaskedModel

    texts_of_set, texts, how = varied(data, options)
    progress(0.0, "loading the models")
    files = {kind: model_files(data, options, kind) for kind in options.kinds}
    sentences, language = text_encoder(files["sentence_encoder"].path), CausalModel(files["language_model"].path)
    masked = MaskedModel(files["masked_model"].path).word_probability if "masked_model" in files else None
    models = sentences.embed, language.mean_token_probability, masked
    columns = scored(texts_of_set, texts, *models, len(data.attribute.values), progress)
    notes = [*cut_notes(sentences.cut, texts), *cut_notes(language.cut, texts)]
    captions = {name: len(np.unique(texts_of_set.pairs[0][weights.pair])) for name, weights in columns.items()}
    notes += [
        f"{name}: {captions[METRIC] - n:,} captions do not count, since two of their versions score the same."
        for name, n in captions.items()
        if n < captions[METRIC] and name != WEIGHTED
    ]
    how += f"; mean token probability; confidence {options.object_confidence:g} in objects without a detector's"
    read = {column: " + ".join(files[kind].name for kind in kinds if kind in files) for column, kinds in MODELS.items()}
    return evidence(texts_of_set, columns, METRICS, how, notes, read)


def scored(
    texts_of_set: Gendered,
    texts: Texts,
    encode: Callable,
    language: Callable,
    masked: Callable | None,
    k: int,
    progress: Progress,
) -> dict[str, Weights]:
    """What the models give, by column of the counts.

    encode: texts to (n, d) vectors. language: texts to (n,) P(g). masked: (before, word, after) to (n,) probabilities
    of the words, None for none. Each also takes a function that is called with the share done. k: values.
    """
    cosines = similarities(texts_of_set, texts, encode, lambda share: progress(ENCODE * share, "sentence encoder"))
    caption, _, confidence = texts_of_set.pairs
    likelihood = language(texts.distinct, lambda share: progress(ENCODE + (READ - ENCODE) * share, "language model"))[
        texts.code
    ]  # (n, K + 1)
    scores = gender_score(likelihood[caption], cosines, confidence[:, None])  # (p, K + 1)
    n, objects = len(texts_of_set.row), np.bincount(caption)
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
    written = scores[np.arange(len(caption)), texts_of_set.value[caption]]
    columns = {METRIC: by_pair(scores), WEIGHTED: by_value(texts_of_set, texts_of_set.value, written, k)}
    for column, values in suggested.items():
        picked = chosen(values)
        value = np.where(picked.any(axis=1), picked.argmax(axis=1), -1)
        columns[column] = by_value(texts_of_set, value, np.ones(len(caption)), k)
    return columns


def count_cooccurrence(data: Data, options: Any, progress: Progress) -> Outcome:
    """Captions by the value that they name, over the set and beside each object."""
    texts_of_set = captions_of(data, options, CAPTION)
    weights = by_value(
        texts_of_set, texts_of_set.value, np.ones(texts_of_set.confidence.nnz), len(data.attribute.values)
    )
    return evidence(texts_of_set, {COOCCURRENCE: weights}, COOCCURRENCE_METRICS)


def count_distance(data: Data, options: Any, progress: Progress) -> Outcome:
    """The cosine of each variant of a caption and each object of it."""
    from capbias_core.language.encoder import text_encoder

    texts_of_set, texts, how = varied(data, options)
    progress(0.0, "loading the sentence encoder")
    files = model_files(data, options, "sentence_encoder")
    encoder = text_encoder(files.path)
    cosines = similarities(texts_of_set, texts, encoder.embed, lambda share: progress(share, "reading captions"))
    notes, read = cut_notes(encoder.cut, texts), {DISTANCE: files.name}
    return evidence(texts_of_set, {DISTANCE: by_pair(cosines)}, DISTANCE_METRICS, how, notes, read)


def count_word_distance(data: Data, options: Any, progress: Progress) -> Outcome:
    """The cosine of each value's word and each object's, for each object of each caption."""
    option = options.word_vectors
    words = (options.forms or word_forms(data.attribute))[0]
    texts_of_set, file = captions_of(data, options), Path(data.sources.model(option).path)
    progress(0.0, "reading word vectors")
    vectors = read_vectors(file, {*words, *(word for name in texts_of_set.objects for word in name.split())})
    cosines = cosines_of(words, texts_of_set.objects, vectors)  # (L, K + 1)
    missing = [name for name, row in zip(texts_of_set.objects, cosines, strict=True) if np.isnan(row).any()]
    notes = [f"Objects without a vector, left out: {', '.join(missing)}."] if missing else []
    columns, read = {WORD_DISTANCE: by_pair(cosines[texts_of_set.pairs[1]])}, {WORD_DISTANCE: option["name"]}
    return evidence(texts_of_set, columns, WORD_DISTANCE_METRICS, f"; words {', '.join(words)}", notes, read)


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
        position=9,
        metrics=COOCCURRENCE_METRICS,
        groups=(group_of("cooccurrence", "objects and values named together", COOCCURRENCE_METRICS),),
        options=ObjectChoices,
        needs=Needs(objects="optional", words="any"),
        version=5,
        count=count_cooccurrence,
    ),
    Measure(
        name="object_distance",
        title="Gender Object Distance",
        position=11,
        metrics=DISTANCE_METRICS,
        groups=(group_of("god", "Gender Object Distance", DISTANCE_METRICS),),
        options=EncoderChoices,
        needs=Needs(objects="optional", words="every"),
        version=3,
        seconds=100.0,
        count=count_distance,
        freeze=lambda options, data: options.with_(
            sentence_encoder=model_option(data.sources, "sentence_encoder", options.sentence_encoder),
            forms=frozen_forms(data.attribute),
        ),
        in_process=False,
    ),
    Measure(
        name="word_distance",
        title="Gender Object Distance of words",
        position=12,
        metrics=WORD_DISTANCE_METRICS,
        groups=(group_of("word_god", "Gender Object Distance of words", WORD_DISTANCE_METRICS),),
        options=WordDistanceOptions,
        needs=Needs(objects="optional", words="every"),
        version=3,
        seconds=30.0,
        count=count_word_distance,
        freeze=lambda options, data: options.with_(
            word_vectors=vectors_option(data.sources, options.word_vectors), forms=frozen_forms(data.attribute)
        ),
        in_process=False,
    ),
    Measure(
        name="gender_score",
        title="Gender Score",
        position=13,
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
        in_process=False,
    ),
)
