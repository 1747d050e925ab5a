"""Values that users give, checked by pydantic; its errors become a CapbiasError here alone."""

from __future__ import annotations

import os
import re
from functools import cache
from numbers import Integral
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Strict, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from capbias_core.errors import CapbiasError, short

LONGEST_SHOWN = 100
LARGEST = 2**53  # beyond, JSON and floats lose digits
CONFIG = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid", arbitrary_types_allowed=True)
# Before what is expected, in the errors of pydantic.
WANTED = re.compile("Input should be |Value error, ")


def _whole(value: Any) -> Any:
    if not isinstance(value, Integral) or isinstance(value, bool):
        return value
    if abs(number := int(value)) > LARGEST:
        raise ValueError(f"at most {LARGEST}")
    return number


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.number) else value


# What stands for these types: paths are texts, and numbers of numpy are numbers.
ACCEPTED: dict[Any, Any] = {
    str: Annotated[str, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)],
    int: Annotated[int, BeforeValidator(_whole)],
    float: Annotated[float, BeforeValidator(_number)],
    bool: Annotated[bool, BeforeValidator(lambda value: bool(value) if isinstance(value, np.bool_) else value)],
}


def typed(name: str, value: Any, hint: Any, *arguments: str) -> Any:
    """The value as its type hint says: lists as tuples, paths as texts, whole numbers as floats. A text is no list, and
    no text or number is true or false.

    arguments: of CapbiasError. Raises CapbiasError with the given value and what pydantic expects.

    >>> typed("words", ["tiara"], tuple[str, ...])
    ('tiara',)
    >>> typed("words", "tiara", tuple[str, ...])
    Traceback (most recent call last):
    capbias_core.errors.CapbiasError: words must be a valid list, not 'tiara'.
    """
    try:
        return _adapter(hint).validate_python(value)
    except ValidationError as error:
        faults = error.errors()
        texts = [WANTED.sub("", fault["msg"]) for fault in faults if WANTED.match(fault["msg"])]
        wanted = " or ".join(dict.fromkeys(texts)).replace("tuple", "list") or "of another form"
        if place := "".join(f"[{part}]" for part in faults[0]["loc"] if isinstance(part, int)):
            name, value = f"{name}{place}", faults[0]["input"]
        raise CapbiasError(f"{name} must be {wanted}, not {shown(value)}.", "", *arguments) from None
    except OverflowError:
        raise CapbiasError(f"{name} must be a smaller number, not {shown(value)}.", "", *arguments) from None


def from_json(kind: Any, text: str | bytes, name: str) -> Any:
    """What JSON holds, as a type. name: of the whole. Raises ValueError with the first part that is not of its type:
    `manifest.items[2].hash is 5`."""
    try:
        return _stored(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        what = {"missing": "missing", "value_error": "wrong"}.get(first["type"]) or shown(first["input"])
        raise ValueError(f"{name}{place} is {what}") from None


@cache
def _stored(kind: Any) -> TypeAdapter:
    return TypeAdapter(kind)


@cache
def _adapter(hint: Any) -> TypeAdapter:
    # A TypedDict has a configuration of its own.
    return TypeAdapter(accepted(hint), config=None if is_typeddict(hint) else CONFIG)


def accepted(hint: Any) -> Any:
    """A type hint as pydantic checks it: also what stands for its types, and lists for tuples."""
    if hint in ACCEPTED:
        return ACCEPTED[hint]
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return Annotated[(accepted(parts[0]), *hint.__metadata__)]
    if kind in (Union, UnionType):
        return Union[tuple(accepted(part) for part in parts)]  # noqa: UP007  of parts that are known only here
    if kind is tuple:
        return Annotated[tuple[tuple(part if part is ... else accepted(part) for part in parts)], Strict(False)]
    if kind is dict:
        key, value = map(accepted, parts)
        return Annotated[dict[key, value], Strict(False)]
    if hint is tuple or hint is dict:
        return Annotated[hint, Strict(False)]
    return hint


def shown(value: Any) -> str:
    """A value as errors show it, cut to 100 characters."""
    try:
        text = repr(value)
    except ValueError:  # a number too long to be written
        return "a number of thousands of digits"
    return short(text, LONGEST_SHOWN)
