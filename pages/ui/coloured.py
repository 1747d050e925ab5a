"""A caption as attackers read it: who wrote it, how sure they are, and its words coloured by what they add."""

from __future__ import annotations

from html import escape

import numpy as np
import streamlit as st

from capbias_core.attackers import attacker_entry
from capbias_core.types import Attribute
from capbias_core.views.captions import CaptionScores, toward
from capbias_core.views.sentence import probabilities_text
from capbias_core.views.words import coloured_words

DELTA = (
    "Convergence delta: the part of the logit that the words and the intercept leave unexplained. Integrated gradients "
    "approximate an integral by a sum; near 0, the colours explain the score."
)


def coloured_caption(*caption, **more) -> None:
    """Draw a `caption_line`."""
    st.html(caption_line(*caption, **more))


def caption_line(
    name: str,
    tokens,
    words: np.ndarray,
    attribute: Attribute,
    shares: np.ndarray,
    originals,
    largest: float = 0.0,
    extra: str = "",
    alone: np.ndarray | None = None,
    only: str = "",
) -> str:
    """HTML of a line: who, the probability of each value, and the words.

    shares: (K,). originals: the words as written, where they are as many as the tokens. alone: (T,) booleans, words
    that the caption beside it does not have. only: the one token that is coloured; every one unless given.
    """
    ends, values = toward(attribute, words, int(shares.argmax()))
    kept = originals if len(originals) == len(tokens) else None
    said = probabilities_text(attribute.values, shares)
    who = f"<div><b>{escape(name)}</b> · {escape(said + extra)}</div>"
    return who + coloured_words(tokens, values, ends, kept, largest, alone, only)


def attribution(scores: CaptionScores, row: int) -> None:
    """The method behind the colours of the caption at a row of the scores, and how much of the logit it leaves out."""
    method, delta = attacker_entry(scores.run.spec.attacker).attribution, scores.table.at[row, "delta"]
    number = f"{delta:.3f}" if delta >= 0.0005 else "under 0.001"
    gap = f"convergence delta {number}" if delta > 0 else ""
    if shown := ", ".join(filter(None, (method, gap))):
        st.markdown(f"Colours: {shown}", help=DELTA if gap else None)
