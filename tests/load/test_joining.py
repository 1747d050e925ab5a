"""Image ids of two files: joined one to one, through file names, or not at all with a near match."""

import pytest

from capbias_core.load.ids import normalise_image_id
from capbias_core.load.joining import join_ids

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


@pytest.mark.parametrize("image", ["http://[x", "s3://", "%00.jpg", "/", "\\\\", "?x=1", ".jpg", "…", "a" * 5000])
def test_odd_ids_are_no_traceback(image):
    assert join_ids([image], ["1", "val/2.jpg"], {image: image}).mapping == {}
