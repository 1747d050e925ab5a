"""Before and after: two captioners, such as a model and its debiased version, by metrics measured of both alike.

A metric is paired over the images of both (aggregate/change.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field as Described

from capbias_core.aggregate import Estimate, of_groups
from capbias_core.aggregate.change import IMPROVED, WORSE, Change, change_of
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS
from capbias_core.measures.registry import MEASURES, METRICS, expand_metrics, is_metric
from capbias_core.measures.registry import metric as metric_named
from capbias_core.metrics.captions import ratio_of
from capbias_core.question import DEFAULT_METRICS
from capbias_core.runs.run import estimates
from capbias_core.views.choose import Choice
from capbias_core.views.results import average_words
from capbias_core.views.sentence import decimals, lengths_note, limit, listed, measure, say
from capbias_core.views.view import BY_METRIC, Field, Forest, View, ViewOptions
from capbias_core.workspace.store import RunRow, Workspace

GAPS = {name: metric.gap_of for name, metric in METRICS.items() if metric.gap_of}
# Metrics that are tested by label, too: those that count what error counts.
BY_LABEL = [name for name in GAPS.values() if METRICS[name].reads == METRICS["error"].reads]
GAPS_OF_ERROR = [name for name, of in GAPS.items() if of in BY_LABEL]
COST = "cider"  # what less bias may cost
CHANGE, NOT_SIGNIFICANT = "change", "not significant"
FAILED, UNDECIDED, PASSED = "failed", "undecided", "passed"
POINTS = 100  # the scale of metrics that share an axis
Key = tuple[str, str, str]  # metric, direction, and label of the images or ''


class ChangeOptions(ViewOptions):
    metric: tuple[str, ...] = Described(
        default=(),
        description="metrics to test (default: LIC, error by label, gaps between groups, CIDEr; as measured)",
    )
    fail_if: str = Described(
        default="",
        description=f"{WORSE}: exit code 1 if a tested metric is significantly worse (default of --metric: LIC)",
    )


USUAL = ChangeOptions()


def pair_of(choice: Choice) -> tuple[str, str]:
    """The captioners before and after. Raises CapbiasError if there are not two."""
    if len(names := choice.captioners) != 2:
        reason = f"Expected two captioners, got {len(names)}: {', '.join(names)}."
        raise CapbiasError(reason, "Name the one before and the one after.")
    return names[0], names[1]


def change_rows(choice: Choice, options: ChangeOptions = USUAL) -> pd.DataFrame:
    """Three rows for each line (a tested metric, or it on the images of a label): of `before: NAME`, of `after: NAME`,
    and of the `change` with its 95% interval.

    p: two-sided, not corrected; p_holm: by Holm over all lines. verdict: `worse`, `better` or `not significant`.
    reason: why nothing can be said, of a metric that cannot be compared or has no better end. n: the images of both.
    """
    if options.fail_if not in ("", WORSE):
        raise CapbiasError(f"Got fail_if {options.fail_if!r}, expected {WORSE!r}.", "", "fail_if")
    names = pair_of(choice)
    both = choice.of_captioners(*names)
    tested = chosen_metrics(options.metric) or usual_metrics(both, bool(options.fail_if))
    measured, lines = both.measured([*tested, "error"]), []
    for name in tested:
        found = _of_metric(both, measured, name)
        lines += found or [((name, "", ""), None, {"reason": _lacking(both, name)})]
    rose = next((change.worse > 0 for key, change, _ in _of_metric(both, measured, "error") if not key[2]), False)
    p_holm = holm(np.array([change.p if change else 1.0 for _, change, _ in lines])).tolist()
    usual = dict.fromkeys(("line", "captioner", "of", "metric", "direction", "group"), "")
    usual |= dict.fromkeys(("value", "low", "high", "n", "p", "p_holm"), math.nan)
    usual |= dict.fromkeys(("verdict", "reason", "encoder", "other"), "")
    usual |= {"setting": choice.setting, "setting_name": choice.setting_name}
    rows = [
        usual | row
        for (key, change, about), p in zip(lines, p_holm, strict=True)
        for row in _rows(key, change, about, p, rose, names)
    ]
    frame = pd.DataFrame(rows)
    points = frame["metric"].map(lambda name: METRICS[name].scale == POINTS)
    return frame.assign(drawn=points & (frame["of"] == CHANGE))


def chosen_metrics(names: Collection[str]) -> list[str]:
    """Metrics by their names or those of groups, in any case: `LIC` is LIC alone, `quality` four metrics. Raises
    CapbiasError for an unknown name."""
    expanded = [[metric_named(name).name] if is_metric(name) else expand_metrics([name]) for name in names]
    return list(dict.fromkeys(name for some in expanded for name in some))


def usual_metrics(both: Choice, gate: bool = False) -> list[str]:
    """What is tested if nothing is asked for: LIC, or LIC_M without human captions; for no gate also what was measured
    of error, its gap and values by label, gaps of other metrics between groups, and CIDEr."""
    answering = "LIC" if both.measured_with.references else "LIC_M"
    by_captioner = both.rows.groupby("captioner")["metric"].agg(set)
    measured = set.intersection(*by_captioner) if len(by_captioner) == len(both.captioners) else set()
    others = ["error", *GAPS_OF_ERROR, *(name for name in GAPS if name not in GAPS_OF_ERROR), COST]
    return [answering, *([] if gate else [name for name in others if name in measured])]


def _of_metric(both: Choice, measured: pd.DataFrame, name: str) -> list[tuple[Key, Change, dict[str, Any]]]:
    """The changes of a metric by direction and label, each with what its row says besides."""
    rows = measured[(measured["metric"] == name) & (measured["object"] == "")]
    changes = []
    for direction, part in rows.groupby("direction", sort=False):
        runs = part.drop_duplicates("captioner").set_index("captioner")
        if not set(both.captioners) <= set(runs.index):
            continue
        pair = tuple(both.workspace.get_run(runs.at[captioner, "run_id"]) for captioner in both.captioners)
        about = runs.loc[both.captioners[0], ["encoder", "setting", "setting_name", "other"]].to_dict()
        found = _changes(both.workspace, pair, both.defined.values)
        labels = ["", *(both.defined.values if name in BY_LABEL else ())]
        keys = [(name, str(direction), label) for label in labels if (name, direction, label) in found]
        changes += [(key, found[key], about) for key in keys]
    return changes


def _changes(workspace: Workspace, pair: Sequence[RunRow], values: Sequence[str]) -> dict[Key, Change]:
    """The change of each metric of a measure, by metric, direction and label; computed once, then kept."""

    def compute() -> list:
        (before, after), labels = (_estimates(run) for run in pair), [run.counts_of().taking_part for run in pair]
        # Images labelled with the second value for each with the first, of those of both runs.
        images = np.isin(labels[0].images, labels[1].images)
        counts = np.bincount(labels[0].label[images], minlength=2)
        changes = []
        for key in before:
            metric = METRICS[key[0]]
            if key in after and metric.side != "human":
                neutral = float(ratio_of(counts[1], counts[0])) if metric.of_labels else None
                changes.append((*key, change_of(before[key], after[key], metric, len(values), neutral)))
        return changes

    metrics = " ".join(metric.name for metric in MEASURES[pair[0].spec.measure].metrics)  # it may get further ones
    key = f"change by label {pair[0].run_id} {pair[1].run_id} {metrics}"
    changes = workspace.derived(key, compute, list[tuple[str, str, str, Change]])
    return {each[:-1]: each[-1] for each in changes}


def _estimates(run: RunRow) -> dict[Key, Estimate]:
    """The estimates of a run by metric, direction and label; by label those of BY_LABEL."""
    found = {(*key, ""): estimate for key, estimate in estimates(run).items()}
    values = run.spec.attribute["values"]
    for name in [name for name, direction, _ in found if name in BY_LABEL and not direction]:
        counts = run.counts_of().reading(METRICS[name].reads).taking_part
        whole = of_groups(METRICS[name], counts, values)
        for code, value in enumerate(values):
            if len(images := np.flatnonzero(counts.label == code)):
                found[name, "", value] = whole.of_images(images)
    return found


def _lacking(both: Choice, name: str) -> str:
    """Why a metric that was asked for cannot be compared."""
    rows = both.rows[(both.rows["metric"] == name) & both.rows["value"].notna()]
    if missing := [captioner for captioner in both.captioners if captioner not in set(rows["captioner"])]:
        return say("change.not_measured", captioners=listed(missing))
    by = {captioner: listed(list(dict.fromkeys(part["setting_name"]))) for captioner, part in rows.groupby("captioner")}
    return say("change.settings_differ", settings=listed([f"{captioner} ({by[captioner]})" for captioner in by]))


def _rows(
    key: Key, change: Change | None, about: Mapping[str, Any], p_holm: float, rose: bool, names: tuple[str, str]
) -> list[dict[str, Any]]:
    """The rows of a line. rose: whether error rose, by which captions come nearer to the ratio of the labels."""
    name, direction, label = key
    base = f"{GAPS[name]} gap" if name in GAPS else measure(name, direction)
    line = " ".join(filter(None, (base, label, f"({about['other']})" if about.get("other") else "")))
    common = {"line": line, "metric": name, "direction": direction, "group": label, **about}
    if change is None:
        return [common | {"of": CHANGE, "n": 0, "p_holm": p_holm}]
    verdict, reason = change.claim(p_holm) or NOT_SIGNIFICANT, change.undecided
    if not reason and not math.isfinite(change.worse):
        reason = say("change.neither_end")
    if verdict == IMPROVED and METRICS[name].of_labels and rose:
        reason = say("change.error_rose")
    common["n"] = change.images
    sides = zip(("before", "after"), names, (change.before, change.after), strict=True)
    rows = [common | {"of": f"{side}: {who}", "captioner": who, "value": value} for side, who, value in sides]
    found = {"value": change.difference, "low": change.low, "high": change.high, "p": change.p, "p_holm": p_holm}
    return [*rows, common | found | {"of": CHANGE, "verdict": "" if reason else verdict, "reason": reason}]


# what they say


def change_sentence(choice: Choice, rows: pd.DataFrame) -> str:
    """What became better and what worse, the first with its values; and what did not change significantly."""
    first, second = pair_of(choice)
    changes, parts = rows[rows["of"] == CHANGE], []
    for verdict in (IMPROVED, WORSE, NOT_SIGNIFICANT):
        names = list(changes.loc[changes["verdict"] == verdict, "line"])
        if names and verdict != NOT_SIGNIFICANT and not parts:
            of_line = rows[rows["line"] == names[0]].to_dict("records")
            digits = decimals(of_line[0]["metric"], METRICS[of_line[0]["metric"]].scale)
            before, after = (limit(row["value"], digits) for row in of_line[:2])
            names[0] = say("change.from_to", line=names[0], before=before, after=after)
        if names:
            parts.append(say(f"change.{verdict.replace(' ', '_')}", lines=listed(names)))
    if open_ones := list(changes.loc[changes["verdict"] == "", "line"]):
        parts.append(say("change.open", lines=listed(open_ones)))
    return say("change.change", first=first, second=second, parts="; ".join(parts))


def change_notes(choice: Choice, rows: pd.DataFrame) -> Sequence[str]:
    known = choice.verdicts()
    verdicts = [f"{name} {known[name]}" for name in choice.captioners if name in known]
    lines = [say("change.notes", alpha=ALPHA)]
    lines += [say("change.verdicts", verdicts=listed(verdicts))] if verdicts and "LIC" in set(rows["metric"]) else []
    workspace = choice.workspace
    items = {name: workspace.item(CAPTIONS, name, choice.collection) for name in pair_of(choice)}
    lengths = lengths_note({name: average_words(workspace, item.hash) for name, item in items.items()})
    return [*lines, *filter(None, [lengths]), choice.defined.note]


def gate(rows: pd.DataFrame) -> tuple[str, str]:
    """FAILED, UNDECIDED or PASSED, and a sentence: whether a tested metric is significantly worse.

    Without a metric that is worse, one that cannot be decided leaves the gate undecided.
    """
    changes = rows[rows["of"] == CHANGE]
    if worse := list(changes.loc[changes["verdict"] == WORSE, "line"]):
        return FAILED, say("change.gate_failed_one" if len(worse) == 1 else "change.gate_failed", metrics=listed(worse))
    if len(undecided := changes[changes["reason"] != ""]):
        reasons = [f"{line}: {reason}" for line, reason in zip(undecided["line"], undecided["reason"], strict=True)]
        return UNDECIDED, say("change.gate_undecided", reasons="; ".join(reasons))
    names = list(changes["line"])
    return PASSED, say("change.gate_passed_one" if len(names) == 1 else "change.gate_passed", metrics=listed(names))


BEFORE_AND_AFTER = View(
    name="change",
    question="What changed?",
    rows=change_rows,
    columns=(
        Field("line", label="metric"),
        Field("value", low="low", high="high", digits=BY_METRIC, across=True),
        Field("p_holm", label="p (Holm)", digits=3, least=0.001, help="corrected over all lines of the table"),
        Field("verdict", label="result"),
        Field("reason", label="not decided, since"),
        Field("n", label="images", digits=0, help="of both captioners"),
    ),
    sentence=change_sentence,
    by="line",
    across="of",
    chart=Forest(title="change, points", only=(CHANGE,), reference=0.0, where="drawn"),
    options=ChangeOptions,
    notes=change_notes,
    gate=gate,
    of_files=lambda options: chosen_metrics(options.metric) or [*DEFAULT_METRICS, *GAPS_OF_ERROR],
    example="""\
  capbias view change nic nic_debiased --collection coco --attribute gender
  capbias view change nic nic_debiased --collection coco --fail-if worse \\
    --metric LIC error
  capbias view change old.json new.json labels.csv refs.json \\
    --attribute gender --fail-if worse

--fail-if worse: exit code 0 if no tested metric is significantly worse, 1 if one is, 2 if that cannot be decided.""",
)
