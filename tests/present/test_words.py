"""Captions with coloured words: what is marked is marked without colour too, and a caption is only text."""

from __future__ import annotations

import re

import numpy as np

from capbias_core.attributes import get_attribute
from capbias_core.views.words import STYLE, coloured_words

GENDER = get_attribute("gender")


def classes(html: str) -> dict[str, str]:
    """Word -> the classes of its mark."""
    return {word: found for found, word in re.findall(r'<span class="([^"]*)"[^>]*>([^<]*)</span>', html)}


def test_words_that_only_one_caption_has_are_marked_masked_ones_too():
    alone = np.array([False, True, True])
    html = coloured_words(["<gender>", "a", "<gender>"], np.zeros(3), GENDER, ["man", "a", "boy"], alone=alone)
    assert classes(html) == {"man": "cb-w cb-masked", "a": "cb-w cb-second cb-alone", "boy": "cb-w cb-masked cb-alone"}
    assert "cb-alone" not in coloured_words(["a"], np.zeros(1), GENDER)


def test_a_caption_is_only_text():
    html = coloured_words(["<b>x</b>"], np.ones(1), GENDER, alone=np.array([True]))
    assert "<b>" not in html and "&lt;b&gt;" in html


def test_what_a_word_adds_is_there_without_a_mouse():
    html = coloured_words(["cake", "<gender>"], np.array([-0.4, 0.1]), GENDER, ["cake", "man"])
    assert 'tabindex="0"' in html and html.count("tabindex") == 1  # a stop per caption, not per word
    assert 'data-adds="(−0.40 Female)"' in html and 'data-adds="(masked, +0.10)"' in html
    assert ".cb-words:focus-visible" in STYLE and "attr(data-adds)" in STYLE
