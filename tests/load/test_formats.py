"""What harnesses leave: each file is read without an option, and a broken one is refused in one sentence.

Rows and ids are worked out here from the raw files, with json, csv and ast alone.
"""

import ast
import csv
import json
import re
import zipfile

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load import FORMATS, detect, read_captions
from capbias_core.load.archives import unpacked
from capbias_core.load.kinds import GENERATED, HUMAN, likely

COCO_NAME = re.compile(r"COCO_val2014_0*(\d+)\.jpg")


def of_lmms_eval(text):
    values = [json.loads(line)["coco_CIDEr"] for line in text.splitlines()]
    return [(str(own["image_id"]), own["pred"]) for own in values]


def of_vlmevalkit(text):
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return [(f"row {row['index']}", row["prediction"]) for row in rows]


def of_oscar(text):
    rows = [line.split("\t") for line in text.splitlines()]
    return [(image, json.loads(captions)[0]["caption"]) for image, captions in rows]


def of_llava(text):
    objects = json.loads("[" + re.sub(r"\}\s*\{", "},{", text) + "]")
    return [(str(own["image_id"]), own["text"]) for own in objects]


# File -> name of its reader, and (image id, caption) of each row by other means.
FILES = {
    "20260806_102223_samples_coco2014_cap_val.jsonl": ("lmms_eval", of_lmms_eval),
    "coco_captions_val2014_alg_results.json": (
        "coco_results",
        lambda text: [(str(own["image_id"]), own["caption"]) for own in json.loads(text)],
    ),
    "LLaVA_COCO_VAL.tsv": ("vlmevalkit_tsv", of_vlmevalkit),
    "coco_eval.json": (
        "json_by_image",
        lambda text: [(image, own["caption"]) for image, own in json.loads(text)["imgToEval"].items()],
    ),
    "dict.json": ("json_by_image", lambda text: [*json.loads(text).items()]),
    "dict_names.json": (
        "json_by_image",
        lambda text: [(COCO_NAME.fullmatch(name)[1], own) for name, own in json.loads(text).items()],
    ),
    "listcap.json": (
        "coco_results",
        lambda text: [(str(own["image_id"]), own["caption"][0]) for own in json.loads(text)],
    ),
    "pica.tsv": ("oscar_tsv", of_oscar),
    "pope_llava.json": ("json_objects", of_llava),
}
ROWS = dict.fromkeys(FILES, 40) | {"pope_llava.json": 2000}


def pairs(table):
    return list(zip(table.frame["image_id"], table.frame["caption"], strict=True))


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_read_without_an_option(formats, name):
    reader, raw = FILES[name]
    expected = raw((formats / name).read_text(encoding="utf-8"))
    assert len(expected) == ROWS[name]
    assert detect(formats / name).format == reader
    assert likely(formats / name).kind == GENERATED
    table = read_captions(formats / name)
    assert pairs(table) == expected
    assert (table.rows, table.problem_count) == (ROWS[name], 0)


def test_no_file_there_is_left_out(formats):
    assert {path.name for path in formats.iterdir()} == {*FILES, "README.md"}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "20260806_102223_samples_coco2014_cap_val.jsonl",
            lambda text: [
                (str(own["coco_CIDEr"]["image_id"]), human)
                for own in map(json.loads, text.splitlines())
                for human in own["coco_CIDEr"]["answer"]
            ],
        ),
        (
            "LLaVA_COCO_VAL.tsv",
            lambda text: [
                (f"row {row['index']}", human)
                for row in csv.DictReader(text.splitlines(), delimiter="\t")
                for human in ast.literal_eval(row["answer"])
            ],
        ),
    ],
)
def test_human_captions_beside_those_of_a_model(formats, name, rows):
    assert likely(formats / name).references
    table = read_captions(formats / name, kind="reference")
    assert pairs(table) == rows((formats / name).read_text(encoding="utf-8"))
    assert len(table.frame) >= 200


@pytest.mark.parametrize("ending", ["xlsx", "json", "csv"])
def test_vlmevalkit_in_every_file_that_it_writes(formats, tmp_path, ending):
    rows = list(csv.DictReader((formats / "LLaVA_COCO_VAL.tsv").read_text().splitlines(), delimiter="\t"))
    path = tmp_path / f"LLaVA_COCO_VAL.{ending}"
    if ending == "xlsx":
        book = openpyxl.Workbook()
        for row in [list(rows[0]), *(row.values() for row in rows)]:
            book.active.append(list(row))
        book.save(path)
    elif ending == "json":
        path.write_text(json.dumps([row | {"answer": ast.literal_eval(row["answer"])} for row in rows], indent=4))
    else:
        pd.DataFrame(rows).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    for kind in ("generated", "reference"):
        expected = read_captions(formats / "LLaVA_COCO_VAL.tsv", kind=kind)
        assert pairs(read_captions(path, kind=kind)) == pairs(expected)


