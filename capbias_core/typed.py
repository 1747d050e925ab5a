"""Values of options, plans and attributes, checked against type hints."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from capbias_core.errors import CapbiasError

LONGEST_SHOWN = 100
LARGEST = 2**53  # beyond, JSON and floats lose digits
NAMES = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list",
}
PLURALS = {str: "texts", bool: "true or false", int: "whole numbers", float: "numbers"}


class Misfit(Exception):
    """A value is not of a type."""


def typed(name: str, value: Any, hint: Any, more: str = "", *arguments: str) -> Any:
    """The value as its type hint says: lists as tuples, paths as texts, whole numbers as floats.

    hint: bool, int, float, str, None, dict[str, X], list[X], tuple[X, ...], a TypedDict, Annotated[str, pattern], or a
    union of these. A text is no list, and no text or number is true or false. more: further words on what is expected.
    arguments: of CapbiasError. Raises CapbiasError with the given value and the expected type.

    >>> typed("words", ["tiara"], tuple[str, ...])
    ('tiara',)
    >>> typed("words", "tiara", tuple[str, ...])
    Traceback (most recent call last):
    capbias_core.errors.CapbiasError: words must be a list of texts, not 'tiara'.
    """
    try:
        return fitted(value, hint)
    except Misfit:
        raise misfit(name, value, hint, more, *arguments) from None


def misfit(name: str, value: Any, hint: Any, more: str = "", *arguments: str) -> CapbiasError:
    """The error for a value that is not of a type, or not within its bounds."""
    return CapbiasError(f"{name} must be {f'{expected(hint)} {more}'.strip()}, not {shown(value)}.", "", *arguments)


def fitted(value: Any, hint: Any) -> Any:
    """The value as `typed` gives it. Raises Misfit."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return _first_fit(value, parts)
    if kind is Annotated:
        text, form = fitted(value, parts[0]), parts[1]
        if not form.fullmatch(text):
            raise Misfit
        return text
    if is_typeddict(kind):
        keys = fields_of(kind)
        if not isinstance(value, Mapping) or value.keys() != keys.keys():
            raise Misfit
        return {key: fitted(value[key], part) for key, part in keys.items()}
    if kind is dict and isinstance(value, Mapping):
        key_hint, part = parts or (Any, Any)
        return {fitted(key, key_hint): fitted(item, part) for key, item in value.items()}
    if kind in (list, tuple) and isinstance(value, list | tuple):
        return kind(fitted(item, parts[0] if parts else Any) for item in value)
    if kind is bool and isinstance(value, bool | np.bool_):
        return bool(value)
    if kind is int and isinstance(value, Integral) and not isinstance(value, bool):
        return _exact(int(value))
    if kind is float and isinstance(value, Real) and not isinstance(value, bool):
        return _finite(value)
    if kind is str and isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if kind is Any or (value is None and kind in (None, NoneType)):
        return value
    raise Misfit


@cache
def fields_of(kind: type) -> dict[str, Any]:
    """The type hints of a class by the names of its fields."""
    return get_type_hints(kind, include_extras=True)


def _first_fit(value: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return fitted(value, hint)
        except Misfit:
            continue
    raise Misfit


def _exact(number: int) -> int:
    if abs(number) > LARGEST:
        raise Misfit
    return number


def _finite(value: Real) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise Misfit from None
    if not math.isfinite(number):
        raise Misfit
    return number


def expected(hint: Any) -> str:
    """What a type hint expects, in words.

    >>> expected(tuple[str, ...]), expected(str | None)
    ('a list of texts', 'a text')
    """
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        plain = [part for part in parts if part is not NoneType and not is_typeddict(part)]  # tables name frozen files
        return " or ".join(dict.fromkeys(expected(part) for part in plain or parts if part is not NoneType))
    if is_typeddict(kind):
        return f"a table of {', '.join(fields_of(kind))}"
    if kind in (list, tuple):
        return f"a list of {PLURALS[parts[0]]}" if parts and parts[0] in PLURALS else "a list"
    if kind is dict:
        return f"a table of {PLURALS[parts[1]]}" if parts and parts[1] in PLURALS else "a table"
    return NAMES[kind]


def shown(value: Any) -> str:
    """A value as errors show it, cut to 100 characters."""
    try:
        text = repr(value)
    except ValueError:  # a number too long to be written
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
