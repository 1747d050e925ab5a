"""One run: a frozen spec and its inputs in, results and evidence out, and its state in the workspace meanwhile."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pandas as pd

from capbias_core.aggregate import Estimate, estimates_of, result_rows
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.device import deterministic
from capbias_core.errors import Cancelled, CapbiasError
from capbias_core.load.checks import refuse
from capbias_core.measures.base import Job, Outcome, columns_of, counts_of, of_images, run_facts
from capbias_core.measures.registry import MEASURES
from capbias_core.types import Attribute, Progress
from capbias_core.workspace.catalogue import Unavailable, WorkspaceError
from capbias_core.workspace.content import content_of
from capbias_core.workspace.labels import labels_of
from capbias_core.workspace.people import acting
from capbias_core.workspace.spec import WITH_REFERENCES, RunSpec, attribute_from
from capbias_core.workspace.store import RunRow, Workspace, images_in

PACKAGE_ROOT = Path(__file__).parent.parent
EXTENDED = ("attackers", "measures")  # packages that users extend: a failure is located there if it passed through them
SECONDS_BETWEEN_NOTES = 0.25
_TRIED: set[tuple] = set()  # by this process: catalogue, run and metrics that its evidence was asked for


def execute(folder: str, run_id: str, token: str) -> None:
    """Compute one queued run of the workspace at `folder`, and note how it ends: finished, failed or cancelled. Raises
    WorkspaceError if the end cannot be written."""
    workspace = Workspace(folder, make=False)
    if not workspace.claim(run_id, token):
        return
    try:
        run = workspace.get_run(run_id)
        with acting(run.owner):
            outcome = run_one(workspace, run.spec, _reporter(workspace, run_id, token))
        names = [metric.name for metric in MEASURES[run.spec.measure].metrics]
        workspace.finish(run_id, token, outcome.results, outcome.kept, outcome.notes, names, outcome.lacking)
    except Cancelled:
        with suppress(WorkspaceError):
            workspace.log(run_id, "stopped")
    except CapbiasError as error:
        workspace.end(run_id, "failed", str(error), token)
    except Exception as error:  # whatever failed, the end must be noted
        with suppress(WorkspaceError):  # which may be what failed
            workspace.log(run_id, traceback.format_exc().rstrip())
        workspace.end(run_id, "failed", f"{type(error).__name__}: {error}{_location(error)}", token)


def _location(error: Exception) -> str:
    """` (measures/lic.py, line 12)`: the last line in a traceback of a measure or an attacker, else of this package."""
    lines = [
        (Path(frame.filename).relative_to(PACKAGE_ROOT), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(PACKAGE_ROOT)
    ]
    extended = [line for line in lines if line[0].parts[0] in EXTENDED and line[0].name != "base.py"]
    file, number = (extended or lines or [("", 0)])[-1]
    return f" ({file}, line {number})" if file else ""


def _reporter(workspace: Workspace, run_id: str, token: str) -> Progress:
    """Writes progress to the workspace. It raises Cancelled if the run is cancelled or taken over."""
    last_time, last_line = 0.0, ""

    def progress(share: float, message: str) -> None:
        nonlocal last_time, last_line
        now = time.monotonic()
        if now - last_time < SECONDS_BETWEEN_NOTES:
            return
        last_time = now
        with suppress(Unavailable):  # a full disk may have room again when the run is done
            if not workspace.progress(run_id, token, share, message):
                raise Cancelled
            line = message.rsplit(", loss", 1)[0]
            if line != last_line:
                workspace.log(run_id, message)
                last_line = line

    return progress


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run. Raises CapbiasError for inputs that cannot be scored, Cancelled when asked to stop."""
    measure = MEASURES[spec.measure]
    job = bare_job(workspace, spec, progress) if measure.makes else job_of(workspace, spec, progress)
    with deterministic(getattr(job.options, "deterministic", False)):
        outcome = measure.run(job)
    if measure.makes:
        return outcome
    notes = []  # which captions and images are left out before anything is measured
    if spec.shared_with:
        notes.append("Only images that the compared set under another condition has too (see Images).")
    elif unlabelled := len(workspace.frame(spec.captions)) - len(job.frame):
        notes.append(f"{unlabelled:,} captions are left out: their images have no label for {job.attribute.name}.")
    if spec.coverage == WITH_REFERENCES and measure.compares:
        images = images_in(job.frame)
        both = len(images & images_in(job.references()))
        notes.append(f"Only {both:,} of the {len(images):,} labelled images have both captions and references.")
    return replace(outcome, notes=(*notes, *outcome.notes))


