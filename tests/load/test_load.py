"""The loader room: every format, from real data and from small files, to the same tables."""

import csv
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from capbias_core.attributes.labels import MIXED
from capbias_core.errors import CapbiasError
from capbias_core.load import detect, normalise_image_id, read_attributes, read_captions

RECORDS = [
    {"image_id": 785, "caption": "A woman on skis."},
    {"image_id": 872, "caption": 'Two "players", one ball'},
    {"image_id": 885, "caption": "<b>bold</b> ![](https://example.org/x.png) 👩‍🦽\nsecond line"},
]


def written(folder, name, records):
    """A file of records in the format of its ending."""
    path, frame = folder / name, pd.DataFrame(records)
    writers = {
        ".json": lambda: path.write_text(json.dumps(records), encoding="utf-8"),
        ".csv": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".jsonl": lambda: path.write_text("".join(json.dumps(record) + "\n" for record in records)),
        ".parquet": lambda: frame.to_parquet(path),
        ".xlsx": lambda: frame.to_excel(path, index=False),
        ".pkl": lambda: path.write_bytes(pickle.dumps(records)),
    }
    writers[path.suffix]()
    return path


def pairs(table):
    return list(zip(table.frame["image_id"], table.frame["caption"], strict=True))


EXPECTED = [(str(record["image_id"]), record["caption"]) for record in RECORDS]
BY_ENDING = {
    ".json": "coco_results",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".pkl": "lic_release",
}


@pytest.mark.parametrize("ending", BY_ENDING)
def test_one_set_of_captions_reads_the_same_from_every_format(tmp_path, ending):
    path = written(tmp_path, f"captions{ending}", RECORDS)
    found = detect(path)
    assert found.format == BY_ENDING[ending]
    assert found.columns == ("image_id", "caption")
    assert found.guess == {"image_id": "image_id", "caption": "caption"}
    table = read_captions(path)
    assert pairs(table) == EXPECTED
    assert list(table.frame.columns) == ["image_id", "caption_index", "caption"]
    assert (table.rows, table.empty, table.duplicates, table.problem_count) == (3, 0, 0, 0)


@pytest.mark.parametrize("ending", BY_ENDING)
def test_content_decides_and_not_the_ending(tmp_path, ending):
    path = written(tmp_path, f"captions{ending}", RECORDS)
    renamed = path.rename(tmp_path / "captions.txt")
    assert detect(renamed).format == BY_ENDING[ending]
    assert pairs(read_captions(renamed)) == EXPECTED


@pytest.mark.long
def test_coco_results_of_real_captioners(coco_bias):
    for name, rows in (("nic", 13057), ("oscar", 13057), ("sat", 15762), ("sat_masked_person", 10780)):
        path = coco_bias / "results" / f"{name}.json"
        assert detect(path).format == "coco_results"
        raw = json.loads(path.read_text())
        assert len(raw) == rows
        assert pairs(read_captions(path)) == [(str(record["image_id"]), record["caption"]) for record in raw]


def test_coco_captions_of_people(coco_bias):
    path = coco_bias / "annotations" / "captions_subset.json"
    found = detect(path)
    assert (found.format, found.columns) == ("coco_captions", ("id", "image_id", "caption"))
    assert found.guess == {"image_id": "image_id", "caption": "caption"}
    table = read_captions(path, kind="reference")
    assert (table.rows, len(table.frame), table.duplicates) == (18208, 18208, 0)
    assert table.frame["image_id"].nunique() == 3640
    first = table.frame[table.frame["image_id"] == "785"]
    assert list(first["caption_index"]) == [0, 1, 2, 3, 4]
    assert first["caption"].iloc[0] == "A woman posing for the camera standing on skis."


def test_people_may_repeat_a_caption_and_captioners_may_not(coco_bias):
    path = coco_bias / "annotations" / "captions_subset.json"
    table = read_captions(path, kind="generated")
    assert (len(table.frame), table.duplicates) == (18202, 6)


