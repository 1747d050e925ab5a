"""How people rated single words: VADER's lexicon (Hutto and Gilbert, ICWSM 2014), without its rules."""

from __future__ import annotations

from functools import cache

from capbias_core.resources import VALENCE_FILE


@cache
def valences() -> dict[str, float]:
    """Lower-case word -> its mean rating, -4 (negative) to 4 (positive).

    >>> valences()["beautiful"], "chair" in valences()
    (2.9, False)
    """
    lines = VALENCE_FILE.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {word: float(rating) for word, rating in rows}
