"""A path that the system rejects is one sentence, wherever it is typed."""

from __future__ import annotations

import pytest

from capbias_core import cli
from capbias_core.workspace.store import Workspace
from tests.app import opened
from tests.pages.synthetic import fill
from tests.random_captions import write_files

BAD = ("~nosuchuser/a.json", "x" * 300 + ".json", "loop/a.json")
SCORE = "score --captions a.csv --labels labels.csv --attribute gender --metric ratio --seeds 1"
COMMANDS = f"""
    score PATH labels.csv --attribute gender
    score --captions PATH --labels labels.csv --attribute gender
    score --captions a.csv --labels PATH --attribute gender
    {SCORE} --references PATH
    {SCORE} --objects PATH
    {SCORE} --photographs PATH
    {SCORE} --photographs PATH --people a.csv
    {SCORE} --photographs . --people PATH
    {SCORE} --photographs . --weights PATH
    {SCORE} --alignment contextual --vectors PATH
    {SCORE} --output PATH
    {SCORE} --attribute PATH.toml
    {SCORE} --collection c --workspace PATH
    view text --input PATH --attribute gender
    view align --words a --vectors PATH
    explain --captions PATH --labels labels.csv --attribute gender
    import PATH
    import PATH --kind images
    import PATH --kind vectors
    import a.csv --workspace PATH
    list --workspace PATH
    export --workspace PATH
    export --collection c --output PATH
    list --cancel all --workspace PATH
    reproduce PATH
    reproduce bundle.zip --data PATH
    labels check PATH.toml
    labels check gender --workspace PATH
    labels derive gender --references PATH
    images detect PATH
    images detect . --weights PATH
    images caption PATH
    demo --workspace PATH
    app --workspace PATH
""".strip().splitlines()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Captions and labels, and a folder that is a link to itself."""
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
        assert "error: " in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("path", (*BAD, "a\0b"))
def test_a_link_with_such_a_path_shows_no_failure(here, tmp_path, path):
    """Also with `opened`, which fails if the page raised anything."""
    fill(Workspace(tmp_path / "home"))
    for view in ("Table", "Captions", "Encoder sensitivity", "Answer"):
        opened(view, collection="c", attacker=path)
