"""What labels mean, and which columns hold labels of an attribute.

How people spell labels is data: `spellings.toml`, beside the values and aliases of each attribute.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path

from capbias_core.types import Attribute

MIXED = "(different labels)"  # the label of an image whose rows do not agree
MOST_LABELS = 20  # different labels of a column that may be an attribute
MOST_OTHERS = 4  # further labels in a column of any name that is taken for an attribute, such as both
FEW_OTHERS = 2  # labels beside as many as there are values, in a column whose name alone says what it holds

BRACKETS = "[](){}'\" \t"
NUMBERED = re.compile(r"\d+[.):]\s+(?=\D)")  # an item of a list, such as `0. She/her`
PARTS = re.compile(r"[/|,;&+]")
NAME_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@cache
def spellings() -> dict:
    """The tables of `spellings.toml`."""
    return tomllib.loads(Path(__file__).with_name("spellings.toml").read_text(encoding="utf-8"))


@cache
def _meanings() -> dict[str, str]:
    return {spelling: meaning for meaning, listed in spellings()["meanings"].items() for spelling in listed}


@lru_cache(100_000)
def meaning(label: object) -> str | None:
    """The meaning in `spellings.toml` of a label, whatever its case and punctuation; None if it has none.

    >>> [meaning(label) for label in (" FEMALE", "['1. He/him/his']", "Predominantly Feminine", "F|F", "F|M", "Both")]
    ['female', 'male', 'female', 'female', None, None]
    >>> [meaning(label) for label in ("N/A", "-", "Can't tell", "0")]
    ['unknown', 'unknown', 'unknown', None]
    """
    whole = _plain(label)
    if whole in _meanings():
        return _meanings()[whole]
    parts = {_meanings().get(_plain(part)) for part in PARTS.split(whole) if part.strip()}
    known = parts - {"unknown"} or parts
    return known.pop() if len(known) == 1 else None


def _plain(label: object) -> str:
    text = unicodedata.normalize("NFKC", str(label)).casefold().replace("’", "'").strip(BRACKETS)
    return " ".join(NUMBERED.sub("", text, count=1).replace("_", " ").replace("-", " ").strip(" .").split())


def spellings_of(attribute: Attribute) -> dict[str, tuple[str, ...]]:
    """For each value the spellings, beside its own, that `suggest_mapping` reads as the value."""
    listed = dict.fromkeys([*attribute.aliases, *_meanings()])
    read = suggest_mapping(attribute, listed)
    return {value: tuple(label for label in listed if read[label] == value) for value in attribute.values}


def is_unknown(label: object) -> bool:
    """Whether a label says nothing: it is empty, its annotators could not tell, or those of an image did not agree."""
    return meaning(label) == "unknown"


def values_among(labels: Iterable[str]) -> tuple[str, ...]:
    """The labels of a column that say something, sorted: the values of a column that is an attribute by itself.

    >>> values_among(["indoor", "outdoor", "Unsure", ""])
    ('indoor', 'outdoor')
    """
    return tuple(sorted({label for label in labels if not is_unknown(label)}))


def suggest_mapping(attribute: Attribute, raw_labels: Iterable) -> dict[str, str | None]:
    """Raw label -> value of the attribute, or None (dropped) if no value, alias or spelling fits."""
    exact = {value.lower(): value for value in attribute.values} | attribute.aliases
    by_meaning: dict[str, list[str]] = {}
    for value in attribute.values:
        by_meaning.setdefault(meaning(value) or "", []).append(value)
    # Two values of one meaning, such as woman and girl, differ in what the other spellings do not say.
    single = {name: values[0] for name, values in by_meaning.items() if name and len(values) == 1} | {"unknown": None}
    return {label: exact.get(str(label).strip().lower()) or single.get(meaning(label) or "") for label in raw_labels}


# columns


def label_columns(attribute: Attribute, columns: Mapping[str, Iterable]) -> dict[str, bool]:
    """The columns that may hold labels of the attribute -> whether their labels are read as its values.

    A column may hold them if its labels say each value and little else, whatever it is called; or if its name says so
    and it has about as many labels as there are values. If there is none: each column whose name says so. `light` and
    `dark` are not only labels of people, so labels alone count for attributes that captions name.

    columns: column -> its different labels.
    """
    named: dict[str, bool] = {}
    likely: dict[str, bool] = {}
    for column, labels in columns.items():
        about = is_about(attribute, column)
        few = set(labels) if len(set(labels)) <= 2 * max(MOST_LABELS, len(attribute.values)) else set()
        said = [label for label in few if not is_unknown(label)]
        mapping = suggest_mapping(attribute, said)
        unread = [label for label, value in mapping.items() if value is None]
        read = set(attribute.values) <= set(mapping.values())
        read = read and (about or (bool(attribute.words) and len(unread) <= MOST_OTHERS))
        if about:
            named[column] = read
        if read or (about and 2 <= len(said) <= len(attribute.values) + FEW_OTHERS):
            likely[column] = read
    return likely or named


def columns_by_attribute(known: Iterable[Attribute], columns: Mapping[str, Iterable]) -> dict[str, dict[str, bool]]:
    """Name of an attribute -> its `label_columns`; without attributes that have none. A column that is called as one
    attribute, or may hold an earlier one, is no other's."""
    result: dict[str, dict[str, bool]] = {}
    owners = {_joined(name): each.name for each in known for name in (each.name, *each.columns)}
    for attribute in known:
        taken = {column for candidates in result.values() for column in candidates}
        left = {
            column: labels
            for column, labels in columns.items()
            if owners.get(_joined(column), attribute.name) == attribute.name and column not in taken
        }
        result[attribute.name] = label_columns(attribute, left)
    return {name: candidates for name, candidates in result.items() if candidates}


def is_about(attribute: Attribute, column: str) -> bool:
    """Whether the name of a column says that it is about the attribute: it is called so, has a word for it, such as
    `GenderPresentation`, or is called after a value, such as `Male` or `is_female`."""
    words = {_joined(name) for name in (attribute.name, *attribute.columns)}
    words |= set(spellings()["columns"]["words"].get(attribute.name, ()))
    return bool(words & {*_words(column), _joined(column)}) or value_of_name(attribute, column) is not None


def value_of_name(attribute: Attribute, column: str) -> str | None:
    """The value that a column is called after: Male for `Male` and `is_male`."""
    names = _joined(column), _joined(column).removeprefix("is")
    return next((value for value in attribute.values if _joined(value) in names), None)


def is_about_labeller(column: str) -> bool:
    """Whether a name may be about the person who gave the labels: `annotator_gender`, but not `annotator1_gender`."""
    words = _words(column)
    return bool(words & set(spellings()["columns"]["people_who_label"])) and not any(map(str.isdigit, words))


def annotator_column(names: Iterable[str]) -> str | None:
    """The column that says who gave the labels of a row, None if there is none."""
    listed = spellings()["columns"]["annotators"]
    usual = {_joined(name): name for name in reversed(list(names))}
    return next((usual[name] for name in listed if name in usual), None)


def _words(name: str) -> set[str]:
    return set(map(str.lower, NAME_WORDS.findall(name)))


def _joined(name: str) -> str:
    """A name without case and punctuation, but for the `Answer.` before columns of Mechanical Turk."""
    return "".join(letter for letter in name.casefold().removeprefix("answer.") if letter.isalnum())
