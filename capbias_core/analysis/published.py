"""Printed figures beside a workspace's own: which measured value belongs to which printed one, what it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from capbias_core.aggregate.comparison import name_key
from capbias_core.analysis.printed import ONE_JUDGE, as_measured, no_counterpart, other_protocol, printed_objects
from capbias_core.analysis.read import (
    current_runs,
    known_results,
    object_rows,
    references_read,
    runs_against,
    runs_with,
    tables_read,
)
from capbias_core.measures.image_judge import UNMASKED
from capbias_core.measures.registry import METRICS, measure_of
from capbias_core.types import ORIGIN_COLUMNS
from capbias_core.workspace.conditions import ORIGINAL, condition_of
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.vectors import CONSTANT

PAPERS = {
    "lic": "LIC (Hirota et al., 2022)",
    "repro": "Reproducibility study of LIC (Baratov et al., 2023)",
    "dbac": "DBAC",
    "imgcap2": "ImageCaptioner² (Abdelrahman et al., 2024)",
    "genderscore": "Gender Score (Sabir and Padró, 2023)",
}
# Printed conditions of ImageCaptioner2 -> what the name of the photographs that a judge saw must hold; '' is any.
MASKED_BY = {"": "", ONE_JUDGE: "", "gt_masks": "segment", "yolox": "box"}

YES, NO, NOT_MEASURED = "yes", "no", "not measured"
NOTHING = "not comparable"
NONE_HERE = "no counterpart"
MEASURED = ("metric", "encoder", *ORIGIN_COLUMNS, "value", "ci_low", "ci_high", "spread", "seeds", "n", "run_id")
KEYS = ("model", "attribute", "metric", "direction", *ORIGIN_COLUMNS)


def measured_rows(
    workspace: Workspace,
    collection: str,
    labels: Mapping[str, Item] | None = None,
    references: Mapping[str, Item] | None = None,
) -> pd.DataFrame:
    """What a collection's finished runs measured, in RESULT_COLUMNS: of equal ones that with most seeds, then the
    newest.

    labels: the attributes, each with the table of labels by which runs count (default: all, as `tables_read` says).
    references: the attributes, each with the human captions that runs compare with (default: as `references_read`
    says; runs that compare with none always count). Runs that merged masks are left out, since the papers mask word by
    word. Further columns: captioner and masked, who wrote the captions of a set and what was masked of its photographs.
    """
    read = tables_read(workspace, collection) if labels is None else labels
    human = references_read(workspace, collection) if references is None else references
    found = runs_against(runs_with(current_runs(workspace, collection), read), human)
    runs = [run for run in found if not run.spec.merge_masks]
    rows = known_results(workspace, [run.run_id for run in runs])
    of_objects = [object_rows(workspace, run) for run in runs]
    of_objects = [own[own["object"].isin(printed_objects())] for own in of_objects if len(own)]
    rows = pd.concat([rows, *of_objects], ignore_index=True)
    best_first = sorted(runs, key=lambda run: -len(run.spec.seeds))
    place = {run.run_id: place for place, run in enumerate(best_first)}
    rows = rows.assign(place=rows["run_id"].map(place)).sort_values("place", kind="stable")
    rows = rows.drop_duplicates([*KEYS, "encoder"]).drop(columns="place").sort_index().reset_index(drop=True)
    known = {item.name: condition_of(item) for item in workspace.items("captions", collection)}
    whose = [known.get(name, (name, ORIGINAL)) for name in rows["model"]]
    return rows.assign(captioner=[name for name, _ in whose], masked=[condition for _, condition in whose])


def of_originals(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of `measured_rows` by which captioners are compared: of photographs that nothing is masked on."""
    return measured[measured["masked"] == ORIGINAL]


