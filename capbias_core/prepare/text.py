"""Captions to tokens."""

from __future__ import annotations

import re

# A special token such as <unk>, a clitic ('s), or a run of letters and digits.
TOKEN = re.compile(r"<\w+>|['’](?:s|re|ve|ll|d|m|t)\b|[^\W_]+", re.IGNORECASE)


def tokenize(caption: str) -> list[str]:
    """Lower-case tokens of a caption; punctuation is dropped, special tokens such as `<unk>` are kept whole.

    >>> tokenize("A woman's T-shirt, <unk>.")
    ['a', 'woman', "'s", 't', 'shirt', '<unk>']
    """
    return [token.replace("’", "'") for token in TOKEN.findall(caption.lower())]


def tokens_with_spans(caption: str) -> list[tuple[str, int, int]]:
    """The tokens of `tokenize`, each with its start and end in the caption as written.

    >>> tokens_with_spans("A dog.")
    [('a', 0, 1), ('dog', 2, 5)]
    """
    return [(match[0].lower().replace("’", "'"), match.start(), match.end()) for match in TOKEN.finditer(caption)]
