"""Pages of a real server whose disk fills up or becomes read-only, whose workspace is damaged or goes."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.workspace.store import Workspace
from tests.browser import open_page, server
from tests.disks import SmallDisk, small_disk
from tests.runs.test_engine import fill

pytestmark = pytest.mark.browser

PAGES = ("", "Data", "Scores", "Runs")


@pytest.fixture
def page(chrome):
    context = chrome.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()


def scored(home: Path) -> None:
    """A workspace with a caption set, labels and a finished run."""
    request, engine = fill(home), Engine(home)
    assert engine.wait(engine.submit(plan(engine.workspace, request), "c"))[0].status == "finished"


def full(disk: SmallDisk) -> None:
    disk.fill()


def read_only(disk: SmallDisk) -> None:
    disk.read_only()


def damaged(disk: SmallDisk) -> None:
    file = disk.folder / "home" / "capbias.sqlite"
    file.write_bytes(b"\xff" * file.stat().st_size)


def gone(disk: SmallDisk) -> None:
    shutil.rmtree(disk.folder / "home")


# What happens under the server -> what its pages say; of a full or read-only disk they show what is there.
STATES = {full: None, read_only: None, damaged: "cannot be used", gone: "capbias.sqlite"}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        pytest.param(*own, id=own[0].__name__, marks=pytest.mark.slow if own[0] in (full, damaged) else ())
        for own in STATES.items()
    ],
)
def test_every_page_shows_what_is_there_or_one_sentence(page, tmp_path, harm, message):
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        scored(disk.folder / "home")
        with server(disk.folder / "home") as (address, _):
            open_page(page, f"{address}/Scores?collection=c")
            expect(page.get_by_text(re.compile("m: LIC_M")).first).to_be_visible()
            harm(disk)
            for name in PAGES:
                open_page(page, f"{address}/{name}?collection=c")
                expect(page.get_by_test_id("stException")).to_have_count(0)
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                if message:
                    expect(page.locator(".cb-error").filter(has_text=message)).to_have_count(1)
                elif name == "Scores":
                    expect(page.get_by_text(re.compile("m: LIC_M")).first).to_be_visible()
        assert (disk.folder / "home" / "capbias.sqlite").exists() == (harm is not gone)


@pytest.mark.slow
def test_a_run_that_is_started_on_a_full_disk_is_said_and_the_page_stays(page, tmp_path):
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        scored(disk.folder / "home")
        with server(disk.folder / "home") as (address, _):
            open_page(page, f"{address}/Scores?collection=c&seeds=5")
            disk.fill()
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.locator(".cb-error").filter(has_text="no space left")).to_be_visible()
            disk.free()
            open_page(page, f"{address}/Scores?collection=c&seeds=5")
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.get_by_text(re.compile("2 runs: 2 known, 0 under way"))).to_be_visible(timeout=60_000)
        assert {run.status for run in Workspace(disk.folder / "home").runs()} == {"finished"}


@pytest.mark.slow
def test_two_servers_on_one_workspace_see_the_same(page, tmp_path):
    home = tmp_path / "home"
    scored(home)
    with server(home) as (one, _), server(home) as (two, _):
        open_page(page, f"{one}/Scores?collection=c&seeds=5")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_text(re.compile("0 to do"))).to_be_visible(timeout=60_000)
        open_page(page, f"{two}/Scores?collection=c&seeds=5")
        expect(page.get_by_text(re.compile("2 runs: 2 known, 0 under way"))).to_be_visible(timeout=60_000)
    assert {run.status for run in Workspace(home).runs()} == {"finished"}
