"""Which files of this machine may be named.

In a terminal any: whoever types there can read them anyway. A visitor of a server is not its user, so a page may name
only what lies in the folders that CAPBIAS_DATA_ROOTS lists (between them `:`, on Windows `;`), and nothing where it is
not set. A link that leads out of a folder does not lie in it. What is elsewhere, or is not there, is not said.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from capbias_core.errors import CapbiasError

ROOTS = "CAPBIAS_DATA_ROOTS"
# The folders of a path that stands alone, or in brackets behind a name.
LEADING = re.compile(r"(?:^|(?<=\())/.*/")
_serving = False


def serve() -> None:
    """From now on this process serves pages."""
    global _serving
    _serving = True


def roots() -> list[Path]:
    """The folders whose files a visitor of a server may name."""
    return [Path(own).expanduser().resolve() for own in os.environ.get(ROOTS, "").split(os.pathsep) if own.strip()]


def nameable(path: Path) -> bool:
    """Whether this file or folder may be named here; on a server nothing may that is not in one of its roots."""
    if not _serving:
        return True
    place = Path(path).expanduser().resolve()
    return any(place.is_relative_to(root) for root in roots())


def offered() -> str:
    """Where a file or folder that is named must lie, to follow `a folder` in a message; '' in a terminal.

    The words are the same for what lies elsewhere and for what is nowhere.
    """
    return f" in one that {ROOTS} lists" if _serving else ""


def named(text: str | Path) -> Path:
    """A path that somebody typed. Raises CapbiasError unless it may be named here."""
    path = Path(text).expanduser()
    if nameable(path):
        return path
    raise CapbiasError(
        f"The path {str(text)[:200]!r} may not be read by visitors of this server.",
        f"Upload the file, or ask whoever runs the server to list its folder in {ROOTS}.",
    )


def shown(source: str) -> str:
    """Where something came from, as it may be shown here: of a path that may not be named, its last part alone."""
    return LEADING.sub(lambda match: match[0] if nameable(Path(match[0])) else "", source)


def checked_path(given: str | os.PathLike) -> Path:
    """A path of this machine. Raises CapbiasError for an address on the network."""
    text = os.fspath(given)
    if "://" in text:
        raise CapbiasError(f"{text} is a URL, not a file.", "Download it and name the file.")
    return Path(text)
