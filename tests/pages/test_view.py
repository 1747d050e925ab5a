"""What a control starts at: the address, what was chosen on another page, the default; what the address then holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app import AppTest

PAGE = Path(__file__).with_name("view_page.py")


def opened(**query):
    page = AppTest.from_file(str(PAGE))
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def shown(page) -> dict[str, list[str]]:
    return {key: list(value) if isinstance(value, list) else [value] for key, value in page.query_params.items()}


def test_defaults_stand_in_the_address():
    page = opened()
    assert not page.exception
    assert {key: value[-1] for key, value in shown(page).items()} == {
        "captioner": "a",
        "way": "a",
        "some": "a",
        "metrics": "lic",
        "measure": "DBAC",
        "number": "10",
        "word": "",
        "yes": "1",
        "step": "1",
    }


def test_the_address_wins_and_what_is_wrong_in_it_falls_back():
    page = opened(captioner="c", some=["b", "zebra"], number="99", word="dog", yes="0")
    assert page.selectbox(key="captioner").value == "c" and page.text_input(key="word").value == "dog"
    assert page.multiselect(key="some").value == ["b"] and page.number_input(key="number").value == 10
    assert page.checkbox(key="yes").value is False
    assert any("the part" in own.value and "zebra" in own.value for own in page.html)
    assert any("which is not a whole number from 1 to 50" in own.value for own in page.html)
    page.multiselect(key="some").set_value(["a"]).run()
    assert not any("zebra" in own.value for own in page.html), "another was chosen since"


def test_a_link_names_a_metric_in_any_case():
    page = opened(metrics=["LIC", "Sc", "zebra"], measure="dpa")
    assert page.multiselect(key="metrics").value == ["lic", "sc"] and page.selectbox(key="measure").value == "DPA"
    assert shown(page)["metrics"] == ["lic", "sc"] and any("zebra" in own.value for own in page.html)
    assert opened(captioner="C").selectbox(key="captioner").value == "a", "captioners may differ in case alone"


def test_a_long_text_and_a_number_that_no_browser_has_fall_back():
    page = opened(
        word="x" * 5_001, some=["a" * 5_001], captioner="y" * 5_001, number="9" * 400, any="9" * 30, step="7" * 400
    )
    assert not page.exception
    assert page.text_input(key="word").value == "" and page.selectbox(key="captioner").value == "a"
    assert sum("a long text" in own.value for own in page.html) == 3
    assert opened(word="x" * 5_000).text_input(key="word").value == "x" * 5_000
    page = opened()
    page.text_input(key="word").set_value("x" * 5_001).run()
    assert not page.exception and page.text_input(key="word").value == ""


def test_a_control_is_set_when_the_page_is_drawn_the_next_time():
    page = opened(captioner="c")
    page.session_state["choose_next"] = {"captioner": "b"}
    page.run()
    assert page.selectbox(key="captioner").value == "b" and shown(page)["captioner"] == ["b"]


def test_what_has_no_control_is_read_from_the_address_too():
    page = opened(step="4")
    assert page.session_state["step"] == 4 and shown(page)["step"] == ["4"]
    assert shown(opened(step="four"))["step"] == ["1"]


@pytest.mark.parametrize(
    ("query", "chosen", "way"),
    [({}, "", "b"), ({"way": "a"}, "", "a"), ({}, "c", "c"), ({"captioner": "a"}, "", "b")],
    ids=["nobody chose", "a link names it", "the user chose", "a link to another"],
)
def test_a_default_that_moves_is_followed_only_where_nobody_chose(query, chosen, way):
    page = opened(**query)
    if chosen:
        page.selectbox(key="way").set_value(chosen).run()
    page.session_state["first"] = "b"
    page.run()
    assert page.selectbox(key="way").value == way
    assert page.selectbox(key="captioner").value == "a", "this one does not follow"


def test_an_address_that_lags_behind_the_defaults_is_no_choice():
    """While results arrive, a browser can send the address of the default before the last one (seen with 14 sets)."""
    page = opened()
    for first in "bc":
        page.session_state["first"] = first
        page.run()
    page.query_params["way"], page.query_params["captioner"] = "b", "b"
    page.run()
    assert page.selectbox(key="way").value == "c" and shown(page)["way"] == ["c"]
    assert page.selectbox(key="captioner").value == "b", "this one does not follow"
    page.session_state["first"] = "a"
    page.run()
    assert page.selectbox(key="way").value == "a", "still nobody chose"


def test_what_is_shared_goes_along_and_the_rest_does_not():
    page = opened()
    for key in ("captioner", "way"):
        page.selectbox(key=key).set_value("c")
    page.run()
    page.session_state["title"] = "Two"
    for key in list(page.query_params):
        del page.query_params[key]
    page.run()
    assert page.selectbox(key="captioner").value == "c" and page.selectbox(key="way").value == "a"


def test_a_control_is_drawn_with_its_value_as_its_default():
    """A value that only the session holds is lost where a run ends before the browser has it (seen in CI)."""
    page = opened(captioner="c", some=["b"], number="20", word="dog", yes="0")
    for _ in range(2):  # drawn anew, nothing is sent to be set
        assert page.selectbox(key="captioner").proto.default == 2
        assert list(page.multiselect(key="some").proto.default) == [1]
        assert page.number_input(key="number").proto.default == 20
        assert page.text_input(key="word").proto.default == "dog"
        assert page.checkbox(key="yes").proto.default is False
        page.run()


def test_what_is_said_once_is_said_again_where_the_page_was_cut_short():
    page = opened()
    page.session_state["said"], page.session_state["cut_short"] = "Kept it.", True
    assert [own.value for own in page.run().success] == ["Kept it."]
    assert not page.run().success
