"""Slices of images: rules that pick images by an object, words or a column, and a metric inside and outside.

Nothing is trained: attackers of a finished run of LIC left their guesses image by image.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS, Counts, Estimate, Metric, estimates_of
from capbias_core.aggregate.resampling import OF_DIFFERENCE, OF_LEVEL, refit_interval, refit_p
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import LABELS, OBJECTS
from capbias_core.load.tables import BETWEEN, objects_in
from capbias_core.prepare.tasks import content_words
from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute, counted
from capbias_core.workspace.objects import COLUMN as ITS_COLUMN
from capbias_core.workspace.objects import usual_objects
from capbias_core.workspace.store import Item, RunRow, Workspace

OBJECT, WORDS, COLUMN = "object", "words", "column"
INSIDE, OUTSIDE, DIFFERENCE = "these images", "other images", "difference"  # what numbers are of
OR, IS = "|", "="
PERSON = "person"  # on every image with a label, so it picks nothing
LEAST_IMAGES = 100  # in a slice and outside it, for a number
MOST = 10  # slices without a choice, and values of a column


# rules


@dataclass(frozen=True)
class Slice:
    """A rule that picks images. value: an object; words of human captions with | between alternatives; COLUMN=VALUE."""

    kind: str  # OBJECT, WORDS or COLUMN
    value: str

    @classmethod
    def of_words(cls, text: str) -> Slice:
        """
        >>> Slice.of_words(" Kitchen | cooking").rule
        'words:kitchen|cooking'
        """
        return cls(WORDS, OR.join(filter(None, (" ".join(tokenize(word)) for word in text.split(OR)))))

    @classmethod
    def parse(cls, rule: str) -> Slice:
        """The slice with this `rule`."""
        kind, _, value = rule.partition(":")
        return cls(kind, value)

    @property
    def rule(self) -> str:
        return f"{self.kind}:{self.value}"

    @property
    def title(self) -> str:
        """For a row of a table.

        >>> [Slice.parse(rule).title for rule in ("object:dog", "words:car|bus", "column:skin=Dark")]
        ['dog', 'people say “car” or “bus”', 'skin: Dark']
        """
        return self._text("{}", "people say {}", "{}: {}")

    @property
    def images(self) -> str:
        """For a sentence: `images with “dog”`."""
        return self._text("images with “{}”", "images whose human captions have {}", "images with {} {}")

    def _text(self, of_object: str, of_words: str, of_column: str) -> str:
        """The template of this slice's kind, filled."""
        if self.kind == OBJECT:
            return of_object.format(self.value)
        if self.kind == COLUMN:
            return of_column.format(*self.value.split(IS, 1))
        return of_words.format(" or ".join(f"“{word}”" for word in self.value.split(OR)))


class Members(NamedTuple):
    """The images that a rule picks, and all images of which it can tell."""

    inside: frozenset[str]
    known: frozenset[str]


