"""Light runs in several processes: each run once, by whoever is free, and a lost process is said."""

import os
import threading

import pytest

from capbias_core.runs import beside
from capbias_core.runs.beside import at_once, share
from capbias_core.runs.engine import Engine, execute
from capbias_core.runs.plan import plan
from tests.runs.test_engine import fill, until


@pytest.mark.parametrize(
    ("runs", "seconds", "cores", "gigabytes", "processes"),
    [(10, 60, 4, 99, 4), (3, 60, 4, 99, 3), (1, 60, 4, 99, 1), (10, 5, 4, 99, 1), (10, 60, 4, 4, 2), (10, 60, 4, 1, 1)],
)
def test_processes_by_runs_time_cores_and_memory(monkeypatch, runs, seconds, cores, gigabytes, processes):
    pytest.importorskip("distributed")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(beside, "free_memory", lambda: gigabytes * 1e9)
    assert at_once(runs, seconds) == processes


def queued(folder, models) -> tuple[Engine, list[tuple[str, str]]]:
    engine = Engine(folder)
    specs = plan(engine.workspace, fill(folder, models=models))
    assert all(engine.workspace.enqueue(spec, "c", f"token{place}") for place, spec in enumerate(specs))
    return engine, [(spec.run_id, f"token{place}") for place, spec in enumerate(specs)]


def process_of(engine: Engine, run_id: str) -> str:
    return next(text for _, text in engine.workspace.log_of(run_id) if text.startswith("started in process"))


def test_runs_are_shared_with_a_process_beside_this_one(tmp_path):
    """The run that is taken here waits until the others are done, which only another process can do."""
    engine, runs = queued(tmp_path, ("a", "b", "c"))
    taken: list[str] = []

    def here(run_id: str, token: str) -> None:
        taken.append(run_id)
        others = [other for other, _ in runs if other not in taken]
        until(lambda: all(engine.workspace.run(other).status == "finished" for other in others), 60)
        execute(engine.folder, run_id, token)

    share(engine.folder, runs, 2, here, lambda *run: pytest.fail(f"lost {run}"))
    assert {run.status for run in engine.workspace.runs_of([run_id for run_id, _ in runs]).values()} == {"finished"}
    (first,) = taken
    assert process_of(engine, first) == f"started in process {os.getpid()}"
    (elsewhere,) = {process_of(engine, run_id) for run_id, _ in runs if run_id != first}
    assert elsewhere != process_of(engine, first)


def test_a_process_that_ends_loses_its_run_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(beside.sys, "executable", "false")
    lost, told, done = [], threading.Event(), []

    def note(*run: str) -> None:
        lost.append(run)
        told.set()

    def here(*run: str) -> None:
        assert told.wait(30)
        done.append(run)

    runs = [("a", "1"), ("b", "2"), ("c", "3")]
    share(str(tmp_path), runs, 2, here, note)
    assert len(lost) == 1 and sorted(lost + done) == runs


def test_what_breaks_a_run_is_not_taken_for_the_end_of_the_queue(tmp_path):
    def broken(*run: str) -> None:
        raise IndexError

    with pytest.raises(IndexError):
        share(str(tmp_path), [("a", "1")], 1, broken, lambda *run: pytest.fail(f"lost {run}"))


def test_the_engine_shares_what_is_worth_it_and_says_what_was_lost(tmp_path, monkeypatch):
    """A run that is lost is noted as died, so that it can be asked for again."""
    engine = Engine(tmp_path)
    specs = plan(engine.workspace, fill(tmp_path, models=("a", "b", "c")))
    monkeypatch.setattr("capbias_core.runs.engine.together", lambda workspace, own: len(own))
    monkeypatch.setattr(beside.sys, "executable", "false")
    monkeypatch.setattr(
        Engine,
        "_execute",
        lambda self, run_id, token: until(lambda: died(self)) and execute(self.folder, run_id, token),
    )
    rows = engine.wait(engine.submit(specs, "c"))
    assert sorted(row.status for row in rows) == ["died", "died", "finished"]
    assert {row.message for row in rows if row.status == "died"} == {
        "its process ended before the run did; repeat the run"
    }
    engine.close()


def died(engine: Engine) -> bool:
    return sum(run.status == "died" for run in engine.workspace.runs()) == 2
