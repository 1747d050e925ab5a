"""The workspace: what is stored, deleted and read again; runs of living and dead processes; versions of its file."""

import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.cli.terminal import write
from capbias_core.databases import to_write
from capbias_core.errors import CapbiasError
from capbias_core.kinds import checked_name
from capbias_core.prepare.labels import crossed
from capbias_core.types import Result
from capbias_core.workspace import store
from capbias_core.workspace.catalogue import VERSION, WorkspaceError, lives, show_alive, this_process
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.spec import RunSpec, maps_to_values
from capbias_core.workspace.store import Workspace, content_hash
from tests.orphans import ENDED, any_run, give

PROCESSES = multiprocessing.get_context("spawn")


def frame(*captions: str) -> pd.DataFrame:
    return pd.DataFrame(
        {"image_id": [str(i) for i in range(len(captions))], "caption_index": 0, "caption": list(captions)}
    )


def spec(captions: str = "c" * 16, run_id: str = "r1") -> RunSpec:
    """A spec with the given ID, whatever its fields."""
    labels = {"table": "a" * 16, "column": "gender", "mapping": {}}
    made = RunSpec("lic", 1, "m", captions, "", labels, json.loads(json.dumps(get_attribute("gender").stored())))
    made.__dict__["run_id"] = run_id
    return made


def result(value: float = 40.0, model: str = "m") -> Result:
    return Result(attribute="gender", model=model, metric="LIC_M", value=value, seeds=3, n=20, spread=1.5)


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def finish(workspace: Workspace, run_id: str = "r1", captions: str = "c" * 16) -> None:
    assert workspace.enqueue(spec(captions, run_id), "c") and workspace.claim(any_run)
    assert workspace.finish(workspace.run(run_id), [result()], {"model": b"bytes"}, ["a note"], {"LIC": "no"})


def counts(workspace: Workspace) -> list[int]:
    with closing(sqlite3.connect(workspace.database)) as db:
        return [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("results", "arrays")]


# items


def test_a_reopened_workspace_has_all(workspace):
    kept = workspace.keep("captions", "my model", frame("a dog", "«ü»\n男"), "first", "file.json", {"trained": True})
    finish(workspace)
    again = Workspace(workspace.folder)
    assert again.items() == [kept] == again.items("captions", "first", "my model")
    assert (kept.rows, kept.images, kept.details) == (2, 2, {"trained": True})
    pd.testing.assert_frame_equal(again.frame(kept.hash), frame("a dog", "«ü»\n男"), check_dtype=False)
    run = again.run("r1")
    assert (run.status, run.progress, run.spec) == ("finished", 1, spec())
    assert run.lacking == {"LIC": "no"} and run.notes == ("a note", "LIC left out: no")
    assert again.array("r1", "model") == b"bytes" and again.log_of("r1")[-1][1] == "finished"


@pytest.mark.parametrize("name", ["", "a" * 81, "<b>", "a/b", "..\\x", "a`b", 'x"y', "[a]", "$x$", "a\x00b", "\u202e"])
def test_names_that_could_be_markup_or_paths_are_refused(workspace, name):
    with pytest.raises(CapbiasError):
        checked_name(name)
    for kept, collection in ((name, "c"), ("fine", name)):
        with pytest.raises(CapbiasError):
            workspace.keep("captions", kept, frame("a"), collection, "s")
    assert workspace.items() == [] and list((workspace.folder / "data").iterdir()) == []


@pytest.mark.parametrize("digest", ["../../x", "/etc/x", "*", "", "0123456789abcdeg", "0123456789ABCDEF", "abc\n" * 8])
def test_only_a_hash_becomes_the_name_of_a_file(workspace, digest):
    with pytest.raises(CapbiasError, match="not a content hash"):
        workspace.frame(digest)
    if digest:
        with pytest.raises(CapbiasError, match="not a content hash"):
            workspace.keep("vectors", "a", frame("a dog"), "c", "test", digest=digest)
    with pytest.raises(CapbiasError, match="no longer in"):
        resolve_model(workspace, {"name": "m", "digest": digest}, str)
    assert not workspace.items()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("items", "hash", "../../victim/*"),
        ("items", "hash", 7),
        ("runs", "run_id", "../../victim"),
        ("runs", "notes", "7"),
    ],
)
def test_what_a_stranger_wrote_into_a_catalogue_is_refused_and_deletes_nothing(tmp_path, table, column, value):
    """The pattern of the files of a deleted item came from its hash."""
    workspace = Workspace(tmp_path / "w")
    item = workspace.keep("captions", "a", frame("a"), "c", "a.json")
    assert workspace.enqueue(spec(item.hash), "c")
    victim = tmp_path / "victim" / "file"
    victim.parent.mkdir()
    victim.write_text("mine")
    with to_write(workspace.database) as db:
        db.execute(f"UPDATE {table} SET {column}=?", (value,))
    with pytest.raises(WorkspaceError):
        workspace.runs() if table == "runs" else [workspace.delete(each) for each in workspace.items()]
    assert victim.read_text() == "mine"


