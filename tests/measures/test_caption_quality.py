"""Caption quality: by hand, against COCO's own evaluation code, by group, and on machines with and without Java."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core.aggregate import Counts, Estimate, quotient
from capbias_core.aggregate.comparison import trend
from capbias_core.aggregate.resampling import BOOTSTRAP_SEED, resampled_sums
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import estimates_of
from capbias_core.measures.caption_quality import PERFORMANCE, SCORERS, scored
from capbias_core.metrics import bleu4, cider, meteor, performance_gap, rouge_l, vocabulary
from capbias_core.metrics.caption_quality import (
    bleu_counts,
    bleu_of,
    cider_scores,
    meteor_counts,
    meteor_of,
    rouge_scores,
)
from capbias_core.metrics.share import gap
from capbias_core.prepare import java as java_room
from capbias_core.prepare.java import PLAIN, PTB, default_tokenizer, has_java, quality_tokens
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.types import RESULT_COLUMNS, Result
from capbias_core.views.tradeoff import measured_points
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

GENDER = get_attribute("gender")
QUALITY = ["bleu4", "cider", "meteor", "rouge_l"]
needs_java = pytest.mark.skipif(not has_java(), reason="METEOR and the PTB tokenizer need Java")

# image -> label, human captions, caption of the model
IMAGES = {
    "1": ("Female", ["a woman rides a horse on the beach", "a lady riding a brown horse"], "a woman riding a horse"),
    "2": (
        "Female",
        ["a woman holds an umbrella in the rain", "woman under a red umbrella"],
        "a woman with an umbrella",
    ),
    "3": ("Female", ["a girl eats a slice of pizza", "the girl is eating pizza at a table"], "a man eating pizza"),
    "4": ("Male", ["a man plays tennis on a court", "a tennis player hits the ball"], "a man plays tennis on a court"),
    "5": ("Male", ["a man in a suit and tie", "a man wearing a black suit"], "a man in a suit and a tie"),
    "6": ("Male", ["two men stand near a truck", "men beside a large truck"], "a dog"),
    "7": ("Male", ["a boy throws a baseball", "the boy is pitching a ball"], "a baseball player throws a ball"),
}
REFERENCES = [own[1] for own in IMAGES.values()]
CANDIDATES = [own[2] for own in IMAGES.values()]
GROUP = np.array([0, 0, 0, 1, 1, 1, 1])


def coco(scorer, places=(0, 1, 2, 3, 4, 5, 6)):
    """What one of pycocoevalcap's scorers says of these captions: (of the set, of each caption)."""
    numbered = list(enumerate(places))
    truth = {number: REFERENCES[place] for number, place in numbered}
    return scorer.compute_score(truth, {number: [CANDIDATES[place]] for number, place in numbered})


@pytest.fixture(scope="module")
def meteor_table() -> np.ndarray:
    """METEOR's counts of the captions above; Java's start takes most of this file's time."""
    return meteor_counts(REFERENCES, CANDIDATES)


# by hand


def test_bleu_by_hand():
    """Candidate 1 has 5 words, 2 has 2.

    1: a dog runs in rain / a dog runs in the rain: 5 of 5 words, 3 of 4 pairs (not `in rain`), 2 of 3, 1 of 2.
    2: a cat / a cat / the cat sleeps: 2 of 2 words, 1 of 1 pairs.
    Sums: 7/7, 4/5, 2/3, 1/2; lengths 7 against 6 + 2 = 8.
    """
    counts = bleu_counts([["a dog runs in the rain"], ["a cat", "the cat sleeps"]], ["a dog runs in rain", "a cat"])
    assert counts.tolist() == [[5, 3, 2, 1, 5, 4, 3, 2, 6], [2, 1, 0, 0, 2, 1, 0, 0, 2]]
    expected = np.exp(1 - 8 / 7) * (1 * 4 / 5 * 2 / 3 * 1 / 2) ** 0.25
    assert float(bleu_of(counts.sum(axis=0))) == pytest.approx(expected, abs=1e-8)
    found = bleu4([["a dog runs in the rain"], ["a cat", "the cat sleeps"]], ["a dog runs in rain", "a cat"])
    assert found == pytest.approx(expected, abs=1e-8)
    assert bleu_counts([["the cat", "the the dog"]], ["the the the"])[0, 0] == 2, "as often as one reference has it"
    assert np.isnan(bleu_of(np.zeros(9))) and np.isnan(meteor_of(np.zeros(23)))


