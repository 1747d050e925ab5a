"""What a user does, in a real browser on a real server."""

from __future__ import annotations

import json
import os
import pickle
import re
import time
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect

from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace
from tests.browser import open_page, server, settled

pytestmark = pytest.mark.browser

HOSTILE = [
    '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe> a man with a dog',
    "![pixel](https://example.com/pixel.png) a woman with a cat",
    "<img src=x onerror='window.pwned = 1'> $\\frac{1}{2}$ **bold** [link](https://example.com)",
]


@pytest.fixture
def page(chrome):
    """A fresh browser window that notes every request that leaves this machine."""
    context = chrome.new_context(viewport={"width": 1280, "height": 1000})
    window = context.new_page()
    window.outside = []
    context.on("request", lambda request: _note_outside(window, request.url))
    yield window
    assert window.outside == []
    context.close()


def _note_outside(window, url: str) -> None:
    if not re.match(r"(https?|wss?)://127\.0\.0\.1|data:|blob:", url):
        window.outside.append(url)


def loads_torch(process) -> bool:
    """Whether the server's own process has torch's library mapped."""
    return "libtorch" in Path(f"/proc/{process.pid}/maps").read_text()


def go(page, name: str, sign: str) -> None:
    page.get_by_test_id("stSidebar").get_by_role("link", name=name).click()
    page.wait_for_selector(sign)
    settled(page)


def upload(page, *paths: Path) -> None:
    settled(page)
    page.locator("input[type=file]").set_input_files([str(path) for path in paths])


