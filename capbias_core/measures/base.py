"""`Metric` and `Measure`; `Job`, what a run reads, and `Outcome`, what it leaves. Rows of results are made here."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.aggregate import Counts, Estimate, intervals
from capbias_core.aggregate.resampling import UNBOUNDED
from capbias_core.attackers import attacker_entry
from capbias_core.errors import NotMeasurable, taken_twice
from capbias_core.language.files import ModelFiles
from capbias_core.measures.options import Aligned, Attacked, Options, Seeded
from capbias_core.measures.protocols import protocol_text
from capbias_core.metrics.share import gap, share
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute, Progress, Result, left_out_lines
from capbias_core.workspace.spec import ModelReference, PhotographsReference, RunSpec
from capbias_core.workspace.store import COUNTS, Item, RunRow, Workspace
from capbias_core.workspace.vectors import alignment_name

# Whether an input is not read, read if it is there, or must be there.
Presence = Literal["", "optional", "required"]
# Whether captions need no word for a value, must be able to name one, or each.
WORDS = Literal["", "any", "every"]


@dataclass(frozen=True)
class Needs:
    """What a measure reads, or one of its metrics reads besides.

    captions, labels: of a caption set and its images. references: human captions of the same images. objects: those on
    the images. photographs: of the images. people: where people are on them. vectors: word vectors for alignment.
    words: 'any': captions must be able to name a value; 'every': each value. values: exactly so many, 0 for any number.
    model: the name of an option that must name a model.
    """

    captions: bool = True
    labels: bool = True
    references: Presence = ""
    objects: Presence = ""
    photographs: bool = False
    people: bool = False
    vectors: bool = False
    words: WORDS = ""
    values: int = 0
    model: str = ""


NOTHING_MORE = Needs()
NEUTRAL = "neutral"  # what results call the word that names no value
ABOUT = "columns"  # the array of a run with what its rows say of its evidence
WITHOUT_LIMIT = (0, math.inf)  # the range of a metric
LOTUS = "Hirota et al., ACL 2025 (LOTUS)"
ROUNDING = 1e-9  # of the scale, by which a value may pass the end of its range
# Which values of a metric are good: low ones, high ones, those near its neutral value, or neither end.
BETTER = ("lower", "higher", "neutral", "none")


def no_neutral(k: int) -> float:
    """For metrics of which no value means no bias, such as caption quality: nan."""
    return math.nan


def zero(k: int) -> float:
    """For metrics of which 0 means no bias, whatever the number of values."""
    return 0.0


# Scale, neutral value, which values are good, and range of metrics alike.
LOWER_SHARE = (100, no_neutral, "lower", (0, 100))
HIGHER_SHARE = (100, no_neutral, "higher", (0, 100))
DIFFERENCE = (100, zero, "lower", (-100, 100))
MISTAKES = (100, zero, "lower", (0, 100))
QUOTIENT = (1, lambda k: 1.0, "neutral", WITHOUT_LIMIT)  # of what would be equal without bias
WEIGHT = (1, no_neutral, "lower", WITHOUT_LIMIT)
RICHNESS = (1, no_neutral, "higher", WITHOUT_LIMIT)


@dataclass(frozen=True)
class Metric:
    """One number that a measure gives: its facts, the columns of `Counts` that it reads, and its formula.

    scale: shown value = scale * quantity. range: of the shown value. neutral: shown value that means no bias by this
    metric, given K values; `no_neutral` if none does. better: of BETTER. guessed: whether the neutral value is what
    guessing gives, chance. digits: shown after the point, None for the usual. side: whose captions alone it depends on,
    'model' or 'human', '' for both. needs: what it reads besides its measure. gap_of: of a difference between groups,
    the metric whose values are compared.

    reads: names of columns, () for a number that is no function of sums over images. of: these columns summed, (...) or
    (..., W) each, to (...) unscaled values. within: the same for the images of one group, if another formula gives it.
    by_value: of gives (..., K), one for each value, or K + 1 with the neutral word last. fix: these counts, K and the
    direction to further arguments of `of`, the same in all draws of a bootstrap. level: of attackers, whether it is no
    difference between two sides that were trained on the same images. interval: over images; '' for Wilson's if it is a
    share, else a bootstrap that its range limits; 'share' for Wilson's; 'free' for a bootstrap without limits.
    no_interval: why it has none, or these counts to that, '' for one.
    """

    name: str
    title: str
    scale: float
    neutral: Callable[[int], float]
    better: str
    range: tuple[float, float]
    source: str
    explanation: str
    guessed: bool = False
    digits: int | None = None
    side: Literal["", "model", "human"] = ""
    of: Any = share
    needs: Needs = NOTHING_MORE
    gap_of: str = ""
    reads: tuple[str, ...] = ()
    within: Callable[..., np.ndarray] | None = None
    by_value: bool = False
    fix: Callable[[Counts, int, str], dict[str, Any]] | None = None
    level: bool = True
    interval: Literal["", "share", "free"] = ""
    no_interval: str | Callable[[Counts], str] = ""

    def estimates(self, counts: Counts, values: Sequence[str], direction: str = "") -> dict[str, Estimate]:
        """Its estimate from its columns, by direction: the given one, or each value."""
        fixed = self.fix(counts, len(values), direction) if self.fix else {}
        of = partial(self.of, **fixed) if fixed else self.of
        part_of_all = self.interval == "share" or (
            self.interval == "" and self.of is share and self.range == (0, self.scale)
        )
        facts = {
            "span": UNBOUNDED if self.interval == "free" else self.range,
            "share": part_of_all,
            "level": self.level,
            "no_interval": self.no_interval(counts) if callable(self.no_interval) else self.no_interval,
            "unsure": counts.constants.get(f"{self.name} unsure", 0.0),
        }
        if not self.by_value:
            return {direction: Estimate.read(counts, of, self.scale, **facts)}
        return {
            name: Estimate.read(counts, lambda *sums, column=column: of(*sums)[..., column], self.scale, **facts)
            for column, name in zip(range(of(*counts.totals).shape[-1]), (*values, NEUTRAL), strict=False)
        }

    @property
    def reference_line(self) -> str:
        """What the neutral value is called on a chart."""
        return "chance" if self.guessed else "neutral"


def with_gaps(*metrics: Metric, source: str = LOTUS) -> tuple[Metric, ...]:
    """Metrics of captions, each followed by its difference between groups. source: of the differences."""
    rows = []
    for metric in metrics:
        short, top = metric.title.partition(",")[0], metric.range[1] - metric.range[0]
        difference = Metric(
            f"{metric.name}_gap",
            f"difference in {short} between groups",
            metric.scale,
            zero,
            "neutral",
            (-top, top),
            source,
            f"{short[0].upper()}{short[1:]} on the images of the second value minus {short} on those of the first; of "
            "more values the largest minus the smallest, which is above 0 by chance alone. The images of the groups "
            "differ too.",
            digits=metric.digits,
            needs=metric.needs,
            gap_of=metric.name,
            reads=metric.reads,
        )
        rows += [metric, difference]
    return tuple(rows)


def estimates_of(
    metrics: Iterable[Metric], counts: Counts, values: Sequence[str], direction: str = ""
) -> dict[tuple[str, str], Estimate]:
    """The estimate of each metric whose columns were counted, by metric and direction."""
    known, by_columns, estimates = by_name(*metrics), {}, {}
    for name, metric in known.items():
        if not metric.reads or not set(metric.reads) <= set(counts.columns):
            continue
        if metric.reads not in by_columns:  # one object, so that these metrics share their bootstrap
            by_columns[metric.reads] = counts.reading(metric.reads).taking_part
        read = by_columns[metric.reads]
        if metric.gap_of:
            whole = of_groups(known[metric.gap_of], read, values)
            estimates[name, direction] = whole.across(read.label, len(values), gap)
        else:
            by_direction = metric.estimates(read, values, direction)
            estimates |= {(name, which): estimate for which, estimate in by_direction.items()}
    return estimates


def of_groups(metric: Metric, counts: Counts, values: Sequence[str]) -> Estimate:
    """A metric as it is read on the images of one group, or of each."""
    (estimate,) = replace(metric, of=metric.within or metric.of).estimates(counts, values).values()
    return estimate


@dataclass(frozen=True)
class Group:
    """What a user asks for by one name: some metrics that are read together. default: asked for if nothing is."""

    name: str
    title: str
    metrics: tuple[str, ...]
    default: bool = False


def group_of(name: str, title: str, metrics: Iterable[Metric], default: bool = False) -> Group:
    """These metrics under one name."""
    return Group(name, title, tuple(metric.name for metric in metrics), default)


def by_name(*metrics: Metric) -> dict[str, Metric]:
    """Metrics by name, in order. Raises CapbiasError for a name that comes twice."""
    named: dict[str, Metric] = {}
    for metric in metrics:
        if named.setdefault(metric.name, metric) is not metric:
            raise taken_twice("metric", metric.name, ["one measure"])
    return named


@dataclass(frozen=True)
class Measure:
    """What is computed together from the same inputs: all that is known about it, in the module that defines it.

    name: by which its runs are stored. title: what its runs give, in a few words. count: a Job to its evidence, from
    which `run` makes the rows. metrics: its rows. groups: what a user asks for. options: what a user may choose. needs:
    what it reads. version: raised when a change of the code changes its numbers, so that its earlier runs are repeated.
    seconds: roughly, on two free cores, for 15,000 captions or images and one seed, without the attacker. explains:
    whether the attacker explains each caption. freeze: options that name files or stored items to those that name their
    content. for_set: options of a request to those of one caption set. makes: the kind of item that a run makes in
    place of numbers. per_object: whether its runs leave `objects`, rows of each object (see gender_score_common.py).
    of_texts: of a measure that needs neither images nor human captions, a TextJob to a Counted (in that module too).
    in_process: light enough for the web server's process (whether an attacker is, its entry says). packages: modules of
    extras that its metrics need, whatever the attacker. place: its position among the measures, smaller first.
    """

    name: str
    title: str
    count: Callable[[Job], Outcome]
    seconds: float = 1.0
    explains: bool = False
    metrics: tuple[Metric, ...] = ()
    groups: tuple[Group, ...] = ()
    options: type[Options] = Options
    needs: Needs = NOTHING_MORE
    version: int = 1
    freeze: Callable[[Workspace, str, Any, Any], Any] = lambda workspace, collection, options, attribute: options
    for_set: Callable[[Workspace, Any, Item], Any] = lambda workspace, options, item: options
    makes: str = ""
    per_object: bool = False
    of_texts: Callable[[Any], Any] | None = None
    in_process: bool = True
    packages: tuple[str, ...] = ()
    place: int = 100

    def run(self, job: Job) -> Outcome:
        """What a run leaves: its evidence, and a row for each metric that reads it."""
        outcome = self.count(job)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"count of measures/{self.name}.py returned {type(outcome).__name__}, not an Outcome")
        if outcome.results:
            return outcome
        about, rows = self._about(outcome), []
        for direction, counts in outcome.by_direction.items():
            rows += job.rows(self.metrics, counts, about[direction], direction)
        kept = {ABOUT: json.dumps(about).encode()} if about else {}
        return replace(outcome, results=rows, arrays={**outcome.arrays, **kept})

    def _about(self, outcome: Outcome) -> Mapping[str, Columns]:
        """By direction the columns of each metric, and under '' those of a metric that the measure may get later."""
        columns = outcome.columns
        if not callable(columns):
            return {direction: {"": dict(columns)} for direction in outcome.by_direction}
        about: dict[str, dict[str, Mapping[str, Any]]] = {direction: {} for direction in outcome.by_direction}
        for direction, known in about.items():
            for name in ("", *(metric.name for metric in self.metrics)):
                with suppress(KeyError):  # of a metric that was not counted
                    known[name] = dict(columns(name, direction))
        return about

    @property
    def attacked(self) -> bool:
        """Whether it trains the attacker that was asked for."""
        return issubclass(self.options, Attacked)

    def version_with(self, attacker: str) -> int:
        """The version of its numbers by an attacker, '' for none."""
        return self.version + (attacker_entry(attacker).version if attacker else 0)

    @property
    def seeded(self) -> bool:
        return issubclass(self.options, Seeded)

    @property
    def aligned(self) -> bool:
        return issubclass(self.options, Aligned)

    @property
    def compares(self) -> bool:
        """Whether it needs the human captions of the same images."""
        return self.needs.references == "required"

    @property
    def both_sides(self) -> bool:
        """Whether it scores the model's captions and, if there are any, the human ones of the same images."""
        return self.needs.references == "optional"