def test_rouge_by_hand():
    """a man on a horse / a man rides a horse: `a man a horse`, 4 of 5 and 4 of 5: P = R = F = 0.8.

    the dog / a big dog barks: 1 of 2, 1 of 4: (1 + 1.44) * 0.5 * 0.25 / (0.25 + 1.44 * 0.5) = 0.305 / 0.97.
    """
    texts = [["a man rides a horse"], ["a big dog barks"], ["x"]], ["a man on a horse", "the dog", "y"]
    assert rouge_scores(*texts) == pytest.approx([0.8, 0.305 / 0.97, 0.0])
    assert rouge_l(*texts) == pytest.approx((0.8 + 0.305 / 0.97) / 3)


def test_cider_by_hand():
    """Two images, so a word of one of them weighs log 2.

    `a b` against `a b`: words 1, pairs 1, no longer runs: 10 * (1 + 1) / 4 = 5. `c e` against `c d`: words 1/2, no
    pair: 10 * 0.5 / 4 = 1.25. A word that both images have weighs nothing.
    """
    assert cider_scores([["a b"], ["c d"]], ["a b", "c e"]) == pytest.approx([5.0, 1.25])
    assert cider([["a b"], ["c d"]], ["a b", "c e"]) == pytest.approx(6.25 / 2)
    assert cider_scores([["a b"], ["a d"]], ["a", "a d"])[0] == 0
    # `a b a b` against `a b`: words at cosine 1, clipped to half; 3 pairs against 1: exp(-(2^2) / 72). Words: 1/2, by
    # (min(2, 1) + min(2, 1)) / (sqrt(8) * sqrt(2)). Pairs `a b` twice, `b a` once: 1 / sqrt(5).
    expected = 10 * (0.5 + 1 / np.sqrt(5)) / 4 * np.exp(-4 / 72)
    assert cider_scores([["a b"], ["c d"]], ["a b a b", "x"])[0] == pytest.approx(expected)


# against COCO's own code


def test_each_metric_equals_cocos():
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    of_set, _ = coco(Bleu(4))
    assert bleu4(REFERENCES, CANDIDATES) == pytest.approx(of_set[3], rel=1e-9)
    for function, scores, scorer in ((cider, cider_scores, Cider()), (rouge_l, rouge_scores, Rouge())):
        of_set, each = coco(scorer)
        assert scores(REFERENCES, CANDIDATES) == pytest.approx(each) and of_set == pytest.approx(np.mean(each))
        assert function(REFERENCES, CANDIDATES) == pytest.approx(of_set)


@pytest.mark.long
@needs_java
def test_meteor_equals_cocos(meteor_table):
    from pycocoevalcap.meteor.meteor import Meteor

    scorer = Meteor()
    try:
        of_set, each = coco(scorer)
    finally:
        scorer.meteor_p.stdout.close()
        scorer.meteor_p.stderr.close()
    assert meteor_of(meteor_table) == pytest.approx(each, abs=1e-12)
    assert float(meteor_of(meteor_table.sum(axis=0))) == pytest.approx(of_set, abs=1e-12)
    assert of_set != pytest.approx(np.mean(each), abs=0.005), "METEOR of a set is not the mean of its captions"
    assert each[3] == 1 and (meteor_of(meteor_table) <= 1).all()


def test_bleu_of_a_resampled_set_is_recomputed_from_the_sums():
    """The bootstrap's sums are those of the drawn captions: COCO's code on the drawn captions says the same."""
    from pycocoevalcap.bleu.bleu import Bleu

    drawn = np.array([3, 3, 0, 6, 4, 4, 1])
    weights = np.bincount(drawn, minlength=len(CANDIDATES))
    ours = bleu_of(weights @ bleu_counts(REFERENCES, CANDIDATES))
    assert float(ours) == pytest.approx(coco(Bleu(4), drawn)[0][3], rel=1e-9)