@dataclass(frozen=True)
class SliceSources:
    """What rules read in a collection, each source once."""

    workspace: Workspace
    collection: str
    table: Item  # of labels
    references: str = ""  # content hash of the human captions, '' for none

    def members(self, chosen: Slice) -> Members:
        """The images of a slice. An image without a row or a caption in the source, or with an empty cell, is neither
        inside nor outside. Raises CapbiasError if the collection has no such source, object, column or value."""
        if not chosen.value:
            raise CapbiasError("A slice by words needs a text.", "Write such as kitchen|cooking.")
        if chosen.kind == OBJECT:
            if chosen.value not in self.by_object:
                raise unknown_name("object", chosen.value, self.by_object)
            return Members(self.by_object[chosen.value], self.annotated)
        if chosen.kind == COLUMN:
            by_value = self.column(chosen.value.partition(IS)[0])
            return Members(by_value[chosen.value.partition(IS)[2]], frozenset().union(*by_value.values()))
        images, texts = self._human
        inside = np.zeros(len(texts), dtype=bool)
        for word in chosen.value.split(OR):
            inside |= texts.str.contains(f" {word} ", regex=False).to_numpy(dtype=bool)
        return Members(frozenset(images[inside]), frozenset(images))

    @cached_property
    def _objects(self) -> tuple[str, str]:
        """Name and content hash of the source of objects; '' without any."""
        return usual_objects(self.workspace, self.collection, self.table)

    @property
    def objects_from(self) -> str:
        """The name of the source of objects, '' for none."""
        name = self._objects[0]
        return f"the column objects of {self.table.name}" if name == ITS_COLUMN else name

    @cached_property
    def _object_cells(self) -> pd.Series:
        digest = self._objects[1]
        frame = self.workspace.frame(digest) if digest else pd.DataFrame(columns=["image_id", OBJECTS])
        return frame.set_index("image_id")[OBJECTS]

    @cached_property
    def annotated(self) -> frozenset[str]:
        """The images whose objects are known."""
        return frozenset(self._object_cells.index)

    @cached_property
    def by_object(self) -> Mapping[str, frozenset[str]]:
        """The images of each object."""
        cells = objects_in(self._object_cells)
        named = cells[cells["object"] != PERSON].groupby("object")["image_id"]
        return {str(name): frozenset(images) for name, images in named}

    @cached_property
    def columns(self) -> dict[str, Item]:
        """The columns of stored tables, each with the table in which it is read: that of labels, else the newest."""
        tables = [self.table, *reversed(self.workspace.items(LABELS, self.collection))]
        tables += reversed(self.workspace.items(OBJECTS, self.collection))
        by_name: dict[str, Item] = {}
        for table in tables:
            names = [name for name in self.workspace.frame(table.hash).columns if name != "image_id"]
            by_name |= {name: table for name in names if name not in by_name}
        return by_name

    def column(self, name: str) -> Mapping[str, frozenset[str]]:
        """The images of each value of a column; a list such as cat|dog counts for each of its parts. Raises
        CapbiasError if no table has it."""
        if name not in self.columns:
            raise unknown_name("column", name, self.columns)
        frame = self.workspace.frame(self.columns[name].hash)
        parts = frame[["image_id"]].assign(value=frame[name].fillna("").astype(str).str.split(BETWEEN)).explode("value")
        parts["value"] = parts["value"].str.strip()
        by_value = parts[parts["value"] != ""].groupby("value")["image_id"]
        return {str(value): frozenset(images) for value, images in by_value}

    @cached_property
    def _human(self) -> tuple[np.ndarray, pd.Series]:
        """(n,) image IDs of human captions, and their words, each between spaces."""
        if not self.references:
            raise CapbiasError("No human captions were compared with, so no words can be looked for in them.")
        texts = pd.Series(self.workspace.tokens(self.references).texts, dtype="str")
        return self.workspace.frame(self.references)["image_id"].to_numpy(dtype=object), " " + texts + " "


def slice_sources(workspace: Workspace, collection: str, run: RunRow) -> SliceSources:
    """What slices of the images of a run are picked by."""
    table = next(item for item in workspace.items(LABELS, collection) if item.hash == run.spec.labels["table"])
    return SliceSources(workspace, collection, table, run.spec.references)


def default_slices(sources: SliceSources, attribute: Attribute, labelled: frozenset[str]) -> list[Slice]:
    """The ten objects that most images have; without objects the ten content words of most human captions, but those
    that name the attribute. labelled: the images that count. Raises CapbiasError without both."""
    if sources.annotated:
        return _most_common(OBJECT, sources.by_object, labelled)
    if sources.references:
        written = sources.workspace.frame(sources.references)["image_id"].isin(labelled)
        tokens = sources.workspace.tokens(sources.references).rows(np.flatnonzero(written.to_numpy()))
        return [Slice(WORDS, word) for word in content_words(tokens, attribute.masked_words)[:MOST]]
    raise CapbiasError(
        f"{sources.collection} has no objects and no human captions to slice by.", "Add one of them, or name a column."
    )


def values_of(sources: SliceSources, column: str, labelled: frozenset[str]) -> list[Slice]:
    """A slice for each of the values of a column that most images have."""
    by_value = {f"{column}{IS}{value}": images for value, images in sources.column(column).items()}
    return _most_common(COLUMN, by_value, labelled)


def _most_common(kind: str, by_value: Mapping[str, frozenset[str]], labelled: frozenset[str]) -> list[Slice]:
    sizes = Counter({value: len(images & labelled) for value, images in by_value.items()})
    return [Slice(kind, value) for value, size in sizes.most_common(MOST) if size]


# numbers


