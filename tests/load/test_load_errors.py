"""Files that cannot be loaded: one message each, and never another exception."""

import gzip
import json
import os
import pickle
import random
import zipfile

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load import detect, read_attributes, read_captions, report_attributes, report_captions


def error_of(path, read=read_captions) -> CapbiasError:
    with pytest.raises(CapbiasError) as caught:
        read(path)
    assert path.name in caught.value.got
    assert str(path.parent) not in str(caught.value)
    return caught.value


WHOLE_FILE = {
    "nothing": ("a.json", b"", "a.json, an empty file"),
    "white space": ("a.csv", b" \n\n ", "a.csv, an empty file"),
    "only a mark": ("a.csv", b"\xef\xbb\xbf", "a.csv, an empty file"),
    "cut JSON": ("a.json", b'[{"image_id": 1,\n "cap', "JSON that is broken at line 2, column 2 (Unterminated string"),
    "two lists": ("a.json", b'[{"image_id": 1, "caption": "x"}]\n[]', "broken at line 2, column 1 (Extra data)"),
    "deep lists": ("a.json", b"[" * 100_000, "lists too deep"),
    "long number": ("a.json", b"[" + b"1" * 5000 + b"]", "JSON that is broken"),
    "empty list": ("a.json", b"[]", "JSON that holds an empty list"),
    "list of numbers": ("a.json", b"[1, 2]", "JSON that holds a list of a number (1)"),
    "bare text": ("a.json", b'"x"', "JSON that holds text"),
    "annotations that are none": ("a.json", b'{"images": [], "annotations": {"a": 1}}', "an object with the keys a"),
    "no annotations": ("a.json", b'{"images": [{"id": 1}]}', "an object with the keys images"),
    "half a pair in a key": ("a.json", b'{"\\ud800": 1}', "an object with the keys ?"),
    "Latin-1": ("a.csv", "image_id,caption\n1,café\n".encode("latin-1"), "not UTF-8: the byte at offset 22 (line 2)"),
    "odd UTF-16": ("a.csv", "image_id,caption\n1,x\n".encode("utf-16") + b"x", "not UTF-16: the byte at offset 44"),
    "zeros": ("a.csv", b"\0" * 500, "binary data"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\xff\xfe", "binary data"),
    "prose": ("a.txt", b"Captions were written by people.\nThey are short.\n", "text in no format that is known"),
    "other columns": ("a.csv", b"file,sentences of people\n1,x\n", "a.csv with the columns file, sentences of people"),
    "one column": ("a.csv", b"caption\nx\n", "a.csv with the columns caption"),
    "same columns": ("a.csv", b"image_id,caption,caption\n1,x,y\n", "with the columns image_id, caption, caption"),
    "header only": ("a.csv", b"image_id,caption\n", "a.csv with 0 rows and none that can be used"),
    "open header": ("a.csv", b'"image_id,caption\n1,x\n', "a first line whose quotes are broken"),
    "only empty": ("a.csv", b"image_id,caption\n1,\n", "none that can be used (1 captions are empty)"),
    "no good row": ("a.csv", b"image_id,caption\n\n,x\n", "the first problem is at line 3: the image id is empty)"),
    "no good record": ("a.json", b'[{"image_id": 1, "caption": 2}]', "at record 1: the caption is a number (2), not"),
    "no good line": ("a.jsonl", b"{\n[]\n", "JSON Lines without a usable line (line 1: broken JSON at column"),
    "no Excel": ("a.xlsx", b"PK\x03\x04xl/" + b"x" * 50, "an Excel file that cannot be read"),
    "cut Excel": (
        "a.xlsx",
        b"PK\x03\x04" + b"x" * 50,
        "named as an Excel file and is another archive, or is cut short",
    ),
    "cut Parquet": ("a.parquet", b"PAR1" + b"x" * 50, "a Parquet file that is broken"),
    "gzip": ("a.json.gz", gzip.compress(b"[]"), "a gzip archive"),
    "bzip2": ("a.json", b"BZh91AY&SY" + b"x" * 9, "a bzip2 archive"),
    "cut pickle": ("a.pkl", pickle.dumps([{"a": "b"}])[:-3], "a pickle that is broken"),
    "JSON called pickle": ("a.pkl", b'[{"image_id": 1}]', "a pickle"),
}


@pytest.mark.parametrize("case", WHOLE_FILE)
def test_whole_file_faults(tmp_path, case):
    name, data, message = WHOLE_FILE[case]
    path = tmp_path / name
    path.write_bytes(data)
    error = error_of(path)
    assert message in error.got
    assert error.expected and error.remedy
    str(error).encode()


def test_archives_say_unpack(tmp_path):
    path = tmp_path / "captions.ods"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sheet.xml", "x")
    error = error_of(path)
    assert "a zip archive (or a spreadsheet" in error.got
    assert "Unpack it first" in error.remedy


def test_a_folder_and_nothing(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for read in (detect, read_captions, read_attributes):
        assert "a folder" in error_of(folder, read).got
        assert "does not exist" in error_of(tmp_path / "none.json", read).got


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_rights(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[]")
    path.chmod(0)
    assert "cannot be read" in error_of(path).got


@pytest.mark.long
def test_a_late_byte_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.jsonl"
    good = b'{"image_id": 1, "caption": "x"}\n'
    path.write_bytes(good * 100_000 + b"\xe9")
    assert detect(path).format == "jsonl"
    assert f"offset {len(good) * 100_000} (line 100001)" in error_of(path).got


def test_instances_are_no_captions(coco_bias):
    path = coco_bias / "annotations" / "instances_subset.json"
    assert detect(path).guess == {"image_id": "image_id", "caption": None}
    assert "which tells the objects on images" in error_of(path).got and "as objects" in error_of(path).remedy


def test_many_columns_are_cut(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(["x" * 100, *(f"column{number}" for number in range(30))]) + "\n")
    got = error_of(path).got
    assert "x" * 40 + "…, column0" in got
    assert got.endswith("column10 and 19 more")


def real_files(folder, coco_bias):
    """The start of the real data in every format."""
    records = json.loads((coco_bias / "results" / "nic.json").read_text())[:300]
    frame = pd.DataFrame(records)
    people = json.loads((coco_bias / "annotations" / "captions_subset.json").read_text())
    people = {"images": people["images"][:60], "annotations": people["annotations"][:300]}
    release = pickle.loads((coco_bias / "lic_release" / "Att2in_FC" / "race_val_fc_cap_entries.pkl").read_bytes())
    labels = (coco_bias / "annotations" / "attributes.csv").read_bytes()
    frame.to_parquet(folder / "source.parquet")
    return {
        "results.json": json.dumps(records).encode(),
        "captions.json": json.dumps(people, indent=1).encode(),
        "captions.csv": frame.to_csv(index=False).encode(),
        "captions.tsv": frame.to_csv(index=False, sep="\t").encode("utf-16"),
        "captions.jsonl": frame.to_json(orient="records", lines=True).encode(),
        "captions.parquet": (folder / "source.parquet").read_bytes(),
        "release.pkl": pickle.dumps(release[:300]),
        "attributes.csv": labels[:10_000],
    }


def only_known_errors(path):
    """Everything that can be done with a file: a table and its report, or a CapbiasError."""
    steps = (
        lambda: detect(path),
        lambda: report_captions(read_captions(path), path.name, {"785"}, {"785"}).lines(),
        lambda: report_attributes(read_attributes(path), path.name, {"785"}).lines(),
    )
    read = 0
    for step in steps:
        try:
            step()
            read += 1
        except CapbiasError as error:
            str(error).encode()
    return read


@pytest.mark.long
def test_files_cut_anywhere(tmp_path, coco_bias):
    for name, data in real_files(tmp_path, coco_bias).items():
        path, size = tmp_path / name, len(data)
        for end in (1, 2, 3, 4, 5, 9, 20, size // 3, size // 2, size - 1000, size - 9, size - 3, size - 1):
            path.write_bytes(data[:end])
            only_known_errors(path)
        path.write_bytes(data)
        assert only_known_errors(path) >= 2, name


@pytest.mark.long
def test_files_damaged_anywhere(tmp_path, coco_bias):
    draw = random.Random(0)
    for name, data in real_files(tmp_path, coco_bias).items():
        for _ in range(12):
            damaged = bytearray(data)
            for _ in range(draw.choice((1, 3, 20))):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            (tmp_path / name).write_bytes(damaged)
            only_known_errors(tmp_path / name)
