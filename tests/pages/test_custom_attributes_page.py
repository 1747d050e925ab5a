"""The Attributes page, objects on the Data page, and links to what is gone, in a real browser."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from capbias_core.attributes import parse_attribute
from capbias_core.workspace.custom_attributes import attribute_folder
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from tests.browser import choose, open_page, server, settled

pytestmark = pytest.mark.browser

OWN = 'name = "mine"\nvalues = ["Female", "Male"]\nmask_token = "<m>"\n[words]\nFemale = ["woman"]\nMale = ["man"]\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    load_demo(Workspace(folder))
    return folder


@pytest.fixture(scope="module")
def address(home):
    with server(home) as (address, _):
        yield address


@pytest.fixture(scope="module")
def page(chrome):
    return chrome.new_page(viewport={"width": 1280, "height": 1000})


def toml(page):
    """The text behind the form."""
    text = page.get_by_label("The attribute, as TOML")
    if not text.is_visible():
        page.get_by_text("The same as TOML").click()
    return text


def fill(page, title: str, text: str) -> None:
    page.get_by_role("textbox", name=title, exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    settled(page)


def check(page, text: str) -> None:
    toml(page).fill(text)
    page.keyboard.press("Control+Enter")
    settled(page)  # the form above changes with the text, and the button moves
    page.get_by_role("button", name="Check").click()
    settled(page)


def test_an_attribute_is_checked_tried_kept_and_deleted(page, home, address):
    open_page(page, f"{address}/Attributes?pick=gender")
    assert 'name = "gender"' in toml(page).input_value()
    check(page, OWN.replace('"man"]', '"man"'))
    expect(page.get_by_role("alert")).to_contain_text("at line 6")
    assert page.get_by_role("button", name="Keep").count() == 0
    check(page, OWN.replace("mine", "gender"))
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_role("alert")).to_contain_text("which another attribute has")
    assert not attribute_folder(home).exists()
    check(page, OWN)
    frame = Workspace(home).frame(Workspace(home).item("references", "human", DEMO).hash)
    men = sum("man" in caption.replace(".", "").lower().split() for caption in frame["caption"])
    choose(page, "Words and examples of", "human (demo)")
    expect(page.get_by_text("Words found")).to_contain_text(f"man {men:,}")
    page.get_by_role("button", name="Keep").click()
    page.get_by_text("Kept mine.").wait_for()
    assert (attribute_folder(home) / "mine.toml").read_text() == OWN
    page.get_by_role("button", name="Delete mine").click()
    (attribute_folder(home) / "mine.toml").write_text(OWN + "# by another visitor\n")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("alert")).to_contain_text("mine has changed")
    page.get_by_role("button", name="Delete mine").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_text("Deleted mine.").wait_for()
    assert list(attribute_folder(home).iterdir()) == []


def test_the_form_and_the_toml_say_the_same(page, address):
    open_page(page, f"{address}/Attributes?pick=a+new+one")
    fill(page, "Name", "smile")
    expect(page.get_by_role("textbox", name="Title")).to_have_value("smile")
    fill(page, "Values, one a line", "smiling\nserious")
    fill(page, "Words that name smiling", "smiling, smiles")
    text = toml(page).input_value()
    assert parse_attribute(text, "a").words == {"smiling": ("smiling", "smiles"), "serious": ()}
    toml(page).fill(text.replace("serious", "neutral"))
    page.keyboard.press("Control+Enter")
    settled(page)
    expect(page.get_by_role("textbox", name="Words that name neutral")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("smile")


def test_an_own_attribute_is_offered_for_a_column(page, home, address, tmp_path):
    attribute_folder(home).mkdir(exist_ok=True)
    (attribute_folder(home) / "mine.toml").write_text(OWN.replace("mask_token", 'columns = ["what"]\nmask_token'))
    rows = "".join(f"{image},{('Female', 'Male')[image % 2]}\n" for image in range(1001, 1041))
    (tmp_path / "labels [of] $people.csv").write_text("image_id,what\n" + rows)
    open_page(page, f"{address}/Data")
    page.get_by_label("or a path on the server").fill(str(tmp_path / "labels [of] $people.csv"))
    page.get_by_label("or a path on the server").press("Enter")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved in my captions: labels of people.").wait_for()
    (table,) = Workspace(home).items("attributes", "my captions")
    assert table.details["attributes"]["mine"]["attribute"]["words"] == {"Female": ["woman"], "Male": ["man"]}


def test_objects_are_loaded(page, home, address, tmp_path):
    found = [{"image_id": 1001, "category_id": 3}, {"image_id": 1002, "category_id": 4}]
    content = {"images": [], "categories": [{"id": 3, "name": "umbrella"}], "annotations": found}
    (tmp_path / "instances.json").write_text(json.dumps(content))
    open_page(page, f"{address}/Data")
    page.get_by_label("or a path on the server").fill(str(tmp_path / "instances.json"))
    page.get_by_label("or a path on the server").press("Enter")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved in my captions: instances.").wait_for()
    (item,) = Workspace(home).items("objects")
    assert Workspace(home).frame(item.hash).to_numpy().tolist() == [["1001", "umbrella"]]


def test_a_link_to_what_is_gone_says_so(page, address):
    open_page(page, f"{address}/Scores?collection=demo&sets=faithful&sets=nobody")
    expect(page.get_by_text("The link names the captioner 'nobody', which is not here.")).to_be_visible()
    open_page(page, f"{address}/Scores?collection=nothing&sets=nobody&columns=nothing")
    expect(page.get_by_text("The link names the collection 'nothing', which is not here.")).to_be_visible()
    assert page.get_by_text("which is not here").count() == 1, "what was chosen in it is gone with it"
    open_page(page, f"{address}/Scores?collection=demo&sets=faithful")
    assert page.get_by_text("which is not here").count() == 0
