"""Workspaces of strangers: nothing in one is followed out of it, and nothing is removed that capbias did not make."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.aggregate import Counts
from capbias_core.databases import byte_cache
from capbias_core.errors import CapbiasError
from capbias_core.vision.masking import MaskRule
from capbias_core.workspace.masked_photographs import masked_folder
from capbias_core.workspace.store import Workspace, frame_bytes
from pages.ui.uploads import _new_folder
from tests.app import errors, opened
from tests.pages.synthetic import fill, score

HEX = "0123456789abcdef"


@pytest.fixture(scope="module")
def scored(tmp_path_factory) -> Path:
    """A workspace with results."""
    folder = tmp_path_factory.mktemp("scored") / "home"
    fill(Workspace(folder))
    score(Workspace(folder), metrics=("lic", "ratio"))
    return folder


@pytest.fixture
def home(scored, tmp_path) -> Path:
    """A copy of it, beside a folder with files that are nobody's business."""
    outside = tmp_path / "outside"
    for name in ("photos", HEX, f"uploaded-{HEX}", f".{HEX}-{HEX}{HEX}", HEX * 2):
        (outside / name).mkdir(parents=True)
        (outside / name / "masked.json").write_text("{}")
        os.utime(outside / name, (0, 0))
    (outside / "secret.toml").write_text('values = ["Secret", "Hidden"]\n')
    return Path(shutil.copytree(scored, tmp_path / "home"))


def text_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SCORE = "score --collection c --attribute gender --metric lic_m --attacker ngram --seeds 2 --captions first"
COMMANDS = ("list", SCORE, "labels derive gender --references human --collection c", "export --collection c")
PARTS = (
    *("unfinished", "uploads", "data", "pictures", "models", "attributes", "weights", "embeddings"),
    *("capbias.sqlite", "capbias.sqlite-wal", "capbias.sqlite-journal", "attributes/x.toml"),
    *(f"data/{HEX}.parquet", f"models/{HEX}", f"unfinished/{HEX}", f"uploads/{HEX * 2}", f"pictures/{HEX}/1.png"),
)
MAKE: tuple[Callable[[Path, Path], None], ...] = (
    lambda path, outside: path.symlink_to(outside),
    lambda path, outside: path.symlink_to(outside / "secret.toml"),
    lambda path, outside: path.symlink_to(outside / "new"),
    lambda path, _outside: path.symlink_to(path),
    lambda path, _outside: path.symlink_to("../outside"),
    lambda path, _outside: os.mkfifo(path),
)


@pytest.mark.long
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", PARTS)
def test_a_workspace_that_leads_out_of_its_folder_is_refused(home, part, capsys, monkeypatch):
    path, outside = home / part, home.parent / "outside"
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = text_of(outside)
    for make in MAKE:
        path.unlink(missing_ok=True)
        make(path, outside)
        with pytest.raises(CapbiasError, match="only files and folders"):
            Workspace(home)
    monkeypatch.setenv("CAPBIAS_HOME", str(home))
    for command in COMMANDS if part in ("unfinished", "capbias.sqlite") else COMMANDS[1:2]:
        assert cli.main(command.split()) == cli.BAD_INPUT, command
        said = capsys.readouterr()
        assert str(path) in said.err and "Secret" not in said.out + said.err
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
        masked_folder(home / "pictures", lambda _: nothing, {}, "", MaskRule("box"), "", lambda *_: None)
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
    workspace.delete(workspace.keep("photographs", "forged", frame, "c", "s", details))
    assert text_of(home.parent).keys() >= before.keys() and (home / "pictures" / "x").is_dir()


def changed(query: str, *values: object) -> Callable[[Path], None]:
    """A query to the catalogue."""

    def change(home: Path) -> None:
        with closing(sqlite3.connect(home / "capbias.sqlite")) as database, database:
            database.execute(query, values)

    return change


def edited(table: str, column: str, path: str, value: object) -> Callable[[Path], None]:
    """Another value in the JSON of a column."""
    return changed(f"UPDATE {table} SET {column} = json_set({column}, ?, json(?))", path, json.dumps(value))


def table_of(kind: str, make: Callable[[Path, Path], object]) -> Callable[[Path], None]:
    """Another file in place of a stored table. make: gets its path and that of the labels."""

    def change(home: Path) -> None:
        files = {item.kind: home / "data" / f"{item.hash}.parquet" for item in Workspace(home).items()}
        labels = shutil.copy(files["labels"], home.parent / "labels")
        files[kind].unlink()
        make(files[kind], Path(labels))

    return change


