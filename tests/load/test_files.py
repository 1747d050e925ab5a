"""Files as a whole: archives, files that are refused, and what a server may name."""

import gzip
import io
import json
import os
import signal
import socket
import tracemalloc
import zipfile
from importlib.util import find_spec

import openpyxl
import pyarrow as pa
import pyarrow.parquet
import pytest

import capbias_core as capbias
from capbias_core.attributes import read_attribute
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS
from capbias_core.language.files import find_model, model_digest
from capbias_core.load import files, places
from capbias_core.load.files import contents, unpacked_tree
from capbias_core.load.formats import sheets_of
from capbias_core.load.photographs import find_pictures, picture_files, read_photograph
from capbias_core.load.sheet import MOST_CHARACTERS, MOST_COLUMNS, MOST_ROWS
from capbias_core.load.vectors import read_vectors
from capbias_core.workspace.ingest import read_part
from capbias_core.workspace.models import model_option, named_file, resolve_model
from capbias_core.workspace.store import Workspace

RESULTS = [{"image_id": 1, "caption": "a man"}]


def parse(path):
    return sheets_of(path, path.name)


# archives


def zipped(members):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return target.getvalue()


def test_the_files_of_a_zip_by_their_names(tmp_path):
    """Nothing is written; hidden files and macOS's are left out. A name that leads out is refused."""
    (tmp_path / "all.zip").write_bytes(zipped({"results/sat.json": "x", "__MACOSX/sat.json": "x", "a/.hidden": "x"}))
    assert contents(tmp_path / "all.zip") == {"results/sat.json": b"x"} and len(list(tmp_path.iterdir())) == 1
    for name in ("../../out.csv", "/out.csv", "a/../../out.csv"):
        (tmp_path / "all.zip").write_bytes(zipped({"sat.json": "x", name: "x"}))
        for reads in (contents, lambda path: unpacked_tree(path, tmp_path / "here")):
            with pytest.raises(CapbiasError, match="leads out of the archive"):
                reads(tmp_path / "all.zip")
        assert not (tmp_path / "here").exists()


def test_archives_that_are_broken_empty_or_too_large_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    (tmp_path / "sat.json.gz").write_bytes(gzip.compress(b"[1]"))
    assert contents(tmp_path / "sat.json.gz") == {"sat.json": b"[1]"}
    refused = {
        "broken.zip": b"PK\x03\x04 no",
        "directory.zip": zipped({"a": "x"})[:-6] + b"\xff\0\0\0\0\0",  # said to begin behind its place
        "broken.gz": gzip.compress(b"x" * 100)[:-9],
        "large.gz": gzip.compress(bytes(2000)),
        "large.zip": zipped({"a": "x" * 2000}),
        "hidden.zip": zipped({".a": "x"}),
        "empty.zip": zipped({}),
    }
    for name, data in refused.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CapbiasError, match=name):
            contents(tmp_path / name)
    monkeypatch.setattr(files, "MOST_FILES", 1)
    (tmp_path / "many.zip").write_bytes(zipped({"a": "x", "b": "x"}))
    with pytest.raises(CapbiasError, match="more than 1 files"):
        unpacked_tree(tmp_path / "many.zip", tmp_path / "here")


def test_several_texts_in_an_archive_belong_to_an_image_each(tmp_path):
    texts = {"11.txt": "A man, smiling, rides.\nTwo dogs follow.", "12.txt": "2 men", "README.txt": "Read me."}
    tables = {"records.json": '[{"caption": "a dog in size xl/xxl", "image_id": 1}]'}
    for inside, expected in ((tables, ["records"]), (texts, ["a"]), (texts | tables, ["a", "records"])):
        (tmp_path / "a.zip").write_bytes(zipped(inside))
        assert [sheet.name for sheet in parse(tmp_path / "a.zip")] == expected


# files that are refused


