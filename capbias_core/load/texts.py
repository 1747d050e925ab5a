"""Plain texts without images: a line each, or a column of a table."""

from __future__ import annotations

from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.load.columns import caption_columns
from capbias_core.load.files import contents, decoded
from capbias_core.load.formats import sheets_of
from capbias_core.load.sheet import cell_text, listed


def text_lines(text: str) -> list[str]:
    """The lines of a text that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip() and "\0" not in line]


def read_texts(
    path: Path, column: str | None = None, label_column: str | None = None
) -> tuple[list[str], list[str] | None]:
    """The texts of a file that are not empty, and their labels, or None without a column of labels.

    A .txt file has one text per line; in any other table the column is `column`, or the only one of texts. Raises
    CapbiasError for a file without a usable text or without the column.
    """
    values = None
    if path.suffix.lower() == ".txt" and not column and not label_column:
        ((name, data),) = contents(path).items()
        texts = text_lines(decoded(name, data))
    else:
        (sheet, *_) = sheets_of(path, str(path))
        named, other, human = caption_columns(sheet)
        usual = named or [*other, *human] or (sheet.columns if len(sheet.columns) == 1 else [])
        if not column and len(usual) != 1:
            what = f"{len(usual)} columns" if usual else "No column"
            raise CapbiasError(
                f"{what} of {path.name} {'hold' if usual else 'holds'} texts ({listed(usual or sheet.columns)}).",
                "Name the column to read.",
                "column",
            )
        for name in filter(None, (column, label_column)):
            if name not in sheet.columns:
                raise CapbiasError(f"{path.name} has no column {name!r}.", f"Its columns are {listed(sheet.columns)}.")
        raw = sheet.frame[column or usual[0]].tolist()
        usable = [place for place, text in enumerate(raw) if isinstance(text, str) and text.strip()]
        texts = [raw[place].strip() for place in usable]
        if label_column:
            labels = sheet.frame[label_column].tolist()
            values = [cell_text(labels[place]) for place in usable]
    if not texts:
        raise CapbiasError(f"{path.name} holds no text.", "Write one text per line, or a column of texts.")
    return texts, values
