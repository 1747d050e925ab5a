"""Image IDs as text, whatever a file writes; and of two files joined one to one, or not at all with a near match."""

import json

import numpy as np
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load.columns import Wanted
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.join import join_ids, written
from capbias_core.load.read import Ask, File, read

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


NO_IDS = [
    (None, "missing"), (float("nan"), "missing"), (np.float64("nan"), "missing"), (float("inf"), "a number (inf)"),
    (" \t", "empty"), (np.False_, "false"), ([1], "a list"), (b"785", "bytes"), (10**5000, "100 digits"),
    ("a\0b", "NUL"), ("\ud800", "surrogate"),
]  # fmt: skip


def test_image_ids():
    assert {expected: {normalise_image_id(value) for value in values} for expected, values in IDS.items()} == {
        expected: {expected} for expected in IDS
    }
    for value, message in NO_IDS:
        with pytest.raises(ValueError, match="image id") as error:
            normalise_image_id(value)
        assert message in str(error.value)


NUMBERS = ["1000", "1001", "1002"]
DOGS = [f"dog_{number}.jpg" for number in NUMBERS]


@pytest.mark.parametrize(
    "pattern",
    [
        "/data/imgs/dog_#.jpg", "dog_#", "out\\DOG_#.PNG", "photos%2Fdog_#.jpg", "C:\\imgs\\#.jpg", "s3://b/val/#.jpg",
        "http://images.example.org/val2017/00000000#.jpg?x=1", "mscoco_val_#", "data/COCO_val2014_00000000#.txt", "#.0",
    ],
)  # fmt: skip
def test_ids_of_other_forms_are_joined_one_to_one(pattern):
    known = DOGS if "dog" in pattern.lower() else NUMBERS
    images = [written(pattern.replace("#", number)) for number in NUMBERS]
    for here, there in ((images, known), (known, images)):
        join = join_ids(here, there)
        assert join and list(join.pairs.values()) == list(there)


def test_what_may_be_another_image_is_not_joined():
    for images, known in (
        (["val/1000.jpg", "old/1000.jpg"], NUMBERS),
        (["dog_1000"], NUMBERS),
        (["train/7"], ["val/7"]),
    ):
        assert join_ids(images, known) is None
    for odd in ("http://[x", "s3://", "%00.jpg", "/", "?x=1", ".jpg", "…", "a" * 5000):
        assert join_ids([odd], ["1", "val/2.jpg"]) is None


def files(tmp_path, rows, labels):
    (tmp_path / "model.json").write_text(json.dumps(rows))
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    paths = [File(tmp_path / "model.json"), File(tmp_path / "labels.json")]
    return read(paths, wanted=[Wanted("gender", get_attribute("gender"))], needed=True)


def test_a_handful_of_accidental_matches_gives_no_number(tmp_path):
    labels = [{"image_id": 7 * number, "gender": "FM"[number % 2]} for number in range(1, 400)]
    rows = [{"image_id": number, "caption": f"a dog {number} runs"} for number in range(1, 300)]
    with pytest.raises(Ask, match="Only 42 of 299 images"):
        files(tmp_path, rows, labels)
    with pytest.raises(CapbiasError, match="only 14 of 99 images join"):
        files(tmp_path, rows[:99], labels)
    named = [row | {"file_path": f"val/COCO_val2014_{7 * row['image_id']:012}.jpg"} for row in rows]
    (captions, _) = files(tmp_path, named, labels).parts
    assert len(captions.images & {str(7 * number) for number in range(1, 300)}) == 299


@pytest.mark.parametrize("name", ["Unnamed: 0", "idx"])
def test_numbers_of_rows_join_nothing(tmp_path, name):
    """As pandas writes them: of two files they are the same, whatever the files hold."""
    labels = [{name: row, "image_id": 7000 + row * 3, "gender": "FM"[row % 2]} for row in range(100)]

    def captions(joining: int) -> list[dict]:
        ids = [row["image_id"] for row in labels[:joining]] + list(range(90_000, 90_000 + 100 - joining))
        rows = [{name: row, "image_id": image, "caption": "a dog runs"} for row, image in enumerate(reversed(ids))]
        return [row for row in rows if row[name] not in (5, 90)]

    (part, _) = files(tmp_path, captions(80), labels).parts
    assert len(part.images & {str(row["image_id"]) for row in labels}) == 79
    with pytest.raises(CapbiasError, match="no image ID is equal"):
        files(tmp_path, captions(0), labels)
