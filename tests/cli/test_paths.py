"""A path that the system rejects is one sentence, wherever it is typed."""

from __future__ import annotations

import os

import pytest

from capbias_core import cli
from capbias_core.workspace.store import Workspace
from tests.pages.synthetic import fill
from tests.random_captions import write_files

BAD = ("~nosuchuser/a.json", "x" * 300 + ".json", "loop/a.json", "locked/a.json")
SCORE = "score --captions a.csv --labels labels.csv --attribute gender --metric ratio --seeds 1"
COMMANDS = f"""
    score PATH labels.csv --attribute gender
    score --captions a.csv --labels PATH --attribute gender
    {SCORE} --references PATH
    {SCORE} --photographs . --people PATH
    {SCORE} --alignment contextual --vectors PATH
    {SCORE} --output PATH
    score a.csv labels.csv --attribute PATH.toml
    view encoders --results PATH
    import PATH
    import PATH --kind photographs
    import PATH --kind vectors
    list --workspace PATH
    reproduce PATH
    labels derive PATH.toml --references a --collection c
    app --workspace PATH
""".strip().splitlines()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Captions and labels, a folder that is a link to itself, and one that nobody may read."""
    stat = os.stat

    def denied(path, *arguments, **more):
        if not isinstance(path, int) and "locked" in os.fsdecode(path):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, *arguments, **more)

    monkeypatch.setattr(os, "stat", denied)  # root may read any folder
    write_files(tmp_path, 40)
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("os.execve", lambda *_: pytest.fail("the dashboard started"))


@pytest.mark.long
@pytest.mark.parametrize("command", map(str.strip, COMMANDS))
def test_a_path_that_the_system_rejects_is_one_sentence(here, command, capsys):
    for path in BAD:
        assert cli.main(command.replace("PATH", path).split()) == cli.BAD_INPUT
        error = capsys.readouterr().err
        assert error.count("error: ") == 1 and "See capbias" not in error


@pytest.mark.long
def test_a_link_with_such_a_path_shows_no_failure(here, tmp_path):
    """Also with `opened`, which fails if the page raised anything."""
    from tests.app import opened

    fill(Workspace(tmp_path / "home"))
    for path in (*BAD, "a\0b"):
        opened("Table", collection="c", captioner=path, setting=path)
