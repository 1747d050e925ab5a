"""Every page and tab in a workspace that is empty, unlabelled, unscored, scored, lacks something, or is broken."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from capbias_core.workspace.derived import cross, keep_crossed
from capbias_core.workspace.store import Workspace
from tests.app import PAGES, TABS, VIEWS, errors, html, opened, shown
from tests.browser import ROOT
from tests.collections_ import keep
from tests.disks import small_disk
from tests.pages.synthetic import IMAGES, fill, more_labels, score

pytestmark = pytest.mark.long


def check_every_view(**query: str) -> dict[str, str]:
    """The HTML of each page and tab; none has an exception or an error box."""
    found = {}
    for view in VIEWS:
        page = opened(view, **query)
        assert errors(page) == [], view
        found[view] = html(page)
    return found


def test_the_table_of_pages_is_whole():
    """A new page or tab has to be added to it, and is then tested here."""
    assert {f"pages/{path.name}" for path in (ROOT / "pages").glob("[0-9]*.py")} | {"app.py"} == set(PAGES.values())
    for title, tabs in TABS.items():
        scope: dict = {}
        exec(compile((ROOT / PAGES[title]).read_text(), title, "exec"), scope | {"__name__": title}, scope)
        assert tuple(scope["TABS"]) == tabs


# Collection, views that have nothing to show, and the others.
@pytest.mark.parametrize(
    ("collection", "empty"),
    [
        ("", {"Answer", "Table", "Directions", "Alignment", "Captions", "Words", "Guess yourself", "Objects"}),
        ("without labels", {"Answer", "Table", "Directions", "Captions", "Words", "Guess yourself", "Objects"}),
        ("unscored", {"Answer", "Captions", "Words", "Guess yourself"}),
        ("scored", set()),
    ],
)
def test_every_view_shows_results_or_what_is_missing(home, tmp_path, monkeypatch, collection, empty):
    monkeypatch.setenv("CAPBIAS_HOME", str(home if collection else tmp_path))
    found = check_every_view(**({"collection": collection} if collection else {}))
    assert {view for view, text in found.items() if "Nothing to show yet." in text} >= empty
    assert not empty or not any("Nothing to show yet." in found[view] for view in ("Files", "Published"))
    if not empty:
        assert not any("Nothing to show yet." in text for view, text in found.items() if view not in TABS["Images"])


def one_caption_per_image(workspace: Workspace) -> dict:
    human = workspace.frame(workspace.item("references", "human", "c").hash)
    keep(workspace, references=human.drop_duplicates("image_id"))
    return {}


def attribute_without_words(workspace: Workspace) -> dict:
    name = more_labels(workspace, "sky", np.where(np.arange(IMAGES) % 5, "blue", "grey"))
    return {"table": name, "attribute": "sky", "metrics": ("lic", "leakage")}


def crossed_attribute(workspace: Workspace) -> dict:
    """Its words are masked, and none of them names a cell."""
    attribute_without_words(workspace)
    name = keep_crossed(workspace, "c", cross(workspace, "c", "gender", "sky")).name
    return {"table": name, "attribute": name, "metrics": ("lic", "leakage")}


def captions_that_name_nobody(workspace: Workspace) -> dict:
    """They have no ratio."""
    item = workspace.item("captions", "first", "c")
    keep(workspace, captions={"first": workspace.frame(item.hash).assign(caption="a dog in the park")})
    return {"captioners": ("first",), "metrics": ("ratio",), "human": ""}


@pytest.mark.parametrize(
    "thin", [one_caption_per_image, attribute_without_words, crossed_attribute, captions_that_name_nobody]
)
def test_every_view_shows_results_that_lack_something(workspace, thin):
    fill(workspace)
    asked = thin(workspace)
    score(workspace, **asked)
    found = check_every_view(collection="c", attribute=asked.get("attribute", "gender"))
    if thin is captions_that_name_nobody:
        page = opened("Table", metrics="ratio")
        assert not page.get("plotly_chart") and "no caption names a value of gender" in html(page)
    assert found


@pytest.mark.parametrize("harm", ["full", "read-only", "damaged", "gone"])
def test_every_view_of_a_broken_workspace_shows_what_is_there_or_one_error(tmp_path, monkeypatch, harm):
    with small_disk(tmp_path / "disk", megabytes=16) as disk:
        folder = disk.folder / "home"
        workspace = Workspace(folder)
        fill(workspace)
        score(workspace, captioners=("first",), metrics=("lic",))
        monkeypatch.setenv("CAPBIAS_HOME", str(folder))
        before = shown(opened("Table"))
        if harm == "gone":
            shutil.rmtree(folder)
        elif harm == "damaged":
            (folder / "capbias.sqlite").write_bytes(b"\xff" * (folder / "capbias.sqlite").stat().st_size)
        else:
            {"full": disk.fill, "read-only": disk.read_only}[harm]()
        for view in ("Answer", "Files", "Table", "Captions"):
            page = opened(view, collection="c")
            assert len(errors(page)) == (harm in ("gone", "damaged")), (view, errors(page))
            if view == "Table" and not errors(page):
                assert shown(page) == before
        if harm == "full":
            page = opened("Table", seeds="5")
            page = page.button(key="run_scores").click().run()
            assert not page.exception and "no space left" in " ".join(errors(page))
