"""Share of captions that name a value, a proxy for AnonymousBench's human score (Abdelrahman et al., AAAI 2024).

    share = captions that name a value of the attribute / captions

AnonymousBench asks people whether a caption of a photograph without a recognisable gender lets them guess one; here
words decide (those of LIC, CVPR 2022, appendix B), so a caption that only hints counts as naming none. Range [0, 1],
shown x100; neutral point 0: nothing on such a photograph tells the value. Lower is better.

>>> names = np.array([[True, False], [False, False], [True, True], [False, False]])
>>> evidence = Naming(("1", "2", "3", "4"), np.arange(4), np.zeros(4, int), names)
>>> float(naming_share(evidence).numerator.sum() / naming_share(evidence).denominator.sum())
0.5
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import Naming, Ratio


def naming_share(evidence: Naming) -> Ratio:
    """Numerator: 1 for a caption that names any value. Denominator: 1 a caption. The labels are not read."""
    return Ratio(evidence.names.any(axis=1).astype(float), np.ones(len(evidence.names)))
