"""How long runs take: by the tables of measures and attackers, then by what the done part took."""

from dataclasses import replace

import pandas as pd
import pytest

from capbias_core.attackers import ATTACKERS
from capbias_core.attackers.base import Seconds
from capbias_core.measures.registry import MEASURES
from capbias_core.question import Question
from capbias_core.runs.engine import TORCH_START_SECONDS as START
from capbias_core.runs.engine import expected
from capbias_core.runs.plan import plan
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.orphans import any_run


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


def test_balanced_and_labelled_captions_count_and_rows_of_files_do_not(workspace):
    """Then of 600 labelled images 100 are of women: LIC_M reads 200 captions, all of them are explained. 400 have two
    human captions each, and 100 of these are of women: LIC reads 200 images with three captions."""

    def check(asked: dict, *seconds: float) -> None:
        runs = specs(workspace, **asked)
        answer = expected(workspace, runs)
        assert [answer.each[spec.run_id] for spec in runs] == pytest.approx(seconds)
        assert answer.seconds == pytest.approx(sum(seconds))

    check({}, START + 10 * 3)
    check({"models": ("n",)}, START + 5 * 3)
    check({"references": "human", "seeds": 1}, START + 10, START + 12)
    check({"words": True, "seeds": 1}, START + 10, START + 100)
    check({"attacker": "ngram"}, 3)
    images = [str(number) for number in range(600)]
    keep(workspace, "c", labels=pd.DataFrame({"image_id": images, "gender": ["Female"] * 100 + ["Male"] * 500}))
    check({"seeds": 1}, START + 2)
    check({"seeds": 1, "words": True}, START + 2, START + 60)
    check({"seeds": 1, "references": "human"}, START + 2, START + 6)


def test_the_time_left_follows_what_the_done_part_took(workspace, monkeypatch):
    """Two runs of 35 and 20 seconds by the tables. Until a quarter of the work is done, its pace counts in part."""
    clock = [1000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    first, second = specs(workspace, models=("m", "n"))
    for spec in (first, second):
        workspace.enqueue(spec, "c")
    answer = expected(workspace, [first, second])
    assert answer.left(workspace.runs())[1] == pytest.approx(55)
    run = workspace.claim(any_run)
    clock[0] += 35
    assert answer.left(workspace.runs())[1] == pytest.approx(55), "no progress, no pace"
    workspace.progress(run, 0.5, "half")
    assert answer.left(workspace.runs()) == pytest.approx((17.5 / 55, 2 * 37.5)), "17.5 of 55 seconds took 35"
    clock[0] += 35
    workspace.finish(run, [], {})
    assert answer.left(workspace.runs())[1] == pytest.approx(2 * 20)
