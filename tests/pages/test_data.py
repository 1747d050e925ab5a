"""The page Data: what dropped files are, what blocks Save, what is stored and deleted; attributes; uploads on disk."""

from __future__ import annotations

import gc
import pickle
import zipfile
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st

from capbias_core.attributes import attribute_folder
from capbias_core.workspace.store import Workspace
from pages.ui import uploads
from pages.ui.plain import plain
from tests.app import errors, html, opened
from tests.collections_ import keep

pytestmark = pytest.mark.long

IMAGES, WHO = range(60), ("woman", "man")
LINES = {
    "first.csv": [f"{image},a {WHO[image % 2]} with a {('cat', 'dog')[image % 2]}" for image in IMAGES],
    "human captions.csv": [f"{image},a {WHO[image % 2]} stands {at}" for image in IMAGES for at in ("here", "there")],
    "several.csv": [f"{image},a {WHO[image % 2]} walks {way}" for image in IMAGES for way in ("on", "off")],
    "labels.csv": [f"{image},{('Female', 'Male')[image % 2]}" for image in IMAGES],
    "one.csv": [f"{image},Male" for image in IMAGES],
    "strange.csv": [f"{image},a dog and a cat" for image in range(500, 520)],
    "elsewhere/first.csv": [f"{image},a dog and a cat" for image in IMAGES],
}
HEADS = dict.fromkeys(("labels.csv", "one.csv"), "image_id,gender")


class Table:
    """Stands in for the editable table: its rows by file, and what a user changes in them."""

    def __init__(self):
        self.rows, self.changes = pd.DataFrame(), {}

    def __call__(self, frame: pd.DataFrame, **_more) -> pd.DataFrame:
        self.rows, edited = frame.set_index("File"), frame.copy()
        for file, changed in self.changes.items():
            for column, value in changed.items():
                edited.loc[edited["File"] == file, column] = value
        return edited


@pytest.fixture
def table(monkeypatch) -> Table:
    table = Table()
    monkeypatch.setattr("streamlit.data_editor", table)
    return table


@pytest.fixture
def dropped(tmp_path, table, workspace, monkeypatch):
    """The page with files, as a zip on the server; nothing is scored."""
    for name in ("start_cheap", "score_now"):
        monkeypatch.setattr(f"pages.ui.files.{name}", lambda *_args: False)

    def drop(*names: str | Path):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for name in names:
                if isinstance(name, Path):
                    archive.write(name, name.name)
                    continue
                head = HEADS.get(name, "image_id,caption")
                archive.writestr(name, "\n".join([head, *LINES[name]]) + "\n")
        return run(opened("Files").text_input(key="path_0").set_value(str(tmp_path / "all.zip")))

    return drop


def run(control):
    page = control.run()
    assert not page.exception
    return page


def save(page):
    (button,) = [button for button in page.button if button.label == "Save" and button.key != "save_weights"]
    return button


def stored(workspace: Workspace) -> dict[str, str]:
    return {item.name: item.kind for item in workspace.items()}


def test_save_stores_what_the_table_says(dropped, table, workspace):
    table.changes = {"first.csv": {"Name": "mine"}}
    page = dropped("first.csv", "labels.csv")
    assert tuple(table.rows["Type"]) == ("Captions of a model", "Labels") and table.rows["Save"].all()
    assert set(table.rows["Images matched"]) == {"60 of 60"}
    (used,) = next(each.value for each in page.dataframe if "after balancing" in each.value).to_dict("records")
    assert (used["captioner"], used["labelled"], used["after balancing"]) == ("mine", 60, 60)
    page = run(save(page).click())
    assert len(page.success) == 1 and stored(workspace) == {"mine": "captions", "labels": "labels"}
    assert not list((workspace.folder / "uploads").iterdir())


class Exploit:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_what_cannot_be_read_has_one_error_and_is_not_saved(dropped, workspace, tmp_path):
    ran = tmp_path / "ran"
    refused = {"evil.pkl": pickle.dumps([Exploit(ran)]), "columns.csv": b"colour,size\nred,2\n", "2.png": b"no picture"}
    refused["broken.json"] = b'[{"image_id": 1, "caption": "a man"}, {"image'
    for name, content in refused.items():
        (tmp_path / name).write_bytes(content)
        page = dropped(tmp_path / name)
        assert len(errors(page)) == 1 and name in errors(page)[0]
        assert "Save" not in {button.label for button in page.button}
    assert not stored(workspace) and not ran.exists()


