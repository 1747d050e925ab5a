"""The workspace: nothing lost by two writers, nothing half by a killed one, nothing left by a deletion."""

import multiprocessing
import os
import sqlite3
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from capbias_core.cli.terminal import write_output
from capbias_core.databases import to_write
from capbias_core.errors import CapbiasError
from capbias_core.types import Result
from capbias_core.workspace import store
from capbias_core.workspace.models import resolve_model
from capbias_core.workspace.photographs import workspace_cache
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import SILENCE, Workspace, checked_name, content_hash, one_reading
from capbias_core.workspace.tokens import keep_tokens
from tests.orphans import ELSEWHERE, ended, give

PROCESSES = multiprocessing.get_context("spawn")


def frame(*captions: str) -> pd.DataFrame:
    return pd.DataFrame(
        {"image_id": [str(i) for i in range(len(captions))], "caption_index": 0, "caption": list(captions)}
    )


def spec(captions: str = "c", references: str = "", table: str = "t", run_id: str = "r1") -> RunSpec:
    """A spec with an id of its own, whatever it holds."""
    found = RunSpec("lic", 1, "m", captions, references, {"table": table})
    found.__dict__["run_id"] = run_id
    return found


def result(value: float = 40.0, model: str = "m") -> Result:
    return Result(attribute="gender", model=model, metric="LIC_M", value=value, seeds=3, n=20, spread=1.5)


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def finished(workspace: Workspace, run_id: str = "r1", token: str = "t", own: RunSpec | None = None) -> None:
    own = own or spec(run_id=run_id)
    own.__dict__["run_id"] = run_id
    assert workspace.enqueue(own, "c", token) and workspace.claim(run_id, token)
    assert workspace.finish(run_id, token, [result()], {"model": b"bytes"}, ["a note"])


def counts(workspace: Workspace) -> dict[str, int]:
    with sqlite3.connect(workspace.database) as db:
        found = {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("results", "arrays")}
    db.close()
    return found


# what was loaded


def test_a_reopened_workspace_finds_all(workspace):
    kept = workspace.keep("captions", "my model", frame("a dog", "«ü»\n男"), "first", "file.json", {"trained": True})
    finished(workspace)
    again = Workspace(workspace.folder)
    assert again.items() == [kept] and again.item("captions", "my model", "first") == kept
    assert (kept.rows, kept.images, kept.details) == (2, 2, {"trained": True})
    pd.testing.assert_frame_equal(again.frame(kept.hash), frame("a dog", "«ü»\n男"), check_dtype=False)
    run = again.run("r1")
    assert (run.status, run.progress, run.notes, run.spec) == ("finished", 1, ("a note",), spec())
    assert again.array("r1", "model") == b"bytes"
    assert [message for _, message in again.log_of("r1")][-1] == "finished"


@pytest.mark.parametrize(
    "name",
    ["", "  ", "a" * 81, "<b>", "a/b", "..\\x", "a`b", "x'y", 'x"y', "a|b", "*a*", "[a]", "$x$", "a\x00b", "\u202e"],
)
def test_names_that_could_be_markup_or_paths_are_refused(workspace, name):
    with pytest.raises(CapbiasError):
        checked_name(name)
    with pytest.raises(CapbiasError):
        workspace.keep("captions", name, frame("a"), "c", "s")
    with pytest.raises(CapbiasError):
        workspace.keep("captions", "fine", frame("a"), name, "s")
    assert workspace.items() == [] and list((workspace.folder / "data").iterdir()) == []


def test_deletion_takes_results_arrays_log_and_file_and_nothing_else(workspace):
    gone = workspace.keep("captions", "gone", frame("x"), "c", "s")
    stays = workspace.keep("captions", "stays", frame("y"), "c", "s")
    finished(workspace, "r1", own=spec(gone.hash))
    finished(workspace, "r2", own=spec(stays.hash))
    assert [run.run_id for run in workspace.using(gone)] == ["r1"]
    assert workspace.delete(gone) == 1
    assert [path.stem for path in (workspace.folder / "data").iterdir()] == [stays.hash]
    assert workspace.items() == [stays] and workspace.results()["run_id"].tolist() == ["r2"]
    assert workspace.run("r1") is None and workspace.log_of("r1") == []
    with pytest.raises(CapbiasError, match="'r1' was deleted"):
        workspace.there("r1")
    assert counts(workspace) == {"results": 1, "arrays": 1}


