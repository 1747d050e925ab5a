"""What measures that score a caption's variants share: texts, their scores beside objects, and sums of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capbias_core.aggregate.columns import Statistic
from capbias_core.attributes import word_forms
from capbias_core.language.files import ModelFiles, find_model
from capbias_core.measures.base import Metric, zero
from capbias_core.measures.gender_score_common import (
    PAPER,
    WITHOUT_LIMIT,
    Gendered,
    ObjectChoices,
    Statistics,
    Sums,
    TextJob,
    directions,
    image_sums,
    ratio_metric,
)
from capbias_core.measures.options import option
from capbias_core.metrics.bias_ratio import bias_ratio
from capbias_core.metrics.neutral_ratio import neutral_ratio
from capbias_core.metrics.object_distance import object_distance
from capbias_core.prepare.variants import FORMS_METHOD, Forms, Variants, led_variants, variants
from capbias_core.types import Attribute, ShareDone
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.spec import ModelReference

EACH = "One number for each value, and one for the neutral word."


@dataclass(frozen=True)
class VariantChoices(ObjectChoices):
    """Choices of a measure that puts the words of each value into a caption. forms: those words; () for the usual."""

    forms: tuple[list[str], ...] = option((), "the words that are put in each other's place")


def model_choice(kind: str, unnamed: str = "default: {usual}") -> Any:
    """The field of an option that names a model: a reference once frozen. unnamed: what is said of None."""
    what, usual = KINDS[kind]
    flag = f"--{kind.replace('_', '-')}"
    return option(None, f"{what} ({unnamed.format(usual=usual)})", flag=flag, metavar="NAME_OR_FOLDER")


@dataclass(frozen=True)
class EncoderChoices(VariantChoices):
    """Choices of a measure that reads the variants with a sentence encoder. sentence_encoder: None for the paper's."""

    sentence_encoder: ModelReference | str | None = model_choice("sentence_encoder")


def score_metrics(
    name: str, title: str, limits: tuple[float, float], source: str, explanation: str
) -> tuple[Metric, ...]:
    """The metrics of a score of each value: itself, its ratio to each value and to the neutral word."""
    return (
        Metric(name, title, 1, zero, "neutral", limits, source, f"{explanation} {EACH}"),
        ratio_metric(
            f"{name}_ratio",
            f"{title}, ratio to each value",
            f"{PAPER}, Eq. 1",
            "The value's score over the sum of all values' scores.",
        ),
        Metric(
            f"{name}_to_neutral",
            f"{title}, ratio to the neutral word",
            1,
            lambda k: 1.0,
            "neutral",
            WITHOUT_LIMIT,
            f"{PAPER}, Eq. 2",
            "The value's score over that of the neutral word.",
        ),
    )


@dataclass(frozen=True)
class Texts:
    """The variants of captions. distinct: each text once. code: (n, K + 1) place of each caption's variants in it."""

    variants: tuple[Variants, ...]
    distinct: tuple[str, ...]
    code: np.ndarray


def frozen_forms(attribute: Attribute) -> tuple[list[str], ...]:
    """The words that are put in each other's place, for a run's options; none if a value has no words."""
    return () if attribute.unnamed_values else tuple(list(row) for row in word_forms(attribute))


def texts_of(data: Gendered, attribute: Attribute, forms: Forms, lead: str = "") -> Texts:
    """Every caption said of each value and, last, with neutral words. lead: what stands before a text that names no
    value. Raises CapbiasError if a value has no words."""
    forms = forms or word_forms(attribute)
    return coded(
        [
            variants(caption, attribute, value, forms) if value >= 0 else led_variants(caption, lead, forms)
            for caption, value in zip(data.captions, data.named, strict=True)
        ]
    )


def coded(found: Sequence[Variants]) -> Texts:
    """Variants with each distinct text once."""
    place: dict[str, int] = {}
    code = np.array([[place.setdefault(text, len(place)) for text in one.texts] for one in found])
    return Texts(tuple(found), tuple(place), code)


def variants_cut(cut: Callable[[Sequence[str]], list[str]], texts: Texts) -> list[str]:
    """What a model says of texts that it reads in part. cut: texts to its notes."""
    return [f"Variants of captions: {note}" for note in cut(texts.distinct)]


def similarities(
    data: Gendered, texts: Texts, encode: Callable[[Sequence[str], ShareDone], np.ndarray], tick: ShareDone
):
    """(p, K + 1) cosine of each variant and each object of its caption."""
    caption, column, _ = data.pairs
    seen = np.unique(column)
    vectors = encode([*texts.distinct, *(data.objects[place] for place in seen)], tick)
    objects = np.zeros((len(data.objects), vectors.shape[1]), dtype=vectors.dtype)
    objects[seen] = vectors[len(texts.distinct) :]
    parts = [
        object_distance(vectors[texts.code[caption, place]], objects[column]) for place in range(texts.code.shape[1])
    ]
    return np.column_stack(parts).astype(float)


def score_statistics(metric: str, attribute: Attribute) -> Statistics:
    """From (..., K + 2) sums, a score of each value, of the neutral word, and the number, to the metric's values, Eq. 1
    and Eq. 2."""
    k = len(attribute.values)
    names = directions(attribute)
    found: Statistics = {(metric, names[place]): _mean(place) for place in range(k + 1)}
    found |= {(f"{metric}_ratio", names[place]): _ratio(place, k) for place in range(k)}
    return found | {(f"{metric}_to_neutral", names[place]): _to_neutral(place, k) for place in range(k)}


def _mean(place: int) -> Statistic:
    return Statistic(lambda sums: _quotient(sums[..., place], sums[..., -1]))


def _ratio(place: int, k: int) -> Statistic:
    return Statistic(lambda sums: bias_ratio(sums[..., :k])[..., place], share=True)


def _to_neutral(place: int, k: int) -> Statistic:
    return Statistic(lambda sums: neutral_ratio(sums[..., place], sums[..., k]))


def _quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerator / denominator


def score_sums(data: Gendered, scores: np.ndarray, statistics: Statistics) -> Sums:
    """Sums of (p, K + 1) scores of pairs, and how many, over the set and by object. A pair without a score (nan) is
    left out."""
    caption, column, _ = data.pairs
    kept = np.isfinite(scores).all(axis=1)
    caption, column = caption[kept], column[kept]
    entries = np.column_stack([scores[kept], np.ones(kept.sum())])  # (p, W)
    width, n_images, n_objects = entries.shape[1], len(data.images), len(data.objects)
    image = np.repeat(data.image[caption], width)
    places = np.tile(np.arange(width), len(caption))
    by_object = np.repeat(column * width, width) + places
    return Sums(
        data.images,
        data.objects,
        image_sums(image, n_images, places, width, entries.ravel()),
        image_sums(image, n_images, by_object, n_objects * width, entries.ravel()),
        statistics,
        len(np.unique(caption)),
        np.bincount(column, minlength=n_objects),
    )


def variants_of_texts(job: TextJob) -> tuple[Gendered, Texts, str]:
    """Plain texts with their variants, those that name no value only if there is a lead; and their method in words."""
    data = job.data
    if not job.lead and (data.named < 0).any():
        data = data.having(data.named >= 0)
    led = f"; before texts that name none: {job.lead}" if job.lead else ""
    return data, texts_of(data, job.attribute, (), job.lead), job.method(data, f"; {FORMS_METHOD}{led}")


def text_model(kind: str, name: str | None) -> ModelFiles:
    """A model on this machine as a user names it, None for that of the papers."""
    what, usual = KINDS[kind]
    return find_model(name or usual, what)
