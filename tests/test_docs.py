"""The generated page of metrics is the one in the repository, and the examples of docstrings run."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from scripts.make_docs import FILE, metrics_page

ROOT = Path(__file__).resolve().parents[1]
HAVE_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "capbias_core").rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_the_page_of_metrics_is_what_the_measures_say():
    assert FILE.read_text(encoding="utf-8") == metrics_page(), "run: make docs"


@pytest.mark.parametrize("name", HAVE_EXAMPLES)
def test_examples_in_docstrings_run(name):
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0 and done.failed == 0
