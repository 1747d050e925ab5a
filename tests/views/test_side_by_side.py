"""Captioners side by side: disagreement and words that one alone has, by hand; the commands of both views of words."""

import io
import re

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.views.captions import CaptionScores
from capbias_core.views.side_by_side import column, columns, disagreements, side_by_side_rows
from capbias_core.views.words import coloured_words
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.pages.synthetic import fill, score

GENDER = get_attribute("gender")


def scored(male: dict[str, list[float]], labels: dict[str, int]) -> CaptionScores:
    """Of each image the probability of Male in each of its captions; kept_at counts them."""
    rows = [(image, index, share) for image, shares in male.items() for index, share in enumerate(shares)]
    table = pd.DataFrame(rows, columns=["image_id", "caption_index", "p1"])
    table = table.assign(p0=1 - table["p1"], kept_at=range(len(table)), label=table["image_id"].map(labels))
    table["predicted"] = (table["p1"] > 0.5).astype(int)
    table["confidence"] = table[["p0", "p1"]].max(axis=1)
    return CaptionScores(None, GENDER, table, None, None)  # pyright: ignore[reportArgumentType]


LABELS = {"1": 0, "2": 1, "3": 1, "4": 1}
SETS = {
    "sat": scored({"1": [0.2], "2": [0.9], "3": [0.5]}, LABELS),
    "nic": scored({"3": [0.75, 0.25], "2": [0.1], "1": [0.3], "4": [0.5]}, LABELS),
    "oscar": scored({"1": [0.6], "2": [0.4], "3": [0.6]}, LABELS),
}
WRITTEN = {
    "sat": ["a red tie", "the dog", "a cat"],
    "nic": ["a cat sits", "another", "a dog", "a tie", "unseen"],
    "oscar": ["a tie", "A dog.", "a cat"],
}


def test_disagreement_is_the_range_of_the_probability_of_the_label():
    table = disagreements(list(SETS.values())).set_index("image_id")
    assert list(table.index) == ["1", "2", "3"], "image 4 has no caption of two sets"
    # Image 1 is Female: 0.8, 0.7, 0.4. Image 2: 0.9, 0.1, 0.4. Image 3: 0.5, the mean 0.5 of two captions, 0.6.
    assert table["disagreement"].tolist() == pytest.approx([0.4, 0.8, 0.1])
    assert table[["p0", "p1", "p2"]].loc["1"].tolist() == pytest.approx([0.8, 0.7, 0.4])
    assert table["labelled"].tolist() == ["Female", "Male", "Male"]


def test_a_row_has_the_guess_and_the_words_that_no_other_caption_has():
    listed = disagreements(list(SETS.values())).sort_values("disagreement", ascending=False)
    written = {name: pd.DataFrame({"caption": texts}) for name, texts in WRITTEN.items()}
    rows = side_by_side_rows(SETS, written, listed)
    assert rows["image_id"].tolist() == ["2"] * 3 + ["1"] * 3 + ["3"] * 3
    assert rows["captioner"].tolist() == ["sat", "nic", "oscar"] * 3
    assert rows["caption"].tolist() == [
        *["the dog", "a dog", "A dog."],
        *["a red tie", "a tie", "a tie", "a cat", "a cat sits", "a cat"],
    ]
    assert rows["only_here"].tolist() == ["the", "", "", "red", "", "", "", "sits", ""]
    assert rows["guess"].tolist()[:3] == ["Male", "Female", "Female"]
    assert rows["bias_score"].tolist()[:3] == pytest.approx([0.9, 0.9, 0.6])
    assert rows["p_label"].tolist()[-2] == pytest.approx(0.5), "the mean of two captions"


def test_texts_of_strangers_are_escaped():
    words = coloured_words(["<a>word</a>"], np.array([0.1]), GENDER)
    drawn = columns([column("<i>name</i>", "<u>guess</u>", words, "<s>below</s>")])
    assert not re.search("<[aius]>", drawn) and drawn.count("&lt;/") == 4


@pytest.mark.long
def test_commands_print_words_and_captions_side_by_side(tmp_path, capsys):
    workspace = Workspace(tmp_path)
    fill(workspace)
    place = ["--collection", "c", "--workspace", str(tmp_path), "--captioner"]
    score(workspace, metrics=("lic",), words=False)
    # What was not scored one by one is scored first, with human captions beside where LIC had some.
    assert cli.main(["view", "side-by-side", *place, "first", "second", "--top", "4"]) == 0
    assert len(pd.read_csv(io.StringIO(capsys.readouterr().out))) == 8
    score(workspace, metrics=())
    assert cli.main(["view", "words", *place, "first", "second", "--top", "6"]) == 0
    printed = capsys.readouterr()
    rows = pd.read_csv(io.StringIO(printed.out))
    assert rows.groupby("captioner").size().to_dict() == {"first": 6, "second": 6}
    inside = rows.dropna(subset=["ci_low"])
    assert len(inside) and (inside["ci_low"] < inside["value"]).all() and (inside["value"] < inside["ci_high"]).all()
    assert ((rows["ci_low"] > 0) | (rows["ci_high"] < 0)).map({True: "yes", False: "no"}).tolist() == [
        "no" if text == "not tested" else text for text in rows["certain"]
    ]
    assert "(Bonferroni)" in printed.err
    for name in ("words.svg", "words.tex"):
        assert cli.main(["view", "words", *place, "first", "--output", str(tmp_path / name)]) == 0
    assert cli.main(["view", "side-by-side", *place, "first", "second", "--top", "4"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(rows) == 8 and rows["disagreement"].is_monotonic_decreasing
    pairs = rows.groupby("image_id")["p_label"]
    assert (pairs.max() - pairs.min()).tolist() == pytest.approx(
        rows.groupby("image_id")["disagreement"].first().tolist()
    )
    assert cli.main(["view", "side-by-side", *place, "first"]) == 2
    sentences.check("one captioner side by side", capsys.readouterr().err)
