"""The engine: every run ends in words, is computed once, and can be asked for again however it ended."""

import importlib.util
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import worker
from capbias_core.errors import CapbiasError
from capbias_core.language.device import GPUS, visible_gpus
from capbias_core.measures.base import Outcome
from capbias_core.question import Question
from capbias_core.runs import engine as engine_module
from capbias_core.runs.engine import Engine, dask_executor, light_slots, torch_environments, unfinished
from capbias_core.runs.plan import plan
from capbias_core.types import Result
from capbias_core.workspace.catalogue import this_process
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep
from tests.disks import small_disk
from tests.random_captions import WORDS

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
WITH_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "capbias_core.attackers.neural"))
NETWORK = pytest.mark.skipif(not WITH_TORCH, reason="torch is not installed")


def fill(folder, images: int = 40, models=("m",)) -> Question:
    """Small captions that give their label away, in the collection `c`."""
    workspace = Workspace(folder)
    labels = ["A" if number % 2 else "B" for number in range(images)]
    table = pd.DataFrame({"image_id": range(images), "group": labels})
    rooms = ["kitchen" if label == "A" else "garage" for label in labels]
    sets = {model: table[["image_id"]].assign(caption=[f"{model} in {room}" for room in rooms]) for model in models}
    keep(workspace, labels=table, attribute="group", captions=sets)
    return Question("c", tuple(models), "labels", "group", ("lic",), seeds=2)


