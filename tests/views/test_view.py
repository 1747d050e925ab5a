"""What every view is exported as."""

import io
import json

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.views.view import Shown, exported

ROWS = pd.DataFrame({"captioner": ["a_1", "b & c"], "value": [1 / 3, float("nan")], "n": [12, 7]})
SHOWN = Shown("Made up", ROWS, table=ROWS.astype(str))


def test_json_and_csv_have_every_digit():
    rows = json.loads(exported(SHOWN, "out.json"))
    assert rows == [{"captioner": "a_1", "value": 1 / 3, "n": 12}, {"captioner": "b & c", "value": None, "n": 7}]
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(str(exported(SHOWN, "OUT.CSV")))), ROWS)


def test_latex_is_a_whole_longtable():
    lines = str(exported(SHOWN, "out.tex")).splitlines()
    assert lines[0] == r"\begin{longtable}{lll}" and lines[-1] == r"\end{longtable}"
    assert r"captioner & value & n \\" in lines and r"b \& c & nan & 7 \\" in lines


@pytest.mark.parametrize("name", ["out.svg", "out.xlsx", "out"])
def test_what_a_view_cannot_be_written_as_is_refused(name):
    with pytest.raises(CapbiasError):
        exported(SHOWN, name)
