"""Values and objects in captions (Sabir and Padró, 2023): co-occurrence, distances, Gender Score and estimation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from capbias_core.aggregate import FEWEST, NOTHING_MORE, WITHOUT_LIMIT, Counts, Metric, Needs, unlabelled, zero
from capbias_core.aggregate.counts import beside_objects, captions_beside_objects
from capbias_core.attributes import word_forms
from capbias_core.data import Data
from capbias_core.errors import CapbiasError
from capbias_core.load.vectors import read_vectors
from capbias_core.measures.base import Measure, Outcome, group_of
from capbias_core.measures.gender_score_common import (
    CAPTION,
    CONFIDENCE,
    Gendered,
    ObjectChoices,
    Texts,
    captions_of,
    texts_of,
)
from capbias_core.measures.naming import PAPER
from capbias_core.measures.options import option
from capbias_core.metrics.gender_score import bias_ratio, chosen, gender_score, neutral_ratio, object_distance
from capbias_core.metrics.share import share
from capbias_core.prepare.text import FORMS_METHOD
from capbias_core.types import Attribute, Progress, ShareDone, Vectors
from capbias_core.workspace.models import KINDS, model_option, vectors_option
from capbias_core.workspace.spec import ModelReference

COOCCURRENCE = "object_gender_cooccurrence"
COOCCURRENCE_COUNT = f"{COOCCURRENCE}_count"
DISTANCE = "gender_object_distance"
WORD_DISTANCE = "word_object_distance"
METRIC = "gender_score"
WEIGHTED = "weighted_cooccurrence"
ENCODE, READ = 0.3, 0.9  # shares of a run's time: the sentence encoder, then the language model


# metrics


def few_captions(counts: Counts) -> str:
    """Why a metric of the only column has no interval, '' if it has one."""
    (column,) = counts.columns
    few = counts.constants.get(f"{column} captions", FEWEST) < FEWEST
    return f"fewer than {FEWEST} captions" if few else ""


OF_EACH_VALUE: dict[str, Any] = {"by_value": True, "no_interval": few_captions}


def ratio_metric(
    name: str, title: str, source: str, explanation: str, column: str, needs: Needs = NOTHING_MORE, of=bias_ratio
) -> Metric:
    """A metric that is each value's share of something: 1 / K means no bias. column: that it reads."""
    facts = (name, title, 1, lambda k: 1 / k, "neutral", (0, 1), source, explanation)
    return Metric(*facts, needs=needs, reads=(column,), of=of, interval="share", **OF_EACH_VALUE)


def estimator_metrics(
    name: str, count: str, title: str, what: str, source: str, column: str, needs: Needs = NOTHING_MORE
) -> tuple[Metric, Metric]:
    """The shares and the counts of captions that go with each value. what: which captions. column: that they read."""
    facts = (count, f"{title}, captions", 1, zero, "neutral", WITHOUT_LIMIT, source, f"{what}: how many.")
    explanation = f"{what}, of those of all values."
    return (
        ratio_metric(name, f"{title}, ratio to each value", source, explanation, column, needs),
        Metric(*facts, needs=needs, reads=(column,), of=lambda sums: sums, **OF_EACH_VALUE),
    )


def score_metrics(
    name: str, title: str, limits: tuple[float, float], source: str, explanation: str
) -> tuple[Metric, ...]:
    """The metrics of a score of each value: itself, its ratio to each value and to the neutral word. They read the
    column of this name: K scores, that of the neutral word, and the number of pairs."""
    explanation += " One number for each value, and one for the neutral word."
    to_neutral = f"{name}_to_neutral", f"{title}, ratio to the neutral word", 1, lambda k: 1.0, "neutral", WITHOUT_LIMIT
    return (
        Metric(
            *(name, title, 1, zero, "neutral", limits, source, explanation),
            reads=(name,),
            of=lambda sums: share(sums[..., :-1], sums[..., -1:]),
            interval="free",
            **OF_EACH_VALUE,
        ),
        ratio_metric(
            f"{name}_ratio",
            f"{title}, ratio to each value",
            f"{PAPER}, Eq. 1",
            "The value's score over the sum of all values' scores.",
            name,
            of=lambda sums: bias_ratio(sums[..., :-2]),
        ),
        Metric(
            *(*to_neutral, f"{PAPER}, Eq. 2", "The value's score over that of the neutral word."),
            reads=(name,),
            of=lambda sums: neutral_ratio(sums[..., :-2], sums[..., -2:-1]),
            **OF_EACH_VALUE,
        ),
    )


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
# Column -> the models that its rows depend on.
MODELS: dict[str, tuple[str, ...]] = {
    METRIC: ("language_model", "sentence_encoder"),
    WEIGHTED: ("language_model", "sentence_encoder"),
    "estimation": ("language_model", "sentence_encoder"),
    "language_model": ("language_model",),
    "masked_model": ("masked_model",),
}


