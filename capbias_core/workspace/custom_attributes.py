"""Attributes that users define: TOML files in the workspace's folder `attributes`, checked before they are stored."""

from __future__ import annotations

import re
from pathlib import Path

from capbias_core.attributes import attribute_files, known_attributes, name_taken, parse_attribute, shipped_files
from capbias_core.errors import CapbiasError
from capbias_core.prepare.labels import Trial, try_attribute
from capbias_core.types import Attribute
from capbias_core.whole_files import private_folder, write_whole
from capbias_core.workspace.labels import tables_with
from capbias_core.workspace.people import check_own, person
from capbias_core.workspace.store import Item, Workspace

NAME = re.compile(r"\w[\w .-]{0,59}")
SOURCE = "the attribute"  # the name of the text in errors, if it has no file


def attribute_folder(workspace: Workspace | Path | str) -> Path:
    """The folder of attributes that users define in a workspace; it need not exist."""
    return Path(workspace.folder if isinstance(workspace, Workspace) else workspace) / "attributes"


def check(text: str) -> Attribute:
    """The attribute in the text of a TOML file. Raises CapbiasError if it cannot be stored."""
    attribute = parse_attribute(text, SOURCE)
    if not NAME.fullmatch(attribute.name) or attribute.name.endswith(".toml") or attribute.name == SOURCE:
        named = attribute.name != SOURCE
        raise CapbiasError(
            f"The name {attribute.name[:80]!r} cannot be used." if named else "The attribute has no name.",
            'Use 1 to 60 letters, digits, spaces or . _ -, for example name = "my gender".',
        )
    if attribute.name.lower() in {file.name.lower() for file in shipped_files()}:
        raise name_taken(attribute.name, SOURCE)
    return attribute


def keep(workspace: Workspace, text: str) -> Attribute:
    """The attribute in a text, stored under its name in place of an earlier one. Tables keep the words that they were
    mapped with until they are mapped again, and finished runs the words that they used.

    Raises CapbiasError if the text is not an attribute, or somebody else owns the earlier one.
    """
    attribute = check(text)
    folder = attribute_folder(workspace)
    same = (file.path for file in attribute_files(folder) if file.name.lower() == attribute.name.lower())
    path = next(same, None) or folder / f"{attribute.name}.toml"
    owner = owner_of(path) if path.exists() else person()
    if path.exists():
        check_own(owner, workspace.folder, attribute.name)
    try:
        private_folder(folder)
        if owner:
            write_whole(path.with_suffix(".owner"), owner.encode())
        write_whole(path, text.encode())
    except OSError as error:
        raise CapbiasError(f"{path.name} cannot be written in the workspace ({error.strerror}).") from None
    return attribute


def owner_of(path: Path) -> str:
    """Who owns the attribute in this file, by the file beside it; '' for nobody."""
    owner = path.with_suffix(".owner")
    return owner.read_text() if owner.exists() else ""


def delete(workspace: Workspace, path: Path) -> None:
    """Remove the file of a user's attribute. Raises CapbiasError while a stored table uses it, and if somebody else
    owns it."""
    files = {file.path: file for file in attribute_files(attribute_folder(workspace)) if not file.shipped}
    if path not in files:
        raise CapbiasError(f"{path.name} is not in this workspace.", "It may be deleted already: reload the page.")
    check_own(owner_of(path), workspace.folder, files[path].name)
    if files[path].attribute and (tables := tables_with(workspace.items("attributes"), files[path].name)):
        names = ", ".join(f"{item.name} in {item.collection}" for item in tables)
        raise CapbiasError(
            f"Columns are mapped to the attribute {files[path].name} in {names}.",
            "Delete these tables first, on the Data page.",
        )
    path.unlink(missing_ok=True)
    path.with_suffix(".owner").unlink(missing_ok=True)


def known(workspace: Workspace) -> dict[str, Attribute]:
    """Shipped attributes and those of the workspace, by name."""
    return known_attributes(attribute_folder(workspace))


def trial(workspace: Workspace, item: Item, attribute: Attribute) -> Trial:
    """How the words of an attribute match a stored caption set."""
    captions = workspace.frame(item.hash)["caption"].tolist()
    return try_attribute(captions, attribute, workspace.tokens(item.hash))
