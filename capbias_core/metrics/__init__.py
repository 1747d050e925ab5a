"""Metrics: pure functions from evidence to a quotient of sums. To add one: its file, and a row here."""

from __future__ import annotations

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.metrics.alignment_rows import ALIGNMENT_FAMILIES, ALIGNMENT_ROWS
from capbias_core.metrics.attribution_rows import ATTRIBUTION_FAMILIES, ATTRIBUTION_ROWS
from capbias_core.metrics.base import Cooccurrence, CooccurrenceCounts, HeldOut, Metric, Naming, Ratio
from capbias_core.metrics.bias_amplification import bias_amplification
from capbias_core.metrics.directional import object_to_value, value_to_object
from capbias_core.metrics.directional_rows import DIRECTIONAL_FAMILIES, DIRECTIONAL_ROWS
from capbias_core.metrics.error import error
from capbias_core.metrics.gender_score_rows import GENDER_SCORE_FAMILIES, GENDER_SCORE_ROWS
from capbias_core.metrics.judge_rows import JUDGE_FAMILIES, JUDGE_ROWS
from capbias_core.metrics.lic import lic
from capbias_core.metrics.quality_rows import QUALITY_FAMILIES, QUALITY_ROWS
from capbias_core.metrics.ratio import ratio
from capbias_core.metrics.sentence_classification import sentence_classification

__all__ = [
    "FAMILIES",
    "GUESSED",
    "METRICS",
    "Cooccurrence",
    "HeldOut",
    "Metric",
    "Naming",
    "Ratio",
    "CooccurrenceCounts",
    "expand_metrics",
    "metric",
    "run_family",
]

_LIC = "Hirota et al., CVPR 2022"

METRICS = {
    row.name: row
    for row in (
        Metric(
            "LIC",
            "LIC, bias amplification",
            "difference",
            100,
            lambda k: 0.0,
            "lower",
            (-100, 100),
            f"{_LIC}, Eq. 11",
            of="LIC_M",
            explanation="LIC_M minus LIC_D. Above 0: an attacker names the labelled value better, and more surely, "
            "from the model's masked captions than from the human ones.",
        ),
        Metric(
            "LIC_M",
            "LIC_M, leakage of the model's captions",
            "attack",
            100,
            lambda k: 100 / k**2,
            "lower",
            (0, 100),
            f"{_LIC}, Eq. 10",
            parts=lic,
            explanation="Mean confidence of the attacker where it is right, 0 where it is wrong, on the model's masked "
            "captions.",
        ),
        Metric(
            "LIC_D",
            "LIC_D, leakage of the human captions",
            "attack",
            100,
            lambda k: 100 / k**2,
            "lower",
            (0, 100),
            f"{_LIC}, Eq. 9",
            parts=lic,
            explanation="The same on the human captions, after words that the model never uses became <unk>.",
        ),
        Metric(
            "leakage",
            "leakage, difference of accuracies",
            "difference",
            100,
            lambda k: 0.0,
            "lower",
            (-100, 100),
            f"Wang et al., ICCV 2019; {_LIC}, Eq. 4",
            of="SC",
            explanation="SC of the model's captions minus SC of the human captions.",
        ),
        Metric(
            "SC",
            "SC, the attacker's accuracy",
            "attack",
            100,
            lambda k: 100 / k,
            "lower",
            (0, 100),
            f"Zhao et al., ICCV 2021; {_LIC}, Eq. 1",
            parts=sentence_classification,
            explanation="Share of the model's masked captions whose labelled value the attacker names.",
        ),
        Metric(
            "SC_D",
            "SC_D, accuracy on the human captions",
            "attack",
            100,
            lambda k: 100 / k,
            "lower",
            (0, 100),
            f"Zhao et al., ICCV 2021; {_LIC}, Eq. 1",
            parts=sentence_classification,
            explanation="The same accuracy on the human captions.",
        ),
        Metric(
            "ratio",
            "ratio of captions naming each value",
            "counting",
            1,
            lambda k: 1.0,
            "neutral",
            (0, float("inf")),
            f"Burns et al., ECCV 2018; {_LIC}, Table 1",
            parts=ratio,
            explanation="Captions that name only the second value (men, for gender) for each that names only the "
            "first. The labelled images need not be balanced.",
        ),
        Metric(
            "error",
            "error, wrong value named",
            "counting",
            100,
            lambda k: 0.0,
            "lower",
            (0, 100),
            f"Burns et al., ECCV 2018; {_LIC}, Table 1",
            parts=error,
            explanation="Captions whose only named value is not the labelled one, of all captions.",
        ),
        Metric(
            "BA",
            "BA, bias amplification of word pairs",
            "cooccurrence",
            100,
            lambda k: 0.0,
            "lower",
            (-100, 100),
            f"Zhao et al., EMNLP 2017; {_LIC}, Eq. 2-3",
            compare=bias_amplification,
            explanation="How much more often than in the human captions a word stands beside the value that it goes "
            "with there, averaged over the common words. It does not see that one value is commoner than the other.",
        ),
        Metric(
            "DBA_G",
            "DBA_G, objects to the named value",
            "cooccurrence",
            100,
            lambda k: 0.0,
            "lower",
            (-100, 100),
            f"Wang & Russakovsky, ICML 2021; {_LIC}, appendix A.2",
            compare=object_to_value,
            explanation="How much more than in the human captions the objects on the image go with the value that "
            "captions name.",
        ),
        Metric(
            "DBA_O",
            "DBA_O, the labelled value to named objects",
            "cooccurrence",
            100,
            lambda k: 0.0,
            "lower",
            (-100, 100),
            f"Wang & Russakovsky, ICML 2021; {_LIC}, appendix A.2",
            compare=value_to_object,
            explanation="How much more than in the human captions the labelled value goes with the objects that "
            "captions name.",
        ),
        *GENDER_SCORE_ROWS,
        *QUALITY_ROWS,
        *DIRECTIONAL_ROWS,
        *ALIGNMENT_ROWS,
        *JUDGE_ROWS,
        *ATTRIBUTION_ROWS,
    )
}

