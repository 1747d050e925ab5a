"""Names and captions of strangers do nothing in a spreadsheet program."""

import io

import pandas as pd

from capbias_core.spreadsheets import csv_text

NAMES = ["=HYPERLINK(1)", "+1+1", "-sat", "@SUM(1)", "\t=1+1", "\r=1+1", " =1", "\tsat", "＝1", "'=1", "'\t=1", "''@"]
NAMES += ["'til dusk", "sat", "-2", "1e5", ""]


def test_no_text_is_a_formula_and_numbers_stay():
    frame = pd.DataFrame({"=name": NAMES, "value": range(-1, len(NAMES) - 1)})
    found = pd.read_csv(io.StringIO(csv_text(frame)), dtype=str, keep_default_na=False)
    assert list(found.columns) == ["'=name", "value"]
    assert [cell for cell in found["'=name"] if cell.startswith(("=", "+", "-", "@"))] == ["-2"]
    assert found["value"].tolist()[:2] == ["-1", "0"]


def test_cells_that_are_missing_or_no_text():
    assert csv_text(pd.DataFrame({"a": ["=1", None], "b": [True, [1]]})) == "a,b\n'=1,True\n,[1]\n"
    assert csv_text(pd.DataFrame({"a": [1]}).iloc[:0]) == "a\n"