def fill_slow(folder, models) -> Question:
    """Captions whose runs take some seconds each."""
    images, draw = 1000, random.Random(0)
    labels = pd.DataFrame({"image_id": range(images), "group": ["A", "B"] * (images // 2)})
    texts = [" ".join(draw.choices(WORDS, k=10)) for _ in range(images)]
    sets = {model: labels[["image_id"]].assign(caption=[f"{model} {text}" for text in texts]) for model in models}
    keep(Workspace(folder), labels=labels, attribute="group", captions=sets)
    return Question("c", tuple(models), "labels", "group", ("lic",), seeds=50)


def submit(engine: Engine, request: Question) -> list[str]:
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
def request_(tmp_path) -> Question:
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
        monkeypatch.setattr(worker, "run_one", self)
        monkeypatch.setattr(worker, "SECONDS_BETWEEN_NOTES", 0.0)

    def __call__(self, workspace, spec, progress) -> Outcome:
        self.started.append(spec.model)
        try:
            while not self.opened.is_set():
                progress(1 / 3, "a third")
                time.sleep(0.02)
        except BaseException:
            self.stopped.set()
            raise
        return Outcome(
            results=[Result(attribute="group", model=spec.model, metric="LIC_M", value=25.0)],
            arrays={"model": b""},
            notes=("note",),
        )


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


def unwritable(*_) -> Outcome:
    return Outcome(
        results=[Result(attribute="group", model="m", metric="LIC_M", value=25.0)], arrays={"model": object()}
    )


RUN_ONE = worker.run_one
ENDS = {
    "finished": (RUN_ONE, "finished", "finished"),
    "refused": (raising(CapbiasError("3 are too few.", "Load more.")), "failed", "3 are too few. Load more."),
    "broken": (raising(ZeroDivisionError("by 0")), "failed", "ZeroDivisionError: by 0 (worker.py, line "),
    "unwritable": (unwritable, "failed", "Error"),
    "cancelled": (hang, "cancelled", "cancelled"),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_is_noted_leaves_nothing_half_and_can_be_repeated(engine, request_, monkeypatch, end):
    run_one, ending, message = ENDS[end]
    with monkeypatch.context() as patched:
        patched.setattr(worker, "run_one", run_one)
        (run_id,) = submit(engine, request_)
        if end == "cancelled":
            until(lambda: engine.workspace.run(run_id).progress)
            assert engine.cancel(run_id) and not engine.cancel(run_id)
        (row,) = engine.wait([run_id])
    assert (row.status, message in row.message) == (ending, True), row.message
    assert process_of(engine, run_id) == os.getpid()
    if ending == "finished":
        assert row.progress == 1 and row.created <= row.started <= row.finished
        assert submit(engine, request_) == [] == Engine(engine.folder).submit([row.spec], "c")
        return
    assert evidence(engine, run_id) == [[], []] and [run.run_id for run in unfinished(engine.workspace)] == [run_id]
    old = replace(row.spec, version=0)  # its numbers would differ
    engine.workspace.enqueue(old, "c")
    engine.workspace.end(old.run_id, "failed", "broken")
    assert engine.repeat_all() == 1 and engine.wait([run_id])[0].status == "finished"
    assert len(evidence(engine, run_id)[0]) == 2 and engine.repeat_all() == 0


# worker processes


@pytest.fixture
def two_slots(monkeypatch):
    """Light runs are computed here and in one process."""
    monkeypatch.setattr(engine_module, "light_slots", lambda *_: 2)
    monkeypatch.setattr(engine_module, "light_environments", lambda: [{"CAPBIAS_TEST": "1"}])


@pytest.mark.long
def test_a_process_that_is_killed_loses_its_run_alone(tmp_path, engine, gate, two_slots):
    """Two engines share the process."""
    other = Engine(tmp_path / "other")
    submit(other, fill(tmp_path / "other"))
    request = fill_slow(tmp_path, ("a", "b", "c"))
    here, lost, waiting = submit(engine, request)
    until(lambda: status(engine, lost) == "running")
    other.close()
    assert [run.status for run in other.workspace.runs()] == ["cancelled"]
    assert submit(Engine(tmp_path), request) == []
    assert process_of(engine, here) == os.getpid() != process_of(engine, lost)
    os.kill(process_of(engine, lost), signal.SIGKILL)
    until(lambda: engine.workspace.run(lost).finished)
    assert engine.workspace.run(lost).message == "its process ended before the run did; repeat the run"
    assert evidence(engine, lost) == [[], []]
    gate.opened.set()
    assert [row.status for row in engine.wait([here, waiting])] == ["finished"] * 2
    assert submit(engine, request) == [lost] and engine.wait([lost])[0].status == "finished"


@pytest.mark.slow
def test_a_child_takes_runs_of_its_parent_alone_and_ends_with_it_or_idle(tmp_path):
    """The end of the parent is the end of the child's input."""
    workspace, python = Workspace(tmp_path), [sys.executable, "-m", "capbias_core.worker"]
    (long,) = plan(workspace, fill_slow(tmp_path, ("long",)))
    workspace.enqueue(long, "c")
    folder = json.dumps(str(workspace.folder)).encode() + b"\n"
    for parent in ("another process", this_process()):
        child = subprocess.Popen([*python, "light", parent], stdin=subprocess.PIPE, cwd=ROOT)
        child.stdin.write(folder)
        child.stdin.flush()
        if parent == this_process():
            until(lambda: workspace.run(long.run_id).status == "running")
        child.communicate(timeout=60)
        assert child.returncode == 0
    assert workspace.run(long.run_id).status == "died"
    idle = "from capbias_core import worker; worker.IDLE_SECONDS = 0.1; worker.main(['light', 'x'])"
    with subprocess.Popen([sys.executable, "-c", idle], stdin=subprocess.PIPE, cwd=ROOT) as child:
        assert child.wait(60) == 0


def other_process_claims(folder) -> subprocess.Popen:
    """A process that has the queued run of a workspace, until its input ends."""
    code = (
        f"from capbias_core.workspace.store import Workspace; Workspace({str(folder)!r}).claim(lambda _: True); input()"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)


@pytest.mark.long
def test_a_run_that_a_living_process_computes_is_not_computed_twice(tmp_path):
    """A call of a cluster that comes again takes only the run of a worker that was lost."""
    workspace = Workspace(tmp_path)
    (spec,) = plan(workspace, fill(tmp_path))
    workspace.enqueue(spec, "c")
    with other_process_claims(tmp_path):
        until(lambda: workspace.run(spec.run_id).status == "running")
        worker.execute(str(tmp_path), spec.run_id)
        assert workspace.run(spec.run_id).status == "running"
    worker.execute(str(tmp_path), spec.run_id)
    assert workspace.run(spec.run_id).status == "finished"


def test_workers_that_cannot_start_fail_their_runs(engine, request_, monkeypatch):
    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    monkeypatch.setattr(engine_module, "torch_environments", lambda: [{"PYTHONHOME": "/nowhere"}])
    (row,) = engine.wait(submit(engine, request_))
    assert row.status == "failed" and "ended with code 1" in row.message


@pytest.mark.parametrize(
    ("runs", "seconds", "cores", "gigabytes", "slots"),
    [(10, 60, 4, 99, 4), (3, 60, 4, 99, 3), (10, 5, 4, 99, 1), (10, 60, 4, 4, 2)],
)
def test_slots_by_runs_time_cores_and_memory(monkeypatch, runs, seconds, cores, gigabytes, slots):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(engine_module, "free_memory", lambda: gigabytes * 1e9)
    assert light_slots(runs, seconds) == slots


@pytest.mark.parametrize(
    ("named", "gpus", "slots"),
    [("2,5", ["2", "5"], ["2", "5"]), (" GPU-1a ", ["GPU-1a"], [None]), ("", [], [None]), ("-1", [], [None])],
)
def test_a_slot_per_gpu_that_is_left_visible(monkeypatch, named, gpus, slots):
    monkeypatch.setenv(GPUS, named)
    assert visible_gpus() == gpus
    assert [environment.get(GPUS) for environment in torch_environments()] == slots


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
    engine.workspace.enqueue(elsewhere, "c")
    assert engine.cancel_all() == 4 and engine.cancel_all() == 0
    assert {run.status for run in engine.workspace.runs()} == {"cancelled"} and gate.stopped.wait(5)
    until(lambda: not engine._started)
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


@pytest.mark.slow
def test_a_run_whose_worker_dies_on_a_full_disk_has_died(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    monkeypatch.setattr(engine_module, "wake_workers", lambda *_: "")
    with small_disk(tmp_path / "disk") as disk:
        home = disk.folder / "home"
        engine = Engine(home)
        (run_id,) = submit(engine, fill(home))
        with other_process_claims(home):
            until(lambda: status(engine, run_id) == "running")
            disk.fill()
        until(lambda: status(engine, run_id) == "died", 20)
        disk.free()
        until(lambda: engine.workspace.run(run_id).finished, 20)
        engine.close()


# a Dask cluster


@pytest.fixture
def cluster(monkeypatch):
    """A scheduler and a worker process, to which the engine sends what needs torch: here, all."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as made:
        monkeypatch.setenv("CAPBIAS_SCHEDULER", made.scheduler_address)
        monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
        yield made
        engine_module.end_workers()


def hang_once(flag: str, workspace, spec, progress) -> Outcome:
    if not os.path.exists(flag):
        open(flag, "x").close()
        hang(workspace, spec, progress)
    return RUN_ONE(workspace, spec, progress)


def execute_hanging_once(flag: str, folder: str, run_id: str) -> None:
    """`execute` in a process of the cluster, which hangs if there is no flag yet."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker, "run_one", partial(hang_once, flag))
        worker.execute(folder, run_id)


@pytest.mark.slow
def test_a_cluster_computes_cancels_and_repeats_what_a_lost_worker_had(tmp_path, engine, cluster, monkeypatch):
    (finished,) = submit(engine, fill(tmp_path, models=("m",)))
    assert engine.wait([finished])[0].status == "finished"
    process = process_of(engine, finished)
    assert process in dask_executor()._client.run(os.getpid).values()
    monkeypatch.setattr(engine_module, "execute", partial(execute_hanging_once, str(tmp_path / "flag")))
    (cancelled,) = submit(engine, fill(tmp_path, models=("n",)))
    until(lambda: engine.workspace.run(cancelled).progress)
    assert engine.cancel(cancelled)
    until(lambda: messages(engine, cancelled)[-1] == "stopped")
    assert status(engine, cancelled) == "cancelled" and evidence(engine, cancelled) == [[], []]
    (tmp_path / "flag").unlink()
    (lost,) = submit(engine, fill(tmp_path, models=("o",)))
    until(lambda: engine.workspace.run(lost).progress)
    os.kill(process, signal.SIGKILL)
    assert engine.wait([lost])[0].status == "finished", "the scheduler gave it to the worker's successor"
    assert len({text for text in messages(engine, lost) if text.startswith("started in")}) == 2
    monkeypatch.setattr(engine_module, "execute", without_folder)
    (row,) = engine.wait(submit(engine, fill(tmp_path, models=("p",))))
    assert row.status == "failed" and "is gone" in row.message


def without_folder(folder: str, run_id: str) -> None:
    """`execute` where the folder of the workspace has another path."""
    worker.execute(f"{folder}/nowhere", run_id)


def test_an_engine_closes_though_a_call_never_ends(tmp_path, engine, monkeypatch):
    """As on a cluster whose client is closed."""

    class Silent(Executor):
        def submit(self, *_):
            future = Future()
            future.set_running_or_notify_cancel()
            return future

    monkeypatch.setattr(engine_module, "needs_workers", lambda spec: True)
    monkeypatch.setattr(engine_module, "dask_executor", Silent)
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


# networks, in a process with torch


@pytest.mark.slow
@NETWORK
def test_a_killed_network_starts_again_and_gives_the_same_numbers(tmp_path, engine, monkeypatch):
    """The next run in the queue goes on in another process."""
    # Such small batches are quickest on one thread, whatever else the machine is doing.
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    request = replace(fill(tmp_path, 60, ("a", "b")), attacker="rnn", seeds=1)
    killed, other = submit(engine, request)
    until(lambda: engine.workspace.run(killed).progress)
    process = process_of(engine, killed)
    os.kill(process, signal.SIGKILL)
    until(lambda: status(engine, killed) == "died")
    assert evidence(engine, killed) == [[], []]
    assert submit(engine, request) == [killed]
    assert {row.status for row in engine.wait([killed, other])} == {"finished"}
    assert process_of(engine, other) != process
    repeated = evidence(engine, killed)
    engine.workspace.forget(killed)
    assert submit(engine, request) == [killed] and engine.wait([killed]) and evidence(engine, killed) == repeated
