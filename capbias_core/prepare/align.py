"""Vocabulary alignment: human words that a captioner never uses are replaced.

Constant (LIC section 4): by `<unk>`. Contextual (the DBAC paper, section 4.2, Eq. 9): by the nearest word that the
captioner uses if its cosine distance is below delta, else by `<unk>`. Special tokens such as `<gender>` stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from capbias_core.prepare.tokens import Tokens
from capbias_core.types import UNKNOWN_TOKEN, Vectors

DELTA = 0.4
ROWS = 4096  # of the table of distances at a time, so that large vocabularies fit in memory


@dataclass(frozen=True)
class Alignment:
    """A map of human words: words in `known` and special tokens stay, others become their `near` word or `<unk>`.

    >>> alignment = Alignment(frozenset(["a", "on", "chair"]), {"seat": "chair"})
    >>> alignment.captions(Tokens.of(["a <gender> on a red seat"]))[0]
    'a <gender> on a <unk> chair'
    """

    known: frozenset[str]
    near: dict[str, str] = field(default_factory=dict)

    def word(self, word: str) -> str:
        """The aligned word."""
        return word if word in self.known or word.startswith("<") else self.near.get(word, UNKNOWN_TOKEN)

    def captions(self, captions: Tokens) -> Tokens:
        """Masked captions after alignment."""
        return captions.mapped(map(self.word, captions.words))

    def counts(self, captions: Tokens) -> np.ndarray:
        """(n, 3) integers for each masked caption: words, words replaced by a known word, words replaced by `<unk>`."""
        outside = np.array([word not in self.known and not word.startswith("<") for word in captions.words], dtype=bool)
        near = np.array([word in self.near for word in captions.words], dtype=bool)
        chosen = np.column_stack([np.ones(len(outside)), outside & near, outside & ~near])[captions.codes]
        return np.column_stack([np.bincount(captions.caption, each, len(captions)) for each in chosen.T]).astype(int)


# (human words, known words) -> Alignment
Aligner = Callable[[Collection[str], frozenset[str]], Alignment]


def constant(words: Collection[str], known: frozenset[str]) -> Alignment:
    """Each unknown human word becomes `<unk>`."""
    return Alignment(known)


@dataclass(frozen=True)
class Neighbours:
    """For each word outside a vocabulary the nearest one in it; words without a vector are left out."""

    nearest: dict[str, str]
    distance: dict[str, float]  # cosine distance in [0, 2]

    def within(self, delta: float) -> dict[str, str]:
        """Word -> nearest word, if its distance is below delta."""
        return {word: other for word, other in self.nearest.items() if self.distance[word] < delta}


def neighbours(words: Collection[str], known: frozenset[str], vectors: Vectors) -> Neighbours:
    """The nearest known word of each unknown word, by cosine distance; in a tie the first by name. Special tokens and
    words without a vector, or with one of length 0, take no part."""
    index = {word: row for row, word in enumerate(vectors.words)}
    length = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    table = np.divide(vectors.matrix, length, out=np.zeros_like(vectors.matrix), where=length > 0)
    rows, columns = (
        [word for word in sorted(side) if not word.startswith("<") and word in index and table[index[word]].any()]
        for side in (set(words) - known, known)
    )
    if not rows or not columns:
        return Neighbours({}, {})
    of_known = table[[index[word] for word in columns]].T  # (d, known)
    nearest, distance = {}, {}
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        similar = table[[index[word] for word in part]] @ of_known  # (rows, known)
        best = similar.argmax(axis=1)
        nearest |= {word: columns[column] for word, column in zip(part, best, strict=True)}
        distance |= dict(zip(part, (1 - similar.max(axis=1)).tolist(), strict=True))
    return Neighbours(nearest, distance)
