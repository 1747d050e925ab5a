"""A caption that names one value of an attribute, said of each value and of nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capbias_core.prepare.text import tokens_with_spans
from capbias_core.types import Attribute

Forms = Sequence[Sequence[str]]
WORD = "{word}"
FORMS_METHOD = "each caption with the words of every value and with neutral ones"


@dataclass(frozen=True)
class Variants:
    """texts: K + 1 versions of one caption: with the words of each value, and with neutral ones (last). places: for
    each version the text before its first changed word, that word, and the text after it."""

    texts: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...]


def variants(caption: str, attribute: Attribute, value: int, forms: Forms) -> Variants:
    """The versions of a caption whose words name this value (its place among the values), and no other.

    Everything else stays as written. forms: see `attributes.word_forms`.

    >>> from capbias_core.attributes import get_attribute, word_forms
    >>> gender = get_attribute("gender")
    >>> variants("A man walks his dog.", gender, 1, word_forms(gender)).texts
    ('A woman walks her dog.', 'A man walks his dog.', 'A person walks their dog.')
    """
    words = set(attribute.value_words[value])
    spans = [(token, start, end) for token, start, end in tokens_with_spans(caption) if token in words]
    rows = [_row(token, value, forms) for token, _, _ in spans]
    return _joined(_version(caption, spans, [row[place] for row in rows]) for place in range(len(forms[0])))


def led_variants(text: str, lead: str, forms: Forms) -> Variants:
    """The versions of a text that names no value: behind a lead such as `a {word} says:`, with each value's word.

    >>> led_variants("I love my dog.", "a {word} says:", [["woman", "man", "person"]]).texts[0]
    'a woman says: I love my dog.'
    """
    before, _, after = lead.partition(WORD)
    return _joined((before, word, f"{after} {text}") for word in forms[0])


def _joined(places: Iterable[tuple[str, str, str]]) -> Variants:
    places = tuple(places)
    return Variants(tuple("".join(parts) for parts in places), places)


def _row(token: str, value: int, forms: Forms) -> Sequence[str]:
    return next((row for row in forms if row[value] == token), forms[0])


def _version(caption: str, spans: list[tuple[str, int, int]], words: list[str]) -> tuple[str, str, str]:
    """(before, word, after) with other words at these spans, capital letters as they were."""
    _, first, end = spans[0]
    written = [_cased(word, caption[start]) for word, (_, start, _) in zip(words, spans, strict=True)]
    after = ""
    for word, (_, start, stop) in zip(written[1:], spans[1:], strict=True):
        after += caption[end:start] + word
        end = stop
    return caption[:first], written[0], after + caption[end:]


def _cased(word: str, first: str) -> str:
    return word.capitalize() if first.isupper() else word
