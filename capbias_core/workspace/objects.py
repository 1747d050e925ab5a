"""Sources of the objects of images: stored files, or a column of the labels."""

from __future__ import annotations

import pandas as pd

from capbias_core.errors import CapbiasError
from capbias_core.workspace.store import Item, Workspace, images_in

OBJECTS = "objects"
COLUMN = "column objects of the labels"
FOUND_BY = "found_by"  # the key in the details of detected objects: the name of the boxes


def objects_in(workspace: Workspace, table: str, column: str = OBJECTS) -> pd.Series:
    """Text such as `cat|dog` by image ID, from a stored table by its content hash."""
    return workspace.frame(table).set_index("image_id")[column]


def object_sources(workspace: Workspace, collection: str, table: Item) -> dict[str, str]:
    """Sources of the objects of images, with their hashes: stored files by name, and COLUMN for the table of labels."""
    sources = {item.name: item.hash for item in workspace.items(OBJECTS, collection)}
    return sources | ({COLUMN: table.hash} if OBJECTS in workspace.columns(table.hash) else {})


def _annotated(workspace: Workspace, collection: str, sources: dict[str, str]) -> dict[str, str]:
    """The sources that people annotated, or all if a detector made all of them."""
    detected = {item.name for item in workspace.items(OBJECTS, collection) if FOUND_BY in item.details}
    return {name: digest for name, digest in sources.items() if name not in detected} or sources


def reads_its_column(workspace: Workspace, collection: str, table: Item) -> bool:
    """Whether runs on a table of labels read its column of objects by default."""
    sources = _annotated(workspace, collection, object_sources(workspace, collection, table))
    return _fullest(workspace, sources, table) == COLUMN


def _fullest(workspace: Workspace, sources: dict[str, str], table: Item) -> str:
    """The source with objects of most labelled images, '' without any source; counted once."""
    if len(sources) < 2:
        return next(iter(sources), "")

    def count() -> dict[str, int]:
        labelled = images_in(workspace.frame(table.hash))
        return {digest: len(labelled & images_in(workspace.frame(digest))) for digest in sources.values()}

    counts = workspace.derived(f"objects of {table.hash}: {' '.join(sorted(sources.values()))}", count)
    return max(sources, key=lambda name: counts[sources[name]])


def chosen_objects(workspace: Workspace, collection: str, table: Item, asked: str = "") -> str:
    """The content hash of the named source of objects, by default of the one with most labelled images; '' without any.

    Raises CapbiasError for an unknown name, and for several files if none is named.
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
