"""The rows of METRICS for objects and the values that go with them (the Gender Score paper)."""

from __future__ import annotations

from capbias_core.metrics.base import Metric
from capbias_core.metrics.bias_ratio import bias_ratio
from capbias_core.metrics.estimation import chosen
from capbias_core.metrics.gender_score import gender_score
from capbias_core.metrics.naming_ratio import naming_ratio
from capbias_core.metrics.neutral_ratio import neutral_ratio
from capbias_core.metrics.object_distance import object_distance

PAPER = "Sabir and Padró, Findings of EMNLP 2023"
WITHOUT_LIMIT = (0, float("inf"))
EACH = "One number for each value, and one for the neutral word."

# A score of each value: its name, title, family of runs, function and range, and what it is.
SCORES = (
    (
        "gender_score",
        "Gender Score",
        "gender_score",
        gender_score,
        (0, 1),
        "Mean token probability of the caption with the value's words, raised where caption and object are close in "
        "meaning. Averaged over captions and their objects.",
    ),
    (
        "gender_object_distance",
        "Gender Object Distance",
        "object_distance",
        object_distance,
        (-1, 1),
        "Cosine (closeness, though the paper says distance) of the caption with the value's words and the object, "
        "under a sentence encoder. Averaged over captions and their objects.",
    ),
    (
        "word_object_distance",
        "Gender Object Distance of words",
        "word_distance",
        object_distance,
        (-1, 1),
        "Cosine of the value's word and the object's, in a file of word vectors. Averaged over captions and their "
        "objects.",
    ),
)

# Who estimates: name, title, family of runs, and by what.
ESTIMATORS = (
    ("estimation", "Gender estimation", "gender_score", "the Gender Score"),
    ("language_model", "estimation by the language model alone", "gender_score", "the language model, without objects"),
    ("masked_model", "estimation by a masked language model", "gender_score", "a masked language model"),
    ("object_gender_cooccurrence", "object-gender co-occurrence", "object_cooccurrence", ""),
)


def _score_rows(name, title, family, function, limits, explanation) -> list[Metric]:
    explanation = f"{explanation} {EACH}"
    source = f"{PAPER}, Eq. 3" if name == "gender_score" else f"{PAPER}, section 3"
    return [
        Metric(
            name, title, family, 1, lambda k: 0.0, "neutral", limits, source, function=function, explanation=explanation
        ),
        Metric(
            f"{name}_ratio",
            f"{title}, ratio to each value",
            family,
            1,
            lambda k: 1 / k,
            "neutral",
            (0, 1),
            f"{PAPER}, Eq. 1",
            function=bias_ratio,
            explanation="The value's score over the sum of all values' scores.",
        ),
        Metric(
            f"{name}_to_neutral",
            f"{title}, ratio to the neutral word",
            family,
            1,
            lambda k: 1.0,
            "neutral",
            WITHOUT_LIMIT,
            f"{PAPER}, Eq. 2",
            function=neutral_ratio,
            explanation="The value's score over that of the neutral word.",
        ),
    ]


def _estimator_rows(name, title, family, by) -> list[Metric]:
    what = (
        f"Captions whose variant with the value scores highest by {by}"
        if by
        else ("Captions that name the value (and no other) and an object")
    )
    source = f"{PAPER}, Tables 5 and 6" if by else f"Zhao et al., EMNLP 2017; {PAPER}, Tables 4 and 6"
    ratio_name = f"{name}_ratio" if by else name
    return [
        Metric(
            ratio_name,
            f"{title}, ratio to each value",
            family,
            1,
            lambda k: 1 / k,
            "neutral",
            (0, 1),
            source,
            function=bias_ratio,
            explanation=f"{what}, of those of all values.",
        ),
        Metric(
            f"{name}_count",
            f"{title}, captions",
            family,
            1,
            lambda k: 0.0,
            "neutral",
            WITHOUT_LIMIT,
            source,
            function=chosen,
            explanation=f"{what}: how many.",
        ),
    ]


GENDER_SCORE_ROWS = (
    *(row for of_score in SCORES for row in _score_rows(*of_score)),
    Metric(
        "weighted_cooccurrence",
        "co-occurrence weighted by the Gender Score",
        "gender_score",
        1,
        lambda k: 1 / k,
        "neutral",
        (0, 1),
        f"{PAPER}, Table 4",
        function=bias_ratio,
        explanation="Gender Scores of the captions that name the value, as written, of those of all values.",
    ),
    *(row for of_estimator in ESTIMATORS for row in _estimator_rows(*of_estimator)),
    Metric(
        "naming_ratio",
        "captions naming a value, over the human ones",
        "naming",
        1,
        lambda k: 1.0,
        "neutral",
        WITHOUT_LIMIT,
        f"{PAPER}, Table 3",
        function=naming_ratio,
        explanation="Captions that name the value, for each human caption of the same images that does. The paper "
        "calls it leakage; here leakage is an attacker's accuracy.",
    ),
)

# What a user asks for -> the rows that answer it.
GENDER_SCORE_FAMILIES = {
    "gs": ("gender_score", "gender_score_ratio", "gender_score_to_neutral", "weighted_cooccurrence"),
    "god": tuple(f"gender_object_distance{of}" for of in ("", "_ratio", "_to_neutral")),
    "word_god": tuple(f"word_object_distance{of}" for of in ("", "_ratio", "_to_neutral")),
    "estimation": tuple(f"{name}_{of}" for name, _, _, by in ESTIMATORS if by for of in ("ratio", "count")),
    "cooccurrence": ("object_gender_cooccurrence", "object_gender_cooccurrence_count"),
    "naming": ("naming_ratio",),
}
