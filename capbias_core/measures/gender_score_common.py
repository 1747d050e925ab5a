"""What measures of values beside objects share: captions that name one value, their objects, and rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import IMAGES, Counts, intervals, unlabelled
from capbias_core.aggregate.resampling import column_intervals
from capbias_core.attributes import need_words
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import NEUTRAL, NOTHING_MORE, Job, Metric, Needs, Outcome, estimates_of, zero
from capbias_core.measures.options import Options, option
from capbias_core.measures.protocols import protocol_text
from capbias_core.metrics.gender_score import bias_ratio
from capbias_core.prepare.tasks import named_objects, object_names, phrases
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import RESULT_COLUMNS, Attribute, Progress, Result
from capbias_core.workspace.store import frame_bytes

PAPER = "Sabir and Padró, Findings of EMNLP 2023"
WITHOUT_LIMIT = (0, float("inf"))

IMAGE, CAPTION = "image", "caption"
# The paper's: objects that a detector is less sure of are left out, and of the others the three surest stay.
LEAST_CONFIDENCE, MOST_OBJECTS = 0.2, 3
CONFIDENCE = 0.5
FEWEST = 10  # captions, for an interval

Objects = list[tuple[str, float]]  # names, and the confidence in each


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
        (),
        "further words that count as objects if a caption has them",
        flag="--object-words",
        metavar="WORD",
        several=True,
    )


@dataclass(frozen=True)
class Gendered:
    """Captions whose words name one value of the attribute, and their objects.

    image: (n,) place in images. captions: (n,) as written. named: (n,) place of the value that the words name, -1 for
    none. value: (n,) that which counts, the same unless labels were given (see analysis/texts.py). confidence:
    (n, L) sparse, a detector's confidence in each object of a caption, in (0, 1]. others: captions that name no or
    several values. found: in words, where the objects come from. unsure: objects of the images that a detector found
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
    found: str
    unsure: int = 0

    def having(self, which: np.ndarray) -> Gendered:
        """Only these captions, (n,) booleans, and their images."""
        kept = np.flatnonzero(which)
        places, image = np.unique(self.image[kept], return_inverse=True)
        own = {name: getattr(self, name)[kept] for name in ("captions", "named", "value", "confidence")}
        images = tuple(np.array(self.images, dtype=object)[places])
        return replace(self, images=images, image=image, **own)

    def with_objects(self) -> Gendered:
        """Only the captions that have an object. Raises CapbiasError where there is none."""
        having = np.diff(self.confidence.indptr) > 0
        if not having.any():
            raise CapbiasError(
                f"No caption names one value and has an object ({self.found}).",
                "Load objects of the images, or name words that count as objects.",
            )
        return self.having(having)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(p,) caption, object and confidence of every caption beside every object of it."""
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
    sources. votes: how many sources must name an object. tokens: of rows of the frame, where they are known. Raises
    CapbiasError for an attribute without words.
    """
    need_words(attribute)
    source = _source(objects, choices, usual)
    encoded = tokens(frame)
    named = encoded.with_any(attribute.value_words).toarray() > 0
    one = named.sum(axis=1) == 1
    kept = np.flatnonzero(one | keep_all)
    unsure = 0
    if source == IMAGE and objects is not None:
        sources = [dict(own.items()) for own in (objects, *others)]
        by_image = {
            image: [_read(own[image], confidence) for own in sources if image in own]
            for image in frame["image_id"].unique()
        }
        voted = {image: _voted([names for names, _ in own], votes) for image, own in by_image.items()}
        parts = [_of_images(frame["image_id"], voted)]
        unsure = sum(left_out for own in by_image.values() for _, left_out in own)
    else:
        parts = [_of_captions(encoded, object_names(), confidence)]
    further = phrases(choices.object_words)
    if further:
        parts.append(_of_captions(encoded, further, confidence))
    names, columns = _joined(parts)
    image, images = pd.factorize(frame["image_id"].iloc[kept])
    value = np.where(one, named.argmax(axis=1), -1)[kept]
    where = "objects of the image" if source == IMAGE else "objects that the caption names"
    if source == IMAGE and others:
        where += f" that {votes} of {1 + len(others)} sources name"
    return Gendered(
        tuple(images.to_numpy(dtype=object)),
        image,
        frame["caption"].array[kept],
        value,
        value,
        names,
        csr_array(columns[kept]),
        len(frame) - len(kept),
        where,
        unsure,
    )


def _source(objects: pd.Series | None, choices: ObjectChoices, usual: str) -> str:
    source = choices.objects_from or (usual if objects is not None else CAPTION)
    if source == IMAGE and objects is None:
        raise CapbiasError(
            "The objects of the images are not loaded.",
            "Load COCO instances or a table with a column objects, or use the objects that captions name.",
        )
    return source


