"""Processes that make the same file at once."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 8
MAKER = """
import sys, time
from pathlib import Path
import numpy as np
from capbias_core.workspace.store import Workspace
from capbias_core.language.files import cached_vectors

print("ready", flush=True)
for line in sys.stdin:
    folder, moment = line.split()
    time.sleep(max(0, float(moment) - time.time()))
    try:
        cached_vectors(Path(folder) / "m.sqlite", ["a", "b"], lambda texts: np.ones((len(texts), 3)))
        Workspace(Path(folder))
        print("made", flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


@pytest.mark.long
def test_processes_that_make_a_new_file_at_once_all_get_it(tmp_path):
    """Without waiting for the change of the journal, about one in seven of these hears that the file is locked."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    makers = [subprocess.Popen([sys.executable, "-c", MAKER], cwd=ROOT, **pipes) for _ in range(3)]
    try:
        assert [maker.stdout.readline() for maker in makers] == ["ready\n"] * 3
        for place in range(ROUNDS):
            for maker in makers:
                maker.stdin.write(f"{tmp_path / str(place)} {time.time() + 0.02}\n")
                maker.stdin.flush()
            assert [maker.stdout.readline() for maker in makers] == ["made\n"] * 3
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()
