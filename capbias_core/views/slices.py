"""Where captions amplify: LIC, error and refusals on slices of images, each beside the other images.

Nothing is trained: attackers of a finished run of LIC left their guesses image by image.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS, Counts, Estimate, Metric, estimates_of
from capbias_core.aggregate.estimate import AMPLIFIES
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.aggregate.resampling import LEAST_SEEDS, OF_DIFFERENCE, OF_LEVEL, refit_interval, refit_p
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import LABELS, OBJECTS
from capbias_core.load.tables import BETWEEN, SURE
from capbias_core.measures.lic import ABOUT_EQUAL
from capbias_core.measures.options import Option
from capbias_core.measures.registry import METRICS, measure_of
from capbias_core.prepare.tasks import content_words
from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute, counted, silent
from capbias_core.views.charts import GREY, MARGINS, MEASURED, ORANGE_MARK, error_bars, graph_objects, neutral_line
from capbias_core.views.results import attribute_of_run
from capbias_core.views.rows import dots_chart
from capbias_core.views.sentence import OVER, better_text, limit, listed, say, signed, with_interval
from capbias_core.views.view import Scope, Shown
from capbias_core.workspace.objects import COLUMN as ITS_COLUMN
from capbias_core.workspace.objects import usual_objects
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.store import Item, RunRow, Workspace

OBJECT, WORDS, COLUMN, SEARCH = "object", "words", "column", "search"
EXAMPLES = "object:dog, words:kitchen|cooking, column:skin=Dark or search:red bus"
OR, IS = "|", "="
PERSON = "person"  # on every image with a label, so it picks nothing
FEWEST_IMAGES = 10  # in a slice and outside it, for any number
LEAST_IMAGES = 100  # in a slice and outside it, for a test; and for a number unless fewer are asked for
MOST = 10  # slices without a choice, and values of a column
NAMED = 3  # slices in a sentence
VERSION = 2  # to be raised when the sentence without a choice changes
COUNTED = ("error", "refused")  # metrics that need no attacker
YES, NO = "yes", "no"
OF_ATTACKER = {True: ("LIC", "LIC_by_H"), False: ("LIC_M",)}  # with and without human captions
# Shown and not tested: a slice in which nothing is amplified differs too often (docs/statistics.md).
UNTESTED = "LIC_by_H"
KINDS = {WORDS: "words", COLUMN: "column", SEARCH: "search"}  # what picks a slice -> its note
METRICS_OF_SLICES = {
    compared: (*(name for name in names if name != UNTESTED), *COUNTED) for compared, names in OF_ATTACKER.items()
}


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
            raise CapbiasError(f"{rule[:100]!r} is not a slice.", f"Write {EXAMPLES}.", "slice")
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
        frame = self._object_rows
        cells = frame.assign(object=frame[OBJECTS].fillna("").str.split(BETWEEN)).explode("object")
        cells["object"] = cells["object"].str.strip().str.replace(SURE, "", regex=True)
        cells = cells[~cells["object"].isin(["", PERSON])]
        return {str(name): frozenset(images) for name, images in cells.groupby("object")["image_id"]}

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
            for name in self.workspace.columns(table.hash):
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


# slices


def slices(
    scope: Scope,
    objects: Annotated[Sequence[str], Option("objects of the collection", metavar="NAME")] = (),
    words: Annotated[Sequence[str], Option("words of human captions, | between alternatives", metavar="WORDS")] = (),
    columns: Annotated[
        Sequence[str], Option("columns of stored tables, a slice per value", "--column", metavar="COLUMN")
    ] = (),
    searches: Annotated[Sequence[str], Option("texts in the captioner's captions", "--search", metavar="TEXT")] = (),
    metric: Annotated[str, Option("the metric of sentence and chart (default: LIC, or LIC_M)", metavar="NAME")] = "",
    images: Annotated[bool, Option("list the images of each slice instead")] = False,
    least: Annotated[
        int,
        Option(
            f"images a slice needs for a number; fewer than {LEAST_IMAGES} are not tested",
            metavar="N",
            at_least=FEWEST_IMAGES,
        ),
    ] = LEAST_IMAGES,
) -> Shown:
    """LIC_by_H, LIC (LIC_M without human captions), error and refusals in slices of images and outside them.

    objects, words, columns, searches: what picks the slices, as in `Slice`; of a column the values that most images
    have. Without any: the objects, else the content words of human captions, that most images have. metric: of the
    sentence and the chart (default: LIC, or LIC_M without human captions). images: list the images of each slice
    instead. least: images that a slice, and the others, need for a number; one with fewer than LEAST_IMAGES is not
    tested.

    rows: captioner, slice, rule, metric; images and share (%) of those of which the rule can tell; n images inside and
    n_rest outside that the metric counts, n_per_seed of those inside by one seed; value and rest, each with its 95%
    interval (_low, _high); difference with its interval and p, corrected by Holm over all slices (and captioners) of
    the metric in p_holm, both nan for LIC_by_H and where nothing is tested; significant; the share (%) of each label
    among n; reason, if there is no value. Raises CapbiasError for an unknown object, column or metric, and without
    anything to slice by.
    """
    chosen = metric or scope.comparison.metric
    by_captioner = {name: _of_captioner(scope, name, objects, words, columns, searches) for name in scope.captioners}
    known = dict.fromkeys(name for sliced in by_captioner.values() for name in sliced.metrics if name != UNTESTED)
    if chosen not in known:
        raise unknown_name("metric of slices", chosen, known)
    if images:
        return _images(by_captioner)
    rows = pd.DataFrame([row for name, sliced in by_captioner.items() for row in sliced.rows(name, least)])
    rows = _corrected(rows)
    drawn = (rows["reason"][rows["metric"] == chosen] == "").any()
    what = _what(next(iter(by_captioner.values())), any((objects, words, columns, searches)))
    return Shown(
        title=f"{chosen} in slices of images, {scope.attribute}",
        rows=rows,
        sentence=slices_sentence(rows, chosen, what, _not_amplifying(scope) if chosen == "LIC" else ()),
        notes=tuple(_notes(scope, by_captioner, rows, chosen, least)),
        table=_table(rows, chosen),
        chart=(lambda: slices_chart(rows, chosen, len(scope.comparison.attribute.values))) if drawn else None,
    )


@dataclass(frozen=True)
class _Evidence:
    """The counts of some metrics of one captioner."""

    metrics: tuple[Metric, ...]
    counts: Counts


@dataclass(frozen=True)
class _Sliced:
    """Slices of one captioner's images, with what they are measured by."""

    attribute: Attribute
    sources: SliceSources
    members: Mapping[Slice, Members]
    evidence: Sequence[_Evidence]
    labelled: frozenset[str]  # images with a label and a caption (and human captions, if they are compared with)
    lacking: Mapping[str, str]  # why a metric was not counted

    @property
    def metrics(self) -> list[str]:
        return [metric.name for each in self.evidence for metric in each.metrics]

    def rows(self, captioner: str, least: int) -> Iterator[dict[str, Any]]:
        for slice_, members in self.members.items():
            size = len(members.inside & self.labelled)
            share = 100 * size / max(1, len(members.known & self.labelled))
            about = {"captioner": captioner, "slice": slice_.title, "rule": slice_.rule}
            for each in self.evidence:
                results = slice_numbers(each.metrics, each.counts, members, self.attribute.values, least)
                for name, numbers in results.items():
                    yield about | {"metric": name, "images": size, "share": share} | numbers