def test_the_hash_tells_cells_order_and_columns_apart():
    frames = [
        frame("a", "b"),
        frame("b", "a"),
        frame("a", "b", "c"),
        frame("a", "c"),
        frame("ab", ""),
        frame("a", "b").rename(columns={"caption": "text"}),
        frame("a", "b")[["image_id", "caption", "caption_index"]],
        frame("a\x1fb", "c"),
        frame("a", "b\x1fc"),
    ]
    assert len(set(map(content_hash, frames))) == len(frames)


# wrong folders and files


def test_a_damaged_data_file_is_an_error_in_words(workspace):
    item = workspace.keep("captions", "m", frame("x"), "c", "s")
    path = workspace.folder / "data" / f"{item.hash}.parquet"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CapbiasError, match="Load the file again"):
        workspace.frame(item.hash)


# runs


def test_a_run_under_way_is_not_queued_twice(workspace):
    assert workspace.enqueue(spec(), "c", "one") and not workspace.enqueue(spec(), "c", "two")
    assert not workspace.claim("r1", "two") and workspace.claim("r1", "one")
    assert not workspace.enqueue(spec(), "c", "two")


@pytest.mark.parametrize("status", ["failed", "cancelled", "died"])
def test_a_run_that_ended_badly_can_be_repeated(workspace, status):
    workspace.enqueue(spec(), "c", "one")
    workspace.claim("r1", "one")
    assert workspace.end("r1", status, "why") and workspace.run("r1").status == status
    assert workspace.enqueue(spec(), "c", "two")
    assert workspace.run("r1").status == "queued" and len(workspace.log_of("r1")) == 1
    assert workspace.claim("r1", "two") and not workspace.claim("r1", "one")


def test_a_cancelled_run_stops_and_leaves_nothing(workspace):
    workspace.enqueue(spec(), "c", "t")
    workspace.claim("r1", "t")
    assert workspace.progress("r1", "t", 0.5, "half")
    assert workspace.end("r1", "cancelled", "cancelled")
    assert not workspace.progress("r1", "t", 0.6, "more") and not workspace.claim("r1", "t")
    assert not workspace.finish("r1", "t", [result()], {"model": b"x"}, [])
    assert workspace.run("r1").status == "cancelled" and counts(workspace) == {"results": 0, "arrays": 0}


def test_a_worker_stops_whose_run_the_scheduler_sent_elsewhere(workspace, monkeypatch):
    """It was cut off and not ended, and has the same token as the worker that has the run now."""
    workspace.enqueue(spec(), "c", "t")
    assert workspace.claim("r1", "t") and workspace.progress("r1", "t", 0.5, "half")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(store, "this_process", lambda: "other:host boot space 6 1")
        assert workspace.claim("r1", "t") and workspace.progress("r1", "t", 0.4, "less")
    assert not workspace.progress("r1", "t", 0.6, "more")
    assert workspace.run("r1").message == "less"


def test_a_run_taken_over_cannot_write(workspace):
    workspace.enqueue(spec(), "c", "old")
    workspace.claim("r1", "old")
    give(workspace, ended())
    assert workspace.run("r1").status == "died"
    assert workspace.enqueue(spec(), "c", "new") and workspace.claim("r1", "new")
    assert not workspace.progress("r1", "old", 0.9, "late")
    assert not workspace.finish("r1", "old", [result(1.0)], {"model": b"old"}, [])
    assert not workspace.end("r1", "failed", "late", "old")
    assert workspace.finish("r1", "new", [result(2.0)], {"model": b"new"}, [])
    assert workspace.results()["value"].tolist() == [2.0] and workspace.array("r1", "model") == b"new"


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_run_dies_with_its_process_and_whoever_asks_takes_it_over_at_once(workspace, state):
    workspace.enqueue(spec(), "c", "t")
    if state == "running":
        workspace.claim("r1", "t")
    assert workspace.run("r1").status == state and not workspace.enqueue(spec(), "c", "new")
    give(workspace, ended())
    assert workspace.run("r1").status == "died" == workspace.runs()[0].status and workspace.run("r1").message
    assert workspace.enqueue(spec(), "c", "new") and workspace.run("r1").status == "queued"


