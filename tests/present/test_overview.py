"""What is said beside an answer: of one captioner, only what was measured, with its numbers."""

import pandas as pd

from capbias_core.analysis.encoders import sensitivity_of
from capbias_core.attributes import get_attribute, plain_attribute
from capbias_core.present.overview import NOT_YET, Line, overview
from capbias_core.present.rows import overview_rows
from capbias_core.types import A_TO_T, RESULT_COLUMNS, T_TO_A, Result

GENDER = get_attribute("gender")


def row(metric: str, value: float, low: float, high: float, **more) -> dict:
    usual = {"attribute": "gender", "model": "m", "metric": metric, "value": value, "scale": 100.0, "n": 90}
    ends = {"ci_low": low, "ci_high": high, "interval": "refits", "encoder": "ngram", "seeds": 5}
    return Result(**(usual | ends | more)).row()


def frame(*rows: dict) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def said(lines: list[Line]) -> dict[str, str]:
    return {line.page: line.said for line in lines}


def test_what_was_measured_is_said_with_its_interval():
    rows = frame(
        row("error", 1.44, 1.2, 1.7),
        row("ratio", 2.061, 1.97, 2.15, scale=1.0),
        row("DBAC", 24.6, 20.4, 28.9, direction=A_TO_T),
        row("DBAC", 13.8, 10.8, 16.8, direction=T_TO_A),
        row("DBAC_constant", 15.0, 13.4, 16.6, direction=A_TO_T),
    )
    found = said(overview(rows, GENDER, "ngram", None))
    assert found["Scores"].startswith("In 1.4 [1.2, 1.7] of 100 captions the only gender named is not the labelled one")
    assert "2.06 [1.97, 2.15] captions name Male alone for each that names Female alone" in found["Scores"]
    assert "24.6 [20.4, 28.9], of which an attacker that reads nothing has 15.0." in found["Directions"]
    assert found["Directions"].endswith("13.8 [10.8, 16.8].") and found["Encoders"] == "Only ngram was run."
    assert found["Directions"].startswith("DBAC A→T")
    by_other = said(overview(rows, GENDER, "rnn", None))["Directions"]
    assert by_other == f"By ngram: {found['Directions']}", "the answer is another attacker's"


def test_what_was_not_measured_is_said_to_be_so():
    found = said(overview(frame(), GENDER, "ngram", None))
    assert found["Scores"] == found["Directions"] == NOT_YET
    plain = overview(frame(), plain_attribute("place", ("in", "out")), "ngram", None)
    assert [line.page for line in plain] == ["Directions", "Encoders"], "captions name no value"


def test_other_attackers_that_disagree_are_said():
    rows = frame(row("LIC", 5.0, 3.0, 7.0), row("LIC", -5.0, -7.0, -3.0, encoder="rnn"))
    own = sensitivity_of(None, rows.assign(paper="printed"))
    told = said(overview(rows, GENDER, "ngram", own))["Encoders"]
    assert "sign changes: above with ngram; below with rnn" in told and told.endswith("(ngram, rnn).")


def test_lines_link_to_their_page_and_show_text_as_text():
    html = overview_rows([Line("<b>?", "1 < 2", "Scores")], {"captioner": "a&b"})
    assert 'href="Scores?captioner=a%26b"' in html and "&lt;b&gt;?" in html and "1 &lt; 2" in html
