"""Metrics: pure functions, arrays in, number out. What is said of each, and how runs use it, is in measures/.

`help` of each gives its formula, source, range, direction and an example. Arguments that cannot be meant, such as a
label that is no place of a value, raise CapbiasError.
"""

from __future__ import annotations

import inspect
import sys

from capbias_core.metrics.caption_quality import bleu4, cider, meteor, rouge_l
from capbias_core.metrics.cooccurrence import bias_amplification, dba_g, dba_o, multi, multi_variance
from capbias_core.metrics.dbac import dbac
from capbias_core.metrics.gender_score import bias_ratio, estimation, gender_score, neutral_ratio, object_distance
from capbias_core.metrics.hallucination import chair_i, chair_s, object_recall
from capbias_core.metrics.lic import lic, sentence_classification
from capbias_core.metrics.naming import error, naming_ratio, naming_share, ratio
from capbias_core.metrics.predictability import predictability
from capbias_core.metrics.share import performance_gap
from capbias_core.metrics.substitution import contextual_share, unknown_share
from capbias_core.metrics.vocabulary import vocabulary, vocabulary_10

__all__ = [
    "bias_amplification",
    "bias_ratio",
    "bleu4",
    "chair_i",
    "chair_s",
    "cider",
    "contextual_share",
    "dba_g",
    "dba_o",
    "dbac",
    "error",
    "estimation",
    "gender_score",
    "lic",
    "meteor",
    "multi",
    "multi_variance",
    "naming_ratio",
    "naming_share",
    "neutral_ratio",
    "object_distance",
    "object_recall",
    "performance_gap",
    "predictability",
    "ratio",
    "rouge_l",
    "sentence_classification",
    "unknown_share",
    "vocabulary",
    "vocabulary_10",
]


def _say_what_modules_say() -> None:
    """A metric hides the module that is called like it, and with it what that says."""
    for name in __all__:
        metric = globals()[name]
        text = sys.modules[metric.__module__].__doc__
        if text and text not in metric.__doc__:  # none with python -OO; there already after a reload
            metric.__doc__ = f"{inspect.cleandoc(metric.__doc__)}\n\n{text}"


_say_what_modules_say()