def _of_captions(encoded: Tokens, table: dict, sure: float) -> tuple[tuple[str, ...], csr_array]:
    return tuple(table), csr_array(named_objects(encoded, table).astype(float) * sure)


def _of_images(image_id: pd.Series, by_image: Mapping[str, Objects]) -> tuple[tuple[str, ...], csr_array]:
    """Objects of each caption's image and the confidence in them."""
    row, column, confidence, place = [], [], [], {}
    for number, image in enumerate(image_id):
        for name, own in by_image.get(image, ()):
            row.append(number)
            column.append(place.setdefault(name, len(place)))
            confidence.append(own)
    return tuple(place), csr_array((confidence, (row, column)), shape=(len(image_id), len(place)), dtype=float)


def _read(text: str, usual: float) -> tuple[Objects, int]:
    """`cat:0.93|dog:0.4` to names and confidences, without `person`, and how many more objects there are.

    Where a detector's confidence stands behind the names, the three surest of at least 0.2 stay; else all, each with
    the usual confidence.
    """
    found: dict[str, float | None] = {}
    for part in filter(None, (str(text) if text == text else "").split("|")):
        name, _, number = part.strip().rpartition(":")
        sure = _number(number) if name else None
        found[name if sure is not None else part.strip()] = sure
    found.pop("person", None)
    if any(sure is not None for sure in found.values()):
        surest = sorted(((own or 0.0, name) for name, own in found.items()), reverse=True)[:MOST_OBJECTS]
        kept = [(name, own) for own, name in surest if own >= LEAST_CONFIDENCE]
        return kept, len(found) - len(kept)
    return [(name, usual) for name in found], 0


def _voted(sources: Sequence[Objects], votes: int) -> Objects:
    """The objects that so many sources of an image name, each with the highest confidence that one has in it.

    >>> _voted([[("cat", 0.3), ("cup", 0.9)], [("cat", 0.8)]], 2)
    [('cat', 0.8)]
    """
    named: dict[str, list[float]] = {}
    for name, sure in (own for source in sources for own in source):
        named.setdefault(name, []).append(sure)
    return [(name, max(sure)) for name, sure in named.items() if len(sure) >= votes]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _joined(parts: list[tuple[tuple[str, ...], csr_array]]) -> tuple[tuple[str, ...], csr_array]:
    """Names and columns of several sources; a name of an earlier one is not taken again."""
    names, columns = [], []
    for own, matrix in parts:
        new = [place for place, name in enumerate(own) if name not in names]
        names += [own[place] for place in new]
        columns.append(matrix[:, new])
    return tuple(names), csr_array(hstack(columns))


# counts, and rows of results


@dataclass(frozen=True)
class Sums:
    """What was counted over the set and beside each object, and what it gives.

    metrics: that read it. values: of the attribute. counts: one column, (n_images, W). by_object: (n_images, L * W),
    the same beside each of L objects. n: captions; n_by_object: (L,).
    """

    metrics: tuple[Metric, ...]
    values: tuple[str, ...]
    counts: Counts
    objects: tuple[str, ...]
    by_object: csr_array
    n: int
    n_by_object: np.ndarray

    @classmethod
    def of(
        cls,
        name: str,
        metrics: Iterable[Metric],
        attribute: Attribute,
        data: Gendered,
        pairs: tuple[np.ndarray, np.ndarray],
        entries: tuple[np.ndarray, np.ndarray, np.ndarray],
        width: int,
        n: int,
    ) -> Sums:
        """name: of the column. pairs: (p,) caption and object of each pair that counts. entries: (e,) pair, column from
        0 to width - 1, and weights, over the set and beside the object, (e, 2)."""
        caption, column = pairs
        pair, place, weight = entries
        image, n_objects = data.image[caption[pair]], len(data.objects)

        def summed(column: np.ndarray, width: int, weight: np.ndarray) -> csr_array:
            return csr_array((weight, (image, column)), shape=(len(data.images), width))

        counts = Counts.by_image(data.images, unlabelled(data.images), {name: summed(place, width, weight[:, 0])})
        by_object = summed(column[pair] * width + place, n_objects * width, weight[:, 1])
        own = tuple(metric for metric in metrics if metric.reads == (name,))
        n_by_object = np.bincount(column, minlength=n_objects)
        return cls(own, attribute.values, counts, data.objects, by_object, n, n_by_object)


def counted(
    name: str, metrics: Iterable[Metric], attribute: Attribute, data: Gendered, value: np.ndarray, weight: np.ndarray
) -> Sums:
    """Sums of weights by value, of captions over the set and of captions beside each object.

    value: (n,) code of the value that each caption counts for, -1 for none. weight: (p,) of each pair of a caption and
    an object; over the set a caption has the mean of its objects' weights.
    """
    caption, column, _ = data.pairs
    taken = value[caption] >= 0
    caption, column, weight = caption[taken], column[taken], weight[taken]
    share = weight / np.bincount(caption, minlength=len(value))[caption]
    entries = (np.arange(len(caption)), value[caption], np.column_stack([share, weight]))
    k, n = len(attribute.values), int((value >= 0).sum())
    return Sums.of(name, metrics, attribute, data, (caption, column), entries, k, n)


