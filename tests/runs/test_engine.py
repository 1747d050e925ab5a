"""The engine: every run ends in words, is computed once, and can be asked for again however it ended."""

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Outcome
from capbias_core.runs import engine as engine_module
from capbias_core.runs import run as run_module
from capbias_core.runs.engine import Engine, torch_executor, unfinished
from capbias_core.runs.plan import Request, plan
from capbias_core.types import Result
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.disks import small_disk

pytestmark = pytest.mark.torch

PROCESSES = multiprocessing.get_context("spawn")


def fill(folder, images: int = 40, models=("m",)) -> Request:
    """Small captions that give their label away, in the collection `c`."""
    workspace = Workspace(folder)
    labels = ["A" if number % 2 else "B" for number in range(images)]
    table = pd.DataFrame({"image_id": range(images), "group": labels})
    rooms = ["kitchen" if label == "A" else "garage" for label in labels]
    sets = {model: table[["image_id"]].assign(caption=[f"{model} in {room}" for room in rooms]) for model in models}
    keep(workspace, labels=table, attribute="group", captions=sets)
    return Request("c", tuple(models), "labels", "group", ("lic",), seeds=2)


def submit(engine: Engine, request: Request) -> list[str]:
    return engine.submit(plan(engine.workspace, request), request.collection)


def until(condition, seconds: float = 120.0):
    """The first true value of a condition; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
    return value


def status(engine: Engine, run_id: str) -> str:
    return engine.workspace.run(run_id).status


def messages(engine: Engine, run_id: str) -> list[str]:
    return [message for _, message in engine.workspace.log_of(run_id)]


def process_of(engine: Engine, run_id: str) -> int:
    return int(next(text for text in messages(engine, run_id) if text.startswith("started in")).rsplit(" ", 1)[1])


def evidence(engine: Engine, run_id: str) -> list:
    """Every number of a run, to the last digit: its results and its arrays."""
    queries = (f"SELECT * FROM {table} WHERE run_id=?" for table in ("results", "arrays"))
    with closing(sqlite3.connect(engine.workspace.database)) as db:
        return [db.execute(query, (run_id,)).fetchall() for query in queries]


@pytest.fixture
def request_(tmp_path) -> Request:
    return fill(tmp_path)


@pytest.fixture
def engine(tmp_path):
    made = Engine(tmp_path)
    yield made
    made.cancel_all()
    made.close()


class Gate:
    """Stands for run_one: reports a third, then waits, reporting on, until it is opened."""

    def __init__(self, monkeypatch):
        self.started: list[str] = []
        self.opened, self.stopped = threading.Event(), threading.Event()
        monkeypatch.setattr(run_module, "run_one", self)
        monkeypatch.setattr(run_module, "SECONDS_BETWEEN_NOTES", 0.0)

    def __call__(self, workspace, spec, progress) -> Outcome:
        self.started.append(spec.model)
        try:
            while not self.opened.is_set():
                progress(1 / 3, "a third")
                time.sleep(0.02)
        except BaseException:
            self.stopped.set()
            raise
        return Outcome(results=[Result("group", spec.model, "LIC_M", 25.0)], arrays={"model": b""}, notes=("note",))


@pytest.fixture
def gate(monkeypatch):
    made = Gate(monkeypatch)
    yield made
    made.opened.set()


# how runs end


def raising(error: BaseException):
    def run_one(*_):
        raise error

    return run_one


def hang(workspace, spec, progress) -> Outcome:
    while True:
        progress(0.5, "half")
        time.sleep(0.02)


def kill_this_process(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def unwritable(*_) -> Outcome:
    return Outcome(results=[Result("group", "m", "LIC_M", 25.0)], arrays={"model": object()})


RUN_ONE = run_module.run_one
ENDS = {
    "finished": (RUN_ONE, "finished", "finished"),
    "refused": (raising(CapbiasError("3 are too few.", "Load more.")), "failed", "3 are too few. Load more."),
    "broken": (raising(ZeroDivisionError("by 0")), "failed", "ZeroDivisionError: by 0 (runs/run.py, line "),
    "unwritable": (unwritable, "failed", "Error"),
    "cancelled": (hang, "cancelled", "cancelled"),
    "killed": (kill_this_process, "died", "repeat the run"),
}


def with_run_one(run_one, folder: str, run_id: str, token: str) -> None:
    """`execute` with another run_one, in whatever process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_module, "run_one", run_one)
        run_module.execute(folder, run_id, token)


