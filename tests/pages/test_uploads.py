"""Uploads on disk, from one drop to the next."""

from __future__ import annotations

from io import BytesIO

import pytest
import streamlit as st

from pages.ui import uploads
from pages.ui.uploads import discard, held_paths, place_of


class Upload(BytesIO):
    """A file as the drop zone gives it."""

    def __init__(self, file_id: str, name: str, content: bytes):
        super().__init__(content)
        self.file_id, self.name = file_id, name


@pytest.fixture(autouse=True)
def _session(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})


def test_files_that_are_held_stay_where_they_are_when_others_come_or_go(tmp_path):
    first, twin, last = Upload("1", "a.csv", b"one"), Upload("2", "a.csv", b"two"), Upload("3", "b.csv", b"three")
    before = held_paths(str(tmp_path), [first, twin])
    assert [path.read_bytes() for path in before] == [b"one", b"two"]
    written = [path.stat().st_mtime_ns for path in before]
    after = held_paths(str(tmp_path), [first, twin, last])
    assert after[:2] == before and [path.stat().st_mtime_ns for path in before] == written
    assert after[2].read_bytes() == b"three"
    assert held_paths(str(tmp_path), [last, first]) == [after[2], after[0]]
    assert not after[1].exists(), "what left the drop zone leaves the disk"
    discard()
    assert not after[0].exists()


def test_files_that_others_removed_are_written_again(tmp_path):
    upload = Upload("1", "a.csv", b"one")
    (before,) = held_paths(str(tmp_path), [upload])
    place = place_of(before)
    before.unlink()
    upload.seek(0)
    (after,) = held_paths(str(tmp_path), [upload])
    assert after.read_bytes() == b"one" and place_of(after) == place, "what was chosen for it holds"


@pytest.mark.parametrize(
    "name", ["../../x.csv", "..", ".", "", "a/../../b.csv", "a\0b.csv", "x" * 300 + ".csv", "\u20ac" * 200]
)
def test_an_upload_stays_in_its_folder_whatever_it_is_called(tmp_path, name):
    (tmp_path / "home").mkdir()
    (path,) = held_paths(str(tmp_path / "home"), [Upload("1", name, b"one")])
    assert path.is_relative_to(tmp_path / "home" / "uploads") and path.read_bytes() == b"one"
    assert path.suffix == (".csv" if name.endswith(".csv") else "")
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_only_files_in_its_folder_are_taken_from_an_archive(tmp_path, monkeypatch):
    """Whatever the process that unpacks it answers, also by a link."""
    secret = tmp_path / "secret.csv"
    secret.write_text("secret")

    def taken_over(name, read, path, folder):
        (folder / "link.csv").symlink_to(secret)
        (folder / "fine.csv").write_text("fine")
        return [secret, folder / "link.csv", folder / ".." / ".." / ".." / "secret.csv", folder / "fine.csv"]

    monkeypatch.setattr(uploads, "within_limits", taken_over)
    (path,) = held_paths(str(tmp_path / "home"), [Upload("1", "a.zip", b"PK")])
    assert path.read_text() == "fine"
