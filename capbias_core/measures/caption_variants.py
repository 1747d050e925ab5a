"""What measures that score a caption's variants share: texts, their scores beside objects, and sums of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capbias_core.attributes import word_forms
from capbias_core.language.files import ModelFiles, find_model
from capbias_core.measures.base import Metric, zero
from capbias_core.measures.gender_score_common import (
    PAPER,
    WITHOUT_LIMIT,
    Gendered,
    ObjectChoices,
    Sums,
    TextJob,
    ratio_metric,
)
from capbias_core.measures.options import option
from capbias_core.metrics.gender_score import bias_ratio, neutral_ratio, object_distance
from capbias_core.metrics.share import share
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
    """The metrics of a score of each value: itself, its ratio to each value and to the neutral word. They read the
    column of this name: K scores, that of the neutral word, and the number of pairs."""
    reads = {"reads": (name,), "by_value": True}
    to_neutral = f"{name}_to_neutral", f"{title}, ratio to the neutral word", 1, lambda k: 1.0, "neutral", WITHOUT_LIMIT
    return (
        Metric(
            *(name, title, 1, zero, "neutral", limits, source, f"{explanation} {EACH}"),
            of=lambda sums: share(sums[..., :-1], sums[..., -1:]),
            interval="free",
            **reads,
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
            of=lambda sums: neutral_ratio(sums[..., :-2], sums[..., -2:-1]),
            **reads,
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


def score_sums(name: str, metrics: Iterable[Metric], attribute: Attribute, data: Gendered, scores: np.ndarray) -> Sums:
    """Sums of (p, K + 1) scores of pairs, and how many, over the set and by object. A pair without a score (nan) is
    left out. name: of the column that the metrics read."""
    caption, column, _ = data.pairs
    kept = np.isfinite(scores).all(axis=1)
    caption, column = caption[kept], column[kept]
    weights = np.column_stack([scores[kept], np.ones(kept.sum())])  # (p, W)
    n, width = weights.shape
    entries = (np.repeat(np.arange(n), width), np.tile(np.arange(width), n), np.column_stack([weights.ravel()] * 2))
    return Sums.of(name, metrics, attribute, data, (caption, column), entries, width, len(np.unique(caption)))


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
