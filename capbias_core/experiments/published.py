"""Printed figures beside a workspace's own: which measured value belongs to which printed one, what it decides."""

from __future__ import annotations

import pandas as pd

from capbias_core.aggregate.consistency import name_key
from capbias_core.experiments import gender_score_names
from capbias_core.experiments.families.looking import UNMASKED as NOT_MASKED
from capbias_core.experiments.plan import JUDGE
from capbias_core.experiments.read import current_runs, object_rows
from capbias_core.experiments.store import Workspace
from capbias_core.metrics import METRICS, run_family

PAPERS = {
    "lic": "LIC (Hirota et al., 2022)",
    "repro": "Reproducibility study of LIC (Baratov et al., 2023)",
    "dbac": "DBAC",
    "imgcap2": "ImageCaptioner² (Abdelrahman et al., 2024)",
    "genderscore": "Gender Score (Sabir and Padró, 2023)",
}
# Metrics that a paper measures by another protocol than the one that has this name here.
# The Gender Score paper's all: other images (the Karpathy test split), objects by a classifier, other captioners.
# ImageCaptioner2's too (see `_of_judge`): sizes, learning rate and size of the pictures are not in the paper.
OTHER_PROTOCOL = {("dbac", name) for name in ("LIC", "LIC_M", "LIC_D", "LIC_H", "METEOR")}
# Metrics that a paper calls otherwise: leakage of aligned human captions, METEOR between those and the originals, the
# share of a map outside people.
OTHER_NAME = {
    ("dbac", "LIC_H"): "LIC_D",
    ("dbac", "METEOR"): "METEOR_aligned",
    ("dbac", "attribution_score_percent"): "attribution_score",
}
# Metrics for which constant alignment is what is measured without a condition.
CONSTANT = {("dbac", name): "constant" for name in ("LIC_H", "DBAC_H")}
# Metrics that a paper measured under this alignment where its table does not say one.
ALIGNED = {("dbac", "DBAC"): "contextual_glove"}
# Directions that the text says and the tables do not.
DIRECTION = {("dbac", "DBAC_H"): "A->T"}
# Table 2 of ImageCaptioner2: three scores of one judge.
ONE_JUDGE = "scoring_function_ablation"
OF_ONE_JUDGE = {"LIC": "imagecaptioner2_lic", "leakage_score": "imagecaptioner2_leakage"}
# Printed conditions of ImageCaptioner2 -> what the name of the photographs that a judge saw must hold; '' is any.
MASKED_BY = {"": "", ONE_JUDGE: "", "gt_masks": "segment", "yolox": "box"}
WITH_REFERENCES = "with_references"
UNMASKED = "original"

YES, NO, NOT_MEASURED = "yes", "no", "not measured"
NOTHING = "decides nothing"
MEASURED = ("encoder", "condition", "value", "ci_low", "ci_high", "spread", "seeds", "n", "run_id")
KEYS = ("model", "attribute", "metric", "direction", "condition")


def measured_rows(workspace: Workspace, collection: str) -> pd.DataFrame:
    """What a collection's finished runs measured, in RESULT_COLUMNS: of equal ones that with most seeds, then the
    newest.

    Runs that merged masks are left out, since the papers mask word by word.
    """
    runs = [run for run in current_runs(workspace, collection) if not run.spec.get("merge_masks")]
    rows = workspace.results([run.run_id for run in runs])
    of_objects = [object_rows(workspace, run) for run in runs]
    of_objects = [own[own["condition"].isin(gender_score_names.OBJECTS)] for own in of_objects if len(own)]
    rows = pd.concat([rows, *of_objects], ignore_index=True)
    newest = {run.run_id: place for place, run in enumerate(runs)}
    rows = rows.assign(place=rows["run_id"].map(newest)).sort_values(["seeds", "place"], ascending=[False, True])
    return rows.drop_duplicates([*KEYS, "encoder"]).drop(columns="place").sort_index().reset_index(drop=True)


