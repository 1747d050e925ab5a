"""The Captions page: two captions side by side, the filtered order, and what a link says of it."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest

from capbias_core.analysis.encoder_view import plan_scores
from capbias_core.analysis.read import caption_scores
from capbias_core.load.published import read_human_scores
from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.spreadsheets import csv_text
from capbias_core.workspace.store import Workspace, bytes_frame, frame_bytes
from tests.browser import ROOT
from tests.collections_ import keep

IMAGES = 120
CUES = ("umbrella", "skateboard")
PLACES = ("street", "field", "room")


def written(model: str) -> list[str]:
    """A caption for each image: Female and Male in turn. `first` names the cue of the label, `second` that of the
    other value in two of ten, and of every tenth image `first` names the wrong value."""
    found = []
    for image in range(IMAGES):
        label = image % 2
        named = 1 - label if model == "first" and image % 10 == 3 else label
        cue = CUES[1 - label if model == "second" and image % 10 in (2, 3) else label]
        found.append(f"a {('woman', 'man')[named]} with a {cue} in the {PLACES[image % 3]}")
    return found


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """Two captioners, two human captions per image, labels with a column besides; scored by ngram."""
    found = Workspace(tmp_path_factory.mktemp("captions"))
    ids = [str(image) for image in range(IMAGES)]

    def captions(texts: list[str]) -> pd.DataFrame:
        return pd.DataFrame({"image_id": ids, "caption": texts})

    human = pd.concat([captions([f"outdoors {text}" for text in written("human")]), captions(written("human"))])
    labels = pd.DataFrame(
        {
            "image_id": ids,
            "gender": ["Female", "Male"] * (IMAGES // 2),
            "skin": np.where(np.arange(IMAGES) < 30, "Dark", "Light"),
            "objects": [f"{CUES[image % 2]}|{PLACES[image % 3]}" for image in range(IMAGES)],
        }
    )
    sets = {model: captions(written(model)) for model in ("first", "second")}
    keep(found, labels=labels, attribute="gender", captions=sets, references=human)
    for spec in plan(found, Request("c", ("first", "second"), "labels", "gender", ("ratio",), "human", words=True)):
        if spec.measure == "caption_scores":
            found.enqueue(spec, "c", "t")
            execute(str(found.folder), spec.run_id, "t")
    _scored_by_a_network(found)
    return found


def _scored_by_a_network(workspace: Workspace) -> None:
    """The captions of `first` as a network would leave them: the values of ngram, and a gap of 0.0125."""
    run = next(run for run in workspace.runs() if run.spec.model == "first")
    arrays = {name: workspace.array(run.run_id, name) for name in ("scores", "words", "corpus")}
    arrays["scores"] = frame_bytes(bytes_frame(arrays["scores"]).assign(delta=0.0125))
    workspace.add_finished(plan_scores(run.spec, "rnn"), "c", arrays, ())


@pytest.fixture
def page(workspace, monkeypatch):
    """The page, drawn with these choices in its address."""
    testing = pytest.importorskip("streamlit.testing.v1")
    monkeypatch.setenv("CAPBIAS_HOME", str(workspace.folder))

    def drawn(**choices: str):
        found = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for key, value in {"collection": "c", **choices}.items():
            found.query_params[key] = value
        found = found.switch_page("pages/3_Captions.py").run()
        assert not found.exception
        return found

    return drawn


def texts(page) -> str:
    return "\n".join(element.body for element in page.get("html"))


def shown_image(page) -> str:
    return next(own.value for own in page.header if own.value.startswith("Image ")).removeprefix("Image ")


def lines(page) -> dict[str, str]:
    """Who -> the words of the caption, those that only it has in capitals; the first caption of each."""
    found = {}
    for name, words in re.findall(r'<div><b>([^<]*)</b>.*?</div><div class="cb-words"[^>]*>(.*?)</div>', texts(page)):
        marked = re.findall(r'<span class="([^"]*)"[^>]*>([^<]*)</span>', words)
        found.setdefault(name, " ".join(word.upper() if "cb-alone" in mark else word for mark, word in marked))
    return found


def test_the_closest_human_caption_stands_beside_and_the_others_below(page):
    drawn = page(image="3", captioner="first", against="human")
    assert lines(drawn)["first"] == "a WOMAN with a skateboard in the street"
    assert lines(drawn)["human (human)"] == "a MAN with a skateboard in the street"
    assert "the closest of 2" in texts(drawn)
    drawn.session_state["more_captions"] = True
    drawn.run()
    (below,) = [own for own in drawn.expander if own.label == "Other captions of image 3"]
    who = [re.search("<b>([^<]*)</b>", own.proto.body).group(1) for own in below.get("html")]
    assert who == ["human (human)", "second"], "the other human one, and that of the second captioner"


def test_two_captioners_stand_side_by_side(page):
    drawn = page(image="3", captioner="first", against="second")
    assert lines(drawn)["second"] == "a MAN with a UMBRELLA in the street"
    alone = page(image="3", captioner="first", against="nobody")
    assert lines(alone)["first"] == "a woman with a skateboard in the street" and "only in this" not in texts(alone)


def test_next_and_previous_follow_the_filtered_order_from_page_to_page(page):
    drawn = page(sort="image id", group="Male", captioner="first")
    ids = sorted(str(image) for image in range(1, IMAGES, 2))
    assert shown_image(drawn) == ids[0] and drawn.button(key="step_Left").disabled
    for place in (1, 2):
        drawn.button(key="step_Right").click().run()
        assert shown_image(drawn) == ids[place] and f"{place + 1} of 60" in texts(drawn)
    drawn.button(key="step_Left").click().run()
    assert shown_image(drawn) == ids[1]
    last = page(sort="image id", group="Male", captioner="first", image=ids[49])
    last.button(key="step_Right").click().run()
    assert shown_image(last) == ids[50] and last.number_input(key="page").value == 2
    table = next(own.value for own in last.dataframe if "caption" in own.value)
    assert table["image"].iloc[0] == ids[50]


def test_an_image_that_the_filters_leave_out_says_so_and_leads_back(page):
    drawn = page(sort="image id", group="Male", captioner="first", image="2")
    assert "The filters leave this caption out." in texts(drawn)
    drawn.button(key="step_Right").click().run()
    assert shown_image(drawn) == "1"


def test_each_caption_of_an_image_can_be_shown(page):
    drawn = page(captioner="human", against="first", image="5", caption="1")
    assert lines(drawn)["human (human)"] == "a man with a skateboard in the room"
    drawn.selectbox(key="caption").select(0).run()
    assert lines(drawn)["human (human)"].startswith("OUTDOORS a man")


def test_a_word_shows_its_captions_beside_it_and_leads_to_all_of_them(page):
    drawn = page(captioner="first", against="human", listed="umbrella")
    assert "In human captions too" in texts(drawn)
    of_word = re.findall(r'<div style="[^"]*">(.*?)</div></div>', texts(drawn))
    assert len(of_word) == 8 and all(own.count("cb-w ") == 1 and ">umbrella<" in own for own in of_word)
    drawn.button(key="list_word").click().run()
    assert drawn.text_input(key="word").value == "umbrella"
    table = next(own.value for own in drawn.dataframe if "caption" in own.value)
    assert (
        len(table) == 50 and table["caption"].str.contains("umbrella").all() and "60 captions of first" in texts(drawn)
    )


def test_the_words_as_a_table_stand_beside_their_captions_too(page):
    drawn = page(captioner="first", against="human", listed="umbrella", words_as="table")
    table = next(own.value for own in drawn.dataframe if "pushes toward" in own.value).set_index("word")
    assert table.at["umbrella", "pushes toward"] == "Female" and table.at["umbrella", "human mean"] > 0
    assert table.at["with", "kind"] == "function" and table.at["umbrella", "kind"] == ""


def shown_images(page) -> list[str]:
    return list(next(own.value for own in page.dataframe if "caption" in own.value)["image"])


def test_the_filters_of_a_link(page):
    """By hand: every tenth image from 3 is wrong; `second` names the cue of the other value in images 2 and 3 of 10."""
    wrong = page(captioner="first", sort="image id", kind="wrong")
    assert shown_images(wrong) == sorted(str(image) for image in range(3, IMAGES, 10))
    away = page(captioner="first", against="second", sort="image id", kind="own")
    assert shown_images(away) == sorted(str(image) for image in range(IMAGES) if image % 10 in (2, 3))
    assert "first gives it away, second does not" in away.selectbox(key="kind").options
    dark = page(captioner="first", sort="image id", column="skin", value="Dark", group="Male")
    assert shown_images(dark) == sorted(str(image) for image in range(1, 30, 2))
    rooms = page(captioner="first", sort="image id", column="objects", value="room")
    assert shown_images(rooms) == sorted(str(image) for image in range(2, IMAGES, 3))
    found = page(captioner="first", sort="image id", q="^a woman .*(room|field)$", pattern="1")
    assert shown_images(found) and all(int(image) % 3 for image in shown_images(found))
    assert "is not a regular expression" in texts(page(q="(", pattern="1"))


def test_attackers_are_chosen_on_the_page_and_say_how_they_attribute(page, workspace):
    linear = page(captioner="first", against="human", image="3")
    assert [own.label for own in linear.get("button_group")][:1] == ["Attacker"]
    assert linear.button_group(key="by").options == ["ngram", "rnn"]
    assert {own.value for own in linear.markdown if own.value.startswith("Colours")} == {"Colours: exact word sums"}
    network = page(captioner="first", by="gender, rnn, labels", image="3")
    (shown,) = [own for own in network.markdown if own.value.startswith("Colours")]
    assert shown.value == "Colours: integrated gradients (Captum), convergence delta 0.013" and shown.help


def test_a_network_is_offered_where_none_has_scored_the_captions(page, workspace):
    assert not [own for own in page(captioner="first").button if own.key == "score_network"]
    drawn = page(captioner="second", against="first")
    assert drawn.button(key="score_network").label == "Score with lstm_bi"
    assert drawn.selectbox(key="network").select("rnn").run().button(key="score_network").label == "Score with rnn"
    assert "2 runs: 1 done, 1 to do" in texts(drawn)
    network = page(captioner="first", by="gender, rnn, labels")
    assert network.selectbox(key="network").label == "Score the human captions too"
    assert network.button(key="score_network").label == "Score with rnn" and "1 run: 0 done, 1 to do" in texts(network)
    spec = next(run.spec for run in workspace.runs() if run.spec.model == "second")
    asked = Request("c", ("second",), "labels", "gender", (), attacker="rnn", words=True)
    assert [plan_scores(spec, "rnn").run_id] == [own.run_id for own in plan(workspace, asked)]


def test_a_caption_has_the_probability_of_each_value(page, workspace):
    drawn = page(captioner="first", against="human", image="3")
    runs = {run.spec.model: run for run in workspace.runs() if run.spec.attacker == "ngram"}
    for name, shown in (("first", "first"), ("human", "human (human)")):
        table = caption_scores(workspace, runs[name]).table
        given = table.loc[table["image_id"] == "3", ["p0", "p1"]].to_numpy()
        expected = {
            f"<b>{shown}</b> · Female\N{NO-BREAK SPACE}{first:.0%}, Male\N{NO-BREAK SPACE}{second:.0%}"
            for first, second in given
        }
        assert any(line in texts(drawn) for line in expected), expected


def test_what_needs_another_set_is_not_offered_without_one(page):
    assert page(captioner="first", against="nobody").selectbox(key="kind").options == ["all", "wrong value named"]


def test_the_score_adds_up_once_somebody_asks(page, workspace):
    """The last bar is the logit that the run kept."""
    drawn = page(image="3", captioner="first", against="second")
    assert not waterfalls(drawn)
    drawn.session_state["adds_up"] = True
    charts = waterfalls(drawn.run())
    runs = {run.spec.model: run for run in workspace.runs()}
    tables = [caption_scores(workspace, runs[name]).table.set_index("image_id") for name in ("first", "second")]
    sums = [numbers(chart["data"][0]["x"])[-1] for chart in charts]
    assert sums == pytest.approx([table.at["3", "logit0"] for table in tables], abs=1e-6)
    assert "woman (masked)" in charts[0]["layout"]["yaxis"]["ticktext"]


def waterfalls(page) -> list[dict]:
    found = [json.loads(own.proto.spec) for own in page.get("plotly_chart")]
    return [chart for chart in found if chart["data"][0]["type"] == "waterfall"]


def numbers(given) -> np.ndarray:
    """What Plotly writes as a list or as the bytes of an array."""
    if isinstance(given, list):
        return np.array(given)
    return np.frombuffer(base64.b64decode(given["bdata"]), dtype=given["dtype"])


def test_guesses_are_counted_undone_and_written_for_anonymous_bench(page, workspace, tmp_path, monkeypatch):
    drawn = page(captioner="first", tab="Guess yourself")
    files = sorted(path.stat().st_mtime_ns for path in workspace.folder.rglob("*"))
    written = []
    monkeypatch.setattr("pages.ui.guess.csv_text", lambda table: written.append(csv_text(table)) or written[-1])

    def guess(at: int, place: int) -> None:
        drawn.button(key=f"guess_{at}_{place}").click().run()

    assert "Caption 1 of 20" in texts(drawn) and "chance is 50%" in texts(drawn)
    assert "&lt;gender&gt;" in texts(drawn) and "<gender>" not in texts(drawn)
    assert not re.search(r"\b(wo)?man\b", texts(drawn))
    assert [own.label for own in drawn.button if own.key.startswith("guess_")] == ["Female", "Male"]
    guess(0, 0)
    guess(1, 0)
    drawn.button(key="undo_2").click().run()
    assert "Caption 2 of 20" in texts(drawn)
    for at in range(1, 20):
        guess(at, 1)
    (table,) = [own.value for own in drawn.dataframe]
    right = int((table["label"] == table["you"]).sum())
    assert table["you"].tolist() == ["Female"] + ["Male"] * 19
    assert table["label"].value_counts().to_dict() == {"Female": 10, "Male": 10} and right in (9, 11)
    attacker = int((table["label"] == table["attacker"]).sum())
    assert attacker == 20, "the cue gives the label away"
    assert f"Your accuracy is {5 * right}% [" in texts(drawn) and " 100% [84, 100]." in texts(drawn)
    drawn.button(key="other_captions").click().run()
    assert "Caption 1 of 20" in texts(drawn) and drawn.query_params["draw"] == "2"
    drawn.segmented_control(key="tab").select("Read").run()
    drawn.segmented_control(key="tab").select("Guess yourself").run()
    for at in range(20):
        guess(at, 0)
    path = tmp_path / "human_guesses.csv"
    path.write_text(written[-1], encoding="utf-8")
    assert read_human_scores(path).to_dict() == {"first": 100 * (right + 10) / 40}, "both draws together"
    assert sorted(path.stat().st_mtime_ns for path in workspace.folder.rglob("*")) == files
