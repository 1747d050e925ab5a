"""Two captions of one image side by side: which words each has that the other has not, and which caption is closest."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np


def words_of_one(first: Sequence[str], second: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Words of each of two aligned captions that the other does not have at that place.

    Returns booleans, (T1,) and (T2,). The alignment is that of difflib: the longest runs of equal words, in order.

    >>> [own.tolist() for own in words_of_one("a man with a dog".split(), "a man holds a dog".split())]
    [[False, False, True, False, False], [False, False, True, False, False]]
    """
    alone = np.ones(len(first), dtype=bool), np.ones(len(second), dtype=bool)
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        for own, start in zip(alone, (block.a, block.b), strict=True):
            own[start : start + block.size] = False
    return alone


def closest(caption: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    """Place of the caption that shares most words with this one, in order; the first of several.

    >>> closest(["a", "dog"], [["two", "cats"], ["a", "dog", "runs"]])
    1
    """
    matcher = SequenceMatcher(None, b=caption, autojunk=False)
    shares = []
    for other in others:
        matcher.set_seq1(other)
        shares.append(matcher.ratio())
    return int(np.argmax(shares))
