"""Before and after: two captioners, such as a model and its debiased version, by every metric measured of both alike.

A metric is paired over the images of both (aggregate/change.py). Runs are alike if they differ in the captions alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import ndtr

from capbias_core.aggregate.change import IMPROVED, WORSE, Change, change_of, corrected
from capbias_core.aggregate.ranking import ALPHA
from capbias_core.aggregate.resampling import NORMAL
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.registry import MEASURES, METRICS, expand_metrics, is_metric, measure_of
from capbias_core.measures.registry import metric as metric_named
from capbias_core.prepare.tasks import rows_by_image
from capbias_core.runs.run import estimates
from capbias_core.types import Attribute, counted
from capbias_core.views.charts import BLUE_MARK, GREY, MARGINS, ORANGE_MARK, error_bars, graph_objects
from capbias_core.views.results import (
    Comparison,
    average_words,
    current_runs,
    first_attribute,
    known_results,
    tables_read,
)
from capbias_core.views.rows import dots_chart
from capbias_core.views.sentence import decimals, lengths_note, limit, listed, measure, say, with_interval
from capbias_core.views.tables import BEHIND
from capbias_core.views.view import Scope, Shown, fitting
from capbias_core.views.word_comparison import function_words
from capbias_core.workspace.labels import attribute_of, attributes_in, labels_of, reads
from capbias_core.workspace.spec import RunSpec, Setting
from capbias_core.workspace.store import RunRow, Workspace

# Beside LIC, what is tested unless metrics are chosen: what a change of bias may cost.
COSTS = ("error", "cider")
FAILED, UNDECIDED, PASSED = "failed", "undecided", "passed"
FEWEST = 20  # captions with a word, mean of both captioners, for it to be tested
WORDS, NAMED = 20, 6  # in the table of words, and in its sentence
COLUMNS = (
    *("metric", "direction", "before", "after", "change", "ci_low", "ci_high", "p", "tested", "claim", "images"),
    *("encoder", "seeds", "undecided"),
)
SCALED = (
    "Each line is on its own scale, from no change (0) to the far end of its interval, and turned so that worse is on "
    "the right."
)


def pair_scope(
    workspace: Workspace,
    collection: str,
    first: str,
    second: str,
    attribute: str = "",
    attacker: str = "",
    seeds: int | None = None,
    references: str = "",
) -> Scope:
    """The scope of two captioners: their best comparison by LIC, else one without runs, for other metrics.

    Raises CapbiasError for names that the collection does not have, and for a captioner beside itself.
    """
    items = workspace.items("captions", collection)
    for name in (first, second):
        if name not in {item.name for item in items}:
            raise unknown_name("captioner", name, [item.name for item in items])
    if first == second:
        raise CapbiasError(f"Before and after are both {first}.", "Name two captioners.")
    tables = workspace.items("attributes", collection)
    attribute = attribute or first_attribute(workspace, collection)
    if attribute not in (known := attributes_in(tables)):
        raise unknown_name("attribute", attribute, known)
    comparison = fitting(workspace, collection, attribute, (first, second), attacker, seeds, references)
    if comparison is None:
        of, _ = attribute_of(tables_read(workspace, collection)[attribute], attribute)
        human = workspace.item("references", references, collection).hash if references else ""
        comparison = Comparison(of, attacker, seeds or 0, "", human, "", ())
    return Scope(workspace, collection, comparison, (first, second))


# runs


def _settings(run: RunRow) -> str:
    return f"{run.spec.attacker}, {counted(_seeds(run), 'seed')}" if run.spec.attacker else ""


class Runs:
    """The finished runs of two captioners on an attribute, by measure."""

    def __init__(self, scope: Scope):
        self.scope, self.names = scope, scope.captioners
        comparison = scope.comparison
        table = tables_read(scope.workspace, scope.collection)[scope.attribute]
        self.by_measure: dict[str, dict[str, list[RunRow]]] = {}
        for run in current_runs(scope.workspace, scope.collection):
            spec = run.spec
            if spec.model not in self.names or spec.attribute["name"] != scope.attribute:
                continue
            same = (
                spec.labels == comparison.runs[0].spec.labels
                if comparison.runs
                else reads(spec.labels, scope.attribute, table)
            )
            if same:
                self.by_measure.setdefault(spec.measure, {}).setdefault(spec.model, []).append(run)

    def alike(self, name: str) -> list[tuple[RunRow, RunRow]]:
        """All pairs of runs of a measure that differ in the captions alone."""
        by_model = self.by_measure.get(name, {})
        first, second = ({Setting.of(run.spec).key: run for run in reversed(by_model.get(of, []))} for of in self.names)
        return [(first[key], second[key]) for key in first if key in second]

    def pair(self, name: str) -> tuple[RunRow, RunRow] | None:
        """The runs of a measure that are alike, those of the scope's settings or else of most seeds; None if none are.

        The attacker and the human captions of the scope hold for all measures that have some."""
        comparison = self.scope.comparison

        def fits(spec: RunSpec) -> bool:
            asked = comparison.seeds if spec.attacker and not comparison.runs else 0  # by a flag
            return (
                comparison.attacker in ("", spec.attacker or comparison.attacker)
                and comparison.references in ("", spec.references or comparison.references)
                and asked in (0, len(spec.seeds))
            )

        def best(pair: tuple[RunRow, RunRow]) -> tuple:
            run = pair[0]
            return bool(run.spec.references), _seeds(run) == comparison.seeds, _seeds(run), run.finished or 0.0

        return max((pair for pair in self.alike(name) if fits(pair[0].spec)), key=best, default=None)

    def lacking(self, metric: str) -> str:
        """Why a metric cannot be compared, though it was asked for."""
        name = measure_of(metric).name
        if pair := self.pair(name):
            return next(filter(None, (run.lacking.get(metric, "") for run in pair)), "it has no value for both")
        if self.alike(name):
            return "it is not measured with this attacker, number of seeds and human captions"
        by_model = self.by_measure.get(name, {})
        if missing := [of for of in self.names if of not in by_model]:
            return f"it is not measured of {listed(missing)}"
        settings = {of: "; ".join(dict.fromkeys(map(_settings, by_model[of]))) for of in self.names}
        if len(set(settings.values())) == 1:
            return "its runs differ in human captions, objects or options"
        return f"it is measured with different settings: {listed([f'{of} ({by})' for of, by in settings.items()])}"

    @property
    def answering(self) -> str:
        """LIC if it was measured of either captioner, else LIC_M."""
        runs = [run for of_model in self.by_measure.get("lic", {}).values() for run in of_model]
        return "LIC" if any(run.spec.references for run in runs) else "LIC_M"


def _seeds(run: RunRow) -> int:
    return len(run.spec.seeds)


# changes


def chosen_metrics(names: Collection[str]) -> list[str]:
    """Metrics by their names or those of groups, in any case: `LIC` is LIC alone, `quality` four metrics. Raises
    CapbiasError for an unknown name."""
    expanded = [[metric_named(name).name] if is_metric(name) else expand_metrics([name]) for name in names]
    return list(dict.fromkeys(name for some in expanded for name in some))


def change_rows(scope: Scope, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """A row per metric and direction that was measured of both captioners alike, in COLUMNS; and one per chosen metric
    that was not, with the reason in `undecided`.

    metrics: those that are tested, with p corrected by Holm over all of them (default: LIC, LIC_M without human
    captions, and as far as they are measured the wrong values named and CIDEr). claim: `worse`, `better` or ''. p: of
    other metrics not corrected, and without a claim.
    """
    runs = Runs(scope)
    tested = chosen_metrics(metrics) or [runs.answering]
    values, changes = len(scope.comparison.attribute.values), {}
    for name in runs.by_measure:
        if pair := runs.pair(name):
            changes |= {key: (change, pair) for key, change in _changes(scope.workspace, pair, values).items()}
    if not metrics:
        tested += [name for name in COSTS if (name, "") in changes]
    rows = []
    for (name, direction), (change, (run, _)) in changes.items():
        rows.append(_row(name, direction, change, run))
    for name in tested:
        if name not in {row["metric"] for row in rows}:
            nothing = dict.fromkeys(COLUMNS) | {"metric": name, "direction": "", "p": 1.0, "encoder": ""}
            rows.append(nothing | {"images": 0, "seeds": 0, "undecided": runs.lacking(name), "of": None})
    if not rows:
        return pd.DataFrame(columns=list(COLUMNS))
    order = {name: number for number, name in enumerate([*tested, *(name for name in METRICS if name not in tested)])}
    rows.sort(key=lambda row: order[row["metric"]])
    family = [row for row in rows if row["metric"] in tested]
    for row, p in zip(family, corrected([row["p"] for row in family]), strict=True):
        row["p"], row["claim"] = p, row["of"].claim(p) if row["of"] else ""
    for row in rows:
        row["tested"], row["claim"] = row["metric"] in tested, row["claim"] or ""
    numbers = ("before", "after", "change", "ci_low", "ci_high", "p")
    table = pd.DataFrame(rows)
    return table.astype(dict.fromkeys(numbers, float))[[*COLUMNS, "of"]]


def _row(name: str, direction: str, change: Change, run: RunRow) -> dict[str, Any]:
    about = {"encoder": run.spec.attacker, "seeds": _seeds(run) if run.spec.attacker else 0}
    numbers = {"before": change.before, "after": change.after, "change": change.difference, "p": change.p}
    ends = {"ci_low": change.low, "ci_high": change.high, "images": change.images, "undecided": change.undecided}
    return {"metric": name, "direction": direction, "claim": "", "of": change} | numbers | ends | about


def _changes(workspace: Workspace, pair: tuple[RunRow, RunRow], values: int) -> dict[tuple[str, str], Change]:
    """The change of each metric of a measure, by metric and direction; computed once, then kept in the workspace."""

    def compute() -> list:
        before, after = (estimates(run) for run in pair)
        both = [key for key in before if key in after and METRICS[key[0]].side != "human"]
        return [[*key, asdict(change_of(before[key], after[key], METRICS[key[0]], values))] for key in both]

    metrics = " ".join(metric.name for metric in MEASURES[pair[0].spec.measure].metrics)  # it may get further ones
    key = f"change {pair[0].run_id} {pair[1].run_id} {metrics}"
    return {(name, direction): Change(**fields) for name, direction, fields in workspace.derived(key, compute)}


# what they say


def title_of(metric: str, direction: str = "") -> str:
    """A metric's title with its direction; its name if that is shorter, or if others have the title: `CIDEr`, `ratio`,
    `DBAC A→T`."""
    title = METRICS[metric].title.partition(",")[0]
    alone = sum(each.title.partition(",")[0] == title for each in METRICS.values()) == 1
    return measure(title if alone and len(title) <= len(metric) + 1 else metric, direction)


def clause(row: dict[str, Any]) -> str:
    """How a metric changed: `LIC fell by 2.1 [0.8, 3.4] (better)`, `CIDEr fell by 1.2 [−0.1, 2.5], not significant`."""
    title, change, metric = title_of(row["metric"], row["direction"]), row["of"], METRICS[row["metric"]]
    if change is None or (row["undecided"] and pd.isna(row["change"])):
        return say("change.cannot", metric=title, reason=row["undecided"])
    digits = decimals(row["metric"], metric.scale)
    if metric.better == "neutral" and math.isfinite(change.worse):
        way = "further" if change.worse > 0 else "nearer"
        ends = {name: limit(row[name], digits) for name in ("before", "after")}
        amount = _amount(change.worse, change.worse_low, change.worse_high, digits)
        went = say(f"change.{way}", metric=title, amount=amount, **ends)
    elif not row["change"]:
        went = say("change.same", metric=title)
    else:
        amount = _amount(row["change"], row["ci_low"], row["ci_high"], digits)
        went = say("change.rose" if row["change"] > 0 else "change.fell", metric=title, amount=amount)
    if row["undecided"]:
        return say("change.no_claim", went=went, reason=row["undecided"])
    if metric.better == "none" or not row["change"]:
        return went
    return say("change.claim" if row["claim"] else "change.not_significant", went=went, claim=row["claim"])


def _amount(value: float, low: float | None, high: float | None, digits: int) -> str:
    """A number without its sign, and its interval turned with it."""
    if value < 0 and low is not None and high is not None and not pd.isna(low):
        low, high = -high, -low
    return with_interval(abs(value), low, high, digits)


def gate(rows: pd.DataFrame) -> tuple[str, str]:
    """FAILED, UNDECIDED or PASSED, and a sentence: whether a tested metric is significantly worse.

    rows: of `change_rows`. Without a metric that is worse, one that cannot be decided leaves the gate undecided.
    """
    tested = rows[rows["tested"]].to_dict("records")
    if worse := [title_of(row["metric"], row["direction"]) for row in tested if row["claim"] == WORSE]:
        return FAILED, say("change.gate_failed_one" if len(worse) == 1 else "change.gate_failed", metrics=listed(worse))
    reasons = {}
    for row in tested:
        title = title_of(row["metric"], row["direction"])
        if METRICS[row["metric"]].better == "none" or (row["of"] and math.isnan(row["of"].worse) and row["of"].images):
            reasons[title] = row["undecided"] or say("change.neither_end")
        elif row["undecided"]:
            reasons[title] = row["undecided"]
    if reasons or not tested:
        text = "; ".join(f"{title}: {why}" for title, why in reasons.items()) or say("change.nothing_measured")
        return UNDECIDED, say("change.gate_undecided", reasons=text)
    names = [title_of(row["metric"], row["direction"]) for row in tested]
    return PASSED, say("change.gate_passed_one" if len(names) == 1 else "change.gate_passed", metrics=listed(names))


def change(scope: Scope, metrics: Sequence[str] = ()) -> Shown:
    """Before and after: the change of every metric from the first to the second captioner of the scope.

    rows: in COLUMNS. metrics: as of `change_rows`.
    """
    rows = change_rows(scope, metrics)
    first, second = scope.captioners
    if rows.empty or not rows["tested"].any():
        raise CapbiasError(f"Nothing is measured of both {first} and {second}.", "Score both with the same settings.")
    tested = rows[rows["tested"]].to_dict("records")
    sentence = say("change.change", first=first, second=second, clauses="; ".join(map(clause, tested)))
    names = listed([title_of(row["metric"], row["direction"]) for row in tested])
    family = say("change.family" if len(tested) > 1 else "change.family_of_one", count=len(tested), metrics=names)
    comparison = scope.comparison
    settings = ""
    if comparison.attacker:
        settings = say(
            "change.settings" if comparison.references else "change.settings_alone",
            attribute=scope.attribute,
            attacker=comparison.attacker,
            seeds=counted(comparison.seeds, "seed"),
            human=_human(scope),
        )
    notes = (
        say("change.notes", alpha=ALPHA, family=family),
        _verdicts(scope),
        lengths_note({name: _words(scope, name) for name in scope.captioners}),
        settings,
    )
    title = f"{scope.attribute}: change from {first} to {second}"
    table, shown = change_table(rows, scope), rows.drop(columns="of")
    return Shown(title, shown, sentence, tuple(filter(None, notes)), table, lambda: change_chart(rows))


def _human(scope: Scope) -> str:
    items = scope.workspace.items("references", scope.collection)
    return next((item.name for item in items if item.hash == scope.comparison.references), "")


def _words(scope: Scope, name: str) -> float:
    return average_words(scope.workspace, scope.workspace.item("captions", name, scope.collection).hash)


def _verdicts(scope: Scope) -> str:
    """LIC's verdict of both captioners, if it was measured."""
    if not scope.comparison.references or not scope.comparison.runs:
        return ""
    runs = [scope.run(name) for name in scope.captioners]
    rows = known_results(scope.workspace, [run.run_id for run in runs])
    verdicts = rows[rows["metric"] == "LIC"].set_index("model")["verdict"]
    known = [f"{name} {verdicts[name]}" for name in scope.captioners if name in verdicts]
    return say("change.verdicts", verdicts=", ".join(known))