def slice_numbers(metric: Metric, counts: Counts, members: Members, values: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What rows say of INSIDE, OUTSIDE and DIFFERENCE: n, and value, low and high, or else a reason; of the difference
    also p, uncorrected.

    metric: of sums over images, without a direction. values: of the attribute.
    """
    inside, known = (np.array([image in images for image in counts.images], dtype=bool) for images in members)
    sides = {INSIDE: inside, OUTSIDE: known & ~inside}
    counts_for = np.zeros(len(counts.images), dtype=bool)
    counts_for[counts.image] = True
    sizes = {of: int((side & counts_for).sum()) for of, side in sides.items()}
    seeds = [(counts.held_out & side).sum(axis=1) for side in sides.values()] if counts.seeds else []
    numbers: dict[str, dict[str, Any]] = {of: {"n": size} for of, size in sizes.items()}
    numbers[INSIDE]["n_per_seed"] = float(seeds[0].mean()) if seeds else math.nan
    numbers[DIFFERENCE] = {"n": sum(sizes.values())}
    held_out = "held out" if counts.seeds else "with captions and a label"
    reasons = [
        f"{counted(size, 'image')} {held_out} {where}, fewer than {LEAST_IMAGES}"
        for size, where in zip(sizes.values(), ("in the slice", "outside it"), strict=True)
        if size < LEAST_IMAGES
    ]
    reasons += ["some seed holds out none of its images" for of_seed in seeds if (of_seed == 0).any()]
    if reasons:
        return {of: number | {"reason": reasons[0]} for of, number in numbers.items()}
    parts = [_restricted(metric, counts, side, values) for side in sides.values()]
    inside, outside = ((part.value, *part.interval()) for part in parts)
    if counts.seeds:
        difference, p = _by_seed(metric, *parts)
    else:
        difference, p = _by_share(inside, outside, counts, metric, [*sides.values()])
    for of, ends in zip(numbers, (inside, outside, difference), strict=True):
        numbers[of] |= dict(zip(("value", "low", "high"), (math.nan if x is None else x for x in ends), strict=True))
    numbers[DIFFERENCE]["p"] = p
    return numbers


def _restricted(metric: Metric, counts: Counts, inside: np.ndarray, values: Sequence[str]) -> Estimate:
    """The estimate on some images. inside: (n_images,) booleans.

    Other images count as 0 and stay: in the interval with refits, test images over training images are those of the
    whole run. Each seed tests the same share of a slice as of all images, so a small slice is no more certain for being
    small beside the training images.
    """
    columns = {name: counts.columns[name] * inside[counts.image] for name in counts.columns if name in metric.reads}
    return estimates_of([metric], replace(counts, columns=columns), values)[metric.name, ""]


Ends = tuple[float, float | None, float | None]  # value, low, high


def _by_seed(metric: Metric, inside: Estimate, outside: Estimate) -> tuple[Ends, float]:
    """The difference within each seed, and its p: the same attackers read both sides."""
    differences, refits = inside.seed_values - outside.seed_values, inside.refits
    low, high, p = None, None, 1.0
    if refits is not None and inside.interval_over == REFITS:
        times, width = OF_LEVEL if metric.training_twice else OF_DIFFERENCE, metric.range[1] - metric.range[0]
        low, high = refit_interval(differences, refits.test_over_train, times, (-width, width))
        p = refit_p(differences, refits.test_over_train, times)
    return (float(differences.mean()), low, high), p


def _by_share(
    inside: Sequence[Any], outside: Sequence[Any], counts: Counts, metric: Metric, sides: Sequence[np.ndarray]
) -> tuple[Ends, float]:
    """The difference of two shares, with Newcombe's interval from their Wilson intervals (Statistics in Medicine 17,
    1998, method 10), and Fisher's exact p of the images with such a caption."""
    from scipy.stats import fisher_exact

    (value, low, high), (rest, rest_low, rest_high) = inside, outside
    below, above = math.hypot(value - low, rest_high - rest), math.hypot(high - value, rest - rest_low)
    has = counts.columns[metric.reads[0]] > 0  # without seeds a row is an image
    p = fisher_exact([[int((has & side).sum()), int((~has & side).sum())] for side in sides]).pvalue
    return (value - rest, value - rest - below, value - rest + above), float(p)
