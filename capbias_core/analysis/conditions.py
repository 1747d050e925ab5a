"""Caption sets of one captioner on masked photographs: which set is which, and each metric against the condition."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from capbias_core.aggregate import Pair
from capbias_core.analysis.read import current_runs, ranking, runs_against, runs_with
from capbias_core.attackers import DEFAULT_ATTACKER
from capbias_core.measures.registry import METRICS, measure_of, needs_references
from capbias_core.runs.condition_runs import Plan, masked_sets, on_shared_images
from capbias_core.types import CONDITIONS, RESULT_COLUMNS, T_TO_A
from capbias_core.workspace.conditions import ORIGINAL, sets_of
from capbias_core.workspace.store import ACTIVE, Item, RunRow, Workspace

# What is shown against the condition, in this order: metric and direction as measured. DBA_G is the T->A side of BA→.
PANELS = (("LIC_M", ""), ("LIC", ""), ("DBAC", T_TO_A), ("DPA", T_TO_A), ("DBA_G", ""), ("attribution_score", ""))


TO_ORIGINAL, TO_NEUTRAL = (
    tuple(f"to_{other}{end}" for end in ("", "_low", "_high")) for other in ("original", "neutral")
)
DIFFERENCES = (*TO_ORIGINAL, "original_there", *TO_NEUTRAL)
COLUMNS = ("captioner", "masked", *DIFFERENCES, *RESULT_COLUMNS)


@dataclass(frozen=True)
class Missing:
    """Conditions without a value of a metric, and why."""

    metric: str
    direction: str
    conditions: tuple[str, ...]
    reason: str


def without_value(workspace: Workspace, found: Plan, sets: dict[str, Item], rows: pd.DataFrame) -> list[Missing]:
    """Of every metric of PANELS the conditions without a value in these rows, one entry a reason.

    found: the plan of the runs of these sets (by condition). What `found.lacking` says is not said again.
    """
    have = set(zip(rows["metric"], rows["direction"], rows["masked"], strict=True))
    known = workspace.runs_of([spec.run_id for spec in found.specs])
    entries = []
    for metric, direction in PANELS:
        reasons: dict[str, list[str]] = {}
        for condition, item in sets.items():
            if (metric, direction, condition) not in have:
                reasons.setdefault(_reason(metric, item.name, found, known), []).append(condition)
        entries += [Missing(metric, direction, tuple(own), reason) for reason, own in reasons.items() if reason]
    return entries


def _reason(metric: str, name: str, found: Plan, known: dict[str, RunRow]) -> str:
    """Why a set has no value of a metric; '' where `Plan.lacking` says so."""
    measure = measure_of(metric)
    if measure.needs.people:
        return "no run has made maps of its captions"
    planned = [spec for spec in found.specs if spec.measure == measure.name]
    if not planned:
        return ""
    own = [spec for spec in planned if spec.model == name and (spec.references or not needs_references(metric))]
    if not own:
        return "that needs human captions of the same photographs"
    run = known.get(own[0].run_id)
    if run is None:
        return "not run yet"
    if run.status in ACTIVE:
        return "under way"
    return "its run gave none" if run.status == "finished" else f"its run {run.status} ({run.message})"


def condition_rows(
    workspace: Workspace,
    collection: str,
    captioner: str,
    attribute: str,
    attacker: str = DEFAULT_ATTACKER,
    chosen: Sequence[str] = (),
    among: Collection[str] | None = None,
    table: Item | None = None,
    references: Item | None = None,
) -> pd.DataFrame:
    """Every metric of PANELS that was measured of a captioner's sets, one row a metric and condition, in COLUMNS.

    chosen: as in `condition_sets`. among, table, references: of these runs, of this table of labels, with these
    human captions alone (default: all). masked:
    the condition of the photographs. to_original, to_neutral: the value minus that on the originals (paired over the
    images that both have) and minus the metric's neutral point (chance for LIC_M), with 95% intervals. original_there:
    the value on the originals of the images that to_original is over. Of what was measured in several ways (seeds,
    alignment, part of the images) the one with most conditions, on all images before a part, with most seeds.
    """
    sets = sets_of(workspace, collection, captioner, chosen)
    names = {item.name: condition for condition, item in sets.items()}
    runs = [run for run in current_runs(workspace, collection) if _wanted(run, names, attribute, attacker)]
    runs = [run for run in runs if among is None or run.run_id in among]
    runs = runs if table is None else runs_with(runs, {attribute: table})
    runs = runs if references is None else runs_against(runs, {attribute: references})
    rows = workspace.results([run.run_id for run in runs])
    found = []
    for metric, direction in PANELS:
        own = rows[(rows["metric"] == metric) & (rows["direction"] == direction) & rows["value"].notna()]
        found += _against(workspace, own, _alike(runs, set(own["run_id"])), sets)
    return pd.DataFrame([{"captioner": captioner} | row for row in found], columns=list(COLUMNS))


def _wanted(run: RunRow, names, attribute: str, attacker: str) -> bool:
    spec = run.spec
    alike = spec.attribute.get("name") == attribute and not spec.merge_masks
    return spec.model in names and alike and spec.attacker in ("", attacker)


def _alike(runs: Sequence[RunRow], having: set[str]) -> list[RunRow]:
    """The runs that measured most conditions in one way: the same but for the captions and the photographs."""
    groups: dict[str, dict[str, RunRow]] = {}
    for run in runs:  # newest first
        if run.run_id in having:
            options = {name: own for name, own in run.spec.options.items() if name != "photographs"}
            key = repr(replace(run.spec, model="", captions="", options=options))
            groups.setdefault(key, {}).setdefault(run.spec.model, run)
    found = [list(own.values()) for own in groups.values()]
    return max(found, key=_completeness, default=[])


def _completeness(runs: list[RunRow]) -> tuple:
    spec = runs[0].spec
    newest = max(run.finished or 0.0 for run in runs)
    return len(runs), not spec.coverage, "alignment" not in spec.options, len(spec.seeds), newest


def _against(workspace: Workspace, rows: pd.DataFrame, runs: list[RunRow], sets: dict[str, Item]) -> list[dict]:
    """The rows of these runs by condition, with their differences. sets: by condition."""
    if not runs:
        return []
    names = {item.name: condition for condition, item in sets.items()}
    metric, direction = rows.iloc[0][["metric", "direction"]]
    neutral = METRICS[metric].neutral(len(runs[0].spec.attribute["values"]))
    original = sets[ORIGINAL].name if ORIGINAL in sets else ""
    changes = _changes(workspace, runs, metric, direction, original, masked_sets(sets))
    found = {}
    for row in rows[rows["run_id"].isin([run.run_id for run in runs])].to_dict("records"):
        above = (row["value"] - neutral, row["ci_low"] - neutral, row["ci_high"] - neutral)
        differences = (*changes.get(row["model"], (math.nan,) * 4), *above)
        found[names[row["model"]]] = row | dict(zip(DIFFERENCES, differences, strict=True))
    return [{"masked": condition} | found[condition] for condition in CONDITIONS if condition in found]


def _changes(
    workspace: Workspace, runs: list[RunRow], metric: str, direction: str, original: str, masked: Sequence[str] = ()
) -> dict[str, tuple]:
    """Of each masked set the change of its value from that on the originals, paired over images, with its interval,
    and the value on the originals of these images.

    Each set is compared alone, on all images that it shares with the originals, whatever the other sets lack; where
    one of both has more, by attackers that trained on shared images alone (runs/condition_runs.py). masked: all hashes.
    """
    by_name = {run.spec.model: run for run in runs}
    unmasked = by_name.pop(original, None)
    changes: dict[str, tuple] = {}
    if unmasked is None:
        return changes
    for name, run in by_name.items():
        both = _on_shared(workspace, unmasked, run, masked)
        for pair in ranking(workspace, both, metric, direction).pairs:
            changes[name] = (*_masked_minus_original(pair, original), pair.values[pair.second == original])
    return changes


def _on_shared(workspace: Workspace, unmasked: RunRow, run: RunRow, masked: Sequence[str]) -> list[RunRow]:
    """The runs of the originals and of a masked set on the images of both; without those that are not finished."""
    asked = [
        on_shared_images(workspace, own.spec, other.spec.captions, masked).run_id
        for own, other in ((unmasked, run), (run, unmasked))
    ]
    return [own for own in workspace.runs_of(asked).values() if own.status == "finished"]


def _masked_minus_original(pair: Pair, original: str) -> tuple[float, float, float]:
    """Difference and interval of a pair, whichever of both stands first in it."""
    low, high = (math.nan, math.nan) if pair.ci_low is None or pair.ci_high is None else (pair.ci_low, pair.ci_high)
    return (-pair.difference, -high, -low) if pair.first == original else (pair.difference, low, high)
