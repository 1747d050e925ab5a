"""Captions that name an object and a value, over the set and by object."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome
from capbias_core.measures.gender_score_common import (
    CAPTION,
    PAPER,
    Counted,
    ObjectChoices,
    Sums,
    TextJob,
    count_images,
    counted,
    estimator_metrics,
    outcome,
)

METRIC = "object_gender_cooccurrence"
COUNT = f"{METRIC}_count"

METRICS = estimator_metrics(
    METRIC,
    COUNT,
    "object-gender co-occurrence",
    "Captions that name the value (and no other) and an object",
    f"Zhao et al., EMNLP 2017; {PAPER}, Tables 4 and 6",
    METRIC,
)


def run(job: Job) -> Outcome:
    """Counts of captions that name one value and have an object."""
    return outcome(*counts(job))


def counts(job: Job) -> tuple[list[Sums], dict[str, str], tuple[str, ...]]:
    """See `count_images`; no text is copied."""
    return count_images(replace(job, frame=job.frame.assign(caption=0)), count, CAPTION)


def count(job: TextJob) -> Counted:
    """Captions by the value that they name, over the set and beside each object."""
    weight = np.ones(job.data.confidence.nnz)
    return Counted([counted(METRIC, METRICS, job.attribute, job.data, job.data.value, weight)], job.data)


MEASURE = Measure(
    name="object_cooccurrence",
    title="objects and values named together",
    place=9,
    metrics=METRICS,
    groups=(Group("cooccurrence", "objects and values named together", (METRIC, COUNT)),),
    options=ObjectChoices,
    needs=Needs(objects="optional", words="any"),
    version=4,
    run=run,
    per_object=True,
    of_texts=count,
)
