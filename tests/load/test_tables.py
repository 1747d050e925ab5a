"""Rows that are faulty are counted and named, and the others are read; outlines. All counts by hand."""

import json

import pytest
from pycocotools import mask

from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES
from capbias_core.load.formats import sheets_of
from capbias_core.load.parts import Piece
from capbias_core.load.read import File, Held, read
from capbias_core.load.sheet import fields_in
from capbias_core.load.tables import outline_fault, run_lengths, segments
from capbias_core.types import SEGMENT_COLUMNS
from capbias_core.workspace.ingest import read_part

BAD_ROWS = [
    {"image_id": 1, "caption": "good"},
    {"image_id": None, "caption": "no id"},
    {"image_id": 3, "caption": None},
    {"image_id": 5, "caption": "nul \0"},
    {"image_id": True, "caption": "a flag"},
    {"image_id": 7, "caption": "  "},
    {"image_id": 8},
    {"image_id": 2, "caption": "a dog runs"},
]


def test_bad_records_are_named_and_dropped(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(BAD_ROWS))
    part = read_part(tmp_path / "a.json", CAPTIONS)
    assert part.frame[["image_id", "caption"]].to_numpy().tolist() == [["1", "good"], ["2", "a dog runs"]]
    assert [str(each) for each in part.problems] == [
        "record 2: the image id is missing",
        "record 4: the caption holds a NUL character",
        "record 5: the image id is missing",
    ]
    assert list(part.missing["missing"]) == ["3", "7", "8"]


def test_csv_lines_are_lines_of_the_file(tmp_path):
    rows = [f'{number},"a dog\nruns"' for number in range(12)]
    (tmp_path / "a.csv").write_text("image_id,caption\n" + "\n".join([*rows, "12", "13,a cat"]) + "\n")
    part = read_part(tmp_path / "a.csv", CAPTIONS)
    assert (len(part.frame), part.rows, str(part.problems[0])) == (13, 14, "line 26: 1 field where the header has 2")


def test_a_report_says_what_joins(tmp_path):
    captions = [{"image_id": number, "caption": f"a dog {number} runs"} for number in range(40)]
    (tmp_path / "a.json").write_text(json.dumps(captions))
    held = Held({LABELS: frozenset(map(str, range(38))), REFERENCES: frozenset(map(str, range(20)))})
    (part,) = read([File(tmp_path / "a.json")], held=held).parts
    lines = dict(part.lines(held.images))
    assert lines["Images with labels"] == "38 (95.0%)"
    assert lines["Images with human captions"] == "20 (50.0%)" and lines["Captions"] == "40 (40 different)"


def test_human_captions_beside_and_labels_of_the_release(tmp_path):
    rows = [{"img_id": 1, "caption_list": ["a man rides", "a man sits"], "bb_gender": "Male"},
            {"img_id": 2, "caption_list": ["a woman sits", "a dog runs"], "bb_gender": "Female"}]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(rows))
    human = read_part(tmp_path / "a.json", REFERENCES)
    assert len(human.frame) == 4 and human.frame["caption_index"].tolist() == [0, 1, 0, 1]
    labels = read_part(tmp_path / "a.json", LABELS)
    assert labels.frame["bb_gender"].tolist() == ["Male", "Female"]


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
    return segments(Piece(File(path), sheets_of(path, str(path))[0]), wanted)


def test_outlines_by_hand(tmp_path):
    rows = [annotation(), annotation(2, 18, RUNS, iscrowd=1), annotation(2, 18, {**RUNS, "counts": "132"})]
    table = segment_table(instances(tmp_path, rows, ((1, 10, 12), (2, 2, 3))))
    assert list(table.frame.columns) == list(SEGMENT_COLUMNS)
    first, crowd, to_npz = table.frame.itertuples(index=False)
    assert first[:9] == ("1", "person", False, 10, 12, 1, 1, 4, 4) and json.loads(first.outline) == SQUARE
    assert crowd[:5] == ("2", "dog", True, 2, 3) and json.loads(crowd.outline) == RUNS
    assert not to_npz.crowd
    assert (table.rows, table.account, table.problem_count) == (3, (("Others", "0"),), 0)


