"""Contextual vocabulary alignment, how quick it is: `python -m benchmarks.alignment`.

The table of distances of 10,000 human words to 1,000 known ones (300 numbers each) as one product of matrices, beside
the same word by word.
"""

from __future__ import annotations

import time

import numpy as np

from capbias_core.prepare.align import neighbours
from capbias_core.types import Vectors

WORDS, KNOWN, NUMBERS = 10_000, 1_000, 300


def main() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{place}" for place in range(WORDS + KNOWN)]
    vectors = Vectors(tuple(words), rng.normal(size=(len(words), NUMBERS)).astype(np.float32))
    start = time.perf_counter()
    found = neighbours(words[:WORDS], frozenset(words[WORDS:]), vectors)
    product = time.perf_counter() - start
    start = time.perf_counter()
    part = 100
    alone = [one_by_one(vectors, place) for place in range(part)]
    single = (time.perf_counter() - start) * WORDS / part
    assert all(found.nearest[words[place]] == words[own] for place, own in enumerate(alone))
    print(
        f"{WORDS:,} words x {KNOWN:,} known, {NUMBERS} numbers: {product:.2f} s (at most 1), word by word "
        f"{single:.0f} s (from {part} words), {single / product:.0f} times as long"
    )


def one_by_one(vectors: Vectors, place: int) -> int:
    """The nearest known word of one word, pair by pair."""
    own = vectors.matrix[place]
    return min(range(WORDS, WORDS + KNOWN), key=lambda other: distance(own, vectors.matrix[other]))


def distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(1 - first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


if __name__ == "__main__":
    main()
