"""The Masking page in a real browser: real captions of masked photographs, layers, a mask run, an upload."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import expect

from capbias_core.cli import main
from capbias_core.types import BOX_COLUMNS
from capbias_core.workspace.ingest import keep_images
from capbias_core.workspace.store import Workspace
from tests.browser import open_page, server, settled

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)
COLLECTION = "coco"
IMAGE = "349860"
FOREGROUND = "person in the foreground"


@pytest.fixture
def page(chrome):
    """A fresh window that notes requests that leave this machine."""
    context = chrome.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(60_000)
    window = context.new_page()
    outside: list[str] = []
    context.on("request", lambda request: None if _near(request.url) else outside.append(request.url))
    yield window
    assert outside == []
    context.close()


def _near(url: str) -> bool:
    return bool(re.match(r"(https?|wss?)://127\.0\.0\.1|data:|blob:", url))


@pytest.fixture(scope="module")
def home(coco_bias, tmp_path_factory):
    """sat's captions of the originals and of photographs without the person, measured with two seeds; photographs, and
    one box by hand."""
    folder = tmp_path_factory.mktemp("masking") / "home"
    own = ["--workspace", str(folder), "--collection", COLLECTION]
    labels = str(coco_bias / "annotations" / "attributes.csv")
    assert main(["import", labels, "--kind", "attributes", "--attribute", "gender", *own]) == 0
    for name in ("sat", "sat_masked_person"):
        assert main(["import", str(coco_bias / "results" / f"{name}.json"), "--kind", "captions", *own]) == 0
    measured = ["score", "--view", "conditions", "--attribute", "gender", "--metric", "lic", "--seeds", "2", *own]
    assert main([*measured, "--output", str(folder / "rows.csv")]) == 0
    workspace = Workspace(folder)
    keep_images(workspace, coco_bias / "images", COLLECTION)
    boxes = pd.DataFrame([(IMAGE, "person", 1.0, 279.0, 10.0, 465.0, 160.0)], columns=list(BOX_COLUMNS))
    workspace.keep("boxes", "by hand", boxes, COLLECTION, "test", {"read": [IMAGE]})
    return folder


@pytest.fixture(scope="module")
def address(home):
    with server(home) as (found, _):
        yield found


def test_what_masking_does_to_a_set_and_to_one_photograph(page, address):
    open_page(page, f"{address}/Masking?collection={COLLECTION}&photograph={IMAGE}&seeds=2")
    answer = page.locator(".cb-answer b")
    said = "With person masked (person mask from another source), captions of sat still give gender away: LIC_M"
    expect(answer).to_have_text(re.compile(f"^{re.escape(said)}"))
    expect(page.get_by_test_id("stPlotlyChart").get_by_text("LIC_M ↓")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    expect(page.get_by_text("needs human captions").first).to_be_visible()
    expect(page.get_by_alt_text(f"Photograph {IMAGE}: 1 person. Drawn over it: {FOREGROUND}.")).to_be_visible()
    boxed = page.locator(".st-key-cell_box")
    expect(boxed.get_by_alt_text(f"{IMAGE}, box")).to_be_visible()
    expect(boxed.get_by_text("No caption under this condition yet.")).to_be_visible()
    expect(page.locator(".st-key-cell_segment").get_by_text("no outlines")).to_be_visible()
    # Scored with as many seeds as are asked for on the left, with which LIC_M is measured already.
    expect(page.get_by_text("2 runs: 1 done, 1 to do")).to_be_visible()
    for condition in ("original", "person"):
        expect(page.locator(f".st-key-cell_{condition}").get_by_text("skateboard")).to_be_visible()
    page.get_by_role("button", name="boxes", exact=True).click()
    settled(page)
    expect(
        page.get_by_alt_text(re.compile(f"Drawn over it: (boxes, {FOREGROUND}|{FOREGROUND}, boxes)"))
    ).to_be_visible()


@pytest.mark.slow
def test_boxes_are_masked_and_photographs_uploaded_from_the_page(page, home, address, tmp_path):
    open_page(page, f"{address}/Masking?collection={COLLECTION}&photograph={IMAGE}&seeds=2")
    page.get_by_text("Find people, mask, caption, map").click()
    settled(page)
    page.get_by_role("textbox", name="Weights of a detector").fill("yolov8n")
    page.keyboard.press("Enter")
    expect(page.get_by_text("These weights are not on this machine yet.")).to_be_visible()
    expect(page.get_by_text("People are marked by: by hand (1 photographs).")).to_be_visible()
    settled(page)
    page.get_by_role("tab", name="2 Mask").click()
    settled(page)
    # Boxes hold no outline, so only three conditions are offered; which objects go with gender is not known here.
    expect(page.get_by_role("alert").filter(has_text="one set of human captions")).to_have_count(2)
    page.get_by_role("textbox", name="Objects to mask").fill("skateboard")
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 runs: 0 done, 3 to do")).to_be_visible()
    settled(page)
    start = page.get_by_role("button", name="Mask", exact=True)
    expect(start).to_have_count(1)  # what stood elsewhere before is gone
    start.click()
    expect(page.get_by_text("as they are kept")).to_be_visible()
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    kept = {item.details.get("condition"): item.rows for item in Workspace(home).items("images", COLLECTION)}
    assert kept == {None: 24, "box": 1, "both": 1}, "and no skateboard is marked, so that nothing hides one"

    page.get_by_text("Upload photographs, or a folder of them").click()
    settled(page)
    Image.new("RGB", (40, 30), (200, 30, 30)).save(tmp_path / "42.png")
    (tmp_path / "43.jpg").write_bytes(b"no picture")
    page.locator("input[type=file]").set_input_files([tmp_path / "42.png", tmp_path / "43.jpg"])
    said = page.get_by_text(re.compile(r"^1 photographs in the collection my photographs\. Left out: 43\.jpg"))
    expect(said).to_be_visible()
    expect(page.get_by_alt_text("Photograph 42.")).to_be_visible()
    expect(page.get_by_text("Nothing is marked on this photograph.")).to_be_visible()


def test_an_empty_workspace_says_what_to_do_next(page, tmp_path):
    with server(tmp_path / "home") as (address, _):
        open_page(page, f"{address}/Masking")
        expect(page.get_by_text("Nothing to show yet.")).to_be_visible()
        expect(page.get_by_role("button", name="Try it on the demo data")).to_be_visible()
        expect(page.get_by_text("Upload photographs, or a folder of them")).to_be_visible()
