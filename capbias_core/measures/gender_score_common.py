"""Measures of values and objects (Sabir and Padró, 2023): captions that name one value, their objects and variants,
and the evidence summed over the set and beside each object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import FEWEST, NOTHING_MORE, WITHOUT_LIMIT, Counts, Metric, Needs, unlabelled, zero
from capbias_core.aggregate.counts import beside_objects, captions_beside_objects
from capbias_core.attributes import need_words, word_forms
from capbias_core.data import Data
from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles, find_model
from capbias_core.load.tables import objects_in
from capbias_core.measures.base import Outcome
from capbias_core.measures.caption_side import names_in
from capbias_core.measures.options import Options, option
from capbias_core.metrics.gender_score import bias_ratio, neutral_ratio, object_distance
from capbias_core.metrics.share import share
from capbias_core.prepare.tasks import named_objects, object_names, phrases
from capbias_core.prepare.text import FORMS_METHOD, Variants, variants
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute, ShareDone
from capbias_core.workspace.models import KINDS
from capbias_core.workspace.spec import ModelReference

PAPER = "Sabir and Padró, Findings of EMNLP 2023"

IMAGE, CAPTION = "image", "caption"
# The paper's: objects that a detector is less sure of are left out, and of the others the three surest stay.
LEAST_CONFIDENCE, MOST_OBJECTS = 0.2, 3
CONFIDENCE = 0.5


# options and metrics


def model_choice(kind: str, unnamed: str = "default: {usual}") -> Any:
    """The field of an option that names a model: a reference once frozen. unnamed: the help text on None."""
    what, usual = KINDS[kind]
    flag = f"--{kind.replace('_', '-')}"
    return option(None, f"{what} ({unnamed.format(usual=usual)})", flag=flag, metavar="NAME_OR_FOLDER")


@dataclass(frozen=True)
class ObjectChoices(Options):
    """Which objects count. objects_from: None for what is usual for the measure."""

    objects_from: str | None = option(
        None,
        "objects of the image, or those that the caption names (default: the caption's for cooccurrence, else the "
        "image's if they are known)",
        flag="--objects-from",
        choices=(IMAGE, CAPTION),
    )
    object_words: tuple[str, ...] = option(
        (), "further words that count as objects if a caption has them", flag="--object-words", metavar="WORD"
    )
    least_confidence: float = option(
        LEAST_CONFIDENCE, "leave out objects of which a detector is less sure", at_least=0, at_most=1, metavar="P"
    )


@dataclass(frozen=True)
class VariantChoices(ObjectChoices):
    """Choices of a measure that puts the words of each value into a caption."""

    forms: tuple[list[str], ...] = option((), "the words that replace each other; () for the usual")


@dataclass(frozen=True)
class EncoderChoices(VariantChoices):
    """Choices of a measure that reads the variants with a sentence encoder. sentence_encoder: None for the paper's."""

    sentence_encoder: ModelReference | str | None = model_choice("sentence_encoder")


def frozen_forms(attribute: Attribute) -> tuple[list[str], ...]:
    """The words that replace each other, for a run's options; none if a value has no words."""
    return () if attribute.unnamed_values else tuple(list(row) for row in word_forms(attribute))


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
    shared = {"reads": (name,), **OF_EACH_VALUE}
    to_neutral = f"{name}_to_neutral", f"{title}, ratio to the neutral word", 1, lambda k: 1.0, "neutral", WITHOUT_LIMIT
    return (
        Metric(
            *(name, title, 1, zero, "neutral", limits, source, explanation),
            of=lambda sums: share(sums[..., :-1], sums[..., -1:]),
            interval="free",
            **shared,
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
            **shared,
        ),
    )


# captions and objects


