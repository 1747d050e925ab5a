"""The public functions: captions in, a report of scores out; and captioners compared in pairs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Ranking
from capbias_core.attackers import attacker_entry
from capbias_core.data import Data
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load.questions import Ask, python_call
from capbias_core.measures.lic import ABOUT_EQUAL
from capbias_core.measures.registry import METRICS, alike_with_references, is_metric, measure_of, protocol_notes
from capbias_core.measures.registry import metric as metric_named
from capbias_core.measures.word_comparison import ENDS
from capbias_core.question import DEFAULT_METRICS, Question, Source
from capbias_core.runs.engine import Watching, run_all, unwatched
from capbias_core.runs.inputs import Tell, read, resolve
from capbias_core.runs.plan import PER_CAPTION, WORDS_COMPARED, load_asked, plan, runs_for, useful
from capbias_core.runs.plan import left_out as left_out_of_request
from capbias_core.runs.run import Stopped, compute_in_hand
from capbias_core.types import counted, left_out_lines
from capbias_core.views.answer import answer
from capbias_core.views.captions import report_captions
from capbias_core.views.choose import ANSWERING, Choice, RunsInHand, choose, rows_of_runs
from capbias_core.views.files import printed, text_table
from capbias_core.views.results import PARTS, attribute_of_run, lettered, object_rows, ordered, ranking
from capbias_core.views.scored import caption_scores
from capbias_core.views.sentence import interval, measure, named_notes, significance_note
from capbias_core.views.table import TABLE, TableOptions
from capbias_core.views.words import words_of_set
from capbias_core.workspace.ingest import DEFAULT_COLLECTION
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RunRow, Workspace, results_frame
from capbias_core.workspace.vectors import CONSTANT

FINISHED = "finished"
FEW = 20  # captions: words of fewer stand last
COMPARED = (
    *(name for side, ends in ENDS.items() for name in (side, *ends)),
    "certain",
    "significant",
)  # columns of words

# Computes runs that are planned in a workspace: the specs, the collection; returns them as they ended.
Compute = Callable[[Workspace, Sequence[RunSpec], str], list[RunRow]]


# what comes back


@dataclass(frozen=True)
class Value:
    """One number of a report. interval: 95%; None if it has none. over: what that is over: 'refits', or 'images' (of an
    attacker's metric, given the trained attackers). verdict: of LIC, 'amplifies', 'inconclusive' or 'reduces'; '' of
    other metrics. spread: standard deviation over seeds, None without seeds. n: captions or images that it depends on.
    row: everything that is known about it, by column."""

    metric: str
    model: str
    value: float
    interval: tuple[float, float] | None
    over: str
    verdict: str
    n: int
    seeds: int
    spread: float | None
    method: str
    row: dict[str, Any] = field(repr=False)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{measure(self.metric, self.row['direction'])} of {self.model}: {interval(pd.Series(self.row))}"


def _value(row: dict[str, Any]) -> Value:
    low, high, spread = (None if pd.isna(row[name]) else float(row[name]) for name in ("ci_low", "ci_high", "spread"))
    bounds = None if low is None or high is None else (low, high)
    named = {name: row[name] for name in ("metric", "model", "value", "n", "seeds", "method")}
    return Value(**named, interval=bounds, over=row["interval"], verdict=row["verdict"], spread=spread, row=row)


@dataclass(frozen=True)
class Report:
    """Scores of captions.

    table: a row per number, in the columns of the results table. left_out: why a metric that was asked for has no
    value, by metric. refused: what was asked for and cannot be had, such as an attacker, and why. failed: what went
    wrong with single runs. notes: what the numbers depend on. ranking: the captioners in pairs by `ranked_by`, a metric
    and its direction, of the runs `ranked_runs`; None for a single captioner. `sentence`, the answer in words, is made
    when it is first asked for, as by `print(report)`.

    `report["LIC"]` is one number, with its `value`, `interval`, `n`, `method` and more (`Value`). With several
    captioners name one too: `report["LIC", "sat"]` or `report["sat"]["LIC"]`. Further parts of the key choose among
    encoders, directions, groups and objects, such as `report["DBAC", "A->T"]`.
    """

    table: pd.DataFrame
    left_out: dict[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ranking: Ranking | None = None
    ranked_by: tuple[str, str] = ("", "")
    ranked_runs: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    inputs: Inputs | None = field(default=None, repr=False)
    source: RunsInHand | None = field(default=None, repr=False)
    every: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)  # also the rows that nobody asked for

    @cached_property
    def choice(self) -> Choice | None:
        """What answers first, as on the pages: by it views show these rows. None without any number."""
        if self.source is None or self.table.empty:
            return None
        human = self.source.data.references
        names = {human.key: human.name} if human else {}
        rows = rows_of_runs(self.every, self.source.runs, names, self.models, self.source)
        if self.ranking and self.ranked_by[0] not in ANSWERING:
            rows["letters"] = lettered(self.every, self.letters, self.ranked_runs, *self.ranked_by)["letters"]
        return choose(self.source, rows, {})

    @cached_property
    def sentence(self) -> str:
        """The answer in words."""
        return answer(self.choice).text if self.choice else ""

    def text(self, width: int | None = None) -> str:
        """The answer, and a table for each attacker, in lines of so many characters (default: as long as they are)."""
        parts = [self.sentence]
        if choice := self.choice:
            human = choice.measured_with.references
            settings = [key for key in choice.options["setting"] if choice.settings[key].references == human]
            for each in (replace(choice, setting=key) for key in settings):
                rows = TABLE.rows(each, TableOptions(metrics=self.asked))
                parts.append(printed(TABLE, each, rows, width).rstrip("\n"))
        if self.ranking and self.ranked_by[0] not in ANSWERING:
            parts.append(significance_note(self.ranking))
        lacking = [*left_out_lines(self.left_out), *self.refused, *self.failed]
        return "\n\n".join(filter(None, [*parts, "\n".join(lacking)]))

    @cached_property
    def words(self) -> pd.DataFrame:
        """What each word adds: `mean` on the attacker's logit per caption that has it, toward the value `toward`, in
        `count` captions. The strongest first, and words of fewer than 20 captions last. Computed when it is first asked
        for.

        With human captions also `captioner` and `human`, what it adds for attackers trained on equally many captions of
        the same images, with their intervals, such as `captioner_low` to `captioner_high`; their `difference`, from
        `low` to `high`; and whether the captioner's interval excludes 0 (`certain`), and that of the difference
        (`significant`): yes, no, or not tested. Intervals are over seeds and images,
        and hold for all tested words together in 95% of cases (Bonferroni)."""
        assert self.inputs
        return words_of(self.inputs)

    @cached_property
    def captions(self) -> pd.DataFrame:
        """Each caption with the guess of an attacker that did not train on its image, the guess's `probability`, that
        of the label (`p_label`), and `words`: pairs of a word, as the attacker reads it, and what it adds to the logit;
        of two values positive toward the second, of more toward the guess. Computed when it is first asked for."""
        assert self.inputs
        runs = explained(self.inputs, (PER_CAPTION,))[PER_CAPTION]
        captions = self.inputs.data.captions
        return report_captions((caption_scores(run), captions[model].frame) for model, run in runs.items())

    @property
    def models(self) -> list[str]:
        """The captioners, in order."""
        return list(dict.fromkeys(self.table["model"]))

    @property
    def letters(self) -> dict[str, str]:
        """Letters of each captioner by `ranked_by`: captioners that share one are not told apart."""
        return self.ranking.letters if self.ranking else {}

    @property
    def pairs(self) -> pd.DataFrame:
        """A row per pair of captioners: first, second, difference (first minus second by `ranked_by`) with its 95%
        interval (low, high), p (Holm-corrected over all pairs), and differ."""
        pairs = self.ranking.pairs if self.ranking else ()
        rows = [
            (pair.first, pair.second, pair.difference, pair.ci_low, pair.ci_high, pair.p, pair.apart) for pair in pairs
        ]
        return pd.DataFrame(rows, columns=["first", "second", "difference", "low", "high", "p", "differ"])

    def __getitem__(self, key: str | tuple[str, ...]) -> Any:
        """A `Value`, or, where the key names no metric, a `Report` of the rows that it names. Raises CapbiasError for a
        key that is in no row, and for a metric that has several values."""
        parts = key if isinstance(key, tuple) else (key,)
        rows = self.table
        for part in parts:
            rows = self._having(rows, part)
        if rows["metric"].nunique() > 1 or not any(is_metric(part) or part in set(rows["metric"]) for part in parts):
            return replace(self, table=rows, every=rows, ranking=None)
        for column in ("coverage", "group", "object"):  # of several rows, that of all images, groups and objects
            if len(rows) > 1 and (rows[column] == "").any():
                rows = rows[rows[column] == ""]
        if len(rows) == 1:
            return _value(rows.iloc[0].to_dict())
        differ = [name for name in ("model", *PARTS) if rows[name].nunique() > 1]
        which = ", ".join(map(repr, [*parts, *(rows[name].iloc[-1] for name in differ[:1])]))
        raise CapbiasError(
            f"{' '.join(parts)} has {len(rows):,} values.",
            f"Choose one by {' and '.join(differ)}, such as report[{which}]." if differ else "Read report.table.",
        )

    def _having(self, rows: pd.DataFrame, part: str) -> pd.DataFrame:
        for column in ("metric", "model", *PARTS):
            if part and part in set(rows[column]):
                return rows[rows[column] == part]
        if is_metric(part) and (name := metric_named(part).name) != part:
            return self._having(rows, name)
        if part in self.left_out:
            raise CapbiasError(f"{part} was left out: {self.left_out[part]}.")
        columns = ("metric", "model", "direction", "encoder", "group")
        known = {value for column in columns for value in rows[column] if value}
        raise unknown_name("metric" if is_metric(part) else "key", part, known)

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Comparison:
    """Captioners compared in pairs on the images that they share.

    metric: what they are compared by. table: captioner, value, 95% interval (low, high), and letters: captioners that
    share one are not told apart. pairs: as of `Report`. method: how pairs were tested. report: all scores.
    """

    metric: str
    table: pd.DataFrame
    pairs: pd.DataFrame
    report: Report

    @property
    def method(self) -> str:
        """How pairs were tested."""
        return self.report.ranking.method if self.report.ranking else ""

    def __str__(self) -> str:
        tables = []
        for frame in (self.table, self.pairs):
            floats = list(frame.select_dtypes("float"))
            texts = {name: [f"{value:.{3 if name == 'p' else 2}f}" for value in frame[name]] for name in floats}
            tables.append(text_table(frame.assign(**texts).astype(str), floats))
        return "\n\n".join([f"{self.metric}. {significance_note(self.report.ranking)}", *tables])


# what is asked


def score(
    captions: Source | Sequence[str | os.PathLike] | Mapping[str, Source] | None = None,
    labels: Source | None = None,
    attribute: str = "",
    references: Source | None = None,
    metrics: Sequence[str] | str = (),
    attacker: str | Sequence[str] = (),
    seeds: int | None = None,
    *,
    protocol: str = "",
    words: bool = False,
    rank_by: str | tuple[str, str] = "",
    objects: Source | None = None,
    photographs: str | os.PathLike | None = None,
    people: Source | None = None,
    alignment: str = CONSTANT,
    vectors: str | os.PathLike | None = None,
    delta: float | None = None,
    attribute_column: str = "",
    values: Sequence[str | float] = (),
    mapping: Mapping[Any, str | None] | None = None,
    several: str = "",
    image_id_column: str = "",
    caption_column: str | Sequence[str] = (),
    reference_column: str | Sequence[str] = (),
    captioner_column: str = "",
    rows: Mapping[str, Any] | str | Sequence[str] = (),
    sets: str = "",
    per_object: bool = False,
    workspace: str | os.PathLike | None = None,
    collection: str = "",
    **choices: Any,
) -> Report:
    """Score captions.

    A source is a path, a DataFrame, a Dataset of Hugging Face, a list of dicts, or COCO's JSON once parsed.

    captions: a source, or several by the name of their captioner.
    labels: a table of labels.
    attribute: a known one such as gender, a TOML file, or a column of the labels.
    references: human captions of the same images, if no file of captions has them beside.
    metrics: by name, in any case; `lic` gives LIC and its parts, `LIC_M` itself alone. Default: `DEFAULT_METRICS`, or
      those of the protocol.
    attacker: one or more. Default: that of the protocol, or `ngram`.
    seeds: Default: the usual number.
    protocol: the paper whose settings fill what is not given: `lic`, `dbac`, `imagecaptioner2`, `age`, `gender_score`,
      or `custom` for none.
    words: compute `report.words` now, not when it is asked for.
    rank_by: the metric by which captioners are ranked, or a metric and its direction.
    objects: of the images.
    photographs: a folder, named by image ID.
    people: outlines or boxes on them.
    vectors, delta: of contextual alignment.
    values: the labels of a column to compare.
    mapping: raw label -> value of the attribute, None to drop it, where labels are not spelled as usual.
    several: which label an image with several rows gets: `majority`, `both`, `first` or `each`. Without it the columns
      decide, and a note says how.
    per_object: also a row for each object.
    choices: any field of a measure's options by name, such as `max_images=500`.

    A file of which several columns may hold captions, or whose rows of an image differ in an unknown way, is asked
    about: the error names the arguments. caption_column: of a model's captions; several are a captioner each.
    reference_column: of human captions. captioner_column: names the captioner of a row. rows: read only those with a
    value, such as {"language": "en"}. sets: what several captions of an image are: `samples` of one set, or a set
    `each`.

    Everything runs in this process and leaves nothing behind. workspace: a folder in which inputs and runs are kept
    instead, so that the dashboard shows them and no run is made twice. collection: where in it; without labels,
    whatever is given are names of what that collection holds.

    Raises CapbiasError for inputs that cannot be scored, and if no number can be had.
    """
    given = {name: value for name, value in locals().items() if name != "choices"}
    names = labels is None and bool(collection)
    if names and workspace is None:
        raise CapbiasError(f"The collection {collection!r} is in no workspace.", "Name its folder with workspace=.")
    asked = {name: value for name, value in given.items() if name != "workspace"}
    asked |= {
        "collection": collection or DEFAULT_COLLECTION,
        "rank_by": (rank_by, "") if isinstance(rank_by, str) else rank_by,
        "options": choices,
    }
    question = Question.of(stored=names, **asked)
    lines: list[str] = []
    try:
        if workspace:
            store = Workspace(workspace)
            question = resolve(store, question, lines.append)
            inputs = stored(store, question, run_all)
        else:
            inputs = in_hand(*read(question, lines.append))
    except Ask as ask:
        ask.call = python_call(score, given | choices, ask.answer)
        raise
    report = measured(inputs)
    if report.table.empty:
        failed = " ".join(report.failed)
        others = {name: reason for name, reason in report.left_out.items() if reason not in failed}
        raise CapbiasError(
            failed or "No metric that was asked for can be measured from these inputs.",
            " ".join(f"{line.rstrip('.')}." for line in left_out_lines(others)),
        )
    report = replace(report, notes=(*lines, *report.notes))
    if words:
        _ = report.words
    return report


def compare(
    captions: Mapping[str, Source] | Sequence[str | os.PathLike],
    labels: Source | None = None,
    attribute: str = "",
    references: Source | None = None,
    metric: str = "",
    direction: str = "",
    **options: Any,
) -> Comparison:
    """Compare captioners in pairs on the images that they share.

    metric, direction: by which; LIC with references, else LIC_M. A name that gives several metrics, such as `quality`,
    stands for the first, or its gap between groups where it has one. options: as `score` takes them.
    """
    given = {name: value for name, value in locals().items() if name != "options"} | options
    metric = metric or ("LIC" if references is not None else "LIC_M")
    options = {"metrics": [metric], "rank_by": (metric if is_metric(metric) else "", direction)} | options
    try:
        report = score(captions, labels, attribute, references, **options)
    except Ask as ask:
        ask.call = python_call(compare, given, ask.answer)
        raise
    if direction and direction not in set(report.table["direction"]):
        raise CapbiasError(f"{metric} has no direction {direction} here.", "Leave direction= out.")
    if report.ranking is None:
        missing = "; ".join((*left_out_lines(report.left_out), *report.refused, *report.failed))
        raise CapbiasError(
            f"Only {counted(len(report.models), 'captioner')} can be compared by {metric}.",
            missing or "Give several captioners by name.",
        )
    metric, direction = report.ranked_by
    rows = report.table[report.table["run_id"].isin(report.ranked_runs)]  # the attacker whose pairs are tested
    rows = _ranked_rows(rows, metric, direction)
    table = rows.rename(columns={"model": "captioner", "ci_low": "low", "ci_high": "high"})
    table = table[["captioner", "value", "low", "high"]].assign(letters=rows["model"].map(report.letters))
    table = table.sort_values("value", kind="stable", ignore_index=True)
    return Comparison(f"{metric} {direction}".strip(), table, report.pairs, report)


# how it is measured; the command line comes here too


@dataclass(frozen=True)
class Inputs:
    """What is measured, and how: in hand, or in a workspace."""

    data: Data
    question: Question  # by names
    # A question to its runs; the dictionary gets why attackers cannot be planned.
    plan: Callable[[Question, dict[str, CapbiasError] | None], list[RunSpec]]
    # Planned runs: the runs as they ended, and their rows.
    compute: Callable[[Sequence[RunSpec]], tuple[list[RunRow], pd.DataFrame]]


def in_hand(data: Data, question: Question, watching: Watching = unwatched, stopped: Stopped = None) -> Inputs:
    """Data in hand, measured in this process. watching: runs to a block in which somebody watches them. stopped: as of
    `compute_in_hand`."""

    def compute(specs: Sequence[RunSpec]) -> tuple[list[RunRow], pd.DataFrame]:
        with watching(specs) as watch:
            runs = compute_in_hand(data, specs, watch, stopped)
        finished = [run for run in runs if run.status == FINISHED]
        rows = [replace(row, run_id=run.run_id).row() for run in finished for row in run.evidence.results]
        return runs, results_frame([tuple(row.values()) for row in rows])

    return Inputs(data, question, partial(runs_for, data), compute)


def stored(workspace: Workspace, question: Question, run: Compute) -> Inputs:
    """Items of a workspace. run: computes what it does not have."""

    def compute(specs: Sequence[RunSpec]) -> tuple[list[RunRow], pd.DataFrame]:
        return run(workspace, specs, question.collection), workspace.results([spec.run_id for spec in specs])

    return Inputs(load_asked(workspace, question), question, partial(plan, workspace), compute)


def measured(inputs: Inputs, tell: Tell = lambda line: None) -> Report:
    """Plan a question, compute it, and report on it. tell: gets a line on each thing that cannot be had."""
    question, request = inputs.question, inputs.question.to_plan()
    errors: dict[str, CapbiasError] = {}
    planned = inputs.plan(request, errors)
    refused = [f"{name} left out: {error}" for name, error in errors.items()]
    specs, reasons = useful(planned, request)
    left_out = {name: lack.text for lack, names in reasons.items() for name in names}
    for line in (*refused, *left_out_of_request(reasons)):
        tell(f"warning: {line}")
    rows, frame = inputs.compute(specs)
    finished = [row for row in rows if row.status == FINISHED]
    by_object = [object_rows(row) for row in finished] if question.per_object else []
    whole = pd.concat([frame, *(table for table in by_object if len(table))], ignore_index=True)
    encoders = list(dict.fromkeys(spec.attacker for spec in planned))
    table = ordered(whole, request.captions, request.metrics, encoders)
    lost = {}  # metrics that could be had from the inputs, and have no value all the same
    for name in request.metrics:
        if name not in left_out and name not in set(table["metric"]):
            of_measure = [row for row in rows if row.spec.measure == measure_of(name).name]
            why = [row.message if row.status != FINISHED else row.lacking.get(name, "") for row in of_measure]
            lost[name] = " ".join(dict.fromkeys(filter(None, why))) or "its runs gave no value"
    failed = failures(rows)
    asked_for = {name.casefold() for name in question.metrics}
    told = {  # LIC at equal length, which lic stands for too, needs no warning where lengths are equal
        name: why for name, why in lost.items() if why != ABOUT_EQUAL or name.casefold() in asked_for
    }
    for line in left_out_lines(told) if not failed else ():
        tell(f"warning: {line}")
    first = max(filter(None, encoders), key=lambda name: attacker_entry(name).precedence, default="")
    notes = [  # without what left_out says
        (row.spec.model, tuple(note for note in row.notes if note not in left_out_lines(row.lacking)))
        for row in finished
    ]
    source = RunsInHand(inputs.data, {row.run_id: row for row in finished})
    report = Report(
        table=table,
        left_out=left_out | lost,
        refused=tuple(refused),
        failed=tuple(failed),
        notes=(*protocol_notes(table, question.options.get("protocol", "")), *named_notes(notes)),
        asked=() if question.metrics == DEFAULT_METRICS else question.metrics,
        inputs=inputs,
        source=source,
        every=ordered(whole, request.captions, [*request.metrics, *METRICS], encoders),
    )
    return report if table.empty else _ranked(report, question.rank_by, first)


def _ranked(report: Report, rank_by: tuple[str, ...], encoder: str) -> Report:
    """A report with its captioners in pairs, if it has several. encoder: the one that answers first."""
    source, metrics, (asked, direction) = report.source, list(dict.fromkeys(report.table["metric"])), rank_by
    assert source
    name = metric_named(asked).name if asked else leading(metrics)
    compared = _ranked_rows(report.table, name, direction, encoder)
    if direction and compared.empty and name in metrics:
        return replace(report, refused=(*report.refused, f"Not ranked: {name} has no direction {direction} here."))
    if len(compared) < 2:
        return report
    direction, run_ids = compared["direction"].iloc[0], tuple(compared["run_id"])
    pairs = ranking(source, [source.get_run(run_id) for run_id in run_ids], name, direction)
    if len(pairs.letters) < 2:
        return report
    return replace(report, ranking=pairs, ranked_by=(name, direction), ranked_runs=run_ids)


def failures(rows: Sequence[RunRow]) -> list[str]:
    """`few (ngram) failed: ...` for each run that did not finish."""
    return [
        f"{row.spec.model} ({row.spec.attacker or row.spec.measure}) {row.status}: {row.message}"
        for row in rows
        if row.status != FINISHED
    ]


def _ranked_rows(rows: pd.DataFrame, metric: str, direction: str, encoder: str = "") -> pd.DataFrame:
    """Rows of a metric that can be compared, one per captioner: of one encoder, on all images if that was measured."""
    rows = alike_with_references(rows)
    rows = rows[(rows["metric"] == metric) & rows["direction"].isin([direction] if direction else rows["direction"])]
    for column in ("direction", "coverage", *PARTS[2:]):
        if len(rows):
            first = sorted(dict.fromkeys(rows[column]), key=lambda name: name not in ("", encoder))[0]
            rows = rows[rows[column] == first]
    return rows.drop_duplicates("model")


def leading(names: Sequence[str]) -> str:
    """Of the metrics that there are, in their order, the one that answers: LIC, or the first; its gap between groups
    where that was measured, too."""
    first = next((name for name in (*ANSWERING, *names) if name in names), "")
    return next((name for name in names if METRICS[name].gap_of == first), first)


def explained(inputs: Inputs, measures: Sequence[str]) -> dict[str, dict[str, RunRow]]:
    """The runs of these measures, by captioner, that score each caption and what its words add."""
    question = inputs.question
    planned = inputs.plan(replace(question.to_plan(words=True), attacker=question.attacker[:1]), None)
    specs = [spec for spec in planned if spec.measure in measures and spec.model in question.captions]
    rows, _ = inputs.compute(specs)
    if failed := failures(rows):
        raise CapbiasError(" ".join(failed))
    return {name: {run.spec.model: run for run in rows if run.spec.measure == name} for name in measures}


def words_of(inputs: Inputs) -> pd.DataFrame:
    """What each word of the captions adds, by an attacker that did not train on their images; with human captions also
    beside what it adds there."""
    by_measure = explained(inputs, (PER_CAPTION, WORDS_COMPARED))
    tables = []
    for model, run in by_measure[PER_CAPTION].items():
        values = attribute_of_run(run).values
        table = words_of_set(run, by_measure[WORDS_COMPARED].get(model))
        table = table.sort_values("mean", ascending=False).drop_duplicates("word")
        words = pd.DataFrame(
            {
                "model": model,
                "word": table["word"],
                "toward": [values[code] for code in table["toward"]],
                "mean": table["mean"],
                "count": table["count"],
                **{f"share of {value}": table[f"share{code}"] for code, value in enumerate(values)},
                **{name: table[name] for name in COMPARED if name in table},
            }
        )
        tables.append(words.iloc[np.lexsort((-words["mean"], words["count"] < FEW))])
    return pd.concat(tables, ignore_index=True)
