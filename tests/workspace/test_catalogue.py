"""Catalogues of another version, with other tables, and made halfway."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.workspace.catalogue import VERSION
from capbias_core.workspace.store import Workspace


def change(home: Path, *scripts: str) -> None:
    with closing(sqlite3.connect(home / "capbias.sqlite")) as db:
        for script in scripts:
            db.executescript(script)


def version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def dump(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return list(db.iterdump())


@pytest.mark.parametrize("number", [0, VERSION - 1, VERSION + 1])
def test_a_workspace_of_another_version_is_refused_and_not_touched(tmp_path, number):
    workspace = Workspace(tmp_path / "home")
    change(workspace.folder, f"PRAGMA user_version={number}; CREATE TABLE other (x);")
    before = dump(workspace.database)
    with pytest.raises(CapbiasError, match=f"version {number}; this one reads {VERSION}"):
        Workspace(workspace.folder)
    assert dump(workspace.database) == before and version(workspace.database) == number


def test_a_database_of_another_program_is_refused(tmp_path):
    change(tmp_path, "CREATE TABLE notes (text)")
    with pytest.raises(CapbiasError, match="another program"):
        Workspace(tmp_path)
    assert dump(tmp_path / "capbias.sqlite")[1].startswith("CREATE TABLE notes")


def test_a_file_whose_maker_was_killed_before_it_had_tables_gets_them(tmp_path):
    (tmp_path / "capbias.sqlite").touch()
    assert Workspace(tmp_path).items() == [] and version(tmp_path / "capbias.sqlite") == VERSION