@pytest.mark.parametrize("hours", [-48, 48])
def test_no_clock_says_whether_a_run_lives(workspace, monkeypatch, hours):
    workspace.enqueue(spec(), "c", "t")
    workspace.claim("r1", "t")
    now = time.time() + 3600 * hours
    monkeypatch.setattr(time, "time", lambda: now)
    assert workspace.run("r1").status == "running" and not workspace.enqueue(spec(), "c", "new")
    workspace.heartbeat({"r1": "t"})
    give(workspace, ended())
    assert workspace.run("r1").status == "died"


def test_the_version_changes_with_what_pages_show(workspace, monkeypatch):
    versions = [workspace.version()]
    item = workspace.keep("captions", "m", frame("x"), "c", "s")
    versions.append(workspace.version())
    finished(workspace, own=spec(item.hash))
    versions.append(workspace.version())
    workspace.keep("captions", "m", frame("y"), "c", "s")
    versions.append(workspace.version())
    now = time.time() - 3600  # the clock was set back
    monkeypatch.setattr(time, "time", lambda: now)
    finished(workspace, "r2", own=spec(item.hash))
    versions.append(workspace.version())
    workspace.keep("captions", "m", frame("z"), "c", "s")
    versions.append(workspace.version())
    assert len(set(versions)) == 6 and workspace.version() == versions[-1]


def test_one_reading_asks_once_and_sees_its_own_changes_alone(workspace):
    def names() -> list[str]:
        return [item.name for item in workspace.items()]

    def elsewhere(name: str) -> None:
        own = threading.Thread(target=lambda: Workspace(workspace.folder).keep("captions", name, frame(name), "c", "s"))
        own.start()
        own.join()

    with one_reading():
        version = workspace.version()
        elsewhere("a")
        assert names() == ["a"], "what was not asked yet is read as it is now"
        elsewhere("b")
        assert names() == ["a"] and workspace.version() == version
        workspace.keep("captions", "own", frame("own"), "c", "s")
        assert names() == ["a", "b", "own"] and workspace.version() != version
        elsewhere("d")
    assert names() == ["a", "b", "own", "d"]


def test_a_run_on_another_host_died_when_nothing_was_heard_of_it_for_long(workspace, monkeypatch):
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])
    workspace.enqueue(spec(), "c", "t")
    give(workspace, ELSEWHERE)

    def after(seconds: float) -> str:
        now[0] += seconds
        return workspace.run("r1").status

    assert [after(0), after(SILENCE - 1), after(2)] == ["queued", "queued", "died"]
    workspace.heartbeat({"r1": "t"})
    assert [after(0), after(SILENCE - 1), after(2)] == ["queued", "queued", "died"]
    assert workspace.enqueue(spec(), "c", "new")


def test_one_reading_that_begins_with_a_change_sees_it(workspace):
    with one_reading():
        workspace.keep("captions", "a", frame("a"), "c", "s")
        assert [item.name for item in workspace.items()] == ["a"]


def test_in_one_reading_what_a_run_took_meanwhile_cannot_be_deleted(workspace):
    item = workspace.keep("captions", "m", frame("x"), "c", "s")
    with one_reading():
        assert not workspace.using(item)
        own = threading.Thread(target=lambda: workspace.enqueue(spec(item.hash), "c", "t"))
        own.start()
        own.join()
        with pytest.raises(CapbiasError, match="A run is reading"):
            workspace.delete(item)
    assert workspace.items() == [item]


def test_finishing_is_one_transaction(workspace, monkeypatch):
    """Results are written before arrays; an array that cannot be written must take the results with it."""
    workspace.enqueue(spec(), "c", "t")
    workspace.claim("r1", "t")
    with pytest.raises((sqlite3.Error, TypeError)):
        workspace.finish("r1", "t", [result()], {"model": b"x", "broken": object()}, ["note"])
    assert counts(workspace) == {"results": 0, "arrays": 0}
    assert (workspace.run("r1").status, workspace.run("r1").notes) == ("running", ())


# others at the same moment


def meanwhile(other: threading.Thread) -> None:
    """Let another thread come in between, once, and go on after a moment."""
    if other.ident is None:
        other.start()
        time.sleep(0.3)


