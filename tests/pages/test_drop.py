"""Any number of files dropped at once, in a real browser: kinds, one button, the first score."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from capbias_core.workspace.store import Workspace
from tests.browser import choose, open_page, server, settled

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def window(chrome):
    context = chrome.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


@pytest.fixture
def files(tmp_path) -> list[Path]:
    """Two captioners, human captions and labels of 60 images."""
    images = range(60)
    who = ("woman", "man")
    texts = {
        "first.csv": [f"{image},a {who[image % 2]} with a {('cat', 'dog')[image % 2]}" for image in images],
        "second.csv": [f"{image},a {who[image % 2]} outside" for image in images],
        "human captions.csv": [
            f"{image},a {who[image % 2]} {where}" for image in images for where in ("here", "there")
        ],
        "labels.csv": [f"{image},{('Female', 'Male')[image % 2]}" for image in images],
    }
    for name, lines in texts.items():
        head = "image_id,gender" if name == "labels.csv" else "image_id,caption"
        (tmp_path / name).write_text("\n".join([head, *lines]) + "\n")
    return [tmp_path / name for name in texts]


def drop(window, *files: Path) -> None:
    window.locator("input[type=file]").set_input_files([str(path) for path in files])
    window.get_by_text("2 · What they are").wait_for()
    settled(window)


FIRST = re.compile(r"(first|second)\b.*LIC_?M? \(ngram, preview\)")


def test_from_four_files_to_the_first_score_in_three_clicks(window, files, tmp_path):
    """Drop, Keep, and the link to the answer, which was begun by itself."""
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, *files)
        expect(window.get_by_text("60 of 60 images are known to the other files or the collection.")).to_have_count(4)
        window.get_by_role("button", name="Keep", exact=True).click()
        window.get_by_text("Kept labels, human captions, first, second in the collection my captions.").wait_for()
        window.get_by_role("link", name=re.compile("see the answer", re.IGNORECASE)).click()
        window.get_by_text(FIRST).first.wait_for(timeout=120_000)
        assert "collection=my+captions" in window.url
    kinds = {item.name: item.kind for item in Workspace(tmp_path / "home").items()}
    assert kinds == {"labels": "attributes", "human captions": "references", "first": "captions", "second": "captions"}


def test_labels_that_cannot_be_kept_say_why_and_blame_no_other_file(window, files, tmp_path):
    (tmp_path / "one.csv").write_text("image_id,gender\n" + "".join(f"{image},Male\n" for image in range(60)))
    (tmp_path / "other.csv").write_text("image_id,gender\n" + "".join(f"{image},abc\nx{image},xyz\n" for image in "pq"))
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data?into=+two++words+")
        drop(window, files[0], files[2], tmp_path / "other.csv")
        expect(window.get_by_role("heading", name="3 · Keep in two words")).to_be_visible()
        expect(window.get_by_text("60 of 60 images are known to the other files or the collection.")).to_have_count(2)
        expect(window.get_by_text(re.compile("^⚠ No image id of other.csv is known to"))).to_be_visible()
        expect(window.get_by_text(re.compile("no label becomes Female or Male"))).to_be_visible()
        open_page(window, f"{address}/Data")
        drop(window, files[0], tmp_path / "one.csv")
        expect(window.get_by_text("gender: every image has the same label").last).to_be_visible()
        expect(window.get_by_text("⚠ No column of one.csv is a protected attribute yet")).to_be_visible()
        expect(window.get_by_role("button", name="Keep", exact=True)).to_be_disabled()


def test_a_broken_photograph_is_said_before_the_others_are_kept(window, files, tmp_path):
    Image.new("RGB", (30, 20)).save(tmp_path / "1.png")
    (tmp_path / "2.png").write_text("no picture")
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, files[0], tmp_path / "1.png", tmp_path / "2.png")
        window.get_by_text("1 photograph, named by image id.").wait_for()
        window.get_by_text(re.compile("2.png, which cannot be read as a picture")).wait_for()
        window.get_by_role("button", name="Keep", exact=True).click()
        window.get_by_text("Kept first, 1 photograph in the collection my captions.").wait_for()


def test_a_file_of_captions_and_human_captions_is_two_rows(window, formats, tmp_path):
    """And tells apart the images of a file without ids; the human captions in that are not wanted then."""
    (samples,) = formats.glob("*_samples_*.jsonl")
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, formats / "LLaVA_COCO_VAL.tsv", samples)
        expect(window.get_by_label("What is file 3?")).to_be_visible()
        expect(window.get_by_label("What is file 4?")).to_have_count(0)
        expect(window.get_by_text("40 of 40 images are known to the other files or the collection.")).to_have_count(3)
        window.get_by_role("button", name="Keep", exact=True).click()
        twins = [f"{samples.stem} ({kind})" for kind in ("human captions", "captions of a model")]
        kept = f"Kept {twins[0]}, LLaVA_COCO_VAL, {twins[1]} in the collection my captions."
        window.get_by_text(kept).wait_for()
        rows = {(item.kind, item.name): item.rows for item in Workspace(tmp_path / "home").items()}
    assert rows["references", samples.stem] == 200
    assert rows["captions", samples.stem] == rows["captions", "LLaVA_COCO_VAL"] == 40


@pytest.mark.slow
def test_what_captions_lacks_is_one_button_on_that_page(window, files, tmp_path):
    """Without human captions nothing starts by itself."""
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, files[0], files[3])
        window.get_by_role("button", name="Keep", exact=True).click()
        window.get_by_text("Kept labels, first in the collection my captions.").wait_for()
        open_page(window, f"{address}/Captions?collection=my+captions")
        window.get_by_text(re.compile(r"1 run: .* 1 to do; about .* s")).wait_for()
        window.get_by_role("button", name="Score these captions").click()
        window.get_by_text(re.compile(r"\d captions of \w+\..* Select a row")).wait_for(timeout=120_000)
        assert window.title().startswith("Captions")


def test_captions_of_a_name_that_is_taken_replace_the_others_only_when_that_is_said(window, files, tmp_path):
    other = tmp_path / "elsewhere" / files[0].name
    other.parent.mkdir()
    other.write_text("image_id,caption\n" + "".join(f"{image},a dog\n" for image in range(60)))
    with server(tmp_path / "home") as (address, _):
        for file, warned in ((files[0], False), (files[0], False), (other, True)):
            open_page(window, f"{address}/Data?collection=my+captions")
            drop(window, file)
            keep = window.get_by_role("button", name="Keep", exact=True)
            warning = window.get_by_text(f"Other files called {file.stem} are kept already.")
            expect(warning).to_have_count(int(warned), timeout=30_000)
            if warned:
                expect(keep).to_be_disabled()
                window.get_by_text(f"Replace {file.stem}", exact=True).click()
            expect(keep).to_be_enabled()
            keep.click()
            window.get_by_text(f"Kept {file.stem} in the collection my captions.").wait_for()
    (item,) = Workspace(tmp_path / "home").items("captions")
    assert set(Workspace(tmp_path / "home").frame(item.hash)["caption"]) == {"a dog"}


def test_a_wrong_kind_is_said_and_mended_and_strange_ids_have_to_be_confirmed(window, files, tmp_path):
    strange = tmp_path / "strange.csv"
    strange.write_text("image_id,caption\n" + "".join(f"{image},a dog\n" for image in range(500, 520)))
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, strange, files[3])
        keep = window.get_by_role("button", name="Keep", exact=True)
        window.get_by_text("No image id of strange.csv, labels.csv is known").wait_for()
        expect(keep).to_be_disabled()
        choose(window, "What is file 1?", "Labels of images")
        window.get_by_text("This looks like captions of a model.").wait_for()
        window.get_by_role("button", name="Take it for that").click()
        expect(window.get_by_text("This looks like captions of a model.")).to_have_count(0)
        window.get_by_text("Keep it", exact=True).first.click()  # the first file is left out
        settled(window)
        expect(keep).to_be_enabled()
        keep.click()
        window.get_by_text("Kept labels in the collection my captions. Left out: strange.csv (not ticked).").wait_for()
    assert [item.name for item in Workspace(tmp_path / "home").items()] == ["labels"]


@pytest.mark.slow
def test_a_file_alone_whose_columns_are_not_known_can_be_mended(window, tmp_path):
    """Nothing of it stays on disk while it cannot be read, and what is chosen for it stays all the same."""
    (tmp_path / "odd.csv").write_text("who,number\n" + "".join(f"{('Male', 'Female')[n % 2]},{n}\n" for n in range(9)))
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, tmp_path / "odd.csv")
        window.get_by_text("Nothing was kept.").wait_for()
        assert not list((tmp_path / "home" / "uploads").iterdir())
        choose(window, "Column of image ids", "number")
        window.get_by_text("9 images kept; dropped: none.").wait_for()
        window.get_by_role("button", name="Keep", exact=True).click()
        window.get_by_text("Kept odd in the collection my captions.").wait_for()
    (item,) = Workspace(tmp_path / "home").items("attributes")
    assert item.details["attributes"]["gender"]["column"] == "who", "found by its labels"


@pytest.mark.slow
def test_the_column_of_captions_can_be_chosen_where_it_is_not_known(window, tmp_path):
    """As --caption-column does: a file with such a column holds captions, not labels. A wrong choice is mended."""
    said = ("a dog on a couch", "two men play ball", "a cat sleeps on a mat", "a bus in the rain", "she rides a bike")
    rows = "".join(f"{number},{text} {number},where {number} was\n" for number, text in enumerate(said * 2))
    (tmp_path / "odd.csv").write_text("number,uttered,place\n" + rows)
    with server(tmp_path / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, tmp_path / "odd.csv")
        choose(window, "Column of captions", "place")
        choose(window, "Column of image ids", "number")
        window.get_by_text("CSV: 10 rows, 10 images.", exact=True).wait_for()
        choose(window, "Column of captions", "uttered")
        window.get_by_role("button", name="Keep", exact=True).wait_for()
        window.get_by_role("button", name="Keep", exact=True).click()
        window.get_by_text("Kept odd in the collection my captions.").wait_for()
    workspace = Workspace(tmp_path / "home")
    (item,) = workspace.items("captions")
    assert item.name == "odd" and workspace.frame(item.hash)["caption"][0] == "a dog on a couch 0"


def test_a_file_that_takes_too_long_ends_nothing_but_its_own_reading(window, files, tmp_path, monkeypatch):
    monkeypatch.setenv("CAPBIAS_READ_SECONDS", "0.000001")
    with server(tmp_path / "home") as (address, process):
        open_page(window, f"{address}/Data")
        drop(window, files[0])
        window.get_by_text("first.csv takes longer than 1e-06 seconds.").wait_for()
        open_page(window, f"{address}/Data")
        assert process.poll() is None