class Elsewhere:
    """An executor that hands each `execute` with another run_one to workers."""

    slots = 1

    def __init__(self, workers, run_one):
        self.workers, self.run_one = workers, run_one

    def submit(self, function, *args):
        return self.workers.submit(with_run_one, self.run_one, *args)


@pytest.mark.parametrize("end", [pytest.param(end, marks=pytest.mark.long) if end == "killed" else end for end in ENDS])
def test_every_end_is_noted_leaves_nothing_half_and_can_be_repeated(engine, request_, monkeypatch, end):
    run_one, ending, message = ENDS[end]
    if end == "killed":
        engine._light.environments = [{}]  # a process beside this one
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_light", Elsewhere(engine._light, run_one))
        (run_id,) = submit(engine, request_)
        if end == "cancelled":
            until(lambda: engine.workspace.run(run_id).progress)
            assert engine.cancel(run_id) and not engine.cancel(run_id)
        (row,) = engine.wait([run_id])
    assert (row.status, message in row.message) == (ending, True), row.message
    assert (process_of(engine, run_id) != os.getpid()) == (end == "killed")
    if ending == "finished":
        assert row.progress == 1 and row.created <= row.started <= row.finished
        assert submit(engine, request_) == [] == Engine(engine.folder).submit([row.spec], "c")
        return
    assert evidence(engine, run_id) == [[], []] and [run.run_id for run in unfinished(engine.workspace)] == [run_id]
    old = replace(row.spec, version=0)  # its numbers would differ
    engine.workspace.enqueue(old, "c", "t")
    engine.workspace.end(old.run_id, "failed", "broken", "t")
    assert engine.repeat_all() == 1 and engine.wait([run_id])[0].status == "finished"
    assert len(evidence(engine, run_id)[0]) == 2 and engine.repeat_all() == 0


def submit_and_hang(folder: str, request: Request) -> None:
    run_module.run_one = hang
    submit(Engine(folder), request)
    time.sleep(600)


@pytest.mark.long
def test_a_run_whose_process_is_killed_is_shown_as_died_and_taken_over(tmp_path, engine, request_):
    process = PROCESSES.Process(target=submit_and_hang, args=(str(tmp_path), request_), daemon=True)
    process.start()
    (spec,) = plan(engine.workspace, request_)
    until(lambda: engine.workspace.run(spec.run_id) and status(engine, spec.run_id) == "running")
    assert submit(engine, request_) == []
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert status(engine, spec.run_id) == "died" and evidence(engine, spec.run_id) == [[], []]
    assert submit(engine, request_) == [spec.run_id]
    assert engine.wait([spec.run_id])[0].status == "finished"


# progress and cancelling


def test_progress_is_seen_by_others_and_all_runs_are_cancelled_at_once(tmp_path, engine, gate):
    """One under way, two that wait; and one that another process has queued, as in a terminal."""
    first, *waiting = submit(engine, fill(tmp_path, models=("a", "b", "c")))
    other = Workspace(engine.folder)  # as another tab or process reads it
    row = until(lambda: other.run(first).progress and other.run(first))
    assert (row.status, row.progress, row.message) == ("running", pytest.approx(1 / 3), "a third")
    assert {status(engine, run_id) for run_id in waiting} == {"queued"}
    until(lambda: messages(engine, first)[-1] == "a third")
    assert messages(engine, first).count("a third") == 1
    elsewhere = replace(row.spec, model="elsewhere")
    engine.workspace.enqueue(elsewhere, "c", "of another engine")
    assert engine.cancel_all() == 4 and engine.cancel_all() == 0
    assert {run.status for run in engine.workspace.runs()} == {"cancelled"} and gate.stopped.wait(5)
    until(lambda: not engine._runs)
    assert gate.started == ["a"]


def test_no_run_is_left_waiting_if_ctrl_c_comes_while_it_is_queued(tmp_path, engine, gate, monkeypatch):
    enqueue = Workspace.enqueue

    def interrupted(self, spec, *given) -> bool:
        queued = enqueue(self, spec, *given)
        if spec.model == "b":
            raise KeyboardInterrupt
        return queued

    monkeypatch.setattr(Workspace, "enqueue", interrupted)
    with pytest.raises(KeyboardInterrupt):
        submit(engine, fill(tmp_path, models=("a", "b", "c")))
    engine.close()
    assert {run.spec.model: run.status for run in engine.workspace.runs()} == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.long
