"""Captions to read: which are listed, drawn for a person, aligned word by word: worked out by hand."""

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.types import Attribute
from capbias_core.views import captions
from capbias_core.views.charts import BLUE_MARK, ORANGE_MARK

GENDER = get_attribute("gender")
WRITTEN = ["a man in a tie", "a woman and a man", "a girl rides", "Two People riding", "a boy. (x)"]
KEPT = pd.DataFrame({"caption": WRITTEN[::-1]})  # as scored, the other way round


def scores(second: list[float], labels: list[int], images: list[str]) -> captions.CaptionScores:
    """Of two values: the probability of the second in each caption."""
    columns = {"image_id": images, "caption_index": 0, "kept_at": range(len(images))[::-1], "label": labels}
    columns |= {"masked": ["x"] * len(images), "p0": [1 - share for share in second], "p1": second}
    table = pd.DataFrame(columns)
    table["predicted"] = (table["p1"] > 0.5).astype(int)
    table["confidence"] = table[["p0", "p1"]].max(axis=1)
    return captions.CaptionScores(None, GENDER, table, None, None)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def rows() -> pd.DataFrame:
    """Labelled Female, Male, Male, Male, Female. Of the other set image 3 has two captions and image 5 none."""
    own = scores([0.2, 0.9, 0.7, 0.5, 0.1], [0, 1, 1, 1, 0], ["1", "2", "3", "4", "5"])
    other = scores([0.8, 0.6, 0.3, 0.7, 0.8], [0, 1, 1, 1, 1], ["1", "2", "3", "3", "4"])
    return captions.caption_rows(own, other)


def listed(rows: pd.DataFrame, **filters) -> list[str]:
    return list(captions.select_rows(rows, KEPT, GENDER, captions.IMAGE, captions.Filters(**filters))["image_id"])


def test_a_file_has_the_probabilities_of_both_sets(rows):
    """Image 3 has two captions in the other set, 0.3 and 0.7; image 5 has none."""
    table = captions.probability_table(rows, KEPT, GENDER, "sat", "human")
    assert table["caption"].tolist() == WRITTEN and table["guess"].tolist()[:2] == ["Female", "Male"]
    assert table["P(Female), sat"].tolist() == pytest.approx([0.8, 0.1, 0.3, 0.5, 0.9])
    assert table["P(Male), human"].tolist() == pytest.approx([0.8, 0.6, 0.5, 0.8, float("nan")], nan_ok=True)
    assert not list(captions.probability_table(rows, KEPT, GENDER, "sat").filter(like="human"))


def test_one_gives_the_label_away_and_the_other_does_not(rows):
    assert rows["share"].tolist() == pytest.approx([0.8, 0.9, 0.7, 0.5, 0.9])
    assert rows["other"].tolist()[:4] == pytest.approx([0.2, 0.6, 0.5, 0.8])
    assert listed(rows, kind=captions.OWN) == ["1", "3"]  # the other is above chance in image 2, and absent in image 5
    assert listed(rows, kind=captions.OTHER) == ["4"]


@pytest.mark.parametrize("kind", [object, "string[python]", "string[pyarrow]", "str"])
def test_a_word_is_whole_and_may_be_several(rows, kind):
    masked = ["a tie on a dog", "ties", "dog tie", "tie", "a doge on tie"]
    rows = rows.assign(masked=pd.Series(masked, dtype=kind))
    found = {word: listed(rows, word=word) for word in ("tie", " Dog ", "on a", "", "zebra")}
    assert found == {"tie": ["1", "3", "4", "5"], " Dog ": ["1", "3"], "on a": ["1"], "": list("12345"), "zebra": []}


@pytest.mark.long
def test_a_search_is_a_text_unless_it_is_an_expression(rows):
    """An expression is read in a process that can be ended."""
    assert listed(rows, query="(x)") == ["5"] and listed(rows, query="RID") == ["3", "4"]
    assert listed(rows, query="(x)", pattern=True) == ["5"] and listed(rows, query="4") == ["4"]
    assert listed(rows, query=r"^a (man|girl)\b", pattern=True) == ["1", "3"]
    assert listed(rows, query="two people", pattern=True) == ["4"]
    assert listed(rows, query=" ", pattern=True) == ["1", "2", "3", "4", "5"]


def test_images_by_a_column_of_the_labels(rows):
    columns = {"skin": ["Dark", None, "Light"], "objects": ["cat|hot dog", "", "dog|cat"]}
    table = pd.DataFrame({"image_id": ["1", "2", "3"]} | columns)
    assert captions.column_values(table, "skin") == ["Dark", "Light"]
    assert captions.column_values(table, "objects") == ["cat", "dog", "hot dog"]
    assert captions.images_with(table, "objects", "cat") == {"1", "3"} and captions.images_with(
        table, "objects", "dog"
    ) == {"3"}
    assert listed(rows, images={"3", "9"}) == ["3"] and listed(rows, images=set()) == []