def test_rows_without_ids_are_joined_by_their_human_captions(formats, tmp_path):
    """39 of the 40 images are at hand; the last has another image's first caption, which is no proof."""
    samples = formats / "20260806_102223_samples_coco2014_cap_val.jsonl"
    lines = [json.loads(line)["coco_CIDEr"] for line in samples.read_text().splitlines()]
    known = [(str(own["image_id"]), text.upper()) for own in lines[:-1] for text in own["answer"]]
    known.append(("999", lines[-1]["answer"][0]))
    references = pd.DataFrame(known, columns=["image_id", "caption"])
    table = read_captions(formats / "LLaVA_COCO_VAL.tsv", references=references)
    assert pairs(table) == [(str(own["image_id"]), own["pred"]) for own in lines[:-1]]
    assert (table.problem_count, table.problems[0].line) == (1, 40)
    assert table.problems[0].message == "record 40: no image at hand has the human captions of row 39"
    assert "39 captions got the image id of the human captions at hand; not found: 1" in table.notes
    with pytest.raises(CapbiasError, match="no image at hand has its human captions"):
        read_captions(formats / "LLaVA_COCO_VAL.tsv", references=references.assign(caption="nothing of the kind"))


def test_an_answer_that_the_model_did_not_give_is_no_caption(tmp_path):
    path = tmp_path / "m_COCO_VAL.tsv"
    rows = ["0\t['a dog']\ta cat", "1\t['a man']\tFailed to obtain answer via API."]
    path.write_text("\n".join(["index\tanswer\tprediction", *rows]))
    table = read_captions(path)
    assert (pairs(table), table.problem_count, table.problems[0].line) == ([("row 0", "a cat")], 1, 3)


KARPATHY = {
    "images": [
        {
            "cocoid": 7,
            "filename": "COCO_val2014_000000000007.jpg",
            "split": "test",
            "sentences": [{"raw": "a dog"}] * 2,
        },
        {"filename": "1000092795.jpg", "imgid": 0, "split": "train", "sentences": [{"raw": "a man"}, {"raw": "two"}]},
        {"imgid": 5, "split": "train"},
    ],
    "dataset": "coco",
}


def test_karpathys_human_captions_of_every_split(tmp_path):
    path = tmp_path / "dataset_coco.json"
    path.write_text(json.dumps(KARPATHY))
    assert likely(path).kind == HUMAN
    table = read_captions(path, kind="reference")
    assert pairs(table) == [("7", "a dog"), ("7", "a dog"), ("1000092795", "a man"), ("1000092795", "two")]
    assert table.notes == ("images of every split are taken: test 1 image, train 1 image",)
    assert (table.rows, table.problem_count, table.problems[0].line) == (3, 1, 3)


