"""Metrics: pure functions, arrays in, number out. What is said of each, and how runs use it, is in measures/."""

from __future__ import annotations

from capbias_core.metrics.error import error
from capbias_core.metrics.lic import lic
from capbias_core.metrics.ratio import ratio
from capbias_core.metrics.sentence_classification import sentence_classification

__all__ = ["error", "lic", "ratio", "sentence_classification"]
