"""`Tokens`, captions as integer codes: masking, alignment and n-grams are maps over their vocabulary."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute

TEXTS_AT_ONCE = 100_000
# "No man", "without a woman", "not a man or a woman", "isn't a girl" name nobody; "without his hat" names a man, and so
# do "neither the man nor the woman", "neither man" and "no girl a man": of who is there, or not denied.
_NOT = frozenset(["no", "not", "without", "nor", "neither", "never", "'t", "zero"])
_BETWEEN = frozenset(re.findall(r"\w+", "a an any single one or visible other adult young old human real actual more"))
_PRONOUNS = frozenset(["he", "his", "him", "himself", "she", "her", "hers", "herself"])
# A term that no caption has, so that captions without words still make a matrix.
NO_TERM = "<>"


@dataclass(frozen=True, eq=False)
class Tokens(Sequence[str]):
    """Captions as codes; as a sequence their texts, tokens joined by one space."""

    codes: np.ndarray  # (T,) the tokens of all captions, one caption after another
    start: np.ndarray  # (n + 1,) where each caption begins in codes
    words: list[str]  # (V,) the token of each code, by first occurrence

    @classmethod
    def of(cls, captions: Iterable[str], tokens: Callable[[str], list[str]] = tokenize) -> Tokens:
        """Captions as written. A column of a table is converted in parts, to save memory."""
        vocabulary: defaultdict[str, int] = defaultdict()
        vocabulary.default_factory = vocabulary.__len__  # the code of a new token
        codes, start = array("i"), array("q", [0])
        if isinstance(captions, pd.Series):
            column: pd.Series = captions
            parts = [column.iloc[at : at + TEXTS_AT_ONCE] for at in range(0, len(column), TEXTS_AT_ONCE)]
            captions = chain.from_iterable(part.to_numpy(dtype=object) for part in parts)
        for caption in captions:
            codes.extend(map(vocabulary.__getitem__, tokens(caption)))
            start.append(len(codes))
        return cls(np.array(codes, dtype=np.int32), np.array(start), list(vocabulary))

    @classmethod
    def read(cls, texts: Sequence[str]) -> Tokens:
        """Texts whose tokens are separated by spaces, such as masked captions."""
        return texts if isinstance(texts, Tokens) else cls.of(texts, str.split)

    @classmethod
    def join(cls, parts: Sequence[Tokens]) -> Tokens:
        """The captions of several sets, one set after the other."""
        vocabulary: dict[str, int] = {}
        codes = [np.zeros(0, dtype=np.int32)]
        for part in parts:
            table = [vocabulary.setdefault(word, len(vocabulary)) for word in part.words]
            codes.append(np.array(table, dtype=np.int32)[part.codes])
        start = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, int), *(part.lengths for part in parts)]))])
        return cls(np.concatenate(codes), start, list(vocabulary))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, row):
        return self.texts[row]

    @cached_property
    def texts(self) -> list[str]:
        """(n,) captions, tokens joined by one space."""
        tokens = np.array(self.words, dtype=object)[self.codes].tolist()
        return [" ".join(tokens[begin:end]) for begin, end in pairwise(self.start.tolist())]

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """The code of each token."""
        return {word: code for code, word in enumerate(self.words)}

    @cached_property
    def lengths(self) -> np.ndarray:
        """(n,) tokens of each caption."""
        return np.diff(self.start)

    @cached_property
    def caption(self) -> np.ndarray:
        """(T,) the caption of each token."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)

    def rows(self, chosen: np.ndarray) -> Tokens:
        """These captions in this order, as `of` gives them."""
        if len(chosen) == len(self) and (np.diff(chosen) == 1).all():
            return self
        lengths = self.lengths[chosen]
        start = np.concatenate([[0], np.cumsum(lengths)])
        codes = self.codes[np.repeat(self.start[:-1][chosen] - start[:-1], lengths) + np.arange(start[-1])]
        codes, used = pd.factorize(codes)
        return Tokens(codes.astype(np.int32), start, [self.words[code] for code in used.tolist()])

    def mapped(self, words: Iterable[str]) -> Tokens:
        """The captions with other tokens. words: (V,) the new token of each code."""
        table, words = pd.factorize(np.array(list(words), dtype=object))
        return Tokens(table.astype(np.int32)[self.codes], self.start, list(words))

    def masked(self, attribute: Attribute, merge_runs: bool = False) -> Tokens:
        """The captions with the mask token for each word that names a value (LIC section 4, the reproducibility paper
        section 5.4). merge_runs: one mask token for a run of such words, unlike in the papers."""
        mask = attribute.mask_token
        tokens = self.mapped(mask if word in attribute.masked_words else word for word in self.words)
        if not merge_runs or mask not in tokens.vocabulary:
            return tokens
        masked = tokens.codes == tokens.vocabulary[mask]
        kept = ~masked
        kept[1:] |= ~masked[:-1] | (tokens.caption[1:] != tokens.caption[:-1])
        kept[:1] = True
        return Tokens(tokens.codes[kept], np.concatenate([[0], np.cumsum(kept)])[tokens.start], tokens.words)

    def first(self, words: int) -> Tokens:
        """The captions cut after so many tokens.

        >>> Tokens.of(["a dog runs", "a cat"]).first(2).texts
        ['a dog', 'a cat']
        """
        lengths = np.minimum(self.lengths, words)
        kept = np.arange(len(self.codes)) - np.repeat(self.start[:-1], self.lengths) < words
        return Tokens(self.codes[kept], np.concatenate([[0], np.cumsum(lengths)]), self.words)

    def distinct(self) -> tuple[Tokens, np.ndarray]:
        """The different captions by first occurrence, and the index of each caption among them."""
        data, ends = self.codes.tobytes(), (self.start * self.codes.itemsize).tolist()
        texts = np.empty(len(self), dtype=object)
        texts[:] = [data[begin:end] for begin, end in pairwise(ends)]
        index, _ = pd.factorize(texts)
        first = np.flatnonzero(np.diff(np.maximum.accumulate(index), prepend=-1))
        return self.rows(first), index

    def with_any(self, groups: Sequence[Iterable[str]], but: np.ndarray | None = None) -> csr_array:
        """(n, len(groups)) 0 or 1: the caption has a token of the group. No token is in two groups. but: (T,) booleans,
        tokens that do not count."""
        column = np.full(len(self.words), -1, dtype=np.min_scalar_type(-1 - len(groups)))
        for group, words in enumerate(groups):
            column[[self.vocabulary[word] for word in words if word in self.vocabulary]] = group
        columns = column[self.codes]
        if but is not None:
            columns[but] = -1
        at = np.flatnonzero(columns >= 0)
        matrix = cell_counts(self.caption[at], columns[at], len(self), len(groups))
        matrix.data[:] = 1
        return matrix

    def denied(self, words: Iterable[str]) -> np.ndarray:
        """(T,) booleans: the token is one of these words, and the caption denies it.

        >>> tokens = Tokens.of(["a street with no man or woman", "a man without his hat"])
        >>> tokens.denied(["man", "woman", "his"]).nonzero()[0].tolist()
        [4, 6]
        """
        groups = (_NOT, _BETWEEN, set(words) - _PRONOUNS)
        denying, between, names = ({self.vocabulary.get(word) for word in group} for group in groups)
        joining, neither, nor = map(self.vocabulary.get, ("or", "neither", "nor"))
        result = np.zeros(len(self.codes), dtype=bool)
        starts = np.isin(self.codes, [code for code in denying if code is not None])
        for row in np.unique(self.caption[starts]).tolist():
            denies, named = False, False
            codes = self.codes[self.start[row] : self.start[row + 1]].tolist()
            idle = {neither} if nor not in codes else set()
            for token, code in enumerate(codes, int(self.start[row])):
                further = {joining} if named else between  # after a name, an article begins another phrase
                named = denies and code in names
                denies = code in denying - idle or named or (denies and code in further)
                result[token] = named
        return result

    def naming(self, groups: Sequence[Iterable[str]]) -> csr_array:
        """(n, len(groups)) 0 or 1: the caption has a word of the group and does not deny it."""
        return self.with_any(groups, self.denied(word for words in groups for word in words))

    def matrix(self) -> csr_array:
        """(n, V) 0 or 1: the caption has the token."""
        matrix = cell_counts(self.caption, self.codes, len(self), len(self.words))
        matrix.data[:] = 1
        return matrix

    def ngrams(self) -> Ngrams:
        """The 1- and 2-grams of the captions, as scikit-learn's CountVectorizer(binary=True) gives them, but faster.

        >>> ngrams = Tokens.of(["a cat", "a dog a dog"]).ngrams()
        >>> ngrams.matrix[:, [ngrams.terms.index("a dog")]].toarray().ravel().tolist()
        [0.0, 1.0]
        """
        word, terms = self.codes, list(dict.fromkeys([*self.words, NO_TERM]))
        width, pair = len(terms), np.full(len(word), -1)
        first = np.flatnonzero(self.caption[1:] == self.caption[:-1])  # tokens before another of the same caption
        pairs, keys = pd.factorize(word[first].astype(np.int64) * width + word[first + 1])
        terms += [f"{terms[one]} {terms[two]}" for one, two in zip(*divmod(keys, width), strict=True)]
        pair[first] = pairs + width
        order = sorted(range(len(terms)), key=terms.__getitem__)
        column = np.empty(len(terms) + 1, dtype=np.int32)
        column[order], column[-1] = np.arange(len(terms)), -1
        word, pair = column[word], column[pair]
        both = np.column_stack([word, pair]).ravel()
        ends = np.concatenate([[0], np.cumsum(both >= 0)])[2 * self.start]
        data = np.ones(ends[-1]), both[both >= 0], ends.astype(np.int32)
        matrix = csr_array(data, shape=(len(self), len(terms)))
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return Ngrams(matrix, [terms[number] for number in order], self.start, word, pair)


@dataclass(frozen=True)
class Ngrams:
    """The terms of n captions: tokens, and pairs of neighbouring tokens."""

    matrix: csr_array  # (n, V), 1.0 if a caption has a term
    terms: list[str]  # V texts in alphabetical order, with NO_TERM
    start: np.ndarray  # (n + 1,) where each caption begins among all T tokens
    words: np.ndarray  # (T,) the column of each token
    pairs: np.ndarray  # (T,) the column of the pair that begins with it, -1 for none


def cell_counts(rows: np.ndarray, columns: np.ndarray, n: int, width: int) -> csr_array:
    """(n, width): how often each cell is among (row, column) pairs."""
    return csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(n, width))