def change_table(rows: pd.DataFrame, scope: Scope) -> pd.DataFrame:
    """The rows for a reader; metrics that only a verdict needs are left out unless they are tested."""
    table, (first, second) = [], scope.captioners
    for row in rows[rows["tested"] | ~rows["metric"].isin(BEHIND)].to_dict("records"):
        digits = decimals(row["metric"], METRICS[row["metric"]].scale)
        numbers = {
            name: "" if pd.isna(row[of]) else limit(row[of], digits)
            for name, of in ((first, "before"), (second, "after"))
        }
        arrow = {"higher": " ↑", "lower": " ↓"}.get(METRICS[row["metric"]].better, "")
        claim = row["undecided"] or row["claim"] or "not significant" if row["tested"] else row["undecided"]
        if row["tested"] and METRICS[row["metric"]].better == "none":
            claim = row["undecided"] or say("change.neither_end")
        table.append(
            {"metric": f"{measure(METRICS[row['metric']].title.partition(',')[0], row['direction'])}{arrow}"}
            | numbers
            | {
                "change": ""
                if pd.isna(row["change"])
                else with_interval(row["change"], row["ci_low"], row["ci_high"], digits),
                "result": claim,
                "images": f"{row['images']:,}" if row["images"] else "",
            }
        )
    return pd.DataFrame(table)