def save(page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text(re.compile(r"^Saved in ")).wait_for()
    settled(page)


@pytest.mark.slow
def test_from_the_demo_to_the_words_of_an_uploaded_captioner(page, tmp_path, coco_bias):
    with server(tmp_path / "home") as (address, process):
        open_page(page, address)
        page.get_by_role("button", name="Try it on the demo data").click()
        page.get_by_text("amplifier amplifies gender bias: LIC").wait_for(timeout=240_000)

        go(page, "Data", "text=Your data")
        upload(page, coco_bias / "annotations" / "attributes.csv", coco_bias / "results" / "sat.json")
        save(page)
        page.get_by_text("Photographs in a folder on the server").click()
        page.get_by_role("textbox", name="Folder on the server").fill(str(coco_bias / "images"))
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Use these photographs").click()
        page.get_by_text("24 photographs found for the collection my captions").wait_for()

        page.get_by_role("button", name="Score now").click()
        headline = page.get_by_text(re.compile(r"sat: LIC_M \(ngram, preview\) \d"))
        headline.wait_for(timeout=240_000)
        value = float(re.search(r"LIC_M \(ngram, preview\) (\d+\.\d)", headline.inner_text())[1])
        assert abs(value - 44.4) <= 2.5  # LIC Table 2, SAT

        open_page(page, f"{address}/?collection=my+captions")
        page.locator(".cb-rows a[href*='word=']").last.click()
        page.wait_for_url(re.compile("word="))
        page.get_by_text("Most revealing words").wait_for()
        settled(page)
        asked = page.get_by_role("textbox", name="With the word")
        expect(asked).not_to_have_value("")
        word = asked.input_value()
        listed = page.get_by_text(re.compile(r"captions of sat\..* Select")).inner_text()
        assert word in page.url and int(listed.split()[0].replace(",", "")) < 10_780
        page.reload()
        page.get_by_text("Most revealing words").wait_for()
        settled(page)
        expect(asked).to_have_value(word)
        assert page.get_by_text(re.compile(r"captions of sat\..* Select")).inner_text() == listed

        open_page(page, f"{address}/Captions?collection=my+captions&image=109313")
        page.get_by_alt_text("Photograph 109313").wait_for()
        assert not loads_torch(process)


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_wrong_files_give_one_message_and_leave_nothing(page, tmp_path):
    home, marker = tmp_path / "home", tmp_path / "ran"
    wrong = {
        "broken.json": (b'[{"image_id": 1, "caption": "a man"}, {"image', "broken.json"),
        "evil.pkl": (pickle.dumps([Exploit(marker)]), "system"),
        "columns.csv": (b"colour,size\nred,2\nblue,3\n", "colour"),
    }
    with server(home) as (address, _):
        open_page(page, f"{address}/Data")
        for name, (data, part) in wrong.items():
            path = tmp_path / name
            path.write_bytes(data)
            open_page(page, f"{address}/Data")
            upload(page, path)
            error = page.locator(".cb-error")
            error.first.wait_for()
            settled(page)
            expect(error).to_have_count(1)
            text = error.inner_text()
            assert part in text and "Traceback" not in text
            expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    assert not marker.exists()
    assert Workspace(home).items() == []
    assert list((home / "data").iterdir()) == []
    left = [path.name for path in (home / "uploads").rglob("*.*")]
    assert left == ["columns.csv"], "the one whose columns can still be chosen, for an hour"


@pytest.mark.slow
def test_a_caption_is_only_ever_text(page, tmp_path):
    home = tmp_path / "home"
    labels = "image_id,gender\n" + "".join(f"{n},{'Female' if n % 2 else 'Male'}\n" for n in range(60))
    captions = [{"image_id": n, "caption": HOSTILE[n % 3]} for n in range(60)]
    (tmp_path / "labels.csv").write_text(labels)
    (tmp_path / "hostile.json").write_text(json.dumps(captions))
    with server(home) as (address, _):
        open_page(page, f"{address}/Data")
        upload(page, tmp_path / "labels.csv", tmp_path / "hostile.json")
        page.get_by_text("hostile.json: captions of a model").wait_for()
        settled(page)
        assert_harmless(page)
        save(page)
        open_page(page, f"{address}/Scores?collection=my+captions")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text(re.compile(r"hostile: LIC_M")).wait_for(timeout=60_000)
        assert_harmless(page)
        for image in range(3):
            open_page(page, f"{address}/Captions?collection=my+captions&image={image}")
            page.get_by_text("What if").wait_for()
            box = page.get_by_role("textbox", name="Edit the caption")
            expect(box).to_have_value(HOSTILE[image])
            box.fill(HOSTILE[(image + 1) % 3] + " ")
            box.press("Enter")
            page.get_by_text("against the original").wait_for()
            assert_harmless(page)


def assert_harmless(page) -> None:
    assert page.evaluate("window.pwned") is None
    assert page.locator("iframe[srcdoc], img[src*='example.com'], img[src='x'], a[href*='example.com']").count() == 0


@pytest.fixture
def demo_home(tmp_path) -> Path:
    load_demo(Workspace(tmp_path / "home"))
    return tmp_path / "home"


def worker_of(process) -> psutil.Process:
    """The process below the server that has torch."""
    below = psutil.Process(process.pid).children(recursive=True)
    return next(child for child in below if "libtorch" in Path(f"/proc/{child.pid}/maps").read_text())


def wait_for(condition, seconds: float):
    """The first true value of a condition, or a failure."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


@pytest.mark.slow
def test_a_torch_run_is_followed_cancelled_and_survives_its_workers_death(page, demo_home):
    workspace = Workspace(demo_home)

    def run():
        return workspace.runs()[0]

    with server(demo_home) as (address, process):
        asked = "attacker=lstm_bi&seeds=1&sets=amplifier&references=none&metrics=LIC"
        open_page(page, f"{address}/Scores?collection={DEMO}&{asked}")
        page.get_by_role("button", name="Run", exact=True).click()
        wait_for(lambda: workspace.runs() and "epoch" in run().message, 90)
        page.get_by_test_id("stProgress").first.wait_for()
        early = run().progress
        wait_for(lambda: run().progress > early + 0.02, 60)

        go(page, "Data", "text=Your data")  # the page stays usable meanwhile
        go(page, "Runs", "text=All runs")
        page.get_by_text(re.compile("epoch")).first.wait_for()
        other_tab = page.context.new_page()
        open_page(other_tab, f"{address}/Runs")
        other_tab.get_by_text(re.compile("epoch")).first.wait_for()
        other_tab.reload()
        other_tab.get_by_text(re.compile("epoch")).first.wait_for()
        assert run().status == "running"

        started = time.monotonic()
        other_tab.get_by_role("button", name="Cancel").click()
        wait_for(lambda: run().status == "cancelled", 5)
        worker = worker_of(process)
        wait_for(lambda: worker.cpu_percent(0.5) < 30, 5)
        assert time.monotonic() - started < 10
        page.get_by_text("No run is under way.").wait_for()
        other_tab.close()

        open_page(page, f"{address}/Runs?run={run().run_id}")
        page.get_by_role("button", name="Repeat").click()
        wait_for(lambda: run().status == "running" and "epoch" in run().message, 60)
        worker_of(process).kill()
        wait_for(lambda: run().status == "died", 20)
        open_page(page, f"{address}/Runs?run={run().run_id}")
        page.get_by_text(re.compile("died: its process ended")).first.wait_for()
        page.get_by_role("button", name="Repeat").wait_for()
        assert workspace.results().empty
        with pytest.raises(Exception, match="no model of run"):
            workspace.array(run().run_id, "model")
        assert not loads_torch(process)
