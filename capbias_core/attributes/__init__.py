"""Protected attributes as data: one TOML file each, with values, words, mask token and labelling note."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError, NotMeasurable, short, unknown_name
from capbias_core.typed import shown, typed
from capbias_core.types import BOTH, PRECEDENCE, UNKNOWN_TOKEN, WITHIN, Attribute, Derivation
from capbias_core.whole_files import check_contained, check_file, typed_path

FOLDER = Path(__file__).parent
MOST_BYTES = 64 * 1024  # of a TOML file, which a stranger may have written
MOST_DOTS = 200  # in a line: each may be a table in a table, and reading them takes the square of their number
TEXTS = tuple[str, ...]
BY_VALUE = dict[str, TEXTS]
KEYS = {"name": str, "title": str, "values": TEXTS, "mask_token": str, "columns": TEXTS, "note": str}
KEYS |= {"words": BY_VALUE, "aliases": BY_VALUE, "derived": dict, "forms": tuple[TEXTS, ...]}
RULE = {"precedence": TEXTS, "at_least": int, "both": str, "title": str, "note": str}


def read_attribute(path: Path) -> Attribute:
    """An attribute from a TOML file. Raises CapbiasError for a file that is not one."""
    try:
        check_file(path)
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MOST_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(Path(path).name, error) from None
    return parse_attribute(text, Path(path).name)


def parse_attribute(text: str, source: str) -> Attribute:
    """An attribute from the text of a TOML file, called `source` in errors. Raises CapbiasError for another text."""
    try:
        if (size := len(text.encode("utf-8", "surrogatepass"))) > MOST_BYTES:
            raise ValueError(f"{size:,} bytes; at most {MOST_BYTES:,}")
        if max(line.count(".") for line in f"{text}\n".splitlines()) > MOST_DOTS:
            raise ValueError(f"a line has more than {MOST_DOTS} dots, so its keys may be nested too deeply")
        data = tomllib.loads(text)
        repr(data)  # a number in hexadecimal may be too long to be written anywhere
    except RecursionError:
        raise unreadable(source, "it is nested too deeply") from None
    except ValueError as error:
        end = f"at line {len(text.splitlines())}, where the text ends"
        raise unreadable(source, str(error).replace("at end of document", end)) from None
    return _checked(data, source)


def unreadable(source: str, error: object) -> CapbiasError:
    return CapbiasError(
        f"{source} cannot be read as the TOML file of an attribute: {error}.",
        "Compare it with a shipped attribute: page Data, tab Labels and attributes.",
    )


def _checked(data: dict, source: str) -> Attribute:
    """The attribute in a TOML file. Raises CapbiasError for anything that is missing or wrong."""

    def wrong(key: str, reason: str, hint: str = "") -> CapbiasError:
        return CapbiasError(f"{source} has {key} = {shown(data.get(key))}, which {reason}.", hint)

    def read(table: dict, keys: dict[str, Any], where: str) -> dict[str, Any]:
        if stray := sorted(set(table) - set(keys)):
            raise CapbiasError(
                f"{where} has unknown keys: {', '.join(map(short, stray))}.",
                f"The keys are {', '.join(keys)}. Lists of words belong under [words].",
            )
        return {key: typed(f"{where}: {key}", value, keys[key]) for key, value in table.items()}

    values = tuple(map(str, given)) if isinstance(given := data.get("values"), list) else ()
    if len(values) < 2 or len({value.strip() for value in values} - {""}) < len(values):
        raise wrong("values", "is not a list of two or more different values", 'Write values = ["Female", "Male"].')
    given = read(data | {"values": list(values)}, KEYS, source)
    # Words of a crossed attribute name a part of a value, such as Female in `Female, Dark`.
    parts = {*values, *(part for value in values for part in value.split(WITHIN))}
    for table, known in (("words", parts), ("aliases", set(values))):
        if stray := sorted(given.get(table, {}).keys() - known):
            raise wrong(table, f"are for {', '.join(map(short, stray))}, and the values are {', '.join(values)}")
    words = {value: given["words"].get(value, ()) for value in (*values, *given["words"])} if given.get("words") else {}
    words = {value: tuple(word.lower() for word in listed) for value, listed in words.items()}  # as tokens are
    listed = [word for names in words.values() for word in names]
    if bad := [word for word in listed if not word.isalnum() or listed.count(word) > 1]:
        raise CapbiasError(
            f"{source} lists {short(bad[0])!r} as a word, which is not a single word, or is there twice.",
            "Captions are compared word by word. List single words of letters and digits, each for one value.",
        )
    for row in given.get("forms", ()):
        if len(row) != len(values) + 1 or not all(word.isalnum() and word == word.lower() for word in row):
            raise CapbiasError(
                f"{source} has the forms {', '.join(row) or '(none)'}, which are not {len(values) + 1} single words in "
                "lower case.",
                f"Write a word for each of {', '.join(values)} and, last, one for nobody in particular.",
            )
    mask_token = given.get("mask_token") or Attribute.mask_token
    if not re.fullmatch(r"<\w+>", mask_token) or mask_token == UNKNOWN_TOKEN:
        raise wrong("mask_token", "cannot be used", "Write one word in <>, such as <gender>.")
    derived = None
    if "derived" in given:
        rule: dict[str, Any] = {"both": PRECEDENCE} | read(given["derived"], RULE, f"{source}: derived")
        derived = Derivation(**rule)
        order = values if derived.both == PRECEDENCE else ()
        if derived.both not in BOTH or derived.at_least < 1 or sorted(derived.precedence) != sorted(order):
            raise wrong(
                "derived",
                "is not a rule",
                f'[derived] needs both = "drop" or "majority", or precedence with each of {", ".join(values)} once. '
                "at_least (a whole number from 1), title and note are optional. See the attributes gender and age.",
            )
        if silent := [value for value in values if not words.get(value)]:
            raise CapbiasError(
                f"{source} has [derived], but no words for {', '.join(silent)}, from which labels would be derived.",
                "Add the words, or remove [derived].",
            )
    name = given.get("name") or Path(source).stem
    aliases = {alias.lower(): value for value, names in given.get("aliases", {}).items() for alias in names}
    changed = {"name": name, "title": given.get("title") or name, "words": words, "aliases": aliases}
    return Attribute(**given | changed | {"mask_token": mask_token, "derived": derived})


def attribute_folder(workspace: Path) -> Path:
    """The folder for users' attributes in a workspace. Raises CapbiasError if it leads out of the workspace."""
    check_contained(workspace)
    return typed_path(workspace / "attributes")