def change_chart(rows: pd.DataFrame):
    """A dot and its 95% interval for each metric with a better end, tested ones on top, worse to the right. Of those
    that are not tested, gaps between groups and what only a verdict needs are left out."""
    minor = [*BEHIND, *(name for name, metric in METRICS.items() if metric.gap_of)]
    rows = rows[(rows["tested"] | ~rows["metric"].isin(minor)) & rows["of"].notna()]
    drawn = []
    for row in rows.to_dict("records"):
        change = row["of"]
        if not math.isfinite(change.worse):
            continue
        ends = [change.worse if end is None else end for end in (change.worse_low, change.worse_high)]
        scale = max(map(abs, (*ends, change.worse))) or 1.0
        colour = {WORSE: ORANGE_MARK, IMPROVED: BLUE_MARK}.get(row["claim"], GREY)
        name = escape(title_of(row["metric"], row["direction"]))
        name = f"<b>{name}</b>" if row["tested"] else name
        drawn.append((name, change.worse / scale, *(end / scale for end in ends), colour, escape(f"{clause(row)}.")))
    columns = ["name", "value", "low", "high", "colour", "text"]
    frame = pd.DataFrame(drawn[::-1], columns=columns)
    figure = graph_objects().Figure()
    for colour, some in frame.groupby("colour", sort=False):
        bars = error_bars(some["value"], some["low"], some["high"], str(colour), 2.5)
        marker = {"size": 10, "color": colour, "line": {"width": 0}}
        figure.add_scatter(
            **{
                "x": some["value"],
                "y": some["name"],
                "hovertext": some["text"],
                "hoverinfo": "text",
                "mode": "markers",
            },
            marker=marker,
            error_x=bars,
        )
    figure.add_vline(x=0, line={"dash": "dash", "color": GREY, "width": 1.5})
    return figure.update_layout(
        height=MARGINS + 28 * max(len(frame), 3),
        margin={"l": 10, "r": 20, "t": 34, "b": 46},
        showlegend=False,
        xaxis={
            "title": {"text": "← better · no change · worse →"},
            "range": [-1.1, 1.1],
            "showticklabels": False,
            "zeroline": False,
        },
        yaxis={"automargin": True, "categoryorder": "array", "categoryarray": list(frame["name"])},
        dragmode=False,
    )


