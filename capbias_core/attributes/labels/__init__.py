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
FEW_OTHERS = 2  # labels that a column has beside as many as there are values, if its name alone says what it holds

BRACKETS = "[](){}'\" \t"
NUMBERED = re.compile(r"\d+[.):]\s+(?=\D)")  # an item of a list, such as `0. She/her`
PARTS = re.compile(r"[/|,;&+]")
NUMBER = re.compile(r"([+-]?\d+)(?:\.0+)?")
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
    """Raw label -> value of the attribute, or None (dropped) if no value, alias or spelling fits. raw_labels: all
    different labels of a column, since numbers are only read as a whole scale."""
    labels = list(raw_labels)
    exact = {value.lower(): value for value in attribute.values} | attribute.aliases
    by_meaning: dict[str, list[str]] = {}
    for value in attribute.values:
        by_meaning.setdefault(meaning(value) or "", []).append(value)
    # Two values of one meaning, such as woman and girl, differ in what the other spellings do not say.
    single = {name: values[0] for name, values in by_meaning.items() if name and len(values) == 1} | {"unknown": None}
    # Numbers are read if they are a scale.
    whole = {label: NUMBER.fullmatch(str(label).strip()) for label in labels}
    number_of = {label: str(int(match[1])) for label, match in whole.items() if match and len(match[1]) < 4}
    numbers, steps = set(number_of.values()), {}
    for scale in spellings()["scales"]:
        meanings = {step: name for name, listed in scale.items() for step in listed}
        if numbers <= meanings.keys() and numbers >= {scale["light"][0], scale["dark"][-1]}:
            steps = steps or meanings
    return {
        label: exact.get(str(label).strip().lower())
        or single.get(steps.get(number_of.get(label)) or meaning(label) or "")
        for label in labels
    }


# columns


def label_columns(attribute: Attribute, columns: Mapping[str, Iterable]) -> list[str]:
    """The columns whose labels are read as values of the attribute, the likeliest first. Several are often labels by
    several annotators.

    columns: column -> its different labels. A column is likeliest if it is called as the attribute is; then if each
    value and few other labels are in it, whatever it is called; then if its name has a word for the attribute. `light`
    and `dark` are not only labels of people, so the second holds for attributes that captions name.
    """
    named = named_columns(attribute, columns)
    exact = [column for column in named if is_name_of(attribute, column)]
    likely = dict.fromkeys([*exact, *columns_by_labels(attribute, columns), *named])
    few = max(MOST_LABELS, 2 * len(attribute.values))  # of more labels, which are free text, none is read
    return [
        column
        for column in likely
        if len(labels := set(columns[column])) <= few and any(suggest_mapping(attribute, labels).values())
    ]


def columns_by_labels(attribute: Attribute, columns: Mapping[str, Iterable]) -> list[str]:
    """The columns that hold each value of the attribute and few other labels, whatever they are called; none of an
    attribute without words. columns: column -> its different labels."""
    held = []
    for column, labels in columns.items() if attribute.words else ():
        mapping = suggest_mapping(attribute, set(labels))
        others = [label for label, value in mapping.items() if value is None and not is_unknown(label)]
        if set(attribute.values) <= set(mapping.values()) and len(others) <= MOST_OTHERS:
            held += [] if _about_other(attribute, column) else [column]
    return held


def named_columns(attribute: Attribute, columns: Iterable[str]) -> list[str]:
    """The columns whose names say that they are about the attribute, whatever labels they hold: those that are called
    so, in the order of the attribute's own names; those with a word for it, such as `GenderPresentation`; those that
    are called after a value, such as `Male` or `is_female`."""
    columns = list(columns)
    names = [_joined(name) for name in (*attribute.columns, attribute.name)]
    exact = [column for name in names for column in columns if _joined(column) == name]
    values = {_joined(value) for value in attribute.values}
    others = [column for column in columns if not _about_other(attribute, column)]
    with_word = [
        column
        for column in others
        if _words_for(attribute) & {*map(str.lower, NAME_WORDS.findall(column)), _joined(column)}
    ]
    after_value = [column for column in others if values & {_joined(column), _joined(column).removeprefix("is")}]
    return list(dict.fromkeys([*exact, *with_word, *after_value]))


def _words_for(attribute: Attribute) -> set[str]:
    further = spellings()["columns"]["words"].get(attribute.name, ())
    return {_joined(name) for name in (attribute.name, *attribute.columns)} | set(further)


def _about_other(attribute: Attribute, column: str) -> bool:
    """Whether a name with a word for the attribute is about something else, such as the gender of an annotator."""
    words, listed = set(map(str.lower, NAME_WORDS.findall(column))), spellings()["columns"]
    numbers, labellers, ours = (
        set(listed["numbers_about_labels"]),
        set(listed["people_who_label"]),
        _words_for(attribute),
    )
    return bool(words & numbers) or (
        bool(words & labellers - {"answer"}) and bool(words & ours) and words <= labellers | ours
    )


def is_name_of(attribute: Attribute, column: str) -> bool:
    """Whether a column is called as the attribute is, or as one of its usual columns: `BB_Gender`, `bb gender`."""
    return _joined(column) in {_joined(name) for name in (attribute.name, *attribute.columns)}


def guess_attributes(known: Iterable[Attribute], columns: Mapping[str, Iterable]) -> dict[str, Attribute]:
    """Column -> the attribute whose labels it holds, in the order of the table; others are left out.

    A column that is called as an attribute is holds it even if no label is read yet, unless it may be something else: a
    column `age` may hold years. Columns of other names count if no column has the attribute's name.
    """
    guesses: dict[str, Attribute] = {}
    by_labels: list[tuple[Attribute, list[str]]] = []
    for attribute in known:
        named = [column for column in columns if is_name_of(attribute, column)]
        readable = label_columns(attribute, columns)
        most = len(attribute.values) + FEW_OTHERS
        unread = [
            column
            for column in named
            if not attribute.derived or sum(not is_unknown(label) for label in set(columns[column])) <= most
        ]
        if chosen := [column for column in named if column in readable] or unread:
            guesses |= {column: attribute for column in chosen if column not in guesses}
        else:
            by_labels.append((attribute, readable))
    for attribute, readable in by_labels:
        guesses |= {column: attribute for column in readable if column not in guesses}
    return {column: guesses[column] for column in columns if column in guesses}


def annotator_column(names: Iterable[str]) -> str | None:
    """The column that says who gave the labels of a row, None if there is none."""
    listed = spellings()["columns"]["annotators"]
    usual = {_joined(name): name for name in reversed(list(names))}
    return next((usual[name] for name in listed if name in usual), None)


def has_people(names: Iterable[str]) -> bool:
    """Whether the rows of a table are people or boxes, by the names of its columns."""
    return bool({_joined(name) for name in names} & set(spellings()["columns"]["people"]))


def _joined(name: str) -> str:
    """A name without case and punctuation, but for the `Answer.` before columns of Mechanical Turk."""
    return "".join(letter for letter in name.casefold().removeprefix("answer.") if letter.isalnum())
