"""The engine: every run ends in words, is computed once, and a killed worker leaves nothing half."""

import importlib.util
import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Outcome
from capbias_core.runs import engine as engine_module
from capbias_core.runs.engine import Engine, needs_workers, unfinished
from capbias_core.runs.plan import Request, plan
from capbias_core.types import Result
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.disks import small_disk

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = multiprocessing.get_context("spawn")
WITH_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "capbias_core.attackers.recurrent"))


def fill(folder, images: int = 40, models=("m",)) -> Request:
    """Small captions that give their label away, in the collection `c`."""
    workspace = Workspace(folder)
    labels = ["A" if place % 2 else "B" for place in range(images)]
    table = pd.DataFrame({"image_id": range(images), "group": labels})
    rooms = ["kitchen" if label == "A" else "garage" for label in labels]
    sets = {model: table[["image_id"]].assign(caption=[f"{model} in {room}" for room in rooms]) for model in models}
    keep(workspace, labels=table, attribute="group", captions=sets)
    return Request("c", tuple(models), "labels", "group", ("lic",), seeds=2)


def submit(engine: Engine, request: Request) -> list[str]:
    return engine.submit(plan(engine.workspace, request), request.collection)


def until(condition, seconds: float = 10.0):
    """The first true value of a condition; fails after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


def status(engine: Engine, run_id: str) -> str:
    return engine.workspace.run(run_id).status


def messages(engine: Engine, run_id: str) -> list[str]:
    return [message for _, message in engine.workspace.log_of(run_id)]


def rows_of(engine: Engine, run_id: str) -> tuple[int, int]:
    """How many results and arrays a run has left."""
    with sqlite3.connect(engine.workspace.database) as db:
        found = [db.execute(f"SELECT count(*) FROM {name} WHERE run_id=?", (run_id,)).fetchone()[0] for name in TABLES]
    db.close()
    return tuple(found)


TABLES = ("results", "arrays")


@pytest.fixture
def request_(tmp_path) -> Request:
    return fill(tmp_path)


@pytest.fixture
def engine(tmp_path) -> Engine:
    return Engine(tmp_path)


class Gate:
    """Stands for run_one: reports a third, then waits, reporting on, until it is opened."""

    def __init__(self, monkeypatch):
        self.started: list[str] = []
        self.opened = threading.Event()
        self.stopped = threading.Event()
        monkeypatch.setattr(engine_module, "run_one", self)
        monkeypatch.setattr(engine_module, "BETWEEN_NOTES", 0.0)

    def __call__(self, workspace, spec, progress) -> Outcome:
        self.started.append(spec.model)
        try:
            while not self.opened.is_set():
                progress(1 / 3, "a third")
                time.sleep(0.02)
        except BaseException:
            self.stopped.set()
            raise
        return Outcome([Result("group", spec.model, "LIC_M", 25.0)], {"model": b""}, ("note",))


@pytest.fixture
def gate(monkeypatch):
    found = Gate(monkeypatch)
    yield found
    found.opened.set()


# in this process


def test_a_light_run_is_computed_here_and_once(engine, request_):
    (run_id,) = submit(engine, request_)
    (row,) = engine.wait([run_id])
    assert (row.status, row.progress, row.message) == ("finished", 1, "finished")
    assert row.created <= row.started <= row.finished
    results = engine.workspace.results()
    assert set(results["metric"]) == {"LIC_M", "SC"} and set(results["run_id"]) == {run_id}
    assert messages(engine, run_id)[:2] == ["queued", f"started in process {os.getpid()}"]
    assert submit(engine, request_) == [] and Engine(engine.folder).submit(plan(engine.workspace, request_), "c") == []


def test_no_torch_for_light_runs(request_, engine):
    (spec,) = plan(engine.workspace, request_)
    assert not needs_workers(spec) and not needs_workers(replace(spec, measure="ratio_error", options={}))
    assert needs_workers(replace(spec, options=spec.options | {"attacker": "lstm_bi"}))


def test_progress_is_seen_in_the_workspace(engine, request_, gate):
    (run_id,) = submit(engine, request_)
    other = Workspace(engine.folder)  # as another tab or process reads it
    row = until(lambda: other.run(run_id).progress and other.run(run_id))
    assert (row.status, row.progress, row.message) == ("running", pytest.approx(1 / 3), "a third")
    until(lambda: messages(engine, run_id)[-1] == "a third")
    assert messages(engine, run_id).count("a third") == 1
    gate.opened.set()
    seen = []
    (row,) = engine.wait([run_id], on_change=lambda rows: seen.append(rows[0].status))
    assert row.status == "finished" == seen[-1] and row.notes == ("note",)


def test_a_running_run_is_cancelled_and_stops(engine, request_, gate):
    (run_id,) = submit(engine, request_)
    until(lambda: engine.workspace.run(run_id).progress)
    assert engine.cancel(run_id) and status(engine, run_id) == "cancelled"
    assert gate.stopped.wait(5)
    until(lambda: messages(engine, run_id)[-1] == "stopped")
    assert not engine.cancel(run_id) and rows_of(engine, run_id) == (0, 0)


def test_a_queued_run_is_cancelled_and_never_starts(tmp_path, engine, gate):
    first, second, third = submit(engine, fill(tmp_path, models=("a", "b", "c")))
    until(lambda: status(engine, first) == "running")
    assert status(engine, second) == "queued"
    assert engine.cancel(second) and status(engine, second) == "cancelled"
    gate.opened.set()
    assert [row.status for row in engine.wait([first, second, third])] == ["finished", "cancelled", "finished"]
    assert gate.started == ["a", "c"]


def test_all_runs_are_cancelled_at_once_and_none_starts_meanwhile(tmp_path, engine, gate):
    """One under way, three that wait; and one that is queued by another process, as in a terminal."""
    first, *waiting = submit(engine, fill(tmp_path, models=("a", "b", "c", "d")))
    until(lambda: status(engine, first) == "running" and engine.workspace.run(first).progress)
    elsewhere = replace(engine.workspace.run(first).spec, model="elsewhere")
    engine.workspace.enqueue(elsewhere, "c", "of another engine")
    assert engine.cancel_all() == 5 and engine.cancel_all() == 0
    assert {run.status for run in engine.workspace.runs()} == {"cancelled"}
    assert gate.stopped.wait(5)
    engine.wait([first, *waiting])
    for thread in engine._threads:
        thread.join(5)
    assert gate.started == ["a"] and not any(thread.is_alive() for thread in engine._threads)


def test_all_that_did_not_finish_are_repeated(tmp_path, engine, gate):
    """Two cancelled, one failed, one finished; one of an earlier version, which would give other numbers, stays."""
    runs = submit(engine, fill(tmp_path, models=("a", "b", "c")))
    until(lambda: engine.workspace.run(runs[0]).progress)
    engine.cancel_all()
    gate.stopped.wait(5)
    gate.opened.set()
    (finished,) = engine.wait(submit(engine, fill(tmp_path, models=("e",))))
    old = replace(engine.workspace.run(runs[2]).spec, version=0)
    engine.workspace.enqueue(old, "c", "t")
    engine.workspace.end(old.run_id, "failed", "broken", "t")
    assert [run.run_id for run in unfinished(engine.workspace)] == runs, "the oldest first"
    assert engine.repeat_all() == 3
    assert [row.status for row in engine.wait(runs)] == ["finished"] * 3
    assert status(engine, old.run_id) == "failed" and unfinished(engine.workspace) == []
    assert engine.workspace.run(finished.run_id).created == finished.created, "what is finished is not run again"
    assert engine.repeat_all() == 0


def test_a_cancelled_run_can_be_repeated(engine, request_, gate):
    (run_id,) = submit(engine, request_)
    until(lambda: engine.workspace.run(run_id).progress)
    engine.cancel(run_id)
    assert submit(engine, request_) == [run_id]
    gate.opened.set()
    assert engine.wait([run_id])[0].status == "finished" and rows_of(engine, run_id) == (1, 1)


def test_what_a_cancelled_run_has_trained_stays_until_the_run_is_finished(tmp_path, engine, request_, gate):
    (run_id,) = submit(engine, request_)
    until(lambda: engine.workspace.run(run_id).progress)
    trained = engine.workspace.checkpoints / run_id / "a.pt"
    trained.parent.mkdir(parents=True)
    trained.write_bytes(b"weights")
    engine.cancel(run_id)
    gate.opened.set()
    other = replace(request_, seeds=request_.seeds + 1)
    assert {row.status for row in engine.wait(submit(engine, other))} == {"finished"}, "ends, which clears what is over"
    assert status(engine, run_id) == "cancelled" and trained.exists()
    assert submit(engine, request_) == [run_id]
    assert engine.wait([run_id])[0].status == "finished"
    until(lambda: not trained.exists())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CapbiasError("3 images are too few.", "Load more."), "3 images are too few. Load more."),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero (runs/engine.py, line "),
        (MemoryError(), "MemoryError"),
    ],
)
def test_a_failing_run_says_why_and_the_next_one_runs(tmp_path, engine, monkeypatch, error, message):
    original = engine_module.run_one

    def failing(workspace, spec, progress):
        if spec.model == "bad":
            raise error
        return original(workspace, spec, progress)

    monkeypatch.setattr(engine_module, "run_one", failing)
    request = fill(tmp_path, models=("bad", "good"))
    bad, good = engine.wait(submit(engine, request))
    assert bad.status == "failed" and message in bad.message and good.status == "finished"
    assert rows_of(engine, bad.run_id) == (0, 0)
    monkeypatch.setattr(engine_module, "run_one", original)
    assert submit(engine, request) == [bad.run_id]
    assert engine.wait([bad.run_id])[0].status == "finished"


def test_a_thread_that_handed_its_run_to_a_worker_is_not_taken_for_broken(engine, request_):
    (spec,) = plan(engine.workspace, request_)
    assert engine.workspace.enqueue(spec, "c", "t")
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    engine._owned[spec.run_id] = threading.current_thread()  # whoever has it now
    assert not engine._over(spec.run_id, "t", ended) and status(engine, spec.run_id) == "queued"
    engine._owned[spec.run_id] = ended
    engine._over(spec.run_id, "t", ended)
    assert status(engine, spec.run_id) == "died"
    del engine._owned[spec.run_id]


def test_results_that_cannot_be_written_are_a_failed_run(engine, request_, monkeypatch):
    outcome = Outcome([Result("group", "m", "LIC_M", 25.0)], {"model": object()}, ())
    monkeypatch.setattr(engine_module, "run_one", lambda *_: outcome)
    (row,) = engine.wait(submit(engine, request_))
    assert row.status == "failed" and rows_of(engine, row.run_id) == (0, 0)


def test_runs_of_a_thread_that_broke_do_not_wait_for_ever(tmp_path, engine, monkeypatch):
    def broken(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(engine_module, "execute", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    for row in (engine.workspace.run(run_id) for run_id in submit(engine, fill(tmp_path, models=("a", "b")))):
        until(lambda row=row: status(engine, row.run_id) in ("failed", "died"))


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as found:
        yield found


def closed(engine: Engine) -> bool:
    """Whether the engine ends, and does not wait for ever for what cannot be written."""
    closing = threading.Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(30)
    return not closing.is_alive()


def test_a_run_whose_results_find_no_space_fails_in_words_and_holds_up_nobody(disk, gate):
    engine = Engine(disk.folder / "home")
    (run_id,) = submit(engine, fill(disk.folder / "home"))
    until(lambda: engine.workspace.run(run_id).progress)
    disk.fill()
    gate.opened.set()
    (row,) = engine.wait([run_id])
    assert row.status == "failed" and "no space left" in row.message
    assert closed(engine) and engine.workspace.run(run_id).status == "failed"


def test_its_end_is_noted_as_soon_as_there_is_space_and_it_can_be_repeated(disk, gate):
    engine, request = Engine(disk.folder / "home"), fill(disk.folder / "home")
    (run_id,) = submit(engine, request)
    until(lambda: engine.workspace.run(run_id).progress)
    disk.fill()
    gate.opened.set()
    engine.wait([run_id])
    assert engine.workspace.run(run_id).finished is None
    disk.free()
    until(lambda: engine.workspace.run(run_id).finished)
    assert "no space left" in messages(engine, run_id)[-1]
    assert submit(engine, request) == [run_id] and engine.wait([run_id])[0].status == "finished"


def test_a_full_disk_that_has_space_again_when_the_run_is_done_costs_nothing(disk, gate):
    engine = Engine(disk.folder / "home")
    (run_id,) = submit(engine, fill(disk.folder / "home"))
    until(lambda: engine.workspace.run(run_id).progress)
    disk.fill()
    time.sleep(0.2)  # notes of its progress find no space
    disk.free()
    gate.opened.set()
    assert engine.wait([run_id])[0].status == "finished"


def test_a_run_is_cancelled_where_that_cannot_be_written(disk, gate):
    engine = Engine(disk.folder / "home")
    (run_id,) = submit(engine, fill(disk.folder / "home"))
    until(lambda: engine.workspace.run(run_id).progress)
    disk.fill()
    assert engine.cancel(run_id) and status(engine, run_id) == "cancelled"
    assert gate.stopped.wait(5) and closed(engine)


def test_a_run_whose_workspace_goes_stops(tmp_path, gate):
    engine = Engine(tmp_path / "home")
    run_id, _ = submit(engine, fill(tmp_path / "home", models=("a", "b")))
    until(lambda: engine.workspace.run(run_id).progress)
    (tmp_path / "home").rename(tmp_path / "elsewhere")
    assert gate.stopped.wait(5) and closed(engine) and not (tmp_path / "home").exists()


def test_a_waiting_run_beats_for_those_on_other_hosts(tmp_path, engine, gate):
    _, second = submit(engine, fill(tmp_path, models=("a", "b")))
    before = engine.workspace.run(second).heartbeat
    until(lambda: engine.workspace.run(second).heartbeat != before)


def test_a_run_that_another_engine_took_over_is_not_kept_alive(tmp_path, engine, gate):
    request = fill(tmp_path, models=("a", "b"))
    _, second = submit(engine, request)
    assert engine.workspace.end(second, "died", "as seen by another process")
    assert engine.workspace.enqueue(engine.workspace.run(second).spec, "c", "of another engine")
    before = engine.workspace.run(second).heartbeat
    time.sleep(1.5)
    assert engine.workspace.run(second).heartbeat == before


def test_no_cluster_is_said_in_words(engine, request_, monkeypatch):
    def refused():
        raise CapbiasError("There is no scheduler.", "Start it.")

    monkeypatch.setattr(engine_module, "dask_client", refused)
    (row,) = engine.wait(submit(engine, replace(request_, attacker="lstm_bi")))
    assert row.status == "failed" and "no worker could be started" in row.message and "Start it." in row.message


CLIENTS = """
import sys, threading, time, distributed
made = []
class Fake:
    status = "running"
    def __init__(self, *args, **kwargs):
        made.append(type(self).__name__)
        time.sleep(0.3)
    def submit(self, *args, **kwargs):
        return self
