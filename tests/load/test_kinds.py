"""What files are taken for, and what comes out of archives."""

import gzip
import json
import zipfile

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load import archives
from capbias_core.load.archives import unpacked
from capbias_core.load.kinds import GENERATED, HUMAN, LABELS, OBJECTS, Likely, kind_of_captions, likely

COCO = {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a man"}]}
INSTANCES = {"images": [], "categories": [{"id": 3, "name": "dog"}], "annotations": [{"image_id": 1, "category_id": 3}]}
RESULTS = [{"image_id": 1, "caption": "a man"}]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("sat.json", json.dumps(RESULTS), GENERATED),
        ("human.json", json.dumps(RESULTS), HUMAN),
        ("my_refs.csv", "image_id,caption\n1,a man\n", HUMAN),
        ("preferences.csv", "image_id,caption\n1,a man\n", GENERATED),
        ("captions_val2014.json", json.dumps(COCO), HUMAN),
        ("instances.json", json.dumps(INSTANCES), OBJECTS),
        ("labels.csv", "image_id,gender,race\n1,Male,Light\n", LABELS),
        ("both.csv", "image_id,gender,objects\n1,Male,dog|cat\n", LABELS),
        ("objects.csv", "image_id,objects\n1,dog|cat\n", OBJECTS),
        ("boxes.csv", "image,class,confidence,x1,y1,x2,y2\n1.jpg,dog,0.9,0,0,5,5\n", OBJECTS),
        ("captions.jsonl", '{"image_id": 1, "caption": "a man"}\n{"image_id": 2, "caption": "a dog"}\n', GENERATED),
    ],
)
def test_kinds_by_content_and_name(tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    assert likely(tmp_path / name).kind == kind


def test_several_captions_an_image_are_peoples():
    assert kind_of_captions(GENERATED, ["1", "1", "2", "2", "2"]) == HUMAN
    assert kind_of_captions(GENERATED, ["1", "2", "3", "3"]) == GENERATED
    assert kind_of_captions(LABELS, ["1", "1"]) == LABELS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_instances_are_told_from_captions_in_any_encoding(tmp_path, encoding):
    (tmp_path / "a.json").write_text(json.dumps(INSTANCES), encoding=encoding)
    (tmp_path / "b.json").write_text(json.dumps(COCO | {"info": 'no \\"category_id\\" here'}), encoding=encoding)
    assert likely(tmp_path / "a.json") == Likely(OBJECTS, "COCO instances (JSON)")
    assert likely(tmp_path / "b.json") == Likely(HUMAN, "COCO captions (JSON)")


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


def test_tables_of_a_known_format(tmp_path):
    pd.DataFrame({"image_id": ["1"], "caption": ["a man"]}).to_parquet(tmp_path / "sat.parquet")
    assert likely(tmp_path / "sat.parquet") == Likely(GENERATED, "Parquet")
    (tmp_path / "sat.parquet").rename(tmp_path / "plain_human.parquet")
    human = Likely(HUMAN, "Parquet", human_by="by its name")
    assert likely(tmp_path / "plain_human.parquet") == human, "said where it is asked"
    (tmp_path / "prose.txt").write_text("Dear reader,\nnothing here.\n")
    with pytest.raises(CapbiasError):
        likely(tmp_path / "prose.txt")