@pytest.mark.long
def test_lic_release_holds_the_same_captions_as_the_results(coco_bias):
    for pickled, results in (
        ("Show-Attend-Tell/gender_val_sat_cap_mw_entries.pkl", "sat"),
        ("Att2in_FC/race_val_fc_cap_entries.pkl", "fc"),
    ):
        table = read_captions(coco_bias / "lic_release" / pickled)
        known = dict(pairs(read_captions(coco_bias / "results" / f"{results}.json")))
        read = dict(pairs(table))
        assert len(read) == table.rows > 10000
        assert {image: caption.strip() for image, caption in read.items()} == {
            image: known[image].strip() for image in read
        }


@pytest.mark.long
def test_lic_release_is_recognised(coco_bias):
    found = detect(coco_bias / "lic_release" / "Show-Attend-Tell" / "gender_val_sat_cap_mw_entries.pkl")
    assert found.format == "lic_release"
    assert found.columns == ("img_id", "pred", "bb_gender", "ratio", "bb_skin", "race", "split")
    assert found.guess == {"image_id": "img_id", "caption": "pred"}


@pytest.mark.long
def test_attributes_of_the_real_table_and_of_the_release_agree(coco_bias):
    table = read_attributes(coco_bias / "annotations" / "attributes.csv")
    assert (table.rows, len(table.frame), table.duplicates, table.problem_count) == (15762, 15762, 0, 0)
    assert list(table.frame.columns) == ["image_id", "gender", "skin", "objects"]
    counts = table.frame["gender"].value_counts().to_dict()
    assert (counts["Female"], counts["Male"], counts[""]) == (3314, 7466, 759)
    released = read_attributes(coco_bias / "lic_release" / "Att2in_FC" / "race_val_fc_cap_entries.pkl")
    genders = released.frame.set_index("image_id")["bb_gender"].sort_index()
    assert genders.equals(table.frame.set_index("image_id")["gender"].sort_index().rename("bb_gender"))


@pytest.mark.parametrize("protocol", range(6))
def test_human_captions_of_the_release_unfold(tmp_path, protocol):
    path = tmp_path / "gender_obj_cap_mw_entries.pkl"
    entries = [
        {"img_id": 785, "caption_list": ["a woman", "a skier", "a woman"], "bb_gender": "Female", "ratio": 0.5},
        {"img_id": 872, "caption_list": ["two men", ""], "bb_gender": "Male", "ratio": None},
        {"img_id": 885, "caption_list": [], "bb_gender": "Male", "ratio": float("nan")},
    ]
    path.write_bytes(pickle.dumps(entries, protocol=protocol))
    assert detect(path).guess == {"image_id": "img_id", "caption": "caption_list"}
    table = read_captions(path, kind="reference")
    assert pairs(table) == [("785", "a woman"), ("785", "a skier"), ("785", "a woman"), ("872", "two men")]
    assert list(table.frame["caption_index"]) == [0, 1, 2, 0]
    assert (table.rows, table.empty) == (3, 2)
    labels = read_attributes(path).frame
    assert list(labels["bb_gender"]) == ["Female", "Male", "Male"]
    assert list(labels["ratio"]) == ["0.5", "", ""]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (785, "785"),
        (785.0, "785"),
        (np.int64(785), "785"),
        (np.float64(785), "785"),
        (0, "0"),
        (-3, "-3"),
        (1.5, "1.5"),
        ("785", "785"),
        ("000785", "785"),
        ("000", "0"),
        ("785.0", "785"),
        ("COCO_val2014_000000000785.jpg", "785"),
        ("val2014/COCO_val2014_000000000785.jpg", "785"),
        ("COCO_train2014_000000000785", "785"),
        ("000000000785.jpg", "785"),
        ("/data/val2017/000000000785.jpg", "785"),
        ("785.PNG", "785"),
        (" dog 7.jpg ", "dog 7.jpg"),
        ("flickr_785.jpg", "flickr_785.jpg"),
        ("folder/785.jpg", "folder/785.jpg"),
        ("785a", "785a"),
        ("7-85", "7-85"),
        ("٣.jpg", "٣.jpg"),
    ],
)
def test_image_ids(value, expected):
    assert normalise_image_id(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
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
        pytest.param(10**5000, "100 digits", id="long"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
    ],
)
def test_image_ids_that_are_none(value, message):
    with pytest.raises(ValueError, match="image id") as error:
        normalise_image_id(value)
    assert message in str(error.value)