@pytest.mark.long
@needs_java
def test_ptb_tokens_are_cocos():
    from pycocoevalcap.tokenizer import ptbtokenizer

    texts = [
        "A woman's dog, running!",
        "Café (really) don't cannot...",
        "two\nlines\u2028here",
        "",
        "O'Hare at 5 o'clock",
    ]
    found = quality_tokens(texts, PTB)
    assert found[0] == "a woman 's dog running" and found[3] == "" and found[2] == "two lines here"
    if os.access(Path(ptbtokenizer.__file__).parent, os.W_OK):
        plain = {place: [{"caption": text}] for place, text in enumerate(texts) if "\u2028" not in text}
        theirs = ptbtokenizer.PTBTokenizer().tokenize(plain)
        assert {place: [found[place]] for place in plain} == theirs


# groups


def estimate_of(scores) -> Estimate:
    scores = np.asarray(scores, dtype=float)
    sums = np.column_stack([scores, np.ones(len(scores))])
    return Estimate(tuple(map(str, range(len(scores)))), sums, np.zeros(0), 100, quotient)


def test_the_gap_by_hand_and_its_interval_of_resampled_images():
    """Means of the groups 0.2 and 0.5; of three groups 0.2, 0.5 and 0.1."""
    assert performance_gap([0.2, 0.5, 0.1]) == pytest.approx(0.4)
    whole, three = estimate_of([0.1, 0.3, 0.4, 0.6, 0.1]), np.array([0, 0, 1, 1, 2])
    assert [whole.of_images(np.flatnonzero(three == own)).value for own in range(3)] == pytest.approx([20, 50, 10])
    assert whole.across(three, 3, gap).value == pytest.approx(40)
    assert whole.across(three % 2, 2, gap).value == pytest.approx(100 * (0.5 - 0.5 / 3))
    rng = np.random.default_rng(0)
    scores, group = rng.random(300), rng.integers(0, 2, 300)
    found = estimate_of(scores).across(group, 2, gap)
    low, high = found.interval()
    # Each image as its own column: the draws' weights, with which the means are taken anew.
    weights = resampled_sums(np.eye(300), BOOTSTRAP_SEED)
    means = [
        (weights[:, group == place] @ scores[group == place]) / weights[:, group == place].sum(axis=1)
        for place in (0, 1)
    ]
    draws = 100 * (means[1] - means[0])
    error = 100 * np.sqrt(sum(scores[group == place].var() / (group == place).sum() for place in (0, 1)))
    assert low < found.value < high
    assert (low, high) == pytest.approx(np.percentile(draws, [2.5, 97.5]), abs=1e-9)
    assert (high - low) == pytest.approx(2 * 1.96 * error, rel=0.1), "as wide as the textbook's"


# runs


def workspace_with(folder: Path) -> Request:
    workspace = Workspace(folder)
    table = pd.DataFrame({"image_id": [*IMAGES, "8"], "sex": [*(own[0] for own in IMAGES.values()), "Male"]})
    rows = [(image, own[2]) for image, own in IMAGES.items()] + [("8", "no reference for this one")]
    human = [(image, text) for image, own in IMAGES.items() for text in own[1]]
    mine, people = (pd.DataFrame(own, columns=["image_id", "caption"]) for own in (rows, human))
    keep(workspace, labels=table, captions={"mine": mine}, references=people)
    return Request("c", ("mine",), "labels", "gender", ("performance_gap", "vocabulary"), "human")


def run_all(folder: Path, **options) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Every run's results as one table, and the notes."""
    request = workspace_with(folder)
    request.options.update(options)
    found = [run_one(Workspace(folder), spec, lambda share, text: None) for spec in plan(Workspace(folder), request)]
    notes = tuple(note for outcome in found for note in (*outcome.notes, *outcome.lacking.values()))
    return pd.DataFrame([row.row() for outcome in found for row in outcome.results]), notes


