"""Full and read-only disks, damaged files, a folder that is moved: one sentence, and what is stored stays readable."""

import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.errors import CapbiasError
from capbias_core.workspace import store
from capbias_core.workspace.store import Workspace
from tests.disks import small_disk
from tests.orphans import any_run
from tests.workspace.test_store import finish, frame, result, spec


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as made:
        yield made


def fill(workspace: Workspace) -> Workspace:
    """An item and a finished run."""
    item = workspace.keep("captions", "m", frame("a dog", "a cat"), "c", "s", {"plain": True})
    finish(workspace, captions=item.hash)
    return workspace


def read(workspace: Workspace) -> str:
    """All that is stored, read anew."""
    again = Workspace(workspace.folder)
    (item,), (run,) = again.items(), again.runs()
    texts = again.frame(item.hash)["caption"].tolist()
    return str((item, texts, run, again.results().to_dict("records"), again.array("r1", "model"), again.log_of("r1")))


WRITE = {
    "keep another": lambda own: own.keep("captions", "other", frame("x" * 50_000), "c", "s"),
    "replace": lambda own: own.keep("captions", "m", frame("another"), "c", "s"),
    "delete": lambda own: own.delete(own.items()[0]),
    "queue": lambda own: own.enqueue(spec(run_id="r2"), "c"),
    "forget": lambda own: own.forget("r1"),
}


@pytest.mark.long
@pytest.mark.parametrize("write", WRITE.values(), ids=WRITE)
@pytest.mark.parametrize("state", ["full", "full, and open elsewhere", "read-only"])
def test_what_is_stored_can_be_read_if_nothing_can_be_written(disk, state, write):
    workspace = fill(Workspace(disk.folder / "home"))
    with closing(sqlite3.connect(workspace.database)) as other:
        if state == "full, and open elsewhere":
            other.execute("SELECT count(*) FROM runs").fetchone()
        before, files = read(workspace), sorted((workspace.folder / "data").iterdir())
        if state == "read-only":
            other.close()
            disk.read_only()
        else:
            disk.fill()
        assert read(workspace) == before
        assert workspace.derived("ranking", lambda: [1, 2], list[int]) == [1, 2], (
            "what cannot be stored is computed again"
        )
        with pytest.raises(CapbiasError, match="cannot be written" if state == "read-only" else "no space left"):
            write(workspace)
        with pytest.raises(CapbiasError):
            Workspace(disk.folder / "new")
        assert read(workspace) == before and sorted((workspace.folder / "data").iterdir()) == files
        if state != "read-only":
            disk.free()
            assert read(workspace) == before
            write(workspace)


@pytest.mark.long
def test_what_is_finished_answers_on_a_read_only_disk(tmp_path):
    with small_disk(tmp_path / "disk", 30) as disk:
        labels = [{"image_id": number, "gender": ("Female", "Male")[number % 2]} for number in range(40)]
        captions = [{"image_id": number, "caption": ("a woman", "a man")[number % 2]} for number in range(40)]
        known = {"attribute": "gender", "metrics": "ratio", "workspace": disk.folder / "home"}
        first = capbias.score(captions, labels, **known)
        disk.read_only()
        assert capbias.score(collection="my captions", **known).table.equals(first.table)


def test_a_run_whose_end_finds_no_space_is_lost_whole_and_its_process_knows(disk):
    workspace = fill(Workspace(disk.folder / "home"))
    workspace.enqueue(spec(run_id="r2"), "c")
    run = workspace.claim(any_run)
    disk.fill()
    with pytest.raises(CapbiasError, match="no space left"):
        workspace.finish(run, [result()], {"model": bytes(100_000)})
    assert workspace.end_here("r2", "failed", "no space") and workspace.end_here("r2", "died", "broke")
    assert workspace.run("r2").status == "failed" == Workspace(workspace.folder).run("r2").status
    assert not workspace.progress(run, 0.9, "late")
    with pytest.raises(CapbiasError, match="no space left"):
        workspace.write_ends()
    disk.free()
    workspace.write_ends()
    assert workspace.run("r2").message == "no space" and workspace.run("r2").finished
    assert len(workspace.results(["r2"])) == 0 and workspace.enqueue(spec(run_id="r2"), "c")


def test_a_folder_that_is_moved_is_not_made_anew(tmp_path):
    workspace = fill(Workspace(tmp_path / "home"))
    before, elsewhere = read(workspace), tmp_path / "elsewhere"
    workspace.folder.rename(elsewhere)
    for ask in (*WRITE.values(), Workspace.items, Workspace.results, lambda own: Workspace(own.folder, make=False)):
        with pytest.raises(CapbiasError, match="is gone"):
            ask(workspace)
    assert not workspace.folder.exists()
    elsewhere.rename(workspace.folder)
    assert read(workspace) == before


@pytest.mark.long
def test_a_damaged_catalogue_is_one_sentence_whatever_of_it_is_damaged(tmp_path):
    """Each page in turn: what is read from the others is right, and nothing is a traceback."""
    workspace = fill(Workspace(tmp_path / "home"))
    before, whole, refused = read(workspace), workspace.database.read_bytes(), 0
    for start in range(0, len(whole), 4096):
        workspace.database.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        try:
            for ask in (Workspace.items, Workspace.runs, Workspace.results, Workspace.version):
                ask(Workspace(workspace.folder))
            read(workspace)
        except CapbiasError:
            refused += 1
    assert refused > 5
    workspace.database.write_bytes(whole)
    assert read(workspace) == before


def test_a_replaced_item_stays_if_the_new_one_cannot_be_written(tmp_path, monkeypatch):
    workspace = fill(Workspace(tmp_path))
    before = read(workspace)

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_whole", broken)
    with pytest.raises(CapbiasError, match="no space left"):
        workspace.keep("captions", "m", frame("new"), "c", "s")
    assert read(workspace) == before
    pd.testing.assert_frame_equal(
        workspace.frame(workspace.items()[0].hash), frame("a dog", "a cat"), check_dtype=False
    )
