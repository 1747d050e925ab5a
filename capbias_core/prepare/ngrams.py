"""Which words and pairs of words masked captions have."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

# A term that no caption has: its column is all zeros, so captions without any word still make a matrix.
NOTHING = "<>"


@dataclass(frozen=True)
class Ngrams:
    """The terms of n captions: words, and pairs of words side by side if pairs count.

    matrix: (n, V) sparse, 1.0 where a caption has a term. terms: V texts in alphabetical order, NOTHING among them.
    start: (n + 1,) where the words of each caption begin among all T words. words, pairs: (T,) the column of each word,
    and of the pair that begins with it, -1 where none does.
    """

    matrix: csr_array
    terms: list[str]
    start: np.ndarray
    words: np.ndarray
    pairs: np.ndarray

    @cached_property
    def columns(self) -> dict[str, int]:
        """The column of each term."""
        return {term: column for column, term in enumerate(self.terms)}


@dataclass(frozen=True)
class Coded:
    """Captions as numbers.

    start: (n + 1,) where the words of each caption begin among all T words. codes: (T,) the place of each word in
    `words`. words: V texts in the order in which they come first.
    """

    start: np.ndarray
    codes: np.ndarray
    words: list[str]

    @cached_property
    def followed(self) -> np.ndarray:
        """The places among all T words of those after which another word of the same caption comes."""
        together = np.ones(len(self.codes), dtype=bool)
        together[self.start[1:][self.start[1:] > self.start[:-1]] - 1] = False
        return np.flatnonzero(together)


def coded(captions: Iterable[str]) -> Coded:
    """The words of captions as numbers."""
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    codes, ends = array("i"), array("q", [0])
    for caption in captions:
        codes.extend(map(vocabulary.__getitem__, caption.split()))
        ends.append(len(codes))
    return Coded(np.frombuffer(ends, dtype=np.int64), np.frombuffer(codes, dtype=np.int32), list(vocabulary))


def ngrams_of(captions: Sequence[str], pairs: bool) -> Ngrams:
    """The words of captions, and their pairs of words if these count.

    The matrix is the same as scikit-learn's CountVectorizer gives, which reads text in Python and takes many times as
    long.

    >>> found = ngrams_of(["a cat", "a dog a dog"], pairs=True)
    >>> found.matrix[:, [found.columns["a dog"]]].toarray().ravel().tolist()
    [0.0, 1.0]
    """
    read = coded(captions)
    start, word, terms = read.start, read.codes, list(dict.fromkeys([*read.words, NOTHING]))
    pair = np.full(len(word), -1, dtype=np.int32)
    if pairs and len(word):
        first, words = read.followed, list(terms)
        found, keys = pd.factorize(word[first].astype(np.int64) * len(words) + word[first + 1])
        terms += [f"{words[one]} {words[two]}" for one, two in zip(*divmod(keys, len(words)), strict=True)]
        pair[first] = found + len(words)
    order = sorted(range(len(terms)), key=terms.__getitem__)
    place = np.empty(len(terms) + 1, dtype=np.int32)
    place[order], place[-1] = np.arange(len(terms)), -1
    word, pair = place[word], place[pair]
    return Ngrams(_matrix(start, word, pair, len(terms)), [terms[number] for number in order], start, word, pair)


def _matrix(start: np.ndarray, words: np.ndarray, pairs: np.ndarray, width: int) -> csr_array:
    """(n, width) sparse, 1.0 where a caption has a term."""
    both = np.column_stack([words, pairs]).ravel()
    there = both >= 0
    ends = np.concatenate([[0], np.cumsum(there)])[2 * start]
    matrix = csr_array((np.ones(ends[-1]), both[there], ends.astype(np.int32)), shape=(len(start) - 1, width))
    matrix.sum_duplicates()
    matrix.data[:] = 1  # a term counts once
    return matrix
