"""Measures of values and objects (Sabir and Padró, 2023): captions that name one value, their objects and variants,
sums over the set and by object, and rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import (
    IMAGES,
    NEUTRAL,
    NOTHING_MORE,
    WITHOUT_LIMIT,
    Counts,
    Metric,
    Needs,
    estimates_of,
    intervals,
    unlabelled,
    zero,
)
from capbias_core.aggregate.resampling import column_intervals
from capbias_core.attributes import need_words, word_forms
from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles, find_model
from capbias_core.measures.base import Job, Outcome
from capbias_core.measures.caption_side import names_in
from capbias_core.measures.options import Options, option
from capbias_core.measures.protocols import protocol_text
from capbias_core.metrics.gender_score import bias_ratio, neutral_ratio, object_distance
from capbias_core.metrics.share import share
from capbias_core.prepare.tasks import named_objects, object_names, phrases
from capbias_core.prepare.text import FORMS_METHOD, Variants, led_variants, variants
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import RESULT_COLUMNS, Attribute, Progress, Result, ShareDone
from capbias_core.workspace.models import KINDS, resolve_model
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import frame_bytes

PAPER = "Sabir and Padró, Findings of EMNLP 2023"

IMAGE, CAPTION = "image", "caption"
# The paper's: objects that a detector is less sure of are left out, and of the others the three surest stay.
LEAST_CONFIDENCE, MOST_OBJECTS = 0.2, 3
CONFIDENCE = 0.5
FEWEST = 10  # captions, for an interval


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


@dataclass(frozen=True)
class VariantChoices(ObjectChoices):
    """Choices of a measure that puts the words of each value into a caption. forms: those words; () for the usual."""

    forms: tuple[list[str], ...] = option((), "the words that replace each other")


@dataclass(frozen=True)
class EncoderChoices(VariantChoices):
    """Choices of a measure that reads the variants with a sentence encoder. sentence_encoder: None for the paper's."""

    sentence_encoder: ModelReference | str | None = model_choice("sentence_encoder")


def frozen_forms(attribute: Attribute) -> tuple[list[str], ...]:
    """The words that replace each other, for a run's options; none if a value has no words."""
    return () if attribute.unnamed_values else tuple(list(row) for row in word_forms(attribute))


def ratio_metric(
    name: str, title: str, source: str, explanation: str, column: str, needs: Needs = NOTHING_MORE, of=bias_ratio
) -> Metric:
    """A metric that is each value's share of something: 1 / K means no bias. column: that it reads."""
    facts = (name, title, 1, lambda k: 1 / k, "neutral", (0, 1), source, explanation)
    return Metric(*facts, needs=needs, reads=(column,), of=of, by_value=True, interval="share")


def estimator_metrics(
    name: str, count: str, title: str, what: str, source: str, column: str, needs: Needs = NOTHING_MORE
) -> tuple[Metric, Metric]:
    """The shares and the counts of captions that go with each value. what: which captions. column: that they read."""
    facts = (count, f"{title}, captions", 1, zero, "neutral", WITHOUT_LIMIT, source, f"{what}: how many.")
    explanation = f"{what}, of those of all values."
    return (
        ratio_metric(name, f"{title}, ratio to each value", source, explanation, column, needs),
        Metric(*facts, needs=needs, reads=(column,), of=lambda sums: sums, by_value=True),
    )


