"""What every reader gives: the content of a file as raw columns, before anyone has decided what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capbias_core.load.rows import RowErrors


@dataclass(frozen=True)
class Parsed:
    """The content of a file before anyone has decided what it is.

    format: a key such as `coco_results`; title: the same as shown. columns: raw values, one per row, in file order.
    numbers: line or record number of each row. rows: rows in the file, those in `faults` included. notes: sentences on
    what was taken from where. kind: only if the format itself fixes it (a name in kinds.py). by_rows: images are known
    by their row number alone. image_names: image ID -> file name, and sizes: image ID -> (height, width) or (0, 0), of
    the images that the file lists.
    """

    path: Path
    format: str
    title: str
    columns: Mapping[str, Sequence]
    numbers: Sequence[int]
    rows: int
    faults: RowErrors
    notes: tuple[str, ...] = ()
    kind: str = ""
    by_rows: bool = False
    image_names: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file's name, for messages."""
        return self.path.name
