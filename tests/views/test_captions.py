"""Captions side by side: disagreement, coloured words, captions behind a word; rows by hand and on a workspace."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from capbias_core.attackers.what_if import Rescored
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.prepare.text import tokenize
from capbias_core.types import Attribute
from capbias_core.views import captions as view
from capbias_core.views.choose import choose, measured_rows
from capbias_core.views.coloured import columns, guess_text, line_words, section
from capbias_core.views.scored import CaptionScores, Line, caption_scores, scored
from capbias_core.workspace.store import Workspace
from tests import sentences

GENDER = get_attribute("gender")
LABELS = {"1": 0, "2": 1, "3": 1, "4": 1}


def of_images(male: dict[str, list[float]], labels: dict[str, int] = LABELS) -> CaptionScores:
    """Of each image the probability of Male in each of its captions; kept_at counts them."""
    rows = [(image, index, share) for image, shares in male.items() for index, share in enumerate(shares)]
    table = pd.DataFrame(rows, columns=["image_id", "caption_index", "p1"])
    table = table.assign(p0=1 - table["p1"], kept_at=range(len(table)), label=table["image_id"].map(labels))
    table["predicted"] = (table["p1"] > 0.5).astype(int)
    table["confidence"] = table[["p0", "p1"]].max(axis=1)
    return CaptionScores(None, GENDER, table, None, None)  # pyright: ignore[reportArgumentType]


def of_texts(texts: list[str], added: list[float], attribute: Attribute = GENDER) -> CaptionScores:
    """Captions of images 0, 1, ..., of which the last is Female, with what each word adds toward Male."""
    table = of_images({str(image): [0.6] for image in range(len(texts))}, dict.fromkeys("0123456", 1)).table
    table.loc[len(texts) - 1, "label"] = 0
    offsets = np.cumsum([0, *(len(text.split()) for text in texts)])
    table = table.assign(masked=texts, logit0=0.5, baseline0=0.125, delta=0.0)
    return CaptionScores(None, attribute, table, np.array(added)[:, None], offsets)  # pyright: ignore[reportArgumentType]


def test_disagreement_is_the_range_of_the_probability_of_the_label():
    sets = [
        of_images({"1": [0.2], "2": [0.9], "3": [0.5]}),
        of_images({"3": [0.75, 0.25], "2": [0.1], "1": [0.3], "4": [0.5]}),
        of_images({"1": [0.6], "2": [0.4], "3": [0.6]}),
    ]
    table = view.disagreements(sets).set_index("image_id")
    assert list(table.index) == ["1", "2", "3"], "image 4 has no caption of two sets"
    # Image 1 is Female: 0.8, 0.7, 0.4. Image 2: 0.9, 0.1, 0.4. Image 3: 0.5, the mean 0.5 of two captions, 0.6.
    assert table["disagreement"].tolist() == pytest.approx([0.4, 0.8, 0.1])
    assert table[["p0", "p1", "p2"]].loc["1"].tolist() == pytest.approx([0.8, 0.7, 0.4])
    assert table["labelled"].tolist() == ["Female", "Male", "Male"]
    assert table[["guess0", "guess1", "guess2"]].loc["3"].tolist() == ["Female", "Male", "Male"], "of the first caption"


def test_captions_with_a_word_come_by_what_it_adds_there():
    added = [0.0, 0.5, 0.0, 0.4, 0.0, 0.0, 0.3, 0.0, 0.9, -0.6]
    scores = of_texts(["a tie", "a tie and a tie", "no ties", "tie"], added)
    assert view.to_read(scores, "tie") == [1, 3, 0]  # 0.4 + 0.3, then 0.6 the other way, then 0.5
    assert view.to_read(scores, "tie", first={"0"}) == [0, 1, 3] and view.to_read(scores, "tie", {"3", "9"}) == [3]
    assert view.to_read(scores, "hat") == [] and view.to_read(scores, "a tie") == [0, 1]
    assert view.to_read(scores) == [0, 1, 2, 3], "the surest of their label first: 0.6, and 0.4 of the last"


def line(written: str, tokens: list[str], added: list[float]) -> Line:
    """A caption that is guessed Male, 60%."""
    words, zero = np.array(added)[:, None], np.zeros(1)
    return Line("sat", written, GENDER, Rescored(tokens, words, zero, zero, np.array([0.4, 0.6])))


def test_a_caption_is_only_text_and_each_word_has_its_number():
    html = line_words(line("", ["<b>x</b>"], [1.0]), alone=["<b>x</b>"])
    assert "<b>" not in html and "&lt;b&gt;" in html and "cb-alone" in html
    read = line("a man hat tie", ["a", GENDER.mask_token, "hat", "tie"], [0.001, 0.4, -0.25, 1.5])
    html = line_words(read, alone=["hat"])
    numbers = re.findall(r"<small>(.*?)</small>", html)
    assert numbers == ["+0.40", "−0.25", "+1.50"] and html.count("cb-alone") == 1, "a function word has none"
    assert html.count("background:") == 2 and ">man<" in html
    assert GENDER.mask_token not in re.sub("title=.*?>", "", html)
    assert "+1.500 toward Male" in html and "−0.250 toward Female" in html
    long = line_words(line(" ".join(["w"] * 1005), ["w"] * 1005, [0.0] * 1005))
    assert "5 more words" in long and long.count(">w<") == 1000


def test_a_column_says_the_guess():
    read = line("a <s>tie</s>", ["a", "tie"], [0.25, 0.125])
    assert guess_text(read) == "guess: Male, 60%"
    drawn = columns([section("<i>name</i>", read, rest=["<u>other</u>"])])
    assert not re.search("<[isu]>", drawn) and drawn.count("&lt;/") == 2
    unread = section("people", Line("people", "<u>x</u>"))
    assert "&lt;u&gt;" in unread and "guess" not in unread


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """Two captioners and two human captions per image, whose words are scored by ngram; `second` and `human` differ."""
    from tests.pages.synthetic import fill, score

    made = Workspace(tmp_path_factory.mktemp("captions"))
    fill(made)
    score(made, metrics=("lic",))
    return made


@pytest.fixture
def choice(workspace):
    return choose(workspace, measured_rows(workspace, "c"), {"collection": "c", "captioner": "first"})


@pytest.mark.long
def test_rows_of_a_workspace(choice):
    sets = scored(choice)
    assert list(sets.sets) == ["first", "human", "second"] and set(sets.runs) == set(sets.sets) and not sets.other
    rows = view.CAPTIONS.rows(choice, view.CaptionsOptions(top=4))
    assert rows["captioner"].tolist() == ["first", "human", "second"] * 4
    of_image = rows.groupby("image_id", sort=False)
    assert (of_image["value"].max() - of_image["value"].min()).tolist() == pytest.approx(
        of_image["disagreement"].first().tolist()
    )
    assert of_image["disagreement"].first().is_monotonic_decreasing
    assert rows.set_index("captioner")["n"].to_dict() == {"first": 1, "human": 2, "second": 1}
    scores = caption_scores(sets.runs["first"])
    first = rows.iloc[0]
    row = scores.table.set_index("image_id").loc[first["image_id"]]
    assert first["probability"] == row["confidence"] and row["logit0"] == pytest.approx(
        row["baseline0"] + sum(value for _, value in first["words"]), abs=1e-6
    )
    assert [word for word, _ in first["words"]] == row["masked"].split()
    sentences.check("captions side by side", view.CAPTIONS.sentence(choice, rows))
    filters: list[tuple[dict[str, Any], set[str] | None]] = [
        ({"search": first["image_id"]}, {first["image_id"]}),
        ({"labelled": "Male", "guess": "Female", "differ": True}, None),
        ({"search": "nowhere"}, set()),
    ]
    for options, expected in filters:
        found = view.CAPTIONS.rows(choice, view.CaptionsOptions(**options))
        assert expected is None or set(found["image_id"]) == expected
        if "differ" in options:
            assert set(found["labelled"]) == {"Male"} and set(found.loc[::3, "guess"]) == {"Female"}
            assert (found.groupby("image_id")["guess"].nunique() == 2).all()
    for options in (view.CaptionsOptions(beside=("nobody",)), view.CaptionsOptions(labelled="Both")):
        with pytest.raises(CapbiasError, match="nobody|Both"):
            view.CAPTIONS.rows(choice, options)


@pytest.mark.long
def test_captions_of_a_report(choice):
    sets = scored(choice)
    pairs = [
        (caption_scores(sets.runs[name]), choice.workspace.frame(sets.sets[name].hash)) for name in ("second", "first")
    ]
    table = view.report_captions(pairs)
    assert table["model"].tolist() == ["first"] * 300 + ["second"] * 300
    assert (table["caption"].map(lambda text: len(tokenize(text))) == table["words"].map(len)).all()
    assert table["p_label"].to_numpy() == pytest.approx(
        np.where(table["guess"] == table["labelled"], table["probability"], 1 - table["probability"])
    )