def test_a_box_is_cut_at_the_edge_and_a_category_may_be_text(tmp_path):
    row = annotation(outline=RUNS, category="person", bbox=[-2, 0, 90, 2])
    (outline,) = segment_table(instances(tmp_path, [row], ((1, 2, 3),))).frame.itertuples(index=False)
    assert outline[1:2] + outline[5:9] == ("person", 0, 0, 3, 2)


FAULTS = {
    "the outline is missing": {"outline": None},
    "encloses nothing": {"bbox": [20, 20, 3, 3]},
    "not numbers": {"bbox": None},
    "run lengths without their size": {"outline": {"counts": [1, 3, 2]}},
    "the outline is a number (3), neither polygons nor run lengths": {"outline": 3},
    "the outline is missing, neither polygons nor run lengths": {"outline": "[[1, 2"},
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
    assert set(table.frame["image_id"]) == {"2"} and table.account == (("Others", "1"),)
    with pytest.raises(CapbiasError, match="3 are of images that the collection does not have"):
        segment_table(tmp_path / "instances.json", {"7"})


def test_compressed_run_lengths_are_those_of_pycocotools():
    for runs in ([0, 5], [5], [1, 3, 2], [7, 40, 1, 0, 900, 31, 33, 1023, 1, 65536], [3, 2, 1, 1, 1, 1]):
        compressed = mask.frPyObjects({"size": [sum(runs), 1], "counts": runs}, sum(runs), 1)["counts"].decode()
        assert run_lengths(compressed) == runs


def test_runs_for_fewer_pixels_never_reach_pycocotools():
    # It would hand over whatever lay in memory for the pixels that are missing.
    assert "run lengths for 1 pixels" in outline_fault({"size": [2, 2], "counts": "1"}, 2, 2)


@pytest.mark.parametrize(
    "text, items",
    [
        ("['a dog' 'two\\n dogs']", ["a dog", "two\n dogs"]),  # as numpy prints a list
        ("['a dog'\n \"it's\"]", ["a dog", "it's"]),
        ("[\"he says 'a' 'b'\", 'c']", ["he says 'a' 'b'", "c"]),
    ],
)
def test_texts_in_a_cell_stay_apart(tmp_path, text, items):
    assert fields_in(text) == items


def test_of_many_outlines_only_images_of_the_collection_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("capbias_core.load.read.MANY_OUTLINES", 1)
    path = instances(tmp_path, [annotation(1), annotation(2)])
    (part,) = read([File(path, ("segments",))], held=Held({LABELS: frozenset(["2"])})).parts
    assert list(part.frame["image_id"]) == ["2"] and dict(part.account)["Others"] == "1"


@pytest.mark.parametrize("mark", [", ", ";", "/"])
def test_objects_with_another_sign_between_them_are_refused(mark, tmp_path):
    path = tmp_path / "objects.csv"
    path.write_text("image_id,objects\n" + "".join(f'{n},"cat{mark}dog"\n' for n in range(5)) + "9,cat\n")
    with pytest.raises(CapbiasError, match="Write the objects"):
        read_part(path, OBJECTS)


def test_human_captions_beside_those_that_are_named_are_refused(tmp_path):
    """They were left out without a word."""
    files = []
    for name, kinds in (("m", (CAPTIONS,)), ("refs", ()), ("other", (REFERENCES,))):
        texts = 1 if name == "m" else 5
        rows = [{"image_id": n, "caption": f"a dog {n} {k} runs"} for n in range(40) for k in range(texts)]
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps({"images": [{"id": n} for n in range(40)], "annotations": rows}))
        files[-1] = File(files[-1], kinds)
    with pytest.raises(CapbiasError, match="refs.json: human captions, too"):
        read(files)
    assert len(read([files[0], files[2]]).of(REFERENCES)) == 1
