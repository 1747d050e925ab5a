"""BA, bias amplification (Zhao et al., EMNLP 2017, BA_MALS; Hirota et al., CVPR 2022, Eq. 2-3 and appendix A.2).

    b_al = c_al / sum_a c_al
    BA   = 1 / |L| * sum_{a, l} (b_al of the model - b_al of the humans) * 1[b_al of the humans > 1 / |A|]

c_al: captions that name the value a and have the word l. Range [-1, 1], shown x100; lower is better. Above 0: words
that go with one value in the human captions go with it more often in the model's. It does not see how often a value
occurs: if most images show men, most words go with men. If images are few, words go with a value on the human side by
chance, and the model's captions cannot follow: the value falls.

A word that the model never uses beside a value has no b of the model; it adds 0.

>>> bias_amplification(human_pairs=[[3], [1]], model_pairs=[[4], [0]])  # two values, one word
0.25
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capbias_core.metrics.arguments import alike, counts


def bias_amplification(human_pairs: ArrayLike, model_pairs: ArrayLike) -> float:
    """(K, L) captions of each side by value that they name and word that they have."""
    human, model = counts("human_pairs", human_pairs, ("K", "L")), counts("model_pairs", model_pairs, ("K", "L"))
    alike(("human_pairs", human), ("model_pairs", model))
    return float(change_of_preferred(human, model, human))


def change_of_preferred(human: np.ndarray, model: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """(..., K, L) pairs of both sides to (...) values. whole: (K, L), the human pairs that decide which words go with
    which value, such as those of all images where the others are of some."""
    change = np.where(preferred(whole), _share(model) - _share(human), 0.0)
    return np.nan_to_num(change).sum(axis=(-2, -1)) / human.shape[-1]


def preferred(pairs: np.ndarray) -> np.ndarray:
    """(..., K, L) booleans: the word goes with the value more often than evenly."""
    return _share(pairs) > 1 / pairs.shape[-2]


def _share(pairs: np.ndarray) -> np.ndarray:
    """(..., K, L) counts to the share of each value among the captions with a word; nan if there are none."""
    with np.errstate(invalid="ignore"):
        return pairs / pairs.sum(axis=-2, keepdims=True)
