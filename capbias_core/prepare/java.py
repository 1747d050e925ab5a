"""Java programs that answer lines with lines, with timeouts and cleanup; and tokens for caption quality.

`ptb`: Stanford's Penn Treebank tokenizer without punctuation, as in COCO's evaluation; it needs Java. `plain`:
`tokenize`, for machines without Java. Values differ by some tenths, so each result names its tokenizer.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError, installed, need, unknown_name
from capbias_core.prepare.text import tokenize

# For one block of lines and Java's start: METEOR reads its paraphrases for 8 seconds first.
SECONDS = 300.0
NO_JAVA = "This machine has no Java, in which METEOR is written."

PTB, PLAIN = "ptb", "plain"
TOKENIZERS = {PTB: "PTB tokens", PLAIN: "capbias's own tokens, not the PTB tokens of COCO's evaluation"}
BLOCK = 20_000

# ask(lines, number of answers); last=True if no lines follow and the program waits for the end of its input.
Ask = Callable[..., list[str]]


def has_java() -> bool:
    """Whether this machine has a program called java."""
    return shutil.which("java") is not None


@contextmanager
def java(arguments: Sequence[str], seconds: float = SECONDS) -> Iterator[Ask]:
    """A Java program that runs until the end of the block. Raises CapbiasError without Java, and from `ask` if the
    program ends early or is silent for `seconds`."""
    program = shutil.which("java")
    if program is None:
        raise CapbiasError(
            "This machine has no Java, in which METEOR and the PTB tokenizer are written.",
            "Install Java 8 or newer (Debian: apt-get install default-jre-headless), or leave METEOR out.",
        )
    with tempfile.TemporaryFile() as faults:
        process: Any = subprocess.Popen(
            [program, "-Dfile.encoding=UTF-8", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=faults,
            encoding="utf-8",
            errors="replace",
        )

        def write(lines: Sequence[str], last: bool) -> None:
            with suppress(OSError, ValueError):  # it ended: the reader says so
                process.stdin.write("".join(f"{line}\n" for line in lines))
                process.stdin.flush()
                if last:
                    process.stdin.close()

        def ask(lines: Sequence[str], answers: int, last: bool = False) -> list[str]:
            watchdog = threading.Timer(seconds, process.kill)
            # Written from a thread while the answers are read, so that no full pipe stops both sides.
            writer = threading.Thread(target=write, args=(lines, last), daemon=True)
            watchdog.start()
            writer.start()
            given = [process.stdout.readline() for _ in range(answers)]
            watchdog.cancel()
            writer.join()
            if answers and not given[-1]:
                faults.seek(0)
                said = [line.strip() for line in faults.read().decode("utf-8", "replace").split("\n") if line.strip()]
                raise CapbiasError(
                    f"Java gave no answer within {seconds:.0f} s, or ended before: {(said or ['no message'])[-1]}.",
                    "Check that `java -version` works and that 2 GB of memory are free.",
                )
            return [line.rstrip("\n") for line in given]

        try:
            yield ask
        finally:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()
            process.wait()


def default_tokenizer() -> str:
    """`ptb` if Java and pycocoevalcap are installed, else `plain`."""
    return PTB if has_java() and installed("pycocoevalcap") else PLAIN


def quality_tokens(captions: Sequence[str], tokenizer: str) -> list[str]:
    """The tokens of each caption, joined by spaces; '' for none. Raises CapbiasError for an unknown tokenizer, and for
    `ptb` without Java."""
    if tokenizer not in TOKENIZERS:
        raise unknown_name("tokenizer", tokenizer, TOKENIZERS)
    if tokenizer == PLAIN:
        return [" ".join(tokenize(caption)) for caption in captions]
    need("The tokenizer ptb", "pycocoevalcap")
    from pycocoevalcap.tokenizer import ptbtokenizer

    # The Java program itself: the wrapper of pycocoevalcap writes into its package's folder.
    jar = Path(ptbtokenizer.__file__ or "").with_name(ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR)
    options = ["-preserveLines", "-lowerCase", "-encoding", "utf-8"]
    lines: list[str] = []
    for start in range(0, len(captions), BLOCK):
        block = [" ".join(caption.split()) for caption in captions[start : start + BLOCK]]
        with java(["-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer", *options]) as ask:
            lines += ask(block, len(block), last=True)
    return [" ".join(word for word in line.split() if word not in ptbtokenizer.PUNCTUATIONS) for line in lines]
