"""Runs and inputs of a workspace that several processes use."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from dataclasses import asdict

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.cli import run as running
from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from tests.cli.test_cli import write_files
from tests.collections_ import keep
from tests.orphans import ENDED, give


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A workspace in which runs of two captioners are queued."""
    write_files(tmp_path)
    store = Workspace(tmp_path / "home")
    monkeypatch.setenv("CAPBIAS_HOME", str(store.folder))
    files = [str(tmp_path / name) for name in ("strong.json", "weak.json", "attributes.csv")]
    assert cli.main(["import", *files, "--collection", "mine"]) == 0
    for spec in asked(store):
        store.enqueue(spec, "mine")
    return store


def asked(store: Workspace) -> list[RunSpec]:
    return plan(store, Question("mine", ("strong", "weak"), "attributes", "gender", ("lic_m", "error"), seeds=2))


def statuses(store: Workspace) -> dict[str, str]:
    return {run.run_id: run.status for run in store.runs()}


@pytest.mark.long
def test_runs_are_cancelled_and_repeated_by_the_beginning_of_their_ids(here, tmp_path, capsys):
    first, second, *others = statuses(here)
    assert cli.main(["list", "--cancel", first[:6]]) == 0
    assert statuses(here) == {first: "cancelled", second: "queued", **dict.fromkeys(others, "queued")}
    assert cli.main(["list", "--repeat", second]) == 2  # still under way
    assert cli.main(["import", str(tmp_path / "strong.json"), "--collection", "other"]) == 0
    assert cli.main(["list", "--collection", "other", "--cancel", "all"]) == 0
    assert statuses(here)[second] == "queued"
    assert cli.main(["list", "--cancel", "all"]) == 0
    assert cli.main(["list", "--repeat", first]) == 0
    assert statuses(here) == {first: "finished", second: "cancelled", **dict.fromkeys(others, "cancelled")}
    assert cli.main(["list", "--repeat", "all"]) == 0 and set(statuses(here).values()) == {"finished"}
    assert cli.main(["list", "--cancel", first]) == 2 and cli.main(["list", "--repeat", first]) == 2
    capsys.readouterr()
    assert cli.main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert {(row["status"], row["progress"]) for row in listed} == {("finished", 1)}
    assert {row["captioner"] for row in listed} == {"strong", "weak"} and len(listed) == len(others) + 2


@pytest.mark.long
def test_runs_of_another_process_are_waited_for_and_taken_over_if_it_dies(here, monkeypatch):
    specs, looks = asked(here), []

    def look(rows, _to_come) -> tuple[float, str]:
        looks.append({row.status for row in rows})
        if len(looks) == 2:
            give(here, ENDED)
        return 0.0, ""

    monkeypatch.setattr(running, "progress_of", look)
    assert [row.status for row in running.run_all(here, specs, "mine")] == ["finished"] * len(specs)
    assert looks[:3] == [{"queued"}, {"queued"}, {"died"}]


def test_an_input_is_not_deleted_while_another_process_queues_its_run(tmp_path):
    workspace = Workspace(tmp_path)
    frame = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"]})
    table = keep(workspace, labels={"t": frame})["t"]
    other = sqlite3.connect(workspace.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    raised = []

    def delete() -> None:
        try:
            workspace.delete(table)
        except CapbiasError as error:
            raised.append(error)

    thread = threading.Thread(target=delete)
    thread.start()
    time.sleep(0.3)  # it has come as far as it can while the other writes
    spec = json.dumps(asdict(RunSpec("lic", 1, "m", labels={"table": table.hash})))
    now = time.time()
    row = ("r", "c", spec, "queued", "token", 0, "waiting", "[]", now, None, None, now)
    columns = "run_id, collection, spec, status, token, progress, message, notes, created, started, finished, heartbeat"
    other.execute(f"INSERT INTO runs ({columns}) VALUES ({', '.join('?' * len(row))})", row)
    other.execute("COMMIT")
    other.close()
    thread.join()
    assert len(raised) == 1
    assert workspace.item("labels", "t", "c").hash == table.hash and not workspace.frame(table.hash).empty
