"""Labels of several rows per image, of annotators, and of tables with other columns; each value counted by hand."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet
import pytest

from capbias_core.attributes.labels import MIXED
from capbias_core.errors import CapbiasError
from capbias_core.load.labels import labels
from capbias_core.load.read import parse
from tests.conftest import SHARED
from tests.load.test_formats import arrow

FEMININE = "Predominantly Feminine"


@pytest.fixture
def read(tmp_path):
    """The table of labels in a CSV file with this text."""

    def from_text(text: str, several: str = ""):
        (tmp_path / "labels.csv").write_text(text)
        return labels(parse(tmp_path / "labels.csv"), several=several)

    return from_text


PEOPLE = """\
ImageID,XMin,GenderPresentation,AgePresentation
a,0.1,Predominantly Feminine,Young
a,0.2,Predominantly Masculine,Young
b,0.3,Predominantly Feminine,Older
b,0.4,Unknown,
c,0.5,Predominantly Masculine,Unknown
c,0.6,masculine,Middle
d,0.7,Unknown,Young"""
# Image b and c have people of one known gender; only the people on a contradict each other.
BY_IMAGE = {"a": MIXED, "b": "Predominantly Feminine", "c": "Predominantly Masculine", "d": "Unknown"}

ANSWERS = """\
HITId,Title,WorkerId,AssignmentStatus,Input.image_url,Answer.gender,Answer.skin
H1,Label people,W1,Approved,https://b.org/val/1.jpg,Female,
H1,Label people,W2,Approved,https://b.org/val/1.jpg,Male,3|4
H1,Label people,W3,Approved,https://b.org/val/1.jpg,female,3|4
H2,Label people,W1,Approved,https://b.org/val/2.jpg,Female,
H2,Label people,W2,Approved,https://b.org/val/2.jpg,Male,
H2,Label people,W3,Approved,https://b.org/val/2.jpg,Can't tell,5
H3,Label people,W1,Approved,https://b.org/val/3.jpg,Male,
H3,Label people,W2,Approved,https://b.org/val/3.jpg,Can't tell,
H3,Label people,W4,Rejected,https://b.org/val/3.jpg,Can't tell,1
H3,Label people,W3,Approved,https://b.org/val/3.jpg,Can't tell,"""
ONE, TWO, THREE = (f"https://b.org/val/{number}.jpg" for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "several", "column", "expected"),
    [
        (PEOPLE, "", "GenderPresentation", BY_IMAGE),
        (PEOPLE, "both", "AgePresentation", {"a": "Young", "b": "Older", "c": "Middle", "d": "Young"}),
        (PEOPLE, "majority", "GenderPresentation", BY_IMAGE | {"b": MIXED}),
        (PEOPLE, "first", "GenderPresentation", BY_IMAGE | {"a": "Predominantly Feminine"}),
        (PEOPLE, "each", "GenderPresentation 2", dict(zip("abcd", [*"MUm", ""], strict=True))),
        (ANSWERS, "", "Answer.gender", {ONE: "Female", TWO: MIXED, THREE: "Can't tell"}),
        (ANSWERS, "", "Answer.skin", {ONE: "3|4", TWO: "5", THREE: ""}),
        (ANSWERS, "both", "Answer.gender", {ONE: MIXED, TWO: MIXED, THREE: "Male"}),
        (ANSWERS, "each", "Answer.gender W2", {ONE: "Male", TWO: "Male", THREE: "Can't tell"}),
    ],
)
def test_the_label_of_several_rows(read, text, several, column, expected):
    table = read(text, several)
    short = {"M": "Predominantly Masculine", "U": "Unknown", "m": "masculine"}
    assert dict(zip(table.frame["image_id"], table.frame[column], strict=True)) == {
        image: short.get(label, label) for image, label in expected.items()
    }
    assert table.problem_count == 0, "agreement and disagreement are no problems"


def test_a_table_with_one_row_per_image_and_columns_that_are_no_labels(read):
    people = [(image, copy) for image in range(60) for copy in (1, 2)]
    rows = [f"{i},{'Female' if i < 9 else 'Male'},job {(i + copy) % 30},{i}.{copy}" for i, copy in people]
    table = read("\n".join(["image_id,sex,job,time", *rows]))
    assert list(table.frame.columns) == ["image_id", "sex", "job"] and table.problem_count == 0
    assert len(table.notes) == 1  # time and job are not said to be labels that contradict each other
    unused = "job (differs between rows of an image), time (differs between rows of an image)"
    assert [text for _, text in table.account] == ["image_id", "sex", unused, "2 (60 images)"]
    assert Counter(table.frame["sex"]) == {"Female": 9, "Male": 51} and set(table.frame["job"]) == {MIXED}
    assert list(read(ANSWERS).frame.columns)[-2:] == ["Answer.gender", "Answer.skin"]
    table = read("image_id,gender,annotator,objects\n1,Female,A,cat|dog\n2,,B,\n2,,B,\n000003,M,A,x")
    assert table.frame.values.tolist() == [["1", "Female", "A", "cat|dog"], ["2", "", "B", ""], ["3", "M", "A", "x"]]
    assert (table.rows, table.duplicates, table.notes) == (4, 1, ())


def test_the_column_of_image_ids_and_files_without_one_or_a_usable_row(read):
    for header in ("HITId,*Input.image_url,Answer.image", "*IDX,gender", "id,*Image URL", "*url,gender"):
        (name,) = (name[1:] for name in header.split(",") if name.startswith("*"))
        assert dict(read(header.replace("*", "") + "\n1,2,3"[: 2 * len(header.split(","))]).account)["Image ID"] == name
    with pytest.raises(CapbiasError) as refused:
        read("who,gender\nx,Female")
    assert "who, gender" in refused.value.message and refused.value.arguments == ("image_id_column",)
    with pytest.raises(CapbiasError) as empty:
        read("image_id,gender\n,Female")
    assert "line 2" in empty.value.message


