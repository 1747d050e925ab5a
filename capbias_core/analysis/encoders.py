"""Scores by encoder: what was measured and what papers printed in one shape, and the plan of a sweep over encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.aggregate.comparison import (
    LEAST_ENCODERS,
    Order,
    Sensitivity,
    learned,
    name_key,
    order_by_value,
    order_of,
    sensitivity,
)
from capbias_core.analysis.read import Comparison, ranking
from capbias_core.errors import CapbiasError
from capbias_core.measures.registry import METRICS, variants_of
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

# A metric with its direction and what it was measured on (see aggregate/variants.py).
Series = tuple[str, str, str]
SERIES = ["metric", "direction", "variant"]
# The metrics whose dependence on the encoder the papers argue about; of DBAC's directions they print T->A.
ANSWERING = ("LIC", "DBAC")
CV_METRICS = ("CV_LIC", "CV_DBAC")
BINARY = 2


@dataclass(frozen=True)
class Printed:
    """Tables of a paper that give scores by encoder. cv: its own table of coefficients of variation, '' for none."""

    title: str
    paper: str
    tables: tuple[str, ...]
    cv: str = ""


PRINTED = {
    "dbac_gender": Printed("DBAC: gender, six encoders from scratch", "dbac", ("10", "11"), "5a"),
    "dbac_gender_pretrained": Printed("DBAC: gender, four pretrained encoders", "dbac", ("12a", "12b"), "5b"),
    "dbac_race": Printed("DBAC: race, six encoders from scratch", "dbac", ("13", "14"), "6a"),
    "dbac_race_pretrained": Printed("DBAC: race, four pretrained encoders", "dbac", ("15a", "15b"), "6b"),
    "lic_gender": Printed("LIC: gender, three encoders", "lic", ("2",)),
    "lic_race": Printed("LIC: race, three encoders", "lic", ("S1",)),
    "repro_gender": Printed("Reproduction of LIC: gender, three encoders", "repro", ("2",)),
    "repro_race": Printed("Reproduction of LIC: race, three encoders", "repro", ("3",)),
    "repro_age": Printed("Reproduction of LIC: age, three encoders", "repro", ("4",)),
    "imgcap2": Printed("ImageCaptioner²: gender, two encoders", "imgcap2", ("4",)),
}


def printed_scores(published: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows with an encoder of one entry of PRINTED, in the scale that measured values have."""
    entry = PRINTED[name]
    rows = published[(published["paper"] == entry.paper) & published["table"].isin(entry.tables)]
    return _in_our_scale(rows[rows["encoder"] != ""])


def printed_variation(published: pd.DataFrame, name: str) -> pd.DataFrame:
    """The paper's own CVs: model, measure (`LIC`, `DBAC`), direction, value. Empty where it prints none."""
    entry = PRINTED[name]
    own = (published["paper"] == entry.paper) & (published["table"] == entry.cv)
    rows = published[own & published["metric"].isin(CV_METRICS)]
    direction = np.where(rows["metric"] == "CV_DBAC", "T->A", "")
    return rows.assign(measure=rows["metric"].str.removeprefix("CV_"), direction=direction)[
        ["model", "measure", "direction", "value"]
    ].reset_index(drop=True)


def _in_our_scale(rows: pd.DataFrame) -> pd.DataFrame:
    scale = [
        METRICS[name].scale if name in METRICS else own for name, own in zip(rows["metric"], rows["scale"], strict=True)
    ]
    factor = np.array(scale, dtype=float) / rows["scale"]
    numbers = {name: rows[name] * factor for name in ("value", "spread", "ci_low", "ci_high")}
    return rows.assign(**numbers, scale=scale).reset_index(drop=True)


