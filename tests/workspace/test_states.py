"""Full and read-only disks, damaged files, a folder that goes: one sentence, and what is there stays readable."""

import shutil
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.workspace import store
from capbias_core.workspace.store import Workspace
from tests.disks import small_disk
from tests.workspace.test_store import finished, frame, result, spec


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as found:
        yield found


@pytest.fixture
def filled(disk) -> Workspace:
    """A workspace on the small disk, with an item and a finished run."""
    return fill(Workspace(disk.folder / "home"))


def fill(workspace: Workspace) -> Workspace:
    item = workspace.keep("captions", "m", frame("a dog", "a cat"), "c", "s", {"plain": True})
    finished(workspace, own=spec(item.hash))
    return workspace


def read(workspace: Workspace) -> tuple:
    """Everything that a workspace says, from a process that opens it anew."""
    again = Workspace(workspace.folder)
    (item,), (run,) = again.items(), again.runs()
    texts = again.frame(item.hash)["caption"].tolist()
    return item, texts, run, again.results().to_dict("records"), again.array("r1", "model"), again.log_of("r1")


def names(workspace: Workspace) -> set[str]:
    return {path.name for path in (workspace.folder / "data").iterdir()}


WRITE = {
    "keep another": lambda own: own.keep("captions", "other", frame("x" * 50_000), "c", "s"),
    "replace": lambda own: own.keep("captions", "m", frame("another"), "c", "s"),
    "delete": lambda own: own.delete(own.items()[0]),
    "queue": lambda own: own.enqueue(spec(run_id="r2"), "c", "t"),
    "forget": lambda own: own.forget("r1"),
}


@pytest.mark.parametrize("write", WRITE.values(), ids=WRITE)
@pytest.mark.parametrize("other_has_it_open", [False, True])
def test_on_a_full_disk_all_can_be_read_and_writing_is_one_sentence(disk, filled, write, other_has_it_open):
    with closing(sqlite3.connect(filled.database)) as other:
        if other_has_it_open:
            other.execute("SELECT count(*) FROM runs").fetchone()
        before, files = read(filled), names(filled)
        disk.fill()
        assert str(read(filled)) == str(before)
        with pytest.raises(CapbiasError, match="no space left.* Free some space"):
            write(filled)
        assert str(read(filled)) == str(before) and names(filled) == files
        disk.free()
        assert str(read(filled)) == str(before)
        write(filled)
        assert str(Workspace(filled.folder).items()) != str(before[:1]) or len(filled.runs()) != 1


@pytest.mark.parametrize("write", WRITE.values(), ids=WRITE)
def test_on_a_read_only_disk_all_can_be_read_and_writing_is_one_sentence(disk, filled, write):
    before = read(filled)
    disk.read_only()
    assert str(read(filled)) == str(before)
    assert filled.derived("ranking", lambda: [1, 2]) == [1, 2], "what is only remembered is computed again"
    with pytest.raises(CapbiasError, match="cannot be written .* Allow writing, or set CAPBIAS_HOME"):
        write(filled)
    assert str(read(filled)) == str(before)


def test_no_workspace_can_be_made_on_a_full_or_read_only_disk(disk):
    disk.fill()
    with pytest.raises(CapbiasError, match="no space left"):
        Workspace(disk.folder / "new")
    disk.free()
    shutil.rmtree(disk.folder / "new", ignore_errors=True)
    disk.read_only()
    with pytest.raises(CapbiasError, match="cannot be written"):
        Workspace(disk.folder / "new")


def test_a_run_whose_end_finds_no_space_is_lost_whole_and_its_process_knows(disk, filled):
    filled.enqueue(spec(run_id="r2"), "c", "t")
    filled.claim("r2", "t")
    disk.fill()
    with pytest.raises(CapbiasError, match="no space left"):
        filled.finish("r2", "t", [result()], {"model": bytes(100_000)}, [])
    assert filled.end_here("r2", "failed", "no space", "t")
    other = Workspace(filled.folder)
    assert filled.run("r2").status == "failed" == other.run("r2").status
    assert not filled.progress("r2", "t", 0.9, "late")
    disk.free()
    assert filled.end_here("r2", "died", "broke", "t") and filled.run("r2").message == "no space"
    assert len(filled.results(["r2"])) == 0 and filled.enqueue(spec(run_id="r2"), "c", "new")


def test_a_folder_that_is_removed_is_said_and_not_made_anew(tmp_path):
    workspace = fill(Workspace(tmp_path / "home"))
    before, elsewhere = read(workspace), tmp_path / "elsewhere"
    workspace.folder.rename(elsewhere)
    asked = {**WRITE, "list": Workspace.items, "runs": Workspace.runs, "results": Workspace.results}
    for ask in asked.values():
        with pytest.raises(CapbiasError, match=r"capbias\.sqlite .*is gone.*Put it back"):
            ask(workspace)
    with pytest.raises(CapbiasError, match="is gone"):
        Workspace(workspace.folder, make=False)
    assert not workspace.folder.exists()
    elsewhere.rename(workspace.folder)
    assert str(read(workspace)) == str(before)


@pytest.mark.parametrize("with_", [b"\x00", b"\xff", b"a"])
def test_a_damaged_catalogue_is_said_whatever_of_it_is_damaged(tmp_path, with_):
    """Each page in turn: what is read from the others is right, and nothing is a traceback."""
    workspace = fill(Workspace(tmp_path / "home"))
    before, whole = str(read(workspace)), workspace.database.read_bytes()
    said = 0
    for start in range(0, len(whole), 4096):
        workspace.database.write_bytes(whole[:start] + with_ * 4096 + whole[start + 4096 :])
        try:
            for ask in (Workspace.items, Workspace.runs, Workspace.results, Workspace.version):
                ask(Workspace(workspace.folder))
            read(workspace)
        except CapbiasError as error:
            assert "cannot be used" in str(error) or "no table" in str(error) or "no array" in str(error)
            said += 1
    assert said > 5
    workspace.database.write_bytes(whole)
    assert str(read(workspace)) == before


def test_a_replaced_item_stays_where_the_new_one_cannot_be_kept(tmp_path, monkeypatch):
    workspace = fill(Workspace(tmp_path))
    before = read(workspace)

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_whole", broken)
    with pytest.raises(CapbiasError, match="no space left"):
        workspace.keep("captions", "m", frame("new"), "c", "s")
    assert str(read(workspace)) == str(before)
    pd.testing.assert_frame_equal(workspace.frame(before[0].hash), frame("a dog", "a cat"), check_dtype=False)