def score_metrics(
    name: str, title: str, limits: tuple[float, float], source: str, explanation: str
) -> tuple[Metric, ...]:
    """The metrics of a score of each value: itself, its ratio to each value and to the neutral word. They read the
    column of this name: K scores, that of the neutral word, and the number of pairs."""
    explanation += " One number for each value, and one for the neutral word."
    shared = {"reads": (name,), "by_value": True}
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
    """Captions whose words name one value of the attribute, and their objects.

    image: (n,) index in images. captions: (n,) as written. named: (n,) index of the value that the words name, -1 for
    none. value: (n,) that which counts, the same unless labels were given (see views/texts.py). confidence:
    (n, L) sparse, a detector's confidence in each object of a caption, in (0, 1]. others: captions that name no or
    several values. source: in words, where the objects come from. unsure: objects of the images that a detector found
    and that do not count, since it was less sure of them.
    """

    images: tuple[str, ...]
    image: np.ndarray
    captions: ExtensionArray
    named: np.ndarray
    value: np.ndarray
    objects: tuple[str, ...]
    confidence: csr_array
    others: int
    source: str
    unsure: int = 0

    def having(self, which: np.ndarray) -> Gendered:
        """Only these captions, (n,) booleans, and their images."""
        rows = np.flatnonzero(which)
        kept, image = np.unique(self.image[rows], return_inverse=True)
        columns = {name: getattr(self, name)[rows] for name in ("captions", "named", "value", "confidence")}
        return replace(self, images=tuple(np.array(self.images, dtype=object)[kept]), image=image, **columns)

    def with_objects(self) -> Gendered:
        """Only the captions that have an object. Raises CapbiasError if there is none."""
        having = np.diff(self.confidence.indptr) > 0
        if not having.any():
            raise CapbiasError(
                f"No caption names one value and has an object ({self.source}).",
                "Load objects of the images, or name words that count as objects.",
            )
        return self.having(having)

    @property
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
    confidence: float = CONFIDENCE,
    keep_all: bool = False,
    others: Sequence[pd.Series] = (),
    votes: int = 1,
    tokens: Callable[[pd.DataFrame], Tokens] = lambda frame: Tokens.of(frame["caption"]),
) -> Gendered:
    """Captions (image_id, caption) that name one value, with the objects of the image or those that they name.

    objects: text such as `cat|dog` or, from a detector, `cat:0.93|dog:0.41`, by image id. usual: where objects are from
    if `choices` does not say; the caption if there are no objects of images. confidence: in objects without a
    detector's. keep_all: also captions that name no or several values. others: objects of the images from further
    sources. votes: how many sources must name an object. tokens: of rows of the frame, if they are known. Raises
    CapbiasError for an attribute without words.
    """
    need_words(attribute)
    source = choices.objects_from or (usual if objects is not None else CAPTION)
    encoded, unsure, where = tokens(frame), 0, "objects that the caption names"
    named = names_in(encoded, attribute)
    one = named.sum(axis=1) == 1
    kept = np.flatnonzero(one | keep_all)

    def mentioned(table: dict) -> tuple[tuple[str, ...], csr_array]:
        return tuple(table), csr_array(named_objects(encoded, table).astype(float) * confidence)

    if source == IMAGE:
        if objects is None:
            raise CapbiasError(
                "The objects of the images are not loaded.",
                "Load COCO instances or a table with a column objects, or use the objects that captions name.",
            )
        names, columns, unsure = _shown(frame["image_id"], [objects, *others], votes, confidence)
        where = "objects of the image" + (f" that {votes} of {1 + len(others)} sources name" if others else "")
    else:
        names, columns = mentioned(object_names())
    if further := phrases(choices.object_words):
        words, more = mentioned(further)
        new = [column for column, word in enumerate(words) if word not in names]
        names, columns = (*names, *(words[column] for column in new)), csr_array(hstack([columns, more[:, new]]))
    image, images = pd.factorize(frame["image_id"].iloc[kept])
    value = np.where(one, named.argmax(axis=1), -1)[kept]
    return Gendered(
        images=tuple(images.to_numpy(dtype=object)),
        image=image,
        captions=frame["caption"].array[kept],
        named=value,
        value=value,
        objects=names,
        confidence=csr_array(columns[kept]),
        others=len(frame) - len(kept),
        source=where,
        unsure=unsure,
    )


def _shown(
    image_id: pd.Series, sources: Sequence[pd.Series], votes: int, usual: float
) -> tuple[tuple[str, ...], csr_array, int]:
    """Objects of each caption's image that so many sources name, each with the highest confidence that one has in it;
    and how many objects detectors were not sure enough of."""
    texts, by_image, unsure = [dict(source.items()) for source in sources], {}, 0
    for image in image_id.unique():
        by_image[image] = named = {}
        for text in texts:
            if image in text:
                objects, left_out = _read(text[image], usual)
                unsure += left_out
                for name, sure in objects:
                    named.setdefault(name, []).append(sure)
    row, column, confidence, index = [], [], [], {}
    for number, image in enumerate(image_id):
        for name, sure in by_image[image].items():
            if len(sure) >= votes:
                row.append(number)
                column.append(index.setdefault(name, len(index)))
                confidence.append(max(sure))
    matrix = csr_array((confidence, (row, column)), shape=(len(image_id), len(index)), dtype=float)
    return tuple(index), matrix, unsure


