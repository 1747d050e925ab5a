"""The generated page of metrics is the one in the repository, and documents name what there is."""

from scripts.make_docs import FILE, metrics_page


def test_the_page_of_metrics_is_what_the_measures_say():
    assert FILE.read_text(encoding="utf-8") == metrics_page(), "run: make docs"