# choices


def model_choice(kind: str, unnamed: str = "default: {usual}") -> Any:
    """The field of an option that names a model: a reference once frozen. unnamed: the help text on None."""
    what, usual = KINDS[kind]
    flag = f"--{kind.replace('_', '-')}"
    return option(None, f"{what} ({unnamed.format(usual=usual)})", flag=flag, metavar="NAME_OR_FOLDER")


@dataclass(frozen=True)
class EncoderChoices(ObjectChoices):
    """Choices of a measure that reads the variants with a sentence encoder. sentence_encoder: None for the paper's."""

    sentence_encoder: ModelReference | str | None = model_choice("sentence_encoder")


@dataclass(frozen=True)
class WordDistanceOptions(ObjectChoices):
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


def freeze(options: Any, data: Data, *kinds: str) -> Any:
    """The options with models of these kinds by their content, and the words that replace each other."""
    models = {kind: model_option(data.sources, kind, getattr(options, kind)) for kind in kinds}
    return options.with_(**models, forms=frozen_forms(data.attribute))


def frozen_forms(attribute: Attribute) -> tuple[list[str], ...]:
    """The words that replace each other; none if a value has no words."""
    return () if attribute.unnamed_values else tuple(list(row) for row in word_forms(attribute))


# evidence


@dataclass(frozen=True)
class Weights:
    """W weights of e pairs of a caption and an object, to be summed as one column of `Counts`."""

    pair: np.ndarray  # (e,) index in `Gendered.pairs`
    of_set: np.ndarray  # (e, W) over the set
    of_object: np.ndarray  # (e, W) beside the object


def by_value(texts_of_set: Gendered, value: np.ndarray, weight: np.ndarray, k: int) -> Weights:
    """A weight for each value: captions over the set, and captions beside each object.

    value: (n,) index of the value that each caption counts for, -1 for none. weight: (p,) of each pair; over the set a
    caption has the mean of its objects' weights.
    """
    caption = texts_of_set.pairs[0]
    pair = np.flatnonzero(value[caption] >= 0)
    mean = weight[pair] / np.bincount(caption)[caption[pair]]
    counts_for = np.eye(k)[value[caption[pair]]]
    return Weights(pair, mean[:, None] * counts_for, weight[pair, None] * counts_for)


def by_pair(scores: np.ndarray) -> Weights:
    """(p, K + 1) scores of pairs, and 1 to count pairs. A pair without a score (nan) is left out."""
    kept = np.flatnonzero(np.isfinite(scores).all(axis=1))
    weights = np.column_stack([scores[kept], np.ones(len(kept))])
    return Weights(kept, weights, weights)