@dataclass(frozen=True)
class AttributeFile:
    """A TOML file of an attribute."""

    name: str
    path: Path
    attribute: Attribute | None  # None if the file cannot be used
    fault: CapbiasError | None = None  # why it cannot be used

    @property
    def shipped(self) -> bool:
        return self.path.parent == FOLDER


@cache
def shipped_files() -> tuple[AttributeFile, ...]:
    """The attributes that ship with capbias."""
    return tuple(_files(FOLDER, ()))


def attribute_files(folder: Path | None = None) -> list[AttributeFile]:
    """The shipped attributes, then the files of a folder, also those that cannot be used."""
    shipped = shipped_files()
    return [*shipped, *(_files(folder, shipped) if folder is not None else ())]


def _files(folder: Path, others: Sequence[AttributeFile]) -> list[AttributeFile]:
    files: list[AttributeFile] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            attribute = read_attribute(path)
            if attribute.name.lower() in {file.name.lower() for file in (*others, *files) if file.attribute}:
                raise CapbiasError(
                    f"{path.name} has the name {attribute.name!r}, which another attribute has.",
                    f'Write for example name = "my {attribute.name}".',
                )
            files.append(AttributeFile(attribute.name, path, attribute))
        except CapbiasError as fault:
            files.append(AttributeFile(path.stem, path, None, fault))
    return files


def known_attributes(folder: Path | None = None) -> dict[str, Attribute]:
    """The attributes that ship with capbias, and those in a folder, by name."""
    return {file.name: file.attribute for file in attribute_files(folder) if file.attribute}


def get_attribute(name: str, folder: Path | None = None) -> Attribute:
    """The attribute called `name` (shipped, or in the folder), or the one in the TOML file at that path."""
    known = known_attributes(folder)
    if name in known:
        return known[name]
    if name.endswith(".toml"):
        return read_attribute(typed_path(name))
    raise unknown_name("attribute", name, known)


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
    """Rows of words that say the same of each value and, last, of no value; the first row stands for all other words.

    Its `forms`, else those of the shipped attribute of this name and values, else the first word of each value and the
    neutral one. Raises CapbiasError if a value has no words.
    """
    need_words(attribute, every=True)
    alike = (file.attribute for file in shipped_files() if file.attribute and file.name == attribute.name)
    shipped = next((own.forms for own in alike if own.values == attribute.values), ())
    return attribute.forms or shipped or ((*(words[0] for words in attribute.value_words), neutral),)


def plain_attribute(name: str, values: tuple[str, ...]) -> Attribute:
    """An attribute that is only a column of labels: no words are masked."""
    note = (
        "Labels come from the attribute table; who gave them, and how, is not known here. No word list belongs to this "
        "attribute, so captions that name a value are not masked and are read as they are."
    )
    return Attribute(name=name, title=name, values=values, columns=(name,), note=note)
