"""Results by group of a protected attribute: gaps, leakage by labelled value, and what crossing two attributes adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import Counts, Estimate
from capbias_core.aggregate.resampling import OF_LEVEL, refit_interval
from capbias_core.measures.registry import METRICS
from capbias_core.metrics.share import share
from capbias_core.prepare.labels import cells_of, parts_of
from capbias_core.types import counted
from capbias_core.views.rows import dots_chart
from capbias_core.views.sentence import say, with_interval
from capbias_core.views.tables import scores_table, value_text
from capbias_core.views.view import Scope, Shown
from capbias_core.workspace.store import RunRow, Workspace

SCALE = 100.0
# Name of a gap -> the metric whose values it compares.
GAPS = {name: metric.gap_of for name, metric in METRICS.items() if metric.gap_of}
READING = say("groups.reading")


def of_groups(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are of one group's images."""
    return rows["metric"].isin(GAPS.values()) & (rows["group"] != "")


def of_gaps(rows: pd.DataFrame) -> pd.Series:
    """Which result rows are a difference between groups."""
    return rows["metric"].isin(GAPS)


def gap_table(rows: pd.DataFrame, cell: Callable[[dict], Any] = value_text) -> pd.DataFrame:
    """A row per metric and captioner, largest difference first: the difference and the value in each group. If the
    differences of several attributes are not alike, a column says what each is.

    rows: results that hold rows of groups and of gaps; empty if they hold none. cell: what a result row becomes.
    """
    order = {name: index for index, name in enumerate(GAPS)}
    gaps = rows[of_gaps(rows)]
    gaps = gaps.assign(order=gaps["metric"].map(order), size=-gaps["value"].abs())
    groups = rows[of_groups(rows)]
    compared = {name: _compared(of_attribute) for name, of_attribute in groups.groupby("attribute", sort=False)}
    kinds = [kind for kind in dict.fromkeys(compared.values()) if kind]
    difference = f"difference ({kinds[0]})" if len(kinds) == 1 else "difference"
    values: dict[tuple[str, str], dict[str, Any]] = {}
    for group in groups.to_dict("records"):
        values.setdefault((group["run_id"], group["metric"]), {})[group["group"]] = cell(group)
    table = []
    for row in gaps.sort_values(["attribute", "order", "size"]).to_dict("records"):
        metric = METRICS[GAPS[row["metric"]]]
        arrow = {"higher": " ↑", "lower": " ↓"}.get(metric.better, "")
        what = {"metric": f"{metric.title.partition(',')[0]}{arrow}", "captioner": row["model"]}
        what |= {"attribute": row["attribute"]} if len(compared) > 1 else {}
        what |= {"compared": compared.get(row["attribute"], "")} if len(kinds) > 1 else {}
        table.append(what | {difference: cell(row)} | values.get((row["run_id"], metric.name), {}))
    return pd.DataFrame(table).fillna("")


def _compared(groups: pd.DataFrame) -> str:
    """What a difference between the groups of an attribute is: `Male minus Female`. groups: their rows."""
    # A run gives its groups in the order of the attribute, without those that have no image.
    most = max((list(dict.fromkeys(of_run["group"])) for _, of_run in groups.groupby("run_id", sort=False)), key=len)
    if len(most) < 2:
        return ""
    return f"{most[1]} minus {most[0]}" if len(most) == 2 else "largest minus smallest value of a group"


