"""Files dropped on the Data page: the table that says what each is, what stands in the way of Save, what is stored."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import expect

from capbias_core.workspace.store import Workspace
from tests.browser import ROOT, open_page, server, settled
from tests.collections_ import keep

testing = pytest.importorskip("streamlit.testing.v1")
pytestmark = pytest.mark.long

MODEL, HUMAN, LABELS = "Captions of a model", "Human captions", "Labels of images"
IMAGES, WHO = range(60), ("woman", "man")
LINES = {
    "first.csv": [f"{image},a {WHO[image % 2]} with a {('cat', 'dog')[image % 2]}" for image in IMAGES],
    "second.csv": [f"{image},a {WHO[image % 2]} is outside" for image in IMAGES],
    "human captions.csv": [
        f"{image},a {WHO[image % 2]} stands {place}" for image in IMAGES for place in ("here", "there")
    ],
    "several.csv": [f"{image},a {WHO[image % 2]} walks {place}" for image in IMAGES for place in ("on", "off")],
    "labels.csv": [f"{image},{('Female', 'Male')[image % 2]}" for image in IMAGES],
    "one.csv": [f"{image},Male" for image in IMAGES],
    "strange.csv": [f"{image},a dog and a cat" for image in range(500, 520)],
    "elsewhere/first.csv": [f"{image},a dog and a cat" for image in IMAGES],
}
LABELLED = ("labels.csv", "one.csv")


@pytest.fixture
def files(tmp_path) -> Path:
    """The folder with two captioners, human captions and labels of 60 images, and files that do not fit."""
    (tmp_path / "elsewhere").mkdir()
    for name, lines in LINES.items():
        head = "image_id,gender" if name in LABELLED else "image_id,caption"
        (tmp_path / name).write_text("\n".join([head, *lines]) + "\n")
    return tmp_path


class Table:
    """In place of the table that can be edited: its rows by file, and what a user changes in them."""

    def __init__(self):
        self.rows, self.changes = pd.DataFrame(), {}

    def __call__(self, frame: pd.DataFrame, **_more) -> pd.DataFrame:
        self.rows, edited = frame.set_index("File"), frame.copy()
        for file, changed in self.changes.items():
            for column, value in changed.items():
                edited.loc[edited["File"] == file, column] = value
        return edited

    def column(self, name: str) -> dict:
        return self.rows[name].to_dict()


@pytest.fixture
def table(monkeypatch) -> Table:
    found = Table()
    monkeypatch.setattr("streamlit.data_editor", found)
    return found


@pytest.fixture
def dropped(files, table, tmp_path, monkeypatch):
    """The Data page with files, as a zip on the server; nothing is scored."""
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    for name in ("start_cheap", "score_now"):
        monkeypatch.setattr(f"pages.ui.running.{name}", lambda *_given: None)

    def of(*names: str | Path):
        with zipfile.ZipFile(files / "all.zip", "w") as archive:
            for name in names:
                archive.write(files / name, name)
        page = testing.AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        page = page.switch_page("pages/1_Data.py").run()
        return checked(page.text_input(key="path_0").set_value(str(files / "all.zip")).run())

    return of


def checked(page):
    assert not page.exception
    return page


def save(page):
    (button,) = [own for own in page.button if own.label == "Save"]
    return button


def box(page, label: str):
    (found,) = [own for own in page.selectbox if own.label == label]
    return found


def said(page) -> str:
    return " ".join(own.value for kind in (page.success, page.warning, page.info, page.caption) for own in kind)


def stored(tmp_path: Path) -> dict[str, str]:
    return {item.name: item.kind for item in Workspace(tmp_path / "home").items()}


def test_the_table_says_what_files_are_and_save_stores_that(dropped, table, tmp_path):
    """Save confirms the type of human captions, which name and captions per image suggest; a name alone, or captions
    alone, suggest nothing."""
    page = dropped("first.csv", "several.csv", "human captions.csv", "labels.csv")
    assert table.column("Type") == {
        "first.csv": MODEL,
        "several.csv": MODEL,
        "human captions.csv": HUMAN,
        "labels.csv": LABELS,
    }
    assert set(table.column("Images matched").values()) == {"60 of 60"} and table.rows["Save"].all()
    asked = [file for file, text in table.column("Check").items() if "Human captions?" in text]
    assert asked == ["several.csv", "human captions.csv"]
    assert "gender" in table.column("Check")["labels.csv"]
    page = checked(save(page).click().run())
    (message,) = [own.value for own in page.success]
    assert message.startswith("Saved in my captions: labels, human captions, first, several.")
    assert stored(tmp_path) == {
        "labels": "attributes",
        "human captions": "references",
        "first": "captions",
        "several": "captions",
    }
    assert not list((tmp_path / "home" / "uploads").iterdir())


def test_type_name_and_tick_are_the_users(dropped, table, tmp_path):
    table.changes = {"several.csv": {"Type": HUMAN, "Name": "people"}, "strange.csv": {"Save": False}}
    page = dropped("first.csv", "several.csv", "strange.csv", "labels.csv")
    assert table.column("Type")["several.csv"] == HUMAN
    page = checked(save(page).click().run())
    assert "Not saved: strange.csv." in said(page)
    assert stored(tmp_path) == {"first": "captions", "people": "references", "labels": "attributes"}


def test_a_file_read_as_what_it_does_not_hold_says_why(dropped, table, tmp_path):
    table.changes = {"labels.csv": {"Type": MODEL}}
    page = dropped("first.csv", "labels.csv")
    assert "labels.csv" in table.column("Check")["labels.csv"] and not table.column("Save")["labels.csv"]
    checked(save(page).click().run())
    assert stored(tmp_path) == {"first": "captions"}


# What stands in the way -> files, and what the page names
IN_THE_WAY = {
    "labels that are all one value": (("first.csv", "one.csv"), "one.csv"),
    "two files of one name": (("first.csv", "elsewhere/first.csv"), "first"),
    "other images": (("strange.csv", "labels.csv"), "strange.csv"),
}


@pytest.mark.parametrize(("names", "message"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_stands_in_the_way_of_save(dropped, names, message, tmp_path):
    page = dropped(*names)
    assert save(page).disabled and message in " ".join(own.value for own in page.warning)
    if page.checkbox:  # the user may know better
        assert not save(checked(page.checkbox[0].check().run())).disabled
    assert not stored(tmp_path)


def test_other_captions_of_a_name_are_replaced_only_if_the_user_says_so(dropped, files, tmp_path):
    workspace = Workspace(tmp_path / "home")
    keep(workspace, "my captions", captions={"first": files / "first.csv"})
    page = dropped("first.csv")
    assert not page.checkbox and not save(page).disabled, "the same captions replace nothing"
    page = dropped("elsewhere/first.csv")
    assert save(page).disabled and "Replace first" in page.checkbox[0].label
    page = checked(page.checkbox[0].check().run())
    checked(save(page).click().run())
    (item,) = workspace.items("captions")
    assert set(workspace.frame(item.hash)["caption"]) == {"a dog and a cat"}


def test_columns_that_are_not_known_are_chosen(dropped, table, files, tmp_path):
    texts = ("a dog on a couch", "two men play ball", "a cat sleeps on a mat", "a bus in the rain", "she rides a bike")
    lines = [f"{number},{text} {number},where {number} was" for number, text in enumerate(texts * 2)]
    (files / "odd.csv").write_text("\n".join(["number,uttered,place", *lines]) + "\n")
    page = dropped("odd.csv")
    assert not stored(tmp_path) and table.rows["Rows"].isna().all()
    page = checked(box(page, "Column of captions").select("place").run())
    page = checked(box(page, "Column of image IDs").select("number").run())
    page = checked(box(page, "Column of captions").select("uttered").run())
    assert table.column("Type") == {"odd.csv": MODEL} and table.column("Rows") == {"odd.csv": 10}
    checked(save(page).click().run())
    (item,) = Workspace(tmp_path / "home").items("captions")
    assert Workspace(tmp_path / "home").frame(item.hash)["caption"][0] == "a dog on a couch 0"


def test_labels_without_known_words_are_mapped(dropped, table, files, tmp_path):
    """0 and 1 say nothing by themselves: they are mapped in boxes, and Save waits for that."""
    (files / "codes.csv").write_text("image_id,gender\n" + "".join(f"{image},{image % 2}\n" for image in IMAGES))
    page = dropped("first.csv", "codes.csv")
    assert save(page).disabled and "codes.csv" in " ".join(own.value for own in page.warning)
    if not any(own.label.startswith("0 (") for own in page.selectbox):
        page = checked(box(page, "Column gender is").select("gender").run())
    for code, value in (("0", "Female"), ("1", "Male")):
        page = checked(box(page, f"{code} (30 images)").select(value).run())
    checked(save(page).click().run())
    workspace = Workspace(tmp_path / "home")
    details = workspace.item("attributes", "codes", "my captions").details["attributes"]
    assert details["gender"]["mapping"] == {"0": "Female", "1": "Male"}


def test_human_captions_beside_a_models_are_a_row_of_their_own(dropped, table, formats, files, tmp_path):
    """They name the images of a file without ids, whose own human captions are not needed then."""
    (samples,) = formats.glob("*_samples_*.jsonl")
    for path in (samples, formats / "LLaVA_COCO_VAL.tsv"):
        (files / path.name).write_bytes(path.read_bytes())
    page = dropped("LLaVA_COCO_VAL.tsv", samples.name)
    assert list(table.rows.index) == ["LLaVA_COCO_VAL.tsv", samples.name, f"{samples.name} (second part)"]
    assert set(table.column("Images matched").values()) == {"40 of 40"} and table.rows["Save"].all()
    checked(save(page).click().run())
    rows = {(item.kind, item.name): item.rows for item in Workspace(tmp_path / "home").items()}
    assert rows["references", samples.stem] == 200
    assert rows["captions", samples.stem] == rows["captions", "LLaVA_COCO_VAL"] == 40


def test_several_captions_of_an_image_are_sets_if_the_user_says_so(dropped, tmp_path):
    page = dropped("several.csv")
    page = checked(page.radio[0].set_value("each").run())
    checked(save(page).click().run())
    assert stored(tmp_path) == {"several 1": "captions", "several 2": "captions"}


# in a browser


@pytest.fixture
def window(chrome):
    context = chrome.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


def drop(window, *files: Path) -> None:
    window.locator("input[type=file]").set_input_files([str(path) for path in files])
    window.get_by_role("heading", name=re.compile("^2 · ")).wait_for()
    settled(window)


def saved(window) -> None:
    window.get_by_role("button", name="Save", exact=True).click()
    window.get_by_text(re.compile("^Saved in my captions: ")).wait_for()


FIRST = re.compile(r"(first|second)\b.*LIC_?M? \(ngram, preview\)")


@pytest.mark.browser
def test_from_four_files_to_the_first_score_in_three_clicks(window, files):
    """Drop, Save, and the link to the answer, which was begun by itself."""
    names = ("first.csv", "second.csv", "human captions.csv", "labels.csv")
    with server(files / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, *(files / name for name in names))
        saved(window)
        window.get_by_role("link", name=re.compile("see the answer", re.IGNORECASE)).click()
        window.get_by_text(FIRST).first.wait_for(timeout=120_000)
        assert "collection=my+captions" in window.url
    kinds = {item.name: item.kind for item in Workspace(files / "home").items()}
    assert kinds == {"labels": "attributes", "human captions": "references", "first": "captions", "second": "captions"}


@pytest.mark.browser
def test_a_broken_photograph_is_named_before_the_others_are_saved(window, files):
    Image.new("RGB", (30, 20)).save(files / "1.png")
    (files / "2.png").write_text("no picture")
    with server(files / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, files / "first.csv", files / "1.png", files / "2.png")
        expect(window.locator(".cb-error")).to_contain_text("2.png")
        saved(window)
    assert {item.kind: item.rows for item in Workspace(files / "home").items()} == {"captions": 60, "images": 1}


@pytest.mark.browser
@pytest.mark.parametrize("beside", [None, "broken.json"])
def test_photographs_are_saved_without_captions_and_beside_a_broken_file(window, files, beside):
    Image.new("RGB", (30, 20)).save(files / "1.png")
    (files / "broken.json").write_text('[{"image_id": 1, "caption": "a man"}, {"image')
    with server(files / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, files / "1.png", *([files / beside] if beside else []))
        saved(window)
    assert [(item.kind, item.rows) for item in Workspace(files / "home").items()] == [("images", 1)]


@pytest.mark.browser
@pytest.mark.slow
def test_what_captions_lacks_is_one_button_on_that_page(window, files):
    """Without human captions nothing starts by itself."""
    with server(files / "home") as (address, _):
        open_page(window, f"{address}/Data")
        drop(window, files / "first.csv", files / "labels.csv")
        saved(window)
        open_page(window, f"{address}/Captions?collection=my+captions")
        window.get_by_text(re.compile(r"1 run: .* 1 to do; about .* s")).wait_for()
        window.get_by_role("button", name="Score these captions").click()
        window.get_by_text(re.compile(r"\d captions of \w+\..* Select a row")).wait_for(timeout=120_000)
        assert window.title().startswith("Captions")


@pytest.mark.browser
def test_a_file_that_takes_too_long_ends_nothing_but_its_own_reading(window, files, monkeypatch):
    monkeypatch.setenv("CAPBIAS_READ_SECONDS", "0.000001")
    with server(files / "home") as (address, process):
        open_page(window, f"{address}/Data")
        drop(window, files / "first.csv")
        window.locator(".cb-error").get_by_text(re.compile("first.csv takes longer")).wait_for()
        open_page(window, f"{address}/Data")
        assert process.poll() is None