def _read(text: str, usual: float) -> tuple[list[tuple[str, float]], int]:
    """`cat:0.93|dog:0.4` to names and confidences, without `person`, and how many more objects there are.

    If a detector's confidence stands behind the names, the three surest of at least 0.2 stay; else all, each with
    the usual confidence.

    >>> _read("cat:0.93|dog:0.1|person:1", 0.5), _read("tie|cup", 0.5)
    (([('cat', 0.93)], 1), ([('tie', 0.5), ('cup', 0.5)], 0))
    """
    confidence: dict[str, float | None] = {}
    for part in filter(None, (str(text) if text == text else "").split("|")):
        name, _, number = part.strip().rpartition(":")
        try:
            sure = float(number) if name else None
        except ValueError:
            sure = None
        known = sure is not None and 0 <= sure <= 1
        confidence[name if known else part.strip()] = sure if known else None
    confidence.pop("person", None)
    if all(sure is None for sure in confidence.values()):
        return [(name, usual) for name in confidence], 0
    surest = sorted(((sure or 0.0, name) for name, sure in confidence.items()), reverse=True)[:MOST_OBJECTS]
    kept = [(name, sure) for sure, name in surest if sure >= LEAST_CONFIDENCE]
    return kept, len(confidence) - len(kept)


# variants of captions


@dataclass(frozen=True)
class Texts:
    """The variants of captions. distinct: each text once. code: (n, K + 1) index of each caption's variants in it."""

    variants: tuple[Variants, ...]
    distinct: tuple[str, ...]
    code: np.ndarray


def texts_of(data: Gendered, attribute: Attribute, forms: Sequence[Sequence[str]] = (), lead: str = "") -> Texts:
    """Every caption with the words of each value and, last, with neutral words. lead: what stands before a text that
    names no value. Raises CapbiasError if a value has no words."""
    forms = forms or word_forms(attribute)
    versions = tuple(
        variants(caption, attribute, value, forms) if value >= 0 else led_variants(caption, lead, forms)
        for caption, value in zip(data.captions, data.named, strict=True)
    )
    index: dict[str, int] = {}
    code = np.array([[index.setdefault(text, len(index)) for text in version.texts] for version in versions])
    return Texts(versions, tuple(index), code)


def cut_notes(cut: Callable[[Sequence[str]], list[str]], texts: Texts) -> tuple[str, ...]:
    """Notes where a model reads texts in part. cut: texts to its notes."""
    return tuple(f"Variants of captions: {note}" for note in cut(texts.distinct))


def similarities(
    data: Gendered, texts: Texts, encode: Callable[[Sequence[str], ShareDone], np.ndarray], tick: ShareDone
) -> np.ndarray:
    """(p, K + 1) cosine of each variant and each object of its caption."""
    caption, column, _ = data.pairs
    seen = np.unique(column)
    vectors = encode([*texts.distinct, *(data.objects[number] for number in seen)], tick)
    objects = np.zeros((len(data.objects), vectors.shape[1]), dtype=vectors.dtype)
    objects[seen] = vectors[len(texts.distinct) :]
    versions = range(texts.code.shape[1])
    parts = [object_distance(vectors[texts.code[caption, version]], objects[column]) for version in versions]
    return np.column_stack(parts).astype(float)


# sums


@dataclass(frozen=True)
class Sums:
    """What was counted over the set and beside each object.

    metrics: that read it. values: of the attribute. counts: one column, (n_images, W). by_object: (n_images, L * W),
    the same beside each of L objects. n: captions; n_by_object: (L,). encoder: as rows name the models.
    """

    metrics: tuple[Metric, ...]
    values: tuple[str, ...]
    counts: Counts
    objects: tuple[str, ...]
    by_object: csr_array
    n: int
    n_by_object: np.ndarray
    encoder: str = ""


