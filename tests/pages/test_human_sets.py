"""Several sets of human captions in one collection: no number of one stands beside another's unsaid."""

from __future__ import annotations

import io
import zipfile

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.analysis.cells import runs_by_value
from capbias_core.analysis.published import measured_rows
from capbias_core.analysis.read import first_request, references_read
from capbias_core.bundle.reproduce import compared
from capbias_core.bundle.write import write_bundle
from capbias_core.present.table import scores_table
from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.labels import suggested_details
from capbias_core.workspace.store import Workspace
from tests.pages.test_label_tables import PAGES, opened, said, went
from tests.pages.test_links import fill

pytest.importorskip("streamlit.testing.v1")
pytestmark = pytest.mark.long


def scored(workspace: Workspace, human: str, captioners: tuple[str, ...] = ("first", "second"), seeds: int = 2) -> None:
    asked = Request("c", captioners, "labels", "gender", ("lic", "ratio", "dbac"), human, seeds=seeds)
    for spec in plan(workspace, asked):
        if workspace.enqueue(spec, "c", "t"):
            execute(str(workspace.folder), spec.run_id, "t")


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    """Both captioners were compared with the only human captions."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    workspace = Workspace(tmp_path)
    fill(workspace, "c")
    scored(workspace, "human")
    return workspace


def fewer(workspace: Workspace) -> None:
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    part = human[human["image_id"].isin(human["image_id"].unique()[:200])].reset_index(drop=True)
    workspace.keep("references", "another", part, "c", "drawn")


def lic(rows: pd.DataFrame) -> dict:
    return rows[rows["metric"] == "LIC"].set_index("model")["value"].to_dict()


def test_results_rest_on_one_set_and_others_are_a_choice(workspace):
    fewer(workspace)
    scored(workspace, "another", ("first",), seeds=3)
    human, another = (workspace.item("references", name, "c") for name in ("human", "another"))
    usual = references_read(workspace, "c")
    assert usual["gender"].hash == human.hash, "the answer of most captioners"
    with_all, with_part = (lic(measured_rows(workspace, "c", None, {"gender": own})) for own in (human, another))
    assert lic(measured_rows(workspace, "c")) == with_all and set(with_all) == {"first", "second"}
    assert set(with_part) == {"first"} and with_part["first"] != with_all["first"]


def test_each_attribute_has_the_set_of_its_own_answer(workspace):
    fewer(workspace)
    table = workspace.frame(workspace.item("attributes", "labels", "c").hash)
    table = table.assign(sky=[("blue", "grey")[place % 2] for place in range(len(table))]).drop(columns="gender")
    workspace.keep("attributes", "sky", table, "c", "drawn", {"attributes": {"sky": suggested_details("sky", table)}})
    for spec in plan(workspace, Request("c", ("first",), "sky", "sky", ("lic",), "another", seeds=2)):
        workspace.enqueue(spec, "c", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    read = {name: item.name for name, item in references_read(workspace, "c").items()}
    assert read == {"gender": "human", "sky": "another"}
    rows = measured_rows(workspace, "c")
    assert set(rows.loc[rows["metric"] == "LIC", "attribute"]) == {"gender", "sky"}
    for name, own in read.items():
        run = runs_by_value(workspace, "c", name, "ngram")["first"]
        assert run.spec.references == workspace.item("references", own, "c").hash


def test_the_fullest_set_is_compared_with_first(workspace):
    fewer(workspace)
    workspace.delete(workspace.item("references", "human", "c"))
    fill(workspace, "c")  # the larger one is the newer
    request = first_request(workspace, "c")
    assert request and request.references == "human"


def test_what_is_missing_is_planned_as_pages_read_it(workspace):
    """A fuller set and another table of labels came after the answer: neither is scored again by itself."""
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    more = pd.concat([human, human.head(1).assign(image_id="elsewhere")], ignore_index=True)
    workspace.keep("references", "fuller", more, "c", "drawn")
    labels = workspace.item("attributes", "labels", "c")
    workspace.keep("attributes", "newer", workspace.frame(labels.hash).head(200), "c", "drawn", labels.details)
    request = first_request(workspace, "c")
    assert request and (request.references, request.table) == ("human", "labels")


def test_a_link_compares_with_the_same_set_whatever_came_since(workspace):
    links = {name: dict(opened(name).query_params) for name in PAGES}
    numbers = {name: said(opened(name, links[name])) for name in PAGES}
    fewer(workspace)
    scored(workspace, "another", seeds=3)
    for name in PAGES:
        assert said(opened(name, links[name])) == numbers[name], name
    html = " ".join(own.proto.body for own in opened("answer", links["answer"]).get("html"))
    assert "Human captions: those of human. Also here, and not read for this answer: another." in html
    page = opened("encoders", {"references": "another"})
    assert page.selectbox(key="references").value == "another" and said(page) != numbers["encoders"]


def test_what_is_taken_away_says_which_set_a_number_compares_with(workspace, capsys):
    fewer(workspace)
    scored(workspace, "another", ("first",), seeds=3)
    place = ["export", "--collection", "c", "--workspace", str(workspace.folder), "--metric", "lic", "ratio"]
    assert cli.main(place) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False)
    assert not rows.duplicated(["model", "metric", "coverage", "references"]).any()
    of = rows[rows["metric"] == "LIC"].set_index(["model", "references"])["value"].astype(float)
    assert set(of.index) == {("first", "human"), ("first", "another"), ("second", "human")}
    assert set(rows.loc[rows["metric"] == "ratio", "references"]) == {""}
    assert cli.main([*place, "--format", "latex"]) == 0
    line, *_ = [own for own in capsys.readouterr().out.splitlines() if own.startswith("first &")]
    assert f"{of['first', 'human']:.1f}" in line.replace("$-$", "-")
    table = scores_table(
        rows.assign(**{name: pd.to_numeric(rows[name]) for name in ("value", "spread", "scale", "ci_low", "ci_high")})
    )
    assert {"LIC (human)", "LIC (another)"} <= {own.replace("with references; ", "") for own in table}


def test_a_bundle_tells_them_apart(workspace):
    fewer(workspace)
    scored(workspace, "another", ("first",), seeds=3)
    runs = [run.run_id for run in workspace.runs()]
    files = zipfile.ZipFile(io.BytesIO(write_bundle(workspace, "c", runs)))
    rows = pd.DataFrame(pd.read_json(io.BytesIO(files.read("rows.json"))))
    assert set(rows["references"]) == {"human", "another", ""}
    report = files.read("report.html").decode()
    assert "LIC (human)" in report and "LIC (another)" in report
    assert compared(rows, rows.sample(frac=1, random_state=1), 0).same == len(rows), "rows find their own counterpart"


def test_comparing_with_nobody_is_kept_beside_pages_that_compare(workspace):
    page = went(opened("scores", {"references": "none"}), "directions")
    assert any("Chosen before: no human captions." in own.proto.body for own in page.get("html"))
    assert page.query_params["references"] in ("human", ["human"])
    page = went(page, "objects")
    assert page.selectbox(key="references").value == "none"
    page = went(page, "scores")
    assert page.selectbox(key="references").value == "none"
    assert not [own for own in page.selectbox if own.key == "alignment"], "nothing is aligned then"
    assert [own for own in opened("scores").selectbox if own.key == "alignment"]
