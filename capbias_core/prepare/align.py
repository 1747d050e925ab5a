"""Vocabulary alignment: what becomes of human words that a captioner never uses.

Constant (LIC section 4): they become `<unk>`. Contextual (the paper on DBAC, section 4.2, Eq. 9): the nearest word that
the captioner uses, where its cosine distance is below delta, else `<unk>`. Special tokens such as `<gender>` stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from capbias_core.types import UNKNOWN_TOKEN, Vectors

DELTA = 0.4
# Rows of the table of distances at a time, so that large vocabularies fit in memory.
ROWS = 4096


def vocabulary(captions: Iterable[str]) -> frozenset[str]:
    """The words of masked captions (tokens joined by a space)."""
    return frozenset(" ".join(captions).split())


def align_captions(captions: Iterable[str], known: frozenset[str], near: Mapping[str, str] | None = None) -> list[str]:
    """Masked captions in which every word outside `known` is the word that `near` has for it, or `<unk>`.

    near: empty for constant alignment. Special tokens stay.

    >>> align_captions(["a <gender> with an ocarina"], frozenset("a an <gender> with".split()))
    ['a <gender> with an <unk>']
    >>> align_captions(["a <gender> on a seat"], frozenset("a on chair".split()), {"seat": "chair"})
    ['a <gender> on a chair']
    """
    return Alignment(known, dict(near or {})).captions(captions)


@dataclass(frozen=True)
class Neighbours:
    """For each word outside a vocabulary, the word in it whose vector is nearest, and the cosine distance in [0, 2].

    Words without a vector are left out.
    """

    nearest: dict[str, str]
    distance: dict[str, float]

    def within(self, delta: float) -> dict[str, str]:
        """Word -> nearest word, of the words whose distance is below delta."""
        return {word: other for word, other in self.nearest.items() if self.distance[word] < delta}


def neighbours(words: Collection[str], known: frozenset[str], vectors: Vectors) -> Neighbours:
    """The nearest known word of each word that is not known: one product of matrices for the table of distances.

    words, known: special tokens take no part. vectors: a word without one, or with one of length 0, takes no part. Of
    known words that are equally near, the first by name is taken.
    """
    places = {word: place for place, word in enumerate(vectors.words)}
    sides = [sorted(_plain(words) - known), sorted(_plain(known))]
    table = _unit(vectors.matrix)
    rows, columns = ([word for word in side if word in places and table[places[word]].any()] for side in sides)
    if not rows or not columns:
        return Neighbours({}, {})
    of_known = table[[places[word] for word in columns]].T  # (d, known)
    nearest, distance = {}, {}
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        similar = table[[places[word] for word in part]] @ of_known  # (rows, known)
        best = similar.argmax(axis=1)
        nearest |= {word: columns[place] for word, place in zip(part, best, strict=True)}
        distance |= dict(zip(part, (1 - similar.max(axis=1)).tolist(), strict=True))
    return Neighbours(nearest, distance)


def _plain(words: Collection[str]) -> set[str]:
    return {word for word in words if not word.startswith("<")}


def _unit(matrix: np.ndarray) -> np.ndarray:
    """(n, d) rows of length 1; a row of length 0 stays."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)


@dataclass(frozen=True)
class Alignment:
    """How the human words become the captioner's: words of `known` stay, those of `near` are substituted by a word,
    the others become `<unk>`."""

    known: frozenset[str]
    near: dict[str, str] = field(default_factory=dict)

    def captions(self, captions: Iterable[str]) -> list[str]:
        """Masked captions after alignment."""
        return next(aligned_lists(list(captions), [self]))

    def word(self, word: str) -> str:
        """What becomes of a word."""
        return word if word in self.known or word.startswith("<") else self.near.get(word, UNKNOWN_TOKEN)

    def counts(self, captions: Iterable[str]) -> np.ndarray:
        """(n, 3) integers: the words of each masked caption, those substituted by a word, those that became `<unk>`."""
        return np.array([self._counted(caption.split()) for caption in captions], dtype=int).reshape(-1, 3)

    def _counted(self, words: list[str]) -> tuple[int, int, int]:
        outside = [word for word in words if word not in self.known and not word.startswith("<")]
        substituted = sum(word in self.near for word in outside)
        return len(words), substituted, len(outside) - substituted


def aligned_lists(captions: Sequence[str], alignments: Sequence[Alignment]) -> Iterator[list[str]]:
    """Masked captions after each of some alignments, one list for each.

    Alignments to the words of nearly the same captions treat nearly all words alike. So each caption is read once, and
    then only those with a word that another alignment treats otherwise than the first.
    """
    split = [caption.split() for caption in captions]
    words = frozenset(chain.from_iterable(split))
    first, *others = alignments
    table = {word: first.word(word) for word in words}
    changed = {word for word, other in table.items() if other != word}
    found = [
        caption if changed.isdisjoint(own) else " ".join([table[word] for word in own])
        for caption, own in zip(captions, split, strict=True)
    ]
    yield found
    unsure = words.difference(frozenset.intersection(*(own.known for own in alignments)))  # the others all leave alone
    if not any(own.near for own in alignments):  # and of these, what none knows is <unk> by all
        unsure = unsure.intersection(chain.from_iterable(own.known for own in alignments))
    rows_with: dict[str, list[int]] = {word: [] for word in unsure}
    for row, own in enumerate(split) if others else ():
        for word in unsure.intersection(own):
            rows_with[word].append(row)
    for other in others:
        moved = {word: become for word in unsure if (become := other.word(word)) != table[word]}
        theirs, own_table = found.copy(), table | moved
        for row in set(chain.from_iterable(rows_with[word] for word in moved)):
            theirs[row] = " ".join([own_table[word] for word in split[row]])
        yield theirs


# (human words, known words) -> Alignment
Aligner = Callable[[Collection[str], frozenset[str]], Alignment]


def constant(words: Collection[str], known: frozenset[str]) -> Alignment:
    """Every human word outside the known ones becomes `<unk>`."""
    return Alignment(known)
