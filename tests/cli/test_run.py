"""`run`: plans, and the runs of a workspace."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.cli import run as running
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS
from capbias_core.runs.plan import plan
from capbias_core.runs.plan_file import keep_plan, parse_plan, plan_text, read_plan
from capbias_core.workspace.ingest import File
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.cli.test_cli import write_files
from tests.collections_ import keep
from tests.orphans import ended, give

PLAN = """
collection = "mine"
captions = ["strong.json", "weak.json"]
labels = "attributes.csv"
references = "human.json"

[[measure]]
attribute = "gender"
metrics = ["lic"]
captions = ["strong"]
seeds = 2

[[measure]]
attribute = "gender"
metrics = ["error"]
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Files and a plan in a folder; the current folder is another, so that files are read beside the plan."""
    (tmp_path / "files").mkdir()
    write_files(tmp_path / "files")
    (tmp_path / "files" / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    return tmp_path


def runs(here: Path) -> dict[str, str]:
    """The status of each run."""
    return {run.run_id: run.status for run in Workspace(here / "home").runs()}


@pytest.mark.long
def test_a_plan_is_run_once_and_its_rows_are_in_its_order(here, capsys):
    assert cli.main(["run", "files/plan.toml", "--check"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3 and runs(here) == {}
    assert cli.main(["run", "files/plan.toml", "--output", "rows.csv"]) == 0
    rows = pd.read_csv("rows.csv")
    lic = ["LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", "error"]
    assert list(zip(rows["model"], rows["metric"], strict=True)) == [("strong", m) for m in lic] + [("weak", "error")]
    assert set(rows["seeds"]) == {0, 2} and Workspace(here / "home").collections() == ["mine"]
    first = {run.run_id: run.created for run in Workspace(here / "home").runs()}
    assert cli.main(["run", "files/plan.toml", "--output", "again.csv"]) == 0
    assert {run.run_id: run.created for run in Workspace(here / "home").runs()} == first, "a run is not repeated"
    assert Path("again.csv").read_bytes() == Path("rows.csv").read_bytes()
    capsys.readouterr()
    assert cli.main(["run", "status", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["status"] for row in listed} == {"finished"} and {row["progress"] for row in listed} == {1}
    assert {row["captioner"] for row in listed} == {"strong", "weak"}
    # the first captioner's run ends last now
    Workspace(here / "home").forget(next(row["run_id"] for row in listed if row["measure"] == "ratio_error"))
    assert cli.main(["run", "files/plan.toml", "--output", "rows.csv"]) == 0
    assert pd.read_csv("rows.csv")["model"].tolist() == rows["model"].tolist()


@pytest.mark.long
def test_runs_are_cancelled_and_resumed_by_the_beginning_of_their_ids(here, capsys):
    store = Workspace(here / "home")
    for request in keep_plan(store, read_plan(here / "files" / "plan.toml"), here / "files", print):
        for spec in plan(store, request):
            store.enqueue(spec, "mine")
    first, second, *others = runs(here)
    assert cli.main(["run", "cancel", first[:6]]) == 0
    assert runs(here) == {first: "cancelled", second: "queued", **dict.fromkeys(others, "queued")}
    assert cli.main(["run", "status", "--status", "cancelled"]) == 0
    assert first in (printed := capsys.readouterr().out) and second not in printed
    assert cli.main(["run", "resume", second]) == 2  # still under way
    assert cli.main(["run", "cancel", "--all"]) == 0
    assert cli.main(["run", "resume", first]) == 0
    assert runs(here) == {first: "finished", second: "cancelled", **dict.fromkeys(others, "cancelled")}
    assert cli.main(["run", "resume", "--all"]) == 0 and set(runs(here).values()) == {"finished"}
    assert cli.main(["run", "resume", "--all"]) == 0
    assert cli.main(["run", "cancel", first]) == 2 and cli.main(["run", "resume", first]) == 2


@pytest.mark.long
def test_runs_of_another_process_are_waited_for_and_taken_over_if_it_dies(here, monkeypatch):
    store = Workspace(here / "home")
    requests = keep_plan(store, read_plan(here / "files" / "plan.toml"), here / "files", print)
    specs = [spec for request in requests for spec in plan(store, request)]
    for spec in specs:
        store.enqueue(spec, "mine")
    looks = []

    def look(_, rows) -> None:
        looks.append({row.status for row in rows})
        if len(looks) == 2:
            give(store, ended())

    monkeypatch.setattr(running.Shown, "__call__", look)
    assert [row.status for row in running.run_all(store, specs, "mine")] == ["finished"] * len(specs)
    assert looks[:3] == [{"queued"}, {"queued"}, {"died"}]


WRONG = {
    "an unknown key": 'captoins = "a"\n' + PLAN,
    "no attribute": "[[measure]]\nseeds = 2",
    "a text for a number": '[[measure]]\nattribute = "x"\nseeds = "two"',
    "an unknown choice": '[[measure]]\nattribute = "gender"\nseed = 2',
    "a choice twice": '[[measure]]\nattribute = "gender"\nseeds = 1\noptions = {seeds = 4}',
    "two files of one name": PLAN.replace('"strong.json", "weak.json"', '"a/x.json", "b/x.json"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_plan_is_one_error(name):
    with pytest.raises(CapbiasError) as raised:
        parse_plan(WRONG[name], "plan.toml")
    sentences.check(f"plan: {name}", str(raised.value))
    for text in ("collection = ", 'collection = "a"', "[captions]\nsat = {}\n" + PLAN[PLAN.index("[[") :]):
        with pytest.raises(CapbiasError):
            parse_plan(text, "plan.toml")


def test_a_plan_is_read_back_as_it_was_written():
    captions = (
        '{ "a b" = { file = "s.json", trained_on_references = true, caption_column = ["x"], rows = { l = "en" } } }'
    )
    read = parse_plan(PLAN.replace('captions = ["strong.json", "weak.json"]', f"captions = {captions}"), "")
    (captions,) = [file for file in read.files if file.kind == CAPTIONS]
    assert captions == File("s.json", CAPTIONS, "a b", {"caption": ("x",), "rows": {"l": "en"}}, trained=True)
    assert read.questions[0].seeds == 2 and read.questions[1].seeds is None
    request = replace(
        read.questions[0],
        captions=("a b", 'quote"d'),
        labels="labels",
        references="human",
        options={"alignment": {"item": "0a" * 8, "delta": 0.25, "name": "glove"}, "device": "cpu"},
    )
    written = replace(read, questions=(request,))
    again = parse_plan(plan_text(written), "")
    assert again == written
    assert plan_text(again) == plan_text(written)


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
    assert workspace.item("attributes", "t", "c").hash == table.hash and not workspace.frame(table.hash).empty