@pytest.mark.parametrize(
    ("names", "named"),
    [
        (("first.csv", "one.csv"), "one.csv"),  # labels of one value
        (("first.csv", "elsewhere/first.csv"), "first"),
    ],
)
def test_what_blocks_save_is_named(dropped, workspace, names, named):
    page = dropped(*names)
    assert save(page).disabled and named in " ".join(box.value for box in page.warning)
    if page.checkbox:  # the user may know better
        assert not save(run(page.checkbox[0].check())).disabled
    assert not stored(workspace)


def test_a_set_is_replaced_only_if_the_user_says_so(dropped, workspace):
    run(save(dropped("first.csv")).click())
    page = dropped("first.csv")
    assert not page.checkbox and not save(page).disabled, "the same captions replace nothing"
    page = dropped("elsewhere/first.csv")
    assert save(page).disabled and "first" in page.checkbox[0].label
    run(save(run(page.checkbox[0].check())).click())
    (item,) = workspace.items("captions")
    assert set(workspace.frame(item.hash)["caption"]) == {"a dog and a cat"}


def test_only_the_item_that_was_named_is_deleted(workspace):
    def captions(name: str, text: str = "of") -> None:
        keep(workspace, captions={name: pd.DataFrame({"image_id": [1, 2], "caption": [f"{name} {text}"] * 2})})

    def confirming(name: str):
        page, items = opened("Files", collection="c"), workspace.items()[::-1]
        row = [item.name for item in items].index(name)
        page.session_state[f"kept {len(items)} {items[0].created}"] = {"selection": {"rows": [row], "columns": []}}
        return run(page)

    captions("victim"), captions("precious")
    page = confirming("victim")
    captions("new")
    page = run(page.button(key="delete").click())
    assert stored(workspace).keys() == {"precious", "new"} and len(page.success) == 1
    for text in (
        "of",
        "other words",
    ):  # deleted and saved again since the page was drawn, with the same captions or not
        page = confirming("precious")
        workspace.delete(workspace.item("captions", "precious", "c"))
        captions("precious", text)
        page = run(page.button(key="delete").click())
        assert stored(workspace).keys() == {"precious", "new"} and len(errors(page)) == 1 and not page.success


OWN = 'name = "mine"\nvalues = ["Female", "Male"]\nmask_token = "<m>"\n[words]\nFemale = ["woman"]\nMale = ["man"]\n'


def test_an_attribute_is_shown(workspace):
    folder = attribute_folder(workspace.folder)
    folder.mkdir()
    (folder / "mine.toml").write_text(OWN)
    (folder / "broken.toml").write_text(OWN.replace('"man"]', '"man"'))
    page = opened("Labels and attributes", pick="mine")
    assert str(folder) in html(page) and page.code[0].value == OWN.strip()
    page = opened("Labels and attributes", pick="broken.toml")
    assert len(errors(page)) == 1 and "line 6" in errors(page)[0]


# Uploads on disk


class Upload(BytesIO):
    """A file as Streamlit's uploader gives it."""

    def __init__(self, file_id: str, name: str, content: bytes):
        super().__init__(content)
        self.file_id, self.name = file_id, name


@pytest.fixture
def held(monkeypatch, tmp_path):
    monkeypatch.setattr(st, "session_state", {})
    return lambda *files: uploads.held_paths(str(tmp_path), files)


def test_uploads_stay_on_disk_while_they_are_in_the_drop_zone(held):
    first, twin, last = Upload("1", "a.csv", b"one"), Upload("2", "a.csv", b"two"), Upload("3", "b.csv", b"three")
    before = held(first, twin)
    assert [path.read_bytes() for path in before] == [b"one", b"two"]
    after = held(first, twin, last)
    assert after[:2] == before and after[2].read_bytes() == b"three"
    assert held(last, first) == [after[2], after[0]]
    assert not after[1].exists() and after[0].exists()
    place = uploads.path_in_uploads(after[0])
    after[0].unlink()  # by another process: it is written again, and what was chosen for it holds
    first.seek(0)
    (again,) = held(first)
    assert again.read_bytes() == b"one" and uploads.path_in_uploads(again) == place
    uploads.discard()
    assert not again.exists()
    (last,) = held(first)
    st.session_state.clear()  # as when a tab was closed
    gc.collect()
    assert not last.exists()