distributed.LocalCluster = type("Cluster", (Fake,), {})
distributed.Client = type("Client", (Fake,), {})
from capbias_core.runs.engine import Engine
from tests.collections_ import keep
from tests.collections_ import keep
engine = Engine(sys.argv[1])
threads = [threading.Thread(target=engine._send, args=([(str(number), "token")],)) for number in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(made))
"""


def test_runs_sent_at_once_share_one_cluster(tmp_path):
    command = [sys.executable, "-c", CLIENTS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['Client', 'Cluster']", done.stderr


# several processes


def run_all(folder: str, request: Request, ready, start) -> None:
    engine = Engine(folder)
    specs = plan(engine.workspace, request)
    ready.release()
    start.wait(60)
    engine.submit(specs, request.collection)
    engine.wait([spec.run_id for spec in specs])


def test_two_engines_compute_each_run_once(tmp_path):
    request = fill(tmp_path, models=tuple("abcdefgh"))
    ready, start = PROCESSES.Semaphore(0), PROCESSES.Event()
    engines = [PROCESSES.Process(target=run_all, args=(str(tmp_path), request, ready, start)) for _ in range(2)]
    for process in engines:
        process.start()
    assert all(ready.acquire(timeout=60) for _ in engines)
    start.set()
    for process in engines:
        process.join(60)
    assert [process.exitcode for process in engines] == [0, 0]
    workspace = Workspace(tmp_path)
    assert [run.status for run in workspace.runs()] == ["finished"] * 8
    for run in workspace.runs():
        lines = [line for _, line in workspace.log_of(run.run_id) if line.startswith("started")]
        assert len(lines) == 1
    assert len(workspace.results()) == 16 and not workspace.results().duplicated(["run_id", "metric"]).any()


def test_without_workers_nothing_heavy_is_queued_and_what_is_finished_still_answers(engine, request_, monkeypatch):
    (done,) = submit(engine, request_)
    engine.wait([done])
    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    monkeypatch.setattr("capbias_core.errors.installed", lambda module: module != "distributed")
    assert submit(engine, request_) == []
    with pytest.raises(CapbiasError, match="A worker process needs distributed, which is not installed"):
        submit(engine, replace(request_, seeds=request_.seeds + 1))
    assert [run.run_id for run in engine.workspace.runs()] == [done]


def submit_and_hang(folder: str, request: Request) -> None:
    engine_module.run_one = lambda workspace, spec, progress: time.sleep(60)
    submit(Engine(folder), request)
    time.sleep(60)


def test_a_killed_engine_is_shown_as_died_and_its_run_can_be_repeated(tmp_path, engine, request_):
    process = PROCESSES.Process(target=submit_and_hang, args=(str(tmp_path), request_))
    process.start()
    (spec,) = plan(engine.workspace, request_)
    until(lambda: engine.workspace.run(spec.run_id) and status(engine, spec.run_id) == "running", 60)
    assert submit(engine, request_) == []
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)
    assert status(engine, spec.run_id) == "died"
    assert rows_of(engine, spec.run_id) == (0, 0)
    assert submit(engine, request_) == [spec.run_id]
    assert engine.wait([spec.run_id])[0].status == "finished"


# Dask's workers and the LSTM

NETWORK = pytest.mark.skipif(not WITH_TORCH, reason="torch is not installed")


@pytest.fixture(scope="module")
def workers():
    """The cluster of this process, closed at the end."""
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patched:
        # Such small batches are quickest on one thread, whatever else the machine is doing.
        patched.setattr(os, "cpu_count", lambda: 1)
        client = engine_module.dask_client()
    yield client
    client.cluster.close()
    client.close()
    engine_module.dask_client.cache_clear()


def test_nobody_else_sends_code_to_the_workers(workers):
    """Another account of the machine reaches the port, but has not the keys."""
    from distributed.comm import connect
    from distributed.security import Security
    from distributed.utils import sync

    async def tried(address: str, keys: dict) -> None:
        comm = await connect(address, timeout=5, **keys)
        await comm.write({"op": "identity", "reply": True})
        await comm.read()

    address = workers.scheduler.address
    own = workers.cluster.security.get_connection_args("client")
    strangers = Security.temporary().get_connection_args("client")
    sync(workers.loop, tried, address, own)
    for place, keys in ((address, strangers), (address.replace("tls:", "tcp:"), {})):
        with pytest.raises(OSError):
            sync(workers.loop, tried, place, keys)


def lstm(folder, seeds: int, images: int = 60) -> Request:
    return replace(fill(folder, images), attacker="lstm_bi", seeds=seeds)


def first_epoch(engine: Engine, run_id: str):
    """The run's row once its attacker has trained for an epoch."""
    return until(lambda: "epoch" in engine.workspace.run(run_id).message and engine.workspace.run(run_id), 90)


