"""Captions that name an object and a value, over the set and by object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capbias_core.aggregate import Estimate
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome
from capbias_core.measures.gender_score_common import (
    PAPER,
    Gendered,
    Label,
    ObjectChoices,
    Statistics,
    Sums,
    TextJob,
    TextSums,
    counted,
    estimator_metrics,
    gendered,
    method,
    note,
    outcome,
    outcome_estimates,
    share_statistics,
)
from capbias_core.types import Attribute
from capbias_core.workspace.store import RunRow, Workspace

METRIC = "object_gender_cooccurrence"
COUNT = f"{METRIC}_count"

METRICS = estimator_metrics(
    METRIC,
    COUNT,
    "object-gender co-occurrence",
    "Captions that name the value (and no other) and an object",
    f"Zhao et al., EMNLP 2017; {PAPER}, Tables 4 and 6",
)


@dataclass(frozen=True)
class CooccurrenceOptions(ObjectChoices):
    """Choices of co-occurrence."""


def run(job: Job) -> Outcome:
    """Counts of captions that name one value and have an object."""
    return outcome(*counts(job))


def counts(job: Job) -> tuple[Sums, Label, tuple[str, ...]]:
    """The counts by image, what its rows share, and a note."""
    frame = job.frame.assign(caption=0)  # tokens are counted, and no text is copied
    named = gendered(frame, job.attribute, job.objects(), job.options, tokens=job.tokens)
    data = named.with_objects()
    sums = cooccurrence(data, job.attribute)
    return sums, Label.of(job, method(data)), (note(data, len(named.captions)),)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The ratios and counts over the set again, by metric and direction."""
    return outcome_estimates(workspace, run, _statistics)


def of_texts(job: TextJob) -> list[TextSums]:
    """Counts of plain texts that have an object."""
    return [TextSums(cooccurrence(job.data, job.attribute), job.method(job.data, ""))]


def cooccurrence(data: Gendered, attribute: Attribute) -> Sums:
    """Captions by the value that they name, over the set and beside each object."""
    once = np.ones(data.confidence.nnz)
    return counted(data, data.value, once, _statistics(attribute), len(attribute.values))


def _statistics(attribute: Attribute) -> Statistics:
    return share_statistics(METRIC, COUNT, attribute)


MEASURE = Measure(
    name="object_cooccurrence",
    title="objects and values named together",
    place=9,
    metrics=METRICS,
    groups=(Group("cooccurrence", "objects and values named together", (METRIC, COUNT)),),
    options=CooccurrenceOptions,
    needs=Needs(objects="optional", words="any"),
    version=3,
    run=run,
    estimates=estimates,
    per_object=True,
    of_texts=of_texts,
)
