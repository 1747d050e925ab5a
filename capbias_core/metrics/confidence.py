"""ImageCaptioner2's score: how sure a judge is of the truth (Abdelrahman et al., AAAI 2024, Eq. 2 and 4).

    B = 1/n sum over test captions of P(a | masked caption, prompt, masked photograph)

P(a) is the judge's probability of the labelled answer, of all answers. Range [0, 1], shown x100; chance for K balanced
values is 1 / K. Lower is better. Amplification is B_M - B_D. Two more scores read the same probabilities, and stand
beside it (Eq. 4): accuracy alone (leakage; Wang et al., ICCV 2019), and accuracy times confidence (LIC; Hirota et al.,
CVPR 2022). Near chance they jump where this one does not: of 0.49 they make 0, of 0.51 they make 1 and 0.51.

>>> evidence = HeldOut(("1", "2"), np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), np.array([[.2, .8], [.6, .4]]))
>>> parts = confidence(evidence)
>>> round(float(parts.numerator.sum() / parts.denominator.sum()), 3)
0.6
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import HeldOut, Ratio


def confidence(evidence: HeldOut) -> Ratio:
    """Numerator: the probability of each label. Denominator: 1 a caption."""
    own = evidence.probabilities[np.arange(len(evidence.label)), evidence.label]
    return Ratio(own, np.ones(len(own)))