def test_other_column_names_are_guessed(tmp_path):
    path = written(tmp_path, "a.json", [{"id": 9, "File Name": "000000000785.jpg", "Prediction": "a man"}])
    found = detect(path)
    assert (found.format, found.columns) == ("json_records", ("id", "File Name", "Prediction"))
    assert found.guess == {"image_id": "File Name", "caption": "Prediction"}
    assert pairs(read_captions(path)) == [("785", "a man")]


def test_columns_are_chosen_by_name_where_no_guess_fits(tmp_path):
    path = written(tmp_path, "a.csv", [{"pic": 785, "words": "a man", "caption": "not this"}])
    assert detect(path).guess == {"image_id": None, "caption": "caption"}
    assert pairs(read_captions(path, {"image_id": "pic"})) == [("785", "not this")]
    assert pairs(read_captions(path, {"image_id": "pic", "caption": "words"})) == [("785", "a man")]
    with pytest.raises(CapbiasError) as error:
        read_captions(path)
    assert error.value.got == "a.csv with the columns pic, words, caption"
    assert error.value.expected == "a column of image ids and one of captions"
    assert "--image-id-column and --caption-column" in error.value.remedy
    with pytest.raises(CapbiasError, match="a column called picture"):
        read_captions(path, {"image_id": "picture"})
    with pytest.raises(CapbiasError, match="a column of image ids and one of captions"):
        read_captions(path, {"image_id": "words", "caption": "words"})


def test_an_unknown_kind_lists_the_known_ones(tmp_path):
    with pytest.raises(CapbiasError, match="one of: generated, reference"):
        read_captions(written(tmp_path, "a.json", RECORDS), kind="human")


BAD_ROWS = [
    {"image_id": 1, "caption": "good"},
    {"image_id": None, "caption": "no id"},
    {"image_id": 2, "caption": 3},
    {"image_id": 3, "caption": None},
    {"image_id": 4, "caption": ["a list"]},
    {"image_id": 5, "caption": "nul \0"},
    {"image_id": 6, "caption": "half \ud83d"},
    {"image_id": True, "caption": "a flag"},
    {"image_id": 7, "caption": "  "},
    "no object",
    {"image_id": 8},
    {"image_id": 1, "caption": "good"},
    {"image_id": 1, "caption": "better"},
]
BAD_MESSAGES = {
    2: "the image id is missing",
    3: "the caption is a number (3), not text",
    4: "there is no caption (null)",
    5: "the caption is a list, not text",
    6: "the caption holds a NUL character or half a surrogate pair",
    7: "the caption holds a NUL character or half a surrogate pair",
    8: "the image id is true, not a number or text",
    10: "text where an object is expected",
    11: "there is no caption (null)",
}


def test_bad_records_are_named_and_dropped(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(BAD_ROWS))
    table = read_captions(path)
    assert pairs(table) == [("1", "good"), ("1", "better")]
    assert list(table.frame["caption_index"]) == [0, 1]
    assert (table.rows, table.empty, table.duplicates, table.problem_count) == (13, 1, 1, 9)
    expected = [(number, f"record {number}: {message}") for number, message in BAD_MESSAGES.items()]
    assert [(problem.line, problem.message) for problem in table.problems] == expected
    assert {problem.file for problem in table.problems} == {"bad.json"}


def test_bad_lines_of_json_lines_have_their_line_number(tmp_path):
    path = tmp_path / "bad.jsonl"
    lines = ["", *map(json.dumps, BAD_ROWS), "", '{"image_id": 9, "cap']
    path.write_text("\r\n".join(lines))
    table = read_captions(path)
    assert (table.rows, table.empty, table.duplicates, table.problem_count) == (14, 1, 1, 10)
    expected = [(number + 1, message) for number, message in BAD_MESSAGES.items()]
    assert [(problem.line, problem.message) for problem in table.problems[:-1]] == expected
    assert table.problems[-1].line == 16
    assert "broken JSON at column 17" in table.problems[-1].message


