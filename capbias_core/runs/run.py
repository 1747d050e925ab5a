"""One run: a frozen spec and its inputs in, results and evidence out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from capbias_core.aggregate import Estimate, estimates_of, result_rows
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.device import card, deterministic, device_of
from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES, CAPTIONS
from capbias_core.load.checks import refuse
from capbias_core.measures.base import Job, Outcome, columns_of, of_images, run_facts
from capbias_core.measures.registry import MEASURES
from capbias_core.types import Attribute, Progress, silent
from capbias_core.workspace.content import content_of
from capbias_core.workspace.labels import labels_of
from capbias_core.workspace.memory import MemoryWorkspace
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.objects import forget_objects_of, keep_objects_of
from capbias_core.workspace.photographs import photograph_files
from capbias_core.workspace.spec import WITH_REFERENCES, RunSpec, attribute_from
from capbias_core.workspace.store import ACTIVE, ON_CARD, RunRow, Workspace, images_in
from capbias_core.workspace.vectors import look_up_new_words

PACKAGE_ROOT = Path(__file__).parent.parent
EXTENDED = ("attackers", "measures")  # packages that users extend: a failure is located there if it passed through them
_TRIED: set[tuple] = set()  # by this process: catalogue, run and metrics that its evidence was asked for


def run_in_memory(
    workspace: MemoryWorkspace,
    specs: Sequence[RunSpec],
    collection: str,
    on_change: Callable[[list[RunRow]], object] = lambda rows: None,
    stopped: Callable[[KeyboardInterrupt], object] | None = None,
) -> list[RunRow]:
    """Compute runs one after another in this process. on_change: gets all of them at each progress. stopped: gets what
    stops the computation; the runs are then returned as they are. Without it a stop is raised."""
    run_ids = [spec.run_id for spec in specs]
    for spec in specs:
        if spec.run_id not in workspace.runs_of(run_ids):
            workspace.add(spec, collection)

    def rows() -> list[RunRow]:
        return list(workspace.runs_of(run_ids).values())

    try:
        for run in rows():
            if run.status != "queued":
                continue

            def progress(share: float, message: str, run_id: str = run.run_id) -> None:
                workspace.update(run_id, status="running", progress=share, message=message)
                on_change(rows())

            try:
                outcome = run_one(workspace, run.spec, progress)
                names = [metric.name for metric in MEASURES[run.spec.measure].metrics]
                counts, arrays = outcome.by_direction, outcome.arrays
                workspace.put(run.run_id, outcome.results, counts, arrays, outcome.notes, names, outcome.lacking)
            except CapbiasError as error:
                workspace.update(run.run_id, status="failed", message=str(error))
            except Exception as error:
                workspace.update(run.run_id, status="failed", message=failure(error))
            on_change(rows())
    except KeyboardInterrupt as error:
        for row in rows():
            if row.status in ACTIVE:
                workspace.update(row.run_id, status="cancelled", message="cancelled")
        if stopped is None:
            raise
        stopped(error)
    return rows()


def failure(error: Exception) -> str:
    """`KeyError: x (measures/lic.py, line 12)`: with the last line in a traceback of a measure or an attacker, else of
    this package."""
    lines = [
        (Path(frame.filename).relative_to(PACKAGE_ROOT), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(PACKAGE_ROOT)
    ]
    extended = [line for line in lines if line[0].parts[0] in EXTENDED and line[0].name != "base.py"]
    file, number = (extended or lines or [("", 0)])[-1]
    return f"{type(error).__name__}: {error}" + (f" ({file}, line {number})" if file else "")


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run, and store the item that it makes. Raises CapbiasError for inputs that cannot be scored,
    Cancelled when asked to stop."""
    job = job_of(workspace, spec, progress)
    outcome = compute(job)
    if made := outcome.item:
        kind, name, collection = MEASURES[spec.measure].makes, job.options.name, job.options.collection
        item = workspace.keep(kind, name, made.frame, collection, made.source, made.details, made.digest)
        if kind == CAPTIONS:
            look_up_new_words(workspace, collection)
        if kind == BOXES:
            keep_objects_of(workspace, item) if len(made.frame) else forget_objects_of(workspace, item)
    return outcome