def beside_measured(printed: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Printed rows, each with the measured values of the same thing beside it; one row a pair, or one without.

    Same: attribute, metric and direction as printed.py translates them, what is masked of the photographs, the
    captioner by name (see `name_key`), the object and the alignment, where LIC on a part of the images stands beside
    LIC. Where a value of the printed encoder, alignment and all images was measured, others are left out. Further
    columns: captioner, measured_metric, measured_encoder, measured_coverage.., measured_value, measured_ci_low.. (in
    the printed row's scale), holds: whether the measured 95% interval contains the printed value, `yes` or `no`, or
    why that is not decided, and reason: why nothing measured here can stand beside it.
    """
    by_key: dict[tuple, list[dict]] = {}
    for row in measured[measured["value"].notna()].to_dict("records"):
        for key in _keys(row):
            by_key.setdefault(key, []).append(row)
    pairs = [_pair(row, own) for row in printed.to_dict("records") for own in _beside(row, by_key)]
    columns = [*printed.columns, "captioner", *(f"measured_{name}" for name in MEASURED), "holds", "reason"]
    return pd.DataFrame(pairs, columns=columns)


def _beside(row: dict, by_key: dict[tuple, list[dict]]) -> Sequence[dict | None]:
    return [None] if no_counterpart(row) else _candidates(as_measured(row), by_key)


def fullest_table(printed: pd.DataFrame, measured: pd.DataFrame) -> tuple[str, str]:
    """Paper and table beside whose numbers most measured values stand, each counted once; else the first."""
    beside = beside_measured(printed, measured)
    own = beside[["paper", "table", *(f"measured_{name}" for name in ("run_id", *ORIGIN_COLUMNS, "value")), "metric"]]
    counts = own.drop_duplicates().groupby(["paper", "table"], sort=False)["measured_value"].count()
    return counts.idxmax()


def _key(row: dict, model: str) -> tuple:
    named = (model, row["attribute"], row["metric"], row["direction"], row.get("masked", ORIGINAL))
    return tuple(map(name_key, named))


def _keys(own: dict) -> set[tuple]:
    """How a measured row may be found: by its captioner, and where nothing is masked by the name of its set too."""
    names = {own.get("captioner", own["model"])}
    if own.get("masked", ORIGINAL) == ORIGINAL:
        names.add(own["model"])
    return {_key(own, name) for name in names}


def _candidates(row: dict, by_key: dict[tuple, list[dict]]) -> Sequence[dict | None]:
    """Measured rows of the same thing: those that decide where there are any, else the others, else None.

    row: as measured rows are named (see printed.py).
    """
    alike = [own for own in by_key.get(_key(row, row["model"]), ()) if _meet(row, own)]
    exact = [own for own in alike if _alignment(own) == _alignment(row) and not own["coverage"]] or alike
    same = [own for own in exact if _same_encoder(row, own)]
    return same or [own for own in alike if _same_encoder(row, own)] or exact or [None]


def _alignment(row: dict) -> str:
    """The alignment of a row, '' for constant."""
    alignment = row["alignment"] or row.get("aligned", "")
    return "" if alignment == CONSTANT else name_key(alignment)


def _of_judge(own: dict) -> bool:
    """Whether a judge that sees the photographs measured this: by another protocol than the paper's, which does not
    say its sizes, learning rate and size of the pictures."""
    return own["metric"] in METRICS and measure_of(own["metric"]).name == "imagecaptioner2"


def _meet(row: dict, own: dict) -> bool:
    """Whether a measured row is of the same object, alignment and photographs as a printed one, as far as that says."""
    if own["condition"] not in ("", ORIGINAL):
        return False
    if _of_judge(own):
        wanted = MASKED_BY.get(row["condition"])
        return wanted is not None and wanted in own["photographs"] and own["photographs"] != UNMASKED
    stated = "" if row["alignment"] == CONSTANT else name_key(row["alignment"])
    if own["group"]:  # papers print whole sets
        return False
    return own["object"] == row["object"] and _alignment(own) in (_alignment(row), stated)


def _same_encoder(row: dict, own: dict) -> bool:
    return name_key(row["encoder"]) == name_key(own["encoder"])


def _pair(row: dict, own: dict | None) -> dict:
    if own is None:
        reason = no_counterpart(row)
        return row | {"captioner": "", "holds": NONE_HERE if reason else NOT_MEASURED, "reason": reason}
    factor = row["scale"] / own["scale"]
    scaled = {name: own[name] * factor for name in ("value", "ci_low", "ci_high", "spread")}
    beside = {f"measured_{name}": scaled.get(name, own[name]) for name in MEASURED}
    return row | beside | {"captioner": own["model"], "holds": _holds(row, own, scaled), "reason": ""}


def _holds(row: dict, own: dict, scaled: dict) -> str:
    printed, row = row, as_measured(row)
    if not _same_encoder(row, own):
        return f"another encoder, {NOTHING}"
    if _of_judge(own):
        return f"another protocol, {NOTHING}"
    if _alignment(own) != _alignment(row):
        return f"another alignment, {NOTHING}"
    if own["coverage"]:
        return f"part of the images, {NOTHING}"
    if other_protocol(printed):
        return f"another protocol, {NOTHING}"
    if pd.isna(scaled["ci_low"]):
        return f"no interval, {NOTHING}"
    return YES if scaled["ci_low"] <= row["value"] <= scaled["ci_high"] else NO
