"""Words compared with human captions: by hand, on captions drawn alike, with a planted word, and on real captions."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import capbias_core as capbias
from capbias_core.api import COMPARED
from capbias_core.measures.word_comparison import ENDS, compare_words, complete_lists
from capbias_core.question import Question
from capbias_core.runs.plan import WORDS_COMPARED, plan
from capbias_core.runs.run import run_one
from capbias_core.types import silent
from capbias_core.workspace.store import Workspace, bytes_frame
from tests import sentences
from tests.collections_ import keep

pytestmark = pytest.mark.long

# Student's t with 2 degrees of freedom: the share 0.9875 of it lies below, which leaves 5% for two intervals together.
T_OF_3_SEEDS_OF_2 = 6.205347


def test_the_numbers_of_a_word_by_hand():
    words = ["tie", "rare", "<gender>", "dress"]
    captioner = np.array([[6.0, 1, 9, 0], [8.0, 1, 9, -4], [10.0, 1, 9, -2]])[:, :, None]
    human = np.array([[2.0, 1, 9, -1], [1.0, 1, 9, -1], [3.0, 1, 9, -1]])[:, :, None]
    having = np.full((3, 4), 2.0), np.array([[2.0, 1, 9, 1]] * 3)
    having[0][0, 3] = 0  # a seed whose other half has no caption with the word
    total = np.array([30.0, 9, 90, 5]), np.array([20.0, 9, 90, 15])
    table = compare_words(words, (captioner, human), having, total, 1.0).set_index("word")
    assert list(table.index) == ["tie", "dress"], "no special token, and no word in fewer than 10 captions"
    tie, dress = table.loc["tie"], table.loc["dress"]
    assert tuple(tie[["toward", "captioner", "human", "difference"]]) == (1, 4.0, 1.0, 3.0)
    # Differences 2, 3.5, 3.5 of the seeds: variance 0.75, times 1/3 for the seeds and 1 for as many test images.
    half = T_OF_3_SEEDS_OF_2 * (0.75 * (1 / 3 + 1)) ** 0.5
    assert tuple(tie[["low", "high"]]) == pytest.approx((3 - half, 3 + half))
    # The captioner's values 3, 4, 5 have the variance 1, the human ones 1, 0.5, 1.5 a quarter of it.
    half = T_OF_3_SEEDS_OF_2 * (1 / 3 + 1) ** 0.5
    assert tuple(tie[["captioner_low", "captioner_high"]]) == pytest.approx((4 - half, 4 + half))
    assert tuple(tie[["human_low", "human_high"]]) == pytest.approx((1 - half / 2, 1 + half / 2))
    assert (tie["count"], tie["human_count"]) == (30, 20)
    assert tuple(dress[["toward", "captioner", "human", "difference"]]) == (0, 1.0, 1.0, 0.0)
    assert table["tested"].all() and dress[["human_low", "human_high"]].isna().all(), "all seeds agree"


def test_the_strongest_words_of_both_sides_are_tested_equally_many_of_each_value():
    words = [f"w{number}" for number in range(100)]
    strength = np.linspace(-1, 2, 100)
    captioner = strength[None, :, None] + np.random.default_rng(0).normal(0, 0.01, (4, 100, 1))
    ones = np.ones((4, 100))
    table = compare_words(words, (captioner, np.zeros((4, 100, 1))), (ones, ones), (ones[0] * 20,) * 2, 1.0)
    tested = table[table["tested"]]
    assert tested["toward"].value_counts().to_dict() == {0: 20, 1: 20} and tested["low"].notna().all()
    assert set(tested.loc[tested["toward"] == 1, "word"]) == set(words[80:]) and table["low"].isna().sum() == 60
    three = np.stack([captioner[:, :, 0], -captioner[:, :, 0], captioner[:, :, 0] / 2], axis=2)
    table = compare_words(words, (three, three * 0), (ones, ones), (ones[0] * 20,) * 2, 1.0)
    assert table[table["tested"]]["toward"].value_counts().to_dict() == {0: 13, 1: 13, 2: 13} and len(table) == 300
    assert list(compare_words([], (np.zeros((2, 0, 1)),) * 2, (np.zeros((2, 0)),) * 2, (np.zeros(0),) * 2, 1.0)) == [
        *("word", "toward", *ENDS, "count", "human_count", "tested"),
        *(end for ends in ENDS.values() for end in ends),
    ]


def test_equal_captions_have_no_difference():
    """A solver's rounding is no difference, however alike it is over seeds."""
    one = np.array([[[0.5]], [[0.7]], [[0.6]]])
    other = one + np.array([1e-9, 2e-9, 3e-9])[:, None, None] + 3e-7
    table = compare_words(["tie"], (one, other), (np.ones((3, 1)),) * 2, (np.array([20.0]),) * 2, 1.0)
    assert table["captioner_low"].notna().all() and table[["low", "high"]].isna().all(axis=None)