def compute(job: Job) -> Outcome:
    """What a run leaves: a pure function of its inputs. Raises as `run_one`."""
    spec, measure = job.spec, MEASURES[job.spec.measure]
    with deterministic(getattr(job.options, "deterministic", False)):
        outcome = measure.run(job)
    notes = []  # which captions and images are left out before anything is measured
    if spec.shared_with:
        notes.append("Only images that the compared set under another condition has too (see Images).")
    elif spec.captions and (unlabelled := len(job.table(spec.captions)) - len(job.frame)):
        notes.append(f"{unlabelled:,} captions are left out: their images have no label for {job.attribute.name}.")
    if spec.coverage == WITH_REFERENCES and measure.compares:
        images = images_in(job.frame)
        both = len(images & images_in(job.references()))
        notes.append(f"Only {both:,} of the {len(images):,} labelled images have both captions and references.")
    on_card = [ON_CARD + card()] if needs_workers(spec) and device_of(job.options) == "cuda" else []
    return replace(outcome, notes=(*notes, *outcome.notes), log=(*outcome.log, *on_card))


def job_of(workspace: Workspace, spec: RunSpec, progress: Progress = silent) -> Job:
    """The job of a run with its inputs. Raises CapbiasError if no image of its captions has a label, or a content check
    does not let them be scored."""
    attribute, stored = Attribute("", "", ()), not isinstance(workspace, MemoryWorkspace)
    frame, labels = pd.DataFrame(columns=["image_id", "caption_index", "caption"]), pd.Series(dtype=object)
    if not MEASURES[spec.measure].makes:  # an item is made from photographs alone
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
        if stored:  # in memory inputs were checked when they were read
            refuse(content_of(workspace, spec), spec.model, spec.options.get("shuffled", False))
    return Job(
        spec=spec,
        options=MEASURES[spec.measure].options.read(spec.options),
        attribute=attribute,
        frame=frame,
        labels=labels,
        progress=progress,
        table=workspace.frame,
        tokens_of=workspace.tokens,
        model=partial(resolve_model, workspace),
        files=partial(photograph_files, workspace),
        folder=workspace.folder,
        kept=workspace.unfinished / spec.run_id if stored and needs_workers(spec) else None,
    )


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run from its counts, by metric and direction."""
    measure, values, by_metric = MEASURES[run.spec.measure], run.spec.attribute["values"], {}
    for direction, counts in workspace.counts(run.run_id).items():
        by_metric |= estimates_of(measure.metrics, counts, values, direction)
    return by_metric


def is_current(spec: RunSpec) -> bool:
    """Whether a run is of the present version of its measure and attacker."""
    return spec.measure in MEASURES and spec.version == MEASURES[spec.measure].version_with(spec.attacker)


def needs_workers(spec: RunSpec) -> bool:
    """Whether a run must not be computed in this process, since it imports torch."""
    return not (MEASURES[spec.measure].in_process and (not spec.attacker or attacker_entry(spec.attacker).in_process))


def card_of(spec: RunSpec) -> str:
    """The GPU on which a run would be computed here, '' for a CPU."""
    options = MEASURES[spec.measure].options.read(spec.options)
    return card() if needs_workers(spec) and getattr(options, "device", "cpu") != "cpu" else ""


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
        for direction, counts in workspace.counts(run.run_id).items():
            columns = columns_of(workspace, run, direction)
            added += result_rows(measure.metrics, counts, facts, columns, direction)
        given = {row.metric for row in added} & {*new}
        workspace.add_results(run.run_id, added, sorted(given))  # what is stored already stays
        if len(given) < len(new):
            _TRIED.add(tried)
