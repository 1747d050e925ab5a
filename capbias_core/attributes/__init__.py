"""Protected attributes as data: one TOML file each, with values, words, mask token and labelling note."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from capbias_core.errors import CapbiasError, NotMeasurable, unknown_name
from capbias_core.toml import read_toml, start_of
from capbias_core.types import BOTH, PRECEDENCE, UNKNOWN_TOKEN, WITHIN, Attribute, Derivation

FOLDER = Path(__file__).parent
KEYS = ("name", "title", "values", "mask_token", "columns", "note", "words", "aliases", "derived", "forms")


def read_attribute(path: Path) -> Attribute:
    """An attribute from a TOML file. Raises CapbiasError for a file that is not one."""
    try:
        text = start_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(Path(path).name, error) from None
    return parse_attribute(text, Path(path).name)


def parse_attribute(text: str, source: str) -> Attribute:
    """An attribute from the text of a TOML file. source: what the text is called in errors.

    Raises CapbiasError, with the line where the text is no TOML.
    """
    try:
        data = read_toml(text)
    except ValueError as error:
        end = f"at line {len(text.splitlines())}, where the text ends"
        raise unreadable(source, str(error).replace("at end of document", end)) from None
    return _checked(data, source)


def unreadable(source: str, error: object) -> CapbiasError:
    return CapbiasError(
        f"{source} cannot be read as the TOML file of an attribute: {error}.",
        "Compare it with a shipped attribute: the Attributes page, or `capbias labels check gender`.",
    )


def _checked(data: dict, source: str) -> Attribute:
    stray = [key for key in data if key not in KEYS]
    if stray:
        raise CapbiasError(
            f"{source} has unknown keys: {', '.join(stray)}.",
            f"The keys are {', '.join(KEYS)}. Lists of words belong under [words].",
        )
    values = data.get("values")
    given = values if isinstance(values, list) else []
    texts = [str(value).strip() for value in given]
    if len(texts) < 2 or len(set(texts)) < len(texts) or not all(texts):
        raise CapbiasError(
            f"{source} has values = {values!r}, which is not a list of two or more different values.",
            'Write for example values = ["Female", "Male"].',
        )
    values = tuple(map(str, given))
    # Words of a crossed attribute name a part of a value, such as Female in `Female, Dark`.
    words = _by_value(data, "words", (*values, *(part for value in values for part in value.split(WITHIN))), source)
    aliases = _by_value(data, "aliases", values, source)
    derived = _derivation(data["derived"], values, words, source) if "derived" in data else None
    return Attribute(
        name=str(data.get("name") or Path(source).stem),
        title=str(data.get("title") or data.get("name") or Path(source).stem),
        values=values,
        words=_single_words(words, values, source) if words else {},
        mask_token=_special(str(data.get("mask_token", Attribute.mask_token)), source),
        columns=_texts(data.get("columns", []), "columns", source),
        aliases={alias.lower(): value for value, names in aliases.items() for alias in names},
        note=str(data.get("note", "")),
        derived=derived,
    )


def _texts(given: object, what: str, source: str) -> tuple[str, ...]:
    """A list of texts; a text alone is refused, since its letters would be taken for the items."""
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise CapbiasError(
            f"{source} has {what} = {given!r}, which is not a list.", 'Write for example ["woman", "women"].'
        )
    return tuple(given)


def _by_value(data: dict, table: str, values: tuple[str, ...], source: str) -> dict[str, tuple[str, ...]]:
    """The table [words] or [aliases]: value -> texts."""
    given = data.get(table, {})
    stray = sorted(set(given) - set(values)) if isinstance(given, dict) else [given]
    if stray:
        raise CapbiasError(f"{source} has {table} for {stray}, but its values are {', '.join(values)}.")
    return {value: _texts(names, f"{table} of {value}", source) for value, names in given.items()}


def _single_words(words: dict, values: tuple[str, ...], source: str) -> dict[str, tuple[str, ...]]:
    """Words as the tokenizer gives them: lower case, letters and digits only, each of one value."""
    lower = {value: tuple(word.lower() for word in words.get(value, ())) for value in (*values, *words)}
    every = [word for own in lower.values() for word in own]
    wrong = [word for word in every if not word.isalnum()] or [word for word in every if every.count(word) > 1]
    if wrong:
        twice = wrong[0].isalnum()
        raise CapbiasError(
            f"{source} lists {wrong[0]!r} " + ("twice." if twice else "as a word, but it is not a single word."),
            "Captions are compared word by word. List single words of letters and digits, each for one value.",
        )
    return lower


def _derivation(table: object, values: tuple[str, ...], words: dict, source: str) -> Derivation:
    """The table [derived]; each value needs words."""
    rule = _rule(table, values) if isinstance(table, dict) else None
    if rule is None:
        raise CapbiasError(
            f"{source} has derived = {table!r}, which is not a rule.",
            f'[derived] needs both = "drop" or "majority", or precedence with each of {", ".join(values)} once. '
            "at_least (a whole number from 1), title and note are optional. See the attributes gender and age.",
        )
    silent = [value for value in values if not words.get(value)]
    if silent:
        raise CapbiasError(
            f"{source} has [derived], but no words for {', '.join(silent)}, from which labels would be derived.",
            "Add the words, or remove [derived].",
        )
    return rule


def _rule(table: dict, values: tuple[str, ...]) -> Derivation | None:
    """None where the table is none."""
    order, least = table.get("precedence", []), table.get("at_least", 1)
    both, title, note = table.get("both", PRECEDENCE), table.get("title", ""), table.get("note", "")
    right = (
        set(table) <= {field.name for field in fields(Derivation)}
        and both in BOTH
        and isinstance(order, list)
        and sorted(map(str, order)) == (sorted(values) if both == PRECEDENCE else [])
        and (type(least) is int and least >= 1)
        and isinstance(title, str)
        and isinstance(note, str)
    )
    return Derivation(tuple(map(str, order)), least, both, title, note) if right else None


def _special(token: str, source: str) -> str:
    if not re.fullmatch(r"<\w+>", token) or token == UNKNOWN_TOKEN:
        raise CapbiasError(
            f"{source} has mask_token = {token!r}, which cannot be used.", "Write one word in <>, such as <gender>."
        )
    return token


@dataclass(frozen=True)
class AttributeFile:
    """A TOML file of an attribute. attribute: None where it is not one that can be used, and fault says why."""

    name: str
    path: Path
    shipped: bool
    attribute: Attribute | None
    fault: CapbiasError | None = None


@cache
def shipped_files() -> tuple[AttributeFile, ...]:
    """The attributes that ship with capbias. Raises CapbiasError where two have one name."""
    attributes = {path: read_attribute(path) for path in sorted(FOLDER.glob("*.toml"))}
    names = [own.name.lower() for own in attributes.values()]
    for place, (path, own) in enumerate(attributes.items()):
        if own.name.lower() in names[:place]:
            raise name_taken(own.name, path.name)
    return tuple(AttributeFile(own.name, path, True, own) for path, own in attributes.items())


def attribute_files(folder: Path | None = None) -> list[AttributeFile]:
    """The shipped attributes, then those of a folder of a user's own; a file that cannot be used is there too."""
    found = list(shipped_files())
    for path in sorted(folder.glob("*.toml")) if folder is not None else ():
        found.append(_file(path, {own.name.lower() for own in found if own.attribute}))
    return found


