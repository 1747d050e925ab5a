"""Java programs that read lines and write lines: asked in blocks, never waited for without end, never left behind."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from capbias_core.errors import CapbiasError

# For one block of lines, and for Java to start: METEOR reads its paraphrases for 8 seconds first.
SECONDS = 300.0
NO_JAVA = "This machine has no Java, in which METEOR is written."

# Lines to so many answers: ask(lines, answers), or ask(lines, answers, last=True) where none follow and the program
# waits for their end.
Ask = Callable[..., list[str]]


def has_java() -> bool:
    """Whether this machine has a program called java."""
    return shutil.which("java") is not None


@contextmanager
def java(arguments: Sequence[str], seconds: float = SECONDS) -> Iterator[Ask]:
    """A running Java program that answers lines with lines; it ends with the block.

    Raises CapbiasError where there is no Java, and from `ask` where the program ends early or is silent for `seconds`.
    """
    program = shutil.which("java")
    if program is None:
        raise CapbiasError(
            "This machine has no Java, in which METEOR and the PTB tokenizer are written.",
            "Install Java 8 or newer (Debian: apt-get install default-jre-headless), or leave METEOR out.",
        )
    with tempfile.TemporaryFile() as faults:
        process = subprocess.Popen(
            [program, "-Dfile.encoding=UTF-8", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=faults,
            encoding="utf-8",
            errors="replace",
        )
        try:
            yield partial(_ask, process, seconds, faults)
        finally:
            _end(process)


def _ask(process, seconds: float, faults, lines: Sequence[str], answers: int, last: bool = False) -> list[str]:
    """Write from a thread while the answers are read, so that no full pipe stops both sides."""
    watchdog = threading.Timer(seconds, process.kill)
    writer = threading.Thread(target=_write, args=(process, lines, last), daemon=True)
    watchdog.start()
    writer.start()
    found = [process.stdout.readline() for _ in range(answers)]
    watchdog.cancel()
    writer.join()
    if answers and not found[-1]:
        raise CapbiasError(
            f"Java gave no answer within {seconds:.0f} s, or ended before: {_last_line(faults)}.",
            "Check that `java -version` works and that 2 GB of memory are free.",
        )
    return [line.rstrip("\n") for line in found]


def _write(process: subprocess.Popen, lines: Sequence[str], last: bool) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    with suppress(OSError, ValueError):  # it ended: the reader says so
        pipe.write("".join(f"{line}\n" for line in lines))
        pipe.flush()
        if last:
            pipe.close()


def _end(process: subprocess.Popen) -> None:
    process.kill()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):
            pipe.close()
    process.wait()


def _last_line(faults) -> str:
    faults.seek(0)
    lines = faults.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