@pytest.mark.parametrize(
    ("file", "column", "counts"),
    [
        # 57 + 10 images with women and men; 13 and 6 with a man or a woman and somebody unknown
        ("18_miap/miap_boxes_val.csv", "GenderPresentation", {MIXED: 67, "Predominantly Masculine": 72, FEMININE: 61}),
        # by annotators: 51 FFF, 17 FF?, 17 FFM; 69, 21, 15 of M; 4 images ?? and one; 6 of all three
        (
            "23_mturk/Batch_4711_batch_results.csv",
            "Answer.gender",
            {"Female": 85, "Male": 105, "Can't tell": 4, MIXED: 6},
        ),
        ("22_visogender/OO_table.tsv", "Occupation_perceived_gender", {"masculine": 99, "feminine": 81, "neutral": 20}),
    ],
)
def test_labels_of_public_formats(file, column, counts):
    path = SHARED / "cases" / file
    if not path.is_file():
        pytest.skip(f"the cases are not here ({path})")
    table = labels(parse(path))
    assert Counter(table.frame[column]) == counts and table.problem_count == 0


NAMES = {"info": {"features": {"sex": {"_type": "ClassLabel", "names": ["male", "female"]}}}}
IDS, SEXES = ["1", "2", "3"], ["female", "male", ""]


def nested_names():
    feature = {"_type": "ClassLabel", "names": ["male", "female"]}
    features = {"who": [{"sex": feature}], "one": {"sex": feature}, "all": {"_type": "Sequence", "feature": feature}}
    return {b"huggingface": json.dumps({"info": {"features": features}}).encode()}


# Columns beside the image IDs, metadata of the schema, the column of labels and its labels.
PARQUET = {
    "class": ({"sex": [1, 0, -1]}, {b"huggingface": json.dumps(NAMES).encode()}, "sex", SEXES),
    "category": ({"sex": pa.array(SEXES).dictionary_encode()}, {}, "sex", SEXES),
    "struct": ({"who": [{"sex": "female", "face": {"box": [1.0]}}, {"sex": "male"}, None]}, {}, "sex", SEXES),
    "deep": ({"about": [{"who": {"sex": sex, "bbox": [1, 2]}} for sex in SEXES]}, {}, "sex", SEXES),
    "two structs": ({"a": [{"sex": sex} for sex in SEXES], "b": [{"sex": "x"}] * 3}, {}, "b.sex", ["x"] * 3),
    "annotator": ({"annotator": [{"sex": sex} for sex in SEXES]}, {}, "annotator.sex", SEXES),
    "map": ({"who": pa.array([[("sex", "female")], [("sex", "male")], []], pa.map_(pa.string(), pa.string()))}, {},
            "sex", SEXES),
    "list": ({"who": [[{"sex": "female"}, {"sex": "female"}], [{"sex": "male"}], []]}, {}, "sex", SEXES),
    "people": ({"who": [[{"sex": "female"}, {"sex": "male"}], [{"sex": "male"}], None]}, {},
               "sex", [MIXED, "male", ""]),
    "classes in lists": ({"who": [[{"sex": 1}, {"sex": 1}], [{"sex": 0}], []]}, nested_names(), "sex", SEXES),
    "classes in structs": ({"one": [{"sex": 1}, {"sex": 0}, {"sex": None}]}, nested_names(), "sex", SEXES),
    "lists of classes": ({"all": [[1, 1], [0], []]}, nested_names(), "all", ["female|female", "male", ""]),
}  # fmt: skip


@pytest.mark.parametrize("case", PARQUET)
@pytest.mark.parametrize("ending", ["parquet", "arrow", "json"])
def test_labels_in_nested_columns_and_by_names_of_classes(tmp_path, case, ending):
    columns, metadata, column, expected = PARQUET[case]
    table = pa.table({"image_id": IDS, **columns}).replace_schema_metadata(metadata)
    path = tmp_path / f"labels.{ending}"
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif ending == "arrow":
        path.write_bytes(arrow(table))
    else:
        if metadata:
            pytest.skip("JSON has no metadata")
        path.write_text(json.dumps(table.to_pylist(maps_as_pydicts="strict")))
    frame = labels(parse(path)).frame
    assert frame[column].tolist() == expected


def test_a_number_without_the_name_of_its_class_is_refused_and_a_folder_has_its_names_beside_it(tmp_path):
    table = pa.table({"image_id": IDS, "sex": [1, 0, 2]})
    pyarrow.parquet.write_table(
        table.replace_schema_metadata({b"huggingface": json.dumps(NAMES).encode()}), tmp_path / "a.parquet"
    )
    with pytest.raises(CapbiasError, match="class 2 has no name"):
        parse(tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pa.table({"image_id": IDS, "sex": [b"female"] * 3}), tmp_path / "bytes.parquet")
    with pytest.raises(CapbiasError, match="hold bytes: sex"):
        labels(parse(tmp_path / "bytes.parquet"))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data.arrow").write_bytes(arrow(table.slice(0, 2)))
    (tmp_path / "set" / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    (tmp_path / "set" / "dataset_info.json").write_text(json.dumps(NAMES["info"]))
    assert labels(parse(tmp_path / "set")).frame["sex"].tolist() == ["female", "male"]
