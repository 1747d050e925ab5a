"""Outlines of what images show: read from COCO instances, faults counted and named, kept in a collection."""

import json

import pytest
from pycocotools import mask

from capbias_core.errors import CapbiasError
from capbias_core.load.parse import parse
from capbias_core.load.segments import outline_fault, run_lengths
from capbias_core.load.tables import segments
from capbias_core.types import SEGMENT_COLUMNS
from capbias_core.workspace import ingest
from capbias_core.workspace.ingest import File, held_by, preview, read_part, store
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Workspace

CATEGORIES = [{"id": 1, "name": "person"}, {"id": 18, "name": "Dog"}]
SQUARE = [[1, 1, 4, 1, 4, 4, 1, 4]]
# Three columns of a picture two pixels high: the runs go down the columns, first of what is outside.
RUNS = {"size": [2, 3], "counts": [1, 3, 2]}


def annotation(image=1, category=1, outline=SQUARE, **further) -> dict:
    return {"image_id": image, "category_id": category, "segmentation": outline, "bbox": [1, 1, 3, 3], **further}


def written(folder, annotations, sizes=((1, 10, 10),), name="instances.json", **further):
    """A COCO instances file. sizes: (image id, height, width)."""
    images = [{"id": image, "height": height, "width": width} for image, height, width in sizes]
    path = folder / name
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": CATEGORIES, **further}))
    return path


def segment_table(path, wanted=None):
    return segments(parse(path), wanted)


def read_segments(path, *more):
    return segment_table(path, *more).frame


def test_outlines_by_hand(tmp_path):
    rows = [annotation(), annotation(2, 18, RUNS, iscrowd=1), annotation(2, 18, {**RUNS, "counts": "132"})]
    table = segment_table(written(tmp_path, rows, ((1, 10, 12), (2, 2, 3))))
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
    frame = read_segments(written(tmp_path, rows, ((1, 10, 10), (2, 2, 3))))
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
def test_a_mask_however_it_is_written(tmp_path, case):
    row = annotation(outline=WRITTEN[case], category="person", bbox=[-2, 0, 90, 2])
    (outline,) = segment_table(written(tmp_path, [row], ((1, 2, 3),))).frame.itertuples(index=False)
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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_counted_and_named_and_the_others_are_read(tmp_path, fault):
    table = segment_table(written(tmp_path, [annotation(), annotation(**FAULTS[fault])]))
    assert len(table.frame) == 1 and table.problem_count == 1
    assert table.problems[0].line == 2 and fault in table.problems[0].message


@pytest.mark.parametrize("sizes", [(), ((1, 0, 0),), ((1, 10**9, 10**9),), ((1, "?", None),)])
def test_a_size_that_is_not_known_is_none(tmp_path, sizes):
    assert read_segments(written(tmp_path, [annotation()], sizes))[["height", "width"]].to_numpy().tolist() == [[0, 0]]


def test_another_file_is_refused(tmp_path):
    for content, said in (([], "no table is found"), ({"annotations": [{"image_id": 1}]}, "holds no outlines")):
        path = tmp_path / "other.json"
        path.write_text(json.dumps(content))
        with pytest.raises(CapbiasError, match=said):
            segment_table(path)
    cut = '{"annotations": [{"category_id": 1, "segmentation": [[1, 2'
    path.write_text(cut)
    with pytest.raises(CapbiasError, match=f"at line 1, column {len(cut) + 1}:"):
        segment_table(path)


def test_only_images_that_are_asked_for(tmp_path):
    table = segment_table(written(tmp_path, [annotation(1), annotation(2), annotation(2)]), {"2"})
    assert set(table.frame["image_id"]) == {"2"} and table.others == 1
    with pytest.raises(CapbiasError, match="3 are of images that the collection does not have"):
        segment_table(tmp_path / "instances.json", {"7"})


@pytest.mark.parametrize(
    "runs", [[0, 5], [5], [1, 3, 2], [7, 40, 1, 0, 900, 31, 33, 1023, 1, 65536], [3, 2, 1, 1, 1, 1]]
)
def test_compressed_run_lengths_are_those_of_pycocotools(runs):
    to_npz = mask.frPyObjects({"size": [sum(runs), 1], "counts": runs}, sum(runs), 1)["counts"].decode()
    assert run_lengths(to_npz) == runs


def test_runs_for_fewer_pixels_never_reach_pycocotools():
    # It would hand over whatever lay in memory for the pixels that are missing.
    assert "run lengths for 1 pixels" in outline_fault({"size": [2, 2], "counts": "1"}, 2, 2)


def test_of_a_large_file_only_images_of_the_collection_are_kept(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path / "home")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "000002.png").touch()
    keep_images(workspace, tmp_path / "pictures", "c")
    path = written(tmp_path, [annotation(1), annotation(2)])
    assert len(read_part(path, "segments").frame) == 2
    monkeypatch.setattr(ingest, "LARGE_FILE", 10)
    (part,) = preview([File(path, "segments")], held_by(workspace, "c"))
    assert list(part.frame["image_id"]) == ["2"] and part.reading.table.others == 1
    (item,) = store(workspace, "c", [part])
    assert workspace.frame(item.hash).equals(part.frame)
