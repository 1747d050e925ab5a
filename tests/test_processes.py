"""Code in the current folder, such as a stranger's or a user's own `queue.py`, does not run with any command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capbias_core import processes
from tests.browser import ROOT, free_port, wait_until_healthy
from tests.random_captions import write_files

pytestmark = pytest.mark.long

# Modules of Python, and names that users give to their own files, which capbias or its libraries import. Python imports
# `types` before it runs the module of `-m`, so nothing can be done about that.
NAMES = ["queue", "statistics", "datasets", "json", "pickle", "socket", "threading", "random", "string", "utils"]
FILES = ["a.csv", "labels.csv", "--attribute", "gender"]
SCORE = ["score", *FILES, "--metric", "lic_m", "--seeds", "2"]
COMMANDS = (
    ["import", "a.csv", "labels.csv", "--collection", "c"],
    ["score", "--collection", "c", "--attribute", "gender", "--metric", "lic_m", "--seeds", "2"],
    ["export", "--collection", "c", "--output", "bundle.zip"],
    ["reproduce", "bundle.zip"],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Captions and labels among files that are named like modules, and say when they run."""
    folder = write_files(tmp_path_factory.mktemp("here"), 100)
    (folder / "own-1.dist-info").mkdir()  # as of an installed package that adds to capbias
    (folder / "own-1.dist-info" / "entry_points.txt").write_text("[capbias]\nown = own\n")
    for name in (*NAMES, "own"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'a').write('{name} ')\n")
    return folder


def started(folder: Path, *arguments: str, **more) -> subprocess.Popen:
    """A command in this folder, as `python -m` with the folder on the path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CAPBIAS_HOME": str(folder / "home")}
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, "-m", "capbias_core", *arguments]
    given = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True} | more
    return subprocess.Popen(command, cwd=folder, env=environment, **given)


def check_stranger(folder: Path, process: subprocess.Popen, *codes: int) -> None:
    """A command that ends well, and runs none of the files."""
    _, printed = process.communicate(timeout=120)
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    assert "Traceback" not in printed and process.returncode in codes, printed


def test_no_command_runs_code_of_the_current_folder(folder):
    check_stranger(folder, started(folder, *SCORE), 0)


@pytest.mark.slow
def test_no_command_on_a_workspace_or_bundle_runs_code_of_the_current_folder(folder):
    for command in COMMANDS:
        check_stranger(folder, started(folder, *command), 0)


@pytest.mark.slow
def test_the_dashboard_runs_no_code_of_the_current_folder_and_ends_with_130_by_ctrl_c(folder):
    port = free_port()
    process = started(folder, "app", "--port", str(port), start_new_session=True)
    wait_until_healthy(f"http://127.0.0.1:{port}")
    process.send_signal(signal.SIGINT)
    # 0 if Streamlit's own handler of the signal comes first, which happens on a busy machine.
    check_stranger(folder, process, 130, 0)


def test_relative_folders_are_left_out_of_the_path_of_children(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "lib", "/opt/lib"]))
    command, environment = processes.python("-m", "x", CAPBIAS_HOME="w")
    assert command == [sys.executable, "-m", "x"] and environment["CAPBIAS_HOME"] == "w"
    assert environment["PYTHONPATH"] == os.pathsep.join([str(ROOT), "/opt/lib"])


def test_a_current_folder_that_was_deleted_is_one_sentence(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    program = f"import os, sys; os.chdir({str(folder)!r}); os.rmdir({str(folder)!r})\n"
    program += "from capbias_core.cli import main; sys.exit(main(['import', 'a.csv']))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.startswith("error: The current folder was deleted."), done.stderr
