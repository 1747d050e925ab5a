"""Exit codes, lines for a reader, and output files, for all commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from capbias_core.errors import CapbiasError
from capbias_core.whole_files import USUAL, write_whole

if TYPE_CHECKING:
    import pandas as pd

    from capbias_core.types import Progress

DONE, RUN_FAILED, BAD_INPUT, STOPPED, TERMINATED = 0, 1, 2, 130, 143


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM); it cleans up as after Ctrl-C."""


def say(line: str) -> None:
    """A line about results, to stderr."""
    print(readable(line), file=sys.stderr, flush=True)


def readable(text: str) -> str:
    """Text from files without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def show(text: str) -> None:
    """Text that may come from files, to stdout."""
    print(readable(text))


def error_text(error: CapbiasError) -> str:
    """An error with the flags that its hint is about: `There are no labels. Name a table. (--labels)`."""
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in error.arguments)
    return f"{error} ({flags})" if flags else str(error)


def on_terminal() -> bool:
    """Whether a person reads stdout as it is."""
    return sys.stdout.isatty()


def checked_output(name: str | None) -> Path | None:
    """Where to write, before anything is computed. Raises CapbiasError where that cannot be."""
    if not name:
        return None
    path = Path(name)
    if path.is_dir():
        raise CapbiasError(f"--output {name} is a folder.", "Add a file name.")
    if not os.access(path.resolve().parent, os.W_OK):
        raise CapbiasError(f"--output {name} cannot be written: its folder does not exist or is read-only.")
    return path


def write_output(text: str, path: Path | None) -> None:
    """Results to stdout, or to a file."""
    if path is None:
        print(text, end="")
    else:
        write_file(text.encode("utf-8"), path)


def show_table(frame: pd.DataFrame, before: str = "") -> None:
    """A table in columns, to stdout."""
    from capbias_core.views.tables import to_text

    show(before + to_text(frame).rstrip("\n"))


def write_table(
    frame: pd.DataFrame,
    path: Path | None = None,
    format: str = "",
    to_csv: Callable[[pd.DataFrame], str] | None = None,
    for_reader: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> None:
    """A table: columns on a terminal, CSV with all digits to a file or a pipe, or the format that is asked for.

    to_csv: how it becomes CSV. for_reader: what a reader sees of it (default: all).
    """
    from capbias_core.spreadsheets import csv_text

    format = format or ("table" if path is None and on_terminal() else "csv")
    if format == "json":
        write_output(json.dumps(frame.to_dict("records"), indent=2, ensure_ascii=False) + "\n", path)
    elif format == "csv":
        write_output((to_csv or csv_text)(frame), path)
    else:
        show_table(for_reader(frame) if for_reader else frame)


def write_file(data: bytes, path: Path) -> None:
    """Results to a file, which is whole or absent; a device or pipe is written as it is."""
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        write_whole(target, data, USUAL)
    except OSError as error:
        raise CapbiasError(f"--output {path} cannot be written ({error.strerror}).", "Choose another file.") from None
    say(f"written: {target}")


@contextmanager
def ticking() -> Iterator[Progress]:
    """A Progress that rewrites one line of stderr on a terminal, and says nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda share, text: None
        return

    def tick(share: float, text: str) -> None:
        print(f"\r\x1b[K{readable(text)}", end="", file=sys.stderr, flush=True)

    try:
        yield tick
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
