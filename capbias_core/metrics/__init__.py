"""Metrics: pure functions, arrays in, number out; measures/ has their facts and how runs use them.

`help` of each gives its formula, source, range, direction and an example. Arguments that cannot be meant, such as a
label that is no code of a value, raise CapbiasError.
"""

from capbias_core.metrics.caption_quality import bleu4, cider, meteor, rouge_l
from capbias_core.metrics.captions import (
    chair_i,
    chair_s,
    contextual_share,
    error,
    naming_ratio,
    naming_share,
    object_recall,
    ratio,
    unknown_share,
    vocabulary,
)
from capbias_core.metrics.cooccurrence import bias_amplification, dba_g, dba_o, multi
from capbias_core.metrics.dbac import dbac, predictability
from capbias_core.metrics.gender_score import bias_ratio, estimation, gender_score, neutral_ratio, object_distance
from capbias_core.metrics.lic import confidence, lic, sentence_classification
from capbias_core.metrics.share import performance_gap

__all__ = [
    "bias_amplification",
    "bias_ratio",
    "bleu4",
    "chair_i",
    "chair_s",
    "cider",
    "confidence",
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
]
