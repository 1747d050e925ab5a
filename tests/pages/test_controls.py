"""Choices are in the address: links, other pages, tabs, and options that are not there."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st

    from pages.ui import controls

    controls.enter(st.session_state.get("which", "one"))
    with controls.written_at_end():
        collection = controls.selectbox(st, "Collection", ["a", "b"], key="collection")
        controls.carry(collection=collection)
        tab = controls.tabs(["First", "Second"])
        controls.multiselect(st, "Metrics", ["LIC", "error"], key="metrics", default=["LIC"])
        controls.number(st, "Seeds", 1, 50, 10, key="seeds")
        controls.text(st, "Search", key="search")
        controls.checkbox(st, "All", key="all")
        st.text(f"{collection} {tab}")


def opened(**address: str) -> AppTest:
    page = AppTest.from_function(script)
    page.query_params.update(address)
    return page.run()


def address(page: AppTest) -> dict:
    return {key: [value] if isinstance(value, str) else value for key, value in page.query_params.items()}


def test_the_address_has_the_bar_and_what_was_chosen():
    page = opened()
    assert not page.exception
    assert address(page) == {"collection": ["a"]}, "what nobody chose is not in it"
    page.number_input[0].set_value(3).run()
    page.text_input[0].set_value("a dog").run()
    page.checkbox[0].check().run()
    page.multiselect[0].set_value(["error"]).run()
    chosen = {"collection": ["a"], "seeds": ["3"], "search": ["a dog"], "all": ["1"], "metrics": ["error"]}
    assert address(page) == chosen
    again = opened(**{name: texts[0] for name, texts in chosen.items()})
    assert again.number_input[0].value == 3 and again.text_input[0].value == "a dog"
    assert again.checkbox[0].value and again.multiselect[0].value == ["error"]
    assert address(again) == chosen


def test_nothing_chosen_of_several_is_a_choice():
    page = opened()
    page.multiselect[0].set_value([]).run()
    assert page.multiselect[0].value == [] and page.run().multiselect[0].value == []


def test_an_option_that_is_not_here_is_named_and_another_is_shown():
    page = opened(collection="c", seeds="900", metrics="nothing")
    assert not page.exception
    assert page.selectbox[0].value == "a" and page.number_input[0].value == 10
    assert [element.proto.body for element in page.get("html") if "There is no" in element.proto.body]


def test_a_choice_of_the_bar_holds_on_other_pages_and_others_end():
    page = opened(collection="b", search="x")
    page.session_state["which"] = "two"
    page.query_params.clear()
    page.run()
    assert page.selectbox[0].value == "b" and page.text_input[0].value == ""


def test_choices_end_with_their_tab():
    page = opened(search="x", seeds="3")
    page.get("button_group")[0].set_value("Second").run()
    assert page.text[0].value == "a Second" and page.text_input[0].value == ""
    assert address(page) == {"collection": ["a"], "tab": ["Second"]}