@dataclass(frozen=True)
class Gendered:
    """Captions whose words name one value of the attribute, and their objects."""

    images: tuple[str, ...]
    image: np.ndarray  # (n,) index in images
    texts: ExtensionArray  # of all captions, as written
    row: np.ndarray  # (n,) index in texts
    value: np.ndarray  # (n,) index of the value that the words name
    objects: tuple[str, ...]
    confidence: csr_array  # (n, L), of a detector in each object of a caption, above 0 and at most 1
    source: str  # in words, where the objects come from
    others: int  # captions that name no or several values
    least: float = LEAST_CONFIDENCE  # of a detector in an object that counts
    unsure: int = 0  # objects of the images of which a detector was less sure, which do not count
    bare: int = 0  # captions left out since they have no object

    @property
    def captions(self) -> ExtensionArray:
        """(n,) as written."""
        return self.texts[self.row]

    def having(self, which: np.ndarray) -> Gendered:
        """Only these captions, (n,) booleans, and their images."""
        rows = np.flatnonzero(which)
        kept, image = np.unique(self.image[rows], return_inverse=True)
        columns = {name: getattr(self, name)[rows] for name in ("row", "value", "confidence")}
        return replace(self, images=tuple(np.array(self.images, dtype=object)[kept]), image=image, **columns)

    def with_objects(self) -> Gendered:
        """Only the captions that have an object. Raises CapbiasError if there is none."""
        having = np.diff(self.confidence.indptr) > 0
        if not having.any():
            raise CapbiasError(
                f"No caption names one value and has an object ({self.source}).",
                "Load objects of the images, or name words that count as objects.",
            )
        return replace(self.having(having), bare=int((~having).sum()))

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(p,) caption, object and confidence of each caption beside each object of it."""
        pairs = self.confidence.tocoo()
        order = np.lexsort((pairs.col, pairs.row))
        return pairs.row[order], pairs.col[order], pairs.data[order]


def gendered(
    frame: pd.DataFrame,
    attribute: Attribute,
    objects: pd.Series | None,
    choices: ObjectChoices,
    usual: str = CAPTION,
    tokens: Callable[[pd.DataFrame], Tokens] = lambda frame: Tokens.of(frame["caption"]),
) -> Gendered:
    """Captions (image_id, caption) that name one value, with the objects of the image or those that they name.

    objects: text such as `cat|dog` or, from a detector, `cat:0.93|dog:0.41`, by image id. usual: where objects are from
    if `choices` does not say; the caption if there are no objects of images. tokens: of rows of the frame, if they are
    known. Raises CapbiasError for an attribute without words.
    """
    need_words(attribute)
    source = choices.objects_from or (usual if objects is not None else CAPTION)
    confidence = getattr(choices, "object_confidence", CONFIDENCE)
    encoded, unsure, where = tokens(frame), 0, "objects that the caption names"
    named = names_in(encoded, attribute)
    kept = np.flatnonzero(named.sum(axis=1) == 1)

    def mentioned(table: dict) -> tuple[tuple[str, ...], csr_array]:
        return tuple(table), csr_array(named_objects(encoded, table).astype(float) * confidence)

    if source == IMAGE:
        if objects is None:
            raise CapbiasError(
                "The objects of the images are not loaded.",
                "Load COCO instances or a table with a column objects, or use the objects that captions name.",
            )
        names, columns, unsure = _on_images(frame["image_id"], objects, confidence, choices.least_confidence)
        where = "objects of the image"
    else:
        names, columns = mentioned(object_names())
    if further := phrases(choices.object_words):
        words, more = mentioned(further)
        new = [column for column, word in enumerate(words) if word not in names]
        names, columns = (*names, *(words[column] for column in new)), csr_array(hstack([columns, more[:, new]]))
    image, images = pd.factorize(frame["image_id"].iloc[kept])
    return Gendered(
        images=tuple(images.to_numpy(dtype=object)),
        image=image,
        texts=frame["caption"].array,
        row=kept,
        value=named.argmax(axis=1)[kept],
        objects=names,
        confidence=csr_array(columns[kept]),
        others=len(frame) - len(kept),
        source=where,
        least=choices.least_confidence,
        unsure=unsure,
    )


def _on_images(
    image_id: pd.Series, objects: pd.Series, usual: float, least: float
) -> tuple[tuple[str, ...], csr_array, int]:
    """The objects of each caption's image with their confidence, (n, L); and how many a detector was not sure of.

    Of an image with a detector's confidences the MOST_OBJECTS surest of at least `least` stay; of others all, each with
    the usual confidence. `person` does not count.
    """
    found = objects_in(objects[objects.index.isin(image_id)])
    found = found[found["object"] != "person"].groupby(["image_id", "object"], sort=False, as_index=False).last()
    detected = found["confidence"].notna().groupby(found["image_id"]).transform("any")
    surest = found[detected].fillna({"confidence": 0.0}).sort_values(["confidence", "object"], ascending=False)
    surest = surest.groupby("image_id", sort=False).head(MOST_OBJECTS)
    sure = pd.concat([surest[surest["confidence"] >= least], found[~detected].fillna({"confidence": usual})])
    captions = pd.DataFrame({"caption": range(len(image_id)), "image_id": image_id.to_numpy(dtype=object)})
    pairs = captions.merge(sure, on="image_id")
    column, names = pd.factorize(pairs["object"])
    matrix = csr_array(
        (pairs["confidence"], (pairs["caption"], column)), shape=(len(image_id), len(names)), dtype=float
    )
    return tuple(names), matrix, len(found) - len(sure)


def captions_of(data: Data, options: Any, usual: str = IMAGE) -> Gendered:
    """The captions of a run that name one value and have an object. usual: as in `gendered`."""
    return gendered(data.frame, data.attribute, data.objects, options, usual, tokens=data.tokens).with_objects()


# variants of captions


@dataclass(frozen=True)
class Texts:
    """The variants of captions."""

    variants: tuple[Variants, ...]
    distinct: tuple[str, ...]  # each text once
    code: np.ndarray  # (n, K + 1) index of each caption's variants in distinct


def texts_of(texts_of_set: Gendered, attribute: Attribute, choices: VariantChoices) -> Texts:
    """Every caption with the words of each value and, last, with neutral words. Raises CapbiasError if a value has no
    words."""
    forms = choices.forms or word_forms(attribute)
    versions = tuple(
        variants(caption, attribute, value, forms)
        for caption, value in zip(texts_of_set.captions, texts_of_set.value, strict=True)
    )
    index: dict[str, int] = {}
    code = np.array([[index.setdefault(text, len(index)) for text in version.texts] for version in versions])
    return Texts(versions, tuple(index), code)


def varied(data: Data, options: Any) -> tuple[Gendered, Texts, str]:
    """The captions of a run with their variants, and what the method says of them."""
    texts_of_set = captions_of(data, options)
    return texts_of_set, texts_of(texts_of_set, data.attribute, options), f"; {FORMS_METHOD}"


def cut_notes(cut: Callable[[Sequence[str]], list[str]], texts: Texts) -> tuple[str, ...]:
    """Notes where a model reads texts in part. cut: texts to its notes."""
    return tuple(f"Variants of captions: {note}" for note in cut(texts.distinct))


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


def model_files(data: Data, options: Any, kind: str) -> ModelFiles:
    """The files of a model that a run, or a user by name, chose."""
    chosen = getattr(options, kind)
    if chosen is None or isinstance(chosen, str):
        return text_model(kind, chosen)
    return data.sources.model(chosen)


def text_model(kind: str, name: str | None) -> ModelFiles:
    """A model on this machine as a user names it, None for that of the papers."""
    what, usual = KINDS[kind]
    return find_model(name or usual, what)


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
    summed, captions = {}, {}

    def by_image(pair: np.ndarray, weights: np.ndarray, first: np.ndarray, width: int) -> csr_array:
        """(n_images, width) sums of (e, W) weights. first: (e,) the column of the first weight."""
        each = weights.shape[1]
        cells = np.repeat(texts_of_set.image[caption[pair]], each), (first[:, None] + np.arange(each)).ravel()
        return csr_array((weights.ravel(), cells), shape=(len(texts_of_set.images), width))

    for name, weights in columns.items():
        pair, each, objects = weights.pair, weights.of_set.shape[1], len(texts_of_set.objects)
        summed[name] = by_image(pair, weights.of_set, np.zeros_like(pair), each)
        summed[beside_objects(name)] = by_image(pair, weights.of_object, of_pair[pair] * each, objects * each)
        summed[captions_beside_objects(name)] = by_image(pair, np.ones((len(pair), 1)), of_pair[pair], objects)
        captions[name] = len(np.unique(caption[pair]))
    counts = Counts.by_image(
        texts_of_set.images,
        unlabelled(texts_of_set.images),
        summed,
        objects=texts_of_set.objects,
        constants={f"{name} captions": float(n) for name, n in captions.items()},
    )
    method = f"captions that name one value, with {texts_of_set.source}{how}"
    about = {
        metric.name: {"method": method, "n": captions[name], "encoder": (models or {}).get(name, "")}
        for metric in metrics
        for name in metric.reads
        if name in columns
    }
    return Outcome(counts, notes=(note(texts_of_set), *notes), own_columns=about)


def note(texts_of_set: Gendered) -> str:
    """What was left out, for the reader."""
    unsure = (
        f" Of the objects that a detector found, {texts_of_set.unsure:,} do not count: only the {MOST_OBJECTS} surest "
        f"of an image do, with a confidence of {texts_of_set.least:g} or more."
    )
    return (
        f"{len(texts_of_set.captions):,} captions name one value and have an object ({texts_of_set.source}); "
        f"{texts_of_set.bare:,} more have none, and {texts_of_set.others:,} name no or several values."
        f"{unsure if texts_of_set.unsure else ''}"
    )
