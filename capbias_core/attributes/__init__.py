"""Protected attributes as data: one TOML file each, with values, words, mask token and labelling note."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.types import Attribute

FOLDER = Path(__file__).parent


def read_attribute(path: Path) -> Attribute:
    """An attribute from a TOML file. Raises CapbiasError for a file that is not one."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CapbiasError(
            f"{Path(path).name}, which cannot be read ({error})",
            "a TOML file with name, values and [words]",
            "See capbias_core/attributes/gender.toml for an example.",
        ) from None
    return _checked(data, Path(path).name)


def _checked(data: dict, source: str) -> Attribute:
    values = data.get("values")
    if not isinstance(values, list) or len(set(map(str, values))) < 2:
        raise CapbiasError(
            f"{source} with values = {values!r}",
            "a list of two or more different values",
            'Write for example values = ["Female", "Male"].',
        )
    words = data.get("words", {})
    stray = set(words) - set(values)
    if stray:
        raise CapbiasError(
            f"{source} with words for {sorted(stray)}", f"words for {values} only", "Rename or remove them."
        )
    return Attribute(
        name=str(data.get("name") or Path(source).stem),
        title=str(data.get("title") or data.get("name") or Path(source).stem),
        values=tuple(map(str, values)),
        words={value: tuple(word.lower() for word in words.get(value, ())) for value in values} if words else {},
        mask_token=str(data.get("mask_token", "<mask>")),
        columns=tuple(data.get("columns", ())),
        aliases={alias.lower(): value for value, names in data.get("aliases", {}).items() for alias in names},
        note=str(data.get("note", "")),
    )


@cache
def known_attributes() -> dict[str, Attribute]:
    """The attributes that ship with capbias, by name."""
    attributes = [read_attribute(path) for path in sorted(FOLDER.glob("*.toml"))]
    return {attribute.name: attribute for attribute in attributes}


def get_attribute(name: str) -> Attribute:
    """The shipped attribute called `name`, or the one in the TOML file at that path."""
    known = known_attributes()
    if name in known:
        return known[name]
    if name.endswith(".toml"):
        return read_attribute(Path(name))
    raise unknown_name("attribute", name, known)


def plain_attribute(name: str, values: tuple[str, ...]) -> Attribute:
    """An attribute that is only a column of labels: no words are masked."""
    note = (
        "Labels come from the attribute table and were given by other people. No word list belongs to this "
        "attribute, so captions that name a value are not masked and are read as they are."
    )
    return Attribute(name=name, title=name, values=values, columns=(name,), note=note)


def suggest_mapping(attribute: Attribute, raw_values) -> dict[str, str | None]:
    """Raw label -> value of the attribute, or None (dropped) where no value or alias fits."""
    known = {value.lower(): value for value in attribute.values} | attribute.aliases
    return {raw: known.get(str(raw).strip().lower()) for raw in raw_values}
