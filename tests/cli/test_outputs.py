"""A command replaces no file that it reads, and no other without --force; an ending names the format."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.pages.synthetic import fill
from tests.random_captions import write_files

pytestmark = pytest.mark.long

SCORE = "score a.csv b.csv labels.csv --attribute gender --metric sc --seeds 1"
STORED = "--collection c --workspace home"
VIEW = f"view table {STORED} --captioner first --attribute gender"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Captions, labels, a workspace, and links to one of the files."""
    folder = write_files(tmp_path_factory.mktemp("outputs"), 60)
    fill(Workspace(folder / "home"))
    for name in ("photos/1.csv", "shipped/truth.csv", "home/models/path", "mine.csv", "mine.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("text")
    (folder / "link.csv").symlink_to("b.csv")
    os.link(folder / "b.csv", folder / "hard.csv")
    return folder


@pytest.fixture
def here(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    monkeypatch.setenv("CAPBIAS_HOME", str(made / "home"))
    monkeypatch.setattr("capbias_core.cli.terminal.SHIPPED", (made / "shipped",))
    return made


# --force helps with the last ones alone.
INPUTS = (
    f"{SCORE} --output b.csv",
    f"{SCORE} --output ./photos/../b.csv",
    f"{SCORE} --output link.csv",
    f"{SCORE} --output hard.csv",
    f"{SCORE} --output=labels.csv",
    "score --captions=b.csv --labels=labels.csv --attribute gender --output b.csv",
    "score a.csv --labels labels.csv --attribute gender --attacker bert_ft=photos --output photos/1.csv",
    "images detect photos --weights yolov8n --output photos/1.csv",
    "view encoders --results b.csv --output b.csv",
    f"{SCORE} --output shipped/truth.csv",
    f"export {STORED} --output home/models/path",
)
OTHERS = (
    f"{SCORE} --output mine.csv",
    f"{SCORE} --output mine.txt --format txt",
    f"{VIEW} --output mine.csv",
    f"export {STORED} --output mine.csv",
    "images detect photos --weights yolov8n --output mine.csv",
    "view change a.csv b.csv --labels labels.csv --attribute gender --output mine.csv",
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file() and "sqlite" not in file.name}


@pytest.mark.parametrize("command", (*INPUTS, *OTHERS))
def test_what_a_command_reads_and_what_others_wrote_stays(here, command, capsys):
    words, before = command.split(), contents(here)
    for forced in ([], ["--force"]) if command in INPUTS else ([],):
        assert cli.main([*words, *forced]) == cli.BAD_INPUT
        said = "is an input of this command or part of capbias" if command in INPUTS else "did not write what it holds"
        assert said in capsys.readouterr().err
    assert contents(here) == before


@pytest.mark.parametrize("worktree", [False, True])
@pytest.mark.parametrize(("name", "version"), [("ours.csv", 2), ("docs/ours.csv", 2), ("docs/ours.csv", 4)])
def test_no_file_of_a_checkout_that_git_has_is_replaced(tmp_path, here, name, version, worktree):
    """`force` replaced any file but those of the package and of assets."""

    def git(*words: str, folder: Path = tmp_path / "project") -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)

    project = tmp_path / "project"
    for file in ("capbias_core/__init__.py", name):
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text("ours")
    git("init", "-q")
    git("add", ".")
    git("update-index", "--index-version", str(version))
    git("commit", "-qm", "all")
    if worktree:
        git("worktree", "add", "-q", "../other")
        project = tmp_path / "other"
        git("update-index", "--index-version", str(version), folder=project)
    command = [*SCORE.split(), "--force", "--output"]
    assert cli.main([*command, str(project / name)]) == cli.BAD_INPUT and (project / name).read_text() == "ours"
    mine = project / "docs" / "our.csv"  # the end of a name that git has
    mine.parent.mkdir(exist_ok=True)
    for _ in range(2):
        mine.write_text("mine")
        assert cli.main([*command, str(mine)]) == (cli.BAD_INPUT if version == 4 else cli.DONE)


def test_force_replaces_and_a_command_replaces_its_own_result_until_it_is_edited(here):
    command, out = [*SCORE.split(), "--output", "forced.csv"], here / "forced.csv"
    out.write_text("of another")
    assert cli.main([*command, "--force"]) == 0 and cli.main(command) == 0
    assert len(pd.read_csv(out)) == 2
    out.write_text(out.read_text() + "my note\n")
    assert cli.main(command) == cli.BAD_INPUT and out.read_text().endswith("my note\n")


ENDINGS = (
    f"{SCORE} --output x.pdf",
    f"{SCORE} --format csv --output x.json",
    f"export {STORED} --format bundle --output x.html",
    f"{VIEW} --output x.zip",
    "images detect photos --weights yolov8n --output x.json",
    "images caption photos --captioner blip --output x.csv",
)


@pytest.mark.parametrize("command", ENDINGS)
def test_an_ending_that_is_not_of_the_format_is_refused(here, command, capsys):
    assert cli.main(command.split()) == cli.BAD_INPUT
    sentences.check(f"outputs: {command}", capsys.readouterr().err)
    assert not [file for file in here.iterdir() if file.name.startswith("x.")]