@pytest.mark.long
@needs_java
def test_a_run_gives_values_groups_and_gaps(tmp_path, meteor_table, monkeypatch):
    asked = []

    def known(references, candidates, report):
        asked.append(candidates)
        return meteor_table

    monkeypatch.setitem(SCORERS, "meteor", (known, 0.5))
    rows, notes = run_all(tmp_path, tokenizer=PTB)
    assert asked == [CANDIDATES], "PTB tokens of plain words are those words, in the order of the images"
    assert (rows["condition"] == "").all()
    whole = rows[(rows["coverage"] == "with_references") & (rows["group"] == "")].set_index("metric")
    assert set(whole.index) == {*QUALITY, *(f"{name}_gap" for name in QUALITY)}
    assert whole.loc["meteor", "value"] == pytest.approx(100 * meteor_of(meteor_table.sum(axis=0)))
    assert whole.loc["cider", "value"] == pytest.approx(100 * cider(REFERENCES, CANDIDATES))
    assert set(whole["n"]) == {7} and set(whole["scale"]) == {100}
    women, men = (rows[rows["group"] == value].set_index("metric") for value in GENDER.values)
    assert (women.loc["bleu4", "n"], men.loc["bleu4", "n"]) == (3, 4)
    for name in QUALITY:
        assert whole.loc[f"{name}_gap", "value"] == pytest.approx(men.loc[name, "value"] - women.loc[name, "value"])
    of_men = bleu_of(bleu_counts(REFERENCES, CANDIDATES)[GROUP == 1].sum(axis=0))
    assert men.loc["bleu4", "value"] == pytest.approx(100 * of_men)
    assert "7 images with 2 to 2 references; PTB tokens" in whole.loc["bleu4", "method"]
    assert whole.loc["cider_gap", "method"].startswith("Male minus Female")
    assert rows[rows["metric"] == "vocabulary"]["value"].tolist() == [
        vocabulary([*CANDIDATES, "no reference for this one"])
    ]
    assert any("7 labelled images with references (Female 3, Male 4" in note for note in notes)


def test_without_java_the_rest_is_given_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(java_room.shutil, "which", lambda name: None)
    monkeypatch.setattr(java_room.subprocess, "Popen", lambda *given, **more: pytest.fail("something was started"))
    assert not has_java() and default_tokenizer() == PLAIN
    rows, notes = run_all(tmp_path, tokenizer=PLAIN)
    assert java_room.NO_JAVA in notes
    assert "meteor" not in set(rows["metric"]) and {"bleu4", "cider", "rouge_l"} <= set(rows["metric"])
    of_quality = rows[rows["metric"] != "vocabulary"]
    assert of_quality["method"].str.contains("capbias's own tokens, not the PTB tokens").all()
    with pytest.raises(CapbiasError, match="default-jre-headless"):
        meteor([["a"]], ["a"])
    with pytest.raises(CapbiasError, match="no Java"):
        run_all(tmp_path / "again", tokenizer=PTB)


def test_several_captions_of_an_image_are_drawn_together(monkeypatch):
    monkeypatch.setattr(java_room.shutil, "which", lambda name: None)
    frame = pd.DataFrame({"image_id": ["b", "a", "b"], "caption": ["a dog", "a cat", "a cow"]})
    human = pd.DataFrame({"image_id": ["a", "b", "c"], "caption": ["a cat", "a dog", "of no captioned image"]})
    columns = scored(frame, human, PLAIN, lambda share, text: None)
    counts = Counts.of_captions(frame["image_id"], lambda images: np.array([0, 1]), columns)
    found = {name: own.value for (name, _), own in estimates_of(PERFORMANCE, counts, GENDER.values).items()}
    assert counts.images == ("a", "b") and counts.columns["rouge_l"] == pytest.approx([1, 1.5])
    assert found["rouge_l"] == pytest.approx(100 * 2.5 / 3) and found["rouge_l_gap"] == pytest.approx(-25)


# Java's processes


