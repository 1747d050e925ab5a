"""A second table of labels changes no view: every page says in its address whose labels it reads, and reads those."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.analysis.read import caption_runs, first_request, tables_read
from capbias_core.attributes import known_attributes
from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.types import Result
from capbias_core.workspace.derived import derive, keep_derived
from capbias_core.workspace.ingest import File, ingest
from capbias_core.workspace.labels import suggested_details
from capbias_core.workspace.store import Workspace
from tests.browser import ROOT
from tests.pages.test_links import fill

testing = pytest.importorskip("streamlit.testing.v1")
pytestmark = pytest.mark.long

PAGES = {
    "answer": "app.py",
    "scores": "pages/2_Scores.py",
    "captions": "pages/3_Captions.py",
    "objects": "pages/4_Objects.py",
    "directions": "pages/5_Directions.py",
    "encoders": "pages/6_Encoders.py",
    "masking": "pages/7_Masking.py",
    "papers": "pages/9_Paper_comparison.py",
}
METRICS = ("lic", "ratio", "dbac")


def scored(workspace: Workspace, table: str) -> None:
    """Both captioners by these labels."""
    asked = Request("c", ("first", "second"), table, "gender", METRICS, "human", seeds=2, words=True)
    for spec in plan(workspace, asked):
        assert workspace.enqueue(spec, "c", "t")
        execute(str(workspace.folder), spec.run_id, "t")


def opened(name: str, query: dict | None = None):
    page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in (query or {}).items():
        page.query_params[key] = value
    page = page.switch_page(PAGES[name]).run() if name != "answer" else page.run()
    assert not page.exception
    return page


def went(page, name: str):
    """By the sidebar, whose links name the collection alone."""
    page.query_params.clear()
    return page.switch_page(PAGES[name]).run()


def said(page) -> tuple:
    """The answer, and every table."""
    boxes = [own.proto.body for own in page.get("html") if 'class="cb-answer"' in own.proto.body]
    return boxes, [own.value.to_csv() for own in page.dataframe]


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    """A collection that is scored by its only table of labels."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    workspace = Workspace(tmp_path)
    fill(workspace, "c")
    scored(workspace, "labels")
    return workspace


def more_labels(workspace: Workspace) -> tuple[str, str]:
    """Newer than the first: labels from the human captions, and an annotator's of fewer images, who swaps a third."""
    human = workspace.item("references", "human", "c")
    derived = keep_derived(workspace, derive(workspace, human, known_attributes()["gender"]))
    table = workspace.frame(workspace.item("attributes", "labels", "c").hash)
    swapped = np.where(table["gender"] == "Male", "Female", "Male")
    table = table.assign(gender=np.where(np.arange(len(table)) % 3 == 0, swapped, table["gender"])).head(200)
    details = {"attributes": {"gender": suggested_details("gender", table)}}
    return derived.name, workspace.keep("attributes", "other", table, "c", "drawn", details).name


@pytest.mark.parametrize("later", [False, True])
def test_a_link_reads_the_same_labels_whatever_came_since(workspace, later):
    """later: whether captioners were scored by the new labels too."""
    before = {name: opened(name) for name in PAGES}
    links = {name: dict(page.query_params) for name, page in before.items()}
    numbers = {name: said(page) for name, page in before.items()}
    assert all(boxes or tables for boxes, tables in numbers.values())
    for table in more_labels(workspace):
        if later:
            scored(workspace, table)
    for name in PAGES:
        again = opened(name, links[name])
        assert dict(again.query_params) == links[name], name
        assert said(again) == numbers[name], name
        if not later:
            assert said(opened(name)) == numbers[name], f"{name}: what nothing was scored by changes no default"


def test_other_labels_are_a_choice_that_goes_from_page_to_page(workspace):
    _, other = more_labels(workspace)
    scored(workspace, other)
    first, chosen = (opened("objects", {"table": own}) for own in ("labels", other))
    assert chosen.selectbox(key="table").value == other and said(chosen) != said(first)
    page = went(chosen, "scores")
    assert page.selectbox(key="table").value == other and len(page.dataframe)
    page = went(page, "captions")
    assert page.query_params["by"] in (f"gender, ngram, {other}", [f"gender, ngram, {other}"])


def test_labels_by_which_nothing_is_scored_stay_for_the_next_page(workspace):
    """Captions and the front page have nothing by them: they say so, show what there is, and pass them on."""
    _, other = more_labels(workspace)
    page = opened("objects", {"table": other})
    for name in ("captions", "answer"):
        page = went(page, name)
        assert any(f"Chosen before: gender, {other}." in own.proto.body for own in page.get("html")), name
    assert went(page, "objects").selectbox(key="table").value == other


def test_labels_that_people_gave_answer_first_and_words_are_of_the_same_labels(workspace):
    derived, other = more_labels(workspace)
    workspace.delete(workspace.item("attributes", other, "c"))
    scored(workspace, derived)  # newer
    assert tables_read(workspace, "c")["gender"].name == "labels"
    for name in ("labels", derived):
        table = workspace.item("attributes", name, "c")
        runs = caption_runs(workspace, "c", "gender", "ngram", table)
        assert {run.spec.labels["table"] for run in runs.values()} == {table.hash} and {"first", "second"} <= set(runs)


def test_an_attribute_without_words_is_said_on_objects_and_kept_for_the_next_page(workspace):
    table = workspace.frame(workspace.item("attributes", "labels", "c").hash)
    table = table.assign(race=np.where(np.arange(len(table)) % 2, "Light", "Dark")).drop(columns="gender")
    details = {"attributes": {"race": suggested_details("race", table)}}
    workspace.keep("attributes", "race", table, "c", "drawn", details)
    page = went(opened("scores", {"attribute": "race"}), "objects")
    assert page.selectbox(key="attribute").value == "gender"
    assert any("no words for race" in own.proto.body for own in page.get("html"))
    page = went(page, "scores")
    assert page.selectbox(key="attribute").value == "race"
    assert went(page, "masking").multiselect(key="attributes").value == ["race"]


