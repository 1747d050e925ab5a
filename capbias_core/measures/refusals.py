"""Refusals: captions that say that the image cannot be described, by group."""

from __future__ import annotations

import numpy as np

from capbias_core.measures.base import Job, Measure, Outcome, no_neutral
from capbias_core.measures.by_group import Grouped, GroupedMetric, GroupSums
from capbias_core.metrics.evidence import Ratio
from capbias_core.prepare.refusals import refusals

_SOURCE = "capbias 2026, docs/metrics.md"
SHOWN = 60  # characters of a refusal in a note

GROUPED = Grouped(
    (
        GroupedMetric(
            "refused",
            "refusals, by group",
            100,
            no_neutral,
            "lower",
            (0, 100),
            _SOURCE,
            "Captions that refuse to describe the image, such as “I'm sorry, but I can't help with identifying people”,"
            " of all captions. A caption that describes the image after such a sentence is none. A gap says that the "
            "model refuses one group more often than another.",
        ),
    ),
    _SOURCE,
)


def run(job: Job) -> Outcome:
    """Which captions of labelled images are refusals."""
    captions = job.frame["caption"].to_numpy(dtype=object)
    refused = refusals(captions)
    found = GroupSums.of(job.frame, job.codes, {"refused": Ratio(refused.astype(float), np.ones(len(refused)))})
    notes = []
    if refused.any():
        example = " ".join(captions[refused.argmax()].split())[:SHOWN]
        notes = [f"{refused.sum():,} of {len(refused):,} captions are refusals, such as “{example}”."]
    return GROUPED.outcome(job, found, lambda name: "refusals by their wording", notes)


MEASURE = Measure(
    name="refusals",
    title="refusals",
    place=2,
    metrics=GROUPED.every,
    groups=(GROUPED.group("refused", "refusals by group", default=True),),
    run=run,
    estimates=GROUPED.estimates,
)
