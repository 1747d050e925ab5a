"""The words by which captions name COCO's objects."""

import json

import pytest

from capbias_core.prepare.tasks import encode, named_objects, object_names


def objects_in(caption: str) -> list[str]:
    names = object_names()
    found = named_objects(encode([caption]), names).toarray()[0]
    return [name for name, there in zip(names, found, strict=True) if there]


def test_the_categories_are_those_of_coco(coco_bias):
    content = json.loads((coco_bias / "annotations" / "instances_subset.json").read_text())
    assert set(object_names()) == {record["name"] for record in content["categories"]} - {"person"}


def test_no_phrase_names_two_objects():
    phrases = [(phrase, name) for name, own in object_names().items() for phrase in set(own)]
    assert len({phrase for phrase, _ in phrases}) == len(phrases)


@pytest.mark.parametrize(
    ("caption", "objects"),
    [
        ("a woman at a desk with a computer", ["laptop"]),
        ("a computer mouse beside a computer keyboard", ["mouse", "keyboard"]),
        ("a computer monitor and two flat screens", ["tv"]),
        ("Two men waiting with suit cases and baggage", ["suitcase"]),
        ("a toaster oven and a microwave oven", ["microwave", "oven"]),
        ("a microwave oven", ["microwave"]),
        ("a man throws a disc near a van and busses", ["car", "bus", "frisbee"]),
        ("a dirt bike beside a bike", ["bicycle", "motorcycle"]),
        ("a boy on skiis with an iPhone", ["skis", "cell phone"]),
        ("three urinals and a stool", ["chair", "toilet"]),
        ("a girl with a desktop", []),
    ],
)
def test_words_of_real_captions(caption, objects):
    assert sorted(objects_in(caption)) == sorted(objects)


def test_words_agree_with_the_objects_released_with_the_captions(coco_bias):
    """Of the images whose captions use one of these words, most show the object (both by other people)."""
    import pandas as pd

    table = pd.read_csv(coco_bias / "annotations" / "attributes.csv", dtype=str, keep_default_na=False)
    shown = dict(zip(table["image_id"], table["objects"].str.split("|"), strict=True))
    content = json.loads((coco_bias / "annotations" / "captions_subset.json").read_text())
    pairs = (("computer", "laptop"), ("iphone", "cell phone"), ("disc", "frisbee"), ("scooter", "motorcycle"))
    for word, name in pairs:
        images = {str(row["image_id"]) for row in content["annotations"] if word in row["caption"].lower().split()}
        own = [name in shown[image] for image in images if image in shown]
        assert len(own) >= 3 and sum(own) / len(own) > 0.5, (word, sum(own), len(own))


def test_a_caption_counts_once_for_each_of_its_words():
    found = encode(["a cat and a cat", "", "a dog"])
    counts = dict(zip(found.vocabulary, found.captions_with().tolist(), strict=True))
    assert counts == {"a": 2, "cat": 1, "and": 1, "dog": 1}
    assert found.words().toarray().tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]]
