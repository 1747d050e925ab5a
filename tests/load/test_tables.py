"""Raw columns to tables of captions, labels, objects and outlines, with faulty rows counted and named; and
the report on a table. All counts by hand."""

import json
import pickle

import pandas as pd
import pytest
from pycocotools import mask

from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES, CAPTIONS, LABELS, OBJECTS, PHOTOGRAPHS, REFERENCES, SEGMENTS
from capbias_core.load.account import captions
from capbias_core.load.labels import labels
from capbias_core.load.read import parse
from capbias_core.load.report import report_table
from capbias_core.load.tables import objects, outline_fault, run_lengths, segments
from capbias_core.types import SEGMENT_COLUMNS, Problem, Table
from capbias_core.workspace import ingest
from capbias_core.workspace.ingest import File, held_by, preview, read_part, store
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Workspace


def written(folder, name, text):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return parse(folder / name)


def pairs(table):
    return list(zip(table.frame["image_id"], table.frame["caption"], strict=True))


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
    assert pairs(table) == [("1", "good"), ("1", "good"), ("1", "better")]
    assert list(table.frame["caption_index"]) == [0, 1, 2]
    assert (table.rows, table.empty, table.problem_count) == (14, 1, 10)
    expected = [Problem("bad.json", number, message, "record") for number, message in BAD_MESSAGES.items()]
    assert list(table.problems) == expected


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


def test_the_first_faults_come_in_file_order_and_all_are_counted(tmp_path):
    """Faults of lines and of their values are met one kind after the other."""
    lines = [",no id", "1,two,fields"] * 30
    table = captions(written(tmp_path, "a.csv", "\n".join(["image_id,caption", *lines, "1,a dog"])))
    assert [problem.line for problem in table.problems] == list(range(2, 22)) and table.problem_count == 60


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


def test_human_captions_of_the_release_unfold(tmp_path):
    entries = [
        {"img_id": 785, "caption_list": ["a woman", "a skier", "a woman"], "bb_gender": "Female", "ratio": 0.5},
        {"img_id": 872, "caption_list": ["two men", ""], "bb_gender": "Male", "ratio": None},
        {"img_id": 885, "caption_list": [], "bb_gender": "Male", "ratio": float("nan")},
    ]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        parsed = written(tmp_path, "entries.pkl", pickle.dumps(entries, protocol=protocol))
        table = captions(parsed, human=True)
        assert pairs(table) == [("785", "a woman"), ("785", "a skier"), ("785", "a woman"), ("872", "two men")]
        assert (list(table.frame["caption_index"]), table.rows, table.empty) == ([0, 1, 2, 0], 3, 2)
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
    "one column for both": (captions, "a.csv", "words,caption\n1,x\n", {"image_id": "caption"}, "none holds texts"),
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


# outlines

CATEGORIES = [{"id": 1, "name": "person"}, {"id": 18, "name": "Dog"}]
SQUARE = [[1, 1, 4, 1, 4, 4, 1, 4]]
# Three columns of a picture two pixels high: the runs go down the columns, first of what is outside.
RUNS = {"size": [2, 3], "counts": [1, 3, 2]}


def annotation(image=1, category=1, outline=SQUARE, **further) -> dict:
    return {"image_id": image, "category_id": category, "segmentation": outline, "bbox": [1, 1, 3, 3], **further}


def instances(folder, annotations, sizes=((1, 10, 10),), name="instances.json", **further):
    """A COCO instances file. sizes: (image id, height, width)."""
    images = [{"id": image, "height": height, "width": width} for image, height, width in sizes]
    path = folder / name
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": CATEGORIES, **further}))
    return path


def segment_table(path, wanted=None):
    return segments(parse(path), wanted)


def test_outlines_by_hand(tmp_path):
    rows = [annotation(), annotation(2, 18, RUNS, iscrowd=1), annotation(2, 18, {**RUNS, "counts": "132"})]
    table = segment_table(instances(tmp_path, rows, ((1, 10, 12), (2, 2, 3))))
    assert list(table.frame.columns) == list(SEGMENT_COLUMNS)
    first, crowd, to_npz = table.frame.itertuples(index=False)
    assert first[:9] == ("1", "person", False, 10, 12, 1, 1, 4, 4) and json.loads(first.outline) == SQUARE
    assert crowd[:5] == ("2", "dog", True, 2, 3) and json.loads(crowd.outline) == RUNS
    assert not to_npz.crowd
    assert (table.rows, table.others, table.problem_count) == (3, 0, 0)


def test_a_box_that_is_missing_is_that_of_the_outline(tmp_path):
    rows = [annotation(outline=[[1, 2, 5, 2, 5, 7.5]]), annotation(2, outline=RUNS)]
    for row in rows:
        row.pop("bbox")
    frame = segment_table(instances(tmp_path, rows, ((1, 10, 10), (2, 2, 3)))).frame
    # The runs are one pixel outside, three inside (below it, and the second column), two outside.
    assert frame[["x1", "y1", "x2", "y2"]].to_numpy().tolist() == [[1, 2, 5, 7.5], [0, 0, 2, 2]]


