"""Naming ratio: captions that name a value, for each human caption that does (Sabir and Padró, Findings of EMNLP 2023).

    naming_ratio_a = sum_i m_ia / sum_i h_ia

m_ia, h_ia: the share of the model's and of the human captions of the image i that name the value a and no other.
Range [0, inf); the neutral point is 1. The paper prints it in Table 3 and calls it leakage; what other papers call
leakage is an attacker's accuracy, so it has a name of its own here.

>>> naming_ratio([792, 408], [930, 291]).round(2).tolist()
[0.85, 1.4]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import alike, numbers


def naming_ratio(model: ArrayLike, human: ArrayLike) -> np.ndarray:
    """(...) counts of both sides to their quotient; nan or inf if no human caption names the value."""
    model, human = numbers("model", model, 0), numbers("human", human, 0)
    alike(("model", model), ("human", human))
    with np.errstate(invalid="ignore", divide="ignore"):
        return model / human
