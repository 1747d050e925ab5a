"""Vocabulary size: how many different words a caption set has."""

from __future__ import annotations

from capbias_core.measures.base import Group, Job, Measure, Metric, Outcome, by_name, no_neutral
from capbias_core.metrics.vocabulary import vocabulary
from capbias_core.types import Result

METRICS = by_name(
    Metric(
        "vocabulary",
        "vocabulary, different words",
        1,
        no_neutral,
        "higher",
        (0, float("inf")),
        "Hirota et al., CVPR 2022, Figure 3",
        "Different words among the captions of the labelled images. It grows with the number of captions.",
        side="model",
    )
)


def run(job: Job) -> Outcome:
    """Words of the captions of labelled images.

    The count of a whole set is no function of sums over images: it has no estimate, so captioners are not ranked by it.
    """
    captions, metric = job.frame["caption"], METRICS["vocabulary"]
    result = Result(
        attribute=job.attribute.name,
        model=job.spec.model,
        metric=metric.name,
        value=float(vocabulary(captions)),
        scale=metric.scale,
        n=len(captions),
        method="different words of the captions of labelled images; a count, without an interval",
    )
    return Outcome([result], {}, ())


MEASURE = Measure(
    name="vocabulary",
    title="vocabulary size",
    place=8,
    metrics=tuple(METRICS.values()),
    groups=(Group("vocabulary", "vocabulary size", ("vocabulary",)),),
    run=run,
)
