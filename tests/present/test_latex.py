"""LaTeX: a table that fits one column of a paper, with what its cells are in a note."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from capbias_core.present.latex import to_latex
from capbias_core.present.table import lettered
from capbias_core.types import Result

METRICS = ("LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "leakage", "SC", "SC_D", "ratio", "error")
MODELS = ("nic", "transformer", "a_long_name_of_model_100%")


def rows(metrics=METRICS, coverage: str = "", models=MODELS) -> pd.DataFrame:
    def row(model: str, metric: str, place: int) -> dict:
        more = {"spread": 1.26, "spread_kind": "seeds", "seeds": 10, "encoder": "ngram", "scale": 100.0}
        if metric in ("ratio", "error"):
            more = {"scale": 1.0}
        verdict = "amplifies" if metric == "LIC" else ""
        low, high = -12.34 - place, 20.26
        return Result(
            "gender", model, metric, -1.25 + place, ci_low=low, ci_high=high, n=520, interval="refits",
            coverage=coverage, verdict=verdict, **more,
        ).row()  # fmt: skip

    return pd.DataFrame([row(model, metric, place) for place, model in enumerate(models) for metric in metrics])


def tabular(text: str) -> list[list[str]]:
    """The cells of every row, as they are written."""
    body = re.search(r"\\begin\{tabular\}\{@\{\}(l+)@\{\}\}(.*?)\\end\{tabular\}", text, re.S)
    assert body
    lines = [line for line in body[2].strip().splitlines() if not line.startswith(("\\toprule", "\\mid", "\\bottom"))]
    assert all(line.endswith(r" \\") for line in lines)
    cells = [re.split(r" ?(?<!\\)& ?", line.removesuffix(r" \\")) for line in lines]
    assert {len(row) for row in cells} == {len(body[1])}, "as many cells in each row as there are columns"
    return cells


# Widths of Computer Modern Roman at 10 pt, in em, from its font metrics; 8 pt is 1.06 and 7 pt 1.14 times as wide.
EM = dict.fromkeys("0123456789agoq", 0.5) | dict.fromkeys(".,[]il:", 0.278) | dict.fromkeys("bdhknpuvxy_", 0.556)
EM |= {" ": 0.333, "m": 0.833, "w": 0.722, "t": 0.389, "r": 0.392, "s": 0.394, "f": 0.306, "c": 0.444, "e": 0.444}
EM |= {
    "L": 0.625,
    "I": 0.361,
    "C": 0.722,
    "M": 0.917,
    "S": 0.556,
    "D": 0.764,
    "H": 0.75,
    "%": 0.833,
    "+": 0.778,
    "j": 0.306,
}


def points(cell: str) -> float:
    """How wide a cell is set, letter by letter: 8 pt, small text 7 pt."""
    size = 7 * 1.14 if "\\scriptsize" in cell else 8 * 1.06
    plain = re.sub(r"\$(\\pm|-|\\dagger)\$", "+", cell)
    return size * sum(EM[letter] for letter in re.sub(r"\\scriptsize |\\textsuperscript|[\\{}]", "", plain))


@pytest.mark.parametrize("metrics", [METRICS, METRICS[:1], ("LIC", "ratio")])
@pytest.mark.parametrize("coverage", ["", "with_references"])
def test_the_table_fits_a_column_of_a_paper(metrics, coverage):
    frame = rows(metrics, coverage)
    if coverage:
        frame = pd.concat([frame, rows(("LIC_M",))])
    text = to_latex(lettered(frame, {"nic": "a", "transformer": "b", MODELS[2]: "ab"}, set(frame["run_id"]), "LIC"))
    cells = tabular(text)
    columns = list(zip(*cells, strict=True))
    width = sum(max(map(points, column)) for column in columns) + 6.0 * (len(columns) - 1)
    assert width <= 219, "points of a column of ACL's style; IEEE has 252, ACM 241"
    assert "table*" not in text and text.count("{") == text.count("}")
    named = {own for own in METRICS if any(cell.replace("\\", "").startswith(own) for row in cells for cell in row)}
    assert named >= set(metrics)


def test_letters_and_intervals_are_explained_under_the_table():
    frame = rows(models=("nic", "b_100%"))
    own = lettered(frame, {"nic": "a", "b_100%": "ab"}, set(frame["run_id"]), "LIC")
    text = to_latex(own, ["LIC", "LIC_M"])
    cells = tabular(text)
    nic = next(place for place, row in enumerate(cells) if row[0] == "nic")
    assert cells[nic][1:3] == ["amplifies", r"$-$1.2 $\pm$1.3\textsuperscript{a}"]
    assert cells[nic + 1][:3] == ["", "", r"{\scriptsize [$-$12.3, 20.3]}"]
    assert any(row[0] == r"b\_100\%" for row in cells)
    note = re.search(r"\\parbox\{\\columnwidth\}\{(.*)\}\n", text)
    assert note and text.index("end{tabular}") < note.start()
    assert r"Value $\pm$ standard deviation over 10 attacker seeds." in note[1]
    assert r"In brackets the interval (95\% with refits)." in note[1]
    assert "Captioners that share a letter are not told apart by LIC." in note[1]
    assert "leakage" not in text and "ratio" not in text


def test_a_table_without_letters_or_intervals_explains_none():
    frame = rows(("ratio",)).assign(ci_low=float("nan"), ci_high=float("nan"))
    text = to_latex(frame)
    assert "letter" not in text and "brackets" not in text and "scriptsize [" not in text


def test_what_a_column_is_on_stands_in_the_note():
    text = to_latex(pd.concat([rows(("LIC_M",), "with_references"), rows(("LIC_M",))]))
    assert r"LIC\_M\textsuperscript{$\dagger$}" in text and r"$\dagger$ with references." in text
