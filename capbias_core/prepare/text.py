"""Captions to tokens; captions cut to equal length; and captions with the words of another value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.errors import CapbiasError, short
from capbias_core.types import Attribute

# A special token such as <unk>, a clitic ('s), or a run of letters and digits with the accents that follow them.
ACCENT = "[\u0300-\u036f]"
_HYPHEN = "[-\u2010\u2011]"
_NOUN = (
    r"(?:(?:wo)?m[ae]n|(?:cow)?boys?|girls?|guys?|dudes?|(?:gentle)?m[ae]n|lad(?:y|ies)|kings?|queens?|prince(?:ss)?|mothers?"
    r"|fathers?|sons?|daughters?|brothers?|sisters?|wi(?:fe|ves)|husbands?|aunts?|uncles?|s?he|kids?|child|baby|old)"
)
# Two words in one: s/he, (s)he, wo/man, (fe)male. No letter before or after.
_BOTH = (
    r"[(\[]?(?<![^\W_'’])(?:(?:s[)\]/|_(\[*.-]+(?=he\b))|(?:wo[)\]/|_(\[*]+(?=m[ae]n\b))|(?:fe[)\]/|_(\[*]+(?=males?\b)))"
    r"(?:he|m[ae]n|males?)"
)
# One word: wo-man, cut at the end of a line or a syllable; non-male; man-made, which names nobody, unlike man-child.
_JOINED = (
    rf"(?<![^\W_])(?:(?:wo|fe|hu|non|un|anti){_HYPHEN}(?:m[ae]n|males?|human)s?\b"
    rf"|{_NOUN}(?:{_HYPHEN}(?!(?:{_NOUN}|in|at|and|or|to|of|with|who|on|from|friends?|couples?|\w*(?:wo)?m[ae]n)\b)[^\W_]+)+)"
)
_WORD = rf"[^\W_]+(?:{ACCENT}+[^\W_]*)*"
TOKEN = re.compile(rf"<\w+>|['’](?:s|re|ve|ll|d|m|t)\b|{_BOTH}|{_JOINED}|{_WORD}", re.IGNORECASE)
_COMPOUND = re.compile(rf"{_BOTH}|{_JOINED}", re.IGNORECASE)
# For lower case without accents and compounds; takes half the time.
ASCII_TOKEN = re.compile(r"<\w+>|'(?:s|re|ve|ll|d|m|t)\b|[a-z0-9]+", re.ASCII)
_MAY_BE_COMPOUND = re.compile(r"[-/|_*(\[]")


def tokenize(caption: str) -> list[str]:
    """Lower-case tokens of a caption; punctuation is dropped, special tokens such as `<unk>` are kept whole. Compounds
    that change whom a word names are one token (man-made), and two words written as one are two (s/he).

    >>> tokenize("A woman's T-shirt, <unk>."), tokenize("S/he sees a man-made lake.")
    (['a', 'woman', "'s", 't', 'shirt', '<unk>'], ['she', 'he', 'sees', 'a', 'manmade', 'lake'])
    """
    lower = caption.lower()
    if lower.isascii():
        words = lower.split()
        if "".join(words).isalnum():
            return words
        if not _MAY_BE_COMPOUND.search(lower):
            return ASCII_TOKEN.findall(lower)
    return [token for token, _, _ in tokens_with_spans(caption)]


def tokens_with_spans(caption: str) -> list[tuple[str, int, int]]:
    """The tokens of `tokenize`, each with its start and end in the caption as written.

    >>> tokens_with_spans("A dog.")
    [('a', 0, 1), ('dog', 2, 5)]
    """
    tokens = []
    for match in TOKEN.finditer(caption):
        start, end = match.span()
        lower = match[0].lower()
        token = lower if lower.isascii() else unicodedata.normalize("NFC", lower).replace("’", "'")
        if not token.isalnum() and _COMPOUND.fullmatch(caption, start, end):
            token = re.sub(r"[\W_]", "", token)
            last = re.search(r"[a-z]+$", lower)
            if not re.search(rf"[a-z]{_HYPHEN}", lower) or token == "she":  # both words
                assert last is not None
                tokens.append((token, start, start + last.start()))
                token, start = last[0], start + last.start()
        tokens.append((token, start, end))
    return tokens


def matching(texts: pa.Array, expression: str) -> np.ndarray:
    """Which texts an expression of RE2 matches, ignoring case; in time linear in texts times expression, repeats
    included. Raises CapbiasError for an invalid expression."""
    try:
        return pc.match_substring_regex(texts, expression, ignore_case=True).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise CapbiasError(
            f"{short(expression, 200)!r} is not a regular expression: {str(error).partition(': ')[2].splitlines()[0]}.",
            "It may be one of RE2, such as (man|boy).*tie, which has no lookaround and no backreference.",
        ) from None


def words_for(lengths: np.ndarray, mean: float) -> int:
    """After how many words to cut captions so that their average length is nearest to `mean`. lengths: (n,) words.

    >>> words_for(np.array([4, 10, 100]), 7.0)
    8
    """
    longer = 1 - np.cumsum(np.bincount(lengths)) / len(lengths)  # share of captions with more than 0, 1, 2, ... words
    return 1 + int(np.abs(np.cumsum(longer) - mean).argmin())


FORMS_METHOD = "each caption with the words of every value and with neutral ones"


@dataclass(frozen=True)
class Variants:
    """K + 1 versions of one caption: with the words of each value, and with neutral ones (last)."""

    texts: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...]  # the text before the first changed word, that word, the text after it


def variants(caption: str, attribute: Attribute, value: int, forms: Sequence[Sequence[str]]) -> Variants:
    """The versions of a caption whose words name this value, by its index, and no other. Other text stays as written.
    forms: see `attributes.word_forms`.

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
    return Variants(tuple(map("".join, versions)), tuple(versions))
