"""A command replaces no file that it reads, and no other without --force; an ending names the format."""

from __future__ import annotations

import os
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
    for name in ("mine.csv", "mine.txt"):
        (folder / name).write_text("text")
    (folder / "photos").mkdir()
    (folder / "link.csv").symlink_to("b.csv")
    os.link(folder / "b.csv", folder / "hard.csv")
    return folder


@pytest.fixture
def here(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    monkeypatch.setenv("CAPBIAS_HOME", str(made / "home"))
    return made


# --force helps with the last ones alone.
INPUTS = (
    f"{SCORE} --output b.csv",
    f"{SCORE} --output ./photos/../b.csv",
    f"{SCORE} --output link.csv",
    f"{SCORE} --output hard.csv",
    f"{SCORE} --output=labels.csv",
    "score --captions=b.csv --labels=labels.csv --attribute gender --output b.csv",
    "view encoders --results b.csv --output b.csv",
)
OTHERS = (
    f"{SCORE} --output mine.csv",
    f"{SCORE} --output mine.txt --format txt",
    f"{VIEW} --output mine.csv",
    f"export {STORED} --output mine.csv",
    f"images detect {STORED} --weights yolov8n --output mine.csv",
    "view change a.csv b.csv --labels labels.csv --attribute gender --output mine.csv",
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file() and "sqlite" not in file.name}


@pytest.mark.parametrize("command", (*INPUTS, *OTHERS))
def test_what_a_command_reads_and_what_others_wrote_stays(here, command, capsys):
    words, before = command.split(), contents(here)
    for forced in ([], ["--force"]) if command in INPUTS else ([],):
        assert cli.main([*words, *forced]) == cli.BAD_INPUT
        said = "is an input of this command" if command in INPUTS else "exists."
        assert said in capsys.readouterr().err
    assert contents(here) == before


def test_force_replaces_a_file_each_time(here):
    command, out = [*SCORE.split(), "--output", "forced.csv"], here / "forced.csv"
    out.write_text("of another")
    assert cli.main([*command, "--force"]) == 0 and len(pd.read_csv(out)) == 2
    assert cli.main(command) == cli.BAD_INPUT


ENDINGS = (
    f"{SCORE} --format csv --output x.json",
    f"export {STORED} --format bundle --output x.html",
    f"images caption {STORED} --captioner blip --output x.csv",
)


@pytest.mark.parametrize("command", ENDINGS)
def test_an_ending_that_is_not_of_the_format_is_refused(here, command, capsys):
    assert cli.main(command.split()) == cli.BAD_INPUT
    sentences.check(f"outputs: {command}", capsys.readouterr().err)
    assert not [file for file in here.iterdir() if file.name.startswith("x.")]
