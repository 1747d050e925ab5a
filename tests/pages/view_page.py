"""A page of test_view.py: one control of each kind."""

from __future__ import annotations

import streamlit as st

from pages.ui import view


def main() -> None:
    for key, value in st.session_state.get("choose_next", {}).items():
        view.choose_next(key, value)
    view.enter(st.session_state.get("title", "One"))
    first = st.session_state.get("first", "a")
    options = [first, *(own for own in "abc" if own != first)]
    for key, follows, missing in (("captioner", False, "the option"), ("way", True, "")):
        view.selectbox(st, key, options, key=key, missing=missing, follows=follows)
    view.multiselect(st, "some", ["a", "b"], default=["a"], key="some", missing="the part")
    view.multiselect(st, "metrics", ["lic", "sc"], default=["lic"], key="metrics", missing="the metric", any_case=True)
    view.selectbox(st, "measure", ["DBAC", "DPA"], key="measure", missing="the metric", any_case=True)
    view.number(st, "number", 1, 50, 10, key="number")
    view.text(st, "word", key="word")
    view.checkbox(st, "yes", default=True, key="yes")
    view.state("step", 1)
    with view.written_at_once():
        if said := view.pop_message("said"):
            st.success(said)
        if st.session_state.pop("cut_short", False):
            st.rerun()


if __name__ == "__main__":  # processes that start import the page, and must not draw it
    main()
