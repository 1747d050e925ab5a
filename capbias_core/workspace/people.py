"""Whose something is, where people sign in: only they cancel and delete it.

In a terminal, and on a server without sign-in, everything is everybody's. So is what nobody owns in a workspace of
one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from capbias_core.errors import CapbiasError

_who: Callable[[], str] = str  # asks who uses the page that is being drawn
_acting: ContextVar[str | None] = ContextVar("acting", default=None)


def ask(who: Callable[[], str]) -> None:
    """From now on this process serves people. who: says who asks for what is being done; '' without sign-in."""
    global _who
    _who = who


@contextmanager
def acting(person: str) -> Iterator[None]:
    """What is made in the block is this person's, such as what a run makes that they started."""
    token = _acting.set(person)
    try:
        yield
    finally:
        _acting.reset(token)


def person() -> str:
    """Whose what is made now will be; '' for nobody's."""
    acted = _acting.get()
    return _who() if acted is None else acted


def may_change(owner: str, folder: Path) -> bool:
    """Whether who asks may cancel or delete what this person owns in the workspace at `folder`."""
    return person() in ("", owner) or (not owner and folder.name == person())


def check_own(owner: str, folder: Path, what: str) -> None:
    """Raises CapbiasError where who asks may not cancel or delete something. what: its name."""
    if not may_change(owner, folder):
        raise CapbiasError(
            f"Only {'its owner' if owner else 'whoever runs the server'} can change {what} in this workspace.",
            "Ask them, or whoever runs the server." if owner else "",
        )
