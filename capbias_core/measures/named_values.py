"""The wrong value named, and none named, by group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome, no_neutral, zero
from capbias_core.measures.by_group import Grouped, GroupedMetric, GroupSums
from capbias_core.measures.ratio_error import naming, wrong_over_all
from capbias_core.metrics.evidence import Naming, Ratio


def unnamed_over_all(evidence: Naming) -> Ratio:
    """Captions that name no value, over captions."""
    return Ratio((~evidence.names.any(axis=1)).astype(float), np.ones(len(evidence.names)))


_BURNS = "Burns et al., ECCV 2018"

GROUPED = Grouped(
    (
        GroupedMetric(
            "misnamed",
            "wrong value named, by group",
            100,
            zero,
            "lower",
            (0, 100),
            _BURNS,
            "Captions whose only named value is not the labelled one, of all captions: error, by group.",
        ),
        GroupedMetric(
            "unnamed",
            "no value named, by group",
            100,
            no_neutral,
            "lower",
            (0, 100),
            _BURNS,
            "Captions that name no value of the attribute, such as those that say person, of all captions. To name "
            "none is not wrong: a gap says that it happens to one group more often than to another.",
        ),
    ),
    _BURNS,
)


def run(job: Job) -> Outcome:
    """Which values captions name, and which labels their images have."""
    evidence = naming(job.frame, job.labels, job.attribute)
    counts = {"unnamed": unnamed_over_all(evidence)}
    if evidence.names.any():
        counts = {"misnamed": wrong_over_all(evidence)} | counts
    found = GroupSums.of(job.frame, job.codes, counts)
    notes = [f"Named values rest on {found.sizes_text(job.attribute.values)}."]
    outcome = GROUPED.outcome(job, found, lambda name: "values that the words of captions name", notes)
    if "misnamed" in counts:
        return outcome
    reason = f"no caption names a value of {job.attribute.name}."
    return replace(outcome, lacking=dict.fromkeys(("misnamed", "misnamed_gap"), reason))


MEASURE = Measure(
    name="named_values",
    title="values named wrongly or not at all",
    place=2,
    metrics=GROUPED.every,
    groups=(
        Group("unnamed", "no value named", ("unnamed",), default=True),
        GROUPED.group("naming_gap", "wrong value or none named, by group"),
    ),
    needs=Needs(words="every"),
    version=3,
    run=run,
    estimates=GROUPED.estimates,
)