@dataclass(frozen=True)
class Label:
    """What all rows of a run share."""

    attribute: str
    model: str
    method: str
    encoder: str = ""
    coverage: str = ""

    @classmethod
    def of(cls, job: Job, method: str, encoder: str = "") -> Label:
        protocol = protocol_text(job.spec.measure, job.options)
        text = "; ".join(filter(None, [method, protocol]))
        return cls(job.attribute.name, job.spec.model, text, encoder, job.spec.coverage)

    def row(self, key: tuple[str, str], value: float, limits: tuple, n: int, name: str = "") -> Result:
        """A row of a metric and direction; without an interval from fewer than FEWEST captions."""
        low, high = limits if n >= FEWEST else (None, None)
        return Result(
            attribute=self.attribute,
            model=self.model,
            metric=key[0],
            value=float(value),
            encoder=self.encoder,
            direction=key[1],
            coverage=self.coverage,
            object=name,
            n=n,
            method=self.method,
            ci_low=low,
            ci_high=high,
            interval="" if low is None else IMAGES,
        )


def set_rows(sums: Sums, label: Label) -> list[Result]:
    """A row for each metric and direction over the set."""
    found = estimates_of(sums.metrics, sums.counts, sums.values)
    limits = intervals(found)
    return [label.row(key, own.value, limits[key], sums.n) for key, own in found.items()]


def object_rows(sums: Sums, label: Label) -> pd.DataFrame:
    """A row for each metric, direction and object that a caption has, in RESULT_COLUMNS.

    There is no interval for an object of fewer than 10 captions, for which a bootstrap says too little of chance.
    """
    formulas = {own.name: (own.of, own.interval == "share") for own in sums.metrics}
    rows = []
    for name, (value, low, high) in column_intervals(sums.by_object, len(sums.objects), formulas).items():
        for which, direction in zip(range(value.shape[-1]), (*sums.values, NEUTRAL), strict=False):
            for place in np.argsort(-sums.n_by_object, kind="stable"):
                if n := int(sums.n_by_object[place]):
                    ends = (low[place, which], high[place, which])
                    limits = tuple(map(float, ends)) if np.isfinite(ends[0]) else (None, None)
                    rows.append(label.row((name, direction), value[place, which], limits, n, sums.objects[place]).row())
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def outcome(found: Mapping[str, tuple[Sums, Label]], notes: Iterable[str]) -> Outcome:
    """What a run leaves: rows over the set, rows of objects, and the counts. found: by column."""
    rows = [row for sums, label in found.values() for row in set_rows(sums, label)]
    tables = pd.concat([object_rows(sums, label) for sums, label in found.values()])
    first = next(iter(found.values()))[0].counts
    columns = {name: sums.counts.columns[name] for name, (sums, _) in found.items()}
    return Outcome(rows, {"objects": frame_bytes(tables)}, tuple(notes), counts={"": replace(first, columns=columns)})


def method(data: Gendered, further: str = "", which: str = "captions that name one value") -> str:
    """In words, what rows of a run rest on."""
    return f"{which}, with {data.found}{further}; 95% over images: Wilson of shares, else bootstrap, 1000 draws"


def note(data: Gendered, naming_one: int) -> str:
    """What was left out, for the reader. naming_one: captions that name one value."""
    unsure = (
        f" Of the objects that a detector found, {data.unsure:,} do not count: only the {MOST_OBJECTS} surest of an "
        f"image do, with a confidence of {LEAST_CONFIDENCE} or more."
    )
    return (
        f"{len(data.captions):,} captions name one value and have an object ({data.found}); "
        f"{naming_one - len(data.captions):,} more have none, and {data.others:,} name no or several values."
        f"{unsure if data.unsure else ''}"
    )


# plain texts


@dataclass(frozen=True)
class TextJob:
    """Plain texts for a measure that needs neither images nor human captions (`Measure.of_texts`).

    data: texts with the value that counts and their objects. options: of the measure; models are named as a user names
    them. lead: what stands before a text that names no value, '' if such texts do not count. method: data and what is
    said further, to what rows rest on, in words.
    """

    data: Gendered
    attribute: Attribute
    options: Any
    lead: str
    method: Callable[[Gendered, str], str]
    progress: Progress


@dataclass(frozen=True)
class TextSums:
    """What a measure gives of plain texts. encoder, method: as rows name them."""

    sums: Sums
    method: str
    encoder: str = ""


# metrics


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