@pytest.mark.parametrize(
    ("end", "rows", "said"),
    [
        ("", 2, "a quote is opened and never closed; 7 further lines are lost with it"),
        ('12,"a cat"\n', 2, "(the row runs to line 12: 8 further lines are lost with it)"),
        ('a dog"\n', 3, "line breaks within quotes took in 8 further lines, the most from line 4 to line 12"),
    ],
)
def test_a_stray_quote_says_how_many_lines_it_took_in(tmp_path, end, rows, said):
    """Two good rows, then a quote that opens in line 4 and closes never, at a later quote, or at the end of a row."""
    path = tmp_path / "captions.csv"
    lines = ["image_id,caption", "1,a dog", "2,a cat", '3,"a man', *(f"{own},a bus" for own in range(4, 11))]
    path.write_text("\n".join(lines) + "\n" + end)
    table = read_captions(path)
    assert len(table.frame) == rows
    assert any(said in line for line in (*table.notes, *(own.message for own in table.problems)))


def test_csv_lines_are_lines_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(
        b"image_id,caption\r\n"
        b'1,"over\r\ntwo lines"\r\n'
        b"\r\n"
        b",no id\r\n"
        b"2,too,many\r\n"
        b"3\r\n"
        b'4,"closed" and on\r\n'
        b"5,\r\n"
        b"6,nul \0\r\n"
        b"7,good\r\n"
        b'8,"never closed\r\n'
        b"9,lost\r\n"
    )
    table = read_captions(path)
    assert pairs(table) == [("1", "over\r\ntwo lines"), ("7", "good")]
    assert (table.rows, table.empty, table.problem_count) == (9, 1, 6)
    found = {problem.line: problem.message for problem in table.problems}
    assert list(found) == [5, 6, 7, 8, 10, 12]
    assert found[5] == "the image id is empty"
    assert found[6] == "3 fields where the header has 2"
    assert found[7] == "1 fields where the header has 2"
    assert "text follows a closing quote" in found[8]
    assert "NUL" in found[10]
    assert "never closed" in found[12] and "(line 13)" in found[12]


def test_parquet_says_record(tmp_path):
    path = written(tmp_path, "a.parquet", [{"image_id": 1.0, "caption": "x"}, {"image_id": None, "caption": "y"}])
    table = read_captions(path)
    assert pairs(table) == [("1", "x")]
    assert table.problems[0].message == "record 2: the image id is missing"


def test_excel_gives_what_its_csv_gives(tmp_path):
    frame = pd.DataFrame({"image_id": [785, 872, None, 885], "gender": ["Male", None, "Female", "Female"]})
    frame["age"] = [31.5, 2, 3, 4]
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    frame.to_csv(tmp_path / "a.csv", index=False)
    sheet, text = read_attributes(tmp_path / "a.xlsx"), read_attributes(tmp_path / "a.csv")
    assert list(sheet.frame["image_id"]) == list(text.frame["image_id"]) == ["785", "872", "885"]
    assert list(sheet.frame["gender"]) == list(text.frame["gender"])
    assert [problem.line for problem in sheet.problems] == [problem.line for problem in text.problems] == [4]


def test_an_excel_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path, "a.xlsx", RECORDS)
    monkeypatch.setattr("capbias_core.load.spreadsheet.MOST_BYTES", 100)
    with pytest.raises(CapbiasError, match="which unpacks to"):
        read_captions(path)


def test_parquet_lists_of_captions_unfold(tmp_path):
    path = written(tmp_path, "a.parquet", [{"image_id": 1, "captions": ["x", "y"]}])
    assert pairs(read_captions(path)) == [("1", "x"), ("1", "y")]


