"""Collections for tests, stored as users' files, tables and lists are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from capbias_core.attributes import attribute_folder
from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.read import File, Given, read
from capbias_core.workspace.ingest import every_attribute, store
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
    samples: bool = False,
    **given: Any,
) -> dict[str, Item]:
    """The items, by name. given: paths, tables or lists, by the names in KINDS, or dicts that name several.

    attribute: `gender` or `gender=column`, one or several; by default those that are recognised.
    samples: whether several captions of an image are samples.
    """
    files = []
    for role, sources in given.items():
        kind, usual = KINDS[role]
        for name, source in (sources if isinstance(sources, Mapping) else {usual: sources}).items():
            source = Path(source) if isinstance(source, str) else source
            files += [File(source, (kind,), name, trained=trained)] if source is not None else []
    asked = [attribute] if isinstance(attribute, str) else list(attribute)
    wanted = every_attribute(attribute_folder(workspace.folder), asked)
    named = Given(attribute=tuple(name for name in asked if "=" in name), sets="samples" if samples else "")
    return {item.name: item for item in store(workspace, collection, read(files, named, wanted).parts)}
