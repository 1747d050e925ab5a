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
from scipy.sparse import csr_array

from capbias_core.metrics.arguments import captions as texts
from capbias_core.prepare.tokens import Tokens

DRAWN = 10


def vocabulary(captions: Iterable[str]) -> int:
    """How many different words these captions have."""
    return len(Tokens.of(texts("captions", captions)).words)


def vocabulary_10(captions: Iterable[str]) -> float:
    """Different words in ten of these captions, on average over all draws; nan for fewer than ten captions."""
    shares = shares_of_ten(Tokens.of(texts("captions", captions)).matrix())
    return float(shares.mean()) if len(shares) else float("nan")


def shares_of_ten(words: csr_array) -> np.ndarray:
    """(n, V) booleans, which words each caption has, to (n,) numbers whose mean is different words in ten captions.

    They vary over captions as it does over samples of captions (Hajek's projection of a U-statistic), so that a mean's
    interval is its interval; captions drawn with replacement would have fewer words. nan for fewer than ten captions.
    """
    n, having = words.shape[0], np.asarray(words.sum(axis=0)).ravel()
    if n < DRAWN:
        return np.full(n, np.nan)
    adds = words @ _without(n - 1, having, DRAWN - 1)
    return (1 - _without(n, having, DRAWN)).sum() + DRAWN * (adds - adds.mean())


def _without(n: int, having: np.ndarray, drawn: int) -> np.ndarray:
    """(V,): the chance that so many of n captions have a word in none of them. having: (V,), how many have it."""
    steps = np.arange(drawn)[:, None]
    return np.prod(np.maximum(n - having - steps, 0) / (n - steps), axis=0)