def slices_line(scope: Scope) -> str:
    """The sentence of `slices` without a choice, or why there is none. Computed once, and stored in the workspace."""
    inputs = scope.workspace.items(collection=scope.collection)
    read = [VERSION, *((item.hash, item.name) for item in inputs if item.kind in (LABELS, OBJECTS))]
    digest = hashlib.sha256(json.dumps(read).encode()).hexdigest()
    runs = " ".join(scope.run(name).run_id for name in scope.captioners)

    def compute() -> str:
        try:
            sentence = slices(scope).sentence
            return sentence.removeprefix(f"{scope.captioners[0]}: ") if len(scope.captioners) == 1 else sentence
        except CapbiasError as error:
            return str(error)

    return scope.workspace.derived(f"slices {digest} {runs}", compute)


def _of_captioner(
    scope: Scope,
    captioner: str,
    objects: Sequence[str],
    words: Sequence[str],
    columns: Sequence[str],
    searches: Sequence[str],
) -> _Sliced:
    run, workspace = scope.run(captioner), scope.workspace
    attribute, sources = attribute_of_run(run), slice_sources(scope, run)
    names = OF_ATTACKER[bool(run.spec.references)]
    guesses = workspace.counts(run.run_id)[""]
    evidence, lacking = [_Evidence(tuple(METRICS[name] for name in names), guesses)], {}
    for name in COUNTED:
        measure = measure_of(name)
        spec = replace(run.spec, measure=measure.name, options={}, references="", coverage="", version=0)
        try:
            outcome = measure.count(data_of(workspace, spec), measure.options(), silent)
        except CapbiasError as error:
            lacking[name] = error.message
            continue
        if name in outcome.lacking:
            lacking[name] = outcome.lacking[name]
        else:
            evidence.append(_Evidence((METRICS[name],), outcome.by_direction[""]))
    labelled = frozenset(guesses.images)
    given = [Slice.parse(f"{OBJECT}:{name}") for name in objects]
    given += [Slice.parse(f"{WORDS}:{some}") for some in words]
    given += [slice_ for name in columns for slice_ in _values(sources, name, labelled)]
    given += [Slice.parse(f"{SEARCH}:{text}") for text in searches]
    given = given or default_slices(sources, attribute, labelled)
    members = {slice_: sources.members(slice_) for slice_ in dict.fromkeys(given)}
    return _Sliced(attribute, sources, members, evidence, labelled, lacking)