# words


def change_words(scope: Scope) -> Shown:
    """Words whose use changed most between the labelled values, from the first to the second captioner.

    Lean of a word toward a value: % of the captions of images with that label that have the word, minus % of those of
    the other images. rows: word, toward, before, after, change, ci_low, ci_high (95%, paired over images), p (Holm over
    the tested words), captions (that have it, mean of both). Words for the attribute are masked.
    """
    workspace, (first, second) = scope.workspace, scope.captioners
    attribute = scope.comparison.attribute
    labels = _labels(scope)
    parts = [
        _by_image(workspace, workspace.item("captions", name, scope.collection).hash, attribute)
        for name in (first, second)
    ]
    images = sorted(set(parts[0][0]) & set(parts[1][0]) & set(labels.index))
    words = sorted(set(parts[0][1]) | set(parts[1][1]))
    before, after = (_aligned(part, images, words) for part in parts)
    code = labels.loc[images].map({value: number for number, value in enumerate(attribute.values)}).to_numpy(dtype=int)
    captions = np.asarray((before + after).sum(axis=0)).ravel() / 2
    functional = function_words(
        workspace, [word for word, number in zip(words, captions, strict=True) if number >= FEWEST]
    )
    tested = np.flatnonzero((captions >= FEWEST) & ~np.isin(words, list(functional)))
    rows = lean_changes(before[:, tested], after[:, tested], code, attribute)
    rows = rows.assign(
        word=np.array(words, dtype=object)[tested][rows["word"]], captions=captions[tested][rows["word"]]
    )
    rows = rows.assign(size=rows["change"].abs(), differs=rows["p"] < ALPHA)
    rows = rows.sort_values(["differs", "size"], ascending=False, kind="stable", ignore_index=True)
    differ = rows[rows["differs"]]
    n, two = counted(len(tested), "word"), len(attribute.values) == 2
    ends = {"first": attribute.values[0], "second": attribute.values[1]}
    if differ.empty:
        sentence = say("change.words_none", words=n, attribute=scope.attribute)
    else:
        named = [
            f"{row.word} {limit(row.before, 1)} to {limit(row.after, 1)}{'' if two else f' ({row.toward})'}"
            for row in differ.head(NAMED).itertuples()
        ]
        sentence = say(
            "change.words",
            words=n,
            count=differ["word"].nunique(),
            attribute=scope.attribute,
            unit=say("change.points_between" if two else "change.points", **ends),
            named=", ".join(named),
            more=say("change.words_more", count=len(differ) - NAMED) if len(differ) > NAMED else "",
        )
    lean = "change.lean_between" if two else "change.lean"
    notes = (
        say(lean, images=len(images), attribute=scope.attribute, **ends),
        say("change.words_tested", alpha=ALPHA, fewest=FEWEST),
    )
    shown = rows[["word", "toward", "before", "after", "change", "ci_low", "ci_high", "p", "captions"]]
    top = rows.head(WORDS)
    table = pd.DataFrame(
        {
            "word": top["word"],
            **({} if two else {"toward": top["toward"]}),
            f"lean in {first}": [limit(value, 1) for value in top["before"]],
            f"lean in {second}": [limit(value, 1) for value in top["after"]],
            "change": [with_interval(row.change, row.ci_low, row.ci_high) for row in top.itertuples()],
            "significant": np.where(top["differs"], "yes", "no"),
            "captions": [f"{number:,.0f}" for number in top["captions"]],
        }
    )
    panels = [say("change.panel", value=value) for value in top["toward"]]
    dots = top.assign(panel=panels, label=top["word"], value=top["change"])
    title = f"{scope.attribute}: words from {first} to {second}"
    return Shown(title, shown, sentence, notes, table, lambda: dots_chart(dots, dict.fromkeys(panels, 0.0)))


