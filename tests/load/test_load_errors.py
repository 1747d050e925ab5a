"""Files that cannot be loaded: one message each, and never another exception."""

import io
import pickle
import zipfile

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load.parse import parse
from capbias_core.load.tables import captions


def error_of(path, read=lambda path: captions(parse(path))) -> CapbiasError:
    with pytest.raises(CapbiasError) as caught:
        read(path)
    assert path.name in caught.value.message
    assert str(path.parent) not in str(caught.value)
    str(caught.value).encode()
    return caught.value


def zipped(members):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return target.getvalue()


WHOLE_FILE = {
    "nothing": ("a.json", b"", "a.json is an empty file"),
    "cut JSON": ("a.json", b'[{"image_id": 1,\n "cap', "broken JSON (at line 2, column 2: Unterminated string"),
    "deep lists": ("a.json", b"[" * 100_000, "lists too deep"),
    "empty list": ("a.json", b"[]", "holds an empty list"),
    "list of numbers": ("a.json", b"[1, 2]", "holds a list of a number (1)"),
    "Latin-1": ("a.csv", "image_id,caption\n1,café\n".encode("latin-1"),
        "not UTF-8 text: the byte at offset 22 (line 2)"),
    "odd UTF-16": ("a.csv", "image_id,caption\n1,x\n".encode("utf-16") + b"x",
        "not UTF-16 text: the byte at offset 44"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\xff\xfe", "binary data"),
    "prose": ("a.txt", b"Captions were written by people.\nThey are short.\n", "text in no known format"),
    "other columns": ("a.csv", b"file,sentences of people\n1,x\n", "a.csv has the columns file, sentences of people"),
    "same columns": ("a.csv", b"image_id,caption,caption\n1,x,y\n",
        "two columns of the same name: image_id, caption, caption"),
    "header only": ("a.csv", b"image_id,caption\n", "a.csv has 0 rows and none that can be used"),
    "no good row": ("a.csv", b"image_id,caption\n\n,x\n", "the first problem is at line 3: the image id is empty)"),
    "no good line": ("a.jsonl", b"{\n[]\n", "JSON Lines without a usable line (line 1: broken JSON at column"),
    "no Excel": ("a.xlsx", b"PK\x03\x04xl/" + b"x" * 50, "an Excel file that cannot be read"),
    "cut Parquet": ("a.parquet", b"PAR1" + b"x" * 50, "a Parquet file that is broken"),
    "cut pickle": ("a.pkl", pickle.dumps([{"a": "b"}])[:-3], "a pickle that is broken"),
}  # fmt: skip


WHOLE_FILE |= {
    "lmms-eval without an image": (
        "s.jsonl",
        b'{"doc_id": 0, "m": {"image_id": null, "pred": "x"}}\n{"doc_id": 1}\n',
        "none that can be used (the first problem is at line 1: the image id is missing)",
    ),
    "imgToEval that is a list": ("d.json", b'{"imgToEval": {"1": "a"}, "imgToEval": [1]}', "no table is found"),
    "a list after an object": (
        "o.json",
        b'{"image_id": 1,\n"text": "a"}\n[1]',
        "broken JSON (at line 3, column 1: Extra",
    ),
    "Karpathy's without images": ("k.json", b'{"images": [], "x": {"sentences": []}}', "no table is found"),
    "Arrow, cut": ("a.arrow", b"\xff\xff\xff\xff\x10", "a.arrow is a data set that is broken"),
    "a zip of several": (
        "z.zip",
        zipped({"a.csv": "image_id,b\n1,2", "b.csv": "image_id,c\n1,2"}),
        "z.zip holds 2 files",
    ),
    "a zip of none": ("z.zip", zipped({"a.md": "Hello there"}), "text in no known format"),
}


@pytest.mark.parametrize("case", WHOLE_FILE)
def test_whole_file_faults(tmp_path, case):
    name, data, message = WHOLE_FILE[case]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CapbiasError) as caught:
        captions(parse(path))
    assert message in caught.value.message and caught.value.hint
    assert str(tmp_path) not in str(caught.value)
    str(caught.value).encode()


def test_a_folder_and_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    assert "is a folder" in error_of(tmp_path / "folder").message
    assert "does not exist" in error_of(tmp_path / "none.json").message


@pytest.mark.long
def test_a_late_byte_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.jsonl"
    good = b'{"image_id": 1, "caption": "x"}\n'
    path.write_bytes(good * 100_000 + b"\xe9")
    assert f"offset {len(good) * 100_000} (line 100001)" in error_of(path).message
