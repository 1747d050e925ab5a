"""Rows of the results table from counts: of the whole set, of directions, groups, gaps and objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capbias_core.aggregate.counts import Counts, beside_objects, captions_beside_objects
from capbias_core.aggregate.estimate import (
    IMAGES,
    INCONCLUSIVE,
    NEUTRAL,
    Estimate,
    estimates_of,
    intervals,
    of_groups,
    verdict,
)
from capbias_core.aggregate.metric import Metric, by_name
from capbias_core.aggregate.resampling import LEAST_SEEDS, column_intervals
from capbias_core.types import Result

FEWEST = 10  # captions, for an interval of an object
OVER_SEEDS = "std over seeds"  # in methods of measures; rows of a single seed, or of none, have no spread
ROUNDING = 1e-9  # of the scale, by which a value may pass the end of its range

# Columns of rows by metric, '' for any other metric: `method` (what they depend on), `n` if it is not the captions
# counted, `differs` (deviations from the protocol), and further columns.
Columns = Mapping[str, Mapping[str, Any]]
Limits = tuple[float, float] | tuple[None, None]


@dataclass(frozen=True)
class RunFacts:
    """What all rows of a run share."""

    attribute: str
    values: tuple[str, ...]
    columns: Mapping[str, str] = field(default_factory=dict)  # such as model, encoder and coverage
    alignment: str = ""  # of the human captions, for metrics that depend on them
    protocol: Callable[[Sequence[str]], str] = lambda differs: ""  # deviations to the end of a method


def result_rows(
    metrics: Iterable[Metric], counts: Counts, run: RunFacts, columns: Columns, direction: str = ""
) -> list[Result]:
    """A row for each metric whose columns were counted and are known; before its gap also one for each group."""
    known, counts, made = by_name(*metrics), counts.taking_part, []
    estimates = estimates_of(known.values(), counts, run.values, direction)
    limits = intervals(estimates)
    for (name, which), estimate in estimates.items():
        metric = known[name]
        about = columns.get(metric.gap_of or name, columns.get(""))
        if about is None:
            continue
        about = {"n": counts.size() if about.get("n") is None else about["n"], **about, "direction": which}
        if metric.gap_of:
            made += _group_rows(known[metric.gap_of], counts, run, about)
            how = "largest minus smallest value of a group"
            if len(run.values) == 2:
                how = f"{run.values[1]} minus {run.values[0]}"
            about["method"] = f"{how}; {about['method']}"
        if metric.judged_by:
            about["verdict"] = _verdict(metric, limits, estimate, which)
        made.append(_row(metric, estimate, limits[name, which], run, about))
    return made


def object_rows(metrics: Iterable[Metric], counts: Counts, run: RunFacts, columns: Columns) -> list[Result]:
    """A row for each metric, direction and object that a caption has, most captions first. An object of fewer than
    FEWEST captions has no interval: a bootstrap says too little of chance there."""
    by_column: dict[str, list[Metric]] = {}
    for metric in metrics:
        for name in metric.reads:
            if beside_objects(name) in counts.columns:
                by_column.setdefault(name, []).append(metric)
    made = []
    for column, those in by_column.items():
        captions = np.asarray(counts.columns[captions_beside_objects(column)].sum(axis=0)).astype(int)
        formulas = {metric.name: (metric.of, metric.interval == "share") for metric in those}
        intervals = column_intervals(counts.columns[beside_objects(column)], len(counts.objects), formulas)
        for name, (value, low, high) in intervals.items():
            about = {**run.columns, **columns[name]}
            how = "95% Wilson interval over images" if formulas[name][1] else "95% image bootstrap, 1000 draws"
            about["method"] = "; ".join(filter(None, [about["method"], how, run.protocol(())]))
            for which, direction in zip(range(value.shape[-1]), (*run.values, NEUTRAL), strict=False):
                for number in np.argsort(-captions, kind="stable"):
                    n, limits = int(captions[number]), (low[number, which], high[number, which])
                    known = n >= FEWEST and np.isfinite(limits[0])
                    about |= {"object": counts.objects[number], "n": n, "interval": IMAGES if known else ""}
                    about["ci_low"], about["ci_high"] = map(float, limits) if known else (None, None)
                    if n:
                        shown = float(value[number, which])
                        made.append(
                            Result(attribute=run.attribute, metric=name, direction=direction, value=shown, **about)
                        )
    return made


def _group_rows(metric: Metric, counts: Counts, run: RunFacts, about: Mapping[str, Any]) -> list[Result]:
    """A row for the images of each group that has some."""
    whole, made = of_groups(metric, counts.reading(metric.reads), run.values), []
    for code, value in enumerate(run.values):
        member = counts.label == code
        if captions := int(counts.columns["captions"][member].sum()):
            estimate = whole.of_images(np.flatnonzero(member))
            made.append(_row(metric, estimate, estimate.interval(), run, {**about, "group": value, "n": captions}))
    return made


def _verdict(metric: Metric, limits: Mapping[tuple[str, str], Limits], estimate: Estimate, direction: str) -> str:
    """What all counted pairs of `judged_by` say; inconclusive from fewer seeds than LEAST_SEEDS."""
    pairs = [pair for pair in metric.judged_by if all((name, direction) in limits for name in pair)]
    verdicts = {verdict(limits[above, direction][0], limits[below, direction][1]) for above, below in pairs}
    return verdicts.pop() if len(verdicts) == 1 and len(estimate.seed_values) >= LEAST_SEEDS else INCONCLUSIVE


def _row(metric: Metric, estimate: Estimate, limits: Limits, run: RunFacts, about: Mapping[str, Any]) -> Result:
    numbers, (low, high), columns = estimate.columns(limits), metric.range, dict(about)
    if numbers["value"] < low - ROUNDING * metric.scale or numbers["value"] > high + ROUNDING * metric.scale:
        raise ValueError(f"{metric.name} is {numbers['value']:g}, beyond its range from {low:g} to {high:g}")
    method = columns.pop("method")
    if numbers["spread"] is None:
        method = method.replace(f"; {OVER_SEEDS}", "; 1 seed" if numbers["seeds"] else "")
    parts = method, estimate.interval_method, run.protocol(columns.pop("differs", ()))
    alignment = "" if metric.side == "model" else run.alignment
    known: dict[str, Any] = {"alignment": alignment, **run.columns, **numbers, **columns}
    return Result(attribute=run.attribute, metric=metric.name, method="; ".join(filter(None, parts)), **known)
