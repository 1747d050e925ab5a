"""SC, sentence classification (Zhao et al., ICCV 2021; Hirota et al., CVPR 2022, Eq. 1).

    SC = 1/n sum over test captions of 1[pred == a]

Range [0, 1], shown x100; chance for K balanced values is 1 / K (50 for two). Lower is better. It says that
captions hint at the attribute, not whether the captioner or its training data is the source. Leakage (Wang et al.,
ICCV 2019; Eq. 4 to 6) = SC of the generated captions - SC of the human captions; above 0 the captioner amplifies.

>>> evidence = HeldOut(("1", "2"), np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), np.array([[.2, .8], [.6, .4]]))
>>> float(sentence_classification(evidence).numerator.mean())
0.5
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import HeldOut, Ratio


def sentence_classification(evidence: HeldOut) -> Ratio:
    """Numerator: 1 for each right prediction. Denominator: 1 a caption."""
    correct = evidence.probabilities.argmax(axis=1) == evidence.label
    return Ratio(correct.astype(float), np.ones(len(correct)))
