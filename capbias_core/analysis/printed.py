"""What the papers' printed rows are called here, and which of them nothing that is measured here stands beside.

A row pairs with a measured one only where both are the same quantity; names, directions and conditions may differ.
"""

from __future__ import annotations

from functools import cache

import pandas as pd

from capbias_core.analysis import gender_score_names
from capbias_core.load.published import published_results
from capbias_core.types import T_TO_A
from capbias_core.workspace.conditions import ORIGINAL, suggested_condition
from capbias_core.workspace.vectors import CONSTANT

# Metrics that a paper calls otherwise: leakage of aligned human captions, METEOR between those and the originals, the
# share of a map outside people; and DBAC's BA, which is BA→ from T to A (Wang & Russakovsky), DBA_G here, and not the
# BA of Zhao et al. that LIC measures.
OTHER_NAME = {
    ("dbac", "LIC_H"): "LIC_D",
    ("dbac", "METEOR"): "METEOR_aligned",
    ("dbac", "attribution_score_percent"): "attribution_score",
    ("dbac", "BA"): "DBA_G",
}
# The tables of values by what is masked on the photographs, by paper.
BY_CONDITION = {"lic": "4", "dbac": "4"}
# Metrics whose name here says the direction that is printed beside another name.
NAMES_DIRECTION = "DBA_G"
# Directions that the text says and the tables do not.
DIRECTION = {("dbac", "DBAC_H"): "A->T"}
# Encoders that the text says and the tables do not: DBAC's appendix B, and ImageCaptioner2's Table 4, of which Table 3
# repeats the first column.
ENCODER = {("dbac", "DBAC_H"): "lstm", ("dbac", "LIC_H"): "lstm", ("imgcap2", "LIC"): "lstm_bi"}
# Metrics that a paper measured under this alignment where its table does not say one.
ALIGNED = {("dbac", "DBAC"): "contextual_glove"}
# Table 2 of ImageCaptioner2: three scores of one judge.
ONE_JUDGE = "scoring_function_ablation"
OF_ONE_JUDGE = {"LIC": "imagecaptioner2_lic", "leakage_score": "imagecaptioner2_leakage"}
# Metrics that a paper measures by another protocol than the one that has this name here. DBAC does not say which tasks
# its BA→ and DPA are of, nor what guesses them.
# The Gender Score paper's all: other images (the Karpathy test split), objects by a classifier, other captioners.
OTHER_PROTOCOL = {("dbac", name) for name in ("LIC", "LIC_M", "LIC_D", "LIC_H", "METEOR", "BA", "DPA")}

# Why there is no comparable result: paper, what column says it, how the cell begins, and the reason.
NO_COUNTERPART = (
    ("dbac", "metric", "CV_", "it compares encoders: the Encoders page gives it of measured scores"),
    ("dbac", "condition", "verb_imbalance", "captions made up for it: `score --view known-answer` scores such sets"),
    ("dbac", "model", "average", "a mean over the paper's captioners"),
    ("repro", "metric", "training_gpu_hours", "hours of training, no score"),
    (
        "imgcap2",
        "condition",
        "anonymous_bench",
        "on AnonymousBench, whose photographs nobody can label: `score --view anonymous-bench` compares captioners",
    ),
    ("imgcap2", "condition", "mask_rcnn", "people found by a detector of outlines; here by COCO's, or boxes by a YOLO"),
    ("genderscore", "metric", "object_rank", "it ranks the objects nearest to a word and prints no score"),
    ("genderscore", "model", "twitter", "texts without images: `capbias score --view text` measures these"),
)
# What is of the value that captions name.
OF_NAMED = {("BA", T_TO_A), ("DPA", T_TO_A)}
UNNAMED = "captions do not name skin, so that nothing can tell its value from them"


def as_measured(row: dict) -> dict:
    """A printed row with metric, direction, encoder, alignment and object as measured rows have them.

    Further keys: `masked`, the condition of the photographs (a value of CONDITIONS), and `aligned`, the alignment if
    the paper says it elsewhere.

    >>> row = {"paper": "dbac", "metric": "BA", "direction": "T->A", "condition": "partial_masked", "encoder": ""}
    >>> own = as_measured(row)
    >>> own["metric"], own["direction"], own["masked"], own["alignment"]
    ('DBA_G', '', 'part', '')
    """
    if row["paper"] == gender_score_names.PAPER:
        metric, direction, thing = gender_score_names.printed_as(row)
        found = {"metric": metric, "direction": direction, "object": thing, "alignment": ""}
        return row | found | {"masked": ORIGINAL, "aligned": ""}
    named = row["paper"], row["metric"]
    metric, condition = OTHER_NAME.get(named) or row["metric"], row["condition"]
    if condition == ONE_JUDGE:
        metric = OF_ONE_JUDGE.get(metric, metric)
    masked = suggested_condition(condition)[1]
    alignment = condition if condition == CONSTANT or condition.startswith("contextual") else ""
    return row | {
        "metric": metric,
        "alignment": alignment,
        "object": "",
        "masked": masked,
        "direction": "" if metric == NAMES_DIRECTION else row["direction"] or DIRECTION.get(named, ""),
        "encoder": row["encoder"] or ENCODER.get(named, ""),
        "aligned": ALIGNED.get(named, "") if not alignment else "",
    }


def printed_conditions(published: pd.DataFrame, attribute: str) -> pd.DataFrame:
    """The papers' values by condition (LIC's Table 4, DBAC's Table 4): the published columns, metric and direction as
    measured rows have them, and `masked`."""
    own = published[published["table"] == published["paper"].map(BY_CONDITION)]
    own = own[(own["attribute"] == attribute) & (own["condition"] != "")]
    named = [as_measured(row) for row in own.to_dict("records")]
    ours = {name: [row[name] for row in named] for name in ("metric", "direction", "masked")}
    return own.assign(**ours).reset_index(drop=True)


def no_counterpart(row: dict) -> str:
    """Why nothing that is measured here is the same as a printed row, '' where something is.

    >>> no_counterpart({"paper": "repro", "metric": "training_gpu_hours", "model": "human"})
    'hours of training, no score'
    """
    for paper, column, begins, reason in NO_COUNTERPART:
        if row["paper"] == paper and row[column].startswith(begins):
            return reason
    return UNNAMED if row["attribute"] == "race" and (row["metric"], row["direction"]) in OF_NAMED else ""


@cache
def printed_objects() -> frozenset[str]:
    """The objects that a paper prints values for."""
    rows = published_results().to_dict("records")
    return frozenset(as_measured(row)["object"] for row in rows if not no_counterpart(row)) - {""}


def other_protocol(row: dict) -> bool:
    """Whether the paper measured a printed row in another way than what has its name here.

    DBAC's race has three values, light, dark and unsure.
    """
    if row["paper"] == gender_score_names.PAPER or (row["paper"], row["metric"]) in OTHER_PROTOCOL:
        return True
    return row["paper"] == "dbac" and row["attribute"] == "race"
