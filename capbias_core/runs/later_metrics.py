"""Metrics that a measure has learnt since a run finished: their numbers from the evidence that the run left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from capbias_core.aggregate import Estimate
from capbias_core.measures.registry import MEASURES, METRICS
from capbias_core.runs.run import estimates, is_current
from capbias_core.types import Result
from capbias_core.workspace.store import RunRow, Workspace


def add_later_metrics(workspace: Workspace, runs: Iterable[RunRow]) -> None:
    """Add the rows that these runs lack. A run whose numbers are of an earlier version is left as it is.

    A new row takes its origin, n and method from a row of the same run and direction, whose evidence it shares.
    """
    for run in runs:
        if run.status == "finished" and is_current(run.spec) and (new := _unknown(run)):
            found = {key: own for key, own in estimates(workspace, run).items() if key[0] in new}
            rows = [row for row in workspace.results([run.run_id]).to_dict("records") if row["metric"] in METRICS]
            workspace.add_results(run.run_id, [_row(key, own, rows) for key, own in found.items() if rows], new)


def _unknown(run: RunRow) -> list[str]:
    return [own.name for own in MEASURES[run.spec.measure].metrics if own.name not in run.metrics]


def _row(key: tuple[str, str], found: Estimate, rows: list[dict]) -> Result:
    name, direction = key
    alike = [row for row in rows if row["direction"] == direction] or rows
    side = METRICS[name].side
    sibling = next((row for row in alike if METRICS[row["metric"]].side == side), alike[0])
    return replace(Result(**sibling), metric=name, direction=direction, **found.columns())