NOTE_PID = "print(os.getpid(), file=open('{0}/pid', 'w'))"


def fake_java(folder: Path, script: str, monkeypatch) -> None:
    """A program called java that does something else."""
    program = folder / "java"
    program.write_text(f"#!{sys.executable}\nimport os, sys, time\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(java_room.shutil, "which", lambda name: str(program))


def alive(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def test_no_java_is_left_behind_where_the_asker_stops(tmp_path, monkeypatch):
    echo = "[print(line, end='', flush=True) for line in sys.stdin]; open('{0}/ended', 'w').close()"
    fake_java(tmp_path, f"{NOTE_PID}; {echo}".format(tmp_path), monkeypatch)
    with pytest.raises(KeyboardInterrupt), java_room.java([]) as ask:
        lines = [f"line {place}" for place in range(50_000)]
        assert ask(lines, len(lines)) == lines, "more than any pipe holds"
        assert alive(tmp_path / "pid")
        raise KeyboardInterrupt
    assert not alive(tmp_path / "pid") and not (tmp_path / "ended").exists(), "killed, not asked to end"


# shown


# LIC against quality and vocabulary


def test_r_squared_by_hand_and_against_scipy():
    """x 1 2 3, y 1 3 2: covariance 1, variances 2 and 2: r = 1/2."""
    from scipy.stats import linregress

    assert trend(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).r_squared == pytest.approx(0.25)
    rng = np.random.default_rng(1)
    x = rng.random(12)
    y = 3 * x + rng.random(12)
    found, theirs = trend(x, y), linregress(x, y)
    assert (found.slope, found.intercept) == pytest.approx((theirs.slope, theirs.intercept))
    assert found.r_squared == pytest.approx(theirs.rvalue**2) and found.p == pytest.approx(theirs.pvalue)
    assert found.shown and found.low < found.slope < found.high
    # x 0 1 2 3, y 0 2 1 3: slope 0.8, residuals -0.3, 0.9, -0.9, 0.3: error sqrt(1.8 / 2 / 5) = 0.424264.
    # t(0.975, 2) = 4.30265; t = 1.88562, p = 1 - t / sqrt(t^2 + 2) = 0.2.
    found, half = trend(np.arange(4.0), np.array([0.0, 2.0, 1.0, 3.0])), 4.30265 * 0.424264
    assert (found.n, found.slope, found.r_squared, found.p) == pytest.approx((4, 0.8, 0.64, 0.2))
    assert (found.low, found.high) == pytest.approx((0.8 - half, 0.8 + half), abs=1e-4) and not found.shown
    assert trend(np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.0, 3.0])).reason, "two captioners have no line"
    assert trend(np.ones(4), np.arange(4.0)).reason


def test_measured_points_come_from_one_encoder_and_all_images():
    cases = [
        ("nic", "LIC", "", "ngram", 4.0),
        ("nic", "LIC", "", "lstm_bi", 3.0),
        ("sat", "LIC", "", "ngram", 5.0),
        ("fc", "LIC", "", "ngram", 6.5),
        ("nic", "bleu4", "Female", "", 99.0),
        ("nic", "bleu4", "", "", 22.0),
        ("sat", "bleu4", "", "", 33.0),
        ("fc", "bleu4", "", "", 35.0),
        ("only_quality", "bleu4", "", "", 10.0),
    ]
    rows = [
        Result(
            "gender", model, metric, value, encoder, scale=100.0, group=group, run_id=f"{model} {metric} {encoder}"
        ).row()
        for model, metric, group, encoder, value in cases
    ]
    frame = pd.DataFrame(rows, columns=list(RESULT_COLUMNS))
    frame = frame.astype(dict.fromkeys(("value", "spread", "scale", "ci_low", "ci_high"), float))
    points = measured_points(frame).set_index("model")
    assert set(points["encoder"]) == {"ngram"} and points["LIC"].to_dict() == {"nic": 4.0, "sat": 5.0, "fc": 6.5}
    assert points["bleu4"].to_dict() == {"nic": 22.0, "sat": 33.0, "fc": 35.0}
