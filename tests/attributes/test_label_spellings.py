"""Labels as people spell them, numbers that are never guessed, and columns that are known by name or by labels."""

import pytest

from capbias_core.attributes import get_attribute, known_attributes
from capbias_core.attributes.labels import (
    MIXED,
    columns_by_attribute,
    is_about_labeller,
    is_unknown,
    label_columns,
    meaning,
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


def test_skin_tones_and_numbers_that_mean_nothing_by_themselves():
    dark, light = split("IV|V|VI|Type_VI|MST9|Darker"), split("I|II|III|Type_I|monk-2|lighter")
    found = suggest_mapping(RACE, [*dark, *light, "MST5", "White", "3|4", "1", "2", "6", "0x"])
    assert [label for label, value in found.items() if value == "Dark"] == dark
    assert [label for label, value in found.items() if value == "Light"] == light


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


F_M, CODES = ["F", "M"], ["0", "1"]
AGES = [str(age) for age in range(15)]


@pytest.mark.parametrize(
    ("attribute", "columns", "expected"),
    [  # column -> whether its labels are read; more than one is asked about
        (GENDER, {"who": F_M, "kind": CODES, "note": ["x", "y"]}, {"who": True}),
        (GENDER, {"gender": F_M, "predicted_gender": ["Female", "Male"]}, {"gender": True, "predicted_gender": True}),
        (GENDER, {"gender": CODES, "predicted_gender": F_M}, {"gender": False, "predicted_gender": True}),
        (GENDER, {"Male": ["-1", "1"], "who": F_M}, {"Male": False, "who": True}),
        (GENDER, {"sex": F_M, "gender_score": [f"0.{n}" for n in range(30)]}, {"sex": True}),
        (GENDER, {"a": ["women", "men", "both", "", "-", "?", "unsure"], "b": ["f", "m", *"vxyzq"]}, {"a": True}),
        (RACE, {"sky": ["light", "dark"], "Answer.skin": ["I", "VI"]}, {"Answer.skin": True}),
        (RACE, {"race": ["White", "Black"], "bb_skin": ["Light", "Dark"]}, {"race": False, "bb_skin": True}),
        (AGE, {"age": AGES, "AgePresentation": ["Young", "Older", "Middle"]}, {"AgePresentation": True}),
        (AGE, {"stage": ["1", "2"], "HITId": ["H1", "H2"]}, {}),
    ],
)
def test_columns_that_may_hold_an_attribute(attribute, columns, expected):
    assert label_columns(attribute, columns) == expected


def test_a_column_belongs_to_one_attribute_and_may_be_about_the_annotator():
    mine = Attribute("mine", "mine", ("Female", "Male"), {"Female": ("she",), "Male": ("he",)})
    known = [*known_attributes().values(), mine]
    assert columns_by_attribute(known, {"mine": F_M, "sex": F_M}) == {"gender": {"sex": True}, "mine": {"mine": True}}
    assert columns_by_attribute(known, {"who": F_M}) == {"gender": {"who": True}}
    names = ["annotator_gender", "gender of the worker", "rater1_gender", "Answer.gender", "perceived_gender"]
    assert [name for name in names if is_about_labeller(name)] == names[:2]
