"""Labels as people spell them, numbers that are never guessed, and columns that are known by name or by labels."""

import pytest

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.attributes.labels import (
    MIXED,
    guess_attributes,
    is_unknown,
    label_columns,
    meaning,
    named_columns,
    spellings,
    suggest_mapping,
    values_among,
)
from capbias_core.types import Attribute

GENDER, RACE, AGE = (get_attribute(name) for name in ("gender", "race", "age"))
FEMALE = """Female| FEMALE |f|F.|W|woman|Women|girl|feminine|Predominantly Feminine|female-presenting|she|She/her|
    ['0. She/her/hers']|weiblich|Frau|Mädchen|Ma\u0308dchen|femme|mujer|女|Female/Female|
    ["Female", "Female"]|Female;unsure"""
MALE = """Male|m|M|Man|men|boy|guy|masculine|Predominantly_Masculine|he/him|['1. He/him/his']|männlich|MAENNLICH|Mann|
    homme|hombre|男性|\uff2d\uff41\uff4e"""


def split(text: str) -> list[str]:
    return [label for label in text.replace("\n    ", "").split("|") if label]


def test_gender_as_people_spell_it_and_what_is_neither():
    for labels, value in ((FEMALE, "Female"), (MALE, "Male")):
        assert {label: found for label, found in suggest_mapping(GENDER, split(labels)).items() if found != value} == {}
    labels = ["Both", "neutral", "they/them", "she/they", "F/M", "F|M", "0", "1", "2", "-1", "divers", "a woman walks"]
    assert set(suggest_mapping(GENDER, [*labels, ""]).values()) == {None}


@pytest.mark.parametrize(
    ("labels", "dark", "light"),
    [
        ("1 2 3 4 5 6", "4 5 6", "1 2 3"),
        ("6.0 1.0 2.0 0x", "6.0", "1.0 2.0"),
        ("1 2", "", ""),
        ("0 1", "", ""),
        ("1 2 3 4 5", "", ""),  # a scale of five, or types I to V of six?
        ("1 6 -1", "", ""),
        ("1 3 4 6 7 10", "7 10", "1 3"),  # Monk's 4 to 6 are neither
        ("I II III IV V VI", "IV V VI", "I II III"),
        ("Type_I Type_VI monk-2 MST9 lighter Darker dunkel", "Type_VI MST9 Darker dunkel", "Type_I monk-2 lighter"),
        ("MST5 lighter", "", "lighter"),
        ("White Black 3|4", "", ""),
    ],
)
def test_skin_tones(labels, dark, light):
    found = suggest_mapping(RACE, labels.split())
    assert [label for label, value in found.items() if value == "Dark"] == dark.split()
    assert [label for label, value in found.items() if value == "Light"] == light.split()


def test_an_attribute_with_two_values_of_one_meaning_reads_only_their_names():
    ages = Attribute("who", "who", ("woman", "girl", "man"))
    found = suggest_mapping(ages, ["Girl", "female", "MALE", "woman"])
    assert found == {"Girl": "girl", "female": None, "MALE": "man", "woman": "woman"}


def test_labels_that_say_nothing():
    labels = ["", "-", "--", "?", "N/A", "nan", "Unsure", "Can't tell", "can’t tell", "not_visible", "unbekannt", MIXED]
    for label in labels:
        assert is_unknown(label) and values_among([label, "x", "none"]) == ("none", "x")


def test_a_spelling_has_one_meaning_and_no_bare_number_has_any():
    listed = [(spelling, name) for name, each in spellings()["meanings"].items() for spelling in each]
    assert len({spelling for spelling, _ in listed}) == len(listed)
    assert {spelling: meaning(spelling) for spelling, _ in listed} == dict(listed), "written as labels are compared"
    assert not [spelling for spelling, _ in listed if spelling.lstrip("+-").isdigit()]


COLUMNS = {
    "gender": ["0", "1"],
    "GenderPresentation": ["Predominantly Feminine", "Predominantly Masculine", "Unknown"],
    "annotator_gender": ["F", "M"],
    "rater 1": ["women", "men", "both", "", "-", "n/a", "unsure", "?"],
    "gender_confidence": ["f", "m"],
    "is_female": ["0", "1"],
    "caption": ["a woman", "a man"],
    "sky": ["light", "dark"],
}


def test_columns_by_name_and_by_labels():
    assert named_columns(GENDER, COLUMNS) == ["gender", "GenderPresentation", "is_female"]
    assert label_columns(GENDER, COLUMNS) == ["GenderPresentation", "rater 1"], "a column of codes is not read"
    assert label_columns(RACE, COLUMNS | {"Answer.skin": ["I", "VI"]}) == ["Answer.skin"]
    names = ["Occupation_perceived_gender", "Answer.sex", "rater1_gender", "worker_gender"]
    assert named_columns(GENDER, names) == ["Answer.sex", "Occupation_perceived_gender", "rater1_gender"]
    ages = {"age": [str(age) for age in range(15)], "AgePresentation": ["Young", "Older", "Middle"]}
    for columns, guesses in (
        ({"gender": ["0", "1", "Both", "-", "N/A"]}, {"gender": "gender"}),
        ({"sex": ["F", "M"], "gender": ["0", "1"], "who": ["F", "M"]}, {"sex": "gender"}),
        (ages, {"AgePresentation": "age"}),
        ({"race": ["White", "Asian", "Black"], "bb_skin": ["Light", "Dark"]}, {"bb_skin": "race"}),
        ({"a": ["f", "m"], "b": ["women", "men"]}, {"a": "gender", "b": "gender"}),
        ({"HITId": ["H1", "H2"], "Title": ["Label"], "WorkerId": ["W1", "W2"]}, {}),
    ):
        found = guess_attributes(known_attributes().values(), columns)
        assert {column: attribute.name for column, attribute in found.items()} == guesses
