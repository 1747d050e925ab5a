"""Plain texts without images: one per line, or a column of a table."""

from __future__ import annotations

from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.files import whole_text
from capbias_core.load.labels import label_text
from capbias_core.load.parse import parse
from capbias_core.load.rows import chosen_column, guess_columns, listed
from capbias_core.load.tables import caption_fault

LINES = ".txt"


def text_lines(text: str) -> list[str]:
    """The lines of a text that hold anything."""
    return [line.strip() for line in text.splitlines() if not caption_fault(line) and line.strip()]


def read_texts(
    path: Path, column: str | None = None, label_column: str | None = None
) -> tuple[list[str], list[str] | None]:
    """The texts of a file that hold anything, and beside them their labels, or None without a column of labels.

    A .txt file has one text per line; of any other table the column is that named, or the one that usually holds text.
    Raises CapbiasError for a file without a usable text or without the column.
    """
    if path.suffix.lower() == LINES and not column and not label_column:
        raw, values = whole_text(path).splitlines(), None
    else:
        parsed = parse(path)
        names = tuple(parsed.columns)
        chosen = column or (names[0] if len(names) == 1 else guess_columns(names)["caption"])
        if chosen is None:
            raise CapbiasError(f"No column of {path.name} holds texts ({listed(names)}).", "Name it with --column.")
        raw = parsed.columns[chosen_column(path.name, names, chosen)]
        values = parsed.columns[chosen_column(path.name, names, label_column)] if label_column else None
    kept = [place for place, text in enumerate(raw) if not caption_fault(text) and text.strip()]
    if not kept:
        raise CapbiasError(f"{path.name} holds no text.", "Write one text per line, or a column of texts.")
    texts = [raw[place].strip() for place in kept]
    return texts, None if values is None else [label_text(values[place]) for place in kept]
