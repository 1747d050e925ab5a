"""One run: a frozen spec and its inputs in, results and evidence out."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from capbias_core.aggregate import Estimate, estimates_of
from capbias_core.attackers import attacker_entry
from capbias_core.data import Data, images_in
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.kinds import BOXES
from capbias_core.language.device import deterministic
from capbias_core.load.checks import refuse
from capbias_core.measures.base import Outcome
from capbias_core.measures.registry import MEASURES
from capbias_core.resources import PACKAGE
from capbias_core.types import Progress, left_out_lines
from capbias_core.workspace.content import content_of
from capbias_core.workspace.objects import forget_objects_of, keep_objects_of
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import WITH_REFERENCES, RunSpec, Setting
from capbias_core.workspace.store import ACTIVE, RUN, RunRow, Workspace

Watch = Callable[[list[RunRow]], object]
Stopped = Callable[[KeyboardInterrupt], object] | None

EXTENDED = ("attackers", "measures")


def failure(error: Exception) -> str:
    """Why a run failed: the sentence of a CapbiasError; else `KeyError: x (measures/lic.py, line 12)`, with the last
    line in a traceback of a measure or an attacker, which users extend, else of this package."""
    if isinstance(error, CapbiasError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [(Path(frame.filename), frame.lineno) for frame in frames if PACKAGE in Path(frame.filename).parents]
    extended = [line for line in lines if line[0].parent.name in EXTENDED and line[0].name != "base.py"]
    file, number = (extended or lines or [(PACKAGE, 0)])[-1]
    return f"{type(error).__name__}: {error}" + (f" ({file.relative_to(PACKAGE)}, line {number})" if number else "")


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run of a workspace, and store the item that it makes. Raises CapbiasError for inputs that cannot be
    scored, Cancelled when asked to stop."""
    if dropped := spec.options.keys() - MEASURES[spec.measure].options.about().keys():  # of an earlier version
        asked = ", ".join(f"{name} {spec.options[name]!r}" for name in sorted(dropped))
        raise CapbiasError(f"{spec.measure} no longer has the choice {asked}.", "Start the run again without it.")
    data = data_of(workspace, spec)
    if needs_workers(spec):
        data = replace(data, resume=workspace.unfinished / spec.run_id)
    if spec.captions and not data.frame.empty:  # data in hand were checked when they were read
        refuse(content_of(data, data.captions[spec.model]), spec.model, spec.options.get("shuffled", False))
    outcome = compute(data, spec, progress)
    if made := outcome.item:
        options: Any = MEASURES[spec.measure].options.read(spec.options)
        kind, name, collection, details = MEASURES[spec.measure].makes, options.name, options.collection, made.details
        item = workspace.keep(
            kind, name, made.frame, collection, made.source, details | {RUN: spec.run_id}, made.digest
        )
        if kind == BOXES:
            keep_objects_of(workspace, item) if len(made.frame) else forget_objects_of(workspace, item)
    return outcome


def read_by(spec: RunSpec, data: Data) -> Data:
    """The part of some data that a run reads."""
    return data.of(spec.captions, bool(spec.references), bool(spec.objects), spec.coverage) if spec.captions else data


def compute(data: Data, spec: RunSpec, progress: Progress) -> Outcome:
    """What a run leaves: a pure function of its data. Raises as `run_one`, and CapbiasError if no image has a label."""
    measure = MEASURES[spec.measure]
    options = measure.options.read(spec.options)
    data = read_by(spec, data)
    if spec.captions and data.frame.empty:
        raise CapbiasError(
            f"No image of {spec.model} has a label for {data.attribute.name}.",
            "Check that the image ids of captions and labels are of the same data set.",
        )
    with deterministic(getattr(options, "deterministic", False)):
        outcome = measure.run(data, options, progress, Setting.of(spec))
    notes = []  # which captions and images are left out before anything is measured
    if spec.shared_with:
        notes.append("Only images that the compared set under another condition has too (see Images).")
    elif spec.captions and (unlabelled := len(data.captions[data.captioner].frame) - len(data.frame)):
        notes.append(f"{unlabelled:,} captions are left out: their images have no label for {data.attribute.name}.")
    if spec.coverage == WITH_REFERENCES and measure.compares and data.human is not None:
        images = images_in(data.frame)
        both = len(images & images_in(data.human))
        notes.append(f"Only {both:,} of the {len(images):,} labelled images have both captions and references.")
    return replace(outcome, notes=(*notes, *outcome.notes))


def compute_in_hand(data: Data, specs: Sequence[RunSpec], watch: Watch, stopped: Stopped) -> list[RunRow]:
    """Compute runs of data in hand, one after another. watch: gets all of them at each progress. stopped: gets what
    stops the computation; the runs are then returned as they are. Without it a stop is raised."""
    now = time.time()
    rows = {
        spec.run_id: RunRow(spec.run_id, "", spec, "queued", 0.0, "waiting", (), now, None, None, "") for spec in specs
    }

    def update(run_id: str, **changed: Any) -> None:
        rows[run_id] = replace(rows[run_id], **changed)
        watch(list(rows.values()))

    try:
        for spec in specs:
            update(spec.run_id, started=time.time())

            def progress(share: float, message: str, run_id: str = spec.run_id) -> None:
                update(run_id, status="running", progress=share, message=message)

            try:
                outcome = compute(data, spec, progress)
            except Exception as error:
                update(spec.run_id, status="failed", message=failure(error))
            else:
                ended = {"status": "finished", "progress": 1.0, "message": "finished", "finished": time.time()}
                notes = (*outcome.notes, *left_out_lines(outcome.lacking))
                update(spec.run_id, **ended, notes=notes, lacking=outcome.lacking, evidence=outcome)
    except KeyboardInterrupt as error:
        if stopped is None:
            raise
        for row in rows.values():
            if row.status in ACTIVE:
                rows[row.run_id] = replace(row, status="cancelled", message="cancelled")
        stopped(error)
    return list(rows.values())


def estimates(run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run from its counts, by metric and direction. Raises CapbiasError for counts that are
    not of its measure, which another program may have left."""
    if run.spec.measure not in MEASURES:
        raise unknown_name("measure", run.spec.measure, MEASURES)
    measure, values, by_metric = MEASURES[run.spec.measure], run.spec.attribute["values"], {}
    try:
        for direction, counts in run.counts().items():
            by_metric |= estimates_of(measure.metrics, counts, values, direction)
        fit = all(estimate.seed_values.ndim == 1 and estimate.value is not None for estimate in by_metric.values())
    except (ValueError, LookupError, TypeError):
        fit = False
    if not fit:
        raise CapbiasError(f"The run {run.run_id} has left counts of another measure.", "Run it again.")
    return by_metric


def is_current(spec: RunSpec) -> bool:
    """Whether a run is of the present version of its measure and attacker."""
    return spec.measure in MEASURES and spec.version == MEASURES[spec.measure].version_with(spec.attacker)


def needs_workers(spec: RunSpec) -> bool:
    """Whether a run must not be computed in this process, since it imports torch."""
    return not (MEASURES[spec.measure].in_process and (not spec.attacker or attacker_entry(spec.attacker).in_process))