Columns = Mapping[str, Mapping[str, Any]]  # of rows, by metric; '' for any other


@dataclass(frozen=True)
class Job:
    """A run with its inputs. Wherever these are stored, the job reads them by content hash."""

    spec: RunSpec
    options: Any  # of the measure
    attribute: Attribute
    # image_id, caption_index and caption of labelled images, indexed as in the whole set; empty if an item is made
    frame: pd.DataFrame
    labels: pd.Series  # value of the attribute by image ID
    progress: Progress
    table: Callable[[str], pd.DataFrame]  # an item by its content hash
    tokens_of: Callable[[str], Tokens]  # all captions of a set by its content hash
    model: Callable[[ModelReference], ModelFiles]  # raises CapbiasError for a model that is missing or has changed
    files: Callable[[PhotographsReference], dict[str, Path]]  # by image ID; raises in the same way
    folder: Path  # for large files that other runs may read too, such as vectors of captions; perhaps not made yet

    def tokens(self, frame: pd.DataFrame) -> Tokens:
        """The tokens of some rows of `frame`."""
        return self.tokens_of(self.spec.captions).rows(frame.index.to_numpy())

    def reference_tokens(self, frame: pd.DataFrame) -> Tokens:
        """The tokens of some rows of `references()`."""
        return self.tokens_of(self.spec.references).rows(frame.index.to_numpy())

    def references(self) -> pd.DataFrame:
        """The human captions of labelled images, their index that of the stored set."""
        return of_images(self.table(self.spec.references), self.labels.index)

    def objects(self) -> pd.Series | None:
        """Text such as `cat|dog` by image id, or None where the objects of images are not known."""
        source = self.spec.objects
        return self.table(source["table"]).set_index("image_id")[source["column"]] if source else None

    def photographs(self) -> dict[str, Path]:
        """The file of each photograph by image id. Raises CapbiasError where they are gone, or are others now."""
        return self.files(self.options.photographs)

    @property
    def embeddings(self) -> str:
        """The folder of vectors of captions: CAPBIAS_EMBEDDINGS, or `embeddings` in `folder`."""
        return os.environ.get("CAPBIAS_EMBEDDINGS") or str(self.folder / "embeddings")

    def masked(self, tokens: Tokens) -> Tokens:
        """Captions with the words of the attribute masked."""
        return tokens.masked(self.attribute, self.spec.merge_masks)

    def codes(self, images: Sequence[str]) -> np.ndarray:
        """The labels of these images as indices of the attribute's values."""
        return label_codes(images, self.labels, self.attribute)

    def sizes(self, counts: Counts) -> str:
        """How many captions were counted of each value: `Female 788, Male 1,662 captions`."""
        captions, values = counts.columns["captions"], enumerate(self.attribute.values)
        sizes = (f"{value} {int(captions[counts.label == code].sum()):,}" for code, value in values)
        return f"{', '.join(sizes)} captions"

    def result(
        self,
        metric: Metric,
        estimate: Estimate,
        n: int,
        method: str,
        direction: str = "",
        interval=None,
        differs: Sequence[str] = (),
        **columns,
    ) -> Result:
        """A row of the results table.

        n: captions or images that the value depends on. interval: where it is known already. columns: others, such
        as `group`. A metric that depends on human captions carries their alignment. The method ends with the
        protocol that the measure follows and each deviation from it. differs: deviations that depend on the data or the
        metric, such as `images balanced (paper: not balanced)`. Raises ValueError for a value beyond the metric's
        range.
        """
        aligned = isinstance(self.options, Aligned) and self.spec.references and metric.side != "model"
        alignment = alignment_name(self.options.alignment) if aligned else ""
        numbers, (low, high) = estimate.columns(interval), metric.range
        if numbers["value"] < low - ROUNDING * metric.scale or numbers["value"] > high + ROUNDING * metric.scale:
            raise ValueError(f"{metric.name} is {numbers['value']:g}, beyond its range from {low:g} to {high:g}")
        common = {"encoder": self.spec.attacker, "coverage": self.spec.coverage, "alignment": alignment}
        known: dict[str, Any] = numbers | common | columns
        return Result(
            attribute=self.attribute.name,
            model=self.spec.model,
            metric=metric.name,
            direction=direction,
            n=n,
            method="; ".join(filter(None, [method, protocol_text(self.spec.measure, self.options, differs)])),
            **known,
        )

    def rows(self, metrics: Iterable[Metric], counts: Counts, columns: Columns, direction: str = "") -> list[Result]:
        """A row for each metric whose columns were counted and are known; beside its gap also one for each group."""
        values, rows = self.attribute.values, []
        counts, known = counts.taking_part, by_name(*metrics)
        estimates = estimates_of(known.values(), counts, values, direction)
        limits = intervals(estimates)
        for (name, which), estimate in estimates.items():
            metric = known[name]
            about_it = columns.get(metric.gap_of or name, columns.get(""))
            if about_it is None:
                continue
            more = dict(about_it)
            method, n = more.pop("method"), more.pop("n", None)
            if metric.gap_of:
                one = known[metric.gap_of]
                of_group = of_groups(one, counts.reading(one.reads), values)
                for code, value in enumerate(values):
                    if captions := int(counts.columns["captions"][counts.label == code].sum()):
                        part = of_group.of_images(np.flatnonzero(counts.label == code))
                        about = f"{method}; {part.interval_method}"
                        rows.append(self.result(one, part, captions, about, which, group=value, **more))
                two = f"{values[1]} minus {values[0]}" if len(values) == 2 else ""
                method = f"{two or 'largest minus smallest value of a group'}; {method}"
            about, size = f"{method}; {estimate.interval_method}", counts.size() if n is None else n
            rows.append(self.result(metric, estimate, size, about, which, limits[name, which], **more))
        return rows


