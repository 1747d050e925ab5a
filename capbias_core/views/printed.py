"""Printed numbers of papers under the names of measured ones, and why some have no measured counterpart."""

from __future__ import annotations

from capbias_core.aggregate import NEUTRAL
from capbias_core.types import T_TO_A
from capbias_core.workspace.conditions import ORIGINAL, suggested_condition
from capbias_core.workspace.vectors import CONSTANT

GENDER_SCORE = "genderscore"
VALUES = {"m": "Male", "man": "Male", "w": "Female", "woman": "Female", "person": NEUTRAL}
OF_WORDS = ("word2vec", "glove", "fasttext", "gn_glove")
# The condition of a ratio or a count in Tables 3 and 6 -> the metric here, without its ending.
SCORES = {"gender_score_estimation": "estimation", "gpt2_initial_bias": "language_model", "bert_mlm": "masked_model"}


def printed_as(row: dict) -> tuple[str, str, str]:
    """Metric, direction and object of a printed row of the Gender Score paper, named as in measured rows.

    >>> printed_as({"metric": "ratio_to_m", "encoder": "", "condition": "bert_mlm"})
    ('masked_model_ratio', 'Male', '')
    >>> printed_as({"metric": "gender_score", "encoder": "", "condition": "to_w kitchen"})
    ('weighted_cooccurrence', 'Female', 'kitchen')
    >>> printed_as({"metric": "gender_score", "encoder": "", "condition": "man wine bottle"})
    ('gender_score', 'Male', 'wine bottle')
    """
    metric, condition = row["metric"], row["condition"]
    kind, _, value = metric.rpartition("_")
    if value in VALUES:
        score = condition or _distance(row["encoder"])
        score = SCORES.get(score, score)
        named = {"leakage": "naming_ratio", "ratio": f"{score}_to_neutral", "count": f"{score}_count"}
        usual = score if score == "object_gender_cooccurrence" else f"{score}_ratio"
        return named.get(kind, usual), VALUES[value], ""
    if condition.startswith("to_"):
        letter, _, thing = condition.removeprefix("to_").partition(" ")
        return "weighted_cooccurrence" if metric == "gender_score" else metric, VALUES[letter], thing
    name = _distance(row["encoder"]) if metric == "gender_object_distance" else metric
    who, _, thing = condition.partition(" ")
    return name, VALUES[who], thing


def _distance(encoder: str) -> str:
    return "word_object_distance" if encoder in OF_WORDS else "gender_object_distance"


# Metrics that a paper calls otherwise: leakage of aligned human captions, METEOR between those and the originals, the
# share of a map outside people; and DBAC's BA, which is BA→ from T to A (Wang & Russakovsky), DBA_G here, and not the
# BA of Zhao et al. that LIC measures.
OTHER_NAME = {
    ("dbac", "LIC_H"): "LIC_D",
    ("dbac", "METEOR"): "METEOR_aligned",
    ("dbac", "attribution_score_percent"): "attribution_score",
    ("dbac", "BA"): "DBA_G",
}
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

# DBAC's race: its values, what such an attribute is called here, and its test images (section 5).
UNSURE_VALUES, WITH_UNSURE, DBAC_TEST = {"dark", "light", "unsure"}, "race with unsure", 2156
# Captions with a label of gender in the LIC paper; a set of fewer than nine in ten of them is of other images.
LIC_CAPTIONS, MOST = 10_780, 0.9

# Why there is no comparable result: paper, what column says it, how the cell begins, and the reason.
NO_COUNTERPART = (
    ("dbac", "metric", "CV_", "it compares encoders: Scores, tab Encoder sensitivity, gives it of measured scores"),
    ("dbac", "condition", "verb_imbalance", "captions made up for it (examples/papers/dbac_controlled_sets.py)"),
    ("dbac", "model", "average", "a mean over the paper's captioners"),
    ("repro", "metric", "training_gpu_hours", "hours of training, no score"),
    (
        "imgcap2",
        "condition",
        "anonymous_bench",
        "of photographs that nobody can label (examples/papers/imagecaptioner2_anonymousbench.py)",
    ),
    ("imgcap2", "condition", "mask_rcnn", "people found by a detector of outlines; here by COCO's, or boxes by a YOLO"),
    ("genderscore", "metric", "object_rank", "it ranks the objects nearest to a word and prints no score"),
    ("genderscore", "model", "twitter", "texts without images (examples/papers/gender_score_twitter.py)"),
)
# What is of the value that captions name.
OF_NAMED = {("BA", T_TO_A), ("DPA", T_TO_A)}
UNNAMED = "captions do not name skin, so that nothing can tell its value from them"


def as_measured(row: dict) -> dict:
    """A printed row with metric, direction, encoder, alignment and object named as in measured rows.

    Further keys: `masked`, the condition of the photographs (a value of CONDITIONS), and `aligned`, an alignment that
    the paper states outside its table.

    >>> row = {"paper": "dbac", "metric": "BA", "direction": "T->A", "condition": "partial_masked", "encoder": ""}
    >>> renamed = as_measured(row)
    >>> renamed["metric"], renamed["direction"], renamed["masked"], renamed["alignment"]
    ('DBA_G', '', 'part', '')
    """
    if row["paper"] == GENDER_SCORE:
        metric, direction, thing = printed_as(row)
        of_series = {"metric": metric, "direction": direction, "object": thing, "alignment": ""}
        return row | of_series | {"masked": ORIGINAL, "aligned": ""}
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


def no_counterpart(row: dict) -> str:
    """Why nothing that is measured here is the same as a printed row, '' where something is.

    >>> no_counterpart({"paper": "repro", "metric": "training_gpu_hours", "model": "human"})
    'hours of training, no score'
    """
    for paper, column, begins, reason in NO_COUNTERPART:
        if row["paper"] == paper and row[column].startswith(begins):
            return reason
    return UNNAMED if row["attribute"] == "race" and (row["metric"], row["direction"]) in OF_NAMED else ""
