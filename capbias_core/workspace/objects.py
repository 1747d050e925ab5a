"""Where the objects of images may be read from: kept files, or a column of the labels."""

from __future__ import annotations

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.workspace.store import Item, Workspace, images_in

OBJECTS = "objects"

COLUMN = "column objects of the labels"

FOUND_BY = "found_by"  # the key in the details of objects that a detector found: the name of its boxes


def objects_in(workspace: Workspace, table: str, column: str = OBJECTS) -> pd.Series:
    """Text such as `cat|dog` by image id, from a kept table by its content hash."""
    return workspace.frame(table).set_index("image_id")[column]


def object_sources(workspace: Workspace, collection: str, table: Item) -> dict[str, str]:
    """Where the objects of images may be read: kept files by name, and COLUMN for the attribute table; their hashes."""
    found = {item.name: item.hash for item in workspace.items(OBJECTS, collection)}
    return found | ({COLUMN: table.hash} if OBJECTS in workspace.columns(table.hash) else {})


def _annotated(workspace: Workspace, collection: str, sources: dict[str, str]) -> dict[str, str]:
    """Those of these sources that people annotated; where there is none, those that a detector found."""
    found = {item.name for item in workspace.items(OBJECTS, collection) if FOUND_BY in item.details}
    return {name: digest for name, digest in sources.items() if name not in found} or sources


def reads_its_column(workspace: Workspace, collection: str, table: Item) -> bool:
    """Whether runs on a table of labels read its own column of objects, where no objects are asked for."""
    sources = _annotated(workspace, collection, object_sources(workspace, collection, table))
    return _fullest(workspace, sources, table) == COLUMN


def _fullest(workspace: Workspace, sources: dict[str, str], table: Item) -> str:
    """The source that has objects of most labelled images, '' where there is none; counted once."""
    if len(sources) < 2:
        return next(iter(sources), "")

    def count() -> dict[str, int]:
        labelled = images_in(workspace.frame(table.hash))
        return {own: len(labelled & images_in(workspace.frame(own))) for own in sources.values()}

    counts = workspace.derived(f"objects of {table.hash}: {' '.join(sorted(sources.values()))}", count)
    return max(sources, key=lambda name: counts[sources[name]])


def chosen_objects(workspace: Workspace, collection: str, table: Item, asked: str = "") -> str:
    """The content hash of the source of objects that was asked for, else of that where most labelled images have some.

    '' where there is none. Raises CapbiasError for an unknown name, and for several files of which none is named.
    """
    sources = object_sources(workspace, collection, table)
    if asked and asked not in sources:
        workspace.item(OBJECTS, asked, collection)
    if asked:
        return sources[asked]
    sources = _annotated(workspace, collection, sources)
    files = [name for name in sources if name != COLUMN]
    if len(files) > 1:
        raise CapbiasError(
            f"{collection} has {len(files)} files of objects ({', '.join(files)}).",
            "Choose one, or delete the others.",
            "objects",
        )
    name = _fullest(workspace, sources, table)
    return sources[name] if name else ""
