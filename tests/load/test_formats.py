"""Every shape of a file is recognised by its content and read without an option.

FILES has one row per shape: the file, the format, what it holds, and its rows worked out by hand.
"""

import gzip
import io
import json
import pickle
import re
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS, LABELS, OBJECTS, REFERENCES
from capbias_core.load.columns import Wanted
from capbias_core.load.formats import FORMATS, sheets_of
from capbias_core.load.parts import Piece
from capbias_core.load.questions import Ask
from capbias_core.load.read import File, Given, Held
from capbias_core.load.read import read as read_files
from capbias_core.load.shapes import SHAPES
from capbias_core.load.tables import boxes

WANTED = [Wanted(name, get_attribute(name), False) for name in ("gender", "race")]
PEOPLE = Held({}, pd.DataFrame({"image_id": ["7"], "caption": ["a dog"]}))  # of images whose IDs a format leaves out


def rows(frame):
    return list(frame.drop(columns="caption_index", errors="ignore").itertuples(index=False, name=None))


def first(source, kinds=(), **given):
    """The first part of a source."""
    return read_files([File(source, kinds)], Given(**given), WANTED, PEOPLE).parts[0]


def read(path):
    """Format, kind and rows of a file."""
    part = first(path)
    return part.format, part.kind, rows(part.frame)


RECORDS = [
    {"image_id": 785, "caption": "A woman on skis."},
    {"image_id": 872, "caption": 'Two "players", one ball'},
    {"image_id": 885, "caption": "a [box] 👩‍🦽\nsecond line"},
]
PAIRS = [(str(record["image_id"]), record["caption"]) for record in RECORDS]
FRAME = pd.DataFrame(RECORDS)
TWO = [("1", "a dog"), ("2", "a cat")]
GENDERS = [("1", "Female"), ("2", "Male"), ("3", "Female"), ("4", "Male")]


def coco(*annotations, **more):
    return {"images": [{"id": 1}, {"id": 2}], "annotations": list(annotations), **more}


def in_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def to_bytes(write):
    target = io.BytesIO()
    write(target)
    return target.getvalue()


PICTURED = pa.table(
    {
        "image": [{"bytes": b"\xff\xd8" * 9, "path": name} for name in ("COCO_val2014_000000000007.jpg", "b.jpg")],
        "caption": [["a dog", "dogs"], ["a cat"]],
        "thumbnail": [b"\xff", b"\xff"],
    }
)
OF_PICTURES = [("7", "a dog"), ("7", "dogs"), ("b.jpg", "a cat")]
LOGGED = {
    "doc_id": 0,
    "filtered_resps": ["a dog"],
    "coco_CIDEr": {"image_id": 1, "pred": "a dog", "answer": ["a brown dog", "dogs"]},
}
CHAIR = LOGGED | {"coco_CIDEr": None, "chair_s": {"image_id": 1, "pred": ["dog"], "answer": ["dog", "grass"]}}
TURNS = [{"from": "human", "value": "<image>\nDescribe."}, {"from": "gpt", "value": "a dog"}]
CHAT = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "2.jpg"}}, {"type": "text", "text": "?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "a dog"}]},
]
THOUGHT = [{"type": "thinking", "thinking": "hm"}, {"text": "hm", "thought": True}, {"type": "text", "text": "a dog"}]
OPENAI = {"custom_id": "1", "response": {"body": {"choices": [{"message": {"content": "a dog"}}]}}}
RESPONSES = {"custom_id": "1", "response": {"body": {"output": [{"type": "reasoning"}, {"content": THOUGHT}]}}}
ANTHROPIC = {"custom_id": "1", "result": {"type": "succeeded", "message": {"content": THOUGHT}}}
GEMINI = {"key": "1", "response": {"candidates": [{"content": {"parts": THOUGHT}}]}}
KARPATHY = [
    {"cocoid": 7, "filename": "COCO_val2014_000000000007.jpg", "sentences": [{"raw": "a dog"}] * 2},
    {"filename": "1000092795.jpg", "imgid": 0, "sentences": [{"raw": "a man"}, {"raw": "two"}]},
]
TEXTCAPS = [
    {"image_id": "6dd", "caption_str": text, "caption_id": place, "reference_strs": ["a bike"]}
    for place, text in enumerate(["a dog", "dogs"])
]
RELEASED = {"img_id": "1", "bb_gender": "Male", "bb_skin": "Both", "race": ["Light", "Dark"]}
BOX = {"image_id": 1, "category_id": 18, "bbox": [0, 0, 2, 2]}
CATEGORIES = [{"id": 1, "name": "Person"}, {"id": 18, "name": "dog"}]
STUDIO = [
    {
        "data": {"image": f"/data/upload/3/0a1b2c3d-{image}.jpg"},
        "annotations": [{"completed_by": 7, "result": [{"from_name": "gender", "value": {"choices": [label]}}]}],
    }
    for image, label in GENDERS
]
OPEN_IMAGES = "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax"
RESULTS, FLICKR = "results of COCO", "tokens of Flickr30k"
A_DOG = CAPTIONS, TWO[:1]

