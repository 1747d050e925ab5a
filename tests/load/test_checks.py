"""What captions say of themselves, of labels and of human captions, and which captions are not scored."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.checks import REFUSE, WARN, findings, refuse, revealing_words, text_findings

GENDER = get_attribute("gender")
THINGS = ("bicycle", "kite", "laptop", "guitar", "racket", "pizza", "umbrella", "horse", "clock", "bench", "cat")
PLACES = ("kitchen", "street", "park", "office", "field", "beach", "station", "garden")
N = 600
LABELS = pd.Series(np.random.default_rng(1).choice(["Female", "Male"], N), index=[str(i) for i in range(N)])


def captions(write=lambda who, thing, place: f"a {who} with a {thing} in the {place}", words=("woman", "man")):
    """One caption per image that names its label and what it shows."""
    rows = [
        (image, write(words[label == "Male"], THINGS[i * 7 % len(THINGS)], PLACES[i * 5 % len(PLACES)]))
        for i, (image, label) in enumerate(LABELS.items())
    ]
    return pd.DataFrame(rows, columns=["image_id", "caption"])


HUMAN = captions(lambda who, thing, place: f"in the {place} there is a {who} who holds one {thing}")


def shifted(frame):
    return frame.assign(image_id=np.roll(frame["image_id"], 1))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("several captions", "a man on a horse|a man rides a horse"),
        ("several captions", "a man; a man on a horse; a rider"),
        ("several captions", "1. A man on a horse. 2. A rider."),
        ("several captions", "(1) a man on a horse (2) a rider"),
        ("several captions", "- a man on a horse\n- a rider"),
        ("several captions", "Option 1: A man on a horse. Option 2: A rider."),
        ("JSON", '{"long_caption": "a man on a horse", "short_caption": "a man"}'),
        ("JSON", "['a man on a horse', 'a rider']"),
        ("JSON", json.dumps({"long": "a dog " * 1_000, "short": "a dog"})),  # was cut off before it was read
        ("brackets", "a man (0.2, 0.3, 0.4 on a {horse}"),
    ],
)
def test_what_one_caption_holds(name, text):
    assert name in [each.name for each in text_findings([text], np.array([1]))]
    assert not [each for each in text_findings(["a man and a man on a horse"], np.array([1])) if each.effect]


def effects(*given) -> dict[str, str]:
    return {each.name: each.effect for each in findings(*given)}


def test_captions_of_other_images_are_refused_and_their_own_are_not():
    """Shifted by one image: human captions, a model's, labels. And a captioner that says nothing of the label."""
    model = captions()
    assert findings(model, GENDER, LABELS, HUMAN) == []
    assert effects(captions(words=("person", "person")), GENDER, LABELS, HUMAN) == {"value named": WARN}
    for own, human in ((model, shifted(HUMAN)), (shifted(model), HUMAN)):
        found = findings(own, GENDER, LABELS, human)
        assert "captions and human captions" in [each.name for each in found if each.effect == REFUSE]
        with pytest.raises(CapbiasError, match="of another image"):
            refuse(found, "model")
        refuse(found, "model", shuffled=True)
    other = pd.Series(np.roll(LABELS, 1), index=LABELS.index)
    assert effects(model, GENDER, other, HUMAN) == {"captions and labels": REFUSE, "human captions and labels": REFUSE}
    assert effects(model, GENDER, other) == {"captions and labels": REFUSE}


def test_a_weak_captioner_is_scored():
    """60% of 100 right are no evidence that images are confused, and people's words show that they are not."""
    right = captions(lambda who, thing, place: f"a {who}")["caption"]
    wrong = right.map({"a woman": "a man", "a man": "a woman"})
    weak = captions().assign(caption=[pair[place % 5 > 2] for place, pair in enumerate(zip(right, wrong, strict=True))])
    assert effects(weak[:100], GENDER, LABELS)["captions and labels"] == WARN
    blind = weak.assign(caption=[pair[place % 2] for place, pair in enumerate(zip(right, wrong, strict=True))])
    assert effects(blind, GENDER, LABELS)["captions and labels"] == REFUSE
    assert effects(blind, GENDER, LABELS, HUMAN)["captions and labels"] == WARN


@pytest.mark.parametrize("human", [None, HUMAN])
def test_rows_that_shift_in_the_middle_are_refused(human):
    model = captions() if human is None else captions(words=("person", "person"))
    model["caption"] = [*model["caption"][:300], *model["caption"][299:-1]]
    attribute = GENDER if human is None else get_attribute("race")  # which captions do not name
    found = [each for each in findings(model, attribute, LABELS, human) if each.name == "shifted rows"]
    assert found[0].effect == REFUSE and "about row 30" in found[0].text


def test_words_that_are_not_masked_denied_values_and_copies():
    (titles,) = findings(captions(lambda who, thing, place: f"Mr. {who} with a {thing}"), GENDER, LABELS)
    assert (titles.name, titles.count) == ("revealing words", N)
    found = findings(captions(lambda who, thing, place: f"a {who} with a {thing}, no other man"), GENDER, LABELS)
    assert [each.name for each in found] == ["denied values"]
    (copies,) = findings(HUMAN, GENDER, LABELS, HUMAN)
    assert (copies.name, copies.count) == ("human captions", N)


def test_half_that_are_several_in_one_are_refused_of_people():
    human = captions()
    human.loc[:350, "caption"] += " | a dog on a bench"
    assert any(each.effect == REFUSE for each in findings(captions(), GENDER, LABELS, human))
    assert findings(human, GENDER, LABELS) == []


def test_captions_in_another_language_name_no_value_of_a_shipped_attribute():
    model = captions().assign(caption="een man zit aan een tafel met een laptop")
    assert findings(model, GENDER, LABELS)[0].effect == REFUSE
    own = replace(GENDER, words={"Female": ("vrouw",), "Male": ("man",)})
    assert all(each.name != "other languages" for each in findings(model, own, LABELS))
    assert all(each.effect == WARN for each in findings(model, get_attribute("race"), LABELS))


def test_words_on_people_are_in_the_list_or_reported():
    masked = GENDER.masked_words | revealing_words("gender").keys()
    words = (
        "lad gal bro mum grandma housewife businessman postman king madam sir mr mrs mx ze mankind unmanned mary james"
    )
    assert set(words.split()) <= masked
    assert not GENDER.masked_words & revealing_words("gender").keys()
