"""Java programs that answer lines with lines; and tokens for caption quality.

`ptb`: Stanford's Penn Treebank tokenizer without punctuation, as in COCO's evaluation. `plain`: `tokenize`, for
machines without Java. Values differ by some tenths, so each result names its tokenizer.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from capbias_core.errors import CapbiasError, installed, need, unknown_name
from capbias_core.prepare.text import tokenize

# For one block of answers and Java's start: METEOR reads its paraphrases for 8 seconds first.
SECONDS = 300.0
NO_JAVA = "This machine has no Java, in which METEOR is written."

PTB, PLAIN = "ptb", "plain"
TOKENIZERS = {PTB: "PTB tokens", PLAIN: "capbias's own tokens, not the PTB tokens of COCO's evaluation"}
BLOCK = 500  # answers between two reports


def has_java() -> bool:
    """Whether this machine has a program called java."""
    return shutil.which("java") is not None


def java(arguments: Sequence[str], lines: Sequence[str], report: Callable[[float], None] | None = None) -> list[str]:
    """The lines with which a Java program answers these, one each. report: called with the share done; it raises to
    stop. Raises CapbiasError without Java, and if the program ends early or is silent for SECONDS."""
    program = shutil.which("java")
    if program is None:
        raise CapbiasError(
            "This machine has no Java, in which METEOR and the PTB tokenizer are written.",
            "Install Java 8 or newer (Debian: apt-get install default-jre-headless), or leave METEOR out.",
        )
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as faults:
        asked.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        asked.seek(0)
        command = [program, "-Dfile.encoding=UTF-8", *arguments]
        process = subprocess.Popen(
            command, stdin=asked, stdout=subprocess.PIPE, stderr=faults, encoding="utf-8", errors="replace"
        )
        answers: list[str] = []
        try:
            while part := _read(process, min(BLOCK, len(lines) - len(answers))):
                answers += part
                if report:
                    report(len(answers) / len(lines))
        finally:
            process.kill()
            process.communicate()
        if len(answers) < len(lines):
            faults.seek(0)
            said = [line.strip() for line in faults.read().decode("utf-8", "replace").split("\n") if line.strip()]
            raise CapbiasError(
                f"Java gave no answer within {SECONDS:.0f} s, or ended before: {(said or ['no message'])[-1]}.",
                "Check that `java -version` works and that 2 GB of memory are free.",
            )
    return answers


def _read(process: Any, lines: int) -> list[str]:
    """So many lines, fewer if the program ends before; it is ended if they take too long."""
    watchdog = threading.Timer(SECONDS, process.kill)
    watchdog.start()
    try:
        return [line.rstrip("\n") for line in islice(process.stdout, lines)]
    finally:
        watchdog.cancel()


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
    given = [" ".join(caption.split()) for caption in captions]
    lines = java(["-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer", *options], given)
    return [" ".join(word for word in line.split() if word not in ptbtokenizer.PUNCTUATIONS) for line in lines]
