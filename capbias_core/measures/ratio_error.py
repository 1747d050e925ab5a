"""Ratio and error: which values captions name, and which labels their images have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from capbias_core.aggregate import Counts
from capbias_core.attributes import need_words
from capbias_core.measures.base import Group, Job, Measure, Metric, Needs, Outcome, zero
from capbias_core.metrics.naming import named_alone, wrong_names
from capbias_core.metrics.share import share
from capbias_core.prepare import tokenize
from capbias_core.types import Attribute

_SOURCE = "Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1"

METRICS = (
    Metric(
        "ratio",
        "ratio of captions naming each value",
        1,
        lambda k: 1.0,
        "neutral",
        (0, float("inf")),
        _SOURCE,
        "Captions that name only the second value (men, for gender) for each that names only the first. The labelled "
        "images need not be balanced.",
        needs=Needs(words="any", values=2),
        reads=("second", "first"),
        of=share,
    ),
    Metric(
        "error",
        "error, wrong value named",
        100,
        zero,
        "lower",
        (0, 100),
        _SOURCE,
        "Captions whose only named value is not the labelled one, of all captions.",
        needs=Needs(words="any"),
        reads=("misnamed", "captions"),
        of=share,
    ),
)


def run(job: Job) -> Outcome:
    """Which values captions name, and which labels their images have."""
    attribute = job.attribute
    counts = naming_counts(job, sort=False)
    if counts.size("unnamed") == counts.size():
        reason = f"no caption names a value of {attribute.name}."
        return Outcome(
            [], {}, (), {own.name: reason for own in METRICS if own.reads[0] in counts.columns}, {"": counts}
        )
    notes = (f"Labels: {job.sizes(counts).removesuffix(' captions')}.",)
    if "first" in counts.columns and not counts.size("first"):
        notes += (f"No caption names only {attribute.values[0]}, so ratio is not defined.",)
    found = job.outcome(METRICS, counts, "captions by the values that their words name", notes)
    rows = [row if np.isfinite(row.value) else replace(row, value=float("nan")) for row in found.results]
    return replace(found, results=rows)


def naming_counts(job: Job, sort: bool = True) -> Counts:
    """Captions that name a wrong value, or none; of two values also those that name only the first or the second.

    Raises NotMeasurable if no value has words.
    """
    need_words(job.attribute)
    names = names_in(job.frame["caption"], job.attribute)
    found = {"misnamed": wrong_names(names, job.codes(job.frame["image_id"])), "unnamed": ~names.any(axis=1)}
    if names.shape[1] == 2:
        found["first"], found["second"] = named_alone(names).T
    return Counts.of_captions(job.frame["image_id"], job.codes, found, sort)


def names_in(captions: Iterable[str], attribute: Attribute) -> np.ndarray:
    """(n, K) booleans: which values of the attribute each caption names. The same caption is read once."""
    words = [frozenset(own) for own in attribute.value_words]
    which, distinct = pd.factorize(pd.Series(captions))
    return np.array([[not own.isdisjoint(tokens) for own in words] for tokens in map(tokenize, distinct)])[which]


MEASURE = Measure(
    name="ratio_error",
    title="ratio and error",
    place=1,
    metrics=METRICS,
    groups=(Group("ratio", "ratio", ("ratio",), default=True), Group("error", "error", ("error",), default=True)),
    version=4,
    run=run,
)
