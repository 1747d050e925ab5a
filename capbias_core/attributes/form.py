"""The fields of an attribute's TOML file, as a form has them, and the file with these fields changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capbias_core.attributes import KEYS, unreadable
from capbias_core.toml import read_toml, toml_value
from capbias_core.types import Attribute

# In the order in which a file has them; tables come last.
TABLES = ("derived", "words", "aliases")
PLAIN = tuple(key for key in KEYS if key not in TABLES)


@dataclass(frozen=True)
class Fields:
    """What a form asks. words: of each value, in the order of the values."""

    name: str
    title: str
    values: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    mask_token: str
    columns: tuple[str, ...]
    note: str


def fields_of(text: str, source: str) -> Fields:
    """The fields of a TOML text, as far as it has them; whether they are an attribute `parse_attribute` says. Raises
    CapbiasError where it is no TOML."""
    try:
        data = read_toml(text)
    except ValueError as error:
        raise unreadable(source, error) from None
    values, words = _texts(data.get("values")), data.get("words")
    return Fields(
        str(data.get("name", "")),
        str(data.get("title", "")),
        values,
        tuple(_texts(words.get(value) if isinstance(words, dict) else ()) for value in values),
        str(data.get("mask_token", Attribute.mask_token)),
        _texts(data.get("columns")),
        str(data.get("note", "")),
    )


def _texts(given: object) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list) else ()


def renamed(old: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """Old value -> what it is called now, without values that are gone. A single value that changes is renamed; where
    several change at once, they are other values.

    >>> renamed(["Female", "Male"], ["woman", "Male"]), renamed(["Female", "Male"], ["young", "old"])
    ({'Female': 'woman', 'Male': 'Male'}, {})
    """
    changed = [pair for pair in zip(old, values, strict=False) if pair[0] != pair[1]]
    if len(old) == len(values) and len(changed) == 1:
        return dict(zip(old, values, strict=True))
    return {value: value for value in old if value in values}


def with_fields(text: str, fields: Fields) -> str:
    """The TOML text with these fields in place of its own; what a form does not ask stays, but for comments.

    A value that is renamed keeps its labels and its place in what labels are derived from. A new name makes another
    attribute: a title that was left unchanged becomes the name, and title and note of derived labels go.
    """
    data = read_toml(text)
    old = _texts(data.get("values"))
    now = renamed(old, fields.values)
    another = fields.name != str(data.get("name", ""))
    result = data | {
        "name": fields.name,
        "title": fields.name if another and fields.title == str(data.get("title", "")) else fields.title,
        "values": list(fields.values),
        "mask_token": fields.mask_token,
        "columns": list(fields.columns),
        "note": fields.note,
        "words": {value: list(words) for value, words in zip(fields.values, fields.words, strict=True) if words},
    }
    if "aliases" in data:
        result["aliases"] = {now[value]: labels for value, labels in data["aliases"].items() if value in now}
    if "forms" in data and set(now.values()) != set(fields.values):
        del result["forms"]
    if "derived" in data:
        rule = {key: part for key, part in data["derived"].items() if not (another and key in ("title", "note"))}
        order = [now.get(str(value), "") for value in rule.get("precedence", ())]
        if all(fields.words) and sorted(order) in ([], sorted(fields.values)):
            result["derived"] = rule | ({"precedence": order} if order else {})
        else:
            del result["derived"]
    lines = [f"{key} = {toml_value(result[key])}" for key in PLAIN if key in result]
    for table in TABLES:
        if table in result:
            lines += [
                "",
                f"[{table}]",
                *(f"{toml_value(key)} = {toml_value(part)}" for key, part in result[table].items()),
            ]
    return "\n".join(lines) + "\n"
