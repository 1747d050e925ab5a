"""Every page and tab in a workspace that is empty, unlabelled, unscored, scored, lacks something, or is broken."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from capbias_core.runs.engine import Engine
from capbias_core.workspace.derived import cross, keep_crossed
from capbias_core.workspace.store import Workspace
from tests import app
from tests.app import PAGES, TABS, VIEWS, errors, html, opened, shown
from tests.browser import ROOT
from tests.collections_ import keep
from tests.disks import small_disk
from tests.pages.synthetic import IMAGES, fill, more_labels, score
from tests.runs import test_engine

pytestmark = pytest.mark.long
READ = ("Answer", *TABS["Scores"], *TABS["Captions"])  # views of numbers
EMPTY = ("Nothing to show yet.", "Not measured yet.")


def check_views(views=VIEWS, **query: str) -> dict[str, str]:
    """The HTML of pages and tabs; none has an exception or an error box."""
    pages = {view: opened(view, **query) for view in views}
    assert {view: errors(page) for view, page in pages.items() if errors(page)} == {}
    return {view: html(page) for view, page in pages.items()}


def test_the_table_of_pages_is_whole():
    """A new page or tab has to be added to it, and is then tested here."""
    assert {f"pages/{path.name}" for path in (ROOT / "pages").glob("[0-9]*.py")} | {"app.py"} == set(PAGES.values())
    for title, tabs in TABS.items():
        scope: dict = {}
        exec(compile((ROOT / PAGES[title]).read_text(), title, "exec"), scope | {"__name__": title}, scope)
        assert tuple(scope["TABS"]) == tabs


# Collection, and views of numbers that have something to show.
@pytest.mark.parametrize(
    ("collection", "full"),
    [("", set()), ("without labels", set()), ("unscored", {"Table"}), ("scored", {*READ} - {"Directions"})],
)
def test_every_view_shows_results_or_what_is_missing(home, tmp_path, monkeypatch, collection, full):
    monkeypatch.setenv("CAPBIAS_HOME", str(home if collection else tmp_path))
    views = VIEWS if collection in ("", "scored") else (*READ, *TABS["Images"])
    texts = check_views(views, **({"collection": collection} if collection else {}))
    empty = {view for view, text in texts.items() if any(words in text for words in EMPTY)}
    assert {*READ} - empty == full and not empty & {"Files", "Published"}


def crossed_attribute(workspace: Workspace) -> dict:
    """Its words are masked, and none of them names a group."""
    more_labels(workspace, "sky", np.where(np.arange(IMAGES) % 5, "blue", "grey"))
    name = keep_crossed(workspace, "c", cross(workspace, "c", "gender", "sky")).name
    return {"table": name, "attribute": name, "metrics": ("lic", "leakage")}


def captions_that_name_nobody(workspace: Workspace) -> dict:
    """They have no ratio."""
    item = workspace.item("captions", "first", "c")
    keep(workspace, captions={"first": workspace.frame(item.hash).assign(caption="a dog in the park")})
    return {"metrics": ("ratio",), "human": ""}


@pytest.mark.parametrize("thin", [crossed_attribute, captions_that_name_nobody])
def test_every_view_shows_results_that_lack_something(workspace, thin):
    fill(workspace)
    request = {"captioners": ("first",)} | thin(workspace)
    score(workspace, **request)
    check_views(READ, collection="c", attribute=request.get("attribute", "gender"))
    if thin is captions_that_name_nobody:
        assert "left out: no caption names a value of gender" in html(opened("Table"))


@pytest.mark.parametrize("harm", ["full", "read-only", "damaged", "gone"])
def test_a_broken_workspace_shows_what_is_there_or_one_error(home, tmp_path, monkeypatch, harm):
    with small_disk(tmp_path / "disk", megabytes=64) as disk:
        folder = shutil.copytree(home, disk.folder / "home")
        monkeypatch.setenv("CAPBIAS_HOME", str(folder))
        before = shown(opened("Table"))
        if harm == "gone":
            shutil.rmtree(folder)
        elif harm == "damaged":
            (folder / "capbias.sqlite").write_bytes(b"\xff" * (folder / "capbias.sqlite").stat().st_size)
        else:
            {"full": disk.fill, "read-only": disk.read_only}[harm]()
        pages = {view: opened(view, collection="scored") for view in ("Files", "Table", "Captions")}
        assert {len(errors(page)) for page in pages.values()} == {int(harm in ("gone", "damaged"))}
        if harm in ("full", "read-only"):
            assert shown(pages["Table"]) == before
        if harm == "full":
            page = opened("Table").button(key="run_scores").click().run()
            assert not page.exception and "no space left" in " ".join(errors(page))


def test_pages_follow_what_runs_end_and_which_items_go(tmp_path, monkeypatch):
    """What pages remember is never what was true before."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    request, engine = test_engine.fill(tmp_path, models=("m", "other")), Engine(tmp_path)

    def everything() -> dict[str, list[str]]:
        pages = {view: app.opened(view) for view in ("Answer", "Table", "Captions")}
        return {view: [str(getattr(part, "proto", "")) for part in page] for view, page in pages.items()}

    def delete_other() -> None:
        workspace = Workspace(tmp_path)
        workspace.delete(workspace.item("captions", "other", "c"))

    earlier = everything()
    for change in (
        lambda: engine.wait(test_engine.submit(engine, replace(request, captions=("m",)))),
        lambda: engine.wait(test_engine.submit(engine, request)),
        delete_other,
    ):
        change()
        now = everything()
        assert all(now[view] != earlier[view] for view in now)
        st.cache_resource.clear()
        assert now == everything()
        earlier = now


