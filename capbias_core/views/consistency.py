"""Agreement between encoders, masks and people: how far a results table depends on who measured it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import REFITS, Counts, Estimate, unlabelled
from capbias_core.aggregate.comparison import (
    LEAST_CAPTIONERS,
    coefficient_of_variation,
    conflict_score,
    interval_errors,
    learned,
    name_key,
    noise_floor,
    pearson,
    variation_interval,
)
from capbias_core.aggregate.resampling import UNBOUNDED
from capbias_core.attributes import known_attributes, need_words
from capbias_core.measures.registry import METRICS, measure_of, variants_of
from capbias_core.metrics.share import share
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import RESULT_COLUMNS, Attribute, Result

JUDGED = ("paper", "table", "attribute", "metric", "direction", "condition")


BESIDE = ("paper", "table", "attribute", "metric", "direction", "encoder")


GROUP = ("paper", "table", "attribute", "model", "metric", "direction", "condition")


HUMAN = "human_guess"
# Conflicts that are more than noise.
CLEAR = "clear_conflict_score"
# What the spread of a CV is: that of one encoder against itself.
FLOOR = "noise floor"


# One side's score, which is above 0 whatever it measures, by the endings of the papers' names.
ONE_SIDED = ("_M", "_D", "_H")


def consistency(frame: pd.DataFrame, human: pd.Series | None = None) -> pd.DataFrame:
    """Every number of this page that a results table gives, as rows of RESULT_COLUMNS.

    human: model -> human score, to align with; without it the rows `human_guess` of the table itself are used.
    """
    parts = (variation(frame), agreement(frame), masks(frame), alignment(frame, human))
    return pd.concat([part for part in parts if len(part)] or [_table([])], ignore_index=True)


def variation(frame: pd.DataFrame) -> pd.DataFrame:
    """cv of each captioner across the encoders of its (paper, table, attribute, metric, direction, condition).

    Its spread is the noise floor, and its interval that of the CV without noise (aggregate/comparison.py), if every
    encoder has an interval with refits. Blank, with the reason, where there are fewer than two encoders. Metrics
    without encoders have no row.
    """
    found = []
    for key, group in _with_judges(frame).groupby(list(GROUP), sort=False):
        encoders = list(dict.fromkeys(group["encoder"]))
        reason, value = _repeated(group, ["encoder"]), math.nan
        if not reason:
            reason = _too_few(encoders)
        if not reason:
            value = coefficient_of_variation(_quantity(group).to_numpy())
            reason = "" if math.isfinite(value) else "the mean over encoders is 0"
        done = f"sample std / |mean| over {len(encoders)} encoders"
        noise = {} if reason else _noise(group)
        where = dict(zip(GROUP, key, strict=True))
        found.append(_row(where, "cv", value, encoders, len(encoders), reason or done, **noise))
    return _table(found)


def _noise(group: pd.DataFrame) -> dict:
    """What refits of the encoders make of their CV: columns of its row.

    Nothing where an interval with refits is lacking, or is the whole range and so wider than can be read from it.
    """
    metric = group["metric"].iloc[0]
    low, high = METRICS[metric].range if metric in METRICS else UNBOUNDED
    everything = (group["ci_low"] <= low) & (group["ci_high"] >= high)
    if everything.any() or not (group["interval"] == REFITS).all():
        return {}
    values, seeds = _quantity(group).to_numpy(), group["seeds"].to_numpy()
    low, high = ((group[name] / group["scale"]).to_numpy() for name in ("ci_low", "ci_high"))
    errors = interval_errors(values, low, high, seeds)
    low, high = variation_interval(values, errors, int((seeds - 1).sum()))
    floor = noise_floor(values, errors)
    return {"ci_low": low, "ci_high": high, "interval": REFITS, "spread": floor, "spread_kind": FLOOR}


def agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """conflict_score and ranking_consistency of each pair of encoders over the captioners that both judged."""
    found = []
    for key, group in _with_judges(frame).groupby(list(JUDGED), sort=False):
        where = dict(zip(JUDGED, key, strict=True)) | {"model": ""}
        scores = dict(iter(group.groupby("encoder", sort=False)))
        repeated = _repeated(group, ["model", "encoder"])
        for first, second in combinations(scores, 2):
            found += _pair(where, first, second, scores[first], scores[second], repeated)
    return _table(found)


def _pair(
    where: dict, first: str, second: str, by_first: pd.DataFrame, by_second: pd.DataFrame, repeated: str
) -> list[dict]:
    a, b = _by_model(by_first), _by_model(by_second)
    shared = [model for model in a.index.unique() if model in b.index]
    conflict = ranking = math.nan
    unsigned = repeated or _no_captioner(shared, 1)
    unranked = repeated or _no_captioner(shared, LEAST_CAPTIONERS)
    if not _signed(where["metric"]):
        unsigned = unsigned or "one side's score is always above 0, so there is no sign to compare"
    if not unsigned:
        conflict = conflict_score(a[shared].to_numpy(), b[shared].to_numpy())
    if not unranked:
        ranking = pearson(a[shared].to_numpy(), b[shared].to_numpy())
        unranked = "" if math.isfinite(ranking) else "one judge gives every captioner the same score"
    judges, number = [first, second], len(shared)
    differing = f"% of {number} captioners that only one of the two judges puts above 0"
    sides = None if unsigned else _different_sides(by_first, by_second, shared)
    by_intervals = f"% of {number} captioners whose intervals by the two judges lie on different sides of 0"
    clear = [] if sides is None else [_row(where, CLEAR, sides, judges, number, by_intervals, 100.0)]
    return [
        _row(where, "conflict_score", conflict, judges, number, unsigned or differing, 100.0),
        *clear,
        _row(where, "ranking_consistency", ranking, judges, number, unranked or f"Pearson over {number} captioners"),
    ]


def _different_sides(first: pd.DataFrame, second: pd.DataFrame, shared: list[str]) -> float | None:
    """The share (0 to 100) of captioners whose intervals lie on different sides of 0; None where one has none."""
    sides = []
    for group in (first, second):
        own = group.set_index("model").loc[shared, ["ci_low", "ci_high"]].astype(float)
        if own.isna().any(axis=None):
            return None
        sides.append((own["ci_low"] > 0).to_numpy() * 1 - (own["ci_high"] < 0).to_numpy() * 1)
    return 100.0 * float((sides[0] * sides[1] < 0).mean())


def alignment(frame: pd.DataFrame, human: pd.Series | None = None) -> pd.DataFrame:
    """human_alignment of each metric (and encoder): Pearson with the human score over the captioners that have both.

    human: model -> score, compared with every metric of the table by name (see `name_key`). Without it, the rows
    `human_guess` of the same paper, table, attribute and condition.
    """
    found, keys = [], [*JUDGED, "encoder"]
    frame = frame.assign(condition=variants_of(frame))
    scored = frame[np.isfinite(frame["value"])]
    for key, group in scored[scored["metric"] != HUMAN].groupby(keys, sort=False):
        where = dict(zip(keys, key, strict=True))
        people = _people(scored, where) if human is None else human
        if len(people):
            found.append(_aligned(where, group, people))
    return _table(found)


def _people(frame: pd.DataFrame, where: dict) -> pd.Series:
    """The human scores that were printed beside a metric."""
    alike = frame["metric"] == HUMAN
    for column in ("paper", "table", "attribute", "condition"):
        alike &= frame[column] == where[column]
    return _by_model(frame[alike])


def _aligned(where: dict, group: pd.DataFrame, people: pd.Series) -> dict:
    own, people = _by_model(group), people.copy()
    own.index, people.index = own.index.map(name_key), people.index.map(name_key)
    shared = [model for model in own.index.unique() if model in people.index]
    reason, value = _repeated(group, ["model"]) or _no_captioner(shared, LEAST_CAPTIONERS), math.nan
    if not reason and not (own.index.is_unique and people.index.is_unique):
        reason = "two captioners have the same name, apart from case and punctuation"
    if not reason:
        value = pearson(own[shared].to_numpy(), people[shared].to_numpy())
        reason = "" if math.isfinite(value) else "one side gives every captioner the same score"
    done = f"Pearson with the human score over {len(shared)} captioners"
    judges = [where["encoder"]] if where["encoder"] else []
    return _row(where | {"model": ""}, "human_alignment", value, judges, len(shared), reason or done)


def masks(frame: pd.DataFrame) -> pd.DataFrame:
    """What masks from elsewhere change for judges that see the photographs: for each pair of conditions, such as masks
    by people and by a detector, mask_correlation (Pearson over captioners) and mask_difference of each captioner (the
    second minus the first, in the metric's own scale)."""
    found = []
    frame = frame.assign(condition=variants_of(frame))
    seen = frame[
        frame["metric"].isin(
            [name for name in METRICS if measure_of(name).needs.photographs and measure_of(name).seeded]
        )
        & np.isfinite(frame["value"])
    ]
    if seen.empty:
        return _table([])
    masked = seen["condition"].str.partition("; ")
    for key, group in seen.groupby([*(seen[name] for name in BESIDE), masked[2]], sort=False):
        where = dict(zip((*BESIDE, "rest"), key, strict=True))
        scores = {name: part for name, part in group.groupby(masked[0], sort=False) if name}
        for first, second in combinations(scores, 2):
            found += _mask_pair(where, (first, second), scores[first], scores[second])
    return _table(found)


def _mask_pair(where: dict, names: tuple[str, str], first: pd.DataFrame, second: pd.DataFrame) -> list[dict]:
    where = where | {"condition": "; ".join(filter(None, (" and ".join(names), where["rest"]))), "model": ""}
    judges = [where["encoder"]] if where["encoder"] else []
    if repeated := _repeated(first, ["model"]) or _repeated(second, ["model"]):
        return [_row(where, "mask_correlation", math.nan, judges, 0, repeated)]
    scale = float(first["scale"].iloc[0])
    a, b = _by_model(first), _by_model(second)
    shared = [model for model in a.index if model in b.index]
    reason, value = _no_captioner(shared, LEAST_CAPTIONERS), math.nan
    if not reason:
        value = pearson(a[shared].to_numpy(), b[shared].to_numpy())
        reason = "" if math.isfinite(value) else "one set of masks gives every captioner the same score"
    done = f"Pearson between masks over {len(shared)} captioners"
    rows = [_row(where, "mask_correlation", value, judges, len(shared), reason or done)]
    for model in shared:
        change = scale * float(b[model] - a[model])
        said = f"with {names[1]}, minus with {names[0]}"
        rows.append(_row(where | {"model": model}, "mask_difference", change, judges, 1, said, scale))
    return rows


def _signed(metric: str) -> bool:
    """Whether a value of the metric above 0 means something else than one below."""
    if metric in METRICS:
        return METRICS[metric].neutral(2) == 0 and METRICS[metric].range[0] < 0
    return not metric.endswith(ONE_SIDED)


def _with_judges(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that an encoder gave which learnt, and that have a value; what they were measured on is their condition."""
    frame = frame.assign(condition=variants_of(frame))
    values = {name: len(own.values) for name, own in known_attributes().items()}
    return frame[(frame["encoder"] != "") & np.isfinite(frame["value"]) & learned(frame, values)]


def _quantity(group: pd.DataFrame) -> pd.Series:
    """Values in their own unit."""
    return group["value"] / group["scale"]


def _by_model(group: pd.DataFrame) -> pd.Series:
    return pd.Series(_quantity(group).to_numpy(), index=group["model"])


def _repeated(group: pd.DataFrame, names: list[str]) -> str:
    """The reason that several rows for the same thing give, or ''."""
    twice = group[group.duplicated(names)]
    if twice.empty:
        return ""
    return f"several values for {', '.join(dict.fromkeys(twice[names].agg(' with '.join, axis=1)))}; keep one"


def _too_few(encoders: list[str]) -> str:
    return "" if len(encoders) > 1 else f"needs at least two encoders, got one ({encoders[0]})"


def _no_captioner(shared: list[str], least: int) -> str:
    return "" if len(shared) >= least else f"needs at least {least} captioners that both have scored, got {len(shared)}"


def _row(
    where: dict, metric: str, value: float, judges: list[str], n: int, method: str, scale: float = 1.0, **columns: Any
) -> dict[str, object]:
    condition = "; ".join(part for part in (where["metric"], where["condition"]) if part)
    return Result(
        attribute=where["attribute"],
        model=where["model"],
        metric=metric,
        value=value,
        encoder=", ".join(judges),
        direction=where["direction"],
        condition=condition,
        scale=scale,
        n=n,
        paper=where["paper"],
        table=where["table"],
        method=method if math.isfinite(value) else f"blank: {method}",
        **columns,
    ).row()


def _table(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


PROXY = "human_guess_proxy"
SCALE = 100.0
METHOD = "share of captions that name a value, a proxy for people's guesses"


def proxy_scores(sets: Mapping[str, pd.DataFrame], attribute: Attribute) -> pd.DataFrame:
    """A row of RESULT_COLUMNS for each captioner. sets: captions (image_id, caption) of the benchmark by captioner.

    Raises CapbiasError for an attribute that captions do not name.
    """
    need_words(attribute)
    return pd.DataFrame(
        [_proxy_row(name, frame, attribute) for name, frame in sets.items()], columns=list(RESULT_COLUMNS)
    )


def _proxy_row(name: str, frame: pd.DataFrame, attribute: Attribute) -> dict:
    named = Tokens.of(frame["caption"]).with_any(attribute.value_words).toarray() > 0
    counts = Counts.of_captions(frame["image_id"], unlabelled, {"named": named.any(axis=1)}, sort=False)
    found = Estimate.read(counts.reading(("named", "captions")), share, SCALE, (0, SCALE), share=True)
    method = f"{METHOD}; {found.interval_method}"
    return Result(attribute.name, name, PROXY, n=len(frame), method=method, **found.columns()).row()


def proxy_alignment(scores: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Pearson of every metric of a results table with the proxy, as rows of `alignment` that say so."""
    rows = alignment(results, scores.set_index("model")["value"] / SCALE)
    return rows.assign(
        metric="proxy_alignment", method=rows["method"].str.replace("the human score", "the proxy for human guesses")
    )