def _file(path: Path, taken: set[str]) -> AttributeFile:
    try:
        attribute = read_attribute(path)
        if attribute.name.lower() in taken:
            raise name_taken(attribute.name, path.name)
    except CapbiasError as fault:
        return AttributeFile(path.stem, path, False, None, fault)
    return AttributeFile(attribute.name, path, False, attribute)


def name_taken(name: str, source: str) -> CapbiasError:
    """The error for an attribute that is called as another one is, by whom numbers could not be told apart."""
    return CapbiasError(
        f"{source} has the name {name!r}, which another attribute has.", f'Write for example name = "my {name}".'
    )


def known_attributes(folder: Path | None = None) -> dict[str, Attribute]:
    """The attributes that ship with capbias, and those in a folder of a user's own, by name."""
    return {own.name: own.attribute for own in attribute_files(folder) if own.attribute}


def get_attribute(name: str, folder: Path | None = None) -> Attribute:
    """The attribute called `name` (shipped, or in the folder), or the one in the TOML file at that path."""
    known = known_attributes(folder)
    if name in known:
        return known[name]
    if name.endswith(".toml"):
        return read_attribute(Path(name))
    raise unknown_name("attribute", name, known)


@cache
def _shipped_forms() -> dict[str, tuple[tuple[str, ...], ...]]:
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))]
    return {table["name"]: tuple(map(tuple, table.get("forms", ()))) for table in tables}


def lacking_words(attribute: Attribute, every: bool = False) -> str:
    """Why captions cannot name a value of the attribute, or with `every` each value; '' if they can."""
    if not attribute.names_values:
        return f"{attribute.name} has no words that captions could name"
    if every and attribute.unnamed_values:
        return f"{attribute.name} has no words for {', '.join(attribute.unnamed_values)}"
    return ""


def need_words(attribute: Attribute, every: bool = False) -> None:
    """Raises NotMeasurable if captions cannot name a value of the attribute, or with `every` each value."""
    if reason := lacking_words(attribute, every):
        raise NotMeasurable(f"{reason}.", "Leave this metric out, or choose an attribute with words, such as gender.")


def word_forms(attribute: Attribute, neutral: str = "person") -> tuple[tuple[str, ...], ...]:
    """Rows of words that say the same of each value and, last, of nobody's; the first row stands for all other words.

    Of a shipped attribute with such a table, else the first word of each value and the neutral one. Raises CapbiasError
    where a value has no words.
    """
    need_words(attribute, every=True)
    shipped = known_attributes().get(attribute.name)
    same = shipped is not None and shipped.values == attribute.values
    rows = _shipped_forms()[attribute.name] if same else ()
    return rows or ((*(words[0] for words in attribute.value_words), neutral),)


def plain_attribute(name: str, values: tuple[str, ...]) -> Attribute:
    """An attribute that is only a column of labels: no words are masked."""
    note = (
        "Labels come from the attribute table; who gave them, and how, is not known here. No word list belongs to this "
        "attribute, so captions that name a value are not masked and are read as they are."
    )
    return Attribute(name=name, title=name, values=values, columns=(name,), note=note)
