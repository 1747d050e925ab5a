"""The wrong value named, and none named, by group."""

from __future__ import annotations

from capbias_core.measures.base import (
    LOWER_SHARE,
    Group,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    group_of,
    with_gaps,
    zero,
)
from capbias_core.measures.ratio_error import naming_counts

_BURNS = "Burns et al., ECCV 2018"

METRICS = with_gaps(
    Metric(
        "misnamed",
        "wrong value named, by group",
        100,
        zero,
        "lower",
        (0, 100),
        _BURNS,
        "Captions whose only named value is not the labelled one, of all captions: error, by group.",
        reads=("misnamed", "captions"),
    ),
    Metric(
        "unnamed",
        "no value named, by group",
        *LOWER_SHARE,
        _BURNS,
        "Captions that name no value of the attribute, such as those that say person, of all captions. To name "
        "none is not wrong: a gap says that it happens to one group more often than to another.",
        reads=("unnamed", "captions"),
    ),
    source=_BURNS,
)


def run(job: Job) -> Outcome:
    """Which values captions name, and which labels their images have."""
    counts, lacking = naming_counts(job), {}
    if counts.size("unnamed") == counts.size():
        reason = f"no caption names a value of {job.attribute.name}."
        counts, lacking = counts.reading(("unnamed", "captions")), {"misnamed": reason, "misnamed_gap": reason}
    notes = [f"Named values rest on {job.sizes(counts)}."]
    return job.outcome(METRICS, counts, "values that the words of captions name", notes, lacking)


MEASURE = Measure(
    name="named_values",
    title="values named wrongly or not at all",
    place=2,
    metrics=METRICS,
    groups=(
        Group("unnamed", "no value named", ("unnamed",), default=True),
        group_of("naming_gap", "wrong value or none named, by group", METRICS),
    ),
    needs=Needs(words="every"),
    version=4,
    run=run,
)
