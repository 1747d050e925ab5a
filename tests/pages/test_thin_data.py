"""Every page, table and bundle of results that lack something: human captions to retell, words for the values."""

from __future__ import annotations

import numpy as np
import pytest

from capbias_core.api import run_here
from capbias_core.bundle.write import write_bundle
from capbias_core.present.figures import chart_series
from capbias_core.present.sentence import second_dots
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.crossing import cross, keep_crossed
from capbias_core.workspace.store import Workspace
from tests.browser import ROOT
from tests.collections_ import keep
from tests.pages.test_links import fill

testing = pytest.importorskip("streamlit.testing.v1")
pytestmark = pytest.mark.long


def one_caption_per_image(workspace: Workspace) -> Request:
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    keep(workspace, references=human.drop_duplicates("image_id"))
    return Request("c", ("first", "second"), "labels", "gender", ("lic", "leakage", "ratio"), "human")


def _skies(workspace: Workspace) -> None:
    table = workspace.frame(workspace.item("attributes", "labels", "c").hash)
    table = table.assign(sky=np.arange(len(table)) % 5 > 0).astype(str)
    keep(workspace, labels={"skies": table}, attribute="sky")


def attribute_without_words(workspace: Workspace) -> Request:
    _skies(workspace)
    return Request("c", ("first", "second"), "skies", "sky", ("lic", "leakage"), "human")


def crossed_attribute(workspace: Workspace) -> Request:
    """Its words are masked, and none of them names a cell."""
    _skies(workspace)
    name = keep_crossed(workspace, "c", cross(workspace, "c", "gender", "sky")).name
    return Request("c", ("first", "second"), name, name, ("lic", "leakage"), "human")


@pytest.mark.parametrize("results_of", [one_caption_per_image, attribute_without_words, crossed_attribute])
def test_every_page_and_the_bundle_show_results_that_lack_something(tmp_path, monkeypatch, results_of):
    workspace = Workspace(tmp_path / "home")
    fill(workspace, "c")
    request = results_of(workspace)
    specs = plan(workspace, Request(**{**vars(request), "seeds": 2, "words": True}))
    assert {run.status for run in run_here(workspace, specs, "c")} == {"finished"}
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    for file in [ROOT / "app.py", *sorted((ROOT / "pages").glob("[0-9]*.py"))]:
        page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        page.query_params["collection"], page.query_params["attribute"] = "c", request.attribute
        if file.name != "app.py":
            page = page.switch_page(f"pages/{file.name}")
        page.run()
        assert not page.exception, (file.name, page.exception[0].value)
        errors = [own.proto.body for own in page.get("html") if 'class="cb-error"' in own.proto.body]
        assert errors == [], file.name
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(write_bundle(workspace, "c", [spec.run_id for spec in specs]))
    assert bundle.stat().st_size > 0


def test_rows_without_a_baseline_have_no_bands_and_no_rows_no_charts(tmp_path):
    workspace = Workspace(tmp_path)
    nothing = workspace.results([])
    assert nothing.empty and second_dots(nothing, "LIC") == {} and chart_series(nothing) == {}