def evidence(
    texts_of_set: Gendered,
    columns: Mapping[str, Weights],
    metrics: Iterable[Metric],
    how: str = "",
    notes: Sequence[str] = (),
    models: Mapping[str, str] | None = None,
) -> Outcome:
    """Weights summed over the set and beside each object, by image, and what the rows of the metrics say.

    columns: by name; metrics read them. how: what the method says besides. models: the models of each column.
    """
    caption, of_pair, _ = texts_of_set.pairs
    images, objects = texts_of_set.images, len(texts_of_set.objects)
    summed, captions = {}, {}

    def by_image(pair: np.ndarray, weights: np.ndarray, first: np.ndarray, width: int) -> csr_array:
        """(n_images, width) sums of (e, W) weights. first: (e,) the column of the first weight."""
        each = weights.shape[1]
        cells = np.repeat(texts_of_set.image[caption[pair]], each), (first[:, None] + np.arange(each)).ravel()
        return csr_array((weights.ravel(), cells), shape=(len(images), width))

    for name, weights in columns.items():
        pair, each = weights.pair, weights.of_set.shape[1]
        summed[name] = by_image(pair, weights.of_set, np.zeros_like(pair), each)
        summed[beside_objects(name)] = by_image(pair, weights.of_object, of_pair[pair] * each, objects * each)
        summed[captions_beside_objects(name)] = by_image(pair, np.ones((len(pair), 1)), of_pair[pair], objects)
        captions[name] = len(np.unique(caption[pair]))
    constants = {f"{name} captions": float(n) for name, n in captions.items()}
    counts = Counts.by_image(images, unlabelled(images), summed, objects=texts_of_set.objects, constants=constants)
    method = f"captions that name one value, with {texts_of_set.source}{how}"
    about = {
        metric.name: {"method": method, "n": captions[name], "encoder": (models or {}).get(name, "")}
        for metric in metrics
        for name in metric.reads
        if name in columns
    }
    return Outcome(counts, notes=(texts_of_set.note, *notes), own_columns=about)


def cut_notes(cut: Callable[[Sequence[str]], list[str]], texts: Texts) -> list[str]:
    """Notes where a model reads texts in part. cut: texts to its notes."""
    return [f"Variants of captions: {note}" for note in cut(texts.distinct)]


def similarities(
    texts_of_set: Gendered, texts: Texts, encode: Callable[[Sequence[str], ShareDone], np.ndarray], tick: ShareDone
) -> np.ndarray:
    """(p, K + 1) cosine of each variant and each object of its caption."""
    caption, column, _ = texts_of_set.pairs
    seen = np.unique(column)
    vectors = encode([*texts.distinct, *(texts_of_set.objects[number] for number in seen)], tick)
    objects = np.zeros((len(texts_of_set.objects), vectors.shape[1]), dtype=vectors.dtype)
    objects[seen] = vectors[len(texts.distinct) :]
    versions = range(texts.code.shape[1])
    parts = [object_distance(vectors[texts.code[caption, version]], objects[column]) for version in versions]
    return np.column_stack(parts).astype(float)


# what runs count


def count_scores(data: Data, options: Any, progress: Progress) -> Outcome:
    """Gender Scores of each variant of a caption and each object of it, and what the variants suggest."""
    from capbias_core.language.encoder import text_encoder
    from capbias_core.language.models import CausalModel, MaskedModel

    texts_of_set = captions_of(data, options)
    texts = texts_of(texts_of_set, data.attribute, options)
    progress(0.0, "loading the models")
    files = {kind: data.sources.model(getattr(options, kind)) for kind in options.kinds}
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
    how = (
        f"; {FORMS_METHOD}; mean token probability; confidence {options.object_confidence:g} in objects without a "
        "detector's"
    )
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

    texts_of_set = captions_of(data, options)
    texts = texts_of(texts_of_set, data.attribute, options)
    progress(0.0, "loading the sentence encoder")
    files = data.sources.model(options.sentence_encoder)
    encoder = text_encoder(files.path)
    cosines = similarities(texts_of_set, texts, encoder.embed, lambda share: progress(share, "reading captions"))
    notes, read = cut_notes(encoder.cut, texts), {DISTANCE: files.name}
    return evidence(texts_of_set, {DISTANCE: by_pair(cosines)}, DISTANCE_METRICS, f"; {FORMS_METHOD}", notes, read)


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
        freeze=lambda options, data: freeze(options, data, "sentence_encoder"),
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
        freeze=lambda options, data: freeze(options, data).with_(
            word_vectors=vectors_option(data.sources, options.word_vectors)
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
        freeze=lambda options, data: freeze(options, data, *options.kinds),
        in_process=False,
    ),
)
