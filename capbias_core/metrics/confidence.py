"""ImageCaptioner2's score: how sure a judge is of the truth (Abdelrahman et al., AAAI 2024, Eq. 2 and 4).

    B = 1/n sum over test captions of P(a | masked caption, prompt, masked photograph)

P(a) is the judge's probability of the labelled answer, of all answers. Range [0, 1], shown x100; chance for K balanced
values is 1 / K. Lower is better. Amplification is B_M - B_D. Two more scores read the same probabilities, and stand
beside it (Eq. 4): accuracy alone (leakage; Wang et al., ICCV 2019), and accuracy times confidence (LIC; Hirota et al.,
CVPR 2022). Near chance they jump where this one does not: of 0.49 they make 0, of 0.51 they make 1 and 0.51.

>>> round(confidence([[0.2, 0.8], [0.6, 0.4]], [1, 1]), 3)
0.6
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import guesses


def confidence(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean of `label_probabilities`. probabilities: (n, K), rows sum to 1. labels: (n,) places of values."""
    return float(label_probabilities(*guesses(probabilities, labels)).mean())


def label_probabilities(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) the probability of each label."""
    return probabilities[np.arange(len(labels)), labels]