def evidence(change: Callable[[Counts], Counts]) -> Callable[[Path], None]:
    """Other counts of all runs."""

    def rewrite(home: Path) -> None:
        with closing(sqlite3.connect(home / "capbias.sqlite")) as database, database:
            for row, data in database.execute("SELECT rowid, data FROM arrays WHERE name LIKE 'counts%'").fetchall():
                database.execute("UPDATE arrays SET data=? WHERE rowid=?", (change(Counts.load(data)).save(), row))

    return rewrite


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS key, i AS value FROM n"
ALL = ("list", "export --collection c")
WORDS = "explain --collection c --attribute gender --captions second"
IMAGE = f"{WORDS} --image 1"
TABLE, WHERE = "view table --collection c", "view where --collection c --attribute gender"
# What is forged -> how, and commands that ended with a traceback or never.
FORGED: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "labels as captions": (table_of("captions", lambda path, labels: labels.rename(path)), (WHERE, IMAGE)),
    "labels as human captions": (table_of("references", lambda path, labels: labels.rename(path)), (WHERE,)),
    "a folder as captions": (table_of("captions", lambda path, _: path.mkdir()), (WHERE, IMAGE)),
    "half a file": (table_of("captions", lambda path, labels: path.write_bytes(labels.read_bytes()[:50])), (WHERE,)),
    "a folder as labels": (table_of("labels", lambda path, _: path.mkdir()), (WHERE,)),
    "other rows": (changed("UPDATE items SET rows=3"), (WHERE,)),
    "a date without end": (changed("UPDATE items SET created=1e300"), ALL),
    "bytes as a name": (changed("UPDATE items SET name=x'ff' WHERE name='first'"), ALL),
    "no details": (changed("UPDATE items SET details='{}'"), ALL),
    "details nested without end": (changed("UPDATE items SET details=?", "[" * 100_000), ALL),
    "an attribute that is a number": (edited("items", "details", "$.attributes.gender", 1), ALL),
    "an attribute without values": (edited("items", "details", "$.attributes.gender.attribute.values", []), ALL),
    "an attribute with its own field": (edited("items", "details", "$.attributes.gender.attribute.secret", 1), ALL),
    "a mapping to another value": (edited("items", "details", "$.attributes.gender.mapping.Female", "Nobody"), ALL),
    "progress as text": (changed("UPDATE runs SET progress='x'"), ALL),
    "a process that is none": (changed("UPDATE runs SET status='running', process='a b'"), ("list",)),
    "an empty specification": (changed("UPDATE runs SET spec='{}'"), ALL),
    "a run without labels": (edited("runs", "spec", "$.labels", {}), ALL),
    "a run without attribute": (edited("runs", "spec", "$.attribute", {}), ALL),
    "a run of one value": (edited("runs", "spec", "$.attribute.values", ["Female"]), ALL),
    "a run of captions that are a path": (edited("runs", "spec", "$.captions", "../../x"), ALL),
    "an item that is a list": (edited("runs", "spec", "$.options.people", {"item": []}), ALL),
    "seeds as text": (edited("runs", "spec", "$.options.seeds", "x"), ALL),
    "seeds without end": (edited("runs", "spec", "$.options.seeds", 10**10), ALL),
    "another measure": (edited("runs", "spec", "$.measure", "zebra"), (SCORE,)),
    "a value as text": (changed("UPDATE results SET value='much'"), (TABLE,)),
    "a value without end": (changed("UPDATE results SET value=9e999"), (TABLE,)),
    "no value": (changed("UPDATE results SET value=NULL"), (SCORE,)),
    "results twice": (changed("INSERT INTO results SELECT * FROM results"), (TABLE,)),
    "no counts": (changed("DELETE FROM arrays"), (WHERE, WORDS)),
    "garbage as arrays": (changed("UPDATE arrays SET data=x'00'"), (TABLE, WORDS)),
    "a table of other columns": (
        changed("UPDATE arrays SET data=? WHERE name IN ('scores', 'corpus', 'words')", frame_bytes(pd.DataFrame())),
        (WORDS, "view words --collection c --captioner first"),
    ),
    "counts of other images": (evidence(lambda counts: replace(counts, images=counts.images[:3])), (TABLE,)),
    "labels of other values": (
        evidence(lambda counts: replace(counts, label=counts.label + 7)),
        ("view change first second --collection c",),
    ),
    "labels between values": (evidence(lambda counts: replace(counts, label=counts.label * 1.5)), (TABLE,)),
    "counts as text": (evidence(lambda counts: replace(counts, label=counts.label.astype(str))), (TABLE,)),
    "counts of no seed": (evidence(lambda counts: replace(counts, seed=None)), (TABLE,)),
    "training as text": (evidence(lambda counts: replace(counts, training="x")), (TABLE,)),
    "what was derived, of another kind": (changed("UPDATE derived SET data='[1, 2]'"), (SCORE, WHERE, WORDS)),
    "an endless view": (changed(f"CREATE VIEW more AS {ENDLESS}"), ALL),
    "a trigger": (changed("CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM items; END"), ALL),
    "a table that is gone": (changed("DROP TABLE results"), (TABLE,)),
}
# Of these there is nothing to say: what was forged is not needed, or is computed again.
HARMLESS = {"another measure", "no value", "a process that is none", "what was derived, of another kind"}


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_workspace_is_a_sentence_and_ends(scored, tmp_path, name, monkeypatch, capsys):
    forge, commands = FORGED[name]
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    for command in commands or (WHERE,):
        shutil.copytree(scored, tmp_path / "home")
        forge(tmp_path / "home")
        assert cli.main(command.split()) == (cli.DONE if name in HARMLESS else cli.BAD_INPUT), command
        assert name in HARMLESS or capsys.readouterr().err.count("error: ") == 1
        shutil.rmtree(tmp_path / "home")


def test_a_cache_that_is_an_endless_view_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as database:
        database.execute(f"CREATE VIEW cache AS {ENDLESS}")
    file, what = tmp_path / "cache.sqlite", "not a table of capbias"
    with pytest.raises(CapbiasError, match=what), byte_cache(file, "vectors", "made again") as cache:
        cache.get(["x"])


@pytest.mark.long
def test_a_page_of_a_workspace_that_leads_out_shows_why(home, monkeypatch):
    (home / "uploads").symlink_to("../outside")
    monkeypatch.setenv("CAPBIAS_HOME", str(home))
    assert "a symbolic link" in " ".join(errors(opened("Answer")))
