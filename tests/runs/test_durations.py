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
        ({"references": "human", "seeds": 1}, [START + 10, START + 12]),
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


def test_balanced_and_labelled_captions_count_and_rows_of_files_do_not(workspace):
    """Of 600 labelled images 100 are of women: LIC_M reads 200 captions, all of them are explained. 400 have two human
    captions each, and 100 of these are of women: LIC reads 200 images with three captions."""
    images = [str(number) for number in range(600)]
    labels = pd.DataFrame({"image_id": images, "gender": ["Female"] * 100 + ["Male"] * 500})
    keep(workspace, "c", labels=labels)
    for asked, seconds in (
        ({}, [START + 2]),
        ({"words": True}, [START + 2, START + 60]),
        ({"references": "human"}, [START + 2, START + 6]),
    ):
        runs = specs(workspace, **asked, seeds=1)
        assert [expected(workspace, runs).each[spec.run_id] for spec in runs] == pytest.approx(seconds)


def test_the_time_left_follows_what_the_done_part_took(workspace, monkeypatch):
    """Two runs of 35 and 20 seconds by the tables. Until a quarter of the work is done, its pace counts in part."""
    clock = [1000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    runs = specs(workspace, models=("m", "n"))
    for spec in runs:
        workspace.enqueue(spec, "c")
    answer = expected(workspace, runs)
    assert answer.left(workspace.runs())[1] == pytest.approx(55)
    workspace.claim(any_run)
    clock[0] += 35
    assert answer.left(workspace.runs())[1] == pytest.approx(55), "no progress, no pace"
    workspace.progress(runs[0].run_id, 0.5, "half")
    assert answer.left(workspace.runs())[1] == pytest.approx(2 * 37.5), "17.5 of 55 seconds took 35"
    clock[0] += 35
    workspace.finish(runs[0].run_id, [], {}, [])
    assert answer.left(workspace.runs())[1] == pytest.approx(2 * 20)
    again = expected(workspace, runs[1:])
    assert again.learned and again.seconds == pytest.approx(START + 65 / 2), "a page that is drawn anew learns as well"
