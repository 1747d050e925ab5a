"""LIC_M and LIC_D (Hirota et al., CVPR 2022, Eq. 9 and 10).

    LIC_M = 1/n sum over test captions of s_pred * 1[pred == a]

s_pred is the attacker's confidence in the value it predicts, a the label. Range [0, 1], shown x100; chance for K
balanced values is 1 / K^2 (25 for two). Lower is better. LIC = LIC_M - LIC_D (Eq. 11): above 0, the captioner
says more about the attribute than the human captions do.

>>> evidence = HeldOut(("1", "2"), np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), np.array([[.2, .8], [.6, .4]]))
>>> float(lic(evidence).numerator.sum() / lic(evidence).denominator.sum())
0.4
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import HeldOut, Ratio


def lic(evidence: HeldOut) -> Ratio:
    """Numerator: confidence of each right prediction, 0 of a wrong one. Denominator: 1 a caption."""
    predicted = evidence.probabilities.argmax(axis=1)
    confidence = evidence.probabilities.max(axis=1)
    return Ratio(confidence * (predicted == evidence.label), np.ones(len(predicted)))