def bare_job(workspace: Workspace, spec: RunSpec, progress: Progress) -> Job:
    """The job of a run that reads no captions and labels: it makes an item from photographs, or its counts are read
    again."""
    nothing = pd.DataFrame(columns=["image_id", "caption_index", "caption"])
    options = MEASURES[spec.measure].options.read(spec.options)
    attribute = attribute_from(spec.attribute) if spec.attribute else Attribute("", "", ())
    return Job(workspace, spec, options, attribute, nothing, pd.Series(dtype=object), progress)


def job_of(workspace: Workspace, spec: RunSpec, progress: Progress) -> Job:
    """The job of a run with its inputs. Raises CapbiasError if no image of its captions has a label, or a content check
    does not let them be scored."""
    attribute = attribute_from(spec.attribute)
    labels = labels_of(workspace, attribute, spec.labels)
    if spec.shared_with:
        labels = labels[labels.index.isin(workspace.frame(spec.shared_with)["image_id"])]
    frame = of_images(workspace.frame(spec.captions), labels.index)
    if frame.empty:
        raise CapbiasError(
            f"No image of {spec.model} has a label for {attribute.name}.",
            "Check that the image ids of captions and labels are of the same data set.",
        )
    refuse(content_of(workspace, spec), spec.model)
    options = MEASURES[spec.measure].options.read(spec.options)
    return Job(workspace, spec, options, attribute, frame, labels, progress)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run from its counts, by metric and direction."""
    measure, values, by_metric = MEASURES[run.spec.measure], run.spec.attribute["values"], {}
    for direction, counts in counts_of(workspace, run).items():
        by_metric |= estimates_of(measure.metrics, counts, values, direction)
    return by_metric


def is_current(spec: RunSpec) -> bool:
    """Whether a run is of the present version of its measure and attacker."""
    return spec.measure in MEASURES and spec.version == MEASURES[spec.measure].version_with(spec.attacker)


def needs_workers(spec: RunSpec) -> bool:
    """Whether a run must not be computed in this process, since it imports torch."""
    return not (MEASURES[spec.measure].in_process and (not spec.attacker or attacker_entry(spec.attacker).in_process))


def add_later_metrics(workspace: Workspace, runs: Iterable[RunRow]) -> None:
    """Add the metrics that a measure got after these runs had finished, from their counts: the rows of a fresh run.
    What the evidence cannot give is not added. Runs of an earlier version stay as they are."""
    for run in runs:
        if run.status != "finished" or not is_current(run.spec):
            continue
        new = [metric.name for metric in MEASURES[run.spec.measure].metrics if metric.name not in run.metrics]
        tried = (workspace.database, run.run_id, *new)
        if not new or tried in _TRIED:
            continue
        measure, spec, added = MEASURES[run.spec.measure], run.spec, []
        facts = run_facts(spec, measure.options.read(spec.options), attribute_from(spec.attribute))
        for direction, counts in counts_of(workspace, run).items():
            columns = columns_of(workspace, run, direction)
            added += result_rows(measure.metrics, counts, facts, columns, direction)
        given = {row.metric for row in added} & {*new}
        workspace.add_results(run.run_id, added, sorted(given))  # what is stored already stays
        if len(given) < len(new):
            _TRIED.add(tried)