# Families of runs whose neutral point is what guessing gives: chance.
GUESSED = ("attack", "judge", "vl_lic")

# What a user asks for -> the rows that answer it.
FAMILIES = {
    "lic": ("LIC", "LIC_M", "LIC_D"),
    "leakage": ("leakage", "SC", "SC_D"),
    "sc": ("SC", "SC_D"),
    "ratio": ("ratio",),
    "error": ("error",),
    "ba": ("BA",),
    "dba": ("DBA_G", "DBA_O"),
    **ALIGNMENT_FAMILIES,
    **ATTRIBUTION_FAMILIES,
    **DIRECTIONAL_FAMILIES,
    **GENDER_SCORE_FAMILIES,
    **JUDGE_FAMILIES,
    **QUALITY_FAMILIES,
}


def metric(name: str) -> Metric:
    """The table row of a metric. Raises CapbiasError for an unknown name."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


def run_family(name: str) -> str:
    """The family of runs that gives a metric: of a difference, that of the metric which it is a difference of."""
    row = METRICS[name]
    return METRICS[row.of].family if row.of else row.family


def expand_metrics(asked) -> tuple[str, ...]:
    """Metric families ('lic' -> LIC, LIC_M, LIC_D) or exact names ('LIC_M') to metric names, each once."""
    known = {name: (name,) for name in METRICS} | FAMILIES
    names: list[str] = []
    for word in asked:
        found = known.get(word) or FAMILIES.get(word.lower())
        if found is None:
            raise unknown_name("metric", word, known)
        names += found
    if not names:
        raise CapbiasError("no metric", f"at least one of: {', '.join(FAMILIES)}", "Choose a metric.")
    return tuple(dict.fromkeys(names))
