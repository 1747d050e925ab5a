"""What every command shares: exit codes, lines for a reader, files that are whole or not there."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from capbias_core.errors import CapbiasError

DONE, RUN_FAILED, BAD_INPUT, STOPPED = 0, 1, 2, 130


def say(line: str) -> None:
    """A line of what is said about results, to stderr."""
    print(_readable(line), file=sys.stderr, flush=True)


def _readable(text: str) -> str:
    """Text from files without control characters, which a terminal would obey."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def show(text: str) -> None:
    """Text that may come from files, to stdout."""
    print(_readable(text))


def share(text: str) -> float:
    """An argument above 0, and 1 at most."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number above 0, and 1 at most")
    return value


def warn(reports: Iterable) -> None:
    """Each warning of some reports once, with the files that it is about."""
    files: dict[str, list[str]] = {}
    for report in reports:
        for warning in report.warnings:
            files.setdefault(warning, []).append(report.file)
    for warning, names in files.items():
        say(f"warning: {', '.join(names)}: {warning}")


def checked_output(name: str | None) -> Path | None:
    """Where to write, before anything is computed. Raises CapbiasError where that cannot be."""
    if not name:
        return None
    path = Path(name)
    if path.is_dir():
        raise CapbiasError(f"--output {name}, which is a folder", "a file", "Add a file name.")
    if not os.access(path.resolve().parent, os.W_OK):
        fault = "whose folder does not exist or cannot be written"
        raise CapbiasError(f"--output {name}, {fault}", "a folder that can be written", "Make it first.")
    return path


def write_output(text: str, path: Path | None) -> None:
    """Results to stdout, or to a file."""
    if path is None:
        print(text, end="")
        return
    try:
        _write(text, path.resolve())
    except OSError as error:
        raise CapbiasError(
            f"--output {path}, which cannot be written ({error.strerror})", "a writable file", "Choose another."
        ) from None


def _write(text: str, target: Path) -> None:
    """A file is whole or not there; a device or pipe is written as it is."""
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    temporary = target.with_name(f".capbias-{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    say(f"written: {target}")
