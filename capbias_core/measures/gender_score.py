"""Runs of the family 'gender_score': the Gender Score, and which value a caption's variants suggest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Outcome
from capbias_core.measures.caption_variants import Texts, frozen_forms, score_sums, score_ways, similarities, texts_of
from capbias_core.measures.gender_score_common import (
    CONFIDENCE,
    IMAGE,
    Gendered,
    Label,
    Statistics,
    Sums,
    counted,
    gendered,
    method,
    note,
    object_rows,
    set_rows,
    share_ways,
    stored_estimates,
    sums_bytes,
)
from capbias_core.metrics.estimation import chosen
from capbias_core.metrics.gender_score import gender_score
from capbias_core.prepare.variants import FORMS_METHOD
from capbias_core.types import Attribute
from capbias_core.workspace.labels import attribute_from
from capbias_core.workspace.models import KINDS, model_option, model_path
from capbias_core.workspace.store import RunRow, Workspace, frame_bytes

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


def freeze(workspace: Workspace, options: dict, attribute: Attribute) -> dict:
    """The options with the models by their content. Raises CapbiasError for a confidence that is none."""
    confidence = float(options.get("confidence", CONFIDENCE))
    if not 0 < confidence <= 1:
        raise CapbiasError(f"a confidence of {confidence:g}", "a number above 0, and 1 at most", "Leave it out.")
    kinds = ["language_model", "sentence_encoder"] + (["masked_model"] if options.get("masked_model") else [])
    models = {kind: model_option(workspace, kind, options.get(kind)) for kind in kinds}
    return options | models | {"confidence": confidence, "forms": frozen_forms(attribute)}


@dataclass(frozen=True)
class Models:
    """What scores texts. encode: texts to (n, d) vectors; likelihood: texts to (n,) P(g); masked: places to (n,)
    probabilities of their words, or None. Each also takes a function that is called with the share done."""

    encode: Callable
    likelihood: Callable
    masked: Callable | None = None


def load_models(paths: dict[str, str]) -> Models:
    """The models in these folders, by the key of a run's option; `masked_model` may be missing."""
    from capbias_core.language.causal import CausalModel
    from capbias_core.language.masked import MaskedModel
    from capbias_core.language.sentences import SentenceEncoder

    masked = MaskedModel(paths["masked_model"]).word_probability if "masked_model" in paths else None
    likelihood = CausalModel(paths["language_model"]).mean_token_probability
    return Models(SentenceEncoder(paths["sentence_encoder"]).encode, likelihood, masked)


def run(job: Job) -> Outcome:
    """Gender Scores of every variant of a caption beside every object, and what the variants suggest."""
    options = job.spec.options
    named = gendered(job.frame, job.attribute, job.objects(), options, IMAGE)
    data = named.with_objects()
    job.progress(0.0, "loading the models")
    models = load_models({kind: model_path(job.workspace, options[kind]) for kind in KINDS if kind in options})
    found = scored(data, texts_of(data, job.attribute, options["forms"]), models, job.attribute, job.progress)
    labels = {name: Label.of(job, encoder_of(name, options), score_method(data, options)) for name in found}
    rows = [row for name, sums in found.items() for row in set_rows(sums, labels[name])]
    tables = [object_rows(sums, labels[name]) for name, sums in found.items()]
    arrays = {name: sums_bytes(sums) for name, sums in found.items()} | {"objects": frame_bytes(pd.concat(tables))}
    return Outcome(rows, arrays, (note(data, len(named.captions)),))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The values over the set again, by metric and direction."""
    attribute = attribute_from(run.spec["attribute"])
    found = {}
    for name in NAMED_BY:
        if name != "masked_model" or name in run.spec["options"]:
            found |= stored_estimates(workspace.array(run.run_id, name), ways_of(name, attribute))
    return found


def score_method(data: Gendered, options: dict) -> str:
    """In words, what the rows rest on."""
    sure = f"; confidence {options['confidence']:g} in objects without a detector's"
    return method(data, f"; {FORMS_METHOD}; mean token probability{sure}")


def encoder_of(name: str, options: dict) -> str:
    """How rows name their models: `gpt2 + minilm`."""
    return " + ".join(options[kind]["name"] for kind in NAMED_BY[name])


def ways_of(name: str, attribute: Attribute) -> Statistics:
    """How the sums of this name give values."""
    if name == METRIC:
        return score_ways(METRIC, attribute)
    if name == "weighted_cooccurrence":
        return share_ways(name, "", attribute)
    return share_ways(f"{name}_ratio", f"{name}_count", attribute)


def scored(
    data: Gendered, texts: Texts, models: Models, attribute: Attribute, progress: Callable[[float, str], None]
) -> dict[str, Sums]:
    """The sums of everything that the models give, by name (see NAMED_BY)."""
    k = len(attribute.values)
    caption, _, confidence = data.pairs
    cosines = similarities(data, texts, models.encode, lambda share: progress(ENCODE * share, "sentence encoder"))
    likelihood = models.likelihood(
        texts.distinct, lambda share: progress(ENCODE + (READ - ENCODE) * share, "language model")
    )[texts.code]  # (n, K + 1)
    scores = gender_score(likelihood[caption], cosines, confidence[:, None])  # (p, K + 1)
    mean = np.stack([_mean_of(caption, scores[:, place], len(data.captions)) for place in range(k)], axis=1)
    suggested = {"estimation": mean, "language_model": likelihood[:, :k]}
    if models.masked:
        suggested["masked_model"] = _masked(texts, models, k, lambda share: progress(READ, "masked language model"))
    own = scores[np.arange(len(caption)), data.value[caption]]
    found = {
        METRIC: score_sums(data, scores, ways_of(METRIC, attribute)),
        "weighted_cooccurrence": counted(data, data.value, own, ways_of("weighted_cooccurrence", attribute), k),
    }
    once = np.ones(len(caption))
    for name, values in suggested.items():
        found[name] = counted(data, _place(chosen(values)), once, ways_of(name, attribute), k)
    return found


def _mean_of(caption: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """(p,) values of pairs to (n,) means, one a caption."""
    return np.bincount(caption, values, n) / np.bincount(caption, minlength=n)


def _place(picked: np.ndarray) -> np.ndarray:
    """(n, K) booleans to the place of the one that is true, -1 for none."""
    return np.where(picked.any(axis=1), picked.argmax(axis=1), -1)


def _masked(texts: Texts, models: Models, k: int, tick: Callable[[float], None]) -> np.ndarray:
    """(n, K) probability of each value's word at the first place that names the value, all else in neutral words."""
    places = [
        (one.places[-1][0], one.places[place][1], one.places[-1][2]) for one in texts.variants for place in range(k)
    ]
    distinct = list(dict.fromkeys(places))
    row = {place: number for number, place in enumerate(distinct)}
    found = models.masked(distinct, tick)
    return found[[row[place] for place in places]].reshape(len(texts.variants), k)
