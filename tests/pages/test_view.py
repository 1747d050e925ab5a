"""What a control starts at: the address, what was chosen on another page, the default; what the address then holds."""

from __future__ import annotations

import pytest

from tests.app import AppTest


def one_of_each() -> None:
    """A page with a control of each kind."""
    import streamlit as st

    from pages.ui import view

    session = st.session_state
    with view.written_at_once():
        view.enter(session.get("title", "One"))
        options = sorted("abc", key=lambda option: option != session.get("first", "a"))
        for key in ("captioner", "way"):
            view.selectbox(st, key, options, key=key, missing="the option" if key == "captioner" else "")
        view.multiselect(
            st, "sets", session.get("sets_here", ["a", "b"]), default=["a"], key="sets", missing="the part"
        )
        view.multiselect(
            st, "metrics", ["lic", "sc"], default=["lic"], key="metrics", missing="the metric", any_case=True
        )
        view.selectbox(st, "measure", ["DBAC", "DPA"], key="measure", missing="the metric", any_case=True)
        view.number(st, "number", 1, 50, 10, key="number")
        view.text(st, "word", key="word")
        view.checkbox(st, "yes", default=True, key="yes")
        view.state("step", 1)
        if text := view.pop_message("message"):
            st.success(text)
        if session.pop("cut_short", False):
            st.rerun()


def opened(**query):
    page = AppTest.from_function(one_of_each)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def address(page) -> dict[str, str | list[str]]:
    values = {key: page.query_params[key] for key in page.query_params}
    return {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in values.items()}


def to_another_page(page):
    page.session_state["title"] = f"after {page.session_state['view'].page}"
    page.query_params.clear()
    return page.run()


def warnings(page) -> str:
    return " ".join(element.value for element in page.html)


# Of controls whose default data decide; the others' are not in the address.
DEFAULTS = {"captioner": "a", "measure": "DBAC"}


# What a link names, what the address then holds besides the defaults, what is shown, and what is said to be missing.
@pytest.mark.parametrize(
    ("query", "held", "missing"),
    [
        ({}, {}, []),
        (dict.fromkeys(["captioner", "way"], "c") | {"word": "dog", "yes": "0", "step": "4", "number": "20"}, ..., []),
        ({"way": "a", "word": "", "yes": "1", "step": "1", "number": "10", "sets": "a"}, {}, []),
        ({"sets": ["b", "zebra"], "number": "99"}, ..., ["the part", "zebra", "a whole number from 1 to 50"]),
        ({"metrics": ["LIC", "Sc"], "measure": "dpa"}, {"metrics": ["lic", "sc"], "measure": "DPA"}, []),
        ({"captioner": "C"}, ..., ["the option"]),  # captioners may differ in case alone
        ({"captioner": ["b", "zebra"]}, ..., ["zebra"]),  # the last of several counts
        ({"captioner": "y" * 5_001, "sets": ["a" * 5_001], "word": "x" * 5_001}, ..., ["a long text"]),
        ({"word": "x" * 5_000, "step": "7" * 400}, ..., []),
        ({"number": "9" * 400, "step": "four"}, {"number": "9" * 400}, ["a whole number"]),
    ],
)
def test_the_address_names_what_differs_and_what_data_decide(query, held, missing):
    page = opened(**query)
    held = DEFAULTS | (query if held is ... else held)
    held = {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in held.items()}
    for _ in range(2):  # a value that only the session holds is lost if a run ends before the browser has it
        assert not page.exception and address(page) == held
        assert all(name in warnings(page) for name in missing) and bool(warnings(page)) == bool(missing)
        shown = {key: value for key, value in held.items() if isinstance(value, str) and not missing}
        assert page.selectbox(key="captioner").proto.default == "abc".index(shown.get("captioner", "a"))
        assert page.text_input(key="word").proto.default == shown.get("word", "")
        assert page.number_input(key="number").proto.default == int(shown.get("number", 10))
        assert page.checkbox(key="yes").proto.default is (shown.get("yes", "1") == "1")
        page.run()


def test_a_choice_takes_the_place_of_what_is_missing():
    page = opened(sets=["b", "zebra"], captioner="zebra")
    assert page.multiselect(key="sets").value == ["b"]
    page.multiselect(key="sets").set_value(["a", "b"])
    page.selectbox(key="captioner").set_value("c").run()
    assert "zebra" not in warnings(page)
    assert address(page) == DEFAULTS | {"sets": ["a", "b"], "captioner": "c"}


