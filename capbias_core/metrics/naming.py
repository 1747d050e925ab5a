"""Which values of the attribute captions name: ratio, error, and shares of captions that name one.

Words decide (those of LIC, appendix B, for gender).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import alike, booleans, numbers, places
from capbias_core.metrics.share import share


def ratio(names: ArrayLike) -> float:
    """Ratio (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1), for attributes of two values.

        ratio = captions that name only the second value / captions that name only the first

    For gender: captions with masculine and no feminine words over captions with feminine and no masculine words.
    Range [0, inf); the neutral point of the captions alone is 1, but the labelled images need not be balanced (COCO
    has 2.25 men for a woman), so compare it with the ratio of the labels.

    names: (n, 2) booleans, which values each caption names. nan or inf if no caption names only the first.

    >>> ratio([[False, True], [False, True], [True, False], [True, True]])
    2.0
    """
    found = booleans("names", names, "2")
    if found.shape[1] != 2:
        raise CapbiasError(
            f"ratio compares two values, but names has {found.shape[1]}.", "Use error, or compare values in pairs."
        )
    first, second = named_alone(found).sum(axis=0)
    return float(share(second, first))


def error(names: ArrayLike, labels: ArrayLike) -> float:
    """Error, attribute misclassification (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, section 3.1).

        error = captions whose only named value is a wrong one / all captions

    Range [0, 1], shown x100. Lower is better. A caption that names no value, or several, is not an error.

    names: (n, K) booleans, which values each caption names. labels: (n,) codes of values.

    >>> error([[False, True], [True, False], [False, False], [True, True]], [0, 0, 0, 0])
    0.25
    """
    found = booleans("names", names)
    return float(share(wrong_names(found, places(labels, found)).sum(), len(found)))


def naming_share(names: ArrayLike) -> float:
    """Share of captions that name a value, a proxy for AnonymousBench's human score (Abdelrahman et al., AAAI 2024).

        share = captions that name a value of the attribute / captions

    AnonymousBench asks people whether a caption of a photograph without a recognisable gender lets them guess one; here
    words decide (those of LIC, CVPR 2022, appendix B), so a caption that only hints counts as naming none. Range
    [0, 1], shown x100; neutral point 0: nothing on such a photograph tells the value. Lower is better.

    names: (n, K) booleans, which values each caption names.

    >>> naming_share([[True, False], [False, False], [True, True], [False, False]])
    0.5
    """
    found = booleans("names", names)
    return float(share(found.any(axis=1).sum(), len(found)))


def naming_ratio(model: ArrayLike, human: ArrayLike) -> np.ndarray:
    """Naming ratio: captions that name a value, for each human one (Sabir and Padró, Findings of EMNLP 2023).

        naming_ratio_a = sum_i m_ia / sum_i h_ia

    m_ia, h_ia: the share of the model's and of the human captions of the image i that name the value a and no other.
    Range [0, inf); the neutral point is 1. The paper prints it in Table 3 and calls it leakage; what other papers call
    leakage is an attacker's accuracy, so it has another name here.

    (...) counts of both sides to their quotient; nan or inf if no human caption names the value.

    >>> naming_ratio([792, 408], [930, 291]).round(2).tolist()
    [0.85, 1.4]
    """
    model, human = numbers("model", model, 0), numbers("human", human, 0)
    alike(("model", model), ("human", human))
    return share(model, human)


def named_alone(names: np.ndarray) -> np.ndarray:
    """(n, K) booleans: the caption names this value and no other."""
    return names & (names.sum(axis=1, keepdims=True) == 1)


def wrong_names(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) booleans: the caption's only named value is not the label."""
    only = named_alone(names)
    return only.any(axis=1) & ~only[np.arange(len(only)), labels]