def slice_sources(scope: Scope, run: RunRow) -> SliceSources:
    """What slices of the images of a run are picked by."""
    tables = scope.workspace.items("attributes", scope.collection)
    table = next(item for item in tables if item.hash == run.spec.labels["table"])
    return SliceSources(scope.workspace, scope.collection, table, run.spec.captions, run.spec.references)


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


def _values(sources: SliceSources, column: str, labelled: frozenset[str]) -> list[Slice]:
    sizes = Counter({value: len(images & labelled) for value, images in sources.column(column).items()})
    return [Slice(COLUMN, f"{column}{IS}{value}") for value, size in sizes.most_common(MOST) if size]


# numbers


def slice_numbers(
    metrics: Sequence[Metric], counts: Counts, members: Members, values: Sequence[str], least: int = LEAST_IMAGES
) -> dict[str, dict[str, Any]]:
    """What rows say of each metric, p uncorrected. metrics: of sums over images, without a direction. counts: with
    their columns. values: of the attribute. least: as of `slices`."""
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


def _corrected(rows: pd.DataFrame) -> pd.DataFrame:
    """With p corrected over all slices of each tested metric that have a number, and in a fixed order of columns."""
    first = ["captioner", "slice", "rule", "metric", "images", "share", "n", "n_rest", "n_per_seed"]
    first += [f"{name}{end}" for name in ("value", "rest", "difference") for end in ("", "_low", "_high")]
    rows = rows.reindex(columns=list(dict.fromkeys([*first, "p", *rows.columns])))
    rows["p_holm"], rows["p"] = math.nan, rows["p"].where(rows["metric"] != UNTESTED)
    for _, of_metric in rows[rows["p"].notna()].groupby("metric"):
        rows.loc[of_metric.index, "p_holm"] = holm(of_metric["p"].to_numpy())
    rows["significant"] = np.where(rows["p_holm"] < ALPHA, YES, np.where(rows["p_holm"].notna(), NO, ""))
    shares = [name for name in rows if name.startswith("share_")]
    order = [*first, "p", "p_holm", "significant", *shares, "reason"]
    return rows[order]


# text


def _what(sliced: _Sliced, asked: bool) -> str:
    """What the slices of a sentence are: `the 10 most frequent objects`."""
    number = len(sliced.members)
    if asked or not number:
        return f"the {counted(number, 'slice')}"
    kind = "objects" if sliced.sources.has_objects else "content words of human captions"
    return f"the {number} most frequent {kind}"


def _not_amplifying(scope: Scope) -> list[str]:
    """Captioners whose verdict on all images is another than `amplifies`."""
    rows = scope.workspace.results([scope.run(name).run_id for name in scope.captioners])
    return list(rows.loc[(rows["metric"] == "LIC") & (rows["verdict"] != AMPLIFIES), "model"])


def slices_sentence(rows: pd.DataFrame, metric: str, what: str, not_amplifying: Collection[str] = ()) -> str:
    """Per captioner in which slices a metric differs significantly from the other images, those that differ most first;
    or that it does in none. what: the slices, in words. not_amplifying: captioners of which no more follows."""
    sentences, none, untested = [], [], {}
    for captioner, of_captioner in rows[rows["metric"] == metric].groupby("captioner", sort=False):
        clear = of_captioner[of_captioner["significant"] == YES].sort_values("difference", key=abs, ascending=False)
        if not (of_captioner["p"].notna()).any():
            sizes = of_captioner.assign(size=of_captioner[["n", "n_rest"]].min(axis=1)).sort_values(
                "size", ascending=False
            )
            untested[str(captioner)] = listed([f"{row.slice} {row.size:,}" for row in sizes.head(NAMED).itertuples()])
        elif clear.empty:
            none.append(str(captioner))
        else:
            named = [_clause(row) for row in clear.head(NAMED).to_dict("records")]
            more = ""
            if len(clear) > NAMED:
                more = say("slices.more", slices=counted(len(clear) - NAMED, "more slice"))
            more += say("slices.not_amplifying") if captioner in not_amplifying else ""
            sentences.append(say("slices.found", captioner=captioner, metric=metric, slices=listed(named)) + more)
    if none:
        sentences.append(say("slices.none", captioners=listed(none), what=what, metric=metric))
    for captioner, most in untested.items():
        sentences.append(say("slices.too_few", captioner=captioner, least=LEAST_IMAGES, most=most))
    return " ".join(sentences)


