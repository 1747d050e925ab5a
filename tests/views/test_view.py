"""Every view of the demo in every format, and one answer for page, terminal, files and report."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.views.answer import answer, cross, error_card, lic_card
from capbias_core.views.choose import choose, measured_rows
from capbias_core.views.draw import drawable, forest_html
from capbias_core.views.files import content, printed
from capbias_core.views.registry import VIEWS
from capbias_core.views.report import report_html
from capbias_core.views.table import TABLE
from capbias_core.views.view import Forest
from capbias_core.workspace.ingest import DEMO

pytestmark = pytest.mark.long  # all of the demo is scored first


@pytest.fixture(scope="module")
def choice(scored_demo):
    return choose(scored_demo, measured_rows(scored_demo, DEMO), {"collection": DEMO})


@pytest.mark.parametrize("name", VIEWS)
def test_views_in_every_format(choice, name):
    view = VIEWS[name]
    if name == "change":
        choice = choice.of_captioners("faithful", "amplifier")
    rows = view.rows(choice)
    assert len(rows) and view.sentence(choice, rows)
    table = view.table(rows)
    assert [*table.numbers] == [*table.texts] == [*table.fields]
    for heading, column in table.fields.items():
        if column.digits is not None:
            assert pd.api.types.is_numeric_dtype(table.numbers[heading]), "a click on the heading sorts numbers"
    written = pd.read_csv(io.BytesIO(content(view, choice, rows, "csv")), keep_default_na=False, na_values=[""])
    assert len(written) == len(rows) == len(json.loads(content(view, choice, rows, "json")))
    if "value" in rows:
        values = pd.to_numeric(written["value"]).to_numpy()
        assert values == pytest.approx(rows["value"].astype(float).to_numpy(), rel=1e-12, nan_ok=True)
    latex = content(view, choice, rows, "tex").decode()
    assert latex.count(r" \\") >= len(table.texts) + 1 and r"\begin{" in latex
    text = printed(view, choice, rows)
    for cells in table.texts.itertuples(index=False):
        assert all(re.sub(r"\s+", " ", cell) in re.sub(r"\s+", " ", text) for cell in cells[:1])
    if view.chart and drawable(view, rows) and isinstance(view.chart, Forest) and not view.chart.panel:
        assert forest_html(view, rows, choice.captioner, clickable=True).count("<button") > 0


def test_one_quantity_has_one_value_everywhere(choice):
    rows = TABLE.rows(choice)
    table = TABLE.table(rows)
    line = table.texts["captioner"].tolist().index(choice.captioner)
    lic = table.texts["LIC"].iloc[line]
    assert lic in printed(TABLE, choice, rows)
    value, interval = lic.split(" ", 1)
    card = unescape(re.sub("<[^>]+>", " ", lic_card(choice, answer(choice))))
    assert value in card and interval in card
    report = unescape(report_html([choice], {}, pd.DataFrame(), ""))
    assert lic in report and choice.setting_name in report
    assert value in content(TABLE, choice, rows, "tex").decode().replace("$-$", "−")
    assert lic in unescape(forest_html(TABLE, rows))


def test_without_the_usual_metrics_the_table_has_what_was_measured(choice):
    for metrics in (["SC"], []):
        rows = TABLE.rows(replace(choice, rows=choice.rows[choice.rows["metric"].isin(metrics)]))
        assert set(rows["metric"]) == set(metrics) and TABLE.notes(choice, rows)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "change"])
def test_without_any_value_nothing_breaks(choice, name):
    rows = choice.of_all.assign(value=float("nan"), low=float("nan"), high=float("nan"))
    rows.attrs = choice.of_all.attrs
    empty = choose(choice.workspace, rows, {"collection": DEMO})
    found = VIEWS[name].rows(empty)
    assert VIEWS[name].sentence(empty, found) and content(VIEWS[name], empty, found, "csv")


def test_the_report_has_no_script_and_escapes_texts(choice):
    bad = "<script>alert(1)</script>"
    html = report_html([choice], {bad: bad}, pd.DataFrame({bad: [bad]}), bad, methods=[bad], note=bad)
    assert "<script" not in html and html.count("&lt;script&gt;") >= 6
    assert "default-src 'none'" in html and answer(choice).sentence in unescape(html)


def test_the_answer_of_the_amplifier(choice):
    said = answer(choice, "amplifier")
    assert said.verdict == "amplifies" and said.captioner == "amplifier"
    assert said.sentence == "amplifier amplifies gender bias (preview)."
    assert answer(choice, "faithful").verdict == "inconclusive"
    html = cross(said)
    numbers = [said.rows[name]["value"] for name in ("LIC_D", "LIC_HM", "LIC_MH", "LIC_M")]
    cells = [float(text.replace("−", "-")) for text in re.findall(r'<td class="box[^"]*">([^<]+)', html)]
    assert cells == pytest.approx(numbers, abs=0.051)
    assert "Female" in error_card(choice, said) and "Male" in error_card(choice, said)


def test_names_that_are_not_there_are_refused_in_commands_only(choice):
    rows, given = choice.of_all, {"collection": DEMO, "captioner": "nobody"}
    assert choose(choice.workspace, rows, given).captioner == choice.captioner
    with pytest.raises(CapbiasError, match="nobody"):
        choose(choice.workspace, rows, given, strict=True)


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_a_chart_is_a_picture(choice):
    rows = TABLE.rows(choice)
    assert b"<svg" in content(TABLE, choice, rows, "svg")
