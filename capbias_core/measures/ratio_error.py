"""Ratio and error: which values captions name, and which labels their images have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, estimate
from capbias_core.attributes import need_words
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome, RatioMetric, by_name, label_codes, zero
from capbias_core.metrics.error import wrong_names
from capbias_core.metrics.evidence import Naming, Ratio
from capbias_core.metrics.ratio import named_alone
from capbias_core.prepare import tokenize
from capbias_core.types import Attribute
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, frame_bytes

_SOURCE = "Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1"


def second_over_first(evidence: Naming) -> Ratio:
    """Captions that name only the second value, over those that name only the first."""
    only = named_alone(evidence.names).astype(float)
    return Ratio(only[:, 1], only[:, 0])


def wrong_over_all(evidence: Naming) -> Ratio:
    """Captions that name only a value that is not the label, over captions."""
    return Ratio(wrong_names(evidence.names, evidence.label).astype(float), np.ones(len(evidence.label)))


METRICS = by_name(
    RatioMetric(
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
        ratio=second_over_first,
    ),
    RatioMetric(
        "error",
        "error, wrong value named",
        100,
        zero,
        "lower",
        (0, 100),
        _SOURCE,
        "Captions whose only named value is not the labelled one, of all captions.",
        needs=Needs(words="any"),
        ratio=wrong_over_all,
    ),
)


def run(job: Job) -> Outcome:
    """Which values captions name, and which labels their images have."""
    attribute = job.attribute
    evidence = naming(job.frame, job.labels, attribute)
    found = counting_estimates(evidence)
    method = "captions by the values that their words name"
    results = [
        job.result(METRICS[name], item, len(evidence.label), f"{method}; {item.interval_method}")
        for name, item in found.items()
    ]
    named = pd.DataFrame(evidence.names, columns=[f"n{value}" for value in range(evidence.names.shape[1])])
    named["label"] = evidence.label
    named["image_id"] = pd.Categorical.from_codes(evidence.image, list(evidence.images))
    if not evidence.names.any():
        reason = f"no caption names a value of {attribute.name}."
        return Outcome([], {"naming": frame_bytes(named)}, (), dict.fromkeys(found, reason))
    counts = np.bincount(evidence.label, minlength=len(attribute.values))
    notes = ("Labels: " + ", ".join(f"{value} {n:,}" for value, n in zip(attribute.values, counts, strict=True)) + ".",)
    missing = [name for name, item in found.items() if not np.isfinite(item.value)]
    if missing:
        notes += (f"No caption names only {attribute.values[0]}, so {' and '.join(missing)} is not defined.",)
        results = [row if row.metric not in missing else replace(row, value=float("nan")) for row in results]
    return Outcome(results, {"naming": frame_bytes(named)}, notes)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from what its captions name, by metric and direction."""
    found = counting_estimates(naming_from(workspace.array(run.run_id, "naming")))
    return {(name, ""): own for name, own in found.items()}


def naming(frame: pd.DataFrame, labels: pd.Series, attribute: Attribute) -> Naming:
    """Which values of the attribute each caption names. Raises NotMeasurable if no value has words."""
    need_words(attribute)
    code, found = pd.factorize(frame["image_id"])
    images = found.tolist()
    words = [frozenset(own) for own in attribute.value_words]
    which, captions = pd.factorize(frame["caption"])  # the same caption is read once
    names = np.array([[not own.isdisjoint(tokens) for own in words] for tokens in map(tokenize, captions)])[which]
    return Naming(tuple(images), code, label_codes(images, labels, attribute)[code], names)


def counting_estimates(evidence: Naming) -> dict[str, Estimate]:
    """The metrics that are defined for this many values, by name."""
    k = evidence.names.shape[1]
    return {
        name: estimate(row.ratio(evidence), evidence, row.scale, row.range)
        for name, row in METRICS.items()
        if row.needs.values in (0, k)
    }


def naming_from(data: bytes) -> Naming:
    """The naming evidence in Parquet bytes."""
    frame = bytes_frame(data)
    names = frame[[column for column in frame if column.startswith("n")]].to_numpy()
    image_id = frame["image_id"].cat
    return Naming(tuple(image_id.categories), image_id.codes.to_numpy().astype(int), frame["label"].to_numpy(), names)


MEASURE = Measure(
    name="ratio_error",
    title="ratio and error",
    place=1,
    metrics=tuple(METRICS.values()),
    groups=(Group("ratio", "ratio", ("ratio",), default=True), Group("error", "error", ("error",), default=True)),
    version=3,
    run=run,
    estimates=estimates,
)
