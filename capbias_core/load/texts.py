"""Plain texts without images: one a line, or a column of a table."""

from __future__ import annotations

from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.captions import caption_fault
from capbias_core.load.files import whole_text
from capbias_core.load.labels import label_text
from capbias_core.load.rows import chosen_column, guess_columns, listed
from capbias_core.load.sniff import reader_of

LINES = ".txt"


def read_texts(
    path: Path, column: str | None = None, label_column: str | None = None
) -> tuple[list[str], list[str] | None]:
    """The texts of a file that hold anything, and beside them their labels, or None without a column of labels.

    A .txt file has one text a line; of any other table the column is that named, or the one that usually holds text.
    Raises CapbiasError for a file without a usable text or without the column.
    """
    if path.suffix.lower() == LINES and not column and not label_column:
        texts = [line.strip() for line in whole_text(path).splitlines()]
        return _checked([text for text in texts if text and not caption_fault(text)], path), None
    names: list[str] = []

    def choose(columns: tuple[str, ...]) -> tuple[str, ...]:
        names.append(chosen_column(path.name, columns, column) if column else _usual(path, columns))
        names.extend([chosen_column(path.name, columns, label_column)] if label_column else [])
        return tuple(dict.fromkeys(names))

    values = reader_of(path).read(path, choose).values
    texts = values[names[0]]
    kept = [place for place, text in enumerate(texts) if not caption_fault(text) and text.strip()]
    labels = [label_text(values[names[1]][place]) for place in kept] if label_column else None
    return _checked([texts[place].strip() for place in kept], path), labels


def _usual(path: Path, columns: tuple[str, ...]) -> str:
    found = columns[0] if len(columns) == 1 else guess_columns(columns)["caption"]
    if found is None:
        raise CapbiasError(
            f"{path.name} with the columns {listed(columns)}", "a column of texts", "Name it with --column."
        )
    return found


def _checked(texts: list[str], path: Path) -> list[str]:
    if not texts:
        raise CapbiasError(f"{path.name}, which holds no text", "one text a line, or a column of texts", "Check it.")
    return texts
