"""Two captions aligned word by word: worked out by hand."""

from __future__ import annotations

import pytest

from capbias_core.views.captions import closest, words_of_one


def alone(first: str, second: str) -> tuple[list[str], list[str]]:
    one, other = first.split(), second.split()
    return tuple(
        [word for word, mark in zip(words, marks, strict=True) if mark]
        for words, marks in zip((one, other), words_of_one(one, other), strict=True)
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a man with a dog", "a man with a dog", ([], [])),
        ("a man with a dog", "a man with a big dog", ([], ["big"])),
        ("a man holding a knife", "a woman holding a cake", (["man", "knife"], ["woman", "cake"])),
        ("a dog and a cat", "a cat and a dog", (["and", "a", "cat"], ["a", "cat", "and"])),  # longest run first
        ("a dog", "", (["a", "dog"], [])),
        ("", "", ([], [])),
    ],
)
def test_words_that_the_other_does_not_have_at_that_place(first, second, expected):
    assert alone(first, second) == expected


def test_a_word_that_comes_often_is_aligned_too():
    """difflib takes words that come in more than 1% of 200 and more for junk, unless told not to."""
    long = "the dog " * 150
    assert alone(long, long + "barks") == ([], ["barks"])


def test_the_closest_caption_shares_most_words_in_order():
    own = ["a", "man", "riding", "a", "wave"]
    others = ["two dogs run", "a wave and a man riding", "a man riding a big wave", "a man riding a small wave"]
    assert closest(own, [other.split() for other in others]) == 2
