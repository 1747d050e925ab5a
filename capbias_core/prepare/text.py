"""Captions to tokens, and captions cut short, so that captioners who write more are compared at equal length."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from capbias_core.errors import CapbiasError

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
    """Which texts an expression of RE2 matches, whatever their case.

    It takes as long as the texts times the expression, whose repeats count. Raises CapbiasError if it is none.
    """
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


def cut_text(words: int) -> str:
    """`first 10 words`, `first sentence`"""
    return "first sentence" if words == SENTENCE else f"first {words} words"
