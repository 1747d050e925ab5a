"""What captions say: the values that they name, and different words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.errors import CapbiasError
from capbias_core.metrics.arguments import alike, booleans, codes, numbers
from capbias_core.metrics.arguments import captions as texts
from capbias_core.metrics.share import share
from capbias_core.prepare.tokens import Tokens


def ratio(names: ArrayLike) -> float:
    """Ratio (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, Table 1), for attributes of two values.

        ratio = captions that name only the second value / captions that name only the first

    Range [0, inf); the neutral point of the captions alone is 1, but the labelled images need not be balanced (COCO
    has 2.25 men for a woman), so compare it with the ratio of the labels.

    names: (n, 2) booleans, which values each caption names. nan if no caption names only the first.

    >>> ratio([[False, True], [False, True], [True, False], [True, True]])
    2.0
    """
    named = booleans("names", names, "2")
    if named.shape[1] != 2:
        raise CapbiasError(
            f"ratio compares two values, but names has {named.shape[1]}.", "Use error, or compare values in pairs."
        )
    first, second = named_alone(named).sum(axis=0)
    return float(ratio_of(second, first))


def ratio_of(second: ArrayLike, first: ArrayLike) -> np.ndarray:
    """Captions that name only the second value and only the first, (...), to `ratio`."""
    return np.where(np.asarray(first) > 0, share(second, first), np.nan)


def error(names: ArrayLike, labels: ArrayLike) -> float:
    """Error, attribute misclassification (Burns et al., ECCV 2018; Hirota et al., CVPR 2022, section 3.1).

        error = captions whose only named value is a wrong one / all captions

    Range [0, 1], shown x100. Lower is better. A caption that names no value, or several, is not an error.

    names: (n, K) booleans, which values each caption names. labels: (n,) codes of values.

    >>> error([[False, True], [True, False], [False, False], [True, True]], [0, 0, 0, 0])
    0.25
    """
    named = booleans("names", names)
    return float(wrong_names(named, codes(labels, named)).mean())


def naming_ratio(model: ArrayLike, human: ArrayLike) -> np.ndarray:
    """Naming ratio: captions that name a value, for each human one (Sabir and Padró, Findings of EMNLP 2023, Table 3).

        naming_ratio_a = sum_i m_ia / sum_i h_ia

    m_ia, h_ia: the share of the model's and of the human captions of the image i that name the value a and no other.
    Range [0, inf); the neutral point is 1. The paper calls it leakage, which elsewhere is an attacker's accuracy.

    (...) counts of both sides to their quotient; nan or inf if no human caption names the value.

    >>> naming_ratio([792, 408], [930, 291]).round(2).tolist()
    [0.85, 1.4]
    """
    return share(*alike(model=numbers("model", model, 0), human=numbers("human", human, 0)))


def named_alone(names: np.ndarray) -> np.ndarray:
    """(n, K) booleans: the caption names this value and no other."""
    return names & (names.sum(axis=1, keepdims=True) == 1)


def wrong_names(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) booleans: the caption's only named value is not the label."""
    only = named_alone(names)
    return only.any(axis=1) & ~only[np.arange(len(only)), labels]


def vocabulary(captions: Iterable[str]) -> int:
    """Vocabulary size of a caption set (Hirota et al., CVPR 2022, Figure 3).

        vocabulary = number of different words among all captions of the set

    Words are lower-case tokens without punctuation. Range [0, inf); higher is better in the sense of richer captions.
    It grows with the number of captions, so only sets of the same images are comparable.

    >>> vocabulary(["a dog runs", "A cat."])
    4
    """
    return len(Tokens.of(texts("captions", captions)).words)