def lean_changes(before: csr_array, after: csr_array, code: np.ndarray, attribute: Attribute) -> pd.DataFrame:
    """The lean of each word before and after, and its change with a 95% normal interval paired over images.

    before, after: (n_images, V), the share of the image's captions with the word. code: (n_images,) labels. Of two
    values toward the second alone.
    """
    rows, difference = [], csr_array(after - before)
    for value in range(len(attribute.values)) if len(attribute.values) > 2 else (1,):
        inside = code == value
        leans = [_mean(side[inside]) - _mean(side[~inside]) for side in (before, after)]
        error = np.sqrt(sum(_variance(difference[part]) for part in (inside, ~inside)))
        change = leans[1] - leans[0]
        differing = np.diff(csr_array(difference != 0).tocsc().indptr)  # images
        with np.errstate(invalid="ignore", divide="ignore"):  # without any spread p is the sign test's
            p = np.where(error > 0, 2 * ndtr(-np.abs(change) / error), np.minimum(1.0, 2 * 0.5**differing))
        columns = {"before": leans[0], "after": leans[1], "change": change}
        columns |= {"ci_low": change - NORMAL * error, "ci_high": change + NORMAL * error}
        scaled = pd.DataFrame({name: 100 * column for name, column in columns.items()})
        rows.append(scaled.assign(word=np.arange(len(change)), toward=attribute.values[value], p=p))
    table = pd.concat(rows, ignore_index=True)
    return table.assign(p=corrected(table["p"].tolist()) if len(table) else [])


