"""Metrics: pure functions, arrays in, number out; measures/ has their facts and how runs use them.

`help` of each gives its formula, source, range, direction and an example. Arguments that cannot be meant, such as a
label that is no code of a value, raise CapbiasError.
"""

from capbias_core.metrics.caption_quality import bleu4, cider, meteor, rouge_l
from capbias_core.metrics.captions import error, naming_ratio, ratio, vocabulary
from capbias_core.metrics.cooccurrence import bias_amplification, dba_g, dba_o, multi
from capbias_core.metrics.dbac import dbac, predictability
from capbias_core.metrics.gender_score import bias_ratio, estimation, gender_score, neutral_ratio, object_distance
from capbias_core.metrics.lic import confidence, lic, sentence_classification
from capbias_core.metrics.share import performance_gap

__all__ = [
    "bias_amplification",
    "bias_ratio",
    "bleu4",
    "cider",
    "confidence",
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
    "neutral_ratio",
    "object_distance",
    "performance_gap",
    "predictability",
    "ratio",
    "rouge_l",
    "sentence_classification",
    "vocabulary",
]
