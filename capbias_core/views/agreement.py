"""Agreement between encoders, masks and people, from the rows of any results table."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS, comparison
from capbias_core.aggregate.estimate import interval_side
from capbias_core.aggregate.resampling import UNBOUNDED
from capbias_core.attributes import known_attributes
from capbias_core.measures.registry import METRICS, measure_of, variants_of
from capbias_core.types import RESULT_COLUMNS, Result

# What tables of the rows of several encoders, of judges or of captioners have in common.
TABLE = ("paper", "table", "attribute")
JUDGED = (*TABLE, "metric", "direction", "condition")
GROUP = (*TABLE, "model", "metric", "direction", "condition")
HUMAN = "human_guess"
CLEAR = "clear_conflict_score"  # conflicts that are more than noise
# One side's score, which is above 0 whatever it measures, by the endings of the papers' names.
ONE_SIDED = ("_M", "_D", "_H")
# Of every table here: RESULT_COLUMNS; `measure`, the metric that is judged; `reason`, why a value is blank.
COLUMNS = [*RESULT_COLUMNS, "measure", "reason"]


def consistency(frame: pd.DataFrame, human: pd.Series | None = None) -> pd.DataFrame:
    """All measures of agreement that a results table gives, as rows of COLUMNS.

    human: model -> human score, to align with; without it the rows `human_guess` of the table itself are used.
    """
    parts = (variation(frame), agreement(frame), masks(frame), alignment(frame, human))
    return pd.concat([part for part in parts if len(part)] or [_table([])], ignore_index=True)


def variation(frame: pd.DataFrame) -> pd.DataFrame:
    """cv of each captioner across the encoders of its (paper, table, attribute, metric, direction, condition).

    Its spread is the noise floor, the CV of one encoder against itself, if every encoder has an interval with refits
    that is narrower than the whole range.
    Blank, with the reason, where there are fewer than two encoders. Metrics without encoders have no row.
    """
    rows = []
    for key, group in _with_judges(frame).groupby(list(GROUP), sort=False):
        where = dict(zip(GROUP, key, strict=True))
        encoders, values = list(dict.fromkeys(group["encoder"])), _by_model(group).to_numpy()
        noise, value, reason = {}, math.nan, _repeated(group, ["encoder"])
        if not reason and len(encoders) < 2:
            reason = f"needs at least two encoders, got one ({encoders[0]})"
        if not reason:
            value = comparison.coefficient_of_variation(values)
            reason = "" if math.isfinite(value) else "the mean over encoders is 0"
        lowest, highest = METRICS[where["metric"]].range if where["metric"] in METRICS else UNBOUNDED
        unbounded = (group["ci_low"] <= lowest) & (group["ci_high"] >= highest)
        if not reason and not unbounded.any() and (group["interval"] == REFITS).all():
            seeds = group["seeds"].to_numpy()
            low, high = ((group[name] / group["scale"]).to_numpy() for name in ("ci_low", "ci_high"))
            errors = comparison.interval_errors(values, low, high, seeds)
            noise = {"spread": comparison.noise_floor(values, errors), "spread_kind": "noise floor"}
        method = f"sample std / |mean| over {len(encoders)} encoders"
        rows.append(_row(where, "cv", value, encoders, len(encoders), method, reason, **noise))
    return _table(rows)


def agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """conflict_score and ranking_consistency of each pair of encoders over the captioners that both judged; and
    clear_conflict_score, where all of these have intervals."""
    rows = []
    for key, group in _with_judges(frame).groupby(list(JUDGED), sort=False):
        where = dict(zip(JUDGED, key, strict=True)) | {"model": ""}
        metric, scores = where["metric"], dict(iter(group.groupby("encoder", sort=False)))
        signed = not metric.endswith(ONE_SIDED)
        if metric in METRICS:  # a value above 0 means something else than one below
            signed = METRICS[metric].neutral(2) == 0 and METRICS[metric].range[0] < 0
        repeated = _repeated(group, ["model", "encoder"])
        for judges in combinations(scores, 2):
            a, b = (_by_model(scores[judge]) for judge in judges)
            ranking, shared, unranked = _correlation(a, b, "one judge gives every captioner the same score", repeated)
            n, conflict = len(shared), math.nan
            unsigned = repeated or _too_few(shared, 1)
            if not (unsigned or signed):
                unsigned = "one side's score is always above 0, so there is no sign to compare"
            if not unsigned:
                conflict = comparison.conflict_score(a[shared].to_numpy(), b[shared].to_numpy())
            method = f"% of {n} captioners that only one of the two judges puts above 0"
            rows.append(_row(where, "conflict_score", conflict, list(judges), n, method, unsigned, scale=100.0))
            ends = [scores[judge].set_index("model").loc[shared, ["ci_low", "ci_high"]] for judge in judges]
            if not (unsigned or any(interval.astype(float).isna().any(axis=None) for interval in ends)):
                sides = [interval_side(interval["ci_low"], interval["ci_high"]) for interval in ends]
                differing = 100.0 * float((sides[0] * sides[1] < 0).mean())
                method = f"% of {n} captioners whose intervals by the two judges lie on different sides of 0"
                rows.append(_row(where, CLEAR, differing, list(judges), n, method, scale=100.0))
            method = f"Pearson over {n} captioners"
            rows.append(_row(where, "ranking_consistency", ranking, list(judges), n, method, unranked))
    return _table(rows)


def alignment(frame: pd.DataFrame, human: pd.Series | None = None) -> pd.DataFrame:
    """human_alignment of each metric (and encoder): Pearson with the human score over the captioners that have both.

    human: model -> score, compared with every metric of the table by name (see `name_key`). Without it, the rows
    `human_guess` of the same paper, table, attribute and condition.
    """
    rows = []
    frame = frame.assign(condition=variants_of(frame))
    scored = frame[np.isfinite(frame["value"])]
    of_humans = scored[scored["metric"] == HUMAN]
    for key, group in scored[scored["metric"] != HUMAN].groupby([*JUDGED, "encoder"], sort=False):
        where = dict(zip([*JUDGED, "encoder"], key, strict=True)) | {"model": ""}
        printed = [of_humans[name] == where[name] for name in (*TABLE, "condition")]
        people = human if human is not None else _by_model(of_humans[np.logical_and.reduce(printed)])
        if people.empty:
            continue
        scores, people = (side.set_axis(side.index.map(comparison.name_key)) for side in (_by_model(group), people))
        repeated = _repeated(group, ["model"])
        if not repeated and not (scores.index.is_unique and people.index.is_unique):
            repeated = "two captioners have the same name, apart from case and punctuation"
        value, shared, reason = _correlation(scores, people, "one side gives every captioner the same score", repeated)
        method = f"Pearson with the human score over {len(shared)} captioners"
        judges = list(filter(None, [where["encoder"]]))
        rows.append(_row(where, "human_alignment", value, judges, len(shared), method, reason))
    return _table(rows)


def masks(frame: pd.DataFrame) -> pd.DataFrame:
    """What masks from elsewhere change for judges that see the photographs: for each pair of conditions, such as masks
    by people and by a detector, mask_correlation (Pearson over captioners) and mask_difference of each captioner (the
    second minus the first, in the metric's own scale)."""
    rows, keys = [], [*TABLE, "metric", "direction", "encoder", "rest"]
    seeing = [name for name in METRICS if measure_of(name).needs.photographs and measure_of(name).seeded]
    frame = frame[frame["metric"].isin(seeing) & np.isfinite(frame["value"])]
    printed = frame["condition"] != ""
    rest = frame.assign(condition="", photographs=frame["photographs"].where(printed, ""))
    masked = frame["condition"].where(printed, frame["photographs"])
    frame = frame.assign(masked=masked, rest=variants_of(rest)) if len(frame) else frame.reindex(columns=keys)
    for key, group in frame.groupby(keys, sort=False):
        where = dict(zip(keys, key, strict=True)) | {"model": ""}
        judges = list(filter(None, [where["encoder"]]))
        scores = {name: part for name, part in group.groupby("masked", sort=False) if name}
        for pair in combinations(scores, 2):
            where["condition"] = "; ".join(filter(None, (" and ".join(pair), where["rest"])))
            first, second = (scores[name] for name in pair)
            a, b, scale = _by_model(first), _by_model(second), float(first["scale"].iloc[0])
            repeated = _repeated(first, ["model"]) or _repeated(second, ["model"])
            constant = "one set of masks gives every captioner the same score"
            value, shared, reason = _correlation(a, b, constant, repeated)
            method = f"Pearson between masks over {len(shared)} captioners"
            rows.append(_row(where, "mask_correlation", value, judges, len(shared), method, reason))
            for model in shared if not repeated else ():
                change, method = scale * float(b[model] - a[model]), f"with {pair[1]}, minus with {pair[0]}"
                rows.append(_row(where | {"model": model}, "mask_difference", change, judges, 1, method, scale=scale))
    return _table(rows)


def _correlation(first: pd.Series, second: pd.Series, constant: str, repeated: str) -> tuple[float, list[str], str]:
    """Pearson of two sides' scores by captioner, the captioners of both, and why there is no value. constant: why if
    one side does not vary. repeated: why, if there are several values for a captioner."""
    shared = [model for model in first.index.unique() if model in second.index]
    if reason := repeated or _too_few(shared, comparison.LEAST_CAPTIONERS):
        return math.nan, shared, reason
    value = comparison.pearson(first[shared].to_numpy(), second[shared].to_numpy())
    return value, shared, "" if math.isfinite(value) else constant


def _with_judges(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that an encoder gave which learnt, and that have a value; what they were measured on is their condition."""
    frame = frame.assign(condition=variants_of(frame))
    values = {name: len(attribute.values) for name, attribute in known_attributes().items()}
    return frame[(frame["encoder"] != "") & np.isfinite(frame["value"]) & comparison.learned(frame, values)]


def _by_model(group: pd.DataFrame) -> pd.Series:
    """Values in their own unit, by captioner."""
    return pd.Series((group["value"] / group["scale"]).to_numpy(), index=group["model"])


def _repeated(group: pd.DataFrame, names: list[str]) -> str:
    """The reason that several rows for the same thing give, or ''."""
    twice = group[group.duplicated(names)]
    if twice.empty:
        return ""
    return f"several values for {', '.join(dict.fromkeys(twice[names].agg(' with '.join, axis=1)))}; keep one"


def _too_few(shared: list[str], least: int) -> str:
    return "" if len(shared) >= least else f"needs at least {least} captioners that both have scored, got {len(shared)}"


def _row(
    where: dict, metric: str, value: float, judges: list[str], n: int, method: str, reason: str = "", **columns: Any
) -> dict[str, Any]:
    """A row of COLUMNS. reason: why the value is blank."""
    named = {name: where[name] for name in (*TABLE, "model", "direction")}
    condition = "; ".join(filter(None, (where["metric"], where["condition"])))
    encoder, method = ", ".join(judges), f"blank: {reason}" if reason else method
    row = Result(
        **named, metric=metric, value=value, encoder=encoder, condition=condition, n=n, method=method, **columns
    )
    return row.row() | {"measure": where["metric"], "reason": reason}


def _table(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)
