"""The page Captions: two captions side by side, filters and their order, words, present mode, guesses."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest

from capbias_core.load.published import read_human_scores
from capbias_core.question import Question
from capbias_core.runs.plan import PER_CAPTION, plan
from capbias_core.runs.run import compute
from capbias_core.spreadsheets import csv_text
from capbias_core.types import silent
from capbias_core.views.captions import caption_scores, plan_encoder_view, plan_scores
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.store import Workspace, bytes_frame, frame_bytes
from tests import app
from tests.app import chosen, html
from tests.collections_ import keep
from tests.pages.synthetic import score

pytestmark = pytest.mark.long
IMAGES = 120
CUES, ROOMS = ("umbrella", "skateboard"), ("street", "field", "room")


def captions_of(model: str) -> list[str]:
    """Images are Female and Male in turn. `first` names the cue of the label, `second` the other cue in two of ten
    images. `first` names the wrong person in every tenth image."""
    texts = []
    for image in range(IMAGES):
        label = image % 2
        person = 1 - label if model == "first" and image % 10 == 3 else label
        cue = CUES[1 - label if model == "second" and image % 10 in (2, 3) else label]
        texts.append(f"a {('woman', 'man')[person]} with a {cue} in the {ROOMS[image % 3]}")
    return texts


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """Two captioners and two human captions per image, scored by ngram; `first` also by a network, as it seems."""
    workspace = Workspace(tmp_path_factory.mktemp("captions"))
    ids = [str(image) for image in range(IMAGES)]

    def table(texts: list[str]) -> pd.DataFrame:
        return pd.DataFrame({"image_id": ids, "caption": texts})

    labels = pd.DataFrame(
        {
            "image_id": ids,
            "gender": ["Female", "Male"] * (IMAGES // 2),
            "skin": np.where(np.arange(IMAGES) < 30, "Dark", "Light"),
            "objects": [f"{CUES[image % 2]}|{ROOMS[image % 3]}" for image in range(IMAGES)],
        }
    )
    human = [table([f"outdoors {text}" for text in captions_of("human")]), table(captions_of("human"))]
    sets = {model: table(captions_of(model)) for model in ("first", "second")}
    keep(workspace, labels=labels, attribute="gender", captions=sets, references=pd.concat(human))
    score(workspace, metrics=())
    run = next(run for run in workspace.runs() if (run.spec.model, run.spec.measure) == ("first", PER_CAPTION))
    arrays = {name: workspace.array(run.run_id, name) for name in ("scores", "words", "corpus")}
    arrays["scores"] = frame_bytes(bytes_frame(arrays["scores"]).assign(delta=0.0125))
    by_network = plan_scores(run.spec, "rnn")
    workspace.enqueue(by_network, "c")
    workspace.finish(by_network.run_id, [], arrays, ())
    return workspace


@pytest.fixture
def opened(workspace, monkeypatch):
    monkeypatch.setenv("CAPBIAS_HOME", str(workspace.folder))

    def open_tab(tab: str = "Captions", **query: str):
        return app.opened(tab, **{"collection": "c", "captioner": "first", "measured_with": "ngram", **query})

    return open_tab


def shown_image(page) -> str:
    (heading,) = [heading.value for heading in page.header if heading.value.startswith("Image ")]
    return heading.removeprefix("Image ")


def listed(page) -> pd.DataFrame:
    return next(table.value for table in page.dataframe if "caption" in table.value)


def lines(page) -> dict[str, str]:
    """The first caption of each set, with the words that only it has in capitals."""
    captions = {}
    for name, words in re.findall(r'<div><b>([^<]*)</b>.*?</div><div class="cb-words"[^>]*>(.*?)</div>', html(page)):
        marked = re.findall(r'<span class="([^"]*)"[^>]*>([^<]*)</span>', words)
        captions.setdefault(name, " ".join(word.upper() if "cb-alone" in mark else word for mark, word in marked))
    return captions


def test_two_captions_side_by_side_have_the_numbers_of_their_runs(opened, workspace):
    page = opened(image="3", against="human")
    assert lines(page)["first"] == "a WOMAN with a skateboard in the street"
    assert lines(page)["human"] == "a MAN with a skateboard in the street", "the closest of two"
    page.session_state["more_captions"] = True
    (below,) = [box for box in page.run().expander if box.label == "Other captions of image 3"]
    assert [re.search("<b>([^<]*)</b>", block.proto.body)[1] for block in below.get("html")] == ["human", "second"]
    human = opened(captioner="human", against="first", image="5", caption="1")
    assert lines(human)["human"] == "a man with a skateboard in the room"
    human.selectbox(key="caption").select(0).run()
    assert lines(human)["human"].startswith("OUTDOORS a man")
    page = opened(image="3", against="second")
    assert lines(page)["second"] == "a MAN with a UMBRELLA in the street"
    page.session_state["adds_up"] = True
    charts = [json.loads(chart.proto.spec)["data"][0] for chart in page.run().get("plotly_chart")]
    sums = [numbers(chart["x"])[-1] for chart in charts if chart["type"] == "waterfall"]
    runs = {run.spec.model: run for run in workspace.runs() if run.spec.attacker == "ngram"}
    for name, total in zip(("first", "second"), sums, strict=True):
        row = caption_scores(workspace, runs[name]).table.set_index("image_id").loc["3"]
        assert total == pytest.approx(row["logit0"], abs=1e-6)
        shares = ", ".join(
            f"{value}\N{NO-BREAK SPACE}{row[key]:.0%}" for value, key in (("Female", "p0"), ("Male", "p1"))
        )
        assert f"<b>{name}</b> · {shares}" in html(page)


def numbers(values) -> np.ndarray:
    """A list or, as Plotly writes arrays, bytes."""
    return (
        np.array(values)
        if isinstance(values, list)
        else np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    )


def test_a_slice_is_a_filter_by_rule(opened):
    page = opened(slice="column:skin=Dark", sort="image id")
    assert set(listed(page)["image"]) == {str(image) for image in range(30)}
    both = opened(slice="words:umbrella", column="skin", value="Dark")
    assert set(listed(both)["image"]) == {str(image) for image in range(0, 30, 2)}
    page = opened(slice="object:street")
    assert "40 captions of first." in html(page)
    assert "Nothing to show yet." in html(opened("Where")), "LIC is not measured here"
    unknown = opened(slice="object:cat")
    assert "There is no object" in html(unknown) and "No caption fits these filters." in html(unknown)


def test_next_and_previous_follow_the_filtered_order(opened):
    choices = {"sort": "image id", "group": "Male"}
    page, ids = opened(**choices), sorted(str(image) for image in range(1, IMAGES, 2))
    assert shown_image(page) == ids[0] and page.button(key="step_Left").disabled
    for key, place in (("Right", 1), ("Right", 2), ("Left", 1)):
        page.button(key=f"step_{key}").click().run()
        assert shown_image(page) == ids[place]
    last = opened(**choices, image=ids[49])
    last.button(key="step_Right").click().run()
    assert last.number_input(key="page").value == 2 and listed(last)["image"].iloc[0] == ids[50] == shown_image(last)
    hidden = opened(**choices, image="2")
    assert shown_image(hidden.button(key="step_Right").click().run()) == "1"


def ids(keep_image) -> list[str]:
    return sorted(str(image) for image in range(IMAGES) if keep_image(image))


@pytest.mark.parametrize(
    ("choices", "images", "errors"),
    [
        ({"kind": "wrong", "against": "nobody"}, ids(lambda image: image % 10 == 3), 0),
        ({"kind": "own", "against": "second"}, ids(lambda image: image % 10 in (2, 3)), 0),
        ({"column": "skin", "value": "Dark", "group": "Male"}, ids(lambda image: image < 30 and image % 2), 0),
        ({"column": "objects", "value": "room"}, ids(lambda image: image % 3 == 2), 0),
        ({"q": "^a woman .*skateboard", "pattern": "1"}, ids(lambda image: image % 10 == 3), 0),
        ({"q": "(", "pattern": "1"}, None, 1),
        ({"word": "umbrella"}, ids(lambda image: image % 2 == 0)[:50], 0),
        ({"q": "zzz"}, None, 0),
        ({"image": "nowhere"}, ids(lambda image: True)[:50], 0),
        ({"image": ids(lambda image: True)[60]}, ids(lambda image: True)[50:100], 0),
    ],
)
def test_filters_of_a_link(opened, choices, images, errors):
    page = opened(sort="image id", **choices)
    assert len(app.errors(page)) == errors
    assert (list(listed(page)["image"]) if images else len(page.dataframe)) == (images or 0)


@pytest.mark.parametrize("words_as", ["chart", "table"])
def test_a_word_shows_its_captions(opened, words_as):
    page = opened("Words", listed="umbrella", words_as=words_as)
    of_word = re.findall(r'<div style="[^"]*">(.*?)</div></div>', html(page))
    assert len(of_word) == 8 and all(text.count("cb-w ") == 1 and ">umbrella<" in text for text in of_word)
    if words_as == "table":
        table = next(own.value for own in page.dataframe if "toward" in own.value).set_index("word")
        assert table.at["umbrella", "toward"] == "Female" and table.at["umbrella", "human"] > 0
        assert table.at["umbrella", "interval"].startswith("[0.") and table.at["umbrella", "its interval"] == ""
        page.button(key="list_word").click().run()
        assert not page.exception and chosen(page, "tab") == "Captions" and chosen(page, "word") == "umbrella"
        assert len(listed(page)) == 50 and listed(page)["caption"].str.contains("umbrella").all()


def test_sets_side_by_side(opened):
    """`first` and `second` differ most where `second` names the other cue: images 2, 3, 12, 13, ..."""
    page = opened(mode="Compare")
    (table,) = [own.value for own in page.dataframe]
    assert set(table["image"][:24]) == set(ids(lambda image: image % 10 in (2, 3)))
    assert table["disagreement"].is_monotonic_decreasing and table["disagreement"].iloc[0] > 0.2
    assert page.query_params["compared"] == ["first", "second", "human"]
    sections = html(page).split("<section>")[1:]
    assert [re.search("<b>(.*?)</b>", text).group(1) for text in sections] == ["first", "second", "human"]
    assert "cb-alone" in sections[1] and "First of 2 captions" in sections[2]
    coloured = {
        word
        for colour, word in re.findall(r'<span class="cb-w [^"]*" (style="[^"]*")?[^>]*>(\w+)<', html(page))
        if colour
    }
    assert "umbrella" in coloured and not coloured & {"a", "with", "on"}, "function words have no colour"
    page = opened(mode="Compare", compared=["second", "first"], group="Male", image="3", q="skateboard")
    assert len(html(page).split("<section>")) == 3
    assert set(page.dataframe[0].value["labelled"]) == {"Male"}
    page.button(key="step_Right").click().run()
    assert not page.exception and page.text_input(key="image").value != "3"
    assert "Choose 2 to 6 sets" in html(opened(mode="Compare", compared=["first"]))
    assert "no scored caption of" in html(opened(mode="Compare", image="nowhere"))


def test_an_edit_goes_along_and_a_rewritten_caption_waits_with_its_image(opened):
    page = opened(image="0", edit="umbrella → skateboard | unheard")
    text = html(page)
    assert "umbrella → skateboard in 60 captions of first" in text and text.count("<b>edited</b>") == 2

    def show(image: str) -> None:
        page.text_input(key="image").set_value(image).run()

    show("1")
    assert "does not have the word umbrella" in html(page) and "in 60 captions" in html(page)
    page.text_input(key="edit").set_value("a dog").run()
    assert "against the original" in html(page) and "does not know dog" in html(page)
    show("2")
    assert page.text_input(key="edit").value == captions_of("first")[2]
    show("1")
    assert page.text_input(key="edit").value == "a dog"


def test_an_attacker_can_be_chosen_or_asked_for(opened, workspace):
    page = opened(image="3", measured_with="rnn")
    assert page.selectbox(key="measured_with").options == ["ngram", "rnn"]
    (colours,) = {text.value for text in page.markdown if text.value.startswith("Word colours")}
    assert "0.013" in colours
    assert "score_network" not in {button.key for button in opened(image="3").button}, "one has scored these captions"
    page = opened(captioner="second", against="first")
    assert page.selectbox(key="network").select("rnn").run().button(key="score_network").label == "Score with rnn"
    spec = next(run.spec for run in workspace.runs() if (run.spec.model, run.spec.measure) == ("second", PER_CAPTION))
    request = Question("c", ("second",), "labels", "gender", (), attacker="rnn", words=True)
    assert [plan_scores(spec, "rnn").run_id] == [planned.run_id for planned in plan(workspace, request)]


def test_a_network_trains_before_it_reads_an_edit(opened, workspace):
    page = opened(image="0", measured_with="rnn", edit="umbrella -> skateboard")
    assert page.button(key="what_if").label == "Train and read" and "<b>edited</b>" not in html(page)
    scored = next(run.spec for run in workspace.runs() if (run.spec.model, run.spec.attacker) == ("first", "rnn"))
    edits = [captions_of("first")[0].replace("an umbrella", "a skateboard").replace("umbrella", "skateboard")]
    by_ngram, by_network = (plan_encoder_view(workspace, scored, name, ["0"], {}, edits) for name in ("ngram", "rnn"))
    workspace.enqueue(by_network, "c")
    workspace.finish(by_network.run_id, [], compute(data_of(workspace, by_ngram), by_ngram, silent).arrays, ())
    text = html(opened(image="0", measured_with="rnn", edit="umbrella -> skateboard"))
    assert text.count("<b>edited</b>") == 1 and "against the original" in text


def test_present_mode_goes_through_the_captions_in_order(opened):
    page = opened()
    images = listed(page)["image"].tolist()
    page.button(key="present_button").click().run()
    assert chosen(page, "present") == "1" and not len(page.dataframe) and page.button(key="present_Left").disabled
    for key in ("Right", "Right", "Left"):
        page.button(key=f"present_{key}").click().run()
    assert f"<h1>first, image {images[1]} (2 of " in html(page) and chosen(page, "at") == "2"
    page.button(key="present_leave").click().run()
    assert "present" not in page.query_params and chosen(page, "image") == images[1] and len(page.dataframe)
    assert f"image {images[2]} (3 of " in html(opened(image=images[2], present="1"))
    assert opened(at="99999", present="1").button(key="present_Right").disabled


def test_guesses_are_counted_undone_and_downloaded(opened, workspace, tmp_path, monkeypatch):
    page = opened("Guess yourself")
    files = sorted(path.stat().st_mtime_ns for path in workspace.folder.rglob("*"))
    downloads = []
    monkeypatch.setattr("pages.ui.guess.csv_text", lambda table: downloads.append(csv_text(table)) or downloads[-1])

    def guess(at: int, code: int) -> None:
        page.button(key=f"guess_{at}_{code}").click().run()

    assert "&lt;gender&gt;" in html(page) and not re.search(r"\b(wo)?man\b", html(page))
    guess(0, 0)
    guess(1, 0)
    page.button(key="undo_2").click().run()
    for at in range(1, 20):
        guess(at, 1)
    (table,) = [own.value for own in page.dataframe]
    right = int((table["label"] == table["you"]).sum())
    assert table["you"].tolist() == ["Female"] + ["Male"] * 19 and right in (9, 11)
    assert (table["label"] == table["attacker"]).all(), "the cue tells the label"
    assert f"{5 * right}% [" in html(page) and " 100% [84, 100]." in html(page)
    page.button(key="other_captions").click().run()
    guess(0, 0)
    page.segmented_control(key="tab").select("Captions").run()
    page.segmented_control(key="tab").select("Guess yourself").run()
    assert chosen(page, "draw") == "2", "the draw that was left"
    for at in range(1, 20):
        guess(at, 0)
    path = tmp_path / "human_guesses.csv"
    path.write_text(downloads[-1], encoding="utf-8")
    assert read_human_scores(path).to_dict() == {"first": 100 * (right + 10) / 40}, "both draws together"
    assert sorted(path.stat().st_mtime_ns for path in workspace.folder.rglob("*")) == files, "guesses are not stored"
