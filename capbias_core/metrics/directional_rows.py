"""Rows of the metrics with two directions: Multi, DPA and DBAC."""

from __future__ import annotations

from capbias_core.metrics.base import Metric, no_neutral
from capbias_core.metrics.dbac import dbac, pair_weight, pattern_weight
from capbias_core.metrics.multi_attribute import value_to_combination, variance_of_values
from capbias_core.metrics.predictability import predictability

_DBAC = "DBAC (directional bias amplification in captioning), Eq. 5-8, after Wang & Russakovsky, ICML 2021"

DIRECTIONAL_ROWS = (
    Metric(
        "Multi", "Multi, change of combinations of objects", "combinations", 100, lambda k: 0.0, "lower", (0, 100),
        "Zhao et al., ICML 2023 (Multi->), Eq. 3-4", function=value_to_combination,
        explanation="Mean size of the change from the human captions, over values and objects or pairs of objects. "
        "It does not tell more bias from less, and chance alone keeps it above 0.",
    ),
    Metric(
        "Multi_variance", "Multi_variance, whether few pairs carry the change", "combinations", 10_000,
        lambda k: 0.0, "lower", (0, 10_000), "Zhao et al., ICML 2023 (Multi->)", function=variance_of_values,
        explanation="Variance of the changes toward more bias: high where few values and objects carry them.",
    ),
    Metric(
        "DPA", "DPA, predictability of labels", "predictability", 100, lambda k: 0.0, "lower", (-100, 100),
        "Tokas et al., NeurIPS 2025; range as in DBAC", function=predictability,
        explanation="How much better than in the human captions a model guesses which objects are named from the "
        "labelled value (A->T), or which value from the objects on the image (T->A). Words beside these are not "
        "seen. The human side is made as unlike itself as the model is unlike it, which takes people's word for "
        "the truth: two people who each err a little also come out above 0.",
    ),
    Metric(
        "DPA_M", "DPA's quality on the model's captions", "predictability", 1, no_neutral, "lower",
        (0, float("inf")), "Tokas et al., NeurIPS 2025", function=predictability,
        explanation="1 / cross-entropy of the guesses from the model's captions.",
    ),
    Metric(
        "DPA_H", "DPA's quality on the human captions", "predictability", 1, no_neutral, "lower",
        (0, float("inf")), "Tokas et al., NeurIPS 2025", function=predictability,
        explanation="The same on the human captions, made as unlike the labels as the model's are.",
    ),
    Metric(
        "DBAC", "DBAC, its equations, Q = 1 / cross-entropy", "dbac", 100, lambda k: 0.0, "lower", (-100, 100),
        _DBAC, function=dbac,
        explanation="The paper's equations with Q = 1 / cross-entropy. Above 0: the model's captions tie value and "
        "task words together more than the human ones do. A->T also rises where a model names objects more often.",
    ),
    Metric(
        "DBAC_accuracy", "DBAC, its equations, Q = accuracy", "dbac", 100, lambda k: 0.0, "lower", (-100, 100),
        _DBAC, function=dbac,
        explanation="The paper's equations with Q = accuracy.",
    ),
    Metric(
        "DBAC_code", "DBAC, the authors' code", "dbac", 100, lambda k: 0.0, "lower", (-100, 100),
        _DBAC, function=dbac,
        explanation="As the authors' code reads it: probability of the truth times the share of the pattern "
        "of task words, caption by caption.",
    ),
    Metric(
        "DBAC_M", "w_M of DBAC, its equations, Q = 1 / cross-entropy", "dbac", 1, no_neutral, "lower",
        (0, float("inf")), _DBAC, function=pair_weight,
        explanation="w of the model's captions.",
    ),
    Metric(
        "DBAC_H", "w_H of DBAC, its equations, Q = 1 / cross-entropy", "dbac", 1, no_neutral, "lower",
        (0, float("inf")), _DBAC, function=pair_weight,
        explanation="w of the human captions.",
    ),
    Metric(
        "DBAC_accuracy_M", "w_M of DBAC, its equations, Q = accuracy", "dbac", 1, no_neutral, "lower",
        (0, float("inf")), _DBAC, function=pair_weight,
        explanation="w of the model's captions.",
    ),
    Metric(
        "DBAC_accuracy_H", "w_H of DBAC, its equations, Q = accuracy", "dbac", 1, no_neutral, "lower",
        (0, float("inf")), _DBAC, function=pair_weight,
        explanation="w of the human captions.",
    ),
    Metric(
        "DBAC_code_M", "w_M of DBAC, the authors' code", "dbac", 1, no_neutral, "lower",
        (0, float("inf")), _DBAC, function=pattern_weight,
        explanation="w of the model's captions.",
    ),
    Metric(
        "DBAC_code_H", "w_H of DBAC, the authors' code", "dbac", 1, no_neutral, "lower",
        (0, float("inf")), _DBAC, function=pattern_weight,
        explanation="w of the human captions.",
    ),
)  # fmt: skip

DIRECTIONAL_FAMILIES = {
    "multi": ("Multi", "Multi_variance"),
    "dpa": ("DPA", "DPA_M", "DPA_H"),
    "dbac": ("DBAC", "DBAC_M", "DBAC_H"),
    "dbac_accuracy": ("DBAC_accuracy", "DBAC_accuracy_M", "DBAC_accuracy_H"),
    "dbac_code": ("DBAC_code", "DBAC_code_M", "DBAC_code_H"),
}
