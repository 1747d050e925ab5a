"""Labels of gender from human captions: rules by hand, real counts by another way, labels that say what they are."""

import json
import re

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.parse import parse
from capbias_core.load.tables import captions
from capbias_core.prepare import derive_labels, with_rule
from capbias_core.workspace import derived
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


@pytest.mark.parametrize(("rule", "labels"), LABELS.items(), ids=str)
def test_a_rule_by_hand(rule, labels):
    found = derive_labels(frame_of(CAPTIONS), with_rule(get_attribute("gender"), *rule))
    assert dict(zip(found["image_id"], found["gender"], strict=True)) == dict(zip(CAPTIONS, labels, strict=True))


def test_the_shipped_rule_is_the_first_and_wrong_ones_are_refused():
    gender = get_attribute("gender")
    assert derive_labels(frame_of(CAPTIONS), gender)["gender"].tolist() == LABELS[1, "drop"]
    for wrong in ({"both": "precedence"}, {"both": "x"}, {"at_least": 0}):
        with pytest.raises(CapbiasError):
            with_rule(gender, **wrong)


@pytest.mark.parametrize("at_least", [1, 2])
def test_real_captions_counted_by_a_regular_expression(coco_bias, at_least):
    gender, path = get_attribute("gender"), coco_bias / "annotations" / "captions_subset.json"
    found = derive_labels(captions(parse(path)).frame, with_rule(gender, at_least))
    named = {value: re.compile(rf"\b({'|'.join(words)})\b") for value, words in gender.words.items()}
    counts: dict[str, dict[str, int]] = {}
    for own in json.loads(path.read_text())["annotations"]:
        image = counts.setdefault(str(own["image_id"]), {"Female": 0, "Male": 0})
        for value in image:
            image[value] += bool(named[value].search(own["caption"].lower()))
    for image, label in zip(found["image_id"], found["gender"], strict=True):
        (high, value), (low, _) = sorted(((count, value) for value, count in counts[image].items()), reverse=True)
        assert label == (value if high >= at_least and not low else ""), counts[image]


def test_labels_say_that_they_are_derived(tmp_path):
    workspace, frame = Workspace(tmp_path), frame_of(CAPTIONS)
    gender = get_attribute("gender")
    workspace.keep("references", "human", frame, "c", "human.json")
    assert derived.derive_missing(workspace, "c", gender) is None, "there are no captions to score"
    workspace.keep("captions", "model", frame, "c", "model.json")
    made = derived.derive_missing(workspace, "c", gender)
    assert made is not None and made.counts == {"Female": 1, "Male": 1} and made.neither == 4
    table = workspace.item("attributes", "gender from human", "c")
    attribute = table.details["attributes"]["gender"]["attribute"]
    assert "derived from human captions" in attribute["title"] and "not anybody's gender" in attribute["note"]
    assert "where no caption names another" in attribute["note"]
    assert derived.derive_missing(workspace, "c", gender) is None, "labels are there"


def test_the_terminal_derives_by_the_rule_that_is_asked_for(tmp_path, capsys):
    workspace = Workspace(tmp_path)
    workspace.keep("references", "human", frame_of(CAPTIONS), "c", "human.json")
    place = ["--workspace", str(tmp_path), "--collection", "c", "--references", "human"]
    asked = ["labels", "derive", "gender", *place, "--at-least", "1", "--both", "majority"]
    assert cli.main(asked) == 0
    assert "Female 2, Male 1; several or neither 3" in capsys.readouterr().out
    details = workspace.item("attributes", "gender from human", "c").details["derived"]
    assert (details["both"], details["at_least"]) == ("majority", 1)


def test_given_labels_go_before_derived_ones_and_cuts_are_left_out(tmp_path, capsys):
    """Somebody derives labels only to compare them, and cuts captions only to see how length matters."""
    workspace, place = Workspace(tmp_path), ["--workspace", str(tmp_path), "--collection", "c"]
    frame = pd.DataFrame({"image_id": list("123456"), "caption": ["a man", "a woman"] * 3, "caption_index": 0})
    labels = pd.DataFrame({"image_id": list("1234"), "gender": ["Male", "Female"] * 2})
    keep(workspace, references=frame, captions={"model": frame}, labels={"given": labels})
    workspace.keep("captions", "model, first 5 words", frame, "c", "test", {"cut": {"of": "model", "words": 5}})
    assert cli.main(["labels", "derive", "gender", *place, "--references", "human"]) == 0
    capsys.readouterr()
    assert cli.main(["score", *place, "--attribute", "gender", "--metric", "error", "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert "labels of gender: given; not used: gender from human" in said.err
    assert "Labels: Female 2, Male 2." in said.err and "first 5 words" not in said.out


def test_columns_that_are_named_make_a_file_one_of_captions(tmp_path, capsys):
    (tmp_path / "odd.csv").write_text("foo,bar\n1,a man\n2,a woman\n")
    (tmp_path / "labels.csv").write_text("image_id,gender\n1,Male\n2,Female\n")
    files = [str(tmp_path / "odd.csv"), "--labels", str(tmp_path / "labels.csv"), "--attribute", "gender"]
    named = ["--image-id-column", "foo", "--caption-column", "bar", "--metric", "error", "--format", "csv"]
    assert cli.main(["score", *files, *named]) == 0
    assert "odd.csv: captions of a model" in capsys.readouterr().err
