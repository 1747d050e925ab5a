"""The report on a file before anything is stored, against counts by hand."""

import pandas as pd

from capbias_core.load.parse import parse
from capbias_core.load.parsed import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, SEGMENTS
from capbias_core.load.report import PHOTOGRAPHS, report_table
from capbias_core.load.tables import captions as read_captions
from capbias_core.types import SEGMENT_COLUMNS, Problem, Table


def captions(*pairs, **counts) -> Table:
    return Table(pd.DataFrame(pairs, columns=["image_id", "caption"]), rows=len(pairs), **counts)


MINE = captions(
    ("1", "A man rides."), ("1", "A dog"), ("2", "a dog"), ("3", "A dog"), ("4", "..."), empty=1, duplicates=2
)
SEGMENT = dict.fromkeys(SEGMENT_COLUMNS, 0) | {"object": "person", "crowd": False}
OUTLINES = pd.DataFrame([SEGMENT | {"image_id": "1"}, SEGMENT | {"image_id": "2", "object": "dog", "height": 5}])
OBJECTS_OF = pd.DataFrame([("1", "dog:0.9|cat"), ("2", "dog"), ("3", "")], columns=["image_id", "objects"])


def test_captions():
    report = report_table(MINE, CAPTIONS, "mine.csv", {LABELS: {"1", "2", "3"}, REFERENCES: {"1"}})
    assert dict(report.lines()) == {
        "File": "mine.csv",
        "Rows": "5",
        "Captions": "5 (4 different)",
        "Images": "4",
        "Captions per image": "1 (3 images), 2 (1 image)",
        "Words": "4 different, 1.8 per caption",
        "Missing captions": "1",
        "Repeats left out": "2",
        "Images with labels": "3 (75.0%)",
        "Unknown image IDs": "1 (4)",
        "Images with references": "25.0%",
        "Problems": "0",
    }
    assert report.several == 1 and len(report.warnings) == 2  # several captions of an image, few references
    alone = report_table(MINE, REFERENCES, "mine.csv", {REFERENCES: {"1"}})
    assert alone.warnings == () and "Images with references" not in dict(alone.lines())


def test_ids_of_another_data_set_and_many_unknown_ones():
    table = captions(*((str(number), "x y") for number in range(1000)))
    report = report_table(table, CAPTIONS, "a.csv", {LABELS: {"0"}})
    assert dict(report.lines())["Unknown image IDs"] == "999 (1, 2, 3, 4, 5, …)" and len(report.warnings) == 1
    (warning,) = report_table(table, CAPTIONS, "a.csv", {LABELS: {"b.jpg", "a.jpg", "c.jpg"}}).warnings
    assert "another data set (0, 1; a.jpg, b.jpg)" in warning


def test_cleaning_and_problems(tmp_path):
    (tmp_path / "a.csv").write_text("image_id,caption\n1,nan\n2,<s>A dog.</s>\n3,A cat.\n4,\n")
    table = read_captions(parse(tmp_path / "a.csv"))
    lines = dict(report_table(table, CAPTIONS, "a.csv").lines())
    assert (lines["Captions"], lines["Missing captions"], lines["Special tokens"]) == ("2 (2 different)", "2", "1")
    problems = (Problem("a.csv", 7, "no id"), Problem("a.csv", 9, "record 9: no id"))
    report = report_table(captions(("1", "x"), problems=problems, problem_count=3), CAPTIONS, "a.csv")
    assert report.lines()[-3:] == [("Problems", "3 (the first 2 follow)"), ("line 7", "no id"), ("record 9", "no id")]
    assert "3 problems in 1 row" in report.warnings[0]


def test_labels():
    rows = [(str(number), "Male" if number else "", str(number)) for number in range(30)]
    table = Table(pd.DataFrame(rows, columns=["image_id", "gender", "age"], dtype="str"), rows=30)
    report = report_table(table, LABELS, "labels.csv", {CAPTIONS: {"0", "1", "x", "y"}})
    lines = dict(report.lines())
    assert lines["gender"] == "Male 29; (empty) 1" and lines["age"] == "not a label column (30 different values)"
    assert lines["Captioned images with labels"] == "50.0%" and report.warnings == ()
    table = Table(table.frame[["image_id", "age"]], rows=30)
    assert len(report_table(table, LABELS, "labels.csv", {CAPTIONS: {"x"}}).warnings) == 2


def test_objects_boxes_and_outlines():
    report = report_table(Table(OBJECTS_OF, 3, crowds=1), OBJECTS, "o.csv", {LABELS: {"1", "7", "8"}})
    lines = dict(report.lines())
    assert (lines["Images"], lines["Images by category"]) == ("3 (1 without an object)", "dog 2, cat 1")
    assert lines["Labelled images in the file"] == "33.3%" and len(report.warnings) == 1
    report = report_table(Table(OUTLINES, 2, others=4), SEGMENTS, "s.json", {PHOTOGRAPHS: {"1", "2", "3"}})
    lines = dict(report.lines())
    assert (lines["Outlines"], lines["Images"], lines["People"]) == ("2 (0 of a crowd)", "2 (1 with a person)", "1")
    assert lines["Photographs with outlines"] == "66.7%" and "size of 1 image" in report.warnings[0]
    assert dict(report_table(Table(OUTLINES, 2), BOXES, "b.csv").lines())["Boxes"] == "2"