THREE = Attribute("hair", "Hair", ("red", "dark", "fair"), mask_token="<hair>")


def drawn_from(attribute: Attribute, counts: tuple[int, ...]) -> captions.CaptionScores:
    """Two captions of each image, and for each value one image more whose captions have two words beside the mask."""
    mask, rows = attribute.mask_token, []
    for label, count in enumerate(counts):
        for image in range(count + 1):
            text = f"a {mask} runs fast" if image < count else f"{mask} {mask} runs fast"
            rows += [(f"{label}-{image}", index, label, text, image % 2) for index in (0, 1)]
    columns = ["image_id", "caption_index", "label", "masked", "predicted"]
    table = pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)
    return captions.CaptionScores(None, attribute, table, None, None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("attribute", "counts", "sizes"),
    [
        (GENDER, (24, 31), [20, 20, 0]),  # the third draw would have four images of the first value
        (GENDER, (30, 7), [14, 0, 0]),
        (GENDER, (30, 0), [0, 0, 0]),
        (THREE, (12, 13, 40), [18, 18, 0]),
    ],
)
def test_draws_are_balanced_have_one_caption_per_image_and_share_none(attribute, counts, sizes):
    own = drawn_from(attribute, counts)
    draws = [captions.draw_captions(own, "sat", draw) for draw in (1, 2, 3)]
    assert [len(drawn) for drawn in draws] == sizes
    for drawn in draws:
        assert drawn["label"].value_counts().nunique() <= 1
        assert not drawn["masked"].str.startswith(f"{attribute.mask_token} ").any(), "two words are too few"
    assert pd.concat(draws)["image_id"].is_unique


def test_accuracies_have_wilsons_intervals():
    drawn = pd.DataFrame({"label": [0, 1] * 5, "predicted": [0] * 10})
    row = captions.score_guesses(drawn, [0, 1] * 4 + [1, 0])
    # Wilson's interval of 8 in 10, as Newcombe (1998) prints it: 0.490 to 0.943; of 5 in 10: 0.237 to 0.763.
    assert row == pytest.approx(
        {"n": 10, "value": 80, "ci_low": 49.0, "ci_high": 94.3}
        | {"attacker_value": 50, "attacker_ci_low": 23.7, "attacker_ci_high": 76.3},
        abs=0.05,
    )


def test_words_that_the_other_does_not_have_at_that_place_and_the_closest_caption():
    """difflib takes words that come in more than 1% of 200 and more for junk, unless told not to."""
    long = "the dog " * 150
    for first, second, expected in (
        ("a man with a dog", "a man with a dog", ([], [])),
        ("a man with a dog", "a man with a big dog", ([], ["big"])),
        ("a man holding a knife", "a woman holding a cake", (["man", "knife"], ["woman", "cake"])),
        ("a dog and a cat", "a cat and a dog", (["and", "a", "cat"], ["a", "cat", "and"])),  # longest run first
        ("a dog", "", (["a", "dog"], [])),
        ("", "", ([], [])),
        (long, long + "barks", ([], ["barks"])),
    ):
        sides = first.split(), second.split()
        marked = zip(sides, captions.words_of_one(*sides), strict=True)
        alone = [[word for word, mark in zip(*side, strict=True) if mark] for side in marked]
        assert alone == list(expected)
    others = ["two dogs run", "a wave and a man riding", "a man riding a big wave", "a man riding a small wave"]
    assert captions.closest(["a", "man", "riding", "a", "wave"], [other.split() for other in others]) == 2


def test_a_bar_goes_from_the_middle_to_its_side():
    for value, left, width, colour in (
        (-1, 0, 32, ORANGE_MARK),
        (-0.5, 16, 16, ORANGE_MARK),
        (0, 32, 0, BLUE_MARK),
        (0.25, 32, 8, BLUE_MARK),
        (3, 32, 32, BLUE_MARK),
    ):
        uri = captions.signed_bar(value)
        assert re.fullmatch(r"data:image/svg\+xml,[\w%/:= .-]+", uri)
        bar = ElementTree.fromstring(unquote(uri.partition(",")[2]))[0].attrib
        assert (float(bar["x"]), float(bar["width"]), bar["fill"]) == (left, width, colour)


def test_how_far_captions_lean():
    two = pd.DataFrame({"p0": [0.9, 0.5, 0.2], "p1": [0.1, 0.5, 0.8]})
    assert captions.lean(two, get_attribute("gender")).tolist() == pytest.approx([-0.8, 0.0, 0.6])
    nine = get_attribute("emotion")
    assert captions.lean(pd.DataFrame({"score": [1 / 9, 5 / 9, 1.0]}), nine).tolist() == pytest.approx([0.0, 0.5, 1.0])
