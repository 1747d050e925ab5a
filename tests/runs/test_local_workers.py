"""An Executor of processes: each call once, in order, and a process that dies loses its call alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError
from functools import partial
from pathlib import Path

import psutil
import pytest

from capbias_core.runs import local_workers
from capbias_core.runs.local_workers import GPUS, LocalWorkers, light_slots, torch_environments, visible_gpus
from tests.runs.test_engine import until

ROOT = Path(__file__).resolve().parents[2]


class Unsendable(Exception):
    """An error that pickle cannot make again."""

    def __init__(self, one: int, two: int):
        super().__init__(f"{one}, {two}")


def fail() -> None:
    raise Unsendable(1, 2)


@pytest.fixture
def start():
    """Makes workers that end with the test."""
    made: list[LocalWorkers] = []

    def workers(*environments) -> LocalWorkers:
        made.append(LocalWorkers(environments))
        return made[-1]

    yield workers
    for executor in made:
        executor.shutdown(cancel_futures=True)


@pytest.mark.long
def test_a_slot_computes_here_or_in_a_process_with_its_environment(start):
    assert start(None).submit(os.getpid).result(60) == os.getpid()
    workers = start({"CAPBIAS_TEST": "1"})
    pid = workers.submit(os.getpid).result(60)
    assert workers.submit(os.getenv, "CAPBIAS_TEST").result(60) == "1" and pid != os.getpid()
    assert workers.submit(print, "no answer").result(60) is None
    with pytest.raises(ValueError, match="invalid literal"):
        workers.submit(int, "x").result(60)
    with pytest.raises(RuntimeError, match="Unsendable: 1, 2"):
        workers.submit(fail).result(60)
    assert workers.submit(os.getpid).result(60) == pid


@pytest.mark.long
def test_a_process_that_dies_loses_its_call_alone(start):
    workers = start({}, {})
    other = workers.submit(time.sleep, 1)
    with pytest.raises(BrokenExecutor):
        workers.submit(signal.raise_signal, signal.SIGKILL).result(60)
    assert other.result(60) is None
    pid = workers.submit(os.getpid).result(60)
    os.kill(pid, signal.SIGKILL)  # while it has nothing to do
    until(lambda: [process.pid for process in workers._processes.values() if process.poll()] == [pid])
    assert pid not in {workers.submit(os.getpid).result(60) for _ in range(3)}


@pytest.mark.long
def test_shutdown_waits_or_kills(start, monkeypatch):
    monkeypatch.setattr(local_workers, "STOP_SECONDS", 0.2)
    waiting, killing = start({}), start({})
    slow = waiting.submit(time.sleep, 0.5)
    waiting.shutdown()
    assert slow.result(0) is None
    running, queued = killing.submit(time.sleep, 600), killing.submit(time.sleep, 600)
    until(running.running)
    killing.shutdown(cancel_futures=True)
    with pytest.raises(BrokenExecutor):
        running.result(0)
    with pytest.raises(CancelledError):
        queued.result(0)
    with pytest.raises(RuntimeError):
        killing.submit(os.getpid)


PARENT = """
import os, time
from capbias_core.runs.local_workers import LocalWorkers
workers = LocalWorkers([{}])
print(workers.submit(os.getpid).result(), flush=True)
workers.submit(time.sleep, 600)
"""


@pytest.mark.long
def test_a_process_ends_with_the_one_that_started_it():
    """In the middle of a call, too, for which the end of the interpreter does not wait."""
    code = f"{PARENT}time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait(60)
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 30)


@pytest.mark.parametrize(
    ("runs", "seconds", "cores", "gigabytes", "slots"),
    [(10, 60, 4, 99, 4), (3, 60, 4, 99, 3), (10, 5, 4, 99, 1), (10, 60, 4, 4, 2)],
)
def test_slots_by_runs_time_cores_and_memory(monkeypatch, runs, seconds, cores, gigabytes, slots):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(local_workers, "free_memory", lambda: gigabytes * 1e9)
    assert light_slots(runs, seconds) == slots


@pytest.mark.parametrize(
    ("named", "gpus", "slots"),
    [("2,5", ["2", "5"], ["2", "5"]), (" GPU-1a ", ["GPU-1a"], [None]), ("", [], [None]), ("-1", [], [None])],
)
def test_a_slot_per_gpu_that_is_left_visible(monkeypatch, named, gpus, slots):
    monkeypatch.setenv(GPUS, named)
    assert visible_gpus() == gpus
    assert [environment.get(GPUS) for environment in torch_environments()] == slots


def test_shutdown_does_not_wait_for_a_call_that_a_slot_took_meanwhile(monkeypatch):
    """The queue said that it had a call, and a slot took it before shutdown did."""
    workers = LocalWorkers([None])
    monkeypatch.setattr(workers._calls, "empty", lambda: False)
    ending = threading.Thread(target=partial(workers.shutdown, cancel_futures=True), daemon=True)
    ending.start()
    ending.join(20)
    assert not ending.is_alive()
