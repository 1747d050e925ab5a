"""How long runs take: by the tables, by earlier runs of the same measure and attacker, and without jumps."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pandas as pd
import pytest

from capbias_core.attackers import ATTACKERS
from capbias_core.attackers.base import Seconds
from capbias_core.measures.registry import MEASURES
from capbias_core.question import Question
from capbias_core.runs import engine
from capbias_core.runs.engine import expected
from capbias_core.runs.plan import plan
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.orphans import any_run

START = engine.TORCH_START_SECONDS


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    """1,000 captions of `m`, 500 of `n`, 800 human ones; LIC takes no time without its attacker."""
    monkeypatch.setitem(MEASURES, "lic", replace(MEASURES["lic"], seconds=0.0))
    monkeypatch.setitem(MEASURES, "caption_scores", replace(MEASURES["caption_scores"], seconds=0.0))
    monkeypatch.setitem(ATTACKERS, "lstm", replace(ATTACKERS["lstm"], seconds=Seconds(10.0, 100.0)))
    monkeypatch.setitem(ATTACKERS, "ngram", replace(ATTACKERS["ngram"], seconds=Seconds(1.0, 1.0)))
    workspace = Workspace(tmp_path)
    images = [str(number) for number in range(1000)]
    labels = pd.DataFrame({"image_id": images, "gender": ["Female", "Male"] * 500})
    captions = pd.DataFrame({"image_id": images, "caption": "a caption"})
    people = pd.DataFrame({"image_id": images[:400] * 2, "caption": "a human one"})
    keep(workspace, "c", labels=labels, captions={"m": captions, "n": captions[:500]}, references=people)
    return workspace


def specs(workspace, attacker="lstm", references="", words=False, seeds=3, models=("m",)) -> list:
    request = Question("c", models, "labels", "gender", ("LIC_M",), references, attacker, seeds, words=words)
    return plan(workspace, request)


def finish(workspace, spec, took: float) -> None:
    """A finished run of so many seconds."""
    workspace.enqueue(spec, "c")
    assert workspace.claim(any_run) and workspace.finish(spec.run_id, [], {}, [])
    with closing(sqlite3.connect(workspace.database)) as db, db:
        db.execute("UPDATE runs SET started = finished - ? WHERE run_id = ?", (took, spec.run_id))


def test_by_the_tables(workspace):
    for asked, seconds in (
        ({}, [START + 10 * 3]),
        ({"models": ("n",)}, [START + 5 * 3]),
        ({"references": "human", "seeds": 1}, [START + 10, START + 18]),
        ({"words": True, "seeds": 1}, [START + 10, START + 100]),
        ({"attacker": "ngram"}, [3]),
    ):
        runs = specs(workspace, **asked)
        answer = expected(workspace, runs)
        assert [answer.each[spec.run_id] for spec in runs] == pytest.approx(seconds)
        assert answer.seconds == pytest.approx(sum(seconds)) and not answer.learned


def test_by_earlier_runs_of_the_same_measure_and_attacker(workspace):
    """Three runs took 2, 3 and 10 seconds per 1,000 captions and seed beside their start: 3 is their median."""
    (other,) = specs(workspace, models=("n",), seeds=5)
    for seeds, rate in ((1, 2), (2, 3), (4, 10)):
        finish(workspace, *specs(workspace, seeds=seeds), START + rate * seeds)
    answer = expected(workspace, [other])
    assert answer.learned and answer.seconds == pytest.approx(START + 3 * 5 / 2)
    mixed = expected(workspace, specs(workspace, words=True))
    assert not mixed.learned, "the second measure has not run yet"


def test_the_time_left_only_goes_down_while_runs_finish_in_another_time_than_expected(workspace):
    runs = specs(workspace, models=("m", "n"))
    for spec in runs:
        workspace.enqueue(spec, "c")
    asked = min(run.created for run in workspace.runs())
    answer = expected(workspace, runs, before=asked)
    left = [answer.left(workspace.runs())[1]]
    for spec, took in zip(runs, (1.0, 1e6), strict=True):
        workspace.claim(any_run)
        workspace.progress(spec.run_id, 0.5, "half")
        left.append(answer.left(workspace.runs())[1])
        finish(workspace, spec, took)
        assert expected(workspace, runs, before=asked) == answer
        left.append(answer.left(workspace.runs())[1])
    assert left == pytest.approx([55, 37.5, 20, 10, 0])
    assert expected(workspace, runs).learned
