"""Texts in TOML, which strangers may have written: one that would eat the machine is refused before it is parsed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capbias_core.whole_files import check_file

MOST_BYTES = 64 * 1024
MOST_DOTS = 200  # in a line: each may be a table in a table, and reading them takes the square of their number


def start_of(path: Path) -> str:
    """The text of a file in UTF-8; of one that `read_toml` refuses for its size, enough to be refused."""
    check_file(path)
    with Path(path).open(encoding="utf-8") as file:
        return file.read(MOST_BYTES + 1)


def read_toml(text: str) -> dict[str, Any]:
    """The tables in a text. Raises ValueError, whose message follows `which cannot be read`, for what is none, is
    larger than 64 kB, is nested too deeply or holds a number too long to read.

    >>> read_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MOST_BYTES:
        raise ValueError(f"{size:,} bytes; at most {MOST_BYTES:,}")
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number:,} has more than {MOST_DOTS} dots, so its keys may be nested too deeply")
    try:
        tables = tomllib.loads(text)
        repr(tables)  # a number in hexadecimal may be too long to be written anywhere
        return tables
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def toml_value(value: Any) -> str:
    """A value as TOML on one line; what is None is left out. JSON's escapes are TOML's."""
    if isinstance(value, Mapping):
        parts = [f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items() if item is not None]
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A key, in quotes if it needs them."""
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else toml_value(name)
