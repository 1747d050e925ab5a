"""Who owns a run or an item, if people sign in: only the owner cancels, replaces or deletes it.

In a terminal, and on a server without sign-in, everybody may. In their workspace, people may also change what nobody
owns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from capbias_core.errors import CapbiasError

_who: Callable[[], str] = str  # returns the user of the page that is being drawn
_acting: ContextVar[str | None] = ContextVar("acting", default=None)


def ask(who: Callable[[], str]) -> None:
    """Set who returns the present user, '' without sign-in, for the rest of this process."""
    global _who
    _who = who


@contextmanager
def acting(person: str) -> Iterator[None]:
    """In the block, this person owns what is made, such as the items of a run that they started."""
    token = _acting.set(person)
    try:
        yield
    finally:
        _acting.reset(token)


def person() -> str:
    """The owner of what is made now, '' for nobody."""
    acted = _acting.get()
    return _who() if acted is None else acted


def may_change(owner: str, folder: Path) -> bool:
    """Whether the present user may change what `owner` owns in the workspace at `folder`."""
    return person() in ("", owner) or (not owner and folder.name == person())


def check_own(owner: str, folder: Path, what: str) -> None:
    """Raises CapbiasError if the present user may not change something. what: its name."""
    if not may_change(owner, folder):
        raise CapbiasError(
            f"Only {'its owner' if owner else 'the administrator of the server'} can change {what} in this workspace.",
            "Ask the owner, or the administrator of the server." if owner else "",
        )
