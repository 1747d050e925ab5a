"""A caption as attackers read it: who wrote it, how sure they are, and its words coloured by what they add."""

from __future__ import annotations

from html import escape

import numpy as np
import streamlit as st

from capbias_core.analysis.caption_filters import toward
from capbias_core.present.words import coloured_words
from capbias_core.types import Attribute


def coloured_caption(*caption, **more) -> None:
    """Draw a `caption_line`."""
    st.html(caption_line(*caption, **more))


def caption_line(
    name: str,
    tokens,
    words: np.ndarray,
    attribute: Attribute,
    predicted: int,
    share: float,
    originals,
    largest: float,
    extra: str = "",
    alone: np.ndarray | None = None,
    only: str = "",
) -> str:
    """HTML of a line: who, how sure, and the words.

    originals: the words as written, where they are as many as the tokens. alone: (T,) booleans, words that the caption
    beside it does not have. only: the one token that is coloured; every one unless given.
    """
    ends, values = toward(attribute, words, predicted)
    kept = originals if len(originals) == len(tokens) else None
    who = f"<div><b>{escape(name)}</b> · {share:.2f} {escape(attribute.values[predicted])}{escape(extra)}</div>"
    return who + coloured_words(tokens, values, ends, kept, largest, alone, only)
