"""Captions cut short, so that captioners who write more are compared with others at equal length."""

from __future__ import annotations

import re

import pandas as pd

from capbias_core.prepare.text import tokenize, tokens_with_spans

SENTENCE = 0  # in place of a number of words: up to the end of the first sentence
_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s|$)")


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
