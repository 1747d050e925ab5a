"""What the Gender Score paper's printed rows are called here: its tables name values and scores in other columns."""

from __future__ import annotations

from capbias_core.measures.base import NEUTRAL

PAPER = "genderscore"
VALUES = {"m": "Male", "man": "Male", "w": "Female", "woman": "Female", "person": NEUTRAL}
OF_WORDS = ("word2vec", "glove", "fasttext", "gn_glove")
# The condition of a ratio or a count in Tables 3 and 6 -> the metric here, without its ending.
SCORES = {"gender_score_estimation": "estimation", "gpt2_initial_bias": "language_model", "bert_mlm": "masked_model"}


def printed_as(row: dict) -> tuple[str, str, str]:
    """Metric, direction and object, as measured rows have them, of a printed row that has a counterpart.

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
        return _of_kind(kind, SCORES.get(score, score)), VALUES[value], ""
    if condition.startswith("to_"):
        letter, _, thing = condition.removeprefix("to_").partition(" ")
        return "weighted_cooccurrence" if metric == "gender_score" else metric, VALUES[letter], thing
    name = _distance(row["encoder"]) if metric == "gender_object_distance" else metric
    who, _, thing = condition.partition(" ")
    return name, VALUES[who], thing


def _distance(encoder: str) -> str:
    return "word_object_distance" if encoder in OF_WORDS else "gender_object_distance"


def _of_kind(kind: str, score: str) -> str:
    if kind == "leakage":
        return "naming_ratio"
    if kind == "ratio":
        return f"{score}_to_neutral"
    if kind == "count":
        return f"{score}_count"
    return score if score == "object_gender_cooccurrence" else f"{score}_ratio"