def test_attributes_that_are_not_measured_are_a_button_on_the_answer(workspace):
    assert not [own for own in opened("answer").button if own.key == "score_other"]
    table = workspace.frame(workspace.item("attributes", "labels", "c").hash)
    halves = np.arange(len(table)) % 2
    table = table.assign(race=np.where(halves, "Light", "Dark"), sky=np.where(halves, "blue", "grey"))
    details = {name: suggested_details(name, table) for name in ("race", "sky")}
    workspace.keep("attributes", "more", table.drop(columns="gender"), "c", "drawn", {"attributes": details})
    page = opened("answer")
    assert page.selectbox(key="unmeasured").options == ["race", "sky"]
    page = page.selectbox(key="unmeasured").select("sky").run()
    assert page.button(key="score_other").label == "Score sky"
    asked = first_request(workspace, "c", "sky")
    assert asked and (asked.attribute, asked.table) == ("sky", "more")
    usual = first_request(workspace, "c")
    assert usual and usual.attribute == "gender", "captions have words for it"


def test_words_of_an_attacker_at_chance_are_not_said_to_reveal_anything(workspace):
    """Labels that were drawn by lot."""
    table = workspace.frame(workspace.item("attributes", "labels", "c").hash)
    table = table.assign(sky=np.random.default_rng(3).choice(["blue", "grey"], len(table)))
    details = {"attributes": {"sky": suggested_details("sky", table)}}
    workspace.keep("attributes", "drawn", table.drop(columns="gender"), "c", "drawn", details)
    for spec in plan(workspace, Request("c", ("first",), "drawn", "sky", ("lic",), "human", seeds=3, words=True)):
        workspace.enqueue(spec, "c", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    ways = opened("answer").selectbox(key="measured_with").options
    page = opened("answer", {"measured_with": next(own for own in ways if own.startswith("sky"))})
    html = " ".join(own.proto.body for own in page.get("html"))
    assert "so no word is shown to reveal the sky" in html
    assert "Which words weigh most for the sky" in [own.value for own in page.header]


def test_a_captioner_that_came_later_is_what_is_missing_of_a_scored_collection(workspace):
    captions = workspace.frame(workspace.item("captions", "second", "c").hash)
    labels = workspace.item("attributes", "labels", "c")
    workspace.keep("attributes", "labels", workspace.frame(labels.hash), "new", "drawn", labels.details)
    for collection, found in (("c", "is scored in part: what is missing"), ("new", "a first answer")):
        workspace.keep("captions", "third", captions, collection, "drawn")
        page = opened("answer", {"into": collection}).switch_page("pages/1_Data.py").run()
        assert any(f"“{collection}”" in own.proto.body and found in own.proto.body for own in page.get("html"))


def test_refusals_are_said_beside_the_answer(workspace):
    """A third of a captioner's captions are one text; beside another's answer that is said with its name."""
    item = workspace.item("captions", "second", "c")
    own = workspace.frame(item.hash)
    refused = own.assign(caption=own["caption"].where(own.index % 3 > 0, "I cannot describe this"))
    ingest(workspace, "c", [File(refused, "captions", "third")])
    for spec in plan(workspace, Request("c", ("third",), "labels", "gender", ("lic",), "human", seeds=2)):
        workspace.enqueue(spec, "c", "t")
        execute(str(workspace.folder), spec.run_id, "t")
    for name in ("first", "third"):
        page = opened("answer", {"captioner": name})
        notes = [own.proto.body for own in page.get("html") if "I cannot describe this" in own.proto.body]
        assert any("100 of 300" in text and ("third" in text or name == "third") for text in notes), name


def test_an_export_says_whose_labels_and_a_table_for_a_paper_has_one(workspace, capsys):
    _, other = more_labels(workspace)
    scored(workspace, other)
    place = ["export", "--collection", "c", "--workspace", str(workspace.folder), "--metric", "error"]
    assert cli.main(place) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert rows.groupby("labels")["value"].nunique().to_dict().keys() == {"labels", other}
    assert cli.main([*place, "--format", "latex"]) == 0
    read = tables_read(workspace, "c")["gender"].name
    shown = rows.set_index(["labels", "model"])["value"].round(1)
    (line,) = [own for own in capsys.readouterr().out.splitlines() if own.startswith("first &")]
    assert f"{shown[read, 'first']:.1f}" in line


def test_a_link_to_an_image_opens_on_the_page_of_the_table_that_has_it(workspace):
    first = opened("captions")
    last = first.dataframe[0].value["image"].iloc[-1]
    later = opened("captions", {"page": "2"}).dataframe[0].value["image"].iloc[0]
    for image, page in ((last, 1), (later, 2)):
        found = opened("captions", {"image": image})
        assert found.number_input(key="page").value == page
        assert image in set(found.dataframe[0].value["image"])
    assert opened("captions", {"image": later, "page": "1"}).number_input(key="page").value == 1, "as the link says"


def test_results_of_a_metric_that_was_taken_out_again_are_not_in_the_way(workspace):
    before = {name: said(opened(name)) for name in PAGES}
    (run,) = [run for run in workspace.runs() if run.spec.measure == "ratio_error" and run.spec.model == "first"]
    row = workspace.results([run.run_id]).to_dict("records")[0]
    workspace.add_results(run.run_id, [replace(Result(**row), metric="named")], ["named"])
    assert "named" in set(workspace.results([run.run_id])["metric"])
    assert {name: said(opened(name)) for name in PAGES} == before