# Of the same two columns of a picture two pixels high and three wide.
WRITTEN = {
    "in a list": [RUNS],
    "in two parts": [{"size": [2, 3], "counts": [1, 1, 4]}, {"size": [2, 3], "counts": [2, 2, 2]}],
    "as text": json.dumps(RUNS),
    "as Python's text": str({**RUNS, "counts": b"132"}),
    "with bytes as text": {**RUNS, "counts": "b'132'"},
    "without its size": {"counts": [1, 3, 2]},
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_mask_however_it_is_instances(tmp_path, case):
    row = annotation(outline=WRITTEN[case], category="person", bbox=[-2, 0, 90, 2])
    (outline,) = segment_table(instances(tmp_path, [row], ((1, 2, 3),))).frame.itertuples(index=False)
    kept = json.loads(outline.outline)
    assert kept["size"] == [2, 3] and run_lengths(kept["counts"]) == [1, 3, 2]
    assert outline[1:2] + outline[5:9] == ("person", 0, 0, 3, 2), "the box is cut at the edge of the image"


FAULTS = {
    "there is no outline": {"outline": None},
    "the outline is empty": {"outline": []},
    "the outline is a number": {"outline": 3},
    "neither polygons nor run lengths": {"outline": "[[1, 2"},
    "a polygon is not a list of 3": {"outline": [[1, 1, 4, 4]]},
    "a polygon holds something else than numbers": {"outline": [[1, 1, 4, 1, "4", 4]]},
    "a point of the outline is not on the image of 10 x 10": {"outline": [[1, 1, 4, 1, 4, 400]]},
    "an outline of 3 x 2 pixels on an image of 10 x 10": {"outline": RUNS},
    "run lengths for 99 pixels where the outline has 100": {"outline": {"size": [10, 10], "counts": [99]}},
    "run lengths that are neither": {"outline": {"size": [10, 10], "counts": [-1, 101]}},
    "the category 99": {"category": 99},
    "the image id is empty": {"image": " "},
}


def test_a_fault_is_counted_and_named_and_the_others_are_read(tmp_path):
    table = segment_table(instances(tmp_path, [annotation(), *(annotation(**fault) for fault in FAULTS.values())]))
    assert len(table.frame) == 1 and table.problem_count == len(FAULTS)
    assert [problem.line for problem in table.problems] == list(range(2, len(FAULTS) + 2))
    for problem, message in zip(table.problems, FAULTS, strict=True):
        assert message in problem.message


def test_another_file_and_sizes_that_are_not_known(tmp_path):
    for sizes in ((), ((1, 0, 0),), ((1, 10**9, 10**9),), ((1, "?", None),)):
        frame = segment_table(instances(tmp_path, [annotation()], sizes)).frame
        assert frame[["height", "width"]].to_numpy().tolist() == [[0, 0]]
    for content, message in (("[]", "no table is found"), ('{"annotations": [{"image_id": 1}]}', "holds no outlines")):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(CapbiasError, match=message):
            segment_table(tmp_path / "other.json")


def test_only_images_that_are_asked_for(tmp_path):
    table = segment_table(instances(tmp_path, [annotation(1), annotation(2), annotation(2)]), {"2"})
    assert set(table.frame["image_id"]) == {"2"} and table.others == 1
    with pytest.raises(CapbiasError, match="3 are of images that the collection does not have"):
        segment_table(tmp_path / "instances.json", {"7"})


def test_compressed_run_lengths_are_those_of_pycocotools():
    for runs in ([0, 5], [5], [1, 3, 2], [7, 40, 1, 0, 900, 31, 33, 1023, 1, 65536], [3, 2, 1, 1, 1, 1]):
        compressed = mask.frPyObjects({"size": [sum(runs), 1], "counts": runs}, sum(runs), 1)["counts"].decode()
        assert run_lengths(compressed) == runs


def test_runs_for_fewer_pixels_never_reach_pycocotools():
    # It would hand over whatever lay in memory for the pixels that are missing.
    assert "run lengths for 1 pixels" in outline_fault({"size": [2, 2], "counts": "1"}, 2, 2)


@pytest.mark.long
def test_of_a_large_file_only_images_of_the_collection_are_kept(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path / "home")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "000002.png").touch()
    keep_images(workspace, tmp_path / "pictures", "c")
    path = instances(tmp_path, [annotation(1), annotation(2)])
    assert len(read_part(path, "segments").frame) == 2
    monkeypatch.setattr(ingest, "LARGE_FILE", 10)
    (part,) = preview([File(path, "segments")], held_by(workspace, "c"))
    assert list(part.frame["image_id"]) == ["2"] and part.reading.table.others == 1
    (item,) = store(workspace, "c", [part])
    assert workspace.frame(item.hash).equals(part.frame)