def test_only_the_first_twenty_problems_are_kept(tmp_path):
    lines = ["image_id,caption", "1,good", *(["2"] * 15), *([",x"] * 15)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    table = read_captions(path)
    assert table.problem_count == 30
    assert [problem.line for problem in table.problems] == list(range(3, 23))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ending", [".json", ".csv", ".tsv", ".jsonl"])
def test_byte_order_marks(tmp_path, ending, encoding):
    path = written(tmp_path, f"a{ending}", RECORDS)
    path.write_bytes(path.read_bytes().decode("utf-8").encode(encoding))
    assert detect(path).format == BY_ENDING[ending]
    assert pairs(read_captions(path)) == EXPECTED


def test_semicolons_blank_headers_and_long_captions(tmp_path):
    path, caption = tmp_path / "a.csv", "long, " * 100_000
    with path.open("w", newline="") as handle:
        csv.writer(handle, delimiter=";").writerows([["", "image_id", "caption"], [0, "000785", caption]])
    found = detect(path)
    assert (found.format, found.columns) == ("csv", ("column 1", "image_id", "caption"))
    assert pairs(read_captions(path)) == [("785", caption)]


def test_one_json_line_is_enough_for_json_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text('{"image_id": 785, "caption": "a man"}')
    assert detect(path).format == "jsonl"
    assert pairs(read_captions(path)) == [("785", "a man")]


def test_coco_captions_need_no_list_of_images(tmp_path):
    path = tmp_path / "a.json"
    for indent in (None, 1):
        path.write_text(json.dumps({"file_name": "export", "annotations": RECORDS}, indent=indent))
        assert detect(path).format == "coco_captions"
        assert pairs(read_captions(path)) == EXPECTED


def test_a_large_first_record_is_still_recognised(tmp_path):
    path = written(tmp_path, "a.json", [{"image_id": 1, "caption": "x" * (2 << 20)}])
    assert detect(path).columns == ("image_id", "caption")


LABELS = [
    {"image_id": "000785", "gender": "Female", "skin": " Light "},
    {"image_id": "872", "gender": None, "skin": "Dark"},
    {"image_id": "COCO_val2014_000000000785.jpg", "gender": "Female", "skin": "Light"},
    {"image_id": "785", "gender": "Male", "skin": "Light"},
    {"image_id": "", "gender": "Male", "skin": "Light"},
]


@pytest.mark.parametrize("ending", BY_ENDING)
def test_labels_from_every_format(tmp_path, ending):
    path = written(tmp_path, f"labels{ending}", LABELS)
    table = read_attributes(path)
    assert table.frame.values.tolist() == [["785", MIXED, "Light"], ["872", "", "Dark"]]
    assert (table.rows, table.duplicates, table.problem_count) == (5, 1, 1)
    (empty,) = table.problems
    lines = BY_ENDING[ending] in ("csv", "tsv", "xlsx", "jsonl")
    header = BY_ENDING[ending] in ("csv", "tsv", "xlsx")
    assert empty.line == 5 + header
    assert ("record 5: " in empty.message) is not lines
    assert empty.message.endswith("the image id is empty")


def test_lists_and_numbers_as_labels(tmp_path):
    records = [
        {"img": 1, "objects": ["person", "dog"], "age": 3, "image_id": "x", "adult": True},
        {"img": 2, "objects": {"person": 1}, "age": [[1], None, "x"]},
        {"img": 3, "objects": "half \ud800"},
        {"img": 4, "later": "column"},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records))
    table = read_attributes(path, id_column="img")
    assert list(table.frame.columns) == ["image_id", "objects", "age", "image_id (in the file)", "adult", "later"]
    assert table.frame.values.tolist() == [
        ["1", "person|dog", "3", "x", "True", ""],
        ["2", "(an object)", "(a list)||x", "", "", ""],
        ["4", "", "", "", "", "column"],
    ]
    assert [problem.line for problem in table.problems] == [3]


def test_a_column_whose_name_cannot_be_kept_is_left_out(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"image_id": 1, "\ud800": "x", "gender": "Male"}]))
    assert list(read_attributes(path).frame.columns) == ["image_id", "gender"]
    assert detect(path).columns == ("image_id", "gender")


def test_pandas_index_of_a_parquet_file_is_no_label(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"image_id": [1], "gender": ["Male"]}, index=[7]).to_parquet(path)
    assert list(read_attributes(path).frame.columns) == ["image_id", "gender"]


def test_labels_without_image_ids_or_labels(tmp_path):
    path = written(tmp_path, "a.csv", [{"pic": 1, "gender": "Male"}])
    with pytest.raises(CapbiasError, match="a.csv with the columns pic, gender.*--image-id-column"):
        read_attributes(path)
    assert read_attributes(path, id_column="pic").frame.values.tolist() == [["1", "Male"]]
    with pytest.raises(CapbiasError, match="a column called picture"):
        read_attributes(path, id_column="picture")
    with pytest.raises(CapbiasError, match="one or more columns of labels"):
        read_attributes(written(tmp_path, "b.csv", [{"image_id": 1}]))


def test_coco_captions_are_no_labels(coco_bias):
    with pytest.raises(CapbiasError, match="captions_subset.json, COCO captions .JSON.*Load it as captions"):
        read_attributes(coco_bias / "annotations" / "captions_subset.json")