def test_an_empty_catalogue_beside_data_is_no_empty_workspace(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.keep("captions", "a", frame("a"), "c", "a.json")
    for file in tmp_path.glob("capbias.sqlite*"):
        file.unlink()
    workspace.database.touch()
    with pytest.raises(CapbiasError):
        Workspace(tmp_path)


def test_the_hash_depends_on_cells_order_and_columns():
    frames = [frame("a", "b"), frame("b", "a"), frame("a", "c"), frame("ab", ""), frame("a\x1fb", "c")]
    frames += [frame("a", "b\x1fc"), frames[0].rename(columns={"caption": "text"})]
    frames.append(frames[0][["image_id", "caption", "caption_index"]])
    assert len(set(map(content_hash, frames))) == len(frames)


def test_deletion_takes_results_arrays_log_tokens_and_file_and_nothing_else(workspace):
    gone = workspace.keep("captions", "gone", frame("x"), "c", "s")
    stays = workspace.keep("captions", "stays", frame("y"), "c", "s")
    twin = workspace.keep("captions", "twin", frame("x"), "c", "s")
    finish(workspace, "r1", gone.hash)
    finish(workspace, "r2", stays.hash)
    assert workspace.delete(twin) == 0, "another item has its content"
    assert [run.run_id for run in workspace.using(gone)] == ["r1"] and workspace.delete(gone) == 1
    assert [path.name for path in (workspace.folder / "data").iterdir()] == [f"{stays.hash}.parquet"]
    assert workspace.items() == [stays] and workspace.results()["run_id"].tolist() == ["r2"]
    assert workspace.run("r1") is None and workspace.log_of("r1") == [] and counts(workspace) == [1, 1]
    with pytest.raises(CapbiasError):
        workspace.delete(gone)


def test_what_was_derived_goes_with_its_run_or_its_content_and_nothing_else(workspace):
    """A new run took every cached ranking with it."""
    finish(workspace, "r1")
    finish(workspace, "r2")
    items = [workspace.keep("captions", name, frame(name), "c", "t") for name in ("one", "two")]
    keys = ["pairs LIC r1", "pairs LIC r2", *(f"images of {item.hash}" for item in items)]
    assert [workspace.derived(key, lambda: 1, int) for key in keys] == [1] * 4
    assert workspace.enqueue(spec("b" * 16, "r3"), "c")
    assert [workspace.derived(key, lambda: 2, int) for key in keys] == [1] * 4
    workspace.forget("r1")
    workspace.delete(items[0])
    assert [workspace.derived(key, lambda: 2, int) for key in keys] == [2, 1, 2, 1]


def test_a_workspace_can_be_read_by_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        (tmp_path / "open").mkdir()
        for folder in (tmp_path / "new" / "one", tmp_path / "open"):
            workspace = Workspace(folder)
            workspace.keep("captions", "sat", frame("a dog"), "c", "test")
            with to_write(workspace.database) as db:
                db.execute("BEGIN IMMEDIATE")
                modes = {path.relative_to(folder): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
            assert len(modes) > 4 and any(path.name.endswith("-wal") for path in modes)
            for path, mode in modes.items():
                assert mode == (0o700 if (folder / path).is_dir() else 0o600), path
        write("a", tmp_path / "results.csv")
        assert (tmp_path / "results.csv").stat().st_mode & 0o777 == 0o666, "an export is as any other file"
    finally:
        os.umask(before)


# a shared workspace


def test_a_shared_workspace_is_read_and_not_changed(tmp_path, monkeypatch):
    from capbias_core.runs.engine import Engine  # here, since processes that start import this module

    made = Workspace(tmp_path)
    item = made.keep("captions", "sat", frame("a dog"), "coco", "here")
    made.enqueue(spec(run_id="r1"), "runs")
    engine = Engine(tmp_path, read_only=True)
    shared = engine.workspace
    before = list(sqlite3.connect(made.database).iterdump()), sorted(tmp_path.rglob("*.parquet"))
    assert shared.items() == [item] and len(shared.frame(item.hash)) == 1
    for change in (
        lambda: shared.keep("captions", "sat", frame("a cat"), "coco", "here"),
        lambda: shared.delete(item),
        lambda: shared.delete_collection("coco"),
        lambda: shared.enqueue(spec(run_id="r2"), "coco"),
        lambda: engine.cancel("r1"),
    ):
        with pytest.raises(WorkspaceError, match="can only be read"):
            change()
    assert before == (list(sqlite3.connect(made.database).iterdump()), sorted(tmp_path.rglob("*.parquet")))
    monkeypatch.setenv("CAPBIAS_SHARED", str(tmp_path))
    assert store.shared_folder() == tmp_path.resolve()
    monkeypatch.setenv("CAPBIAS_SHARED", str(tmp_path / "none"))
    with pytest.raises(CapbiasError, match="no workspace"):
        store.shared_folder()


# versions of the catalogue


@pytest.mark.parametrize("number", [0, VERSION - 1, VERSION + 1])
def test_a_workspace_of_another_version_or_program_is_refused_and_not_touched(workspace, number):
    with closing(sqlite3.connect(workspace.database)) as db:
        db.executescript(f"PRAGMA user_version={number}; CREATE TABLE other (x);")
        before = list(db.iterdump())
        with pytest.raises(CapbiasError, match=f"version {number}; this one reads {VERSION}"):
            Workspace(workspace.folder)
        assert list(db.iterdump()) == before and db.execute("PRAGMA user_version").fetchone() == (number,)


def test_a_file_whose_maker_was_killed_before_it_had_tables_gets_them(tmp_path):
    (tmp_path / "capbias.sqlite").touch()
    assert Workspace(tmp_path).items() == []


# runs


@pytest.mark.long
def test_all_who_make_a_new_workspace_at_once_get_it(tmp_path):
    """SQLite's timeout does not cover the change of the journal, for which `prepare` waits."""
    together = threading.Barrier(4)

    def make(name: int) -> list:
        together.wait()
        return Workspace(tmp_path / str(name)).items()

    with ThreadPoolExecutor(4) as pool:
        for name in range(20):
            assert list(pool.map(make, [name] * 4)) == [[]] * 4


def test_a_run_under_way_is_not_queued_twice_and_one_that_ended_badly_is(workspace):
    for status in ("failed", "cancelled", "died"):
        assert workspace.enqueue(spec(), "c") and not workspace.enqueue(spec(), "c")
        assert not workspace.claim(lambda run: run.spec.model == "other") and workspace.claim(any_run).run_id == "r1"
        assert not workspace.enqueue(spec(), "c")
        assert workspace.end("r1", status, "why") and workspace.run("r1").status == status


def test_only_who_has_the_last_claim_writes(workspace):
    """Whether the run was cancelled since, or a cluster sent it elsewhere."""
    workspace.enqueue(spec(), "c")
    first = workspace.claim(any_run)
    assert workspace.progress(first, 0.5, "half")
    second = workspace.claim(any_run)
    assert workspace.progress(second, 0.4, "less")
    assert not workspace.progress(first, 0.6, "more") and not workspace.finish(first, [result()], {"model": b"x"})
    assert not workspace.end("r1", "failed", "late", first.token)
    assert (workspace.run("r1").status, workspace.run("r1").message) == ("running", "less")
    assert workspace.end("r1", "cancelled", "cancelled") and not workspace.claim(any_run)
    assert not workspace.progress(second, 0.6, "more") and not workspace.finish(second, [result()], {"model": b"x"})
    assert workspace.run("r1").status == "cancelled" and counts(workspace) == [0, 0]
    assert workspace.enqueue(spec(), "c")
    third = workspace.claim(any_run)
    assert not workspace.finish(second, [result()], {}) and workspace.finish(third, [result()], {})


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_run_dies_with_its_process_and_who_takes_it_over_alone_writes(workspace, state):
    workspace.enqueue(spec(), "c")
    lost = workspace.claim(any_run) if state == "running" else workspace.run("r1")
    assert workspace.run("r1").status == state and not workspace.enqueue(spec(), "c")
    give(workspace, ENDED)
    assert workspace.run("r1").status == "died" == workspace.runs()[0].status and workspace.run("r1").message
    assert workspace.enqueue(spec(), "c") and (own := workspace.claim(any_run))
    assert not workspace.progress(lost, 0.9, "late") and not workspace.finish(lost, [result(1.0)], {"model": b"old"})
    assert workspace.finish(own, [result(2.0)], {"model": b"new"})
    assert workspace.results()["value"].tolist() == [2.0] and workspace.array("r1", "model") == b"new"


def test_a_process_is_seen_alive_until_it_ends(tmp_path):
    """Although its parent has not asked for its end, and whoever looks; then its file goes."""
    call = f"print(show_alive(Path({str(tmp_path)!r})), flush=True); input()"
    code = f"from capbias_core.workspace.catalogue import *; {call}"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        name = process.stdout.readline().strip()
        assert lives(tmp_path, name) and lives(tmp_path, show_alive(tmp_path))
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not lives(tmp_path, name) and not lives(tmp_path, ENDED) and not lives(tmp_path, "../x")
    (tmp_path / "alive" / this_process()).unlink()
    assert [show_alive(tmp_path)] == os.listdir(tmp_path / "alive") and lives(tmp_path, this_process())


def test_finishing_is_one_transaction(workspace):
    """Results are written before arrays; an array that cannot be written must take the results with it."""
    workspace.enqueue(spec(), "c")
    run = workspace.claim(any_run)
    with pytest.raises((sqlite3.Error, TypeError)):
        workspace.finish(run, [result()], {"model": b"x", "broken": object()})
    assert counts(workspace) == [0, 0] and workspace.run("r1").status == "running"


# readers and writers at the same moment


def test_the_version_changes_with_what_pages_show(workspace, monkeypatch):
    versions = [workspace.version()]
    for text in "xy":
        item = workspace.keep("captions", "m", frame(text), "c", "s")
        versions.append(workspace.version())
        finish(workspace, captions=item.hash, run_id=text)
        versions.append(workspace.version())
        now = time.time() - 3600  # the clock was set back
        monkeypatch.setattr(time, "time", lambda now=now: now)
    assert len(set(versions)) == 5 and workspace.version() == versions[-1]


@pytest.mark.long
def test_content_that_is_kept_while_it_is_deleted_has_its_file(workspace, monkeypatch):
    item = workspace.keep("captions", "one", frame("x"), "c", "s")
    second = Workspace(workspace.folder)
    other = threading.Thread(target=lambda: second.keep("captions", "two", frame("x"), "c", "s"))
    unlink = Path.unlink

    def interrupted(path, **how) -> None:
        if other.ident is None:
            other.start()
            time.sleep(0.3)
        unlink(path, **how)

    monkeypatch.setattr(Path, "unlink", interrupted)
    workspace.delete(item)
    other.join(30)
    assert workspace.frame(workspace.item("captions", "two", "c").hash)["caption"].tolist() == ["x"]


def keep_many(folder: str, who: str, ready, start) -> None:
    ready.release()
    start.wait(60)
    workspace = Workspace(folder)  # both make the file
    for number in range(4):
        workspace.keep("captions", f"{who} {number}", frame(f"{who} {number}", "same"), "c", "s")
        workspace.keep("captions", f"{who} shared {number}", frame(f"shared {number}"), "c", "s")
        for run_id in (f"{who}{number}", f"contested{number}"):
            workspace.enqueue(spec(run_id=run_id), "c")
            while run := workspace.claim(lambda run: run.status == "queued"):  # also one of the other process
                assert workspace.finish(run, [result(number, who)], {"model": who.encode()})


@pytest.mark.long
def test_two_processes_writing_at_once_lose_nothing(tmp_path):
    ready, start = PROCESSES.Semaphore(0), PROCESSES.Event()
    writers = [PROCESSES.Process(target=keep_many, args=(str(tmp_path), who, ready, start)) for who in "ab"]
    for process in writers:
        process.start()
    assert ready.acquire(timeout=60) and ready.acquire(timeout=60)
    start.set()
    for process in writers:
        process.join(90)
    assert [process.exitcode for process in writers] == [0, 0]
    workspace = Workspace(tmp_path)
    items = workspace.items()
    assert len(items) == 16 and all(len(workspace.frame(item.hash)) == item.rows for item in items)
    assert [run.status for run in workspace.runs()] == ["finished"] * 12
    assert len(workspace.results()) == 12 == workspace.results()["run_id"].nunique()
    assert {path.suffix for path in (workspace.folder / "data").iterdir()} == {".parquet"}
    for number in range(4):
        (winner,) = workspace.results(run_ids=[f"contested{number}"])["model"]
        assert workspace.array(f"contested{number}", "model") == winner.encode()


def test_crossed_labels_without_a_cell_of_some_value_are_read_again():
    """Words of `young` stay masked though no cell with it has enough images."""
    counts = {"Female, old": 107, "Male, old": 210, "Female, young": 93, "Male, young": 79}
    one = crossed(get_attribute("gender"), get_attribute("age"), counts)
    assert one.values == ("Female, old", "Male, old") and "young" in one.words
    assert maps_to_values(one.stored(), {value: value for value in one.values})
    gender = get_attribute("gender").stored()
    assert not maps_to_values(gender | {"words": {"young": ("boy",)}}, {})
