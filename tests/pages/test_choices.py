"""Several tables of labels, sets of human captions and attributes: which one a page reads, and what a link means."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import known_attributes
from capbias_core.measures.registry import MEASURES
from capbias_core.types import Result
from capbias_core.views.captions import caption_runs
from capbias_core.views.published import measured_rows
from capbias_core.views.results import first_request, references_read, tables_read
from capbias_core.views.tables import scores_table
from capbias_core.workspace.derived import derive, keep_derived
from capbias_core.workspace.store import Workspace
from pages.ui.page import UNSAVED
from tests.app import TABS, VIEWS, chosen, errors, html, opened, shown, went, without_failure
from tests.collections_ import keep
from tests.pages.synthetic import IMAGES, fill, more_labels, score

pytestmark = pytest.mark.long
# Views whose numbers depend on what is measured or read.
# The leaderboard has no comparison in its link: it shows the best one of each attribute, whatever was added.
RESULTS = [view for view in VIEWS if view not in (*TABS["Data"], "Guess yourself", "Prepare", "Leaderboard")]
HALVES = np.where(np.arange(IMAGES) % 2, "Light", "Dark")


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    workspace = Workspace(tmp_path_factory.mktemp("template"))
    fill(workspace)
    score(workspace)
    return Path(workspace.folder)


@pytest.fixture
def scored(template, workspace) -> Workspace:
    """Scored by its only table of labels, compared with its only human captions."""
    shutil.copytree(template, workspace.folder, dirs_exist_ok=True)
    return workspace


def other_annotator(workspace: Workspace) -> str:
    """Newer labels of fewer images, by somebody who swaps a third."""
    table = workspace.frame(workspace.item("labels", "labels", "c").hash)
    swapped = np.where(table["gender"] == "Male", "Female", "Male")
    table = table.assign(gender=np.where(np.arange(IMAGES) % 3 == 0, swapped, table["gender"])).head(200)
    keep(workspace, labels={"other": table}, attribute="gender")
    return "other"


def derived_labels(workspace: Workspace) -> str:
    human = workspace.item("references", "human", "c")
    return keep_derived(workspace, derive(workspace, human, known_attributes()["gender"])).name


def fewer_human_captions(workspace: Workspace) -> str:
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    keep(workspace, references={"another": human[human["image_id"].isin(human["image_id"].unique()[:200])]})
    return "another"


def test_a_link_shows_the_same_numbers_when_data_and_results_were_added(scored):
    before = {view: opened(view) for view in RESULTS}
    links = {view: dict(page.query_params) for view, page in before.items()}
    numbers = {view: shown(page) for view, page in before.items()}
    ids = {run.run_id for run in scored.runs() if run.spec.model == "first"}
    derived, other, another = derived_labels(scored), other_annotator(scored), fewer_human_captions(scored)
    for view in ("Answer", "Table"):
        assert shown(opened(view)) == numbers[view], f"{view}: data without scores change no default"
    for table in (derived, other):
        score(scored, table=table, metrics=("lic", "ratio"))
    score(scored, captioners=("first",), human=another, seeds=3, metrics=("lic",))
    (run,) = [run for run in scored.runs() if run.run_id in ids and run.spec.measure == "ratio_error"]
    row = scored.results([run.run_id]).to_dict("records")[0]
    scored.add_results(run.run_id, [replace(Result(**row), metric="named")], ["named"])  # a metric that was removed
    for view in RESULTS:
        again = opened(view, **links[view])
        assert shown(again) == numbers[view], view
        assert {key: again.query_params[key] for key in links[view]} == links[view], view
    for view, key, value in (("Table", "table", other), ("Table", "references", another), ("Objects", "table", other)):
        page = opened(view, **{key: value})
        assert page.selectbox(key=key).value == value and shown(page) != numbers[view]


def test_choices_go_from_page_to_page_also_where_nothing_is_measured_by_them(scored):
    other = other_annotator(scored)
    more_labels(scored, "race", HALVES)
    page = opened("Objects", table=other)
    for view in ("Captions", "Answer"):  # nothing is scored by them
        page = went(page, view)
    page = went(page, "Objects")
    assert page.selectbox(key="table").value == other
    score(scored, table=other, metrics=("lic", "ratio"))
    page = went(page, "Table")
    assert page.selectbox(key="table").value == other and len(page.dataframe)
    assert chosen(went(page, "Captions"), "table") == other
    page = went(opened("Table", references="none"), "Directions")
    assert chosen(page, "references") == "human"
    page = went(page, "Table")
    assert page.selectbox(key="references").value == "none"
    assert not [control for control in page.selectbox if control.key == "alignment"], "nothing is aligned then"
    page = went(opened("Table", attribute="race"), "Objects")  # a page that cannot read it
    assert page.selectbox(key="attribute").value == "gender" and "no words for race" in html(page)
    assert went(page, "Directions").selectbox(key="attribute").value == "race"


def test_scores_open_on_what_is_measured_and_show_other_settings_on_demand(scored):
    page = opened("Table")
    assert (page.selectbox(key="attacker").value, page.number_input(key="seeds").value) == ("ngram", 2)
    assert "run_words" not in {button.key for button in page.button}
    page.selectbox(key="attacker").select("rnn").run()
    assert page.number_input(key="seeds").value == 10, "those of the attacker"
    assert "2 captioners used other settings: ngram, 2 seeds (first, second)" in html(page)
    assert page.button(key="run_words").label == "Score every caption", "of networks it is asked, with its cost"
    page.button(key="show_others").click().run()
    assert (page.selectbox(key="attacker").value, page.number_input(key="seeds").value) == ("ngram", 2)
    assert "used other settings" not in html(page) and "LIC" in page.dataframe[0].value
    page.selectbox(key="attacker").select("rnn").run()
    page = went(went(page, "Objects"), "Table")
    assert page.selectbox(key="attacker").value == "ngram"
    linked = opened("Table", attacker="rnn", seeds="3")
    assert (linked.selectbox(key="attacker").value, linked.number_input(key="seeds").value) == ("rnn", 3)


def test_a_collection_that_was_typed_stays_chosen_on_other_pages(scored):
    assert opened("Files", collection="fresh one").session_state[UNSAVED] == "fresh one"
    page = opened("Table")
    page.session_state[UNSAVED] = page.query_params["collection"] = "fresh one"
    page = without_failure(page.run())
    assert "Add captions of a model to “fresh one”" in html(page) and "is not here" not in html(page)
    assert "is not here" in html(opened("Table", collection="fresh one")), "nobody typed it in this session"


def test_a_network_that_scores_were_measured_with_is_offered_first_for_captions(scored):
    before = opened("Captions").selectbox(key="network")
    assert before.value == before.options[0] == "lstm_bi"
    score(scored, metrics=("lic",), attacker="rnn", seeds=1, words=False)
    assert opened("Captions").selectbox(key="network").value == "rnn"


def test_of_several_files_of_objects_one_is_chosen(scored):
    frame = pd.DataFrame({"image_id": np.arange(IMAGES).astype(str), "objects": ["dog", "cat|dog", "cat"] * 100})
    keep(scored, objects={"fewer": frame.head(200)})
    views = {"Table": "metrics=dba", "Directions": "", "Objects": "objects=image"}
    asked = {view: dict([text.split("=")]) if text else {} for view, text in views.items()}
    for view, choices in asked.items():
        page = opened(view, **choices)
        assert not [box for box in page.selectbox if box.key == "objects_of"], view
    keep(scored, objects={"instances": frame})
    for view, choices in asked.items():
        page = opened(view, **choices)
        assert page.selectbox(key="objects_of").value == "instances" and not errors(page), view
        page.selectbox(key="objects_of").select("fewer").run()
        assert not errors(page) and chosen(page, "objects_of") == "fewer", view


def test_attributes_without_an_answer_have_a_button_on_the_answer(scored):
    more_labels(scored, "race", HALVES)
    name = more_labels(scored, "sky", np.random.default_rng(3).choice(["blue", "grey"], IMAGES))
    page = opened("Answer")
    assert page.selectbox(key="unmeasured").options == ["race", "sky"]
    assert page.selectbox(key="unmeasured").select("sky").run().button(key="score_other").label == "Score sky"
    for attribute, table in (("sky", name), ("", "labels")):
        request = first_request(scored, "c", attribute)
        assert request and (request.attribute, request.labels) == (attribute or "gender", table)
    score(scored, captioners=("first",), table=name, attribute="sky", metrics=("lic",), seeds=3)
    page = opened("Answer", attribute="gender")
    links = [link.proto.query_string for link in page.get("page_link")]
    assert [link for link in links if "attribute=sky" in link], "its answer is a click away"
    assert "Words that weigh most for sky" in {heading.value for heading in opened("Answer", attribute="sky").header}


def test_a_captioner_that_is_not_scored_can_be_scored_from_data(scored):
    frame = scored.frame(scored.item("captions", "second", "c").hash)
    refused = frame.assign(caption=frame["caption"].where(frame.index % 3 > 0, "I cannot describe this"))
    keep(scored, captions={"third": refused})
    assert opened("Files", collection="c").button(key="score_now").label == "Score now"
    score(scored, captioners=("third",), metrics=("lic",))
    for name in ("first", "third"):
        text = html(opened("Answer", captioner=name))
        assert "I cannot describe this" in text and "100 of 300" in text, "refusals are named with each answer"


def test_the_answer_stays_on_one_comparison_until_the_next_one_is_whole(scored):
    """A better attacker that has finished one of two captioners does not take the page over."""
    before = {run.spec.model: run for run in scored.runs() if run.spec.measure == "lic" and run.spec.references}
    slow = {
        name: replace(
            run.spec, options={**run.spec.options, "attacker": "rnn"}, version=MEASURES["lic"].version_with("rnn")
        )
        for name, run in before.items()
    }
    for spec in slow.values():
        scored.enqueue(spec, "c")

    def finish(name: str) -> None:
        run_id = before[name].run_id
        rows = scored.results([run_id]).assign(encoder="rnn").to_dict("records")
        arrays = {
            array: scored.array(run_id, array) for array in scored.arrays(run_id) if not array.startswith("asked")
        }
        scored.finish(slow[name].run_id, [Result(**row) for row in rows], arrays, (), before[name].metrics)

    finish("first")
    page = opened("Answer")
    usual = str(page.selectbox(key="measured_with").value)
    assert "ngram" in usual and "Preview</abbr> (ngram)" in html(page)
    page = opened("Answer", measured_with=usual.replace("ngram", "rnn"))
    assert "second: still being measured" in html(page) and "Preview</abbr>" not in html(page)
    finish("second")
    assert "rnn" in str(opened("Answer").selectbox(key="measured_with").value)


def test_a_collection_is_renamed_with_its_runs_and_deleted_whole(scored):
    runs, rows = {run.run_id for run in scored.runs("c")}, len(scored.results())
    page = opened("Files", collection="c")
    page.text_input(key="new_name").set_value("renamed")
    page = page.button(key="rename").click().run()
    assert not page.exception and scored.collections() == ["renamed"]
    assert {run.run_id for run in scored.runs("renamed")} == runs and len(scored.results()) == rows
    assert "amplif" in html(opened("Answer")) or "inconclusive" in html(opened("Answer"))
    keep(scored, "other", captions={"first": scored.frame(scored.item("captions", "first", "renamed").hash)})
    page = opened("Files", collection="renamed")
    page.text_input(key="new_name").set_value("other")
    page = page.button(key="rename").click().run()
    assert scored.collections() == ["other", "renamed"], "a name that is taken"
    opened("Files", collection="renamed").button(key="delete_collection").click().run()
    assert scored.collections() == ["other"] and len(scored.results()) < rows
    assert [item.name for item in scored.items()] == ["first"], "the other collection keeps what both have"


@pytest.mark.parametrize("view", ["Answer", "Table", "Captions", "Files"])
@pytest.mark.parametrize("linked", [True, False])
def test_a_collection_that_goes_while_it_is_shown_gives_way_to_no_other(scored, view, linked):
    """Deleted in one tab, say: a click in another one must not show, or run, or delete what another collection has."""
    fill(scored, "zebra")
    page = opened(view, **{"collection": "c"} if linked else {})
    assert page.selectbox(key="collection").value == "c"
    scored.delete_collection("c")
    for click in (page.run, page.run, lambda: went(page, "Leaderboard")):
        after = without_failure(click())
        assert after.selectbox(key="collection").value == "c" and not after.dataframe
    assert "Add captions of a model to “c”" in html(page)
    page = page.selectbox(key="collection").select("zebra").run()
    assert page.selectbox(key="collection").value == "zebra" and not errors(page)


def test_a_link_carries_no_caption_that_nobody_typed(scored):
    page = opened("Answer")
    surest = page.text_input(key="try").value
    assert surest and "try" not in page.query_params
    page = page.text_input(key="try").set_value("a dog with a hat").run()
    assert chosen(page, "try") == "a dog with a hat" and page.text_input(key="try").value == "a dog with a hat"
    page = page.text_input(key="try").set_value(surest).run()
    assert "try" not in page.query_params


# What is read where nobody chose, and what is exported


def lic(rows: pd.DataFrame) -> dict[str, float]:
    return rows[rows["metric"] == "LIC"].set_index("model")["value"].to_dict()


def test_defaults_are_what_most_captioners_were_measured_with(scored):
    fewer_human_captions(scored)
    score(scored, captioners=("first",), human="another", seeds=3, metrics=("lic",))
    human, another = (scored.item("references", name, "c") for name in ("human", "another"))
    assert references_read(scored, "c")["gender"].hash == human.hash
    of_human, of_another = (lic(measured_rows(scored, "c", None, {"gender": item})) for item in (human, another))
    assert lic(measured_rows(scored, "c")) == of_human and set(of_human) == {"first", "second"}
    assert set(of_another) == {"first"} and of_another["first"] != of_human["first"]
    derived = derived_labels(scored)
    score(scored, table=derived, metrics=("lic",))  # newer
    assert tables_read(scored, "c")["gender"].name == "labels", "labels by people answer first"
    for name in ("labels", derived):
        table = scored.item("labels", name, "c")
        runs = caption_runs(scored, "c", "gender", "ngram", table)
        assert {run.spec.labels["table"] for run in runs.values()} == {table.hash} and {"first", "second"} <= set(runs)
    sky = more_labels(scored, "sky", HALVES)
    score(scored, captioners=("first",), table=sky, attribute="sky", metrics=("lic",), human="another")
    names = {attribute: item.name for attribute, item in references_read(scored, "c").items()}
    assert names == {"gender": "human", "sky": "another"}


def test_a_first_answer_reads_the_fullest_human_captions_and_what_was_measured(scored, tmp_path):
    human = scored.frame(scored.item("references", "human", "c").hash)
    keep(scored, references={"fuller": pd.concat([human, human.head(1).assign(image_id="elsewhere")])})
    other_annotator(scored)
    request = first_request(scored, "c")
    assert request and (request.references, request.labels) == ("human", "labels"), "nothing is scored again by itself"
    fresh = Workspace(tmp_path / "fresh")
    fill(fresh)
    fewer_human_captions(fresh)
    request = first_request(fresh, "c")
    assert request and request.references == "human"


def test_exports_name_labels_and_human_captions(scored, capsys):
    other, another = other_annotator(scored), fewer_human_captions(scored)
    score(scored, table=other, metrics=("lic", "ratio"), words=False)
    score(scored, captioners=("first",), human=another, seeds=3, metrics=("lic",), words=False)
    command = ["export", "--collection", "c", "--workspace", str(scored.folder), "--metric"]
    assert cli.main([*command, "lic", "ratio", "error"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False)
    assert not rows.duplicated(["model", "metric", "coverage", "references", "labels"]).any()
    assert set(rows.loc[rows["metric"] == "LIC", "references"]) == {"human", "another"}
    assert set(rows.loc[rows["metric"] == "ratio", "references"]) == {""}
    assert set(rows.loc[rows["metric"] == "error", "labels"]) == {"labels", other}
    assert cli.main([*command, "lic", "--format", "latex"]) == 0
    line, *_ = [text for text in capsys.readouterr().out.splitlines() if text.startswith("first &")]
    by_labels = rows[(rows["model"] == "first") & (rows["labels"] == tables_read(scored, "c")["gender"].name)]
    value = by_labels.set_index(["metric", "references"])["value"]["LIC", "human"]
    assert f"{float(value):.1f}" in line.replace("$-$", "-")
    numbers = {name: pd.to_numeric(rows[name]) for name in ("value", "spread", "scale", "ci_low", "ci_high")}
    table = scores_table(rows.assign(**numbers)[rows["labels"] == "labels"])
    columns = {name.replace("with references; ", "") for name in table}
    assert {"LIC (human)", "LIC (another)"} <= columns
