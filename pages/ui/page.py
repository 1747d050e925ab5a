"""What a page shows: its workspace, collection and choice, and work that is kept for all visitors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from capbias_core.kinds import LABELS
from capbias_core.runs.engine import Engine
from capbias_core.views.choose import Choice
from capbias_core.workspace.labels import attributes_in
from capbias_core.workspace.store import Item, Workspace
from pages.ui.base import once

T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """What a page shows. collection: '' if nothing is loaded. choice: None if nothing of it is scored yet."""

    engine: Engine
    collection: str
    choice: Choice | None

    @property
    def workspace(self) -> Workspace:
        return self.engine.workspace

    @property
    def folder(self) -> str:
        return str(self.engine.folder)

    def items(self, kind: str) -> list[Item]:
        """The items of a kind in the collection, the oldest first."""
        return self.workspace.items(kind, self.collection)

    @property
    def attributes(self) -> list[str]:
        """The attributes of the collection's labels."""
        return attributes_in(self.items(LABELS)) if self.collection else []

    def once(self, piece: str, work: Callable[[], T]) -> T:
        """The result of work that depends on the choice and the name of the piece alone, kept for all visitors."""
        choice = self.choice
        of_choice = (choice.attribute, choice.setting, choice.captioner) if choice else ()
        return once(repr((self.folder, self.workspace.version(), self.collection, *of_choice, piece)), work)
