"""A caption to be read from the back of a room: each word with its value under it. Every text is escaped."""

from __future__ import annotations

from html import escape

import numpy as np

from capbias_core.present.colour import ramp
from capbias_core.types import Attribute

LARGE = """<style>
.cb-large {display: flex; flex-wrap: wrap; gap: 1.2rem .9rem; margin: 1rem 0}
.cb-large span {display: inline-block; text-align: center; font-size: clamp(28px, 3vw, 52px); line-height: 1.5}
.cb-large small {display: block; font-size: clamp(16px, 1.3vw, 24px); font-variant-numeric: tabular-nums}
.cb-score {font-size: clamp(28px, 3.2vw, 56px); font-weight: 650}
.cb-said {font-size: clamp(18px, 1.5vw, 26px)}
</style>"""


def large_words(tokens, values: np.ndarray, attribute: Attribute, originals, largest: float = 0.0) -> str:
    """HTML of one caption, as `coloured_words` has it, with each word's value and the value of the attribute that it
    pushes toward printed under it.

    tokens: T masked tokens; values: (T,) signed contributions to the logit (negative: toward the first value, positive:
    toward the second). originals: the T words that stood there before masking. largest: the value with the full
    colour; 0 takes this caption's own.
    """
    largest = largest or max((abs(float(value)) for value in values), default=0.0)
    shown = [
        _word(token, float(value), attribute, original, largest)
        for token, value, original in zip(tokens, values, originals, strict=True)
    ]
    return f'<div class="cb-large">{"".join(shown)}</div>'


def pushes(value: float, attribute: Attribute) -> str:
    """A part of the logit and the value of the attribute that it is toward: `0.40 Male`, `0.00`."""
    printed = f"{abs(value):.2f}"
    return f"{printed} {attribute.values[int(value > 0)]}" if float(printed) else printed


def _word(token: str, value: float, attribute: Attribute, original: str, largest: float) -> str:
    told = escape(pushes(value, attribute))
    if token == attribute.mask_token:
        return f'<span><span class="cb-w cb-masked">{escape(original)}</span><small>masked, {told}</small></span>'
    side = "cb-first" if value < 0 else "cb-second"
    return (
        f'<span><span class="cb-w {side}" style="background:{ramp(value, largest)}">{escape(token)}</span>'
        f"<small>{told}</small></span>"
    )