def test_each_list_has_one_caption_of_every_image():
    texts = {"1": ["a", "b", "c"], "2": ["d"], "3": ["e", "f"], "4": ["other"]}
    rows = [(image, index, text) for image, own in texts.items() for index, text in enumerate(own)]
    frame = pd.DataFrame(rows[::-1], columns=["image_id", "caption_index", "caption"])
    lists = complete_lists(frame, frame["caption"].tolist(), ("1", "2", "3"))
    assert [list(captions.masked) for captions in lists] == [["a", "d", "e"], ["b", "d", "f"]]
    assert [frame["caption"][captions.kept_at].tolist() for captions in lists] == [["a", "d", "e"], ["b", "d", "f"]]


# captions drawn alike, and a planted word

PLACES = [f"place{number}" for number in range(12)]
THINGS = [f"thing{number}" for number in range(30)]


def drawn(number: int, seed: int) -> tuple[pd.DataFrame, list[Callable]]:
    """Labels of images, and four people who describe them: a place that depends on the label, and two things."""
    rng = np.random.default_rng(seed)
    ids = [str(image) for image in range(number)]
    label = rng.random(number) < 0.4
    lean = np.linspace(0.2, 1.8, len(PLACES))
    shares = np.stack([lean, lean[::-1]]) / lean.sum()
    place = np.array([rng.choice(len(PLACES), p=shares[int(own)]) for own in label])
    labels = pd.DataFrame({"image_id": ids, "gender": np.where(label, "Male", "Female")})

    def person() -> pd.DataFrame:
        things = rng.choice(THINGS, (number, 2))
        texts = [
            f"someone in a {PLACES[own]} with {one} and {two}" for own, (one, two) in zip(place, things, strict=True)
        ]
        return pd.DataFrame({"image_id": ids, "caption": texts})

    return labels, [person() for _ in range(4)]


def compared(workspace: Workspace, captions: pd.DataFrame, human: list[pd.DataFrame], labels: pd.DataFrame):
    """What the run that compares the words leaves."""
    keep(workspace, captions={"m": captions}, references=pd.concat(human), labels=labels)
    request = Question("c", ("m",), "labels", "gender", (), "human", words=True)
    (spec,) = [spec for spec in plan(workspace, request) if spec.measure == WORDS_COMPARED]
    return run_one(workspace, spec, silent)


def differing(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["low"] > 0) | (table["high"] < 0)]


def test_a_person_as_captioner_has_no_word_and_a_planted_word_is_found(tmp_path):
    labels, (first, *others) = drawn(600, 0)
    outcome = compared(Workspace(tmp_path / "people"), first, others, labels)
    table = bytes_frame(outcome.arrays["words"])
    assert differing(table).empty and table["tested"].sum() == 40
    sentences.check("note on compared words", outcome.notes[0], numbers=False)
    added = (labels["gender"] == "Female") & (np.random.default_rng(100).random(len(labels)) < 0.2)
    planted = first.assign(caption=first["caption"].mask(added, first["caption"] + " near an umbrella"))
    table = bytes_frame(compared(Workspace(tmp_path / "planted"), planted, others, labels).arrays["words"])
    table = table.set_index("word")
    assert table.loc["umbrella", "toward"] == 0 < table.loc["umbrella", "captioner_low"]
    assert table.loc["umbrella", "human"] == 0 < table.loc["umbrella", "low"]
    assert len(set(differing(table).index) - {"umbrella", "near", "an"}) <= 1


def test_a_report_has_the_comparison_beside_what_words_add():
    labels, (first, *others) = drawn(300, 0)
    given = first.assign(caption=first["caption"].mask(labels["gender"] == "Female", first["caption"] + " smiling"))
    asked = {"labels": labels, "attribute": "gender", "metrics": ["SC"], "seeds": 1}
    report = capbias.score({"m": given}, **asked, references=pd.concat(others))
    words = report.words.set_index("word")
    found = words.loc["smiling"]
    assert (found["toward"], found["certain"], found["significant"], found["human"]) == ("Female", "yes", "yes", 0)
    assert found["captioner"] == pytest.approx(found["difference"]) and 0 < found["low"] < found["difference"]
    assert (words["mean"].dropna() >= 0).all() and set(words["significant"]) <= {"yes", "no", "not tested"}
    alone = capbias.score({"m": given}, **asked).words.set_index("word")
    assert list(alone) == [name for name in words if name not in COMPARED]
    assert (alone["mean"] == words["mean"].reindex(alone.index)).all(), "what was there before is the same"
