"""Labels of controls: Markdown in a name is shown as written, and other names are as they are for screen readers."""

import pytest

from pages.ui.base import plain

MARKED = {
    "*a*": r"\*a\*",
    "_x_": r"\_x\_",
    "1. a": r"1\. a",
    ":red[x]": r"\:red\[x\]",
    "&lt;": r"\&lt;",
    "- a": r"\- a",
}


@pytest.mark.parametrize("name", ["sat_masked_person", "non-binary (1,230 images)", "a.json", "C+ a: b & c", "x > 3"])
def test_a_name_without_marks_stays(name):
    assert plain(name) == name


@pytest.mark.parametrize("name", MARKED)
def test_a_mark_is_escaped(name):
    assert plain(name) == MARKED[name]
