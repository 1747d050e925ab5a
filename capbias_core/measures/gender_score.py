"""The Gender Score, and which value a caption's variants suggest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import NOTHING_MORE, Job, Measure, Metric, Needs, Outcome, group_of
from capbias_core.measures.caption_variants import (
    EncoderChoices,
    Texts,
    frozen_forms,
    model_choice,
    score_metrics,
    score_sums,
    similarities,
    text_model,
    texts_of,
    variants_cut,
    variants_of_texts,
)
from capbias_core.measures.gender_score_common import (
    CAPTION,
    CONFIDENCE,
    IMAGE,
    PAPER,
    Gendered,
    Label,
    Sums,
    TextJob,
    TextSums,
    counted,
    estimator_metrics,
    gendered,
    method,
    note,
    outcome,
    ratio_metric,
)
from capbias_core.measures.options import option
from capbias_core.metrics.gender_score import chosen, gender_score
from capbias_core.prepare.variants import FORMS_METHOD
from capbias_core.types import Attribute
from capbias_core.workspace.models import KINDS, model_option, model_path
from capbias_core.workspace.objects import OBJECTS, objects_in
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Workspace

METRIC = "gender_score"
ENCODE, READ = 0.3, 0.9  # shares of a run's time: the sentence encoder, then the language model

# Sums that a run leaves -> how their encoder is called, from the options' models.
NAMED_BY = {
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
    def models(self) -> dict[str, Any]:
        """The models that are named, by kind."""
        return {kind: model for kind in KINDS if (model := getattr(self, kind))}


def freeze(
    workspace: Workspace, collection: str, options: GenderScoreOptions, attribute: Attribute
) -> GenderScoreOptions:
    """The options with models and sources of objects by their content."""
    sources = [
        {"name": own, "item": workspace.item(OBJECTS, own, collection).hash} if isinstance(own, str) else own
        for own in options.object_sources
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
    kinds = ["language_model", "sentence_encoder"] + (["masked_model"] if options.masked_model else [])
    models = {kind: model_option(workspace, kind, getattr(options, kind)) for kind in kinds}
    return options.with_(**models, object_sources=tuple(sources), forms=frozen_forms(attribute))


@dataclass(frozen=True)
class Models:
    """What scores texts. encode: texts to (n, d) vectors; likelihood: texts to (n,) P(g); masked: places to (n,)
    probabilities of their words, or None. Each also takes a function that is called with the share done. cut: texts to
    notes where they are read in part."""

    encode: Callable
    likelihood: Callable
    masked: Callable | None = None
    cut: Callable[[Sequence[str]], list[str]] = lambda texts: []


def load_models(paths: dict[str, str]) -> Models:
    """The models in these folders, by the key of a run's option; `masked_model` may be missing."""
    from capbias_core.language.causal import CausalModel
    from capbias_core.language.masked import MaskedModel
    from capbias_core.language.sentences import SentenceEncoder

    masked = MaskedModel(paths["masked_model"]).word_probability if "masked_model" in paths else None
    sentences, language = SentenceEncoder(paths["sentence_encoder"]), CausalModel(paths["language_model"])

    def cut(texts: Sequence[str]) -> list[str]:
        return [*sentences.cut(texts), *language.cut(texts)]

    return Models(sentences.encode, language.mean_token_probability, masked, cut)


def run(job: Job) -> Outcome:
    """Gender Scores of every variant of a caption beside every object, and what the variants suggest."""
    options = job.options
    named = gendered(
        job.frame,
        job.attribute,
        job.objects(),
        options,
        IMAGE,
        options.object_confidence,
        others=[objects_in(job.workspace, own["item"]) for own in options.object_sources],
        votes=options.object_votes,
        tokens=job.tokens,
    )
    data = named.with_objects()
    job.progress(0.0, "loading the models")
    models = load_models({kind: model_path(job.workspace, own) for kind, own in options.models.items()})
    texts = texts_of(data, job.attribute, options.forms)
    found = scored(data, texts, models, job.attribute, job.progress, options.least_similarity)
    kept = found[METRIC].n  # captions with an object that is similar enough
    names = {kind: own["name"] for kind, own in options.models.items()}
    labels = {name: Label.of(job, score_method(data, options), encoder_of(name, names)) for name in found}
    tied = [
        f"{name}: {kept - sums.n:,} captions do not count, since two of their versions score the same."
        for name, sums in found.items()
        if sums.n < kept
    ]
    notes = [note(data, len(named.captions)), *variants_cut(models.cut, texts), *tied]
    if kept < len(data.captions):
        least = f"a cosine of {options.least_similarity:g} or more"
        notes.append(f"{len(data.captions) - kept:,} captions do not count, since none of their objects has {least}.")
    return outcome({name: (sums, labels[name]) for name, sums in found.items()}, notes)


