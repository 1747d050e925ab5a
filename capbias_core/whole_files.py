"""Files that are whole or not there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Another path to write to, which takes the place of an earlier file at the end of the block.

    Where the block raises, the earlier file stays as it was.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file at once, in place of an earlier one. Raises OSError, and the earlier one is then as it was."""
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
