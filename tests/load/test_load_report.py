"""What an import says before anything is kept."""

import pandas as pd
import pytest

from capbias_core.load import parse, report_attributes, report_captions
from capbias_core.load.labels import labels as read_labels
from capbias_core.load.tables import captions as read_captions
from capbias_core.types import Problem, Table


def captions(pairs, **counts):
    frame = pd.DataFrame(pairs, columns=["image_id", "caption"])
    frame["caption_index"] = frame.groupby("image_id").cumcount()
    return Table(frame, rows=len(pairs), **counts)


def labels(rows, *names, **counts):
    return Table(pd.DataFrame(rows, columns=["image_id", *names], dtype="str"), rows=len(rows), **counts)


def test_counts_by_hand():
    table = captions(
        [("1", "A man rides."), ("1", "A dog"), ("2", "a dog"), ("3", "A dog"), ("4", "...")], empty=1, duplicates=2
    )
    report = report_captions(table, "mine.csv", known_ids={"1", "2", "3"}, reference_ids={"1"})
    assert (report["captions"], report["images"], report["distinct"]) == (5, 4, 4)
    assert report["captions_an_image"] == {1: 3, 2: 1}
    assert report["vocabulary"] == 4
    assert report["mean_length"] == pytest.approx((3 + 2 + 2 + 2 + 0) / 5)
    assert report["labelled_percent"] == 75.0
    assert (report["unknown_ids"], report["unknown_examples"]) == (1, ("4",))
    assert report["reference_percent"] == 25.0
    assert report.warnings == (
        "1 image has more than one caption: they are samples of one set.",
        "3 of 4 images have no reference and count for LIC_M alone.",
    )
    lines = dict(report.lines())
    assert lines["Captions"] == "5 (4 different)"
    assert lines["Captions per image"] == "1 (3 images), 2 (1 image)"
    assert lines["Words"] == "4 different, 1.8 per caption"
    assert lines["Images with labels"] == "3 (75.0%)"
    assert lines["Unknown image IDs"] == "1 (4)"
    assert lines["Images with references"] == "25.0%"
    assert (lines["Missing captions"], lines["Repeats left out"], lines["Problems"]) == ("1", "2", "0")


def test_what_was_not_given_is_not_reported():
    report = report_captions(captions([("1", "x")]), "mine.csv")
    names = ("labelled_percent", "unknown_ids", "reference_percent")
    assert [report[name] for name in names] == [None] * 3
    assert report.warnings == ()
    assert not {"Images with labels", "Unknown image IDs", "Images with references"} & set(dict(report.lines()))


def test_ids_of_another_data_set_are_said():
    table = captions([("10", "x"), ("11", "y"), ("12", "z")])
    report = report_captions(table, "mine.csv", known_ids={"b.jpg", "a.jpg", "c.jpg"})
    expected = "No image ID has a label: the IDs may come from another data set (10, 11; a.jpg, b.jpg)."
    assert report.warnings == (expected,)
    assert dict(report.lines())["Unknown image IDs"] == "3 (10, 11, 12)"


def test_many_unknown_ids_are_cut():
    report = report_captions(captions([(str(number), "x y") for number in range(1000)]), "a.csv", known_ids={"0"})
    assert dict(report.lines())["Unknown image IDs"] == "999 (1, 2, 3, 4, 5, …)"
    assert "999 of 1,000 images have no label and do not count." in report.warnings


def test_what_cleaning_found_is_in_the_report(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("image_id,caption\n1,nan\n2,<s>A dog.</s>\n3,A cat.\n4,\n")
    table = read_captions(parse(path))
    report = report_captions(table, "a.csv")
    assert report["cleaned"] == {"special tokens": 1, "missing": 2}
    assert report.warnings == table.warnings and len(report.warnings) == 2
    lines = dict(report.lines())
    assert (lines["Captions"], lines["Missing captions"], lines["Special tokens"]) == ("2 (2 different)", "2", "1")


def test_references_may_have_several_captions():
    table = captions([("1", "x"), ("1", "y")])
    assert report_captions(table, "a.json", kind="reference").warnings == ()
    assert len(report_captions(table, "a.json", kind="generated").warnings) == 1


def test_problems_are_lines_of_the_table():
    problems = (Problem("a.csv", 7, "no id"), Problem("a.csv", 9, "record 9: no id"))
    report = report_captions(captions([("1", "x")], problems=problems, problem_count=3), "a.csv")
    assert report.lines()[-3:] == [("Problems", "3 (the first 2 follow)"), ("line 7", "no id"), ("record 9", "no id")]
    assert report.warnings == ("3 problems in 1 row: these rows are left out. The first is at line 7: no id.",)


def test_labels_by_hand():
    rows = [(str(number), "Male" if number else "", str(number)) for number in range(30)]
    report = report_attributes(labels(rows, "gender", "age"), "labels.csv", caption_ids={"0", "1", "x", "y"})
    gender, age = report["columns"]
    assert (gender.counts, gender.distinct, gender.is_label) == ({"Male": 29, "": 1}, 2, True)
    assert (age.distinct, age.is_label, len(age.counts)) == (30, False, 20)
    assert report["coverage_percent"] == 50.0
    lines = dict(report.lines())
    assert lines["gender"] == "Male 29; (empty) 1"
    assert lines["age"] == "not a label column (30 different values)"
    assert lines["Captioned images with labels"] == "50.0%"
    assert report.warnings == ()


def test_labels_that_fit_nothing():
    rows = [(str(number), str(number)) for number in range(30)]
    report = report_attributes(labels(rows, "age"), "labels.csv", caption_ids={"x"})
    assert report.warnings[0] == "No column holds labels: each has more than 20 different values."
    assert "another data set (x; 0, 1)" in report.warnings[1]
    assert report_attributes(labels(rows, "age"), "labels.csv")["coverage_percent"] is None


@pytest.mark.long
def test_real_captions_and_labels(coco_bias):
    table = read_labels(parse(coco_bias / "annotations" / "attributes.csv"))
    nic = read_captions(parse(coco_bias / "results" / "nic.json"))
    people = read_captions(parse(coco_bias / "annotations" / "captions_subset.json"), human=True)
    known, referenced = set(table.frame["image_id"]), set(people.frame["image_id"])
    report = report_captions(nic, "nic.json", known, referenced)
    assert (report["rows"], report["captions"], report["images"]) == (13057, 13057, 13057)
    assert report["captions_an_image"] == {1: 13057}
    assert (report["labelled_percent"], report["unknown_ids"]) == (100.0, 0)
    expected = 100 * len(referenced & set(nic.frame["image_id"])) / 13057
    assert report["reference_percent"] == pytest.approx(expected)
    human = report_captions(people, "captions_subset.json", known, kind="reference")
    assert human["captions_an_image"] == {5: 3632, 6: 8}
    attributes = report_attributes(table, "attributes.csv", referenced)
    assert attributes["coverage_percent"] == 100.0
    assert [column.is_label for column in attributes["columns"]] == [True, True, False]
    assert dict(attributes.lines())["gender"].startswith("Male 7,466; Unsure 3,410; Female 3,314")
