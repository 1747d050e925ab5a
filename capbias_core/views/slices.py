"""Slices of images: rules that pick images by an object, words, a column or a search, and a metric inside and outside.

Nothing is trained: attackers of a finished run of LIC left their guesses image by image.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS, Counts, Estimate, Metric, estimates_of
from capbias_core.aggregate.resampling import OF_DIFFERENCE, OF_LEVEL, refit_interval, refit_p
from capbias_core.errors import CapbiasError, short, unknown_name
from capbias_core.kinds import LABELS, OBJECTS
from capbias_core.load.tables import BETWEEN, objects_in
from capbias_core.prepare.tasks import content_words
from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute, counted
from capbias_core.workspace.objects import COLUMN as ITS_COLUMN
from capbias_core.workspace.objects import usual_objects
from capbias_core.workspace.store import Item, RunRow, Workspace

OBJECT, WORDS, COLUMN, SEARCH = "object", "words", "column", "search"
EXAMPLES = "object:dog, words:kitchen|cooking, column:skin=Dark or search:red bus"
OR, IS = "|", "="
PERSON = "person"  # on every image with a label, so it picks nothing
FEWEST_IMAGES = 10  # in a slice and outside it, for any number
LEAST_IMAGES = 100  # in a slice and outside it, for a test; and for a number unless fewer are asked for
MOST = 10  # slices without a choice, and values of a column


# rules


@dataclass(frozen=True)
class Slice:
    """A rule that picks images."""

    kind: str  # OBJECT, WORDS, COLUMN or SEARCH
    # An object; words of human captions with | between alternatives; COLUMN=VALUE; or a text in a captioner's captions.
    value: str

    @classmethod
    def parse(cls, rule: str) -> Self:
        """A rule such as `object:dog`. Raises CapbiasError for a text that is no rule.

        >>> Slice.parse("words: kitchen | cooking").rule
        'words:kitchen|cooking'
        """
        kind, colon, value = (part.strip() for part in rule.partition(":"))
        if kind == WORDS:
            value = OR.join(filter(None, (" ".join(tokenize(word)) for word in value.split(OR))))
        if kind not in (OBJECT, WORDS, COLUMN, SEARCH) or not value or (kind == COLUMN and not all(_cell(value))):
            raise CapbiasError(f"{short(rule, 100)!r} is not a slice.", f"Write {EXAMPLES}.", "slice")
        return cls(kind, value)

    @property
    def rule(self) -> str:
        """The rule as text; `parse` reads it."""
        return f"{self.kind}:{self.value}"

    @property
    def title(self) -> str:
        """For a row of a table.

        >>> [Slice.parse(rule).title for rule in ("object:dog", "words:car|bus", "column:skin=Dark", "search:red")]
        ['dog', 'people say “car” or “bus”', 'skin: Dark', 'it says “red”']
        """
        column, value = _cell(self.value)
        return {
            OBJECT: self.value,
            WORDS: f"people say {self._alternatives}",
            COLUMN: f"{column}: {value}",
            SEARCH: f"it says “{self.value}”",
        }[self.kind]

    @property
    def images(self) -> str:
        """For a sentence: `images with “dog”`."""
        column, value = _cell(self.value)
        return {
            OBJECT: f"images with “{self.value}”",
            WORDS: f"images whose human captions have {self._alternatives}",
            COLUMN: f"images with {column} {value}",
            SEARCH: f"images whose caption has “{self.value}”",
        }[self.kind]

    @property
    def _alternatives(self) -> str:
        return " or ".join(f"“{word}”" for word in self.value.split(OR))


def _cell(value: str) -> tuple[str, str]:
    column, _, cell = value.partition(IS)
    return column.strip(), cell.strip()


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
    captions: str  # content hash of the captioner's captions, for searches
    references: str = ""  # content hash of the human captions, '' for none

    def members(self, chosen: Slice) -> Members:
        """The images of a slice. An image without a row or a caption in the source, or with an empty cell, is neither
        inside nor outside. Raises CapbiasError if the collection has no such source, object, column or value."""
        if chosen.kind == OBJECT:
            if chosen.value not in self.by_object:
                raise unknown_name("object", chosen.value, self.by_object)
            return Members(self.by_object[chosen.value], self.annotated)
        if chosen.kind == COLUMN:
            column, value = _cell(chosen.value)
            by_value = self.column(column)
            if value not in by_value:
                raise unknown_name(f"value of {column}", value, by_value)
            return Members(by_value[value], frozenset().union(*by_value.values()))
        if chosen.kind == WORDS:
            images, texts = self._human
            inside = np.zeros(len(texts), dtype=bool)
            for word in chosen.value.split(OR):
                inside |= texts.str.contains(f" {word} ", regex=False).to_numpy(dtype=bool)
        else:
            frame = self.workspace.frame(self.captions)
            images = frame["image_id"].to_numpy(dtype=object)
            inside = frame["caption"].str.contains(chosen.value, case=False, regex=False).to_numpy(dtype=bool)
        return Members(frozenset(images[inside]), frozenset(images))

    @property
    def has_objects(self) -> bool:
        return bool(self._objects[0])

    @property
    def objects_from(self) -> str:
        """The name of the source of objects, '' for none."""
        name = self._objects[0]
        return f"the column objects of {self.table.name}" if name == ITS_COLUMN else name

    @cached_property
    def by_object(self) -> Mapping[str, frozenset[str]]:
        """The images of each object."""
        cells = objects_in(self._object_rows.set_index("image_id")[OBJECTS])
        named = cells[cells["object"] != PERSON].groupby("object")["image_id"]
        return {str(name): frozenset(images) for name, images in named}

    @cached_property
    def annotated(self) -> frozenset[str]:
        """The images whose objects are known."""
        return frozenset(self._object_rows["image_id"])

    def column(self, name: str) -> Mapping[str, frozenset[str]]:
        """The images of each value of a column; a list such as cat|dog counts for each of its parts.

        It is looked for in the table of labels, then in the other tables, the newest first. Raises CapbiasError if none
        has it.
        """
        columns = self.columns
        if name not in columns:
            raise unknown_name("column", name, columns)
        frame = self.workspace.frame(columns[name].hash)
        parts = frame[["image_id"]].assign(value=frame[name].fillna("").astype(str).str.split(BETWEEN)).explode("value")
        parts["value"] = parts["value"].str.strip()
        return {
            str(value): frozenset(images) for value, images in parts[parts["value"] != ""].groupby("value")["image_id"]
        }

    @cached_property
    def columns(self) -> dict[str, Item]:
        """The columns of stored tables, each with the table in which it is read."""
        tables = [self.table, *reversed(self.workspace.items(LABELS, self.collection))]
        tables += reversed(self.workspace.items(OBJECTS, self.collection))
        by_name: dict[str, Item] = {}
        for table in tables:
            for name in self.workspace.frame(table.hash).columns:
                if name != "image_id":
                    by_name.setdefault(name, table)
        return by_name

    @cached_property
    def _objects(self) -> tuple[str, str]:
        """Name and content hash of the source of objects; '' without any."""
        return usual_objects(self.workspace, self.collection, self.table)

    @cached_property
    def _object_rows(self) -> pd.DataFrame:
        _, digest = self._objects
        columns = ["image_id", OBJECTS]
        return self.workspace.frame(digest)[columns] if digest else pd.DataFrame(columns=columns)

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
    return SliceSources(workspace, collection, table, run.spec.captions, run.spec.references)


def default_slices(sources: SliceSources, attribute: Attribute, labelled: frozenset[str]) -> list[Slice]:
    """The ten objects that most images have; without objects the ten content words of most human captions, but those
    that name the attribute. labelled: the images that count. Raises CapbiasError without both."""
    if sources.has_objects:
        sizes = Counter({name: len(images & labelled) for name, images in sources.by_object.items()})
        return [Slice(OBJECT, name) for name, size in sizes.most_common(MOST) if size]
    if sources.references:
        written = sources.workspace.frame(sources.references)["image_id"].isin(labelled)
        tokens = sources.workspace.tokens(sources.references).rows(np.flatnonzero(written.to_numpy()))
        return [Slice(WORDS, word) for word in content_words(tokens, attribute.masked_words)[:MOST]]
    raise CapbiasError(
        f"{sources.collection} has no objects and no human captions to slice by.",
        "Add one of them, or name a column or a search.",
    )


def values_of(sources: SliceSources, column: str, labelled: frozenset[str]) -> list[Slice]:
    """A slice for each of the values of a column that most images have."""
    sizes = Counter({value: len(images & labelled) for value, images in sources.column(column).items()})
    return [Slice(COLUMN, f"{column}{IS}{value}") for value, size in sizes.most_common(MOST) if size]


# numbers


def slice_numbers(
    metrics: Sequence[Metric], counts: Counts, members: Members, values: Sequence[str], least: int = LEAST_IMAGES
) -> dict[str, dict[str, Any]]:
    """What rows say of each metric, p uncorrected. metrics: of sums over images, without a direction. counts: with
    their columns. values: of the attribute. least: images that each side needs for a number."""
    inside, known = (np.array([image in images for image in counts.images], dtype=bool) for images in members)
    sides = inside, known & ~inside
    counted_images = np.zeros(len(counts.images), dtype=bool)
    counted_images[counts.image] = True
    sizes = [int((side & counted_images).sum()) for side in sides]
    seeds = [(counts.held_out & side).sum(axis=1) for side in sides] if counts.seeds else []
    reason = ""
    for size, where in zip(sizes, ("in the slice", "outside it"), strict=True):
        if size < least and not reason:
            guessed = "held out" if counts.seeds else "with captions and a label"
            reason = f"{counted(size, 'image')} {guessed} {where}, fewer than {least}"
    if not reason and any((of_seed == 0).any() for of_seed in seeds):
        reason = "some seed holds out none of its images"
    labels = counts.label[counts.image][inside[counts.image]]  # an image counts as often as it is held out
    shares = {
        f"share_{value}": 100 * float((labels == code).mean()) if len(labels) else math.nan
        for code, value in enumerate(values)
    }
    each = float(seeds[0].mean()) if counts.seeds else math.nan
    about = {"n": sizes[0], "n_rest": sizes[1], "n_per_seed": each}
    if reason:
        return {metric.name: about | shares | {"reason": reason} for metric in metrics}
    parts = [_restricted(metrics, counts, side, values) for side in sides]
    numbers = {}
    for metric in metrics:
        in_slice, outside = (part[metric.name, ""] for part in parts)
        value, rest = _ends("value", in_slice), _ends("rest", outside)
        compare = _by_seed(metric, in_slice, outside) if counts.seeds else _by_share(value, rest, counts, metric, sides)
        untested = {"p": math.nan} if min(sizes) < LEAST_IMAGES else {}
        numbers[metric.name] = about | value | rest | compare | untested | shares | {"reason": ""}
    return numbers


def _restricted(
    metrics: Sequence[Metric], counts: Counts, inside: np.ndarray, values: Sequence[str]
) -> dict[tuple[str, str], Estimate]:
    """The estimates on some images. inside: (n_images,) booleans.

    Other images count as 0 and stay: in the interval with refits, test images over training images are those of the
    whole run. Each seed tests the same share of a slice as of all images, so a small slice is no more certain for being
    small beside the training images.
    """
    reads = {name for metric in metrics for name in metric.reads}
    columns = {name: counts.columns[name] * inside[counts.image] for name in counts.columns if name in reads}
    return estimates_of(metrics, replace(counts, columns=columns), values)


def _ends(name: str, estimate: Estimate) -> dict[str, float]:
    low, high = estimate.interval()
    ends = {f"{name}_low": low, f"{name}_high": high}
    return {name: estimate.value} | {key: math.nan if end is None else end for key, end in ends.items()}


def _by_seed(metric: Metric, inside: Estimate, outside: Estimate) -> dict[str, float]:
    """The difference within each seed: the same attackers read both sides."""
    differences, refits = inside.seed_values - outside.seed_values, inside.refits
    low, high, p = None, None, 1.0
    if refits is not None and inside.interval_over == REFITS:
        times, width = OF_LEVEL if metric.level else OF_DIFFERENCE, metric.range[1] - metric.range[0]
        low, high = refit_interval(differences, refits.test_over_train, times, (-width, width))
        p = refit_p(differences, refits.test_over_train, times)
    ends = {"difference_low": low, "difference_high": high}
    ends = {key: math.nan if end is None else end for key, end in ends.items()}
    return {"difference": float(differences.mean()), **ends, "p": p}


def _by_share(
    value: dict[str, float], rest: dict[str, float], counts: Counts, metric: Metric, sides: Sequence[np.ndarray]
) -> dict[str, float]:
    """The difference of two shares, with Newcombe's interval from their Wilson intervals (Statistics in Medicine 17,
    1998, method 10), and Fisher's exact p of the images with such a caption."""
    from scipy.stats import fisher_exact

    difference = value["value"] - rest["rest"]
    below = math.hypot(value["value"] - value["value_low"], rest["rest_high"] - rest["rest"])
    above = math.hypot(value["value_high"] - value["value"], rest["rest"] - rest["rest_low"])
    has = counts.columns[metric.reads[0]] > 0  # without seeds a row is an image
    p = fisher_exact([[int((has & side).sum()), int((~has & side).sum())] for side in sides]).pvalue
    ends = {"difference_low": difference - below, "difference_high": difference + above}
    return {"difference": difference, **ends, "p": float(p)}
