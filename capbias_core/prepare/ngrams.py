"""Which words and pairs of words a masked caption has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# A term that no caption has: its column is all zeros, so captions without any word still make a matrix.
NOTHING = "<>"


def vectorizer(longest: int) -> Any:
    """scikit-learn's, untrained: binary n-grams of up to `longest` words, tokens joined by a space."""
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(token_pattern=r"\S+", lowercase=False, ngram_range=(1, longest), binary=True, dtype=float)


def ngram_matrix(captions: Sequence[str], longest: int) -> tuple[Any, dict[str, int]]:
    """(n, V) sparse, 1.0 where a caption has an n-gram; and the column of each n-gram, with that of NOTHING.

    >>> matrix, columns = ngram_matrix(["a cat", "a dog a dog"], 2)
    >>> matrix[:, columns["a dog"]].toarray().ravel().tolist()
    [0.0, 1.0]
    """
    own = vectorizer(longest)
    matrix = own.fit_transform([*captions, NOTHING]).tocsr()
    return matrix[: len(captions)], own.vocabulary_