WHOLE_FILE = {
    "nothing": ("a.json", b"", "a.json is an empty file"),
    "a key twice": ("a.json", b'[{"image_id": 1, "caption": "a", "caption": "b"}]', "the key 'caption' occurs twice"),
    "a key twice in a line": ("a.jsonl", b'{"image_id": 1, "image_id": 2}\n', "occurs twice in an object"),
    "cut JSON": ("a.json", b'[{"image_id": 1,\n "cap', "broken JSON (at line 2, column 2: Unterminated string"),
    "a broken line": ("a.jsonl", b'{"image_id": 1}\n{"image_id\n', "broken JSON after 1 values (at line 2"),
    "Python's str": ("a.json", b"[{'image_id': 1, 'caption': 'a dog'}]", "broken JSON (at line 1, column 3"),
    "deep lists": ("a.json", b"[" * 100_000, "lists too deep"),
    "empty list": ("a.json", b"[]", "holds an empty list"),
    "list of numbers": ("a.json", b"[1, 2]", "holds 2 values, such as 1"),
    "texts": ("a.json", b'["a dog", "a cat"]', "2 texts without image IDs"),
    "lists": ("a.json", b'[[1, "a dog"]]', "lists without names of columns or images"),
    "rows under two keys": ("a.json", b'{"a": [{"image_id": 1}], "b": [{"image_id": 2}], "c": 1}', "rows under a, b"),
    "images by label": ("a.json", b'{"Female": [1, 3], "Male": [2, 4]}', "no table is found"),
    "Latin-1": ("a.csv", "image_id,caption\n1,caf\u00e9\n".encode("latin-1"), "the byte at offset 22, line 2"),
    "odd UTF-16": ("a.csv", "image_id,caption\n1,x\n".encode("utf-16") + b"x", "neither UTF-16 text"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\xff\xfe", "nor of another known format"),
    "prose": ("a.txt", b"Captions were written by people.\nThey are short.\n", "text without a header"),
    "boxes of YOLO": ("7.txt", b"0 0.5 0.5 0.2 0.3\n", "text without a header"),
    "other columns": ("a.csv", b"file,sentences of people\n1,x\n", "its columns are file, sentences of people"),
    "same columns": ("a.csv", b"image_id,caption,caption\n1,x,y\n", "same name: image_id, caption, caption"),
    "header only": ("a.csv", b"image_id,caption\n", "a.csv has 0 rows and none that can be used"),
    "an open quote": ("a.csv", b'image_id,caption\n1,a dog\n2,"a cat\n', "line 3: a quote is opened and never closed"),
    "no good row": ("a.csv", b"image_id,caption\n\n,x\n", "the first problem is at line 3: the image id is missing)"),
    "no Excel": ("a.xlsx", zipped({"xl/workbook.xml": "x"}), "an Excel file that cannot be read"),
    "cut Parquet": ("a.parquet", b"PAR1" + b"x" * 50, "a Parquet file that is broken"),
    "Arrow": ("a.arrow", b"\xff\xff\xff\xff\x10", "a.arrow is an Arrow file, which is not read"),
    "a list after an object": ("o.json", b'{"image_id": 1,\n"text": "a"}\n[1]', "an object and a list"),
    "a zip of none": ("z.zip", zipped({"a.md": "Hello there"}), "text without a header"),
    "many columns": ("a.json", json.dumps([{f"c{n}": 1 for n in range(MOST_COLUMNS + 1)}]).encode(), "1,001 columns"),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE_FILE)
def test_whole_file_faults(tmp_path, case):
    name, data, message = WHOLE_FILE[case]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(CapbiasError) as caught:
        read_part(path, CAPTIONS)
    assert message in caught.value.message and caught.value.hint
    assert str(tmp_path) not in str(caught.value)
    str(caught.value).encode()
    for name, message in (("folder", "holds no files"), ("none.json", "does not exist")):
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises(CapbiasError, match=message):
            parse(tmp_path / name)


# small files that unpack to much, or hold what cannot be kept


@pytest.mark.long
def test_equal_rows_that_take_no_place_in_the_file(tmp_path):
    same = pa.DictionaryArray.from_arrays(pa.array([0] * (MOST_ROWS + 1), pa.int8()), ["a dog"])
    pyarrow.parquet.write_table(pa.table({"image_id": same, "caption": same}), tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(CapbiasError, match=f"{MOST_ROWS + 1:,} rows"):
        parse(tmp_path / "rows.parquet")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000, "the rows are counted before they fill the memory"
    tracemalloc.stop()


@pytest.mark.long
def test_a_caption_as_long_as_a_book_is_left_out(tmp_path):
    rows = [{"image_id": 1, "caption": "a" * (MOST_CHARACTERS + 1)}, {"image_id": 2, "caption": "a dog"}]
    (tmp_path / "long.json").write_text(json.dumps(rows))
    part = read_part(tmp_path / "long.json", CAPTIONS)
    assert list(part.frame["image_id"]) == ["2"] and f"{MOST_CHARACTERS + 1:,}" in part.problems[0].message


def test_a_sheet_is_read_if_it_is_the_only_one_with_a_table(tmp_path):
    book = openpyxl.Workbook()
    for row in (["image_id", "caption"], [1, "a dog"], [2, None], [None, None]):
        book.active.append(row)
    book.create_sheet("notes").append(["Made by hand"])
    book.save(tmp_path / "a.xlsx")
    (sheet,) = parse(tmp_path / "a.xlsx")
    assert sheet.frame.to_numpy().tolist() == [["1", "a dog"], ["2", ""]] and "from the sheet Sheet" in sheet.notes
    book["notes"].append(["image_id", "gender"])
    book["notes"].delete_rows(1)
    book["notes"].append([1, "Male"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(CapbiasError, match="2 of its sheets hold a table"):
        parse(tmp_path / "a.xlsx")


@pytest.mark.parametrize("first", [b"2 " + b"9" * 5000, b"9" * 5000 + b" 2"])
def test_vectors_whose_number_is_too_long_to_be_read(tmp_path, first):
    (tmp_path / "long.vec").write_bytes(first + b"\ndog 1 2\n")
    with pytest.raises(CapbiasError, match="not a vector file|of another dimension"):
        read_vectors(tmp_path / "long.vec", {"dog"})


# what a server may name


@pytest.fixture
def folders(tmp_path, monkeypatch) -> tuple:
    """A folder that is listed and one that is not; links in the first lead to the second."""
    opened, secret = tmp_path / "opened", tmp_path / "secret"
    for folder in (opened, secret):
        folder.mkdir()
        (folder / "captions.csv").write_text("image_id,caption\n1,a dog\n")
        (folder / "1.jpg").write_bytes(b"")
        (folder / "config.json").write_text("{}")
        (folder / "weights.pt").write_bytes(b"")
    (opened / "link").symlink_to(secret)
    (opened / "2.jpg").symlink_to(secret / "1.jpg")
    monkeypatch.setenv(places.ROOTS, str(opened))
    return opened, secret


def test_a_server_names_what_is_listed_and_nothing_else(folders):
    opened, secret = folders
    places.serve()
    assert places.named(opened / "captions.csv").is_file()
    said = set()
    for path in (secret / "captions.csv", secret / "none.csv", opened / "link" / "captions.csv", opened / ".." / "x"):
        with pytest.raises(CapbiasError) as error:
            places.named(path)
        said.add(str(error.value).replace(repr(str(path)), "PATH"))
    assert len(said) == 1, "what is there and what is not are refused in the same words"
    assert [path.name for path in picture_files(opened)] == ["1.jpg"]


@pytest.mark.long
@pytest.mark.skipif(not find_spec("transformers"), reason="transformers is not installed")
def test_models_and_weights_are_named_in_the_same_way(folders, tmp_path):
    """A folder elsewhere is refused as one that is not there; what a run knows already stays readable."""
    opened, secret = folders
    workspace = Workspace(tmp_path / "w")
    known = model_option(workspace, "sentence_encoder", str(secret))
    places.serve()
    assert find_model(str(opened), "a model").name == "opened"
    for folder in (secret, secret / "none"):
        with pytest.raises(CapbiasError, match=f"on this machine.*in one that {places.ROOTS} lists"):
            find_model(str(folder), "a model")
    with pytest.raises(CapbiasError, match="by visitors of this server"):
        named_file("weights", secret / "weights.pt")
    assert resolve_model(workspace, known).path == str(secret)


def test_of_a_source_elsewhere_a_server_says_the_file_alone(folders):
    opened, secret = folders
    far, near = f"{secret}/captions.csv", f"{opened}/captions.csv"
    assert places.shown(far) == far
    places.serve()
    assert places.shown(far) == "captions.csv" and places.shown(near) == near
    assert places.shown(f"boxes yolo ({secret}/1.jpg)") == "boxes yolo (1.jpg)"
    assert places.shown("captions/of.json, uploaded") == "captions/of.json, uploaded"


# what is no file


@pytest.fixture
def impatient():
    """Whatever waits for half a minute is stopped."""

    def stop(*_):
        raise AssertionError("it waits without end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


OPENING = {
    "captions.json": parse,
    "captions.csv": lambda path: capbias.score(path, labels=[{"image_id": 1, "gender": "Male"}], attribute="gender"),
    "packed.zip": parse,
    "packed.json.gz": parse,
    "release.pkl": parse,
    "1.jpg": read_photograph,
    "2.png": lambda path: find_pictures(path.parent),
    "own.toml": read_attribute,
    "glove.txt": lambda path: read_vectors(path, {"a"}),
    "model.safetensors": lambda path: model_digest(path.parent),
    "weights.pt": files.file_digest,
    "any": places.checked_path,
}


@pytest.mark.parametrize(
    "name, special", [*((name, "pipe") for name in OPENING), ("captions.csv", "socket"), ("captions.csv", "device")]
)
def test_what_is_no_file_is_refused_and_never_waited_for(name, special, tmp_path, impatient, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    if special == "pipe":
        os.mkfifo(name)
    elif special == "device":
        os.symlink("/dev/zero", name)
    else:
        socket.socket(socket.AF_UNIX).bind(name)
    with pytest.raises(CapbiasError, match=f"{name} is a {special}, not a file"):
        OPENING[name](tmp_path / name)
