"""Workspaces of strangers: nothing in one is followed out of it, and nothing is removed that capbias did not make."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.errors import CapbiasError
from capbias_core.vision.masking import MaskRule
from capbias_core.workspace.masked_photographs import Masking, masked_folder
from capbias_core.workspace.store import Workspace
from pages.ui.uploads import _new_folder
from tests.app import errors, opened
from tests.pages.synthetic import fill

HEX = "0123456789abcdef"


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "home"
    fill(Workspace(folder))
    return folder


@pytest.fixture
def home(good, tmp_path) -> Path:
    """A workspace with results, beside a folder with files that are nobody's business."""
    outside = tmp_path / "outside"
    for name in ("photos", HEX, f"uploaded-{HEX}", f".{HEX}-{HEX}{HEX}", HEX * 2):
        (outside / name).mkdir(parents=True)
        (outside / name / "masked.json").write_text("{}")
        os.utime(outside / name, (0, 0))
    (outside / "secret.toml").write_text('values = ["Secret", "Hidden"]\n')
    return Path(shutil.copytree(good, tmp_path / "home"))


def text_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SCORE = "score --collection c --attribute gender --metric lic_m --attacker ngram --seeds 2 --captions first"
COMMANDS = ("list", SCORE, "labels check", "export --collection c")
PARTS = (
    *("unfinished", "uploads", "data", "pictures", "models", "attributes", "weights", "embeddings"),
    *("capbias.sqlite", "capbias.sqlite-wal", "capbias.sqlite-journal", "cache.sqlite", "attributes/x.toml"),
    *(f"data/{HEX}.parquet", f"data/{HEX}.tokens-2.arrow", f"models/{HEX}", f"unfinished/{HEX}", f"uploads/{HEX * 2}"),
    *(f"pictures/{HEX}", f"pictures/{HEX}/1.png"),
)
MAKE: dict[str, Callable[[Path, Path], None]] = {
    "folder": lambda path, outside: path.symlink_to(outside),
    "file": lambda path, outside: path.symlink_to(outside / "secret.toml"),
    "dangling": lambda path, outside: path.symlink_to(outside / "new"),
    "loop": lambda path, _outside: path.symlink_to(path),
    "relative": lambda path, _outside: path.symlink_to("../outside"),
    "pipe": lambda path, _outside: os.mkfifo(path),
}


@pytest.mark.long
@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("part", PARTS)
def test_a_workspace_that_leads_out_of_its_folder_is_refused(home, part, make, capsys, monkeypatch):
    path, outside = home / part, home.parent / "outside"
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path, outside)
    before = text_of(outside)
    monkeypatch.setenv("CAPBIAS_HOME", str(home))
    for command in COMMANDS:
        assert cli.main(command.split()) == cli.BAD_INPUT, command
        said = capsys.readouterr()
        assert str(path) in said.err and "Secret" not in said.out + said.err
    with pytest.raises(CapbiasError, match="only files and folders"):
        Workspace(home)
    assert text_of(outside) == before and path.lstat()


def test_the_folder_of_a_workspace_may_be_a_link(home, tmp_path):
    (tmp_path / "link").symlink_to("home")
    assert Workspace(tmp_path / "link").items() and cli.main(["list", "--workspace", str(tmp_path / "link")]) == 0


@pytest.mark.long
def test_only_what_capbias_made_is_removed(home):
    """Beside runs, uploads, stored tables and masked photographs."""
    mine = ("unfinished/notes", "uploads/notes", "pictures/.my-notes", "data/notes.tmp")
    made = (f"unfinished/{HEX}", f"uploads/{HEX * 2}", f"pictures/.{HEX}-{HEX * 2}", f"data/.{HEX * 2}.tmp")
    for name in (*mine, *made):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("mine") if name.endswith("tmp") else (home / name).mkdir()
        os.utime(home / name, (0, 0))
    _new_folder(str(home))
    with pytest.raises(CapbiasError, match="None of 0"):
        nothing = pd.DataFrame({"image_id": []})
        masked_folder(home / "pictures", lambda _: nothing, {}, "", Masking(MaskRule("box"), ""), lambda *_: None)
    assert cli.main([*SCORE.split(), "--workspace", str(home)]) == 0
    Workspace(home).keep("captions", "other", nothing.assign(caption=[]), "c", "s")
    assert [name for name in (*mine, *made) if (home / name).exists()] == list(mine)


@pytest.mark.parametrize("named", ["pictures/..", "pictures/x/../..", "pictures", "../outside", "data", "."])
def test_a_forged_folder_of_photographs_is_not_removed(home, named):
    for folder in (home, home / "pictures", home / "data", home.parent / "outside"):
        folder.mkdir(exist_ok=True)
        (folder / "masked.json").write_text("{}")
    (home / "pictures" / "x").mkdir()
    details, frame = {"folder": str(home / named)}, pd.DataFrame({"image_id": ["1"], "file": ["1.png"]})
    workspace, before = Workspace(home), text_of(home.parent)
    workspace.delete(workspace.keep("images", "forged", frame, "c", "s", details))
    assert text_of(home.parent).keys() >= before.keys() and (home / "pictures" / "x").is_dir()


@pytest.mark.long
def test_a_page_of_a_workspace_that_leads_out_shows_why(home, monkeypatch):
    (home / "uploads").symlink_to("../outside")
    monkeypatch.setenv("CAPBIAS_HOME", str(home))
    assert "a symbolic link" in " ".join(errors(opened("Answer")))
