"""Tables of scores as text, CSV, JSON and LaTeX: cells, letters and columns by hand."""

import io
import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from capbias_core.types import RESULT_COLUMNS, Result
from capbias_core.views import results
from capbias_core.views.latex import escape_latex, to_latex, to_longtable
from capbias_core.views.tables import lettered, one_number_a_cell, scores_table, to_csv, to_json, to_text
from tests import sentences


def result(model: str, metric: str, value: float, **more) -> dict:
    return Result("gender", model, metric, value, **{"scale": 100.0, "method": "m", "n": 662, **more}).row()


FRAME = pd.DataFrame(
    [
        result("sat_1", "LIC", 8.6543, encoder="ngram", spread=0.912, seeds=10, ci_low=6.94, ci_high=10.36),
        result("sat_1", "ratio", 2.0582, scale=1.0, ci_low=1.9, ci_high=2.25),
        result("nic", "LIC", -0.25, encoder="ngram", seeds=1),
        result("nic", "ratio", float("nan"), scale=1.0),
    ]
)
LETTERED = lettered(FRAME, {"sat_1": "ab", "nic": "a"}, ("",), "LIC")


def test_one_row_per_captioner():
    assert scores_table(LETTERED).to_dict("records") == [
        {"captioner": "sat_1", "letters": "ab", "LIC": "8.7 ±0.9 [6.9, 10.4]", "ratio": "2.06 [1.90, 2.25]"},
        {"captioner": "nic", "letters": "a", "LIC": "−0.2", "ratio": "not defined"},
    ]
    assert list(scores_table(FRAME, metrics=["ratio", "LIC"]).columns) == ["captioner", "ratio", "LIC"]
    assert scores_table(FRAME, metrics=["SC"]).empty


def test_conditions_have_columns_and_encoders_have_rows():
    given = [("nic", "LIC_M", 40.0, ""), ("sat", "LIC_M", 42.0, ""), ("nic", "LIC_M", 41.0, "with_references")]
    given += [("sat", "LIC", 5.0, "with_references"), ("nic", "LIC", 4.0, "with_references")]
    more = pd.DataFrame([result(*own, encoder="ngram", condition=condition) for *own, condition in given])
    table = scores_table(more).set_index("captioner")
    assert list(table.index) == ["sat", "nic"], "highest LIC first"
    assert table["LIC (with references)"].tolist() == ["5.0", "4.0"] and table["LIC_M"].tolist() == ["42.0", "40.0"]
    assert table["LIC_M (with references)"].tolist() == ["", "41.0"]
    both = scores_table(pd.concat([FRAME, pd.DataFrame([result("nic", "LIC", 1.0, encoder="lstm_bi")])]))
    pairs = [["sat_1", "ngram"], ["sat_1", ""], ["nic", "ngram"], ["nic", ""], ["nic", "lstm_bi"]]
    assert both[["captioner", "encoder"]].to_numpy().tolist() == pairs


def test_csv_and_json_round_nothing():
    exact = FRAME.assign(value=[1 / 3, 2.0, -1e-17, float("nan")])
    assert pd.read_csv(io.StringIO(to_csv(exact)))["value"].tolist()[:3] == [1 / 3, 2.0, -1e-17]
    records = json.loads(to_json(exact))
    assert [row["value"] for row in records] == [1 / 3, 2.0, -1e-17, None] and list(records[0]) == list(RESULT_COLUMNS)
    rows = pd.read_csv(io.StringIO(to_csv(LETTERED)), keep_default_na=False)
    assert rows["letters"].tolist() == ["ab", "", "a", ""] and rows["name"].tolist()[0] == "LIC (ngram)"


def test_letters_are_of_the_runs_the_metric_and_the_attribute_that_were_compared():
    lic = pd.DataFrame([result(name, "LIC", 5.0, run_id=f"{name} with", encoder="ngram") for name in ("sat", "nic")])
    lic_m = pd.DataFrame(
        [result(name, "LIC_M", 45.0, run_id=f"{name} without", encoder="ngram") for name in ("sat", "nic")]
    )
    with_human = lettered(lic, {"sat": "a", "nic": "a"}, ("sat with", "nic with"), "LIC")
    without = lettered(lic_m, {"sat": "b", "nic": "a"}, ("sat without", "nic without"), "LIC_M")
    assert set(lettered(lic_m, {"sat": "b", "nic": "a"}, ("sat with",), "LIC_M")["letters"]) == {""}
    both = pd.concat([without, with_human])
    assert scores_table(both).set_index("captioner")["letters"].to_dict() == {"sat": "a", "nic": "a"}
    text = to_latex(both)
    assert r"5.0\textsuperscript{a}" in text and r"45.0\textsuperscript" not in text
    other = lettered(FRAME, {"sat_1": "a", "nic": "a"}, ("",), "LIC").assign(attribute="age")
    table = scores_table(pd.concat([LETTERED, other]))
    letters = dict(zip(zip(table["attribute"], table["captioner"], strict=True), table["letters"], strict=True))
    assert letters == {("gender", "sat_1"): "ab", ("gender", "nic"): "a", ("age", "sat_1"): "a", ("age", "nic"): "a"}


