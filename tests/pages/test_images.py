"""The page Images on the demo: what masking changes, one photograph under each condition, and the steps to prepare."""

from __future__ import annotations

import pytest

from capbias_core.workspace.ingest import DEMO, load_demo
from tests.app import TABS, errors, html, opened
from tests.pages.synthetic import score

pytestmark = pytest.mark.long


def test_images_without_and_with_scores(workspace):
    load_demo(workspace)
    pages = {view: opened(view, collection=DEMO) for view in TABS["Images"]}
    assert {view: errors(page) for view, page in pages.items() if errors(page)} == {}
    assert "Not measured yet." in html(pages["Experiment"])
    for name in ("(yolov8n)", "% of the image ", "No caption."):
        assert name in html(pages["One photograph"])
    assert html(pages["One photograph"]).count("<img") == 7, "a picture under each condition"
    assert "yolov8n (8 photographs)" in html(pages["Prepare"])

    sets = ("amplifier", "faithful", "amplifier_masked_person", "amplifier_masked_box")
    score(workspace, DEMO, sets, metrics=("lic",), human="", words=True)
    page = opened("Experiment", collection=DEMO, captioner="faithful", line="box")
    assert not errors(page) and "faithful has no captions of masked photographs" in html(page)
    table = next(table.value for table in page.dataframe if "masked" in table.value)
    assert list(table["masked"]) == ["original", "box", "person"]
    assert html(page).count("<img") == 2 and "Guesses are by ngram" in html(page)
    photographs = set(workspace.frame(workspace.items("photographs", DEMO)[0].hash)["image_id"])
    page = opened("Captions", collection=DEMO, captioner="amplifier")
    images = next(table.value["image"] for table in page.dataframe if "image" in table.value)
    assert set(images[: len(photographs)]) == photographs and len(page.image) == 1, "those with a photograph first"
    other = next(image for image in images if image not in photographs)
    assert not opened("Captions", collection=DEMO, captioner="amplifier", image=other).image
    page = opened("One photograph", collection=DEMO, captioner="amplifier")
    assert html(page).count("cb-second") > 3 and "People: " not in html(page), "no human captions were read"
