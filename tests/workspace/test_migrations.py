"""Catalogues of every earlier form, of a later one, and with other tables."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.workspace import migrations
from capbias_core.workspace.migrations import FORM
from capbias_core.workspace.store import Workspace, frame_bytes
from tests.disks import small_disk

# Catalogues that earlier versions made, as SQL: labels, two captions, a finished run and one that was under way.
FORMS = sorted((Path(__file__).parent / "forms").glob("*.sql"))
CAPTIONS = pd.DataFrame({"image_id": ["1", "2"], "caption_index": 0, "caption": ["a man with a dog", "«ü»"]})


def made(home: Path, sql: Path) -> Path:
    """A workspace folder as an earlier version left it."""
    (home / "data").mkdir(parents=True)
    change(home, sql.read_text(encoding="utf-8"), "PRAGMA journal_mode=WAL")
    with closing(sqlite3.connect(home / "capbias.sqlite")) as db:
        ((digest,),) = db.execute("SELECT hash FROM items WHERE kind='captions'").fetchall()
    (home / "data" / f"{digest}.parquet").write_bytes(frame_bytes(CAPTIONS))
    return home


def change(home: Path, *scripts: str) -> None:
    with closing(sqlite3.connect(home / "capbias.sqlite")) as db:
        for script in scripts:
            db.executescript(script)


def form(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return list(db.iterdump())


def test_there_is_a_catalogue_of_every_earlier_form():
    assert {int(path.stem[4]) for path in FORMS} == set(range(FORM))


@pytest.mark.parametrize("sql", FORMS, ids=lambda path: path.stem)
def test_a_workspace_of_an_earlier_form_keeps_all_and_goes_on(tmp_path, sql):
    home = made(tmp_path / "home", sql)
    before, number = dump(home / "capbias.sqlite"), int(sql.stem[4])
    workspace = Workspace(home)
    assert form(workspace.database) == FORM
    copy = home / f"capbias.form-{number}.sqlite"
    assert dump(copy) == before and form(copy) == number
    assert [path.name for path in home.glob("*.tmp")] == []

    captions, labels = workspace.items()
    assert (captions.name, labels.kind) == ("sat", "attributes") and list(labels.details["attributes"]) == ["gender"]
    assert workspace.frame(captions.hash)["caption"].tolist() == CAPTIONS["caption"].tolist()
    under_way, finished = workspace.runs()
    assert (finished.status, finished.notes, finished.spec.measure) == ("finished", ("a note",), "lic")
    assert (finished.spec.attacker, finished.spec.seeds) == ("ngram", (0, 1))
    assert workspace.array(finished.run_id, "held_out") == b"evidence"
    rows = workspace.results().set_index("metric")
    assert rows["value"].to_dict() == {"LIC_M": 44.4, "SC": 60.0} and set(rows["verdict"]) == {""}
    if number < 2:
        assert rows["interval"].to_dict() == {"LIC_M": "images", "SC": ""}
    if number == 3:  # LIC_M [-55.8, 117.3], and two seeds with SC 60
        assert rows.loc["LIC_M", ["ci_low", "ci_high", "interval"]].tolist() == [0, 100, "refits"]
        assert pd.isna(rows.at["SC", "ci_low"]) and rows.at["SC", "interval"] == ""

    assert under_way.status == "running", "an earlier version, which named no process, may still run it"
    assert Workspace(home).items() == workspace.items() and form(copy) == number


def test_a_migration_that_breaks_leaves_all_as_it_was(tmp_path, monkeypatch):
    home = made(tmp_path / "home", FORMS[0])
    before = dump(home / "capbias.sqlite")

    def broken(db):
        db.execute("DELETE FROM runs")
        raise sqlite3.OperationalError("broken")

    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS[:-1], broken))
    with pytest.raises(CapbiasError, match="broken"):
        Workspace(home)
    assert dump(home / "capbias.sqlite") == before and form(home / "capbias.sqlite") == 0


@pytest.mark.parametrize("state", ["fill", "read_only"])
def test_what_cannot_be_migrated_stays_as_it_was_and_says_so(tmp_path, state):
    with small_disk(tmp_path / "disk") as disk:
        home = made(disk.folder / "home", FORMS[0])
        before = (home / "capbias.sqlite").read_bytes()
        getattr(disk, state)()
        with pytest.raises(CapbiasError, match=f"from form 0 to {FORM} .* copy the folder"):
            Workspace(home)
        assert (home / "capbias.sqlite").read_bytes() == before
        assert list(home.glob("*form*")) == []


def test_two_that_open_an_earlier_form_at_once_migrate_it_once(tmp_path, monkeypatch):
    home, steps = made(tmp_path / "home", FORMS[0]), []
    first = migrations.MIGRATIONS[0]
    monkeypatch.setattr(migrations, "MIGRATIONS", (lambda db: (steps.append(1), first(db)), *migrations.MIGRATIONS[1:]))
    threads = [threading.Thread(target=Workspace, args=(home,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert steps == [1] and len(Workspace(home).runs()) == 2
    assert [path.name for path in home.glob("*form*")] == ["capbias.form-0.sqlite"]


def test_a_workspace_of_a_newer_version_is_refused_and_not_touched(tmp_path):
    workspace = Workspace(tmp_path / "home")
    change(workspace.folder, "PRAGMA user_version=99; CREATE TABLE later (x);")
    before = dump(workspace.database)
    with pytest.raises(CapbiasError, match="form 99.*Update capbias"):
        Workspace(workspace.folder)
    assert dump(workspace.database) == before


@pytest.mark.parametrize(
    ("script", "message", "number"),
    [
        ("ALTER TABLE runs ADD COLUMN colour TEXT", "an unknown column colour in runs", FORM),
        ("ALTER TABLE runs ADD COLUMN colour TEXT", "an unknown column colour in runs", 0),
        ("ALTER TABLE results DROP COLUMN verdict", "no column verdict in results", FORM),
        ("DROP TABLE log", "no table log", FORM),
        ("DROP TABLE log", "no table log", 0),
    ],
)
def test_other_tables_are_refused_and_not_touched(tmp_path, script, message, number):
    workspace = Workspace(tmp_path / "home")
    change(workspace.folder, script, f"PRAGMA user_version={number}")
    before = dump(workspace.database)
    with pytest.raises(CapbiasError, match=message):
        Workspace(workspace.folder)
    assert dump(workspace.database) == before and form(workspace.database) == number


def test_a_database_of_another_program_is_refused(tmp_path):
    change(tmp_path, "CREATE TABLE notes (text)")
    with pytest.raises(CapbiasError, match="no table items"):
        Workspace(tmp_path)
    assert dump(tmp_path / "capbias.sqlite")[1].startswith("CREATE TABLE notes")


def test_a_file_whose_maker_was_killed_before_it_had_tables_gets_them(tmp_path):
    (tmp_path / "capbias.sqlite").touch()
    assert Workspace(tmp_path).items() == [] and form(tmp_path / "capbias.sqlite") == FORM
