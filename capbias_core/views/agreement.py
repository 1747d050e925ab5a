"""Agreement between encoders, masks and people, from the rows of any results table.

Every function gives rows with KEYS, `metric` (which agreement), `encoder` (whose), `value` and `n`, if it has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS, comparison
from capbias_core.aggregate.estimate import interval_side
from capbias_core.aggregate.resampling import UNBOUNDED
from capbias_core.attributes import known_attributes
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS, measure_of, variants_of

TABLE = ["paper", "table", "attribute"]
SERIES = [*TABLE, "measure", "direction", "condition"]  # of one metric by one encoder
KEYS = [*SERIES, "model"]
HUMAN = "human_guess"
CLEAR = "clear_conflict_score"  # conflicts that are more than noise
# One side's score, which is above 0 whatever it measures, by the endings of the papers' names.
ONE_SIDED = ("_M", "_D", "_H")
Row = dict[str, Any]


def consistency(frame: pd.DataFrame, human: pd.Series | None = None) -> pd.DataFrame:
    """All agreement that a results table shows. human: model -> human score, to align with; without it the rows
    `human_guess` of the table itself are used. Raises CapbiasError for two rows of the same thing."""
    rows = _finite(frame)
    twice = rows[rows.duplicated([*KEYS, "encoder"])]
    if len(twice):
        name = " ".join(filter(None, twice.iloc[0][["model", "metric", "encoder"]]))
        raise CapbiasError(f"The results table has several rows of {name}.", "Keep one.")
    parts = (variation(frame), agreement(frame), _table(_masks(frame)), alignment(frame, human))
    return pd.concat([part for part in parts if len(part)] or [_table([])], ignore_index=True)


def variation(frame: pd.DataFrame) -> pd.DataFrame:
    """cv of each captioner across encoders. `spread`: the noise floor, the CV of one encoder against itself, if every
    encoder has an interval with refits that is narrower than the whole range."""
    return _table(
        dict(zip(KEYS, key, strict=True))
        | _found("cv", group["encoder"], comparison.coefficient_of_variation(group["unit"].to_numpy()), len(group))
        | {"spread": _noise_floor(group)}
        for key, group in _by_encoders(frame).groupby(KEYS, sort=False)
        if len(group) > 1
    )


def _noise_floor(group: pd.DataFrame) -> float:
    metric = METRICS.get(group["measure"].iloc[0])
    lowest, highest = metric.range if metric else UNBOUNDED
    unbounded = (group["ci_low"] <= lowest) & (group["ci_high"] >= highest)
    if unbounded.any() or (group["interval"] != REFITS).any():
        return math.nan
    low, high = ((group[name] / group["scale"]).to_numpy() for name in ("ci_low", "ci_high"))
    values = group["unit"].to_numpy()
    return comparison.noise_floor(values, low, high, group["seeds"].to_numpy())


def agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """conflict_score and ranking_consistency of each pair of encoders over the captioners that both judged; and
    clear_conflict_score, where all of these have intervals. Conflicts are in %."""
    return _table(_pairs(frame))


def _pairs(frame: pd.DataFrame) -> Iterator[Row]:
    for key, group in _by_encoders(frame).groupby(SERIES, sort=False):
        where, scores = dict(zip(SERIES, key, strict=True)), dict(iter(group.groupby("encoder", sort=False)))
        metric = METRICS.get(where["measure"])
        signed = not where["measure"].endswith(ONE_SIDED)
        if metric:  # a value above 0 means something else than one below
            signed = metric.neutral(2) == 0 and metric.range[0] < 0
        for judges in combinations(scores, 2):
            both = scores[judges[0]].merge(scores[judges[1]], on="model")
            if signed and len(both):
                conflict = comparison.conflict_score(both["unit_x"].to_numpy(), both["unit_y"].to_numpy())
                yield where | _found("conflict_score", judges, conflict, len(both))
                ends = both[["ci_low_x", "ci_high_x", "ci_low_y", "ci_high_y"]].astype(float)
                if ends.notna().all(axis=None):
                    sides = interval_side(ends["ci_low_x"], ends["ci_high_x"])
                    sides = sides * interval_side(ends["ci_low_y"], ends["ci_high_y"])
                    yield where | _found(CLEAR, judges, 100.0 * float((sides < 0).mean()), len(both))
            yield where | _correlation("ranking_consistency", judges, both)


def alignment(frame: pd.DataFrame, human: pd.Series | None = None) -> pd.DataFrame:
    """human_alignment of each metric and encoder: Pearson with the human score over the captioners that have both.

    human: model -> score, compared with every metric of the table by name (see `name_key`). Without it, the rows
    `human_guess` of the same paper, table, attribute and condition. Raises CapbiasError for two captioners of one name.
    """
    rows = []
    scored = _finite(frame).assign(name=lambda rows: rows["model"].map(comparison.name_key))
    printed = scored[scored["measure"] == HUMAN]
    given = pd.DataFrame({} if human is None else {"name": human.index.map(comparison.name_key), "unit": human})
    for key, group in scored[scored["measure"] != HUMAN].groupby([*SERIES, "encoder"], sort=False):
        where = dict(zip([*SERIES, "encoder"], key, strict=True))
        same = [printed[name] == where[name] for name in (*TABLE, "condition")]
        people = printed[np.logical_and.reduce(same)] if human is None else given
        if people["name"].duplicated().any() or group["name"].duplicated().any():
            raise CapbiasError("Two captioners have the same name, apart from case and punctuation.", "Keep one.")
        both = group.merge(people[["name", "unit"]], on="name")
        rows.append(where | _correlation("human_alignment", [where["encoder"]], both))
    return _table(rows)


def _masks(frame: pd.DataFrame) -> Iterator[Row]:
    """What masks from elsewhere change for judges that see the photographs: for each pair of conditions, such as masks
    by people and by a detector, mask_correlation (Pearson over captioners) and mask_difference of each captioner (the
    second minus the first, in the metric's own scale)."""
    seeing = [name for name in METRICS if measure_of(name).needs.photographs and measure_of(name).seeded]
    frame = frame[frame["metric"].isin(seeing)]
    if frame.empty:
        return
    printed = frame["condition"] != ""
    masked = frame["condition"].where(printed, frame["photographs"])
    rest = frame.assign(condition="", photographs=frame["photographs"].where(printed, ""))
    for key, group in _finite(rest).assign(masked=masked).groupby([*SERIES, "encoder"], sort=False):
        where = dict(zip([*SERIES, "encoder"], key, strict=True))
        scores = {name: part for name, part in group.groupby("masked", sort=False) if name}
        for pair in combinations(scores, 2):
            about = where | {"condition": "; ".join(filter(None, (" and ".join(pair), where["condition"])))}
            both = scores[pair[0]].merge(scores[pair[1]], on="model")
            yield about | _correlation("mask_correlation", [where["encoder"]], both)
            for row in both.to_dict("records"):
                change = row["scale_x"] * (row["unit_y"] - row["unit_x"])
                yield about | {"model": row["model"]} | _found("mask_difference", [where["encoder"]], change, 1)


def _correlation(metric: str, encoders: Sequence[str], both: pd.DataFrame) -> Row:
    """Pearson of two sides' scores. both: a row for each captioner of both sides."""
    return _found(metric, encoders, comparison.pearson(both["unit_x"], both["unit_y"]), len(both))


def _finite(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with a value; with `measure` (the metric), `condition` (what it was measured on) and `unit` (value x1)."""
    frame = frame.assign(measure=frame["metric"], condition=variants_of(frame), unit=frame["value"] / frame["scale"])
    return frame[np.isfinite(frame["value"])]


def _by_encoders(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by encoders that learnt."""
    values = {name: len(attribute.values) for name, attribute in known_attributes().items()}
    return _finite(frame[(frame["encoder"] != "") & comparison.learned(frame, values)])


def _found(metric: str, encoders: Sequence[str], value: float, n: int) -> Row:
    return {"metric": metric, "encoder": ", ".join(filter(None, encoders)), "value": value, "n": n}


def _table(rows: Iterable[Row]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=[*KEYS, "encoder", "metric", "value", "n", "spread"]).fillna({"model": ""})
    return table[table["value"].notna()]