def beside_measured(printed: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Printed rows, each with the measured values of the same thing beside it; one row a pair, or one without.

    Same: attribute, metric and direction, the captioner by name (see `name_key`), and the condition, where `original`
    (and for LIC_H and DBAC_H `constant`) is none and LIC with references for a part of the images stands beside LIC.
    Where a value of the printed encoder
    and condition was measured, others are left out. Further columns: captioner, measured_encoder, measured_condition,
    measured_value, measured_ci_low.. (in the printed row's scale), and holds: whether the measured 95% interval holds
    the printed value, `yes` or `no`, or why that is not decided.
    """
    by_key: dict[tuple, list[dict]] = {}
    for row in measured[measured["value"].notna()].to_dict("records"):
        by_key.setdefault(_key(row), []).append(row)
    pairs = [_pair(row, own) for row in printed.to_dict("records") for own in _candidates(row, by_key)]
    columns = [*printed.columns, "captioner", *(f"measured_{name}" for name in MEASURED), "holds"]
    return pd.DataFrame(pairs, columns=columns)


def fullest_table(printed: pd.DataFrame, measured: pd.DataFrame) -> tuple[str, str]:
    """Paper and table beside whose numbers most measured values stand, each counted once; else the first."""
    beside = beside_measured(printed, measured)
    own = beside[["paper", "table", *(f"measured_{name}" for name in ("run_id", "condition", "value")), "metric"]]
    counts = own.drop_duplicates().groupby(["paper", "table"], sort=False)["measured_value"].count()
    return counts.idxmax()


def _key(row: dict) -> tuple:
    named = row["paper"], row["metric"]
    if row["paper"] == gender_score_names.PAPER:
        metric, direction, _ = gender_score_names.printed_as(row)
        return tuple(map(name_key, (row["model"], row["attribute"], metric, direction)))
    metric, direction = OTHER_NAME.get(named, row["metric"]), row["direction"] or DIRECTION.get(named, "")
    if row["condition"] == ONE_JUDGE:
        metric = OF_ONE_JUDGE.get(metric, metric)
    return tuple(map(name_key, (row["model"], row["attribute"], metric, direction)))


def _candidates(row: dict, by_key: dict[tuple, list[dict]]) -> list[dict | None]:
    """Measured rows of the same thing: those that decide where there are any, else the others, else None."""
    alike = [own for own in by_key.get(_key(row), ()) if _conditions_meet(row, own)]
    exact = [own for own in alike if _condition(own) == _condition(row)] or alike
    same = [own for own in exact if _same_encoder(row, own)]
    return same or [own for own in alike if _same_encoder(row, own)] or exact or [None]


def _condition(row: dict) -> str:
    if row["paper"] == gender_score_names.PAPER:
        return name_key(gender_score_names.printed_as(row)[2])
    named = row["paper"], row["metric"]
    condition = row["condition"] or ALIGNED.get(named, "")
    return "" if condition in (UNMASKED, CONSTANT.get(named)) else name_key(condition)


def _of_judge(own: dict) -> bool:
    """Whether a judge that sees the photographs measured this."""
    return own["metric"] in METRICS and run_family(own["metric"]) == JUDGE


def _conditions_meet(row: dict, own: dict) -> bool:
    if _of_judge(own):
        masks = own["condition"].removesuffix(WITH_REFERENCES).strip("; ")
        wanted = MASKED_BY.get(row["condition"])
        return wanted is not None and wanted in masks and masks != NOT_MASKED
    named = (_condition(row), _condition(row) if row["condition"] else "")
    return _condition(own) in [condition + part for condition in named for part in ("", name_key(WITH_REFERENCES))]


def _same_encoder(row: dict, own: dict) -> bool:
    return name_key(row["encoder"]) == name_key(own["encoder"])


def _pair(row: dict, own: dict | None) -> dict:
    if own is None:
        return row | {"captioner": "", "holds": NOT_MEASURED}
    factor = row["scale"] / own["scale"]
    scaled = {name: own[name] * factor for name in ("value", "ci_low", "ci_high", "spread")}
    beside = {f"measured_{name}": scaled.get(name, own[name]) for name in MEASURED}
    return row | beside | {"captioner": own["model"], "holds": _holds(row, own, scaled)}


def _holds(row: dict, own: dict, scaled: dict) -> str:
    if not _same_encoder(row, own):
        return f"another encoder, {NOTHING}"
    if _of_judge(own):
        return f"another protocol, {NOTHING}"
    if _condition(own) != _condition(row):
        part = _condition(own) == _condition(row) + name_key(WITH_REFERENCES)
        return f"{'part of the images' if part else 'another alignment'}, {NOTHING}"
    if (row["paper"], row["metric"]) in OTHER_PROTOCOL or row["paper"] == gender_score_names.PAPER:
        return f"another protocol, {NOTHING}"
    if pd.isna(scaled["ci_low"]):
        return f"no interval, {NOTHING}"
    return YES if scaled["ci_low"] <= row["value"] <= scaled["ci_high"] else NO
