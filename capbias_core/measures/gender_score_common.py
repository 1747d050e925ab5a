"""What measures of values beside objects share: captions that name one value, their objects, and rows of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import IMAGES, Estimate
from capbias_core.aggregate.columns import Columns, Statistic, column_intervals
from capbias_core.attributes import need_words
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import NOTHING_MORE, Job, Metric, Needs, Outcome, from_npz, to_npz, zero
from capbias_core.measures.options import Options, option
from capbias_core.metrics.bias_ratio import bias_ratio
from capbias_core.prepare.tasks import Encoded, encode_rows, named_objects, object_names, phrases
from capbias_core.types import RESULT_COLUMNS, Attribute, Progress, Result
from capbias_core.workspace.spec import attribute_from
from capbias_core.workspace.store import RunRow, Workspace, frame_bytes

PAPER = "Sabir and Padró, Findings of EMNLP 2023"
WITHOUT_LIMIT = (0, float("inf"))

IMAGE, CAPTION = "image", "caption"
NEUTRAL = "neutral"
# The paper's: objects that a detector is less sure of are left out, and of the others the three surest stay.
LEAST_CONFIDENCE, MOST_OBJECTS = 0.2, 3
CONFIDENCE = 0.5
FEWEST = 10  # captions, for an interval

Statistics = Mapping[tuple[str, str], Statistic]
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
    tokens: Callable[[pd.DataFrame], Encoded] = encode_rows,
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


def _of_captions(encoded: Encoded, table: dict, sure: float) -> tuple[tuple[str, ...], csr_array]:
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


# sums by image, and what they give


@dataclass(frozen=True)
class Sums:
    """What a metric needs of each image, over the set and object by object.

    whole: (n_images, W); by_object: (n_images, L * W), both sparse. statistics: by metric and direction.
    n: captions; n_by_object: (L,).
    """

    images: tuple[str, ...]
    objects: tuple[str, ...]
    whole: csr_array
    by_object: csr_array
    statistics: Statistics
    n: int
    n_by_object: np.ndarray


def image_sums(image: np.ndarray, n_images: int, column: np.ndarray, width: int, weights: np.ndarray) -> csr_array:
    """(n_images, width) sums of weights, each (n,) entry in the row of its image and in its column."""
    return csr_array((weights, (image, column)), shape=(n_images, width))


def directions(attribute: Attribute) -> tuple[str, ...]:
    """What results call the values and, last, the neutral word."""
    return (*attribute.values, NEUTRAL)


def share_statistics(metric: str, count: str, attribute: Attribute) -> Statistics:
    """From (..., K) sums, one per value, to each value's ratio and, as `count`, to the sum itself."""
    found = {}
    for place, value in enumerate(attribute.values):
        found[metric, value] = Statistic(lambda sums, place=place: bias_ratio(sums)[..., place], share=True)
        if count:
            found[count, value] = Statistic(lambda sums, place=place: sums[..., place])
    return found


def counted(data: Gendered, value: np.ndarray, weight: np.ndarray, statistics: Statistics, n_values: int) -> Sums:
    """Sums of weights by value, of captions over the set and of captions beside each object.

    value: (n,) place of the value that each caption counts for, -1 for none. weight: (p,) of each pair of a caption and
    an object; over the set a caption has the mean of its objects' weights.
    """
    caption, column, _ = data.pairs
    taken = value[caption] >= 0
    caption, column, weight = caption[taken], column[taken], weight[taken]
    share = weight / np.bincount(caption, minlength=len(value))[caption]
    n_images, n_objects = len(data.images), len(data.objects)
    image = data.image[caption]
    return Sums(
        data.images,
        data.objects,
        image_sums(image, n_images, value[caption], n_values, share),
        image_sums(image, n_images, column * n_values + value[caption], n_objects * n_values, weight),
        statistics,
        int((value >= 0).sum()),
        np.bincount(column, minlength=n_objects),
    )


def sums_bytes(sums: Sums) -> bytes:
    """The sums over the set as bytes; `stored_estimates` reads them back."""
    return to_npz(sums.images, whole=sums.whole)


def stored_estimates(data: bytes, statistics: Statistics) -> dict[tuple[str, str], Estimate]:
    """The estimates over the set from the bytes of `sums_bytes`, by metric and direction."""
    images, arrays = from_npz(data)
    whole = arrays["whole"]
    return {
        key: Estimate(tuple(images), whole, np.zeros(0), 1.0, own.of, share=own.share)
        for key, own in statistics.items()
    }


# rows


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
        return cls(job.attribute.name, job.spec.model, method, encoder, job.spec.coverage)


def set_rows(sums: Sums, label: Label) -> list[Result]:
    """A row for each metric and direction over the set."""
    found = column_intervals(sums.whole, 1, sums.statistics)
    return [_row(key, own, 0, sums.n, label) for key, own in found.items()]


def outcome(sums: Sums, label: Label, notes: tuple[str, ...]) -> Outcome:
    """What a run of one metric leaves: rows over the set, rows of objects, and the sums."""
    arrays = {"objects": frame_bytes(object_rows(sums, label)), "sums": sums_bytes(sums)}
    return Outcome(set_rows(sums, label), arrays, notes)


def outcome_estimates(
    workspace: Workspace, run: RunRow, statistics: Callable[[Attribute], Statistics]
) -> dict[tuple[str, str], Estimate]:
    """The values over the set again from what `outcome` left, by metric and direction."""
    return stored_estimates(workspace.array(run.run_id, "sums"), statistics(attribute_from(run.spec.attribute)))


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


def object_rows(sums: Sums, label: Label) -> pd.DataFrame:
    """A row for each metric, direction and object that a caption has, in RESULT_COLUMNS.

    There is no interval for an object of fewer than 10 captions, for which a bootstrap says too little of chance.
    """
    found = column_intervals(sums.by_object, len(sums.objects), sums.statistics)
    rows = [
        _row(key, own, place, int(sums.n_by_object[place]), label, sums.objects[place]).row()
        for key, own in found.items()
        for place in np.argsort(-sums.n_by_object, kind="stable")
        if sums.n_by_object[place]
    ]
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def _row(key: tuple[str, str], own: Columns, place: int, n: int, label: Label, name: str = "") -> Result:
    low, high = own.low[place], own.high[place]
    defined = bool(np.isfinite(low)) and n >= FEWEST
    return Result(
        attribute=label.attribute,
        model=label.model,
        metric=key[0],
        value=float(own.value[place]),
        encoder=label.encoder,
        direction=key[1],
        coverage=label.coverage,
        object=name,
        n=n,
        method=label.method,
        ci_low=float(low) if defined else None,
        ci_high=float(high) if defined else None,
        interval=IMAGES if defined else "",
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


def ratio_metric(name: str, title: str, source: str, explanation: str, needs: Needs = NOTHING_MORE) -> Metric:
    """A metric that is each value's share of something: 1 / K means no bias."""
    return Metric(name, title, 1, lambda k: 1 / k, "neutral", (0, 1), source, explanation, needs=needs)


def estimator_metrics(
    name: str, count: str, title: str, what: str, source: str, needs: Needs = NOTHING_MORE
) -> tuple[Metric, Metric]:
    """The shares and the counts of captions that go with each value. what: which captions."""
    return (
        ratio_metric(name, f"{title}, ratio to each value", source, f"{what}, of those of all values.", needs),
        Metric(
            count, f"{title}, captions", 1, zero, "neutral", WITHOUT_LIMIT, source, f"{what}: how many.", needs=needs
        ),
    )
