"""Which files of this machine may be named.

In a terminal any. On a server, whose visitors are not its users, only files in the folders listed in CAPBIAS_DATA_ROOTS
(separated by `:`, on Windows `;`), and none without it. A link that leads out of a folder does not count as in it.
Messages never tell whether another file exists.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from capbias_core.errors import CapbiasError, short
from capbias_core.whole_files import typed_path

ROOTS = "CAPBIAS_DATA_ROOTS"
LEADING = re.compile(r"(?:^|(?<=\())/.*/")  # the folders of a path, also in brackets behind a name
_serving = False


def serve() -> None:
    """From now on this process serves pages."""
    global _serving
    _serving = True


def roots() -> list[Path]:
    """The folders whose files a visitor of a server may name."""
    folders = os.environ.get(ROOTS, "").split(os.pathsep)
    return [typed_path(folder).resolve() for folder in folders if folder.strip()]


def nameable(path: Path) -> bool:
    """Whether this file or folder may be named here."""
    target = typed_path(path).resolve() if _serving else None
    return target is None or any(target.is_relative_to(root) for root in roots())


def offered() -> str:
    """Where a file or folder must lie, to follow `a folder` in a message; '' in a terminal."""
    return f" in one that {ROOTS} lists" if _serving else ""


def named(text: str | Path) -> Path:
    """A typed path. Raises CapbiasError unless it may be named here."""
    path = typed_path(text)
    if nameable(path):
        return path
    raise CapbiasError(
        f"The path {short(text, 200)!r} may not be read by visitors of this server.",
        f"Upload the file, or ask the server's administrator to list its folder in {ROOTS}.",
    )


def shown(source: str) -> str:
    """A source as it may be shown here: only the last part of a path that may not be named."""
    return LEADING.sub(lambda match: match[0] if nameable(Path(match[0])) else "", source)


def checked_path(given: str | os.PathLike) -> Path:
    """A path of this machine, as `typed_path` gives it. Raises CapbiasError also for a network address."""
    text = os.fspath(given)
    if "://" in text:
        raise CapbiasError(f"{text} is a URL, not a file.", "Download it and name the file.")
    return typed_path(text)
