"""Exit codes, lines for a reader, and output files, for all commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from capbias_core.errors import CapbiasError
from capbias_core.whole_files import USUAL, typed_path, write_whole

if TYPE_CHECKING:
    import pandas as pd

PIPE_WIDTH = 200  # characters of a line where nobody says how wide the reader's are
DONE, RUN_FAILED, BAD_INPUT, UNEXPECTED = 0, 1, 2, 70
WORDS: ContextVar[Sequence[str]] = ContextVar("WORDS", default=())  # of the present command line


def say(line: str) -> None:
    """A line about results, to stderr."""
    print(readable(line), file=sys.stderr, flush=True)


def readable(text: str) -> str:
    """Text from files without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def show(text: str) -> None:
    """Text that may come from files, to stdout."""
    print(readable(text))


def on_terminal() -> bool:
    """Whether a person reads stdout as it is."""
    return sys.stdout.isatty()


def checked_output(name: str | None, force: bool, endings: Iterable[str]) -> Path | None:
    """Where to write, before anything is computed.

    endings: of the formats that may be written. Raises CapbiasError where it cannot be, for another ending, for a file
    that the command line names a second time, and without force for a file that exists.
    """
    if not name:
        return None
    path = typed_path(name, to_read=False)
    if path.is_dir():
        raise CapbiasError(f"--output {name} is a folder.", "Add a file name.")
    if not os.access(path.resolve().parent, os.W_OK):
        raise CapbiasError(f"--output {name} cannot be written: its folder does not exist or is read-only.")
    if path.suffix and path.suffix[1:].lower() not in endings:
        raise CapbiasError(
            f"--output {name} must end in {' or '.join(f'.{ending}' for ending in endings)}.",
            "Change its ending, or the format.",
        )
    if path.is_file():  # a device or pipe is written as it is
        words = (os.path.expanduser(part) for word in WORDS.get() for part in (word, word.partition("=")[2]))
        if sum(os.path.exists(word) and path.samefile(word) for word in words) > 1:  # one of them is --output itself
            raise CapbiasError(f"{path} is an input of this command.", "Choose another name.")
        if not force:
            raise CapbiasError(f"{path} exists.", "Choose another name, or add --force to replace it.")
    return path


def text_width() -> int:
    """Characters of a line: of the terminal, or as many as a log or notebook shows."""
    return shutil.get_terminal_size().columns if on_terminal() else PIPE_WIDTH


def show_table(frame: pd.DataFrame, before: str = "") -> None:
    """A table in columns, to stdout; numbers stand to the right."""
    from capbias_core.views.files import text_table

    show(before + text_table(frame.astype(str), list(frame.select_dtypes("number"))))


def write(data: str | bytes, path: Path | None) -> None:
    """Results to stdout, without control characters if that is a terminal, or to a file, which is whole or absent; a
    device or pipe is written as it is."""
    if path is None:
        text = data if isinstance(data, str) else data.decode()
        print(readable(text) if on_terminal() else text, end="")
        return
    data, target = data.encode() if isinstance(data, str) else data, path.resolve()
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        write_whole(target, data, USUAL)
    except OSError as error:
        raise CapbiasError(f"--output {path} cannot be written ({error.strerror}).", "Choose another file.") from None
    say(f"written: {target}")
