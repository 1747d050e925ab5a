"""Collections for tests, stored as users' files, tables and lists are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.read import read_file
from capbias_core.workspace.ingest import File, preview, store, with_mapping
from capbias_core.workspace.store import Item, Workspace

# What the helper calls them -> kind, and the name of the item unless a dict names several.
KINDS = {
    "labels": (LABELS, "labels"),
    "references": (REFERENCES, "human"),
    "objects": (OBJECTS, "objects"),
    "segments": (SEGMENTS, "outlines"),
    "captions": (CAPTIONS, "m"),
}


def keep(
    workspace: Workspace,
    collection: str = "c",
    *,
    attribute: str | Iterable[str] = (),
    trained: bool | None = None,
    **given: Any,
) -> dict[str, Item]:
    """The items, by name. given: paths, tables or lists, by the names in KINDS, or dicts that name several.

    attribute: `gender` or `gender=column`, one or several; by default those that are recognised.
    """
    files = []
    for role, sources in given.items():
        kind, usual = KINDS[role]
        for name, source in (sources if isinstance(sources, Mapping) else {usual: sources}).items():
            files += [File(source, kind, name, trained=trained)] if source is not None else []
    parts = preview(files, read=read_file)
    for part in parts:
        if part.reading.error:
            raise part.reading.error
    asked = [attribute] if isinstance(attribute, str) else list(attribute)
    parts = [with_mapping(part, asked=asked) for part in parts]
    return {item.name: item for item in store(workspace, collection, parts)}
