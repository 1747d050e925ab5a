"""Error, attribute misclassification (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, section 3.1).

    error = captions whose only named value is a wrong one / all captions

Range [0, 1], shown x100. Lower is better. A caption that names no value, or several, is not an error.

>>> names = np.array([[False, True], [True, False], [False, False], [True, True]])
>>> parts = error(Naming(("1", "2", "3", "4"), np.arange(4), np.array([0, 0, 0, 0]), names))
>>> float(parts.numerator.sum() / parts.denominator.sum())
0.25
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import Naming, Ratio


def error(evidence: Naming) -> Ratio:
    """Numerator: captions that name only a value that is not the label. Denominator: 1 a caption."""
    only = evidence.only
    right = only[np.arange(len(only)), evidence.label]
    return Ratio((only.any(axis=1) & ~right).astype(float), np.ones(len(only)))
