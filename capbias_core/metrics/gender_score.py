"""Gender Score (Sabir and Padró, Findings of EMNLP 2023, Eq. 3), after Belief Revision (Blok et al., AAAI 2003).

    GS    = P(g) ^ alpha
    alpha = ((1 - sim) / (1 + sim)) ^ (1 - P(c)),   and GS = P(g) if sim <= 0

P(g): mean token probability of the caption under a causal language model; sim: cosine of the caption and the object
under a sentence encoder; P(c): a detector's confidence in the object. Range [0, 1]. A score alone has no neutral point:
compare the scores of the values, such as those of the same caption with `man` and with `woman`.

>>> gender_score([0.25, 0.25, 0.25], [0.6, -0.1, 0.6], [0.5, 0.5, 1.0]).tolist()
[0.5, 0.25, 0.25]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import numbers, together


def gender_score(probability: ArrayLike, similarity: ArrayLike, confidence: ArrayLike) -> np.ndarray:
    """Broadcast together: probability in [0, 1], similarity in [-1, 1], confidence in [0, 1]."""
    probability = numbers("probability", probability, 0, 1)
    similarity, confidence = numbers("similarity", similarity, -1, 1), numbers("confidence", confidence, 0, 1)
    together(probability=probability, similarity=similarity, confidence=confidence)
    related = np.clip(similarity, 0.0, 1.0)  # at 0 alpha is 1: the score is the probability
    alpha = ((1 - related) / (1 + related)) ** (1 - confidence)
    return probability**alpha