def test_a_text_that_a_browser_sends_is_short():
    page = opened()
    page.text_input(key="word").set_value("x" * 5_001).run()
    assert not page.exception and page.text_input(key="word").value == ""


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
    assert page.selectbox(key="captioner").value == query.get("captioner", "b")


def while_results_arrive() -> None:
    import streamlit as st

    from pages.ui import view

    with view.written_at_once():
        view.enter("One")
        view.results_arrive(st.session_state.get("arriving", True))
        view.selectbox(st, "captioner", st.session_state.get("options", "bc"), key="captioner")
        if st.session_state.pop("cut_short", False):
            st.stop()


def test_a_reload_while_results_arrive_keeps_what_was_chosen_and_no_default():
    for chosen, way, cut_short in (("", "a", False), ("c", "c", False), ("c", "c", True)):
        page = AppTest.from_function(while_results_arrive)
        page.session_state["cut_short"] = cut_short
        page.run()
        if chosen:
            page.selectbox(key="captioner").set_value(chosen).run()
        reloaded = AppTest.from_function(while_results_arrive)
        for key, value in address(page).items():
            reloaded.query_params[key] = value
        reloaded.run()
        reloaded.session_state["options"], reloaded.session_state["arriving"] = "abc", False
        assert reloaded.run().selectbox(key="captioner").value == way
        assert address(reloaded) == {"captioner": way}


def test_what_is_shared_goes_along_and_the_rest_does_not():
    page = opened()
    for key in ("captioner", "way"):
        page.selectbox(key=key).set_value("c")
    page.multiselect(key="sets").set_value(["a", "b"])
    page = to_another_page(page.run())
    assert page.selectbox(key="captioner").value == "c" and page.selectbox(key="way").value == "a"
    assert page.multiselect(key="sets").value == ["a", "b"]
    page.session_state["sets_here"] = ["a"]  # b was deleted meanwhile
    page = to_another_page(page)
    assert not page.exception and page.multiselect(key="sets").value == ["a"]


def test_what_is_said_once_is_said_again_where_the_page_was_cut_short():
    page = opened()
    page.session_state["message"], page.session_state["cut_short"] = "Saved.", True
    assert [element.value for element in page.run().success] == ["Saved."]
    assert not page.run().success


def two_tabs() -> None:
    import streamlit as st

    from pages.ui import view

    with view.written_at_once():
        view.enter("Tabs")
        collection = view.selectbox(st, "Collection", ["one", "two"], key="collection", on_change=view.leave)
        view.selectbox(st, "Captioner", "abc" if collection == "one" else "xyz", key="captioner")
        view.number(st, "Delta", 0.0, 2.0, 0.5, key="delta")
        tab = view.tabs(["Table", "Words"])
        if tab == "Table":
            view.text(st, "Word", key="word")
        view.selectbox(st, "Measured with", [f"{tab} 1", f"{tab} 2"], key="measured_with")
        view.text(st, "Search", key="q")


def test_a_choice_ends_with_its_tab_or_its_collection():
    page = AppTest.from_function(two_tabs)
    for key, value in {"captioner": "b", "delta": "0.7", "word": "dog", "q": "cat"}.items():
        page.query_params[key] = value
    page.run()
    of_page = {"collection": "one", "captioner": "b", "delta": "0.7"}
    assert address(page) == of_page | {"tab": "Table", "word": "dog", "measured_with": "Table 1", "q": "cat"}
    page.segmented_control(key="tab").set_value("Words").run()
    assert address(page) == of_page | {"tab": "Words", "measured_with": "Words 1"}
    assert page.text_input(key="q").value == ""
    page.text_input(key="q").set_value("hat").run()
    page.selectbox(key="collection").set_value("two").run()
    assert address(page) == of_page | {
        **{"collection": "two", "captioner": "x", "tab": "Words", "measured_with": "Words 1"}
    }
    assert not warnings(page), "nothing is missing: another tab or collection was chosen"
    page.query_params["collection"] = "one"  # the back button, to where nothing was typed
    page.query_params["captioner"] = "c"
    page.run()
    assert page.selectbox(key="collection").value == "one" and page.selectbox(key="captioner").value == "c"
