"""Gender Object Distance (Sabir and Padró, Findings of EMNLP 2023, section 3).

    distance = (a . b) / (|a| |b|)

The paper calls the cosine similarity a distance, but it measures closeness. a: the vector of a gendered caption
(sentence level) or of a gender word (word level); b: that of an object. Range [-1, 1]; 0 is unrelated. One value alone
has no neutral point: compare the values of the attribute with each other and with a neutral word.

>>> object_distance([[3, 4], [0, 2]], [[4, 3], [1, 0]]).tolist()
[0.96, 0.0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import numbers, together


def object_distance(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """(..., d) vectors, row by row, to (...) cosines; nan for a vector of zeros."""
    a, b = numbers("a", a), numbers("b", b)
    if not (a.ndim and b.ndim) or a.shape[-1] != b.shape[-1]:
        raise CapbiasError(f"a and b must be vectors of one length, but have the shapes {a.shape} and {b.shape}.")
    together(a=a, b=b)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (a * b).sum(axis=-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