def score_tables(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Result rows, also `lettered`, as the two tables of page and command line: captioners by metric, and what was
    measured by group."""
    return scores_table(rows[~of_groups(rows) & ~of_gaps(rows)]), gap_table(rows)


@dataclass(frozen=True)
class InteractionLeakage:
    """Of a crossed attribute, from the guesses of one attacker. right: % of captions whose cell it names. parts: for
    each of the two attributes, its name and % of captions whose value it names by the same guesses, summed over the
    other attribute. beyond: right minus the product of both parts, which is what two independent guesses give; points,
    with its 95% interval with refits, None of a single attacker."""

    right: Estimate
    parts: tuple[tuple[str, Estimate], ...]
    beyond: float
    interval: tuple[float, float] | tuple[None, None]


def by_value(workspace: Workspace, run: RunRow) -> dict[str, Estimate]:
    """LIC_M on the captions of each labelled value of a finished LIC run: mean confidence of the attacker where it is
    right, 0 where it is wrong, x100, with refits. Higher gives more away."""
    counts = workspace.counts(run.run_id)[""]
    return {
        value: _share(counts, "sure", counts.label[counts.image] == index)
        for index, value in enumerate(run.spec.attribute["values"])
    }


def beyond_parts(workspace: Workspace, run: RunRow) -> InteractionLeakage | None:
    """What naming the cell takes beyond naming each attribute.

    None where the attribute is not a crossed one, and where cells are left out: guesses that tell nothing then name a
    part more often than independent ones would, and the cell seems to be told less than both.
    """
    names, pairs = parts_of(run.spec.attribute["name"]), cells_of(run.spec.attribute["values"])
    if names is None or not pairs or cells_left_out(run):
        return None
    counts = workspace.counts(run.run_id)[""]
    parts = tuple((name, _share(counts, f"right {name}")) for name in names)
    right = _share(counts, "right")
    beyond = right.seed_values - parts[0][1].seed_values * parts[1][1].seed_values / SCALE
    interval = (None, None)
    if right.refits is not None and len(beyond) > 1:
        interval = refit_interval(beyond, right.refits.test_over_train, OF_LEVEL, (-SCALE, SCALE))
    return InteractionLeakage(right, parts, float(beyond.mean()), interval)


def cells_left_out(run: RunRow) -> int:
    """How many combinations of two crossed attributes are no cell of a run; 0 for an attribute that is not crossed."""
    pairs = cells_of(run.spec.attribute["values"])
    if parts_of(run.spec.attribute["name"]) is None or not pairs:
        return 0
    return len({one for one, _ in pairs}) * len({other for _, other in pairs}) - len(pairs)


def _share(counts: Counts, column: str, weights: np.ndarray | float = 1.0) -> Estimate:
    """A column of the model's captions over captions, x100. kept: (rows,) booleans, the rows that count."""
    columns = {name: counts.columns[name] * weights for name in (f"model {column}", "model captions")}
    return Estimate.read(replace(counts, columns=columns), share, SCALE, (0, SCALE), share=True)


def by_captioner(runs: Iterable[RunRow]) -> dict[str, RunRow]:
    """Captioner -> its newest run; where it was measured on all images and on those with references, of the latter.
    Runs on the images that another captioner has too do not count."""
    ordered = sorted(runs, key=lambda run: (bool(run.spec.references), run.created))
    return {run.spec.model: run for run in ordered if not run.spec.shared_with}


def by_value_table(found: Mapping[str, Mapping[str, Estimate]]) -> pd.DataFrame:
    """A row a captioner, a column a labelled value. found: captioner -> value -> LIC_M."""
    rows = [
        {"captioner": model}
        | {value: value_text({"metric": "LIC_M"} | estimate.columns()) for value, estimate in by.items()}
        for model, by in found.items()
    ]
    return pd.DataFrame(rows).fillna("")


def beyond_table(found: Mapping[str, InteractionLeakage]) -> pd.DataFrame:
    """A row a captioner: right, both parts, and what is beyond their product."""
    rows = []
    for model, leakage in found.items():
        shares = {
            name: value_text({"metric": "LIC_M"} | part.columns())
            for name, part in (("right", leakage.right), *leakage.parts)
        }
        rows.append({"captioner": model, **shares, "beyond": with_interval(leakage.beyond, *leakage.interval)})
    return pd.DataFrame(rows)


def leakage_by_group(scope: Scope) -> Shown:
    """`leakage_of_runs` for the captioners of a comparison."""
    return leakage_of_runs(scope.workspace, scope.attribute, {name: scope.run(name) for name in scope.captioners})


def leakage_of_runs(workspace: Workspace, attribute: str, runs: Mapping[str, RunRow]) -> Shown:
    """LIC_M on the captions of each labelled value; of crossed attributes also what crossing adds.

    runs: captioner -> its run of LIC. rows: captioner, group (a value; of a crossed attribute also `right`, its parts,
    `beyond`), value, ci_low, ci_high.
    """
    rows: list[dict[str, Any]] = []
    values, parts = {}, {}
    for name, run in runs.items():
        values[name] = by_value(workspace, run)
        if crossed := beyond_parts(workspace, run):
            parts[name] = crossed
        shares = values[name] | ({"right": crossed.right, **dict(crossed.parts)} if crossed else {})
        rows += [{"captioner": name, "group": group} | _ends(estimate.columns()) for group, estimate in shares.items()]
        if crossed:
            low, high = crossed.interval
            rows.append({"captioner": name, "group": "beyond", "value": crossed.beyond, "ci_low": low, "ci_high": high})
    table, notes = by_value_table(values), [say("groups.by_value")]
    if parts:
        table = table.merge(beyond_table(parts), on="captioner", how="left").fillna("")
        notes.append(say("groups.beyond"))
    elif left_out := max(map(cells_left_out, runs.values()), default=0):
        notes.append(say("groups.no_beyond", cells=counted(left_out, "cell")))
    frame = pd.DataFrame(rows, columns=["captioner", "group", "value", "ci_low", "ci_high"])
    # The groups' values share an axis, so that they can be compared.
    whole = frame["group"].isin({group for of in values.values() for group in of})
    label = frame["captioner"].where(~whole, frame["captioner"] + " · " + frame["group"])
    dots = frame.assign(panel=frame["group"].where(~whole, "LIC_M"), label=label)
    return Shown(f"Leakage by group of {attribute}", frame, "", tuple(notes), table, lambda: dots_chart(dots))


def _ends(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in ("value", "ci_low", "ci_high")}