# Name of the file -> content, format, kind, rows.
FILES = {
    # one set of captions in every container, and in pandas' orients of JSON
    **{name: (content, RESULTS, CAPTIONS, PAIRS) for name, content in {
        "a.json": json.dumps(RECORDS),
        "a.jsonl": in_lines(RECORDS),
        "a.csv": FRAME.to_csv(index=False),
        "a.tsv": FRAME.to_csv(index=False, sep="\t"),
        "a.parquet": to_bytes(FRAME.to_parquet),
        "a.xlsx": to_bytes(lambda target: FRAME.to_excel(target, index=False)),
        "a.json.gz": gzip.compress(json.dumps(RECORDS).encode()),
        "objects.json": "\n".join(json.dumps(own, indent=1) for own in RECORDS),
        **{f"{orient}.json": FRAME.to_json(orient=orient) for orient in ("index", "columns")},
    }.items()},
    "table.json": (FRAME.to_json(orient="table"), "records", CAPTIONS, PAIRS),
    # by image, and under a key
    "by_id.json": (json.dumps({"1": "a dog", "2.jpg": ["a cat"]}), "several texts by image", CAPTIONS, TWO),
    "records_by_id.json": (json.dumps({"1": {"text": "a dog", "n": 1}, "2": {"text": "a cat"}}),
        "an object by image", CAPTIONS, TWO),
    "within.json": (json.dumps({"model": "sat", "files": [{"a": 1}] * 3,
        "predictions": [{"image_id": 1, "text": "a dog"}, {"image_id": 2, "text": "a cat"}]}),
        "records", CAPTIONS, TWO),
    # human captions
    "captions.json": (json.dumps(coco({"id": 1, "image_id": 1, "caption": "a dog"})),
        "COCO captions", REFERENCES, TWO[:1]),
    "dataset_coco.json": (json.dumps({"images": KARPATHY}), "Karpathy's data set", REFERENCES,
        [("7", "a dog"), ("7", "a dog"), ("1000092795", "a man"), ("1000092795", "two")]),
    "TextCaps.json": (json.dumps({"dataset_name": "textcaps", "data": TEXTCAPS}),
        "human captions of TextCaps", REFERENCES, [("6dd", "a dog"), ("6dd", "dogs")]),
    "results.csv": ('image_name| comment_number| comment\n1.jpg| 0| A "big" dog .\n1.jpg| 1| dogs .\n',
        "human captions of Flickr30k", REFERENCES, [("1", 'A "big" dog .'), ("1", "dogs .")]),
    "results.token": ('1.jpg#0\tTwo "young" guys .\n1.jpg#1\tMen in hats.\n',
        FLICKR, REFERENCES, [("1", 'Two "young" guys .'), ("1", "Men in hats.")]),
    "results.txt": ("1.jpg#0\ta dog\n2.jpg#0\ta cat\n", FLICKR, CAPTIONS, TWO),
    "release.pkl": (pickle.dumps([{"pred": "a dog", **RELEASED}]), "LIC release", *A_DOG),
    "people.pkl": (pickle.dumps([{"caption_list": ["a dog", "dogs"], **RELEASED}]),
        "LIC release", REFERENCES, [("1", "a dog"), ("1", "dogs")]),
    # harnesses and services
    "logged.jsonl": (in_lines([LOGGED]), "samples of lmms-eval", *A_DOG),
    "chair.jsonl": (in_lines([CHAIR]), "samples of lmms-eval", *A_DOG),
    "vlmevalkit.tsv": ("index\tanswer\tprediction\n0\t['a dog']\ta cat\n",
        "predictions of VLMEvalKit", CAPTIONS, [("7", "a cat")]),
    "openai.jsonl": (in_lines([OPENAI]), "batch output of OpenAI", *A_DOG),
    "responses.jsonl": (in_lines([RESPONSES]), "batch output of OpenAI", *A_DOG),
    "anthropic.jsonl": (in_lines([ANTHROPIC]), "batch output of Anthropic", *A_DOG),
    "gemini.jsonl": (in_lines([GEMINI]), "batch output of Gemini", *A_DOG),
    "batch.parquet": (to_bytes(pd.DataFrame([OPENAI]).to_parquet), "batch output of OpenAI", *A_DOG),
    "share.json": (json.dumps([{"image": "1.jpg", "conversations": TURNS}]), "conversations (LLaVA)", *A_DOG),
    "chat.jsonl": (in_lines([{"image": "1.jpg", "messages": CHAT}]), "conversations (chat)", *A_DOG),
    "folder.zip": ({"c/01Ab.png.txt": "a dog.\n\nIt runs.\n", "c/02.txt": "a cat", "c/README.txt": "read me"},
        "a text per image", CAPTIONS, [("01Ab.png", "a dog.\n\nIt runs."), ("2", "a cat")]),
    # labels
    "labels.csv": ("image_id,gender\n1,Female\n2,Male\n", "table", LABELS, GENDERS[:2]),
    "flat.json": (json.dumps(dict(GENDERS)), "labels by image", LABELS, GENDERS),
    "nested.json": (json.dumps({image: {"gender": label} for image, label in GENDERS}),
        "an object by image", LABELS, GENDERS),
    "label_studio.json": (json.dumps(STUDIO), "tasks of Label Studio", LABELS,
        [(f"/data/upload/3/{image}.jpg", label, "7", "False") for image, label in GENDERS]),
    "miap.csv": (f"{OPEN_IMAGES},GenderPresentation\n6d,/m/01g317,1,0,1,0,1,Feminine\n",
        "people in boxes (Open Images MIAP)", LABELS, [("6d", "Feminine", "/m/01g317", "1", "0", "1", "0", "1")]),
    # objects and boxes
    "instances.json": (json.dumps(coco(BOX, {"image_id": 1, "category_id": "1"}, categories=CATEGORIES)),
        "COCO instances", OBJECTS, [("1", "dog|person"), ("2", "")]),
    "objects.csv": ("image_id,objects\n1,dog|Cat\n2,\n", "table", OBJECTS, [("1", "cat|dog"), ("2", "")]),
    "boxes.csv": ("image,class,confidence,x1,y1,x2,y2\nval/1.jpg,dog,0.9,0,0,5,5\n",
        "table", OBJECTS, [("1", "dog:0.9")]),
    "oid.csv": (f"{OPEN_IMAGES}\n6d,/m/03bt1vf,1,0.1,0.2,0.3,0.4\n",
        "boxes of Open Images", OBJECTS, [("6d", "woman:1")]),
}  # fmt: skip
# Shapes and formats that only files as people have them show, or whose columns are those of another format.
OF_CASES = {
    "choices of Prodigy", "labels of doccano by user", "batch results of MTurk", "lists of equal length",
    "rows by image", "columns by row", "captions by image",
}  # fmt: skip