@NETWORK
def test_a_worker_trains_the_lstm_and_reports_its_epochs(tmp_path, engine, workers):
    (run_id,) = submit(engine, lstm(tmp_path, seeds=2))
    seen = [first_epoch(engine, run_id)]
    (row,) = engine.wait([run_id], on_change=lambda rows: seen.append(rows[0]), every=0.05)
    assert row.status == "finished" and engine.workspace.results()["encoder"].unique() == ["lstm_bi"]
    shares = [row.progress for row in seen]
    assert shares == sorted(shares) and len(set(shares)) >= 3
    assert len({found[0] for row in seen if (found := re.search(r"epoch \d+ of 20", row.message))}) >= 2
    assert worker_of(engine, run_id) != os.getpid()
    values = engine.workspace.results()["value"]
    assert np.isfinite(values).all() and len(values) == 2


def worker_of(engine: Engine, run_id: str) -> int:
    (line,) = [line for line in messages(engine, run_id) if line.startswith("started in process")]
    return int(line.rsplit(" ", 1)[1])


@NETWORK
def test_a_run_on_a_worker_stops_within_five_seconds(tmp_path, engine, workers):
    (run_id,) = submit(engine, lstm(tmp_path, seeds=50))
    first_epoch(engine, run_id)
    assert engine.cancel(run_id) and status(engine, run_id) == "cancelled"
    until(lambda: messages(engine, run_id)[-1] == "stopped", 5)
    assert rows_of(engine, run_id) == (0, 0)


