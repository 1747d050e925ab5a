"""Labels of gender from human captions: rules by hand, real counts by another way, labels that say what they are."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.prepare.labels import derive_labels, with_rule
from capbias_core.workspace.ingest import read_frame
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep

CAPTIONS = {
    "agreed": ["a woman", "a lady", "a dog"],
    "contradicted": ["a woman", "two women", "a man"],
    "in one caption": ["a man and a woman", "a street"],
    "once": ["a man", "a dog", "a dog"],
    "a tie": ["a man", "a woman"],
    "nobody": ["a person", "a human", "management"],
}
LABELS = {
    (1, "drop"): ["Female", "", "", "Male", "", ""],
    (2, "drop"): ["Female", "", "", "", "", ""],
    (1, "majority"): ["Female", "Female", "", "Male", "", ""],
    (2, "majority"): ["Female", "Female", "", "", "", ""],
    (3, "majority"): ["", "", "", "", "", ""],
}


def frame_of(captions: dict[str, list[str]]) -> pd.DataFrame:
    rows = [(image, place, own) for image, every in captions.items() for place, own in enumerate(every)]
    return pd.DataFrame(rows, columns=["image_id", "caption_index", "caption"])


def test_rules_by_hand():
    gender = get_attribute("gender")
    for rule, labels in LABELS.items():
        derived = derive_labels(frame_of(CAPTIONS), with_rule(gender, *rule))
        assert derived["image_id"].tolist() == list(CAPTIONS) and derived["gender"].tolist() == labels
    # The shipped rule is the first.
    assert derive_labels(frame_of(CAPTIONS), gender)["gender"].tolist() == LABELS[1, "drop"]
    for wrong in ({"both": "precedence"}, {"both": "x"}, {"at_least": 0}):
        with pytest.raises(CapbiasError):
            with_rule(gender, **wrong)


@pytest.mark.long
def test_real_captions_counted_by_a_regular_expression(coco_bias):
    """And labels of age, by what METRICS says of them."""
    gender, path, at_least = get_attribute("gender"), coco_bias / "annotations" / "captions_subset.json", 2
    human = read_frame(path, "references")
    found = derive_labels(human, with_rule(gender, at_least))
    named = {value: re.compile(rf"\b({'|'.join(words)})\b") for value, words in gender.words.items()}
    counts: dict[str, dict[str, int]] = {}
    for own in json.loads(path.read_text())["annotations"]:
        image = counts.setdefault(str(own["image_id"]), {"Female": 0, "Male": 0})
        for value in image:
            image[value] += bool(named[value].search(own["caption"].lower()))
    for image, label in zip(found["image_id"], found["gender"], strict=True):
        (high, value), (low, _) = sorted(((count, value) for value, count in counts[image].items()), reverse=True)
        assert label == (value if high >= at_least and not low else ""), counts[image]
    table = read_frame(coco_bias / "annotations" / "attributes.csv", "labels").set_index("image_id")
    labels = derive_labels(human, get_attribute("age"))
    assert labels["age"].value_counts().to_dict() == {"young": 1297, "old": 1759, "": 584}
    people = labels[labels["image_id"].map(table["gender"]).isin(["Male", "Female"])]
    assert people["age"].value_counts().to_dict() == {"young": 963, "old": 1303, "": 184}


@pytest.mark.long
def test_given_labels_go_before_derived_ones(tmp_path, capsys):
    place = ["--workspace", str(tmp_path), "--collection", "c"]
    frame = pd.DataFrame({"image_id": list("123456"), "caption": ["a man", "a woman"] * 3, "caption_index": 0})
    labels = pd.DataFrame({"image_id": list("1234"), "gender": ["Male", "Female"] * 2})
    keep(Workspace(tmp_path), references=frame, captions={"model": frame}, labels={"given": labels})
    assert cli.main(["labels", "derive", "gender", *place, "--references", "human"]) == 0
    assert cli.main(["score", *place, "--attribute", "gender", "--metric", "error", "--format", "csv"]) == 0
    assert "Labels: Female 2, Male 2." in capsys.readouterr().err


# age


def write(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_first_value_that_a_caption_names_by_hand(tmp_path):
    labels = {
        ("a man", "a kid", "a woman"): "young",
        ("a man and a boy",): "young",
        ("a man", "an elderly woman"): "old",
        ("a dog", "a person", "someone's youth"): "",
        ("two men",): "old",
        ("some CHILDREN.",): "young",
        ("The Father's hat",): "old",
        ("an old-fashioned clock",): "",
        ("a kidney, a manhole, the management",): "",
        ("",): "",
    }
    frame = derive_labels(frame_of({" ".join(texts): list(texts) for texts in labels}), get_attribute("age"))
    assert frame["age"].tolist() == list(labels.values())
    text = 'values = ["a", "b", "c"]\n[words]\na = ["x"]\nb = ["y"]\nc = ["z"]\n[derived]\nprecedence = ["c", "a", "b"]'
    own = get_attribute(write(tmp_path, text))
    frame = frame_of({"1": ["x y"], "2": ["x y", "z"], "3": ["y"], "4": ["w"]})
    assert derive_labels(frame, own)["own"].tolist() == ["a", "c", "b", ""]
