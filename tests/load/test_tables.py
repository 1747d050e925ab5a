"""Rows that cannot be read are counted and named, and the others are kept."""

import json
import pickle

import numpy as np
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.labels import labels
from capbias_core.load.parse import parse
from capbias_core.load.tables import captions, objects, regions


def written(folder, name, text):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return parse(folder / name)


def pairs(table):
    return list(zip(table.frame["image_id"], table.frame["caption"], strict=True))


IDS = {
    "785": [785, 785.0, np.int64(785), np.float64(785), "785", "000785", "785.0", "COCO_val2014_000000000785.jpg",
            "val2014/COCO_val2014_000000000785.jpg", "COCO_train2014_000000000785", "000000000785.jpg",
            "/data/val2017/000000000785.jpg", "785.PNG"],
    "0": [0, "000"],
    "-3": [-3],
    "1.5": [1.5],
    "dog 7.jpg": [" dog 7.jpg "],
    "flickr_785.jpg": ["flickr_785.jpg"],
    "folder/785.jpg": ["folder/785.jpg"],
    "785a": ["785a"],
    "7-85": ["7-85"],
    "٣.jpg": ["٣.jpg"],
}  # fmt: skip


@pytest.mark.parametrize("expected", IDS)
def test_image_ids(expected):
    assert {normalise_image_id(value) for value in IDS[expected]} == {expected}


NO_IDS = [
    (None, "missing"),
    (float("nan"), "missing"),
    (np.float64("nan"), "missing"),
    (float("inf"), "a number (inf)"),
    ("", "empty"),
    (" \t", "empty"),
    (True, "true"),
    (np.False_, "false"),
    ([1], "a list"),
    (b"785", "bytes"),
    (10**5000, "100 digits"),
    ("a\0b", "NUL"),
    ("\ud800", "surrogate"),
]


@pytest.mark.parametrize(("value", "message"), NO_IDS, ids=range(len(NO_IDS)))
def test_image_ids_that_are_none(value, message):
    with pytest.raises(ValueError, match="image id") as error:
        normalise_image_id(value)
    assert message in str(error.value)


BAD_ROWS = [
    {"image_id": 1, "caption": "good"},
    {"image_id": None, "caption": "no id"},
    {"image_id": 2, "caption": 3},
    {"image_id": 3, "caption": None},
    {"image_id": 4, "caption": ["a list"]},
    {"image_id": 5, "caption": "nul \0"},
    {"image_id": 6, "caption": "half \ud83d"},
    {"image_id": True, "caption": "a flag"},
    {"image_id": 7, "caption": "  "},
    "no object",
    {"image_id": 8},
    {"image_id": 9, "caption": float("nan")},
    {"image_id": 1, "caption": "good"},
    {"image_id": 1, "caption": "better"},
]
BAD_MESSAGES = {
    2: "the image id is missing",
    3: "the caption is a number (3), not text",
    4: "there is no caption (null)",
    5: "the caption is a list, not text",
    6: "the caption holds a NUL character or half a surrogate pair",
    7: "the caption holds a NUL character or half a surrogate pair",
    8: "the image id is true, not a number or text",
    10: "text where an object is expected",
    11: "there is no caption (null)",
    12: "there is no caption (null)",
}


def test_bad_records_are_named_and_dropped(tmp_path):
    table = captions(written(tmp_path, "bad.json", json.dumps(BAD_ROWS)))
    assert pairs(table) == [("1", "good"), ("1", "better")]
    assert list(table.frame["caption_index"]) == [0, 1]
    assert (table.rows, table.empty, table.duplicates, table.problem_count) == (14, 1, 1, 10)
    expected = [(number, f"record {number}: {message}") for number, message in BAD_MESSAGES.items()]
    assert [(problem.line, problem.message) for problem in table.problems] == expected
    assert {problem.file for problem in table.problems} == {"bad.json"}


def test_csv_lines_are_lines_of_the_file(tmp_path):
    lines = ["image_id,caption", '1,"over', 'two lines"', "", ",no id", "2,too,many", "3", '4,"closed" and on', "5,"]
    lines += ["6,nul \0", "7,good", '8,"never closed', "9,lost", ""]
    table = captions(written(tmp_path, "a.csv", "\r\n".join(lines)))
    assert pairs(table) == [("1", "over\r\ntwo lines"), ("7", "good")]
    assert (table.rows, table.empty, table.problem_count) == (9, 1, 6)
    messages = {problem.line: problem.message for problem in table.problems}
    assert list(messages) == [5, 6, 7, 8, 10, 12]
    assert messages[5] == "the image id is empty"
    assert messages[6] == "3 fields where the header has 2" and messages[7] == "1 field where the header has 2"
    assert "text follows a closing quote" in messages[8] and "NUL" in messages[10]
    assert "never closed" in messages[12] and "(line 13)" in messages[12]


