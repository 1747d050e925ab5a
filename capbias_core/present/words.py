"""A caption with each word coloured by what it adds; every text is escaped, so a caption can only be read."""

from __future__ import annotations

from html import escape

import numpy as np

from capbias_core.present.colour import ramp
from capbias_core.present.sentence import signed
from capbias_core.types import Attribute

STYLE = """<style>
.cb-words {line-height: 2.1; font-size: 1.02rem; overflow-wrap: anywhere}
.cb-w {display: inline-block; max-width: 100%; line-height: 1.4; border-radius: 4px; padding: 1px 5px; margin: 0 1px}
.cb-first {border-bottom: 2px dotted #D9701F}
.cb-second {border-bottom: 2px solid #3B82D0}
.cb-masked {border: 1px dashed #8A94A3; opacity: .75}
.cb-alone {font-weight: 750}
/* What a word adds: read out by a screen reader, and shown where a keyboard goes to the caption. */
.cb-w[data-adds]::after {content: " " attr(data-adds); position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap}
.cb-words:focus-visible .cb-w[data-adds]::after {position: static; width: auto; height: auto; clip-path: none;
  font-size: .72rem; padding-left: .2rem; white-space: nowrap}
.cb-legend {font-size: .85rem}
</style>"""


def coloured_words(
    tokens, values: np.ndarray, attribute: Attribute, originals=None, largest: float = 0.0, alone=None, only: str = ""
) -> str:
    """HTML of one caption. tokens: T masked tokens; values: (T,) signed contributions (negative pushes toward the
    first value, positive toward the second). originals: the T words that stood there before masking, if known.
    largest: the value that gets the full colour; 0 takes this caption's own. alone: (T,) booleans, words that the
    caption beside it does not have; they are bold.
    """
    largest = largest or max((abs(float(value)) for value in values), default=0.0)
    marks = [False] * len(tokens) if alone is None else alone
    shown = [
        escape(original)
        if only not in ("", token)
        else _word(token, float(value), attribute, original, largest, " cb-alone" if mark else "")
        for token, value, original, mark in zip(tokens, values, originals or tokens, marks, strict=True)
    ]
    named = 'role="group" tabindex="0" aria-label="A caption, with what each word adds to the logit"'
    return f'<div class="cb-words" {named}>{" ".join(shown)}</div>'


def _word(token: str, value: float, attribute: Attribute, original: str, largest: float, mark: str) -> str:
    if token == attribute.mask_token:
        title = f"masked: the attacker reads {token} ({signed(value, 3)})"
        adds = f'title="{escape(title)}" data-adds="(masked, {signed(value, 2)})"'
        return f'<span class="cb-w cb-masked{mark}" {adds}>{escape(original)}</span>'
    toward = attribute.values[0] if value < 0 else attribute.values[1]
    side = "cb-first" if value < 0 else "cb-second"
    title = f"{signed(value, 3)} toward {toward}"
    adds = f'title="{escape(title)}" data-adds="({signed(value, 2)} {escape(toward)})"'
    return f'<span class="cb-w {side}{mark}" style="background:{ramp(value, largest)}" {adds}>{escape(token)}</span>'


def legend(attribute: Attribute, beside: bool = False) -> str:
    """HTML that names both ends of the ramp. beside: two captions are compared, and words of only one are marked."""
    ends = "".join(
        f'<span class="cb-w {side}" style="background:{ramp(sign, 1.0)}">{escape(value)}</span>'
        + (" or " if sign < 0 else "")
        for sign, side, value in ((-1, "cb-first", attribute.values[0]), (1, "cb-second", attribute.values[1]))
    )
    masked = (
        ' · <span class="cb-w cb-masked">masked word</span>, of which the attacker sees only that it is there'
        if attribute.masked_words
        else ""
    )
    alone = ' · <span class="cb-alone">only in this caption</span>' if beside else ""
    return (
        f'<div class="cb-legend">A word pushes the attacker toward {ends} (dotted and solid underline)'
        f"{masked}{alone} · hover a word for what it adds to the logit, or go to a "
        "caption with Tab</div>"
    )