@dataclass(frozen=True)
class MadeItem:
    """An item that a run makes, under the name and in the collection that its options say."""

    frame: pd.DataFrame
    source: str
    details: dict[str, Any]
    digest: str = ""  # content hash, if not that of the frame


@dataclass(frozen=True)
class Outcome:
    """What a measure leaves of a run.

    counts: the evidence, or that of each direction. columns: of the rows made of them,
    `method` (what they depend on), `differs` as of `Job.result` and, if it is not the captions counted, `n` among them;
    or a function of a metric's name and a direction that gives them. notes: for the reader. lacking: why metrics have
    no value, by metric. arrays: further files of the run, by name. results: its rows, if they are no function of the
    counts alone. item: what it makes in place of numbers. log: lines for the log of the run.
    """

    counts: Counts | Mapping[str, Counts] = field(default_factory=dict)
    columns: Mapping[str, Any] | Callable[[str, str], Mapping[str, Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, bytes] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    item: MadeItem | None = None
    log: Sequence[str] = ()

    @property
    def by_direction(self) -> Mapping[str, Counts]:
        return {"": self.counts} if isinstance(self.counts, Counts) else self.counts

    @property
    def kept(self) -> dict[str, bytes]:
        """All arrays as the workspace keeps them."""
        evidence = {f"{COUNTS} {name}".strip(): counts.save() for name, counts in self.by_direction.items()}
        return {**evidence, **self.arrays}


def columns_of(workspace: Workspace, run: RunRow, direction: str) -> Columns:
    """What the rows of a finished run say of its counts; {} of a run before this was kept."""
    if ABOUT not in workspace.arrays(run.run_id):
        return {}
    return json.loads(workspace.array(run.run_id, ABOUT))[direction]


def run_available(
    ways: Mapping[str, Callable[[], tuple[Any, str]]], what: str = ""
) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """What several ways give, of those that the inputs allow; a note on each; and why the others give nothing.

    ways: by name, what gives a result and its note, or raises NotMeasurable. what: before a name in its note, such as
    `DBAC `. Raises NotMeasurable where the inputs allow none. Any other error ends the run.
    """
    results, notes, errors = {}, [], {}
    for name, way in ways.items():
        try:
            results[name], note = way()
            notes.append(f"{what}{name}: {note}")
        except NotMeasurable as error:
            errors[name] = error
    reasons = {f"{what}{name}": error.message for name, error in errors.items()}
    if not results:
        alike = len(set(reasons.values())) == 1
        message = next(iter(reasons.values())) if alike else " ".join(left_out_lines(reasons))
        arguments = dict.fromkeys(name for error in errors.values() for name in error.arguments)
        raise NotMeasurable(message, " ".join(dict.fromkeys(error.hint for error in errors.values())), *arguments)
    return results, notes, reasons


def of_images(frame: pd.DataFrame, images: Iterable[str]) -> pd.DataFrame:
    """The rows of these images. Arrow compares texts as they are kept; pandas' `isin` takes twenty times as long."""
    wanted = images if isinstance(images, pd.Index | pd.Series) else list(images)
    ids, known = (pa.array(column, type=pa.large_string()) for column in (frame["image_id"], wanted))
    which = pc.is_in(ids, value_set=known).to_numpy(zero_copy_only=False)
    return frame if which.all() else frame[which]


def label_codes(images: Sequence[str], labels: pd.Series, attribute: Attribute) -> np.ndarray:
    """The labels of these images as indices of the attribute's values."""
    code = {value: number for number, value in enumerate(attribute.values)}
    return labels.loc[list(images)].map(code).to_numpy(dtype=int)


def npz(**arrays) -> bytes:
    """Arrays as the bytes of a compressed npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def npy(values: np.ndarray) -> bytes:
    """An array whose digits hardly compress as the bytes of an npy file; `from_npy` reads it back."""
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def from_npy(data: bytes) -> np.ndarray:
    """The array that `npy` was given, of which nothing is copied; it can only be read. Runs of earlier versions left
    it as `values` of an npz file."""
    header = io.BytesIO(data)
    if not data.startswith(np.lib.format.MAGIC_PREFIX):
        return np.load(header)["values"]
    np.lib.format.read_magic(header)
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(header)
    return np.frombuffer(data, dtype, offset=header.tell()).reshape(shape, order="F" if by_column else "C")