def like_named(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """The rows of captioners that have the name of one of these (see `name_key`), under that name."""
    names = {name_key(model): model for model in models}
    named = rows.assign(model=[names.get(name_key(model), "") for model in rows["model"]])
    return named[named["model"] != ""].reset_index(drop=True)


def series_of(rows: pd.DataFrame) -> list[Series]:
    """What was judged with an encoder, LIC and DBAC first, and of each the variant with most values first.

    Only metrics with a neutral point, from which a sign can be told.
    """
    rows = rows.assign(variant=variants_of(rows))
    judged = rows[(rows["encoder"] != "") & np.isfinite(rows["value"]) & rows["metric"].isin(list(METRICS))]
    counts = judged.groupby(SERIES, sort=False).size()
    found = [key for key in counts.index if np.isfinite(METRICS[key[0]].neutral(BINARY))]
    known = [*ANSWERING, *(name for name in METRICS if name not in ANSWERING)]
    return sorted(found, key=lambda key: (known.index(key[0]), -counts[key], key[1] != "T->A", key[2]))


def answering(rows: pd.DataFrame) -> list[Series]:
    """LIC and DBAC in each direction, each in the variant with most values."""
    found: dict[tuple[str, str], Series] = {}
    for key in series_of(rows):
        if key[0] in ANSWERING:
            found.setdefault(key[:2], key)
    return list(found.values())


def rows_of(rows: pd.DataFrame, series: Series) -> pd.DataFrame:
    """The rows of one series, one per captioner and encoder."""
    rows = rows.assign(variant=variants_of(rows))
    own = rows[(rows[SERIES] == list(series)).all(axis=1) & (rows["encoder"] != "") & np.isfinite(rows["value"])]
    return own.drop_duplicates(["model", "encoder"]).reset_index(drop=True)


def sensitivity_of(workspace: Workspace, rows: pd.DataFrame, values: int = BINARY) -> Sensitivity:
    """What the encoders of rows of one series say of each captioner. values: how many the attribute has.

    Measured rows are ordered in pairs on images by the evidence that their runs left, printed ones by value.
    """
    neutral = METRICS[rows["metric"].iloc[0]].neutral(values) if len(rows) else 0.0
    return sensitivity(rows, [_order(workspace, own) for _, own in rows.groupby("encoder", sort=False)], neutral)


def _order(workspace: Workspace, rows: pd.DataFrame) -> Order:
    if not (rows["paper"] == "measured").all():
        return order_by_value(dict(zip(rows["model"], rows["value"], strict=True)))
    runs = list(workspace.runs_of(list(rows["run_id"])).values())
    return order_of(ranking(workspace, runs, rows["metric"].iloc[0], rows["direction"].iloc[0]))


def sensitivity_alike(workspace: Workspace, found: Sequence[Comparison], chosen: Comparison) -> Sensitivity | None:
    """What every attacker that measured as `chosen` did says of its captioners; None where there is one attacker."""
    if len({item.attacker for item in found if _protocol(item) == _protocol(chosen)}) < LEAST_ENCODERS:
        return None
    return sensitivity_of(workspace, measured_alike(workspace, found, chosen), len(chosen.attribute.values))


def measured_alike(workspace: Workspace, found: Sequence[Comparison], chosen: Comparison) -> pd.DataFrame:
    """Rows of the answering metric of everything that was measured as `chosen`, with whichever attacker that learnt.

    Of each captioner and attacker the run with most seeds, that of `chosen` before others.
    """
    alike = [item for item in found if _protocol(item) == _protocol(chosen)]
    first = sorted(alike, key=lambda item: (item.attacker == chosen.attacker and item != chosen, -item.seeds))
    runs = {(run.spec.model, item.attacker): run.run_id for item in reversed(first) for run in item.runs}
    rows = workspace.results(list(runs.values()))
    rows = rows[learned(rows, {chosen.attribute.name: len(chosen.attribute.values)})]
    return rows[rows["metric"] == chosen.metric].reset_index(drop=True)


def _protocol(item: Comparison) -> tuple:
    """What must be the same for two encoders' numbers to be compared."""
    spec = item.runs[0].spec
    return item.attribute, spec.labels, item.coverage, item.references, item.alignment, spec.merge_masks


@dataclass(frozen=True)
class Sweep:
    """The runs of several encoders, each once, and why others cannot be had (by encoder)."""

    specs: list[RunSpec]
    refused: dict[str, CapbiasError]


def plan_sweep(workspace: Workspace, request: Request, attackers: Sequence[str]) -> Sweep:
    """Plan a request once for each attacker; what one lacks keeps no other from running.

    Raises the CapbiasError of the first where none can be had.
    """
    specs: dict[str, RunSpec] = {}
    refused: dict[str, CapbiasError] = {}
    for name in dict.fromkeys(attackers):
        try:
            found = plan(workspace, replace(request, attacker=name))
        except CapbiasError as error:
            refused[name] = error
            continue
        specs |= {spec.run_id: spec for spec in found}
    if refused and not specs:
        raise next(iter(refused.values()))
    return Sweep(list(specs.values()), refused)
