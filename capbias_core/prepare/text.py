"""Captions to tokens; captions cut short, so that captioners who write more are compared at equal length; and captions
with the words of another value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.errors import CapbiasError
from capbias_core.types import Attribute

# A special token such as <unk>, a clitic ('s), or a run of letters and digits with the accents that follow them.
ACCENT = "[\u0300-\u036f]"
TOKEN = re.compile(rf"<\w+>|['’](?:s|re|ve|ll|d|m|t)\b|[^\W_]+(?:{ACCENT}+[^\W_]*)*", re.IGNORECASE)
# The same in lower case without accents, which is read in half the time.
ASCII_TOKEN = re.compile(r"<\w+>|'(?:s|re|ve|ll|d|m|t)\b|[a-z0-9]+", re.ASCII)

SENTENCE = 0  # in place of a number of words: up to the end of the first sentence
_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s|$)")


def tokenize(caption: str) -> list[str]:
    """Lower-case tokens of a caption; punctuation is dropped, special tokens such as `<unk>` are kept whole.

    >>> tokenize("A woman's T-shirt, <unk>.")
    ['a', 'woman', "'s", 't', 'shirt', '<unk>']
    """
    lower = caption.lower()
    if lower.isascii():
        words = lower.split()
        return words if "".join(words).isalnum() else ASCII_TOKEN.findall(lower)
    return [_plain(token) for token in TOKEN.findall(caption)]


def tokens_with_spans(caption: str) -> list[tuple[str, int, int]]:
    """The tokens of `tokenize`, each with its start and end in the caption as written.

    >>> tokens_with_spans("A dog.")
    [('a', 0, 1), ('dog', 2, 5)]
    """
    return [(_plain(match[0]), match.start(), match.end()) for match in TOKEN.finditer(caption)]


def _plain(token: str) -> str:
    lower = token.lower()
    return lower if lower.isascii() else unicodedata.normalize("NFC", lower).replace("’", "'")


def matching(texts: pa.Array, expression: str) -> np.ndarray:
    """Which texts an expression of RE2 matches, whatever their case. It takes as long as the texts times the
    expression, whose repeats count. Raises CapbiasError if it is none."""
    try:
        return pc.match_substring_regex(texts, expression, ignore_case=True).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise CapbiasError(
            f"{expression[:200]!r} is not a regular expression: {str(error).partition(': ')[2].splitlines()[0]}.",
            "It may be one of RE2, such as (man|boy).*tie, which has no lookaround and no backreference.",
        ) from None


def shortened(caption: str, words: int) -> str:
    """The first words of a caption as written, or its first sentence (SENTENCE); all of a caption that is shorter.

    >>> shortened("A dog runs. It is brown.", 2), shortened("A dog runs. It is brown.", SENTENCE)
    ('A dog', 'A dog runs.')
    """
    if words == SENTENCE:
        end = _END.search(caption)
        return caption[: end.end()] if end else caption
    spans = tokens_with_spans(caption)
    return caption[: spans[words - 1][2]] if len(spans) > words else caption


def cut(frame: pd.DataFrame, words: int) -> pd.DataFrame:
    """Captions, all cut alike. frame: with a column caption; other columns stay."""
    return frame.assign(caption=[shortened(caption, words) for caption in frame["caption"]])


def mean_words(frame: pd.DataFrame) -> float:
    """Words of a caption, on average; 0 of none."""
    return sum(len(tokenize(caption)) for caption in frame["caption"]) / max(len(frame), 1)


def words_for(lengths: np.ndarray, mean: float) -> int:
    """After how many words captions are cut so that they have this many on average, as nearly as whole words allow.
    lengths: (n,) words of each caption.

    >>> words_for(np.array([4, 10, 100]), 7.0)
    8
    """
    longer = 1 - np.cumsum(np.bincount(lengths)) / len(lengths)  # share of captions with more than 0, 1, 2, ... words
    return 1 + int(np.abs(np.cumsum(longer) - mean).argmin())


def cut_text(words: int) -> str:
    """`first 10 words`, `first sentence`"""
    return "first sentence" if words == SENTENCE else f"first {words} words"


# a caption that names one value, with the words of each other value

WORD = "{word}"
FORMS_METHOD = "each caption with the words of every value and with neutral ones"


@dataclass(frozen=True)
class Variants:
    """texts: K + 1 versions of one caption: with the words of each value, and with neutral ones (last). places: for
    each version the text before its first changed word, that word, and the text after it."""

    texts: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...]


def variants(caption: str, attribute: Attribute, value: int, forms: Sequence[Sequence[str]]) -> Variants:
    """The versions of a caption whose words name this value (its place among the values), and no other.

    Everything else stays as written. forms: see `attributes.word_forms`.

    >>> from capbias_core.attributes import get_attribute, word_forms
    >>> gender = get_attribute("gender")
    >>> variants("A man walks his dog.", gender, 1, word_forms(gender)).texts
    ('A woman walks her dog.', 'A man walks his dog.', 'A person walks their dog.')
    """
    words = set(attribute.value_words[value])
    spans = [(token, start, end) for token, start, end in tokens_with_spans(caption) if token in words]
    rows = [next((row for row in forms if row[value] == token), forms[0]) for token, _, _ in spans]
    versions = []
    for other in range(len(forms[0])):
        written = [
            row[other].capitalize() if caption[start].isupper() else row[other]
            for row, (_, start, _) in zip(rows, spans, strict=True)
        ]
        _, first, end = spans[0]
        after = ""
        for word, (_, start, stop) in zip(written[1:], spans[1:], strict=True):
            after += caption[end:start] + word
            end = stop
        versions.append((caption[:first], written[0], after + caption[end:]))
    return _variants(versions)


def led_variants(text: str, lead: str, forms: Sequence[Sequence[str]]) -> Variants:
    """The versions of a text that names no value: behind a lead such as `a {word} says:`, with each value's word.

    >>> led_variants("I love my dog.", "a {word} says:", [["woman", "man", "person"]]).texts[0]
    'a woman says: I love my dog.'
    """
    before, _, after = lead.partition(WORD)
    return _variants((before, word, f"{after} {text}") for word in forms[0])


def _variants(places: Iterable[tuple[str, str, str]]) -> Variants:
    places = tuple(places)
    return Variants(tuple("".join(parts) for parts in places), places)
