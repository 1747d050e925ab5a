"""Vocabulary size of a caption set (Hirota et al., CVPR 2022, Figure 3).

    vocabulary = number of different words among all captions of the set

Words are lower-case tokens without punctuation. Range [0, inf); higher is better in the sense of richer captions. It
grows with the number of captions, so only sets of the same images are comparable, and a resampled set has fewer words
than the set itself: it is a count, without an interval.

>>> vocabulary(["a dog runs", "A cat."])
4
"""

from __future__ import annotations

from collections.abc import Iterable

from capbias_core.prepare import tokenize


def vocabulary(captions: Iterable[str]) -> int:
    """How many different words these captions have."""
    return len({word for caption in captions for word in tokenize(caption)})
