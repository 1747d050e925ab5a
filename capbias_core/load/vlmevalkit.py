"""Predictions of VLMEvalKit (`MODEL_COCO_VAL.xlsx`, `.tsv` or `.json`): no image ids, only the rows of a benchmark, and
the human captions as a Python list in `answer`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from capbias_core.load import coco, spreadsheet, tabular
from capbias_core.load.reader import Head, Reader
from capbias_core.load.rows import PROMPT, REFERENCES, Choose, Rows

CONTAINERS = [
    own
    for module in (spreadsheet, coco, tabular)
    for own in module.READERS
    if own.name in ("xlsx", "json_records", "tsv", "csv")
]
MARKS = {"index", "answer", "prediction"}
TAKEN = {"image_id": "index", "caption": "prediction", REFERENCES: "answer", PROMPT: "question"}
ROW = "row "  # of an image in the benchmark; no id of another file looks so
FAILED = "Failed to obtain answer"  # so begins what stands for an answer that the model did not give
NOTE = "images have no ids there: each is known by its row, until human captions at hand say which one it is"


def _recognises(container: Reader, head: Head) -> bool:
    return container.recognises(head) and set(container.columns(head.path)) >= MARKS


def _offered(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(own for own, name in TAKEN.items() if name in names)


def _columns(container: Reader, path: Path) -> tuple[str, ...]:
    """The names under which the columns are offered."""
    return _offered(container.columns(path))


def _read(container: Reader, path: Path, choose: Choose) -> Rows:
    """A row an image. One for which the model gave no answer has no caption."""
    names: list[str] = []

    def chosen(columns: tuple[str, ...]) -> tuple[str, ...]:
        names.extend(choose(_offered(columns)))
        return tuple(TAKEN[name] for name in names)

    rows = container.read(path, chosen)
    values = {name: [_value(name, raw) for raw in rows.values[TAKEN[name]]] for name in names}
    return Rows(values, rows.numbers, rows.total, rows.faults, (NOTE,))


def _value(name: str, raw: Any) -> Any:
    if name == "image_id":
        return f"{ROW}{raw}".strip()
    if name == REFERENCES:
        return _listed(raw)
    return None if isinstance(raw, str) and raw.startswith(FAILED) else raw


def _listed(answer: Any) -> Any:
    """The captions of a list that was written as Python writes it, or as JSON; anything else as it is."""
    if not isinstance(answer, str) or not answer.lstrip().startswith("["):
        return answer
    try:
        return ast.literal_eval(answer.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


# Each is asked directly before the reader of the file that its table is in.
READERS = tuple(
    Reader(
        f"vlmevalkit_{own.name}",
        "VLMEvalKit predictions",
        partial(_recognises, own),
        partial(_columns, own),
        partial(_read, own),
        place=own.place - 0.5,
        by_rows=True,
    )
    for own in CONTAINERS
)
