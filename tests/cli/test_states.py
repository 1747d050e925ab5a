"""The real command on damaged workspaces, after kills and signals: one sentence, its exit code, and all goes on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from capbias_core import cli
from capbias_core.workspace.store import Workspace
from tests.browser import ROOT
from tests.random_captions import FILES, write_files
from tests.runs.test_engine import until

IMAGES = 160


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Captions of three captioners, and labels."""
    return write_files(tmp_path_factory.mktemp("files"), IMAGES)


@pytest.fixture(scope="module")
def undisturbed(files, tmp_path_factory) -> bytes:
    """The rows of the command, which computes for some seconds."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert cli.main(command(files, folder / "home")) == 0
    return (folder / "rows.csv").read_bytes()


def command(files: Path, home: Path) -> list[str]:
    """The command that scores what it has imported; its rows go beside the workspace."""
    place = ["--collection", "mine", "--workspace", str(home)]
    if not home.exists():
        assert cli.main(["import", *(str(files / name) for name in FILES), *place]) == 0
    asked = [*place, "--attribute", "gender", "--metric", "lic_m", "--seeds", "20"]
    return ["score", *asked, "--output", str(home.parent / "rows.csv")]


def start(files: Path, home: Path) -> subprocess.Popen:
    """The command in a process of its own."""
    words = [sys.executable, "-m", "capbias_core", *command(files, home)]
    return subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True)


def under_way(home: Path) -> bool:
    """Whether the command has begun to compute."""
    return (home / "capbias.sqlite").exists() and any(run.status == "running" for run in Workspace(home).runs())


def check_finished(files: Path, home: Path, undisturbed: bytes) -> None:
    """The same command again ends well, with the rows of an undisturbed run."""
    assert cli.main(command(files, home)) == 0
    assert (home.parent / "rows.csv").read_bytes() == undisturbed
    assert {run.status for run in Workspace(home).runs()} == {"finished"}


@pytest.mark.slow
@pytest.mark.long
def test_the_same_command_right_after_its_end_goes_on(files, tmp_path, undisturbed):
    home = tmp_path / "home"
    first = start(files, home)
    until(lambda: under_way(home))
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 143
    left = [run.status for run in Workspace(home).runs() if run.status != "finished"]
    assert left and set(left) == {"cancelled"}
    check_finished(files, home, undisturbed)


def newer(home: Path) -> None:
    with closing(sqlite3.connect(home / "capbias.sqlite")) as db:
        db.execute("PRAGMA user_version=99")


def damaged(home: Path) -> None:
    (home / "capbias.sqlite").write_bytes(b"\xff" * 4096)


@pytest.mark.parametrize("harm", [newer, damaged])
@pytest.mark.parametrize("asked", [["list"], ["list", "--cancel", "all"], ["demo"]], ids=" ".join)
def test_a_workspace_that_cannot_be_used_is_one_line_and_code_2(tmp_path, capsys, harm, asked):
    Workspace(tmp_path)
    harm(tmp_path)
    before = (tmp_path / "capbias.sqlite").read_bytes()
    assert cli.main([*asked, "--workspace", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and "CAPBIAS_HOME" in line
    assert (tmp_path / "capbias.sqlite").read_bytes() == before