def of_texts(job: TextJob) -> list[TextSums]:
    """Gender Scores of every variant of a plain text, and what the variants suggest."""
    data, texts, how = variants_of_texts(job)
    kinds = [kind for kind in KINDS if kind != "masked_model" or job.options.masked_model]
    files = {kind: text_model(kind, getattr(job.options, kind)) for kind in kinds}
    how += f"; mean token probability; confidence {job.options.object_confidence:g} in objects"
    how += similarity_text(job.options)
    models = load_models({kind: own.path for kind, own in files.items()})
    found = scored(data, texts, models, job.attribute, job.progress, job.options.least_similarity)
    names = {kind: own.name for kind, own in files.items()}
    how = "; ".join([how, *variants_cut(models.cut, texts)])
    return [TextSums(sums, how, encoder_of(name, names)) for name, sums in found.items()]


def score_method(data: Gendered, options: GenderScoreOptions) -> str:
    """In words, what the rows rest on."""
    sure = f"; confidence {options.object_confidence:g} in objects without a detector's"
    return method(data, f"; {FORMS_METHOD}; mean token probability{sure}{similarity_text(options)}")


def similarity_text(options: GenderScoreOptions) -> str:
    """`; objects with a cosine of 0.2 or more with the caption`; '' if all count."""
    least = options.least_similarity
    return "" if least is None else f"; objects with a cosine of {least:g} or more with the caption"


def encoder_of(name: str, models: Mapping[str, str]) -> str:
    """How rows name their models: `gpt2 + minilm`. models: names by kind."""
    return " + ".join(models[kind] for kind in NAMED_BY[name])


def scored(
    data: Gendered,
    texts: Texts,
    models: Models,
    attribute: Attribute,
    progress: Callable[[float, str], None],
    least: float | None = None,
) -> dict[str, Sums]:
    """The sums of everything that the models give, by name (see NAMED_BY). least: cosine of objects that count."""
    k = len(attribute.values)
    cosines = similarities(data, texts, models.encode, lambda share: progress(ENCODE * share, "sentence encoder"))
    if least is not None:
        data, texts, cosines = _similar(data, texts, cosines, least)
    caption, _, confidence = data.pairs
    likelihood = models.likelihood(
        texts.distinct, lambda share: progress(ENCODE + (READ - ENCODE) * share, "language model")
    )[texts.code]  # (n, K + 1)
    scores = gender_score(likelihood[caption], cosines, confidence[:, None])  # (p, K + 1)
    mean = np.stack([_mean_of(caption, scores[:, place], len(data.captions)) for place in range(k)], axis=1)
    suggested = {"estimation": mean, "language_model": likelihood[:, :k]}
    if models.masked:
        suggested["masked_model"] = _masked(
            texts, models.masked, k, lambda share: progress(READ, "masked language model")
        )
    own = scores[np.arange(len(caption)), data.value[caption]]
    found = {
        METRIC: score_sums(METRIC, METRICS, attribute, data, scores),
        "weighted_cooccurrence": counted("weighted_cooccurrence", METRICS, attribute, data, data.value, own),
    }
    once = np.ones(len(caption))
    for name, values in suggested.items():
        found[name] = counted(name, METRICS, attribute, data, _place(chosen(values)), once)
    return found


def _similar(data: Gendered, texts: Texts, cosines: np.ndarray, least: float) -> tuple[Gendered, Texts, np.ndarray]:
    """Without the objects whose cosine with their caption as written is lower, and without captions that then have no
    object."""
    caption, column, confidence = data.pairs
    kept = cosines[np.arange(len(caption)), data.named[caption]] >= least  # -1, no value named: the neutral version
    if not kept.any():
        raise CapbiasError(
            f"No object has a cosine of {least:g} or more with its caption.", "Lower it.", "least_similarity"
        )
    left = csr_array((confidence[kept], (caption[kept], column[kept])), shape=data.confidence.shape)
    having = np.diff(left.indptr) > 0
    places = np.flatnonzero(having)
    variants = tuple(texts.variants[place] for place in places)
    return (
        replace(data, confidence=left).having(having),
        replace(texts, variants=variants, code=texts.code[places]),
        cosines[kept],
    )


def _mean_of(caption: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """(p,) values of pairs to (n,) means, one a caption."""
    return np.bincount(caption, values, n) / np.bincount(caption, minlength=n)


def _place(picked: np.ndarray) -> np.ndarray:
    """(n, K) booleans to the place of the one that is true, -1 for none."""
    return np.where(picked.any(axis=1), picked.argmax(axis=1), -1)


def _masked(texts: Texts, read: Callable, k: int, tick: Callable[[float], None]) -> np.ndarray:
    """(n, K) probability of each value's word at the first place that names the value, all else in neutral words."""
    places = [
        (one.places[-1][0], one.places[place][1], one.places[-1][2]) for one in texts.variants for place in range(k)
    ]
    distinct = list(dict.fromkeys(places))
    row = {place: number for number, place in enumerate(distinct)}
    found = read(distinct, tick)
    return found[[row[place] for place in places]].reshape(len(texts.variants), k)


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
    of_texts=of_texts,
    in_process=False,
)
