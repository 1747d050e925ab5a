"""Runs of the family 'object_cooccurrence': captions that name an object and a value, over the set and by object."""

from __future__ import annotations

import numpy as np

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import Job, Outcome
from capbias_core.measures.gender_score_common import (
    Gendered,
    Label,
    Statistics,
    Sums,
    counted,
    gendered,
    method,
    note,
    outcome,
    outcome_estimates,
    share_ways,
)
from capbias_core.types import Attribute
from capbias_core.workspace.store import RunRow, Workspace

METRIC = "object_gender_cooccurrence"


def run(job: Job) -> Outcome:
    """Counts of captions that name one value and have an object."""
    named = gendered(job.frame, job.attribute, job.objects(), job.spec.options)
    data = named.with_objects()
    sums = cooccurrence(data, job.attribute)
    return outcome(sums, Label.of(job, "", method(data)), (note(data, len(named.captions)),))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The ratios and counts over the set again, by metric and direction."""
    return outcome_estimates(workspace, run, _ways)


def cooccurrence(data: Gendered, attribute: Attribute) -> Sums:
    """Captions by the value that they name, over the set and beside each object."""
    once = np.ones(data.confidence.nnz)
    return counted(data, data.value, once, _ways(attribute), len(attribute.values))


def _ways(attribute: Attribute) -> Statistics:
    return share_ways(METRIC, f"{METRIC}_count", attribute)