def sums_of(
    name: str,
    metrics: Iterable[Metric],
    attribute: Attribute,
    data: Gendered,
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    width: int,
    encoder: str,
) -> Sums:
    """Entries summed over the set and beside each object.

    name: of the column that the metrics read. entries: (e,) index of the pair in `data.pairs`, (e,) column from 0 to
    width - 1, and (e, 2) weights over the set and beside the object.
    """
    caption, column, _ = data.pairs
    pair, entry, weight = entries
    image, taken = data.image[caption[pair]], np.unique(pair)

    def summed(column: np.ndarray, width: int, weight: np.ndarray) -> csr_array:
        return csr_array((weight, (image, column)), shape=(len(data.images), width))

    return Sums(
        metrics=tuple(metric for metric in metrics if metric.reads == (name,)),
        values=attribute.values,
        counts=Counts.by_image(data.images, unlabelled(data.images), {name: summed(entry, width, weight[:, 0])}),
        objects=data.objects,
        by_object=summed(column[pair] * width + entry, len(data.objects) * width, weight[:, 1]),
        n=len(np.unique(caption[taken])),
        n_by_object=np.bincount(column[taken], minlength=len(data.objects)),
        encoder=encoder,
    )


def counted(
    name: str,
    metrics: Iterable[Metric],
    attribute: Attribute,
    data: Gendered,
    value: np.ndarray,
    weight: np.ndarray,
    encoder: str = "",
) -> Sums:
    """Sums of weights by value, of captions over the set and of captions beside each object.

    value: (n,) code of the value that each caption counts for, -1 for none. weight: (p,) of each pair of a caption and
    an object; over the set a caption has the mean of its objects' weights.
    """
    caption = data.pairs[0]
    pair = np.flatnonzero(value[caption] >= 0)
    share = weight[pair] / np.bincount(caption)[caption[pair]]
    entries = pair, value[caption[pair]], np.column_stack([share, weight[pair]])
    return sums_of(name, metrics, attribute, data, entries, len(attribute.values), encoder)


def score_sums(
    name: str, metrics: Iterable[Metric], attribute: Attribute, data: Gendered, scores: np.ndarray, encoder: str = ""
) -> Sums:
    """Sums of (p, K + 1) scores of pairs, and how many, over the set and by object. A pair without a score (nan) is
    left out. name: of the column that the metrics read."""
    kept = np.flatnonzero(np.isfinite(scores).all(axis=1))
    weights = np.column_stack([scores[kept], np.ones(len(kept))])  # (p, W)
    n, width = weights.shape
    entries = np.repeat(kept, width), np.tile(np.arange(width), n), np.column_stack([weights.ravel()] * 2)
    return sums_of(name, metrics, attribute, data, entries, width, encoder)


# rows


def set_rows(sums: Sums, columns: Mapping[str, str]) -> list[Result]:
    """A row for each metric and direction over the set. columns: what all rows share, `attribute` and `model` too."""
    estimates = estimates_of(sums.metrics, sums.counts, sums.values)
    limits = intervals(estimates)
    return [_row(sums, columns, key, estimate.value, limits[key], sums.n) for key, estimate in estimates.items()]


def object_rows(sums: Sums, columns: Mapping[str, str]) -> pd.DataFrame:
    """A row for each metric, direction and object that a caption has, in RESULT_COLUMNS. There is no interval for an
    object of fewer than 10 captions, for which a bootstrap says too little of chance."""
    formulas = {metric.name: (metric.of, metric.interval == "share") for metric in sums.metrics}
    rows = []
    for name, (value, low, high) in column_intervals(sums.by_object, len(sums.objects), formulas).items():
        for which, direction in zip(range(value.shape[-1]), (*sums.values, NEUTRAL), strict=False):
            for number in np.argsort(-sums.n_by_object, kind="stable"):
                if n := int(sums.n_by_object[number]):
                    ends = (low[number, which], high[number, which])
                    limits = tuple(map(float, ends)) if np.isfinite(ends[0]) else (None, None)
                    of_object = {**columns, "object": sums.objects[number]}
                    rows.append(_row(sums, of_object, (name, direction), value[number, which], limits, n).row())
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def _row(sums: Sums, columns: Mapping[str, str], key: tuple[str, str], value: float, limits: tuple, n: int) -> Result:
    """A row of a metric and direction; without an interval from fewer than FEWEST captions."""
    low, high = limits if n >= FEWEST else (None, None)
    ends = {"ci_low": low, "ci_high": high, "interval": "" if low is None else IMAGES}
    known: dict[str, Any] = {"encoder": sums.encoder} | ends | dict(columns)
    return Result(metric=key[0], direction=key[1], value=float(value), n=n, **known)