def keep_each_epoch() -> None:
    from capbias_core.attackers import checkpoints

    checkpoints.SECONDS_BETWEEN, checkpoints.SHARE_OF_TIME = 0.0, 1e9


def evidence(engine: Engine, run_id: str) -> list:
    """Every number of a run, to the last digit."""
    with sqlite3.connect(engine.workspace.database) as db:
        tables = [db.execute(f"SELECT * FROM {name} WHERE run_id=?", (run_id,)).fetchall() for name in TABLES]
    db.close()
    return tables


@NETWORK
def test_a_killed_worker_leaves_nothing_half_and_its_run_goes_on(tmp_path, engine, workers):
    workers.run(keep_each_epoch)
    request = lstm(tmp_path, seeds=1)
    (run_id,) = submit(engine, request)
    kept = engine.workspace.checkpoints / run_id
    until(lambda: list(kept.glob("*.pt")) and "epoch" in engine.workspace.run(run_id).message, 90)
    until(lambda: epoch_of(engine.workspace.run(run_id).message) >= 5, 90)
    worker = worker_of(engine, run_id)
    os.kill(worker, signal.SIGKILL)
    until(lambda: status(engine, run_id) == "died", 20)
    assert "repeat the run" in engine.workspace.run(run_id).message and rows_of(engine, run_id) == (0, 0)
    assert list(kept.glob("*.pt"))
    assert submit(engine, request) == [run_id]
    (row,) = engine.wait([run_id])
    assert row.status == "finished" and worker_of(engine, run_id) != worker
    assert rows_of(engine, run_id) == (2, 1)
    until(lambda: not kept.exists())
    assert next(filter(None, map(epoch_of, messages(engine, run_id)))) >= 5, "it began anew"
    went_on = evidence(engine, run_id)
    engine.workspace.forget(run_id)
    assert submit(engine, request) == [run_id] and engine.wait([run_id])
    assert next(filter(None, map(epoch_of, messages(engine, run_id)))) < 5
    assert evidence(engine, run_id) == went_on


def epoch_of(message: str) -> int:
    found = re.search(r"epoch (\d+) of 20", message)
    return int(found[1]) if found else 0