def _clause(row: Mapping[str, Any]) -> str:
    """`higher in images with “dog” (12.1 [8.0, 16.0], others 6.0 [4.1, 8.0])`"""
    where = Slice.parse(row["rule"]).images
    numbers = with_interval(*(row[f"value{end}"] for end in ("", "_low", "_high")))
    rest = with_interval(*(row[f"rest{end}"] for end in ("", "_low", "_high")))
    way = "slices.higher" if row["difference"] > 0 else "slices.lower"
    return say(way, images=where, value=numbers, rest=rest)


def _notes(
    scope: Scope, by_captioner: Mapping[str, _Sliced], rows: pd.DataFrame, metric: str, least: int
) -> Iterator[str]:
    tests = int((rows.loc[rows["metric"] == metric, "p"].notna()).sum())
    if tests:
        yield say("slices.tests", tests=counted(tests, "test"), metric=metric)
    first = next(iter(by_captioner.values()))
    guesses = first.evidence[0].counts
    if guesses.seeds:
        yield say(
            "slices.held_out",
            attacker=scope.comparison.attacker,
            seeds=counted(len(guesses.seeds), "seed"),
            each=guesses.held_out.sum(axis=1).mean(),
            guessed=len(guesses.taking_part.images),
            images=len(guesses.images),
            least=least,
            over=OVER[REFITS],
            few=say("slices.few_seeds", least=LEAST_SEEDS) if len(guesses.seeds) < LEAST_SEEDS else "",
        )
    if (rows["reason"].eq("") & rows[["n", "n_rest"]].lt(LEAST_IMAGES).any(axis=1)).any():
        yield say("slices.not_tested", least=LEAST_IMAGES)
    elif least > FEWEST_IMAGES and rows["reason"].str.endswith(f"fewer than {least}").any():
        yield say("slices.lower_limit")
    if others := first.evidence[1:]:
        names = listed([each.metrics[0].name for each in others])
        yield say("slices.all_images", metrics=names, images=len(others[0].counts.images))
    balance = say("slices.balance")
    if "LIC" in first.metrics:
        equal = all(ABOUT_EQUAL in scope.run(name).lacking.values() for name in by_captioner)
        yield say("slices.no_verdict", balance=balance, length="" if equal else say("slices.length"))
    else:
        yield balance
    kinds = {slice_.kind for sliced in by_captioner.values() for slice_ in sliced.members}
    if OBJECT in kinds:
        unknown = len(first.labelled - first.sources.annotated)
        lost = say("slices.objects_lost", images=counted(unknown, "image")) if unknown else ""
        yield say("slices.objects", source=first.sources.objects_from, lost=lost)
    yield from (say(f"slices.{name}") for kind, name in KINDS.items() if kind in kinds)
    for name, sliced in by_captioner.items():
        for lost, reason in sliced.lacking.items():
            yield say("slices.left_out", captioner=name, what=lost, reason=reason)


