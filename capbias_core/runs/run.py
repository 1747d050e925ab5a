"""`run_one`: the only place that joins the rooms. A frozen run and its inputs in, results and arrays out."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from capbias_core.aggregate import Estimate
from capbias_core.attackers.device import DETERMINISTIC, deterministic
from capbias_core.errors import CapbiasError
from capbias_core.measures import FAMILIES
from capbias_core.measures.base import Job, Outcome, Progress, RunSpec, of_images
from capbias_core.runs.shared_images import NOTE, WITHIN
from capbias_core.workspace.labels import attribute_from, labels_for
from capbias_core.workspace.store import RunRow, Workspace


def run_one(workspace: Workspace, spec: RunSpec, progress: Progress) -> Outcome:
    """Compute one run. Raises CapbiasError for inputs that cannot be scored, Cancelled when asked to stop."""
    family = FAMILIES[spec.family]
    job = _bare(workspace, spec, progress) if family.makes else job_of(workspace, spec, progress)
    with deterministic(bool(spec.options.get(DETERMINISTIC))):
        outcome = family.module.run(job)
    return replace(outcome, notes=(NOTE, *outcome.notes)) if WITHIN in spec.options else outcome


def _bare(workspace: Workspace, spec: RunSpec, progress: Progress) -> Job:
    """A run that makes an item from photographs: no captions, no labels."""
    nothing = pd.DataFrame(columns=["image_id", "caption_index", "caption"])
    return Job(workspace, spec, None, nothing, pd.Series(dtype=object), nothing, progress)


def job_of(workspace: Workspace, spec: RunSpec, progress: Progress) -> Job:
    """A run with its inputs. Raises CapbiasError where no image of its captions has a label."""
    attribute = attribute_from(spec.attribute)
    table = workspace.frame(spec.labels["table"])
    labels = labels_for(table, attribute, spec.labels["column"], spec.labels["mapping"]).values
    if WITHIN in spec.options:
        labels = labels[labels.index.isin(workspace.frame(spec.options[WITHIN]["item"])["image_id"])]
    frame = of_images(workspace.frame(spec.captions), labels.index)
    if frame.empty:
        raise CapbiasError(
            f"{spec.model}, none of whose images has a label for {attribute.name}",
            "captions of images in the attribute table",
            "Check that the ids of both files are of the same data set.",
        )
    return Job(workspace, spec, attribute, frame, labels, table, progress)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from the evidence that it left, by metric and direction."""
    return FAMILIES[run.spec["family"]].module.estimates(workspace, run)