# reports


def table_of(*pairs, **counts) -> Table:
    frame = pd.DataFrame(pairs, columns=["image_id", "caption"])
    return Table(frame.assign(caption_index=frame.groupby("image_id").cumcount()), rows=len(pairs), **counts)


def labels_of(*columns: str) -> Table:
    """30 images: labels that one of them lacks, and numbers that are no labels."""
    rows = [(str(number), "Male" if number else "", str(number)) for number in range(30)]
    return Table(pd.DataFrame(rows, columns=["image_id", "gender", "age"], dtype="str")[["image_id", *columns]], 30)


MINE = table_of(("1", "A man rides."), ("1", "A dog"), ("2", "a dog"), ("3", "A dog"), ("4", "..."), empty=1)
MANY = table_of(*((str(number), "x y") for number in range(1000)))
SEGMENT = dict.fromkeys(SEGMENT_COLUMNS, 0) | {"object": "person", "crowd": False}
OUTLINES = pd.DataFrame([SEGMENT | {"image_id": "1"}, SEGMENT | {"image_id": "2", "object": "dog", "height": 5}])
OBJECTS_OF = pd.DataFrame([("1", "dog:0.9|cat"), ("2", "dog"), ("3", "")], columns=["image_id", "objects"])
PROBLEMS = (Problem("a.csv", 7, "no id"), Problem("a.csv", 9, "no id", "record"))

# A table, its kind and known images -> lines of the report, and a part of each warning.
REPORTS = {
    "captions": (MINE, CAPTIONS, {LABELS: {"1", "2", "3"}, REFERENCES: {"1"}}, {
        "Rows": "5", "Captions": "5 (4 different)", "Images": "4", "Words": "4 different, 1.8 per caption",
        "Missing captions": "1", "Images with labels": "3 (75.0%)", "Unknown image IDs": "1 (4)",
        "Images with references": "1 (25.0%)", "Problems": "0",
    }, ["1 image has more than one caption", "3 of 4 images have no human captions"]),
    "human captions": (MINE, REFERENCES, {REFERENCES: {"1"}}, {"Images": "4"}, []),
    "unknown images": (MANY, CAPTIONS, {LABELS: {"0"}}, {"Unknown image IDs": "999 (1, 2, 3, 4, 5, …)"}, ["999 of"]),
    "other images": (MANY, CAPTIONS, {LABELS: {"b.jpg", "a.jpg", "c.jpg"}}, {}, ["data set (0, 1; a.jpg, b.jpg)"]),
    "problems": (table_of(("1", "x"), problems=PROBLEMS, problem_count=3), CAPTIONS, {}, {
        "Problems": "3 (the first 2 follow)", "line 7": "no id", "record 9": "no id"}, ["3 problems in 1 row"]),
    "labels": (labels_of("gender", "age"), LABELS, {CAPTIONS: {"0", "1", "x", "y"}}, {
        "gender": "Male 29; (empty) 1", "age": "not a label column (30 different values)",
        "Captioned images with labels": "2 (50.0%)"}, []),
    "no labels": (labels_of("age"), LABELS, {CAPTIONS: {"x"}}, {}, ["No column holds labels", "No image ID"]),
    "objects": (Table(OBJECTS_OF, 3, crowds=1), OBJECTS, {LABELS: {"1", "7", "8"}}, {
        "Images": "3 (1 without an object)", "Images by category": "dog 2, cat 1",
        "Labelled images in the file": "1 (33.3%)"}, ["2 of 3 images have labels and are not in this file"]),
    "outlines": (Table(OUTLINES, 2, others=4), SEGMENTS, {PHOTOGRAPHS: {"1", "2", "3"}}, {
        "Outlines": "2 (0 of a crowd)", "Images": "2 (1 with a person)", "People": "1",
        "Photographs with outlines": "2 (66.7%)"}, ["size of 1 image"]),
    "boxes": (Table(OUTLINES, 2), BOXES, {}, {"Boxes": "2"}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", REPORTS)
def test_reports(case):
    table, kind, known, lines, warnings = REPORTS[case]
    report = report_table(table, kind, "a.csv", known)
    assert lines.items() <= dict(report.lines()).items()
    assert len(report.warnings) == len(warnings)
    assert all(part in warning for part, warning in zip(warnings, report.warnings, strict=True))


def test_report_on_cleaning(tmp_path):
    table = captions(written(tmp_path, "a.csv", "image_id,caption\n1,nan\n2,<s>A dog.</s>\n3,A cat.\n4,\n"))
    lines = dict(report_table(table, CAPTIONS, "a.csv").lines())
    assert (lines["Captions"], lines["Missing captions"], lines["Special tokens"]) == ("2 (2 different)", "2", "1")
