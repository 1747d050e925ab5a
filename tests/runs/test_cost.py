"""What runs will take: from tables, by how much is read, and corrected by earlier runs of the same kind."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pandas as pd
import pytest

from capbias_core.analysis.encoder_view import plan_encoder_view
from capbias_core.attackers import ATTACKERS, Seconds
from capbias_core.measures.cost import START, TRAINED
from capbias_core.measures.registry import MEASURES
from capbias_core.present.sentence import cost_text
from capbias_core.runs.cost import expected
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

COLLECTION = "c"


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """300 images of women, 700 of men, 200 without a label; `m` has one caption of each, every other one the same; `n`
    only of the first 500. Two people wrote of the first 400."""
    found = Workspace(tmp_path)
    labels = pd.DataFrame({"image_id": list(map(str, range(1000))), "gender": ["Female"] * 300 + ["Male"] * 700})
    said = [(place, f"a caption {place if place % 2 else ''}") for place in range(1200)]
    human = [(place, f"number {place} {index}") for place in range(400) for index in range(2)]
    one, other, people = (pd.DataFrame(own, columns=["image_id", "caption"]) for own in (said, said[:500], human))
    keep(found, COLLECTION, labels=labels, captions={"m": one, "n": other}, references=people)
    return found


@pytest.fixture
def measured(monkeypatch):
    """Attackers whose seconds are easy to work with."""
    slow = replace(ATTACKERS["lstm"], seconds=Seconds(a_fit=TRAINED, to_explain=1000.0))
    frozen = replace(ATTACKERS["minilm"], name="lstm_bi", seconds=Seconds(TRAINED, 1000.0, 1000.0), model="")
    monkeypatch.setitem(ATTACKERS, "lstm", slow)  # a second a caption that it trains on, and one that it explains
    monkeypatch.setitem(ATTACKERS, "lstm_bi", frozen)  # and one that it reads first


def specs(workspace, attacker="lstm", references="", words=False, seeds=3, models=("m",)) -> list:
    asked = ("LIC_M",)
    request = Request(COLLECTION, models, "labels", "gender", asked, references, attacker, seeds, words=words)
    return plan(workspace, request)


def seconds(workspace, found) -> float:
    return expected(workspace, found).seconds


def base(images: int, own: float = 0.5) -> float:
    """A family's own seconds, as its row says them of 15,000 images."""
    return own * images / 15_000


def test_networks_train_two_at_a_time_on_as_many_images_of_either_value(workspace, measured):
    """300 women and 300 of the men: 600 s a fit. Three seeds are two turns; four are two as well, and one is one."""
    for seeds, turns in ((1, 1), (2, 1), (3, 2), (4, 2)):
        took = seconds(workspace, specs(workspace, seeds=seeds))
        assert took == pytest.approx(base(1200) + START + 600 * turns)


def test_human_captions_are_read_by_an_attacker_for_each_of_an_image(workspace, measured):
    """Two people wrote of 300 women and 100 men: 200 s a fit, three fits a seed."""
    whole, part = specs(workspace, references="human", seeds=2)
    assert (whole.coverage, part.coverage) == ("", "with_references")
    assert seconds(workspace, [part]) == pytest.approx(base(1200) + START + 200 * (2 * 3) / 2)
    assert seconds(workspace, [whole, part]) == pytest.approx(seconds(workspace, [whole]) + seconds(workspace, [part]))


def test_a_frozen_encoder_reads_different_captions_once_and_its_heads_one_after_another(workspace, measured):
    """Of 1,000 labelled captions 501 differ: 500 with a number, and the others."""
    (spec,) = specs(workspace, attacker="lstm_bi", seeds=3)
    assert seconds(workspace, [spec]) == pytest.approx(base(1200) + START + 501 + 3 * 600)


def test_words_of_a_whole_set_and_of_a_few_captions(workspace, measured):
    """Five fits in three turns; captions that are the same in one fold are explained once: between 501 and 1,000."""
    scored = next(spec for spec in specs(workspace, words=True) if spec.measure == "caption_scores")
    assert seconds(workspace, [scored]) == pytest.approx(base(1200, 0.3) + START + 3 * 600 + 750.5)
    few = plan_encoder_view(workspace, scored, "lstm", ["1", "2", "3"])
    assert seconds(workspace, [few]) == pytest.approx(base(1200) + START + 600 + 3)


def chosen(spec, **options):
    """A run with other options."""
    return replace(spec, options=spec.options | options)


def finish(workspace, spec, took: float) -> None:
    """A finished run of so many seconds."""
    workspace.enqueue(spec, COLLECTION, "t")
    assert workspace.claim(spec.run_id, "t") and workspace.finish(spec.run_id, "t", [], {}, [])
    with sqlite3.connect(workspace.database) as db:
        db.execute("UPDATE runs SET started = finished - ? WHERE run_id = ?", (took, spec.run_id))
    db.close()


def test_earlier_runs_of_the_kind_correct_what_is_expected(workspace, measured):
    """Three runs took 3, 2 and 10 times what the tables say of them: 3 times as much is expected of another set."""
    (other,) = specs(workspace, models=("n",))
    before = expected(workspace, [other])
    assert not before.earlier
    for seeds, times in ((1, 3), (2, 2), (4, 10)):
        (spec,) = specs(workspace, seeds=seeds)
        finish(workspace, spec, times * (base(1200) + START + 600 * -(-seeds // 2)))
    after = expected(workspace, [other])
    assert after.earlier and after.seconds == pytest.approx(3 * before.seconds)


def test_runs_of_another_kind_correct_nothing(workspace, measured):
    """Another family, attacker or device; and a run that did not finish."""
    (spec,) = specs(workspace)
    scored = next(own for own in specs(workspace, words=True) if own.measure == "caption_scores")
    for own in (scored, chosen(spec, attacker="lstm_bi"), chosen(spec, device="cuda")):
        finish(workspace, own, 1e6)
    workspace.enqueue(spec, COLLECTION, "t")
    workspace.claim(spec.run_id, "t"), workspace.end(spec.run_id, "failed", "broken")
    found = expected(workspace, [spec])
    assert not found.earlier and found.seconds == pytest.approx(base(1200) + START + 1200)
    assert not expected(workspace, [scored, spec]).earlier, "not all of them were run before"


def test_models_of_another_name_are_of_another_kind(workspace):
    (spec,) = specs(workspace, attacker="ngram")
    judge = MEASURES["imagecaptioner2"]
    judged = replace(
        spec, measure=judge.name, version=judge.version, options={"seeds": 1, "judge": {"name": "small", "digest": "1"}}
    )
    finish(workspace, judged, 1e6)
    assert expected(workspace, [chosen(judged, seeds=2)]).earlier
    assert not expected(workspace, [chosen(judged, judge={"name": "large", "digest": "2"})]).earlier


def test_it_is_said_what_an_expectation_rests_on(workspace, measured):
    (spec,) = specs(workspace)
    first = expected(workspace, [spec])
    assert cost_text(first.seconds, first.earlier) == "about 20 min on two free cores, longer beside other work"
    finish(workspace, chosen(spec, seeds=1), 2 * (base(1200) + START + 600))
    after = expected(workspace, [spec])
    assert cost_text(after.seconds, after.earlier) == "about 40 min, going by earlier runs here"