def _table(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row per captioner and slice; without refusals where there are none."""
    names = [
        name for name, of_metric in rows.groupby("metric", sort=False) if name != "refused" or of_metric["value"].any()
    ]
    order = [metric, *(name for name in names if name != metric)]
    several, table = rows["captioner"].nunique() > 1, []
    shares = [name for name in rows if name.startswith("share_")]
    for _, of_slice in rows.groupby(["captioner", "rule"], sort=False):
        by_metric = of_slice.set_index("metric")
        first = by_metric.loc[metric]
        row = {"captioner": first["captioner"]} if several else {}
        row |= {"slice": first["slice"], "share of images": f"{limit(first['share'], 1)}%"}
        each = f" ({first['n_per_seed']:.0f})" if pd.notna(first["n_per_seed"]) else ""
        row["n"] = f"{first['n']:,}{each}"
        for name in order:
            result = by_metric.loc[name]
            reason = result["reason"].rpartition(", ")[2]  # n is in the row
            row[name] = reason or with_interval(result["value"], result["value_low"], result["value_high"])
            if name == metric:
                difference = with_interval(result["difference"], result["difference_low"], result["difference_high"])
                row["minus others"] = "" if result["reason"] else difference
                row["p (Holm)"] = "" if result["reason"] else _p_text(result["p_holm"])
        row |= {name.removeprefix("share_"): f"{first[name]:.0f}%" for name in shares[:1] if len(shares) == 2}
        table.append(row)
    return pd.DataFrame(table)


def _p_text(p: float) -> str:
    """`0.03`, or `< 0.001`.

    >>> _p_text(0.031), _p_text(0.0002), _p_text(1.0), _p_text(math.nan)
    ('0.031', '< 0.001', '1', 'not tested')
    """
    if math.isnan(p):
        return "not tested"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def _images(by_captioner: Mapping[str, _Sliced]) -> Shown:
    """A row per captioner, slice and image inside it, and in how many seeds it is held out."""
    rows = []
    for captioner, sliced in by_captioner.items():
        counts = sliced.evidence[0].counts
        times = dict(zip(counts.images, counts.held_out.sum(axis=0).tolist(), strict=True))
        for slice_, members in sliced.members.items():
            about = {"captioner": captioner, "slice": slice_.title, "rule": slice_.rule}
            rows += [
                about | {"image_id": each, "seeds": times[each]} for each in sorted(members.inside & sliced.labelled)
            ]
    frame = pd.DataFrame(rows, columns=["captioner", "slice", "rule", "image_id", "seeds"])
    dots = frame.assign(panel=frame["captioner"] + ", " + frame["slice"], label=frame["image_id"], value=frame["seeds"])
    notes = ("seeds: how many hold the image out.",)
    return Shown("Images of slices", frame, notes=notes, chart=lambda: dots_chart(dots))


def slices_chart(rows: pd.DataFrame, metric: str, values: int):
    """A dot and its 95% interval for each slice; below it, grey and hollow, the other images. Orange: significantly
    different. values: how many the attribute has."""
    rows = rows[(rows["metric"] == metric) & (rows["reason"] == "")]
    several = rows["captioner"].nunique() > 1
    names = [escape(f"{row.captioner} · {row.slice}" if several else row.slice) for row in rows.itertuples()]
    figure = graph_objects().Figure()
    y = pd.Series(np.arange(len(rows))[::-1], rows.index, dtype=float)
    for title, name, offset, part, colour in (
        ("in the slice, significantly different", "value", 0.12, rows["significant"] == YES, ORANGE_MARK),
        ("in the slice", "value", 0.12, rows["significant"] != YES, MEASURED),
        ("in the other images", "rest", -0.2, rows["rest"].notna(), GREY),
    ):
        points = rows[part]
        if points.empty:
            continue
        low, high = points[f"{name}_low"], points[f"{name}_high"]
        hover = [
            f"{escape(row['slice'])}, {title.partition(',')[0]}: {metric} "
            f"{with_interval(row[name], row[f'{name}_low'], row[f'{name}_high'], 2)}"
            f"<br>minus others {signed(row['difference'], 2)}, p {_p_text(row['p_holm'])}"
            for row in points.to_dict("records")
        ]
        figure.add_scatter(
            x=points[name],
            y=y[part] + offset,
            mode="markers",
            name=title,
            hovertext=hover,
            hoverinfo="text",
            marker={"size": 11 if name == "value" else 8, "color": colour}
            | ({} if name == "value" else {"symbol": "circle-open", "line": {"width": 2}}),
            error_x=error_bars(points[name], low, high, colour, 2.5 if name == "value" else 1),
        )
    neutral = METRICS[metric].neutral(values)
    if math.isfinite(neutral):
        neutral_line(figure, neutral, METRICS[metric].reference_line)
    ticks = {"tickmode": "array", "tickvals": y.tolist(), "ticktext": names}
    return figure.update_layout(
        height=int(MARGINS + 60 + 38 * max(len(rows), 3)),
        margin={"l": 10, "r": 20, "t": 34, "b": 90},
        legend={"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
        xaxis={"title": {"text": f"{metric} ({better_text(metric, values)})"}, "zeroline": False},
        yaxis=ticks | {"automargin": True, "zeroline": False, "range": [-0.6, len(rows) - 0.4]},
        dragmode=False,
    )
