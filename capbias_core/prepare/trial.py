"""What an attribute's words do to captions, before anything is measured with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute

SHOWN_WORDS = 20
SHOWN_EXAMPLES = 5


@dataclass(frozen=True)
class Trial:
    """captions: how many. named: value -> captions with a word of it; several: with words of two values or more;
    none: with no word. words: masked word -> captions with it, commonest first, the first 20. examples: captions as
    written and as an attacker reads them, one for each of the commonest words."""

    captions: int
    named: dict[str, int]
    several: int
    none: int
    words: dict[str, int]
    examples: tuple[tuple[str, str], ...]


def try_attribute(captions: Sequence[str], attribute: Attribute, tokens: Tokens | None = None) -> Trial:
    """Count what the words of an attribute find in captions as written. tokens: of the captions, if they are stored.

    >>> gender = Attribute("gender", "gender", ("Female", "Male"), {"Female": ("woman",), "Male": ("man",)}, "<g>")
    >>> trial = try_attribute(["A man.", "a woman and a man", "a dog"], gender)
    >>> trial.named, trial.several, trial.none, trial.words
    ({'Female': 1, 'Male': 2}, 1, 1, {'man': 2, 'woman': 1})
    >>> trial.examples
    (('A man.', 'a <g>'), ('a woman and a man', 'a <g> and a <g>'))
    """
    tokens = Tokens.of(captions) if tokens is None else tokens
    by_value = tokens.with_any(attribute.value_words)
    values = np.asarray(by_value.sum(axis=1)).ravel()
    words = sorted(attribute.masked_words & tokens.vocabulary.keys())
    has_word = tokens.with_any([[word] for word in words]).tocsc()
    counts = np.asarray(has_word.sum(axis=0)).ravel()
    order = np.argsort(-counts, kind="stable")[:SHOWN_WORDS]
    shown = dict.fromkeys(_first_with(has_word, place) for place in order[:SHOWN_EXAMPLES])
    written = [captions[place] for place in shown]
    return Trial(
        captions=len(captions),
        named=dict(zip(attribute.values, map(int, np.asarray(by_value.sum(axis=0)).ravel()), strict=True)),
        several=int((values > 1).sum()),
        none=int((values == 0).sum()),
        words={words[place]: int(counts[place]) for place in order},
        examples=tuple(zip(written, Tokens.of(written).masked(attribute), strict=True)),
    )


def _first_with(has_word, place: int) -> int:
    """The first caption that has a word."""
    return int(has_word.indices[has_word.indptr[place] : has_word.indptr[place + 1]].min())