@pytest.mark.parametrize("name", ["../../x.csv", "..", "", "a/../../b.csv", "a\0b.csv", "x" * 300 + ".csv", "€" * 200])
def test_an_upload_stays_in_its_folder(held, tmp_path, name):
    (path,) = held(Upload("1", name, b"one"))
    assert path.is_relative_to(tmp_path / "uploads") and path.read_bytes() == b"one"
    assert path.suffix == (".csv" if name.endswith(".csv") else "")
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_only_files_in_its_folder_are_taken_from_an_archive(held, tmp_path, monkeypatch):
    """Whatever the process that unpacks it answers, also by a link."""
    secret = tmp_path / "secret.csv"
    secret.write_text("secret")

    def taken_over(_name, _read, _path, folder):
        (folder / "link.csv").symlink_to(secret)
        (folder / "fine.csv").write_text("fine")
        return [secret, folder / "link.csv", folder / ".." / ".." / ".." / "secret.csv", folder / "fine.csv"]

    monkeypatch.setattr(uploads, "within_limits", taken_over)
    (path,) = held(Upload("1", "a.zip", b"PK"))
    assert path.read_text() == "fine"


def test_labels_of_controls_show_markdown_as_written():
    for name in ("sat_masked_person", "non-binary (1,230 images)", "C+ a: b & c", "x > 3"):
        assert plain(name) == name
    marks = {"*a*": r"\*a\*", "_x_": r"\_x\_", "1. a": r"1\. a", ":red[x]": r"\:red\[x\]", "&lt;": r"\&lt;"}
    assert {name: plain(name) for name in marks} == marks
    for address in ("https://evil.test", "see www.evil.test", "a@evil.test"):
        assert plain(address).replace("\u200b", "").replace("\\", "") == address != plain(address).replace("\\", "")


def test_word_vectors_are_uploaded_and_the_file_is_not_kept(workspace):
    captions = pd.DataFrame({"image_id": ["1", "2"], "caption": ["a cat", "a dog"]})
    keep(workspace, captions={"sat": captions})
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("glove.txt", "cat 0.5 1\ndog 1 0.5\nhouse 0 0\n")
    page = opened("Models and vectors", collection="c")
    page.file_uploader(key="vectors_upload_0").set_value(("glove.zip", content.getvalue(), "application/zip")).run()
    page = run(page.button(key="vectors").click())
    assert "2 of 3 words" in page.success[0].value and not errors(page)
    (item,) = workspace.items("vectors", "c")
    assert item.name == "glove" and item.source == "glove.zip" and item.details["dimension"] == 2
    assert not Path(item.details["path"]).exists() and not list((workspace.folder / "uploads").iterdir())
    page.file_uploader(key="vectors_upload_1").set_value(("labels.csv", b"image_id,gender\n1,Male\n", "text/csv")).run()
    assert "is not a vector file" in " ".join(errors(run(page.button(key="vectors").click())))


def test_what_is_open_is_asked_once_and_the_answer_reads_on(dropped, workspace):
    """Nothing is preselected beside several options, and nothing can be saved before the answer."""
    page = dropped("first.csv", "several.csv", "labels.csv")
    assert not [button for button in page.button if button.label == "Save" and button.key != "save_weights"]
    (box,) = [box for box in page.selectbox if box.label == "Answer"]
    (button,) = [button for button in page.button if button.label == "Read with these answers"]
    assert box.value is None and button.disabled and "captions by people" in box.options
    page = run(box.select("captions by people"))
    (button,) = [button for button in page.button if button.label == "Read with these answers"]
    page = run(button.click())
    run(save(page).click())
    assert stored(workspace) == {"first": "captions", "several": "references", "labels": "labels"}


def test_files_of_other_images_are_refused_with_a_box_for_the_type_of_each(dropped):
    page = dropped("strange.csv", "labels.csv")
    assert any("is surely in" in each.proto.body for each in page.get("html"))
    assert {"Type of strange.csv", "Type of labels.csv"} <= {box.label.replace("\\", "") for box in page.selectbox}
