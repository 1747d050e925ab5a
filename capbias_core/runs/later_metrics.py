"""Metrics that a measure has learnt since a run finished: their numbers from the evidence that the run left."""

from __future__ import annotations

from collections.abc import Iterable

from capbias_core.measures.registry import MEASURES, METRICS
from capbias_core.runs.run import bare_job, estimates, is_current
from capbias_core.types import silent
from capbias_core.workspace.store import RunRow, Workspace


def add_later_metrics(workspace: Workspace, runs: Iterable[RunRow]) -> None:
    """Add the rows that these runs lack. A run whose numbers are of an earlier version is left as it is.

    n and method are the new metric's: the images that it rests on, and how its interval is made.
    """
    for run in runs:
        if run.status != "finished" or not is_current(run.spec):
            continue
        new = [metric.name for metric in MEASURES[run.spec.measure].metrics if metric.name not in run.metrics]
        if not new:
            continue
        devices = set(workspace.results([run.run_id])["device"])
        device = devices.pop() if len(devices) == 1 else ""
        job = bare_job(workspace, run.spec, silent)
        rows = [
            job.result(
                METRICS[name],
                found,
                found.n_images,
                f"{found.n_images:,} images of a finished run; {found.interval_method}",
                direction,
                device=device,
            )
            for (name, direction), found in estimates(workspace, run).items()
            if name in new
        ]
        workspace.add_results(run.run_id, rows, new)