@pytest.mark.parametrize(("freed", "ending"), [("before", "finished"), ("after", "failed"), ("never", "cancelled")])
def test_a_full_disk(tmp_path, gate, freed, ending):
    """Notes of progress are left out. An end that cannot be written is known here, and noted when there is space.

    freed: when there is space again, before or after the end of the run.
    """
    with small_disk(tmp_path / "disk") as disk:
        engine, request = Engine(disk.folder / "home"), fill(disk.folder / "home")
        (run_id,) = submit(engine, request)
        until(lambda: engine.workspace.run(run_id).progress)
        disk.fill()
        time.sleep(0.2)
        if freed == "before":
            disk.free()
        if ending == "cancelled":
            assert engine.cancel(run_id) and gate.stopped.wait(5)
        gate.opened.set()
        (row,) = engine.wait([run_id])
        assert row.status == ending and ("no space left" in row.message) == (ending == "failed")
        if freed == "after":
            disk.free()
            until(lambda: engine.workspace.run(run_id).finished)
            assert submit(engine, request) == [run_id] and engine.wait([run_id])[0].status == "finished"
        closing_ = threading.Thread(target=engine.close, daemon=True)
        closing_.start()
        closing_.join(60)
        assert not closing_.is_alive(), "it waits for what cannot be written"


def test_an_engine_that_closes_leaves_the_workers_of_another(tmp_path, engine, request_, monkeypatch):
    """They end with the last engine; the run of the other one was cancelled, and told as died."""
    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    other = Engine(tmp_path / "other")
    fill(tmp_path / "other")
    (theirs,) = submit(other, fill(tmp_path / "other"))
    (ours,) = submit(engine, request_)
    other.close()
    assert status(other, theirs) == "cancelled"
    assert [row.status for row in engine.wait([ours])] == ["finished"]


# a Dask cluster


@pytest.fixture
def cluster(monkeypatch):
    """A scheduler and a worker process, to which the engine sends what needs torch: here, all."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as made:
        monkeypatch.setenv("CAPBIAS_SCHEDULER", made.scheduler_address)
        monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
        yield made
        engine_module._close_torch_workers()


def hang_once(flag: str, workspace, spec, progress) -> Outcome:
    if not os.path.exists(flag):
        open(flag, "x").close()
        hang(workspace, spec, progress)
    return RUN_ONE(workspace, spec, progress)


@pytest.mark.long
def test_a_cluster_computes_cancels_and_repeats_what_a_lost_worker_had(tmp_path, engine, cluster, monkeypatch):
    (finished,) = submit(engine, fill(tmp_path, models=("m",)))
    assert engine.wait([finished])[0].status == "finished"
    worker = process_of(engine, finished)
    assert worker in torch_executor()._client.run(os.getpid).values()
    hanging = Elsewhere(torch_executor(), partial(hang_once, str(tmp_path / "flag")))
    monkeypatch.setattr(engine_module, "torch_executor", lambda: hanging)
    (cancelled,) = submit(engine, fill(tmp_path, models=("n",)))
    until(lambda: engine.workspace.run(cancelled).progress)
    assert engine.cancel(cancelled)
    until(lambda: messages(engine, cancelled)[-1] == "stopped")
    assert status(engine, cancelled) == "cancelled" and evidence(engine, cancelled) == [[], []]
    (tmp_path / "flag").unlink()
    (lost,) = submit(engine, fill(tmp_path, models=("o",)))
    until(lambda: engine.workspace.run(lost).progress)
    os.kill(worker, signal.SIGKILL)
    assert engine.wait([lost])[0].status == "finished", "the scheduler gave it to the worker's successor"
    assert len({text for text in messages(engine, lost) if text.startswith("started in")}) == 2


def test_an_engine_closes_though_a_call_never_ends(tmp_path, engine, monkeypatch):
    """As on a cluster whose client is closed."""

    class Silent(Executor):
        def submit(self, *_):
            future = Future()
            future.set_running_or_notify_cancel()
            return future

    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    monkeypatch.setattr(engine_module, "torch_executor", Silent)
    (run_id,) = submit(engine, fill(tmp_path))
    closing_ = threading.Thread(target=engine.close, daemon=True)
    closing_.start()
    closing_.join(30)
    assert not closing_.is_alive() and status(engine, run_id) == "cancelled"


def test_without_a_scheduler_nothing_is_queued_and_what_is_finished_still_answers(engine, request_, monkeypatch):
    (done,) = submit(engine, request_)
    engine.wait([done])
    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    monkeypatch.setenv("CAPBIAS_SCHEDULER", "tcp://127.0.0.1:1")
    monkeypatch.setattr("capbias_core.errors.installed", lambda module: module != "distributed")
    assert submit(engine, request_) == []
    with sentences.raises(CapbiasError):
        submit(engine, replace(request_, seeds=request_.seeds + 1))
    assert [run.run_id for run in engine.workspace.runs()] == [done]