def test_an_answer_that_cannot_be_computed_says_why(tmp_path, monkeypatch):
    """Human captions of other images: the front page shows the reason instead of a link to itself."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    labels = [{"image_id": image, "gender": "Male" if image % 2 else "Female"} for image in range(30)]
    captions, human = (
        [{"image_id": image + first, "caption": "a man on a bench"} for image in range(30)] for first in (0, 100)
    )
    keep(Workspace(tmp_path), labels=labels, captions=captions)
    keep(Workspace(tmp_path), references=human)
    page = opened("Answer", collection="c")
    (error,) = errors(page)
    assert "none of the 30 labelled images of m" in error
    assert "Choose other settings" in [element.proto.label for element in page.main.get("page_link")]


# A text of a file, and as much of it as a name may hold.
HOSTILE, NAME = "![x](http://evil.test/p) <b>q</b> **b** $a$ :red[c]", "_x_ www.evil.test :smile:"
MARKS = re.compile(
    r"!\[x\]\(|(?<!\\)<b>q|(?<!\\)\*\*b|(?<!\\)\$a|(?<!\\):red\[|(?<![\\\w])_x_|www\.evil|(?<!\\):smile:"
)
# What Streamlit reads as Markdown; all other fields are drawn as they stand.
MARKDOWN = {"label", "help", "text", "body"}


def hostile(workspace: Workspace) -> str:
    """A collection in which every text that a file may bring has marks; the name of its attribute."""
    fill(workspace)
    frames = {item.name: workspace.frame(item.hash) for item in workspace.items(collection="c")}
    for frame in frames.values():
        frame["image_id"] = frame["image_id"] + HOSTILE.replace(" ", "")  # no text, which may be a caption
        if "caption" in frame:
            frame["caption"] += f" {HOSTILE}"
    attribute, odd = f"hair {HOSTILE}", np.arange(IMAGES) % 2 == 1
    labels = frames["labels"]
    labels[attribute] = np.where(odd, f"red {HOSTILE}", f"blue {HOSTILE}")
    labels[f"column {HOSTILE}"] = np.where(odd, f"odd {HOSTILE}", f"even {HOSTILE}")
    objects = pd.DataFrame({"image_id": labels["image_id"], "object": np.where(odd, f"cat {HOSTILE}", "dog")})
    keep(
        workspace,
        NAME,
        labels={f"labels {NAME}": labels},
        attribute=["gender=gender", f"{attribute}={attribute}"],
        captions={f"{name} {NAME}": frames[name] for name in ("first", "second")},
        references={f"human {NAME}": frames["human"], f"few {NAME}": frames["first"]},
        objects={f"objects {NAME}": objects},
    )
    keep(workspace, NAME, labels={f"others {NAME}": labels[["image_id", "gender"]]})
    sets = [f"{name} {NAME}" for name in ("first", "second")]
    about = {"table": f"labels {NAME}", "attribute": attribute, "human": f"human {NAME}"}
    score(workspace, NAME, sets, metrics=("lic", "dbac"), **about)
    score(workspace, NAME, sets, metrics=("lic",), words=False, **about | {"attribute": "gender"})
    return attribute


def drawn_as_markup(page: app.AppTest) -> Iterator[str]:
    """Each text of a page that a browser reads as Markdown or as HTML."""
    for element in page:
        proto = getattr(element, "proto", None)
        if element.type == "html":  # where marks of Markdown mean nothing
            yield from re.findall("(?:<|&lt;)b(?:>|&gt;)q", proto.body)
        elif element.type in ("plotly_chart", "bidi_component"):
            drawn = json.loads(proto.spec if element.type == "plotly_chart" else proto.json)
            yield from re.findall("(?:<|&lt;)b(?:>|&gt;)q", str(drawn))
        elif element.type == "dataframe":
            yield from (config.get("help") or "" for config in json.loads(proto.columns or "{}").values())
        elif proto is not None and element.type not in ("text", "code"):
            yield from (
                value for field, value in proto.ListFields() if field.name in MARKDOWN for value in [str(value)]
            )


def test_no_text_of_a_file_is_markdown_or_html_on_any_page(workspace):
    attribute, seen = hostile(workspace), 0
    slices = {"attribute": "gender", "column": f"column {HOSTILE}", "line": f"column {HOSTILE}: odd {HOSTILE}"}
    more = {
        "Objects": {"attribute": "gender", "objects_from": "image"},
        "Where": slices,
        "Words": {"before": f"second {NAME}"},
    }
    for name in VIEWS:
        for query in filter(None, ({"attribute": attribute}, more.get(name))):
            page = opened(name, collection=NAME, **{"attribute": attribute} | query)
            texts = [*drawn_as_markup(page)]
            assert [text for text in texts if MARKS.search(text)] == [], name
            seen += sum("evil" in text or "&lt;" in text for text in texts)
    assert seen > 10
