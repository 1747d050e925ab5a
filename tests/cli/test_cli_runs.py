"""Plans and the queue in a terminal: run, runs, cancel, resume."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.errors import CapbiasError
from capbias_core.runs.plan_file import PlanFile, parse_plan, plan_text, read_plan
from capbias_core.workspace.store import Workspace
from tests.cli.test_cli import write_files

PLAN = """
collection = "mine"
captions = ["strong.json"]
labels = "attributes.csv"
references = "human.json"

[[measure]]
attribute = "gender"
metrics = ["lic"]
seeds = 2

[[measure]]
attribute = "gender"
metrics = ["error"]
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """Files and a plan in a folder; the current folder is another, so that files are found beside the plan."""
    (tmp_path / "files").mkdir()
    write_files(tmp_path / "files")
    (tmp_path / "files" / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    return tmp_path


def workspace(here: Path) -> Workspace:
    return Workspace(here / "home")


def ids(here: Path) -> list[str]:
    return [run.run_id for run in workspace(here).runs()]


@pytest.mark.long
def test_a_plan_is_run_once_and_kept(here, capsys):
    assert cli.main(["run", "files/plan.toml", "--output", "rows.csv"]) == 0
    rows = pd.read_csv("rows.csv")
    assert set(rows["metric"]) == {"LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", "error"}
    assert set(rows["seeds"]) == {0, 2} and set(rows["model"]) == {"strong"}
    assert workspace(here).collections() == ["mine"]
    first = {run.run_id: run.created for run in workspace(here).runs()}
    assert cli.main(["run", "files/plan.toml", "--output", "again.csv"]) == 0
    assert {run.run_id: run.created for run in workspace(here).runs()} == first, "a run is not made again"
    assert Path("again.csv").read_bytes() == Path("rows.csv").read_bytes()
    capsys.readouterr()
    assert cli.main(["run", "status", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["status"] for row in listed} == {"finished"} and {row["progress"] for row in listed} == {1}
    assert any(row["what"].startswith("strong: ") and "2 seeds" in row["what"] for row in listed)
    assert all(row["seconds"] >= 0 for row in listed)


def test_check_says_what_would_run_and_runs_nothing(here, capsys):
    assert cli.main(["run", "files/plan.toml", "--check"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2 and "strong: lic, ngram" in printed.out
    assert "dropped: Both 2" in printed.err and ids(here) == []


def queued(here: Path) -> list[str]:
    """The runs of the plan, queued by another process that lives."""
    from capbias_core.runs.plan import plan
    from capbias_core.runs.plan_file import keep_plan

    place = workspace(here)
    read = read_plan(here / "files" / "plan.toml")
    for request in keep_plan(place, read, here / "files", print):
        for spec in plan(place, request):
            place.enqueue(spec, "mine", "of another process")
    return ids(here)


@pytest.mark.long
def test_runs_are_cancelled_and_resumed_by_the_beginning_of_their_ids(here, capsys):
    first, second = queued(here)
    assert cli.main(["run", "cancel", first[:6]]) == 0
    assert f"{first} cancelled: strong" in capsys.readouterr().out
    assert workspace(here).run(first).status == "cancelled" and workspace(here).run(second).status == "queued"
    assert cli.main(["run", "status", "--status", "cancelled"]) == 0
    assert first in (printed := capsys.readouterr().out) and second not in printed
    assert cli.main(["run", "resume", second]) == 2
    assert "still under way" in capsys.readouterr().err
    assert cli.main(["run", "cancel", "--all"]) == 0
    assert cli.main(["run", "resume", first]) == 0
    assert workspace(here).run(first).status == "finished" and workspace(here).run(second).status == "cancelled"
    assert cli.main(["run", "resume", "--all"]) == 0
    assert {run.status for run in workspace(here).runs()} == {"finished"}
    capsys.readouterr()
    assert cli.main(["run", "resume", "--all"]) == 0
    assert "no run failed, died or was cancelled" in capsys.readouterr().err
    assert cli.main(["run", "cancel", first]) == 2
    assert "finished: nothing to cancel" in capsys.readouterr().err
    assert cli.main(["run", "resume", first]) == 2


BAD = {
    "no run": (["run", "cancel"], "--all"),
    "ids and all": (["run", "cancel", "a", "--all"], "--all"),
    "an unknown run": (["run", "resume", "zz"], "run 'zz'"),
    "an unknown status": (["run", "status", "--status", "done"], "--status 'done'"),
    "no plan": (["run", "nowhere.toml"], "nowhere.toml"),
    "no bundle": (["reproduce", "files/human.json"], "human.json"),
    "a tolerance below 0": (["reproduce", "b.zip", "--tolerance=-1"], "--tolerance is -1"),
    "a bundle to stdout": (["export", "--collection", "x", "--format", "bundle"], "needs --output"),
    "rows without data": (["export", "--collection", "x", "--without-data"], "--without-data fits --format bundle"),
}


@pytest.mark.parametrize(("argv", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(here, capsys, argv, message):
    assert cli.main(argv) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: ") and message in last


WRONG = {
    "no TOML": ("collection = ", "cannot be read"),
    "no measure": ('collection = "a"', r"has no \[\[measure\]\]"),
    "an unknown key": ('captoins = "a"\n' + PLAN, "the key 'captoins'. Did you mean captions"),
    "no attribute": ("[[measure]]\nseeds = 2", "measure 1 has no attribute"),
    "a text for a number": ('[[measure]]\nattribute = "x"\nseeds = "two"', "seeds is 'two', which is not a whole"),
    "an unknown choice": ('[[measure]]\nattribute = "gender"\nseed = 2', "the key 'seed'. Did you mean seeds"),
    "no file of a captioner": ("[captions]\nsat = {}\n" + PLAN[PLAN.index("[["):], "sat has no file"),
    "two files of one name": (PLAN.replace('"strong.json"', '"a/x.json", "b/x.json"'), "captions.*x"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_plan_is_one_error(text, message):
    with pytest.raises(CapbiasError, match=message):
        parse_plan(text, "plan.toml")


def test_a_plan_is_read_back_as_it_was_written():
    read = parse_plan(
        PLAN.replace('["strong.json"]', '{ "a b" = { file = "s.json", trained_on_references = true } }'), ""
    )
    assert read.trained == {"a b": True} and read.files["captions"] == {"a b": "s.json"}
    assert read.requests[0].seeds == 2 and read.requests[1].seeds is None
    request = replace(
        read.requests[0],
        captions=("a b", 'quote"d'),
        table="labels",
        references="human",
        options={"alignment": {"item": "0a", "delta": 0.25, "name": "glove"}, "device": "cpu"},
    )
    plan = PlanFile("c", {**read.files, "labels": {"labels": "x.csv"}}, (request,), {}, read.trained)
    again = parse_plan(plan_text(plan), "")
    assert again.requests[0].options == request.options and again.requests[0].captions == request.captions
    assert plan_text(again) == plan_text(plan)


def test_rows_come_in_the_order_of_the_plan_whichever_run_ended_first(here):
    head, _, counted = PLAN.replace('["strong.json"]', '["strong.json", "weak.json"]').split("[[measure]]")
    (here / "files" / "plan.toml").write_text(f"{head}[[measure]]{counted}")
    assert cli.main(["run", "files/plan.toml", "--output", "rows.csv"]) == 0
    rows = pd.read_csv("rows.csv").drop(columns="run_id")
    assert rows["model"].tolist() == ["strong", "weak"]
    place = workspace(here)
    place.forget(next(run.run_id for run in place.runs() if run.spec.model == "strong"))
    assert cli.main(["run", "files/plan.toml", "--output", "rows.csv"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv("rows.csv").drop(columns="run_id"), rows)
