"""Share of captions that name a value, a proxy for AnonymousBench's human score (Abdelrahman et al., AAAI 2024).

    share = captions that name a value of the attribute / captions

AnonymousBench asks people whether a caption of a photograph without a recognisable gender lets them guess one; here
words decide (those of LIC, CVPR 2022, appendix B), so a caption that only hints counts as naming none. Range [0, 1],
shown x100; neutral point 0: nothing on such a photograph tells the value. Lower is better.

>>> naming_share([[True, False], [False, False], [True, True], [False, False]])
0.5
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import booleans


def naming_share(names: ArrayLike) -> float:
    """names: (n, K) booleans, which values each caption names."""
    return float(names_any(booleans("names", names)).mean())


def names_any(names: np.ndarray) -> np.ndarray:
    """(n,) 1 for a caption that names any value, else 0."""
    return names.any(axis=1).astype(float)
