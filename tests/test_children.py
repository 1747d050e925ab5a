"""Processes that the package starts: none runs code of the current folder, and one that does not start says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capbias_core.children import LOCATION, child_environment, module_command

# Modules of the standard library and of others that readers and workers import.
PLANTED = ("queue", "statistics", "datasets", "socket", "pickle", "pandas", "runpy", "openpyxl")
COMMON = "from capbias_core.cli import main; raise SystemExit(main({arguments}))"


@pytest.fixture
def trapped(tmp_path, monkeypatch) -> Path:
    """A folder of captions with modules beside them that would leave a mark."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nraise ImportError\n"
        )
    images = range(40)
    captions = "".join(f"{image},{('a woman', 'a man')[image % 2]} cooks {image}\n" for image in images)
    labels = "".join(f"{image},{('Female', 'Male')[image % 2]}\n" for image in images)
    (tmp_path / "sat.csv").write_text(f"image_id,caption\n{captions}")
    (tmp_path / "labels.csv").write_text(f"image_id,gender\n{labels}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(folder: Path) -> str:
    return (folder / "ran").read_text() if (folder / "ran").exists() else ""


def run(code: str) -> subprocess.CompletedProcess:
    """Code in a new interpreter, as an installed `capbias` runs: without the current folder on its own path."""
    given = {"env": {**os.environ, "PYTHONPATH": str(LOCATION)}, "capture_output": True, "text": True, "timeout": 240}
    return subprocess.run([sys.executable, "-P", "-c", code], **given)


def test_no_code_of_the_current_folder_runs_in_what_reads_files(trapped):
    done = run(
        COMMON.format(arguments=["score", "sat.csv", "labels.csv", "--attribute", "gender", "--metric", "ratio"])
    )
    assert done.returncode == 0 and "ratio" in done.stdout, done.stderr
    assert ran(trapped) == ""


@pytest.mark.parametrize("folder_on_path", [False, True])
def test_no_code_of_the_current_folder_runs_in_workers(trapped, folder_on_path):
    """Nor if the process that starts them was itself started in it with `python -m`."""
    code = "from capbias_core.runs.local_workers import LocalWorkers; import os, sys\n"
    code += "sys.path.insert(0, os.getcwd()); os.environ['PYTHONPATH'] += os.pathsep + '.'\n" if folder_on_path else ""
    code += "print(LocalWorkers([{}]).submit(os.getpid).result(60) != os.getpid())"
    done = run(code)
    assert done.stdout == "True\n", done.stderr
    assert ran(trapped) == ""


def test_a_module_gets_its_arguments_and_what_this_process_can_import(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text("import sys\nprint(sys.argv[1:], sys.path[0] != '')\n")
    monkeypatch.syspath_prepend(tmp_path)
    command = module_command("own_module", "one", "two")
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, cwd="/")
    assert done.stdout == "['one', 'two'] True\n", done.stderr
