"""Files that cannot be loaded: one message each, and never another exception."""

import gzip
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
    "white space": ("a.csv", b" \n\n ", "a.csv is an empty file"),
    "only a mark": ("a.csv", b"\xef\xbb\xbf", "a.csv is an empty file"),
    "cut JSON": ("a.json", b'[{"image_id": 1,\n "cap', "broken JSON (at line 2, column 2: Unterminated string"),
    "two lists": ("a.json", b'[{"image_id": 1, "caption": "x"}]\n[]', "broken JSON (at line 2, column 1: Extra data)"),
    "deep lists": ("a.json", b"[" * 100_000, "lists too deep"),
    "long number": ("a.json", b"[" + b"1" * 5000 + b"]", "holds broken JSON"),
    "empty list": ("a.json", b"[]", "holds an empty list"),
    "list of numbers": ("a.json", b"[1, 2]", "holds a list of a number (1)"),
    "bare text": ("a.json", b'"x"', "holds text"),
    "annotations that are none": ("a.json", b'{"images": [], "annotations": {"a": 1}}',
        "an object with the keys images, annotations"),
    "no annotations": ("a.json", b'{"images": [{"id": 1}]}', "a.json has the columns id"),
    "half a pair in a key": ("a.json", b'{"\\ud800": 1}', "an object with the keys ?"),
    "Latin-1": ("a.csv", "image_id,caption\n1,café\n".encode("latin-1"),
        "not UTF-8 text: the byte at offset 22 (line 2)"),
    "odd UTF-16": ("a.csv", "image_id,caption\n1,x\n".encode("utf-16") + b"x",
        "not UTF-16 text: the byte at offset 44"),
    "zeros": ("a.csv", b"\0" * 500, "binary data"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\xff\xfe", "binary data"),
    "prose": ("a.txt", b"Captions were written by people.\nThey are short.\n", "text in no known format"),
    "other columns": ("a.csv", b"file,sentences of people\n1,x\n", "a.csv has the columns file, sentences of people"),
    "one column": ("a.csv", b"caption\nx\n", "a.csv has the columns caption"),
    "same columns": ("a.csv", b"image_id,caption,caption\n1,x,y\n",
        "two columns of the same name: image_id, caption, caption"),
    "header only": ("a.csv", b"image_id,caption\n", "a.csv has 0 rows and none that can be used"),
    "open header": ("a.csv", b'"image_id,caption\n1,x\n', "The quotes in the first line of a.csv are broken"),
    "only empty": ("a.csv", b"image_id,caption\n1,\n", "none that can be used (missing: 1)"),
    "no good row": ("a.csv", b"image_id,caption\n\n,x\n", "the first problem is at line 3: the image id is empty)"),
    "no good record": ("a.json", b'[{"image_id": 1, "caption": 2}]', "at record 1: the caption is a number (2), not"),
    "no good line": ("a.jsonl", b"{\n[]\n", "JSON Lines without a usable line (line 1: broken JSON at column"),
    "no Excel": ("a.xlsx", b"PK\x03\x04xl/" + b"x" * 50, "an Excel file that cannot be read"),
    "cut Excel": ("a.xlsx", b"PK\x03\x04" + b"x" * 50, "is no Excel file, or it was cut short"),
    "cut Parquet": ("a.parquet", b"PAR1" + b"x" * 50, "a Parquet file that is broken"),
    "gzip": ("a.json", gzip.compress(b"[]"), "a.json is a gzip archive"),
    "bzip2": ("a.json", b"BZh91AY&SY" + b"x" * 9, "a bzip2 archive"),
    "cut pickle": ("a.pkl", pickle.dumps([{"a": "b"}])[:-3], "a pickle that is broken"),
    "JSON called pickle": ("a.pkl", b'[{"image_id": 1}]', "a pickle"),
}  # fmt: skip


KARPATHY = '{"images": [{"cocoid": 7, "sentences": [{"raw": "a dog"}]}'
WHOLE_FILE |= {
    "an open spreadsheet": ("a.ods", b"PK\x03\x04" + b"x" * 50, "a.ods is a zip archive (or a spreadsheet"),
    "predictions, cut": ("o.json", b'{"predictions": [{"image_id": 1, "text": "a"}, {"im', "holds broken JSON"),
    "lmms-eval without an image": (
        "s.jsonl",
        b'{"doc_id": 0, "m": {"image_id": null, "pred": "x"}}\n{"doc_id": 1}\n',
        "none that can be used (the first problem is at line 1: the image id is missing)",
    ),
    "VLMEvalKit without rows": ("m.tsv", b"index\tanswer\tprediction\n", "m.tsv has 0 rows and none"),
    "captions by image, cut": ("d.json", b'{"785": "a man", "872": "a', "broken JSON (at line 1"),
    "imgToEval of numbers": ("d.json", b'{"imgToEval": {"1": 3}}', "d.json has"),
    "imgToEval that is a list": ("d.json", b'{"imgToEval": {"1": "a"}, "imgToEval": [1]}', "no table is found"),
    "names of fields": ("d.json", b'{"model": "a", "date": "b"}', "an object with the keys model, date"),
    "names of fields with a digit": ("d.json", b'{"v2": "a", "date": "b"}', "an object with the keys v2, date"),
    "objects, cut": ("o.json", b'{"image_id": 1,\n"text": "a"}\n{"image_id": 2,\n', "o.json holds broken JSON"),
    "a list after an object": (
        "o.json",
        b'{"image_id": 1,\n"text": "a"}\n[1]',
        "broken JSON (at line 3, column 1: Extra",
    ),
    "Oscar without captions": ("p.tsv", b'1\t[{"caption": 3}]\n2\t{"caption"\n', "p.tsv"),
    "Karpathy's, cut": ("k.json", KARPATHY.encode(), "k.json holds broken JSON"),
    "Karpathy's without images": ("k.json", b'{"images": [], "x": {"sentences": []}}', "no table is found"),
    "Arrow, cut": ("a.arrow", b"\xff\xff\xff\xff\x10", "a.arrow is a data set that is broken"),
    "a zip of several": (
        "z.zip",
        zipped({"a.csv": "image_id,b\n1,2", "b.csv": "image_id,c\n1,2"}),
        "z.zip holds 2 files",
    ),
    "a zip of none": ("z.zip", zipped({"a.md": "Hello there"}), "text in no known format"),
    "a broken zip": ("z.zip", b"PK\x03\x04 no", "z.zip cannot be unpacked"),
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
