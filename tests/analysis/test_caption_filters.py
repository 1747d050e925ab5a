"""Which captions are listed: filters worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.views.captions import (
    IMAGE,
    OTHER,
    OWN,
    WRONG,
    CaptionScores,
    Filters,
    caption_rows,
    column_values,
    images_with,
    probability_table,
    select_rows,
)
from tests import sentences

GENDER = get_attribute("gender")
WRITTEN = ["a man in a tie", "a woman and a man", "a girl rides", "Two People riding", "a boy. (x)"]
KEPT = pd.DataFrame({"caption": WRITTEN[::-1]})  # as scored, the other way round


def scores(second: list[float], labels: list[int], images: list[str]) -> CaptionScores:
    """Of two values: the probability of the second in each caption."""
    table = pd.DataFrame(
        {
            "image_id": images,
            "caption_index": 0,
            "kept_at": range(len(images))[::-1],
            "label": labels,
            "masked": ["x"] * len(images),
            "p0": [1 - share for share in second],
            "p1": second,
        }
    )
    table["predicted"] = (table["p1"] > 0.5).astype(int)
    table["confidence"] = table[["p0", "p1"]].max(axis=1)
    return CaptionScores(None, GENDER, table, None, None)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def rows() -> pd.DataFrame:
    """Labelled Female, Male, Male, Male, Female. Of the other set image 3 has two captions and image 5 none."""
    own = scores([0.2, 0.9, 0.7, 0.5, 0.1], [0, 1, 1, 1, 0], ["1", "2", "3", "4", "5"])
    other = scores([0.8, 0.6, 0.3, 0.7, 0.8], [0, 1, 1, 1, 1], ["1", "2", "3", "3", "4"])
    return caption_rows(own, other)


def listed(rows: pd.DataFrame, **filters) -> list[str]:
    return list(select_rows(rows, KEPT, GENDER, IMAGE, Filters(**filters))["image_id"])


def test_one_gives_the_label_away_and_the_other_does_not(rows):
    assert rows["share"].tolist() == pytest.approx([0.8, 0.9, 0.7, 0.5, 0.9])
    assert rows["other"].tolist()[:4] == pytest.approx([0.2, 0.6, 0.5, 0.8])
    assert listed(rows, kind=OWN) == ["1", "3"]  # the other is above chance in image 2, and absent in image 5
    assert listed(rows, kind=OTHER) == ["4"]


def test_a_file_has_the_probabilities_of_both_sets(rows):
    """Image 3 has two captions in the other set, 0.3 and 0.7; image 5 has none."""
    table = probability_table(rows, KEPT, GENDER, "sat", "human")
    assert list(table) == [
        *("image_id", "caption_index", "caption", "labelled", "guess"),
        *("P(Female), sat", "P(Male), sat", "P(Female), human", "P(Male), human"),
    ]
    assert table["caption"].tolist() == WRITTEN and table["guess"].tolist()[:2] == ["Female", "Male"]
    assert table["P(Female), sat"].tolist() == pytest.approx([0.8, 0.1, 0.3, 0.5, 0.9])
    assert table["P(Male), human"].tolist() == pytest.approx([0.8, 0.6, 0.5, 0.8, float("nan")], nan_ok=True)
    assert table["P(Female), human"].tolist() == pytest.approx([0.2, 0.4, 0.5, 0.2, float("nan")], nan_ok=True)
    assert not list(probability_table(rows, KEPT, GENDER, "sat").filter(like="human"))


def test_the_wrong_value_is_the_only_one_named(rows):
    assert listed(rows, kind=WRONG) == ["1", "3", "5"]  # both are named in image 2, nobody in image 4


@pytest.mark.parametrize("kind", [object, "string[python]", "string[pyarrow]", "str"])
def test_a_word_is_whole_and_may_be_several(rows, kind):
    masked = ["a tie on a dog", "ties", "dog tie", "tie", "a doge on tie"]
    rows = rows.assign(masked=pd.Series(masked, dtype=kind))
    found = {word: listed(rows, word=word) for word in ("tie", " Dog ", "on a", "", "zebra")}
    assert found == {"tie": ["1", "3", "4", "5"], " Dog ": ["1", "3"], "on a": ["1"], "": list("12345"), "zebra": []}


def test_a_search_is_a_text_unless_it_is_an_expression(rows):
    assert listed(rows, query="(x)") == ["5"] and listed(rows, query="RID") == ["3", "4"]
    assert listed(rows, query="(x)", pattern=True) == ["5"] and listed(rows, query="4") == ["4"]
    assert listed(rows, query=r"^a (man|girl)\b", pattern=True) == ["1", "3"]
    assert listed(rows, query="two people", pattern=True) == ["4"]
    assert listed(rows, query=" ", pattern=True) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("expression", "why"), [("(a", r"missing \)"), (r"(a)\1", "invalid escape"), ("a(?=b)", r"\(\?=")]
)
def test_an_expression_that_cannot_be_read_is_one_error(rows, expression, why):
    with sentences.raises(CapbiasError):
        listed(rows, query=expression, pattern=True)


def test_images_by_a_column_of_the_labels(rows):
    table = pd.DataFrame(
        {"image_id": ["1", "2", "3"], "skin": ["Dark", None, "Light"], "objects": ["cat|hot dog", "", "dog|cat"]}
    )
    assert column_values(table, "skin") == ["Dark", "Light"]
    assert column_values(table, "objects") == ["cat", "dog", "hot dog"]
    assert images_with(table, "objects", "cat") == {"1", "3"} and images_with(table, "objects", "dog") == {"3"}
    assert listed(rows, images={"3", "9"}) == ["3"] and listed(rows, images=set()) == []
