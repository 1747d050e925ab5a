"""Small files that unpack to much, or hold what cannot be kept: one clear error each, before the machine is full."""

import json
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet
import pytest

from capbias_core.attributes import parse_attribute
from capbias_core.errors import CapbiasError
from capbias_core.load import tabular
from capbias_core.load.parse import parse
from capbias_core.load.parsed import MOST_CHARACTERS, MOST_COLUMNS, MOST_ROWS
from capbias_core.load.vectors import read_vectors
from capbias_core.workspace.ingest import read_part


@pytest.fixture
def refusal(tmp_path):
    """What reading a file of a kind is refused with."""

    def of(name: str, kind: str = "captions") -> str:
        with pytest.raises(CapbiasError) as error:
            read_part(tmp_path / name, kind)
        return str(error.value)

    return of


def test_equal_rows_that_take_no_place_in_the_file(tmp_path, refusal):
    same = pa.DictionaryArray.from_arrays(pa.array([0] * (MOST_ROWS + 1), pa.int8()), ["a dog"])
    pyarrow.parquet.write_table(pa.table({"image_id": same, "caption": same}), tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < 1_000_000
    assert f"{MOST_ROWS + 1:,} rows" in refusal("rows.parquet")


@pytest.mark.parametrize("kind", ["captions", "attributes"])
def test_columns_without_end(tmp_path, refusal, kind):
    names = ["image_id", "caption", *(f"c{place}" for place in range(MOST_COLUMNS))]
    (tmp_path / "columns.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names))
    assert f"{MOST_COLUMNS + 2:,} columns" in refusal("columns.csv", kind)


def test_a_caption_as_long_as_a_book_is_left_out(tmp_path, refusal):
    rows = [{"image_id": 1, "caption": "a" * (MOST_CHARACTERS + 1)}]
    (tmp_path / "long.json").write_text(json.dumps(rows))
    assert f"{MOST_CHARACTERS + 1:,} characters" in refusal("long.json")
    (tmp_path / "one.json").write_text(json.dumps([*rows, {"image_id": 2, "caption": "a dog"}]))
    assert list(read_part(tmp_path / "one.json", "captions").frame["image_id"]) == ["2"]


FAR = b'<row r="999999999999"><c r="A999999999999"><v>1</v></c></row>'
WIDE = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (row, row) for row in range(2, 100))
HUGE = b'<dimension ref="A1:XFD1048576"/>'


@pytest.mark.parametrize("rows", [FAR, WIDE], ids=["far", "wide"])
def test_a_sheet_with_a_cell_far_away(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(tabular, "MOST_CELLS", 1_000_000)
    book = openpyxl.Workbook()
    book.active.append(["image_id", "caption"])
    book.save(tmp_path / "usual.xlsx")
    with zipfile.ZipFile(tmp_path / "usual.xlsx") as usual, zipfile.ZipFile(tmp_path / "far.xlsx", "w", 8) as target:
        for name in usual.namelist():
            content = usual.read(name).replace(b"</sheetData>", rows + b"</sheetData>")
            target.writestr(name, content.replace(b'<dimension ref="A1:B1" />', HUGE))
    with pytest.raises(CapbiasError, match="at most 1,048,576 rows of few cells"):
        parse(tmp_path / "far.xlsx")


def test_a_sheet_that_unpacks_to_too_much(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(tabular, "MOST_SHEET_BYTES", 100)
    openpyxl.Workbook().save(tmp_path / "a.xlsx")
    with pytest.raises(CapbiasError, match="unpacks to"):
        parse(tmp_path / "a.xlsx")


@pytest.mark.parametrize("text", ["values = [{}, 1]", "name = {}", 'values = ["a", "b"]\nwords.a = {}'])
def test_a_number_too_long_to_be_written(text):
    with pytest.raises(CapbiasError, match="cannot be read"):
        parse_attribute(text.format("0x" + "f" * 5000), "own.toml")


@pytest.mark.parametrize("first", [b"2 " + b"9" * 5000, b"9" * 5000 + b" 2"])
def test_vectors_whose_number_is_too_long_to_be_read(tmp_path, first):
    (tmp_path / "long.vec").write_bytes(first + b"\ndog 1 2\n")
    with pytest.raises(CapbiasError, match="not a vector file|of another dimension"):
        read_vectors(tmp_path / "long.vec", {"dog"})