def _mean(rows: csr_array) -> np.ndarray:
    return np.asarray(rows.sum(axis=0)).ravel() / max(1, rows.shape[0])


def _variance(rows: csr_array) -> np.ndarray:
    """Of the mean of each column."""
    n = max(2, rows.shape[0])
    return np.maximum(0, np.asarray(rows.multiply(rows).sum(axis=0)).ravel() / n - _mean(rows) ** 2) / (n - 1)


def _by_image(workspace: Workspace, digest: str, attribute: Attribute) -> tuple[list[str], list[str], csr_array]:
    """Images, words, and (n_images, V) the share of an image's captions with each word, words for the value masked."""
    tokens = workspace.tokens(digest).masked(attribute)
    image, images = pd.factorize(workspace.frame(digest)["image_id"])
    sums = csr_array(rows_by_image(image, len(images)) @ tokens.matrix(), dtype=float)
    sums.data /= np.repeat(np.bincount(image, minlength=len(images)), np.diff(sums.indptr))
    return list(images), list(tokens.words), sums


def _aligned(part: tuple[list[str], list[str], csr_array], images: list[str], words: list[str]) -> csr_array:
    """The rows of these images in the columns of these words."""
    own_images, own_words, shares = part
    row = {image: number for number, image in enumerate(own_images)}
    column = {word: number for number, word in enumerate(words)}
    chosen = shares[[row[image] for image in images]].tocoo()
    columns = np.array([column[word] for word in own_words], dtype=int)[chosen.coords[1]]
    return csr_array((chosen.data, (chosen.coords[0], columns)), shape=(len(images), len(words)))


def _labels(scope: Scope) -> pd.Series:
    runs = scope.comparison.runs
    if runs:
        return labels_of(scope.workspace, scope.comparison.attribute, runs[0].spec.labels)
    table = tables_read(scope.workspace, scope.collection)[scope.attribute]
    of, where = attribute_of(table, scope.attribute)
    return labels_of(scope.workspace, of, where)
