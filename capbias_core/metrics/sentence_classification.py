"""SC, sentence classification (Zhao et al., ICCV 2021; Hirota et al., CVPR 2022, Eq. 1).

    SC = 1/n sum over test captions of 1[pred == a]

Range [0, 1], shown x100; chance for K balanced values is 1 / K (50 for two). Lower is better. It says that
captions hint at the attribute, not whether the captioner or its training data is the source. Leakage (Wang et al.,
ICCV 2019; Eq. 4 to 6) = SC of the generated captions - SC of the human captions; above 0 the captioner amplifies.

>>> sentence_classification([[0.2, 0.8], [0.6, 0.4]], [1, 1])
0.5
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import guesses


def sentence_classification(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Share of right predictions. probabilities: (n, K), rows sum to 1. labels: (n,) places of values."""
    return float(right_predictions(*guesses(probabilities, labels)).mean())


def right_predictions(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) 1 for each right prediction, 0 for a wrong one."""
    return (probabilities.argmax(axis=1) == labels).astype(float)
