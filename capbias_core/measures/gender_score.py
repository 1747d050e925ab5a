"""The Gender Score, and which value a caption's variants suggest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import NOTHING_MORE, Job, Measure, Metric, Needs, Outcome, group_of
from capbias_core.measures.gender_score_common import (
    CAPTION,
    CONFIDENCE,
    PAPER,
    Counted,
    EncoderChoices,
    Gendered,
    Sums,
    TextJob,
    Texts,
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
from capbias_core.metrics.gender_score import chosen, gender_score
from capbias_core.types import Attribute, Progress
from capbias_core.workspace.models import model_option
from capbias_core.workspace.objects import OBJECTS, objects_in
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Workspace

METRIC = "gender_score"
ENCODE, READ = 0.3, 0.9  # shares of a run's time: the sentence encoder, then the language model

# Column -> the models that its rows rest on.
MODELS: dict[str, tuple[str, ...]] = {
    METRIC: ("language_model", "sentence_encoder"),
    "weighted_cooccurrence": ("language_model", "sentence_encoder"),
    "estimation": ("language_model", "sentence_encoder"),
    "language_model": ("language_model",),
    "masked_model": ("masked_model",),
}

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


def _estimators(name: str, title: str, by: str, needs: Needs = NOTHING_MORE) -> tuple[Metric, Metric]:
    """What the variants of captions suggest to one model. by: it, in words."""
    what = f"Captions whose variant with the value scores highest by {by}"
    return estimator_metrics(f"{name}_ratio", f"{name}_count", title, what, f"{PAPER}, Tables 5 and 6", name, needs)


ESTIMATION_METRICS = (
    *_estimators("estimation", "Gender estimation", "the Gender Score"),
    *_estimators("language_model", "estimation by the language model alone", "the language model, without objects"),
    *_estimators(
        "masked_model", "estimation by a masked language model", "a masked language model", Needs(model="masked_model")
    ),
)
METRICS = (*SCORE_METRICS, *ESTIMATION_METRICS)


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

    object_sources: tuple[str | dict, ...] = option(
        (),
        "further tables of the objects of the images, by their names in the collection; an object counts if one source "
        "names it, or --object-votes of them",
        flag="--object-sources",
        metavar="NAME",
        several=True,
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
        "leave out objects whose cosine with the caption is lower under the sentence encoder (if not said: none)",
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


@dataclass(frozen=True)
class Models:
    """What scores texts. encode: texts to (n, d) vectors; likelihood: texts to (n,) P(g); masked: (before, word, after)
    to (n,) probabilities of the words, or None. Each also takes a function that is called with the share done. cut:
    texts to notes if they are read in part."""

    encode: Callable
    likelihood: Callable
    masked: Callable | None = None
    cut: Callable[[Sequence[str]], list[str]] = lambda texts: []


def load_models(paths: dict[str, str]) -> Models:
    """The models in these folders, by the key of a run's option; `masked_model` may be missing."""
    from capbias_core.language.models import CausalModel, MaskedModel, SentenceEncoder

    masked = MaskedModel(paths["masked_model"]).word_probability if "masked_model" in paths else None
    sentences, language = SentenceEncoder(paths["sentence_encoder"]), CausalModel(paths["language_model"])

    def cut(texts: Sequence[str]) -> list[str]:
        return [*sentences.cut(texts), *language.cut(texts)]

    return Models(sentences.encode, language.mean_token_probability, masked, cut)


def run(job: Job) -> Outcome:
    """The scores over the set and by object."""
    options = job.options
    others = [objects_in(job.workspace, source["item"]) for source in options.object_sources]
    confidence, votes = options.object_confidence, options.object_votes
    return outcome(*count_images(job, count, confidence=confidence, others=others, votes=votes))


def count(job: TextJob) -> Counted:
    """Gender Scores of every variant of a caption and every object of it, and what the variants suggest."""
    options, least = job.options, job.options.least_similarity
    data, texts, how = job.variants()
    job.progress(0.0, "loading the models")
    files = {kind: job.model(kind) for kind in options.kinds}
    models = load_models({kind: own.path for kind, own in files.items()})
    names = {kind: own.name for kind, own in files.items()}
    sums = scored(data, texts, models, job.attribute, job.progress, least, names)
    kept = sums[METRIC].n  # captions with an object that is similar enough
    notes = [
        f"{name}: {kept - own.n:,} captions do not count, since two of their versions score the same."
        for name, own in sums.items()
        if own.n < kept
    ]
    how += f"; mean token probability; confidence {options.object_confidence:g} in objects without a detector's"
    if least is not None:
        how += f"; objects with a cosine of {least:g} or more with the caption"
    if kept < len(data.captions):
        similar = f"a cosine of {least:g} or more"
        notes.append(f"{len(data.captions) - kept:,} captions do not count, since none of their objects has {similar}.")
    return Counted(list(sums.values()), data, how, (*cut_notes(models.cut, texts), *notes))


def scored(
    data: Gendered,
    texts: Texts,
    models: Models,
    attribute: Attribute,
    progress: Progress,
    least: float | None = None,
    names: dict[str, str] | None = None,
) -> dict[str, Sums]:
    """The sums of everything that the models give, by column. least: cosine of objects that count. names: of the
    models, by kind."""
    k = len(attribute.values)
    cosines = similarities(data, texts, models.encode, lambda share: progress(ENCODE * share, "sentence encoder"))
    if least is not None:
        data, texts, cosines = _similar(data, texts, cosines, least)
    caption, _, confidence = data.pairs
    likelihood = models.likelihood(
        texts.distinct, lambda share: progress(ENCODE + (READ - ENCODE) * share, "language model")
    )[texts.code]  # (n, K + 1)
    scores = gender_score(likelihood[caption], cosines, confidence[:, None])  # (p, K + 1)
    n, objects = len(data.captions), np.bincount(caption)
    mean = np.column_stack([np.bincount(caption, scores[:, value], n) / objects for value in range(k)])
    suggested = {"estimation": mean, "language_model": likelihood[:, :k]}
    if models.masked:
        # The word of each value at the first place that names the value, all else in neutral words.
        asked = [
            (version.places[-1][0], version.places[value][1], version.places[-1][2])
            for version in texts.variants
            for value in range(k)
        ]
        row = {question: number for number, question in enumerate(dict.fromkeys(asked))}
        answers = models.masked(list(row), lambda share: progress(READ, "masked language model"))
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


def _similar(data: Gendered, texts: Texts, cosines: np.ndarray, least: float) -> tuple[Gendered, Texts, np.ndarray]:
    """Without the objects whose cosine with their caption as written is lower, and without captions that then have no
    object."""
    caption, column, confidence = data.pairs
    kept = cosines[np.arange(len(caption)), data.named[caption]] >= least  # -1, no value named: the neutral version
    if not kept.any():
        raise CapbiasError(
            f"No object has a cosine of {least:g} or more with its caption.",
            "Lower the least similarity.",
            "least_similarity",
        )
    left = csr_array((confidence[kept], (caption[kept], column[kept])), shape=data.confidence.shape)
    having = np.diff(left.indptr) > 0
    rows = np.flatnonzero(having)
    versions = tuple(texts.variants[row] for row in rows)
    texts = replace(texts, variants=versions, code=texts.code[rows])
    return replace(data, confidence=left).having(having), texts, cosines[kept]


MEASURE = Measure(
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
    version=3,
    seconds=900.0,
    run=run,
    freeze=freeze,
    per_object=True,
    of_texts=count,
    in_process=False,
)
