"""What an attacker's or a judge's guesses on held-out captions give: LIC, SC and ImageCaptioner2's confidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import guesses, numbers


def lic(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """LIC_M and LIC_D (Hirota et al., CVPR 2022, Eq. 9 and 10).

        LIC_M = 1/n sum over test captions of s_pred * 1[pred == a]

    s_pred is the attacker's confidence in the value it predicts, a the label. Range [0, 1], shown x100; chance for K
    balanced values is 1 / K^2 (25 for two). Lower is better. LIC = LIC_M - LIC_D (Eq. 11). probabilities: (n, K), rows
    sum to 1. labels: (n,) codes of values, 0 to K - 1.

    >>> lic([[0.2, 0.8], [0.6, 0.4]], [1, 1])
    0.4
    """
    return float(lic_scores(*guesses(probabilities, labels)).mean())


def sentence_classification(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """SC, sentence classification (Zhao et al., ICCV 2021; Hirota et al., CVPR 2022, Eq. 1).

        SC = 1/n sum over test captions of 1[pred == a]

    Range [0, 1], shown x100; chance for K balanced values is 1 / K (50 for two). Lower is better. Leakage (Wang et al.,
    ICCV 2019; Eq. 4 to 6) is SC of the generated captions - SC of the human ones. probabilities, labels: as in `lic`.

    >>> sentence_classification([[0.2, 0.8], [0.6, 0.4]], [1, 1])
    0.5
    """
    return float(right_predictions(*guesses(probabilities, labels)).mean())


def confidence(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """ImageCaptioner2's score: how sure a judge is of the truth (Abdelrahman et al., AAAI 2024, Eq. 2 and 4).

        B = 1/n sum over test captions of P(a | masked caption, prompt, masked photograph)

    P(a) is the judge's probability of the labelled answer, of all answers. Range [0, 1], shown x100; chance for K
    balanced values is 1 / K. Lower is better. Amplification is B_M - B_D. probabilities, labels: as in `lic`.

    >>> round(confidence([[0.2, 0.8], [0.6, 0.4]], [1, 1]), 3)
    0.6
    """
    return float(label_probabilities(*guesses(probabilities, labels)).mean())


def lic_scores(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) confidence of each right prediction, 0 of a wrong one."""
    return probabilities.max(axis=1) * right_predictions(probabilities, labels)


def right_predictions(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) 1 for each right prediction, 0 for a wrong one."""
    return (probabilities.argmax(axis=1) == labels).astype(float)


def label_probabilities(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) the probability of each label."""
    return probabilities[np.arange(len(labels)), labels]


def lic_of_naming(shares: ArrayLike) -> float:
    """LIC_M of an attacker that knows only whether a caption names a value at all, not which.

    shares: (K,) share of the captions of each labelled value that name one; values count equally. Equal shares give
    chance, 1 / K^2.

    >>> lic_of_naming([0.8, 0.8]), lic_of_naming([1.0, 0.0])
    (0.25, 1.0)
    """
    named = numbers("shares", shares, 0, 1, ("K",))
    each = np.stack([named, 1 - named]) / len(named)  # (2, K): captions of each value that name one, and that do not
    total, most = each.sum(axis=1), each.max(axis=1)
    return float((most[total > 0] ** 2 / total[total > 0]).sum())