def method(data: Gendered, further: str = "", which: str = "captions that name one value") -> str:
    """In words, what rows of a run depend on."""
    return f"{which}, with {data.source}{further}; 95% over images: Wilson of shares, else bootstrap, 1000 draws"


def note(data: Gendered, naming_one: int) -> str:
    """What was left out, for the reader. naming_one: captions that name one value."""
    unsure = (
        f" Of the objects that a detector found, {data.unsure:,} do not count: only the {MOST_OBJECTS} surest of an "
        f"image do, with a confidence of {LEAST_CONFIDENCE} or more."
    )
    return (
        f"{len(data.captions):,} captions name one value and have an object ({data.source}); "
        f"{naming_one - len(data.captions):,} more have none, and {data.others:,} name no or several values."
        f"{unsure if data.unsure else ''}"
    )


# runs on captions of images, and plain texts


@dataclass(frozen=True)
class TextJob:
    """Captions of images, or plain texts, for a measure of values and objects (`Measure.of_texts`).

    data: texts with the value that counts and their objects. options: of the measure. model: a kind of model to its
    files. lead: what stands before a text that names no value, '' if such texts do not count.
    """

    data: Gendered
    attribute: Attribute
    options: Any
    model: Callable[[str], ModelFiles]
    progress: Progress
    lead: str = ""

    def variants(self) -> tuple[Gendered, Texts, str]:
        """Texts with their variants, those that name no value only if there is a lead; and what the method says."""
        data, led = self.data, f"; before texts that name none: {self.lead}" if self.lead else ""
        if not self.lead and (data.named < 0).any():
            data = data.having(data.named >= 0)
        return data, texts_of(data, self.attribute, self.options.forms, self.lead), f"; {FORMS_METHOD}{led}"


class Counted(NamedTuple):
    """What a measure gives of a TextJob. data: the texts that count. further: what the method says besides."""

    sums: list[Sums]
    data: Gendered
    further: str = ""
    notes: tuple[str, ...] = ()


def count_images(
    job: Job, count: Callable[[TextJob], Counted], usual: str = IMAGE, **sources: Any
) -> tuple[list[Sums], dict[str, str], tuple[str, ...]]:
    """The sums of captions of images, what their rows share, and notes. usual, sources: as in `gendered`."""
    named = gendered(job.frame, job.attribute, job.objects(), job.options, usual, tokens=job.tokens, **sources)
    data = named.with_objects()

    def model(kind: str) -> ModelFiles:
        return resolve_model(job.workspace, getattr(job.options, kind))

    sums, _, further, notes = count(TextJob(data, job.attribute, job.options, model, job.progress))
    text = "; ".join(filter(None, [method(data, further), protocol_text(job.spec.measure, job.options)]))
    columns = {"attribute": job.attribute.name, "model": job.spec.model, "coverage": job.spec.coverage, "method": text}
    return sums, columns, (note(data, len(named.captions)), *notes)


def outcome(sums: list[Sums], columns: Mapping[str, str], notes: tuple[str, ...]) -> Outcome:
    """What a run leaves: rows over the set, rows of objects, and the counts."""
    rows = [row for column_sums in sums for row in set_rows(column_sums, columns)]
    tables = pd.concat([object_rows(column_sums, columns) for column_sums in sums])
    merged = {name: column for column_sums in sums for name, column in column_sums.counts.columns.items()}
    counts = replace(sums[0].counts, columns=merged)
    return Outcome(counts, notes=notes, arrays={"objects": frame_bytes(tables)}, results=rows)


def text_model(kind: str, name: str | None) -> ModelFiles:
    """A model on this machine as a user names it, None for that of the papers."""
    what, usual = KINDS[kind]
    return find_model(name or usual, what)
