"""What files are taken for, and what comes out of archives."""

import gzip
import json
import zipfile

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load import archives
from capbias_core.load.archives import unpacked
from capbias_core.load.parse import parse
from capbias_core.load.read import BOXES, CAPTIONS, LABELS, OBJECTS, REFERENCES, guess_kind

COCO = {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a man"}]}
INSTANCES = {"images": [], "categories": [{"id": 3, "name": "dog"}], "annotations": [{"image_id": 1, "category_id": 3}]}
RESULTS = [{"image_id": 1, "caption": "a man"}]
SEVERAL = [{"image_id": 1, "caption": text} for text in ("a man", "a dog")]
LISTED = [{"image_id": 1, "caption": "a man", "refs": ["a boy", "a man"]}]
NUMBERED = [{"image_id": 1, "comment": text, "comment_number": place} for place, text in enumerate(["a man", "a dog"])]

# Only COCO's own annotations are human captions for certain; a name or a number of captions is a hint.
GUESSES = {
    "sat.json": (RESULTS, CAPTIONS, True, ""),
    "human.json": (RESULTS, CAPTIONS, True, "its name says so"),
    "preferences.json": (RESULTS, CAPTIONS, True, ""),
    "strong-human-aligned.json": (SEVERAL, CAPTIONS, True, "its name says so and its images have 2 captions each", 1),
    "nic.json": (SEVERAL, CAPTIONS, True, "its images have 2 captions each"),
    "texts.json": ([{"image_id": 1, "text": "a man"}], CAPTIONS, False, ""),
    "captions_val2014.json": (COCO, REFERENCES, True, ""),
    "without_ids.json": ({"annotations": RESULTS}, CAPTIONS, False, "it is laid out as COCO's human captions", 1),
    "numbered.json": (NUMBERED, CAPTIONS, False, "its captions are numbered", 1),
    "instances.json": (INSTANCES, OBJECTS, True, ""),
    "labels.csv": ("image_id,gender,race\n1,Male,Light\n2,Male,Dark\n", LABELS, True, ""),
    "comments.csv": ("image_id,gender,comment\n1,Male,\n2,Male,ok\n3,Female,\n4,Male,\n", LABELS, True, ""),
    "names.csv": ("picture of,gender\n1,Male\n2,Male\n", LABELS, False, ""),
    "both.csv": ("image_id,gender,objects\n1,Male,dog|cat\n2,Male,\n", LABELS, True, ""),
    "objects.csv": ("image_id,objects\n1,dog|cat\n", OBJECTS, True, ""),
    "boxes.csv": ("image,class,confidence,x1,y1,x2,y2\n1.jpg,dog,0.9,0,0,5,5\n", BOXES, True, ""),
}


@pytest.mark.parametrize("name", GUESSES)
def test_kinds_by_content(tmp_path, name):
    content, kind, certain, hint, *suggested = GUESSES[name]
    (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    guess = guess_kind(parse(tmp_path / name))
    assert (guess.guess, guess.certain, guess.hint) == (kind, certain, hint)
    assert guess.suggests == (REFERENCES if suggested else "")


def test_human_captions_beside_those_of_a_model_and_a_column_that_is_named(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(LISTED))
    parsed = parse(tmp_path / "a.json")
    assert guess_kind(parsed).human_column == "refs"
    (tmp_path / "a.csv").write_text("image_id,gender\n1,Male\n2,Male\n")
    assert guess_kind(parse(tmp_path / "a.csv"), {"caption": "gender"}).kind == CAPTIONS


def test_the_files_of_a_zip_by_their_names_alone(tmp_path):
    """Names that lead out of the folder stay in it; hidden files and those of macOS are left out."""
    names = ("results/sat.json", "other/sat.json", "../../out.csv", "/abs.csv", "__MACOSX/sat.json", "a/.hidden")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in names:
            archive.writestr(name, name)
    found = unpacked(tmp_path / "all.zip", tmp_path / "here")
    assert [path.name for path in found] == ["sat.json", "sat.json", "out.csv", "abs.csv"]
    assert len(set(found)) == 4 and all(tmp_path / "here" in path.parents for path in found)
    assert [path.read_text() for path in found] == list(names[:4])


def test_a_gz_and_any_other_file(tmp_path):
    (tmp_path / "sat.json.gz").write_bytes(gzip.compress(b"[1]"))
    (found,) = unpacked(tmp_path / "sat.json.gz", tmp_path / "here")
    assert (found.name, found.read_bytes()) == ("sat.json", b"[1]")
    assert unpacked(found, tmp_path / "there") == [found]


def test_archives_that_are_broken_empty_or_too_large_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    monkeypatch.setattr(archives, "MOST_TEXTS", 3)
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 no")
    (tmp_path / "broken.gz").write_bytes(gzip.compress(b"x" * 100)[:-9])
    (tmp_path / "large.gz").write_bytes(gzip.compress(bytes(2000)))
    for name, files in (("empty.zip", {}), ("many.zip", dict.fromkeys("abcd", "x")), ("large.zip", {"a": "x" * 2000})):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for own, text in files.items():
                archive.writestr(own, text)
    for name in ("broken.zip", "broken.gz", "large.gz", "empty.zip", "many.zip", "large.zip"):
        with pytest.raises(CapbiasError, match=name):
            unpacked(tmp_path / name, tmp_path / "here")
        assert not (tmp_path / "here").exists()
