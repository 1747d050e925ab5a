"""Vocabulary alignment: human words that a captioner never uses become `<unk>` (LIC section 4)."""

from __future__ import annotations

from collections.abc import Iterable

from capbias_core.types import UNKNOWN_TOKEN


def vocabulary(captions: Iterable[str]) -> frozenset[str]:
    """The words of masked captions (tokens joined by a space)."""
    return frozenset(word for caption in captions for word in caption.split())


def align_captions(captions: Iterable[str], known: frozenset[str]) -> list[str]:
    """Masked captions in which every word outside `known` is `<unk>` (constant alignment).

    >>> align_captions(["a <gender> with an ocarina"], frozenset("a an <gender> with".split()))
    ['a <gender> with an <unk>']
    """
    return [" ".join(word if word in known else UNKNOWN_TOKEN for word in caption.split()) for caption in captions]
