"""Sentences that commands and verdicts print, in one file: tests/sentences.txt.

`python -m tests.sentences` runs the tests that print them and writes the file anew; read its diff before you commit.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FILE = Path(__file__).with_suffix(".txt")
WRITE = "CAPBIAS_WRITE_SENTENCES"
_places: Counter[str] = Counter()
HEAD = re.compile(r"^== (.+)$", re.MULTILINE)


def read() -> dict[str, str]:
    """The text of each name."""
    parts = HEAD.split(FILE.read_text(encoding="utf-8")) if FILE.exists() else [""]
    return {name: text.strip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def check(name: str, text: str, numbers: bool = True) -> None:
    """Fails unless the file has this text under this name. numbers=False: whatever the numbers in it are.

    How long runs take is not compared, nor which names are known.
    """
    lines = [line for line in text.strip("\n").splitlines() if " to do: " not in line]
    text = re.sub(r"Known: .*", "Known: ...", "\n".join(lines))
    if not numbers:
        text = re.sub(r"  +", "  ", re.sub(r"[−+-]?\d[\d.,]*\b", "#", text))
    known = read()
    if os.environ.get(WRITE):
        known[name] = text
        FILE.write_text("".join(f"== {key}\n{known[key]}\n" for key in sorted(known)), encoding="utf-8")
    assert known.get(name) == text, f"{name} reads differently; `python -m tests.sentences` writes {FILE.name} anew"


@contextmanager
def raises(kind: type[Exception]) -> Iterator[None]:
    """Fails unless the body raises this error, with the sentence that the file has for this place of this test."""
    with pytest.raises(kind) as raised:
        yield
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0].rpartition("/")[2]
    _places[test] += 1
    check(f"{test}, error {_places[test]}", str(raised.value))


if __name__ == "__main__":
    FILE.unlink(missing_ok=True)
    users = [str(path) for path in FILE.parent.rglob("test_*.py") if "import sentences" in path.read_text("utf-8")]
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", *sorted(users)], env={**os.environ, WRITE: "1"}))