def written(folder, name, content):
    """The file. content: text, bytes, or the members of an archive by name."""
    if isinstance(content, dict):
        with zipfile.ZipFile(folder / name, "w") as archive:
            for member, text in content.items():
                archive.writestr(member, text)
    else:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


@pytest.mark.parametrize("name", FILES)
def test_every_shape(tmp_path, name):
    content, *expected = FILES[name]
    assert list(read(written(tmp_path, name, content))) == expected


@pytest.mark.long
def test_content_decides_whatever_the_ending_and_the_encoding(tmp_path):
    for name in [name for name in FILES if name.startswith("a.") and not name.endswith(".gz")]:
        content, *expected = FILES[name]
        assert list(read(written(tmp_path, "captions.txt", content))) == expected
    for name in ("a.json", "a.csv", "a.tsv", "a.jsonl", "instances.json"):
        content, *expected = FILES[name]
        for encoding in ("utf-8-sig", "utf-16"):
            assert list(read(written(tmp_path, name, content.encode(encoding)))) == expected


def test_every_row_of_the_tables_is_tried():
    """A format or shape is only kept with a file that shows it."""
    known = {row.name for row in (*FORMATS, *SHAPES)}
    assert known - {shape for _, shape, *_ in FILES.values()} == OF_CASES


def test_tables_of_python_are_read_as_their_json():
    captions = FRAME.set_index("image_id")
    lists = pd.DataFrame({"image_id": [1], "captions": [np.array(["a dog here", "two dogs"])]})
    coco = {row["image_id"]: [{"caption": row["caption"]}] for row in RECORDS}
    tables = captions, captions["caption"], tuple(RECORDS), FRAME.to_dict("list"), coco
    for table in tables:
        assert rows(first(table, (CAPTIONS,)).frame) == PAIRS
    assert rows(first({np.int64(785): "A woman on skis.", 1: "a dog in it"}, (CAPTIONS,)).frame)[:1] == PAIRS[:1]
    assert rows(first(lists, (CAPTIONS,), sets="samples").frame) == [("1", "a dog here"), ("1", "two dogs")]
    unstorable = FRAME.to_dict("list") | {"half a pair \ud800": ["a", "b", "c"]}
    assert rows(first(unstorable, (CAPTIONS,)).frame) == PAIRS, "no file keeps such a name"
    missing = first(pd.DataFrame({"image_id": [1, 2], "gender": ["Male", np.nan]}), (LABELS,))
    assert rows(missing.frame) == [("1", "Male"), ("2", "")]