def saved(folder, table, split, shards=1):
    """A data set as `datasets` saves it, in so many Arrow streams."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{shards:05}.arrow" for number in range(shards)]
    size = -(-table.num_rows // shards)
    for number, name in enumerate(names):
        with pa.ipc.new_stream(folder / name, table.schema) as writer:
            writer.write_table(table.slice(number * size, size))
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": own} for own in names], "_split": split})
    )
    (folder / "cache-1.arrow").write_bytes(b"not of the data set")


def pictured(names):
    """Captions of pictures whose bytes are in the table, as in most data sets of captions."""
    pictures = [{"bytes": b"\xff\xd8" * 9, "path": name} for name in names]
    return pa.table({"image": pictures, "caption": [[f"a {name}", "a dog"] for name in names]})


PICTURES = ["COCO_val2014_000000000007.jpg", "b.jpg", "c.jpg"]
IDS = dict(zip(PICTURES, ["7", "b.jpg", "c.jpg"], strict=True))
EXPECTED = [(IDS[name], text) for name in PICTURES for text in (f"a {name}", "a dog")]


def test_a_data_set_saved_to_disk(tmp_path):
    saved(tmp_path / "set", pictured(PICTURES), "val", shards=2)
    assert pairs(read_captions(tmp_path / "set", kind="reference")) == EXPECTED
    pyarrow.parquet.write_table(pictured(PICTURES), tmp_path / "set.parquet")
    (tmp_path / "set" / "data-00000-of-00002.arrow").rename(tmp_path / "one.arrow")
    assert pairs(read_captions(tmp_path / "set.parquet", kind="reference")) == EXPECTED
    assert pairs(read_captions(tmp_path / "one.arrow", kind="reference")) == EXPECTED[:4]


@pytest.mark.parametrize("inner", ["set/", ""])
def test_splits_in_a_zip_stay_one_data_set(tmp_path, inner):
    saved(tmp_path / "set" / "train", pictured(PICTURES[:2]), "train")
    saved(tmp_path / "set" / "val", pictured(PICTURES[2:]), "val")
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "val"]}')
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for path in (tmp_path / "set").rglob("*.*"):
            archive.write(path, inner + path.relative_to(tmp_path / "set").as_posix())
        archive.writestr("beside.csv", "image_id,gender\n7,Male\n")
    found = unpacked(tmp_path / "set.zip", tmp_path / "unpacked")
    assert [own.name for own in found] == (["set", "beside.csv"] if inner else ["set"])
    table = read_captions(found[0], kind="reference")
    assert pairs(table) == EXPECTED
    assert table.notes == ("rows of every split are taken: train 2 rows, val 1 row",)


def test_prompts_are_kept_apart(tmp_path):
    """The same caption for two prompts is no repeat; one prompt alone is nothing to tell apart."""
    path = tmp_path / "a.csv"
    path.write_text(
        "image_id,prompt,caption\n1,Say it.,a dog\n1,Describe it.,a dog\n1,Say it.,a dog\n2,Say it.,a cat\n"
    )
    table = read_captions(path)
    assert table.prompts == ("Say it.", "Describe it.", "Say it.")
    assert table.notes == ("2 prompts: Say it. (2); Describe it. (1)",)
    assert pairs(table) == [("1", "a dog"), ("1", "a dog"), ("2", "a cat")]
    path.write_text("image_id,prompt,caption\n1,Say it.,a dog\n2,Say it.,a cat\n")
    assert read_captions(path).prompts == ()


SCRIPTS = {
    "flickr's names": (
        "results.txt",
        '1000092795.jpg#0\tTwo "young" guys look on .\n10002456.jpg#0\tMen in hats.\n',
        "headerless",
        [("1000092795", 'Two "young" guys look on .'), ("10002456", "Men in hats.")],
    ),
    "ids and commas": (
        "mine.csv",
        'COCO_val2014_000000000136.jpg,"a man, seated on a horse"\n785,a woman on skis\n',
        "headerless",
        [("136", "a man, seated on a horse"), ("785", "a woman on skis")],
    ),
    "predictions and what they are of": (
        "out.json",
        '{"model": "sat", "files": [{"a": 1}], "predictions": [{"image_id": 1, "text": "a dog"}, {"image_id": 2, '
        '"text": "a cat"}]}',
        "json_within",
        [("1", "a dog"), ("2", "a cat")],
    ),
    "LLaVA's answers": (
        "answers.jsonl",
        '{"question_id": 7, "prompt": "Say it.", "text": "a dog", "model_id": "m"}\n'
        '{"question_id": 8, "prompt": "Say it.", "text": "a cat", "model_id": "m"}\n',
        "jsonl",
        [("7", "a dog"), ("8", "a cat")],
    ),
    "a pipeline's": (
        "p.json",
        '[{"file_name": "a.jpg", "generated_text": "a dog"}]',
        "json_records",
        [("a.jpg", "a dog")],
    ),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_what_scripts_write(tmp_path, case):
    name, text, reader, captions = SCRIPTS[case]
    (tmp_path / name).write_text(text)
    assert detect(tmp_path / name).format == reader and likely(tmp_path / name).kind == GENERATED
    assert pairs(read_captions(tmp_path / name)) == captions


def test_a_line_that_is_none_is_counted(tmp_path):
    (tmp_path / "a.tsv").write_text(
        "1.jpg\ta man on skis\n2.jpg\ta dog on a bed\n3.jpg\ta cat on a mat\nfour\n5.jpg\t\n"
    )
    table = read_captions(tmp_path / "a.tsv")
    assert (len(table.frame), table.problem_count, table.empty) == (3, 1, 1)
    assert table.problems[0].line == 4 and "four where an image and a caption are expected" in table.problems[0].message


def test_what_else_an_object_holds_is_named(tmp_path):
    (tmp_path / "a.json").write_text(SCRIPTS["predictions and what they are of"][1])
    assert read_captions(tmp_path / "a.json").notes == ("captions from predictions", "left out: model, files")


@pytest.mark.parametrize("text", ["785,Female\n136,Male\n", "785,light skin\n136,dark skin\n", "image_id,race\n1,a\n"])
def test_labels_without_a_header_are_no_captions(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert detect(tmp_path / "a.csv").format == "csv"


BROKEN = {
    "predictions, cut": (
        "o.json",
        '{"predictions": [{"image_id": 1, "text": "a"}, {"im',
        "o.json, JSON that is broken",
    ),
    "lmms-eval without a metric": (
        "s.jsonl",
        '{"doc_id": 0, "m": {"image_id": null, "pred": "x"}}\n{"doc_id": 1}\n',
        "s.jsonl with 2 rows and none that can be used (the first problem is at line 1: the image id is missing)",
    ),
    "VLMEvalKit without rows": ("m.tsv", "index\tanswer\tprediction\n", "m.tsv with 0 rows and none that can be used"),
    "VLMEvalKit, Excel": ("m.xlsx", "PK\x03\x04xl/ x", "m.xlsx, an Excel file that cannot be read"),
    "captions by image, cut": ("d.json", '{"785": "a man", "872": "a', "d.json, JSON that is broken at line 1"),
    "imgToEval of numbers": ("d.json", '{"imgToEval": {"1": 3}}', "a number (3) where a caption is expected"),
    "imgToEval that is a list": (
        "d.json",
        '{"imgToEval": {"1": "a"}, "imgToEval": [1]}',
        "d.json, JSON that holds a list",
    ),
    "names of fields": ("d.json", '{"model": "a", "date": "b"}', "an object with the keys model, date"),
    "names of fields with a digit": ("d.json", '{"v2": "a", "date": "b"}', "an object with the keys v2, date"),
    "objects, cut": ("o.json", '{"image_id": 1,\n"text": "a"}\n{"image_id": 2,\n', "o.json, JSON objects one after"),
    "a list after an object": (
        "o.json",
        '{"image_id": 1,\n"text": "a"}\n{}\n[1]',
        "(a list after an object, at line 4)",
    ),
    "Oscar without captions": (
        "p.tsv",
        '1\t[{"caption": 3}]\n2\t{"caption"\n',
        "the caption is a number (3), not text",
    ),
    "Karpathy's, cut": ("k.json", json.dumps(KARPATHY)[:-40], "k.json, JSON that is broken"),
    "Karpathy's without images": ("k.json", '{"images": [], "x": {"sentences": []}}', "k.json with 0 rows"),
    "Arrow, cut": ("a.arrow", "\xff\xff\xff\xff\x10", "a.arrow, a data set that is broken"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_gives_one_error(tmp_path, case):
    name, text, said = BROKEN[case]
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(CapbiasError) as caught:
        read_captions(tmp_path / name)
    assert said in caught.value.got
    assert caught.value.expected and caught.value.remedy


STATES = {
    "no files": ('{"_data_files": []}', "it names no Arrow file"),
    "outside": ('{"_data_files": [{"filename": "../../x.arrow"}]}', "state.json has no list _data_files of names"),
    "no list": ("{}", "state.json has no list _data_files of names"),
    "no JSON": ("{", "state.json has no list _data_files of names"),
}


@pytest.mark.parametrize("case", STATES)
def test_a_broken_data_set_gives_one_error(tmp_path, case):
    state, said = STATES[case]
    saved(tmp_path / "set", pictured(PICTURES), "val")
    (tmp_path / "set" / "state.json").write_text(state)
    with pytest.raises(CapbiasError) as caught:
        read_captions(tmp_path / "set")
    assert caught.value.got == f"set, a data set that is broken ({said})"


def test_every_reader_is_tried_here_or_in_test_load():
    shipped = {"coco_captions", "csv", "json_records", "jsonl", "lic_release", "parquet", "tsv", "xlsx"}
    here = {reader for reader, _ in FILES.values()} | {"karpathy", "datasets"}
    here |= {reader for _, _, reader, _ in SCRIPTS.values()}
    here |= {f"vlmevalkit_{own}" for own in ("xlsx", "json_records", "csv")}
    assert shipped | here == set(FORMATS)