@pytest.mark.parametrize(
    ("end", "rows", "message"),
    [
        ("", 2, "a quote is opened and never closed; 7 further lines are lost with it"),
        ('12,"a cat"\n', 2, "(the row runs to line 12: 8 further lines are lost with it)"),
        ('a dog"\n', 3, "line breaks within quotes took in 8 further lines, the most from line 4 to line 12"),
    ],
)
def test_a_stray_quote_says_how_many_lines_it_took_in(tmp_path, end, rows, message):
    """Two good rows, then a quote that opens in line 4 and closes never, at a later quote, or at the end of a row."""
    lines = ["image_id,caption", "1,a dog", "2,a cat", '3,"a man', *(f"{own},a bus" for own in range(4, 11))]
    table = captions(written(tmp_path, "captions.csv", "\n".join(lines) + "\n" + end))
    assert len(table.frame) == rows
    assert any(message in line for line in (*table.notes, *(own.message for own in table.problems)))


@pytest.mark.parametrize("protocol", range(6))
def test_human_captions_of_the_release_unfold(tmp_path, protocol):
    entries = [
        {"img_id": 785, "caption_list": ["a woman", "a skier", "a woman"], "bb_gender": "Female", "ratio": 0.5},
        {"img_id": 872, "caption_list": ["two men", ""], "bb_gender": "Male", "ratio": None},
        {"img_id": 885, "caption_list": [], "bb_gender": "Male", "ratio": float("nan")},
    ]
    parsed = written(tmp_path, "gender_obj_cap_mw_entries.pkl", pickle.dumps(entries, protocol=protocol))
    table = captions(parsed, human=True)
    assert pairs(table) == [("785", "a woman"), ("785", "a skier"), ("785", "a woman"), ("872", "two men")]
    assert list(table.frame["caption_index"]) == [0, 1, 2, 0]
    assert (table.rows, table.empty) == (3, 2)
    frame = labels(parsed).frame
    assert list(frame["bb_gender"]) == ["Female", "Male", "Male"] and list(frame["ratio"]) == ["0.5", "", ""]


def test_lists_and_numbers_as_labels(tmp_path):
    records = [
        {"img": 1, "objects": ["person", "dog"], "age": 3, "image_id": "x", "adult": True},
        {"img": 2, "objects": {"person": 1}, "age": [[1], None, "x"]},
        {"img": 3, "objects": "half \ud800"},
        {"img": 4, "later": "column"},
    ]
    table = labels(written(tmp_path, "a.json", json.dumps(records)), {"image_id": "img"})
    assert list(table.frame.columns) == ["image_id", "objects", "age", "image_id (in the file)", "adult", "later"]
    assert table.frame.values.tolist() == [
        ["1", "person|dog", "3", "x", "True", ""],
        ["2", "(an object)", "(a list)||x", "", "", ""],
        ["4", "", "", "", "", "column"],
    ]
    assert [problem.line for problem in table.problems] == [3]


NOT_AS = {
    "one column for both": (captions, "a.csv", "words,caption\n1,x\n", {"image_id": "caption"}, "needed are image_id"),
    "no such column": (captions, "a.csv", "image_id,caption\n1,x\n", {"caption": "text"}, "no column 'text'"),
    "labels without a column": (labels, "a.csv", "pic,gender\n1,x\n", {}, "pic, gender"),
    "labels without labels": (labels, "a.csv", "image_id\n1\n", {}, "image_id"),
    "objects without a column": (objects, "a.csv", "image_id,gender\n1,x\n", {}, "needed are image_id, objects"),
    "objects of which none has a name": (objects, "a.csv", "image_id,objects\n1,\n", {}, "names no object"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_AS)
def test_a_file_that_is_something_else_gives_one_error(tmp_path, case):
    read, name, text, columns, message = NOT_AS[case]
    with pytest.raises(CapbiasError) as error:
        read(written(tmp_path, name, text), columns)
    assert message in error.value.message and error.value.hint


def test_regions_are_numbered_by_line(tmp_path):
    table = regions(written(tmp_path, "r.csv", "image_id,x1,y1,x2,y2\n1,0,0,3,3\n1,-1,0,3,3\n1,0,0,0,x\n"))
    assert table.frame.values.tolist() == [["1", 0, 0, 3, 3, 2]] and table.problem_count == 2
