"""Vocabulary size of a caption set (Hirota et al., CVPR 2022, Figure 3), and of ten captions drawn from it.

    vocabulary    = number of different words among all captions of the set
    vocabulary_10 = sum over words of 1 - C(N - n_w, 10) / C(N, 10)

Words are lower-case tokens without punctuation. Range [0, inf); higher is better in the sense of richer captions. It
grows with the number of captions, so only sets of the same images are comparable, and a resampled set has fewer words
than the set itself: it is a count, without an interval.

N: captions; n_w: those with the word w. The second is how many different words ten captions have on average over all
draws of ten (rarefaction: Hurlbert, Ecology 52, 1971), so groups of different sizes are comparable. Range [0, inf).

>>> vocabulary(["a dog runs", "A cat."])
4
>>> vocabulary_10(["a dog"] * 9 + ["a cat"] * 2)  # dog and a are in every ten, cat is left out by none
3.0
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_array, hstack

from capbias_core.prepare import tokenize
from capbias_core.prepare.tasks import encode

DRAWN = 10


def vocabulary(captions: Iterable[str]) -> int:
    """How many different words these captions have."""
    return len({word for caption in captions for word in tokenize(caption)})


def vocabulary_10(captions: Iterable[str]) -> float:
    """Different words in ten of these captions, on average over all draws; nan for fewer than ten captions."""
    return float(different_in_ten(word_counts(captions).sum(axis=0)))


def word_counts(captions: Iterable[str]) -> csr_array:
    """(n, 1 + V): 1 for each caption, then which of the V different words it has."""
    words = encode(captions).words()
    return csr_array(hstack([np.ones((words.shape[0], 1)), words]))


def different_in_ten(sums: np.ndarray) -> np.ndarray:
    """(..., 1 + V) sums of `word_counts` to different words in ten captions (...); nan for fewer than ten."""
    n, having = sums[..., :1], sums[..., 1:]
    without = np.ones(having.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for drawn in range(DRAWN):
            without *= np.maximum(n - having - drawn, 0) / (n - drawn)
    return np.where(n[..., 0] >= DRAWN, (1 - without).sum(axis=-1), np.nan)