def test_a_column_that_is_named_is_taken(tmp_path):
    path = written(tmp_path, "a.json", FILES["TextCaps.json"][0])
    assert rows(first(path, (REFERENCES,), caption_column=("reference_strs",)).frame)[0] == ("6dd", "a bike")
    path = written(tmp_path, "a.csv", "pic,words,caption\n785,a man,not this\n")
    named = {"image_id_column": ("pic",), "caption_column": ("words",)}
    assert rows(first(path, **named).frame) == [("785", "a man")]
    assert rows(first(path, image_id_column=("a.csv:pic",), caption_column=("caption",)).frame) == [("785", "not this")]
    for idle in ({"sets": "samples"}, {"rows": ("pic=785", "nothing=1")}, {"captioner_column": ("who",)}):
        with pytest.raises(CapbiasError, match="no effect|No file has the column"):
            first(path, **named | idle)


def test_failed_requests_of_a_batch_are_counted(tmp_path):
    failed = [
        {"custom_id": "2", "response": None, "error": {"code": "server_error", "message": "timeout"}},
        {"custom_id": "3", "response": {"status_code": 429, "body": {"error": {"message": "too fast"}}}},
    ]
    part = first(written(tmp_path, "b.jsonl", in_lines([OPENAI, *failed])))
    assert rows(part.frame) == [("1", "a dog")]
    assert (part.rows, part.problem_count) == (3, 2)
    assert "2 requests of 3 failed" in part.notes


def test_a_malformed_row_is_counted(tmp_path):
    good = "".join(f"{number}.jpg| 0| a dog\n" for number in range(9))
    part = first(written(tmp_path, "r.csv", f"image_name| n| comment\n{good}2.jpg| 4   a cat\n"))
    assert (len(part.frame), part.rows, part.problem_count, part.problems[0].line) == (9, 10, 1, 11)
    with pytest.raises(CapbiasError, match="is no table: 5 of 7 rows are broken"):
        read(written(tmp_path, "r.csv", "image_id,caption\n1,a dog\n2,a cat\n" + "3,a cat, a dog\n" * 5))


