"""Files that are whole or not there."""

from __future__ import annotations

import uuid
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file at once, in place of an earlier one. Raises OSError, and the earlier one is then as it was."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
