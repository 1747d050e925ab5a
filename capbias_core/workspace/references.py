"""Human captions of a collection, which kinds of items and plans call references."""

from __future__ import annotations

from capbias_core.workspace.store import Item, Workspace


def human_sets(workspace: Workspace, collection: str) -> list[Item]:
    """The sets of human captions of a collection, those of most images first; the first is compared with unless
    another is named."""
    return sorted(workspace.items("references", collection), key=lambda item: -item.images)