def test_latex_escapes_and_explains():
    text = to_latex(LETTERED.replace("sat_1", r"a_b & 5% of $x^2$ {#}~\<"))
    assert r"a\_b \& 5\% of \$x\textasciicircum{}2\$ \{\#\}\textasciitilde{}\textbackslash{}\textless{}" in text
    assert r"$\pm$0.9" in text and text.count("{") == text.count("}")
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert escape_latex("⚠●±−←→↑↓").isascii(), "the signs in tables, which LaTeX lacks"
    assert escape_latex("<gender>") == r"\textless{}gender\textgreater{}"
    assert escape_latex("a\x1b\x00\n\u2028b") == "a    b"
    assert "\n{}[x] & 1 " in to_longtable(pd.DataFrame({"name": ["[x]"], "n": [1]}), "caption")
    sentences.check("latex", text)


@pytest.mark.parametrize("captioners", [1, 10, 24, 25, 60])
def test_a_long_latex_table_is_several_that_fit_on_a_page(captioners):
    """One float of 264 lines ran off its page."""
    frame = pd.concat([FRAME.assign(model=f"captioner {number}") for number in range(captioners)])
    text = to_latex(frame)
    tables = text.split(r"\begin{table}")[1:]
    assert len(tables) == text.count(r"\caption") == len(set(re.findall(r"\\label{(.*)}", text)))
    assert all(table.count("\n") < 64 and r"\toprule" in table and r"\end{table}" in table for table in tables)
    assert all(r"captioner & " in re.split(r"\\toprule\n", table)[1].split("\n")[0] for table in tables)
    assert not any(re.search(r"\\midrule\n\\bottomrule", table) for table in tables)
    assert [text.count(f"captioner {number} &") for number in range(captioners)] == [
        text.count("captioner 0 &")
    ] * captioners


def test_columns_of_text_line_up():
    text = to_text(pd.DataFrame({"word": ["a", "longer"], "count": ["5", "1,000"]}))
    assert text == "word    count\na           5\nlonger  1,000\n"


def test_a_cell_has_one_number_of_seeds():
    """Of a captioner with 10 and with 30 seeds the number stays that most captioners share."""
    seeds = [("a", 30), ("b", 30), ("a", 10), ("c", 10)]
    rows = [Result("gender", model, "LIC", float(number), "ngram", seeds=number).row() for model, number in seeds]
    frame = pd.DataFrame(rows)[::-1].rename(columns={"model": "captioner"}).assign(variant="")
    kept = one_number_a_cell(frame)
    assert dict(zip(kept["captioner"], kept["seeds"], strict=True)) == {"a": 30, "b": 30, "c": 10}
    more = pd.DataFrame([*rows, Result("gender", "d", "LIC", 1.0, "ngram", seeds=10).row()])
    kept = one_number_a_cell(more.rename(columns={"model": "captioner"}).assign(variant=""))
    assert dict(zip(kept["captioner"], kept["seeds"], strict=True)) == {"a": 10, "b": 30, "c": 10, "d": 10}


def test_only_captioners_of_the_best_comparison_have_letters(monkeypatch):
    run = lambda name, model: SimpleNamespace(run_id=name, spec=SimpleNamespace(model=model))  # noqa: E731
    best, other = (
        SimpleNamespace(
            attribute=SimpleNamespace(name="gender"), metric="LIC", attacker="ngram", runs=[run(*own) for own in runs]
        )
        for runs in ([("1", "a"), ("2", "b")], [("3", "a"), ("4", "c")])
    )
    letters = {"1": {"a": "a", "b": "b"}, "3": {"a": "a", "c": "a"}}
    monkeypatch.setattr(results, "ranking", lambda _, runs, metric: SimpleNamespace(letters=letters[runs[0].run_id]))
    rows = pd.DataFrame({"run_id": ["1", "2", "3", "4", "1"], "metric": ["LIC"] * 4 + ["error"]})
    found = results.with_letters(None, rows, [best, other], {"1", "2", "3", "4"})
    assert found["letters"].tolist() == ["a", "b", "", "", ""]