def test_a_box_is_cut_at_the_edge_of_its_image(tmp_path):
    text = "image,class,confidence,x1,y1,x2,y2\n1.jpg,dog,0.9,-3.5,2,640.4,480\n1.jpg,tie,1,5,2,5,9\n1.jpg,16,1,0,0,1,1"
    (sheet,) = sheets_of(written(tmp_path, "a.csv", text), "a.csv")
    piece = Piece(File("a.csv"), sheet)
    assert rows(boxes(piece).frame) == [("1", "dog", 0.9, 0, 2, 640.4, 480)], "its size is not known"
    sheet.sizes = {"1": (480, 640)}
    table = boxes(piece)
    assert rows(table.frame) == [("1", "dog", 0.9, 0, 2, 640, 480)]
    assert "encloses nothing" in table.problems[0].message and "no name" in table.problems[1].message
    (shares,) = sheets_of(written(tmp_path, "1.csv", "image,class,x1,y1,x2,y2\n1.jpg,tie,0.4,0.35,0.6,0.65\n"), "")
    with pytest.raises(CapbiasError, match="shares of their images"):
        boxes(Piece(File("1.csv"), shares))


def test_prompts_are_kept_apart(tmp_path):
    """Captions of several prompts are samples or sets, as the user says."""
    text = "image_id,prompt,caption\n1,Say it.,a dog\n1,Describe it.,a dog runs\n"
    text += "2,Say it.,a cat\n2,Describe it.,a cat sits\n"
    path = written(tmp_path, "a.csv", text)
    with pytest.raises(Ask) as asked:
        first(path)
    options = [option.answer for option in asked.value.questions[0].options]
    assert options[0] == {"captioner_column": ("prompt",)} and {"sets": ("samples",)} in options
    assert len(first(path, sets="samples").frame) == 4
    by_prompt = read_files([File(path)], Given(captioner_column=("prompt",))).parts
    assert [(part.name, len(part.frame)) for part in by_prompt] == [("Say it.", 2), ("Describe it.", 2)]


# what real harnesses left


# File -> its captions by plain Python.
REAL = {
    "20260806_102223_samples_coco2014_cap_val.jsonl": lambda text: [
        (row["coco_CIDEr"]["image_id"], row["coco_CIDEr"]["pred"]) for row in map(json.loads, text.splitlines())
    ],
    "coco_eval.json": lambda text: [(image, row["caption"]) for image, row in json.loads(text)["imgToEval"].items()],
    "listcap.json": lambda text: [(row["image_id"], row["caption"][0]) for row in json.loads(text)],
    "dict.json": lambda text: list(json.loads(text).items()),
    "pope_llava.json": lambda text: [
        (row["image_id"], row["text"]) for row in json.loads("[" + re.sub(r"\}\s*\{", "},{", text) + "]")
    ],
}


@pytest.mark.parametrize("name", REAL)
def test_files_of_harnesses(formats, name):
    expected = [(str(image), text) for image, text in REAL[name]((formats / name).read_text(encoding="utf-8"))]
    assert len(expected) == (2000 if name == "pope_llava.json" else 40)
    assert read(formats / name)[1:] == (CAPTIONS, expected)


def test_pictures_are_known_by_their_path_and_bytes_are_left_out(tmp_path):
    pyarrow.parquet.write_table(PICTURED, tmp_path / "set.parquet")
    part = first(tmp_path / "set.parquet", (REFERENCES,))
    assert rows(part.frame) == OF_PICTURES
    assert "left out, since they hold bytes: image.bytes, thumbnail" in part.notes


@pytest.mark.long
def test_results_and_release_hold_the_same_captions(coco_bias):
    path = coco_bias / "results" / "sat.json"
    raw, known = json.loads(path.read_text()), rows(first(path).frame)
    assert len(raw) == 15762 and known == [(str(row["image_id"]), row["caption"]) for row in raw]
    pickled = "lic_release/Show-Attend-Tell/gender_val_sat_cap_mw_entries.pkl"
    release = dict(rows(first(coco_bias / pickled, (CAPTIONS,)).frame))
    assert len(release) > 10000
    assert {image: text.strip() for image, text in known if image in release} == {
        image: text.strip() for image, text in release.items()
    }
