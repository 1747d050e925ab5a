"""`run_one`: a frozen run and its inputs in, results and evidence out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from capbias_core.aggregate import Estimate
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.device import deterministic
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Outcome, counts_of, estimates_of, of_images
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.shared_images import NOTE
from capbias_core.types import Attribute, Progress
from capbias_core.workspace.labels import labels_for
from capbias_core.workspace.spec import WITH_REFERENCES, RunSpec, attribute_from
from capbias_core.workspace.store import RunRow, Workspace, images_in

# Of a run that makes an item from photographs.
NO_ATTRIBUTE = Attribute("", "", ())


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run. Raises CapbiasError for inputs that cannot be scored, Cancelled when asked to stop."""
    measure = MEASURES[spec.measure]
    job = bare_job(workspace, spec, progress) if measure.makes else job_of(workspace, spec, progress)
    with deterministic(getattr(job.options, "deterministic", False)):
        outcome = measure.run(job)
    if not isinstance(outcome, Outcome):
        raise TypeError(f"run of measures/{measure.name}.py returned {type(outcome).__name__}, not an Outcome")
    return outcome if measure.makes else replace(outcome, notes=(*_sample_notes(job), *outcome.notes))


def _sample_notes(job: Job) -> Iterator[str]:
    """Which captions and images a run leaves out before it measures anything."""
    spec = job.spec
    if spec.shared_with:
        yield NOTE
    if unlabelled := len(job.workspace.frame(spec.captions)) - len(job.frame) if not spec.shared_with else 0:
        yield f"{unlabelled:,} of the captions do not count: their images have no label for {job.attribute.name}."
    if spec.coverage == WITH_REFERENCES and MEASURES[spec.measure].compares:
        images = images_in(job.frame)
        both = len(images & images_in(job.references()))
        yield f"Only {both:,} of the {len(images):,} labelled images have both captions and references."


def bare_job(workspace: Workspace, spec: RunSpec, progress: Progress) -> Job:
    """A run without captions and labels: one that makes an item from photographs, or whose evidence is read again."""
    nothing = pd.DataFrame(columns=["image_id", "caption_index", "caption"])
    options = MEASURES[spec.measure].options.read(spec.options)
    attribute = attribute_from(spec.attribute) if spec.attribute else NO_ATTRIBUTE
    return Job(workspace, spec, options, attribute, nothing, pd.Series(dtype=object), nothing, progress)


def job_of(workspace: Workspace, spec: RunSpec, progress: Progress) -> Job:
    """A run with its inputs. Raises CapbiasError where no image of its captions has a label."""
    attribute = attribute_from(spec.attribute)
    table = workspace.frame(spec.labels["table"])
    labels = labels_for(table, attribute, spec.labels["column"], spec.labels["mapping"]).values
    if spec.shared_with:
        labels = labels[labels.index.isin(workspace.frame(spec.shared_with)["image_id"])]
    frame = of_images(workspace.frame(spec.captions), labels.index)
    if frame.empty:
        raise CapbiasError(
            f"No image of {spec.model} has a label for {attribute.name}.",
            "Check that the image ids of captions and labels are of the same data set.",
        )
    options = MEASURES[spec.measure].options.read(spec.options)
    return Job(workspace, spec, options, attribute, frame, labels, table, progress)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from the counts that it left, by metric and direction."""
    measure, values, found = MEASURES[run.spec.measure], run.spec.attribute["values"], {}
    for direction, counts in counts_of(workspace, run).items():
        found |= estimates_of(measure.metrics, counts, values, direction)
    return found


def is_current(spec: RunSpec) -> bool:
    """Whether the numbers of a run are those that its measure gives today."""
    return spec.measure in MEASURES and spec.version == MEASURES[spec.measure].version


def needs_workers(spec: RunSpec) -> bool:
    """Whether a run is too heavy for this process, as one that imports torch is."""
    here = MEASURES[spec.measure].in_process and (not spec.attacker or attacker_entry(spec.attacker).in_process)
    return not here
