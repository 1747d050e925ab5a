"""`run_one`: a frozen run and its inputs in, results and evidence out."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from capbias_core.aggregate import Estimate
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.device import deterministic
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Outcome, of_images
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.shared_images import NOTE
from capbias_core.types import Attribute, Progress
from capbias_core.workspace.labels import labels_for
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import RunRow, Workspace

# Of a run that makes an item from photographs.
NO_ATTRIBUTE = Attribute("", "", ())


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run. Raises CapbiasError for inputs that cannot be scored, Cancelled when asked to stop."""
    measure = MEASURES[spec.measure]
    job = bare_job(workspace, spec, progress) if measure.makes else job_of(workspace, spec, progress)
    with deterministic(getattr(job.options, "deterministic", False)):
        outcome = measure.run(job)
    if not isinstance(outcome, Outcome):
        raise CapbiasError(
            f"{type(outcome).__name__} from run in measures/{measure.name}.py", "an Outcome", "Return one at its end."
        )
    return replace(outcome, notes=(NOTE, *outcome.notes)) if spec.shared_with else outcome


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
            f"{spec.model}, none of whose images has a label for {attribute.name}",
            "captions of images in the attribute table",
            "Check that the ids of both files are of the same data set.",
        )
    options = MEASURES[spec.measure].options.read(spec.options)
    return Job(workspace, spec, options, attribute, frame, labels, table, progress)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from the evidence that it left, by metric and direction."""
    return MEASURES[run.spec.measure].estimates(workspace, run)


def is_current(spec: RunSpec) -> bool:
    """Whether the numbers of a run are those that its measure gives today."""
    return spec.measure in MEASURES and spec.version == MEASURES[spec.measure].version


def needs_workers(spec: RunSpec) -> bool:
    """Whether a run is too heavy for this process, as one that imports torch is."""
    here = MEASURES[spec.measure].in_process and (not spec.attacker or attacker_entry(spec.attacker).in_process)
    return not here
