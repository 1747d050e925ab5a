"""Image IDs as text, whatever a file writes; and of two files joined one to one, or not at all with a near match."""

import numpy as np
import pytest

from capbias_core.load.ids import join_ids, normalise_image_id

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


def written(pattern: str) -> list[str]:
    return [normalise_image_id(pattern.replace("#", number)) for number in NUMBERS]


@pytest.mark.parametrize(
    ("pattern", "known", "how"),
    [
        ("/data/imgs/dog_#.jpg", DOGS, "last part"),
        ("dog_#", DOGS, "without its ending"),
        ("out\\dog_#.PNG", DOGS, "without its ending"),
        ("DOG_#.JPG", DOGS, "last part"),
        ("C:\\imgs\\#.jpg", NUMBERS, "last part"),
        ("http://images.example.org/val2017/00000000#.jpg?x=1", NUMBERS, "last part"),
        ("s3://b/val/#.jpg", NUMBERS, "last part"),
        ("mscoco_val_#", NUMBERS, "without its ending"),
        ("out/COCO_val2014_00000000#.txt", NUMBERS, "without its ending"),
        ("photos%2Fdog_#.jpg", DOGS, "last part"),
        ("#.0", NUMBERS, ""),
        ("data/COCO_val2014_00000000#.jpg", NUMBERS, ""),
    ],
)
def test_paths_and_endings_are_joined_one_to_one(pattern, known, how):
    images = written(pattern)
    for here, there in ((images, known), (known, images)):
        joined = join_ids(here, there)
        assert [joined.mapping.get(image, image) for image in here] == list(there)
        assert how in joined.how and bool(joined.how) is bool(how) and not joined.near


@pytest.mark.parametrize(
    ("images", "known", "near"),
    [
        (["val/1000.jpg", "old/1000.jpg"], ["1000", "1001"], "val/1000.jpg here, 1000 there"),
        (["1000"], ["val/1000.jpg", "old/1000.jpg"], "1000 here, val/1000.jpg there"),
        (["dog_1000", "dog_1001"], NUMBERS, "dog_1000 here, 1000 there"),
        (["s3://b/val/1001.jpg"], DOGS, "s3://b/val/1001.jpg here, dog_1001.jpg there"),
        (["train/1000.jpg"], ["val/1000.jpg"], "train/1000.jpg here, val/1000.jpg there"),
        (["cat.jpg"], DOGS, "cat.jpg here, dog_1000.jpg there"),
        ([f"a/{number}.jpg" for number in range(40)], [f"b/{number}.jpg" for number in range(39, 90)], ""),
        (["1000", "x/1001.jpg"], NUMBERS, ""),  # some ids are equal, so the others are other images
    ],
)
def test_what_may_be_another_image_is_not_joined(images, known, near):
    joined = join_ids(images, known)
    assert joined.mapping == {} and joined.how == ""
    assert joined.near.startswith(near) and bool(joined.near) is (set(images).isdisjoint(known))


def test_file_names_in_a_file_join_numbers_to_names():
    names = {str(place): f"photos/kitchen_{number}.png" for place, number in enumerate(NUMBERS, 1)}
    there = list(names.values())
    assert join_ids(names, there, names).mapping == names
    assert join_ids(there, names, known_names=names).mapping == {name: image for image, name in names.items()}
    assert "file names" in join_ids(names, there, names).how


def test_file_names_decide_against_numbers_that_are_equal_by_chance():
    """The ids count the images; 2, 3 and 4 happen to be images of the other file, too."""
    files = {"1": 2, "2": 3, "3": 9, "4": 77, "5": 50}
    names = {image: f"COCO_val2014_{number:012}.jpg" for image, number in files.items()}
    joined = join_ids(names, ["2", "3", "9", "4", "50"], names)
    assert joined.mapping == {"1": "2", "2": "3", "3": "9", "4": "4 (another image)", "5": "50"}
    same = {"785": "COCO_val2014_000000000785.jpg", "9": "COCO_val2014_000000000009.jpg"}
    assert join_ids(["785", "9"], ["785", "9", "10"], same).mapping == {}

    for odd in ("http://[x", "s3://", "%00.jpg", "/", "\\\\", "?x=1", ".jpg", "…", "a" * 5000):
        assert join_ids([odd], ["1", "val/2.jpg"], {odd: odd}).mapping == {}
