"""Attributes of the user's own: TOML files in the workspace's folder `attributes`, checked before they are kept."""

from __future__ import annotations

import re
from pathlib import Path

from capbias_core.attributes import attribute_files, known_attributes, name_taken, parse_attribute, shipped_files
from capbias_core.errors import CapbiasError
from capbias_core.prepare.labels import Trial, try_attribute
from capbias_core.types import Attribute
from capbias_core.whole_files import private_folder, write_whole
from capbias_core.workspace.people import check_own, person
from capbias_core.workspace.store import Item, Workspace
from capbias_core.workspace.tokens import kept_tokens

NAME = re.compile(r"\w[\w .-]{0,59}")
# What the text of an attribute is called in errors, where it has no file yet.
SOURCE = "the attribute"


def attribute_folder(workspace: Workspace | Path | str) -> Path:
    """Where a workspace (or the one in a folder) keeps attributes of the user's own; the folder need not be there."""
    return Path(workspace.folder if isinstance(workspace, Workspace) else workspace) / "attributes"


def check(text: str) -> Attribute:
    """The attribute in the text of a TOML file, fit to be kept. Raises CapbiasError, with the line of broken TOML."""
    attribute = parse_attribute(text, SOURCE)
    if not NAME.fullmatch(attribute.name) or attribute.name.endswith(".toml") or attribute.name == SOURCE:
        named = attribute.name != SOURCE
        raise CapbiasError(
            f"The name {attribute.name[:80]!r} cannot be used." if named else "The attribute has no name.",
            'Use 1 to 60 letters, digits, spaces or . _ -, for example name = "my gender".',
        )
    if attribute.name.lower() in {own.name.lower() for own in shipped_files()}:
        raise name_taken(attribute.name, SOURCE)
    return attribute


def keep(workspace: Workspace, text: str) -> Attribute:
    """Keep an attribute under its name, in place of an earlier one of that name. Tables keep the words that they were
    mapped with until they are mapped again, and finished runs those that they were run with.

    Raises CapbiasError where the text is none, or the earlier one somebody else's.
    """
    attribute = check(text)
    folder = attribute_folder(workspace)
    same = (one.path for one in attribute_files(folder) if one.name.lower() == attribute.name.lower())
    path = next(same, None) or folder / f"{attribute.name}.toml"
    owner = owner_of(path) if path.exists() else person()
    if path.exists():
        check_own(owner, workspace.folder, attribute.name)
    try:
        private_folder(folder)
        if owner:
            write_whole(_owner_file(path), owner.encode())
        write_whole(path, text.encode())
    except OSError as error:
        raise CapbiasError(f"{path.name} cannot be written in the workspace ({error.strerror}).") from None
    return attribute


def owner_of(path: Path) -> str:
    """Who keeps the attribute in this file; '' for nobody."""
    try:
        return _owner_file(path).read_text()
    except FileNotFoundError:
        return ""


def _owner_file(path: Path) -> Path:
    """Beside the attribute's own file, whose text is the user's."""
    return path.with_suffix(".owner")


def tables_with(workspace: Workspace, name: str) -> list[Item]:
    """Kept tables in which a column is mapped to the attribute of this name."""
    return [item for item in workspace.items("attributes") if name in item.details.get("attributes", {})]


def delete(workspace: Workspace, path: Path) -> None:
    """Remove the file of an attribute of the user's own. Raises CapbiasError while a kept table uses it, and
    where it is somebody else's."""
    own = {one.path: one for one in attribute_files(attribute_folder(workspace)) if not one.shipped}
    if path not in own:
        raise CapbiasError(f"{path.name} is not in this workspace.", "It may be gone already: reload the page.")
    check_own(owner_of(path), workspace.folder, own[path].name)
    tables = tables_with(workspace, own[path].name) if own[path].attribute else []
    if tables:
        names = ", ".join(f"{item.name} in {item.collection}" for item in tables)
        raise CapbiasError(
            f"Columns are mapped to the attribute {own[path].name} in {names}.",
            "Delete these tables first, on the Data page.",
        )
    path.unlink(missing_ok=True)
    _owner_file(path).unlink(missing_ok=True)


def known(workspace: Workspace) -> dict[str, Attribute]:
    """Shipped attributes and those of the workspace, by name."""
    return known_attributes(attribute_folder(workspace))


def trials(workspace: Workspace, attribute: Attribute) -> list[tuple[Item, Trial]]:
    """What the words of an attribute find in every kept caption set, the newest first."""
    items = [item for item in workspace.items() if item.kind in ("captions", "references")]
    return [(item, trial(workspace, item, attribute)) for item in items[::-1]]


def trial(workspace: Workspace, item: Item, attribute: Attribute) -> Trial:
    """What the words of an attribute find in one kept caption set."""
    captions = workspace.frame(item.hash)["caption"].tolist()
    return try_attribute(captions, attribute, kept_tokens(workspace, item.hash))
