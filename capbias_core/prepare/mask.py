"""Masking of the words that name a protected attribute (LIC section 4, the reproducibility paper section 5.4)."""

from __future__ import annotations

from collections.abc import Iterable

from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute


def mask_tokens(tokens: Iterable[str], attribute: Attribute, merge_runs: bool = False) -> list[str]:
    """Tokens with every attribute word replaced by the attribute's mask token.

    merge_runs: False gives one mask token a word (the papers' way); True gives one for a run of masked words.
    """
    words, mask = attribute.masked_words, attribute.mask_token
    masked = [mask if token in words else token for token in tokens]
    if not merge_runs:
        return masked
    return [token for token, before in zip(masked, ["", *masked], strict=False) if not token == before == mask]


def masked_captions(captions: Iterable[str], attribute: Attribute, merge_runs: bool = False) -> list[str]:
    """Captions as an attacker reads them: masked tokens joined by one space."""
    captions = list(captions)
    masked = {own: " ".join(mask_tokens(tokenize(own), attribute, merge_runs)) for own in set(captions)}
    return [masked[caption] for caption in captions]