@pytest.mark.long
def test_content_that_is_kept_while_it_is_deleted_has_its_file(workspace, monkeypatch):
    item = workspace.keep("captions", "one", frame("x"), "c", "s")
    second = Workspace(workspace.folder)
    other = threading.Thread(target=lambda: second.keep("captions", "two", frame("x"), "c", "s"))
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path, **how: (meanwhile(other), unlink(path, **how)))
    workspace.delete(item)
    other.join(30)
    assert workspace.frame(workspace.item("captions", "two", "c").hash)["caption"].tolist() == ["x"]


def keep_many(folder: str, who: str, ready, start) -> None:
    workspace = Workspace(folder)
    ready.release()
    start.wait(60)
    for number in range(5):
        workspace.keep("captions", f"{who} {number}", frame(f"{who} {number}", "same"), "c", "s")
        workspace.keep("captions", f"{who} shared {number}", frame(f"shared {number}"), "c", "s")
        workspace.enqueue(spec(run_id=f"{who}{number}"), "c", who)
        workspace.claim(f"{who}{number}", who)
        workspace.finish(f"{who}{number}", who, [result(number, who)], {"model": bytes(1000)}, [])
        workspace.enqueue(spec(run_id=f"contested{number}"), "c", who)
        if workspace.claim(f"contested{number}", who):
            workspace.finish(f"contested{number}", who, [result(number, who)], {"model": who.encode()}, [])


@pytest.mark.long
def test_two_processes_writing_at_once_lose_nothing(workspace):
    ready, start = PROCESSES.Semaphore(0), PROCESSES.Event()
    people = [PROCESSES.Process(target=keep_many, args=(str(workspace.folder), who, ready, start)) for who in "ab"]
    for process in people:
        process.start()
    assert ready.acquire(timeout=60) and ready.acquire(timeout=60)
    start.set()
    for process in people:
        process.join(90)
    assert [process.exitcode for process in people] == [0, 0]
    items = workspace.items()
    assert len(items) == 20 and all(len(workspace.frame(item.hash)) == item.rows for item in items)
    runs = workspace.runs()
    assert len(runs) == 15 and {run.status for run in runs} == {"finished"}
    assert len(workspace.results()) == 15 == workspace.results()["run_id"].nunique()
    assert [path for path in (workspace.folder / "data").iterdir() if path.suffix != ".parquet"] == []
    for number in range(5):
        (winner,) = workspace.results(run_ids=[f"contested{number}"])["model"]
        assert workspace.array(f"contested{number}", "model") == winner.encode()


# bytes


def test_a_workspace_is_its_owners_alone(tmp_path, monkeypatch):
    """Also where the process would let everybody read, and where the folder was there before."""
    before = os.umask(0)
    try:
        (tmp_path / "open").mkdir()
        for folder in (tmp_path / "new" / "one", tmp_path / "open"):
            workspace = Workspace(folder)
            item = workspace.keep("captions", "sat", frame("a dog"), "c", "test")
            keep_tokens(workspace, item.hash, frame("a dog"))
            with workspace_cache(workspace):
                pass
            with to_write(workspace.database) as db:
                db.execute("BEGIN IMMEDIATE")
                modes = {path.relative_to(folder): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
            assert len(modes) > 5 and any(path.name.endswith("-wal") for path in modes)
            for path, mode in modes.items():
                assert mode == (0o700 if (folder / path).is_dir() else 0o600), path
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        write_output("a", tmp_path / "results.csv")
        assert (tmp_path / "results.csv").stat().st_mode & 0o777 == 0o666, "an export is as any other file"
    finally:
        os.umask(before)


@pytest.mark.parametrize("digest", ["../../x", "/etc/x", "*", "", "0123456789abcdeg", "0123456789ABCDEF", "abc\n" * 8])
def test_only_a_hash_becomes_the_name_of_a_file(tmp_path, digest):
    workspace = Workspace(tmp_path / "w")
    with pytest.raises(CapbiasError, match="not a content hash"):
        workspace.sidecar_path(digest, "parquet")
    if digest:
        with pytest.raises(CapbiasError, match="not a content hash"):
            workspace.keep("vectors", "a", frame("a dog"), "c", "test", digest=digest)
    with pytest.raises(CapbiasError, match="not a content hash"):
        workspace.frame(digest)
    with pytest.raises(CapbiasError, match="no longer in a known place"):
        resolve_model(workspace, {"name": "m", "digest": digest}, str)
    assert not workspace.items()
