"""Metrics: pure functions, arrays in, number out. What is said of each, and how runs use it, is in measures/."""

from __future__ import annotations

from capbias_core.metrics.bias_amplification import bias_amplification
from capbias_core.metrics.caption_quality import bleu4, cider, meteor, rouge_l
from capbias_core.metrics.dbac import dbac
from capbias_core.metrics.directional import dba_g, dba_o
from capbias_core.metrics.error import error
from capbias_core.metrics.lic import lic
from capbias_core.metrics.multi_attribute import multi, multi_variance
from capbias_core.metrics.performance_gap import performance_gap
from capbias_core.metrics.predictability import predictability
from capbias_core.metrics.ratio import ratio
from capbias_core.metrics.sentence_classification import sentence_classification
from capbias_core.metrics.vocabulary import vocabulary

__all__ = [
    "bias_amplification",
    "bleu4",
    "cider",
    "dba_g",
    "dba_o",
    "dbac",
    "error",
    "lic",
    "meteor",
    "multi",
    "multi_variance",
    "performance_gap",
    "predictability",
    "ratio",
    "rouge_l",
    "sentence_classification",
    "vocabulary",
]
