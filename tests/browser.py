"""A real server and a real browser, for the browser tests and the benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP *.test 127.0.0.1",
    "--js-flags=--always-sparkplug",  # a page is not open for long enough to be worth more
]
# Without a graphics card, each picture of an animation takes the processor's time.
WINDOW = {"viewport": {"width": 1280, "height": 1000}, "reduced_motion": "reduce"}
READY = "[data-testid=stApp][data-test-script-state=notRunning]"
DRAWN = """() => new Promise(done => {
    const drawn = () => { seen.disconnect(); clearTimeout(last); done(); };
    let quiet = setTimeout(drawn, 250);
    const last = setTimeout(drawn, 5000);
    const seen = new MutationObserver(() => { clearTimeout(quiet); quiet = setTimeout(drawn, 250); });
    seen.observe(document.body, {childList: true, subtree: true});
})"""  # elements are drawn a moment after the script that made them ended; a page with a clock never rests


# `urlopen` keeps the proxies of the environment in which it was first called, such as a test's.
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def chromium() -> str | None:
    """The system's Chromium, where there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(
    home: Path, script: Path = ROOT / "app.py", port: int = 0, folder: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen]]:
    """A server on a workspace folder: its address and process; the whole process group ends after it.

    folder: where `capbias app` starts the server, which may hold secrets; without one `streamlit run` starts it. Raises
    AssertionError at the end if a page raised anything but a CapbiasError.
    """
    port = port or free_port()
    command = ["capbias_core", "app", "--port", str(port)]
    if not folder:
        command = ["streamlit", "run", str(script), "--server.headless", "true", "--server.port", str(port)]
        command += ["--server.address", "127.0.0.1"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder or script.parent,
            env={**os.environ, "PYTHONPATH": str(script.parent), "CAPBIAS_HOME": str(home)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until_healthy(address)
            yield address, process
        finally:
            with suppress(ProcessLookupError):  # it was killed
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            log.seek(0)
            printed = log.read()
            assert "Uncaught app execution" not in printed, printed[-5000:]


def wait_until_healthy(address: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            NO_PROXY.open(f"{address}/_stcore/health", timeout=2)
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextmanager
def browser() -> Iterator:
    """A Playwright browser on the system's Chromium, which is ended hard: one that is stuck never closes when asked."""
    from playwright.sync_api import sync_playwright

    before = _children()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield running
        for process in _children() - before:
            with suppress(psutil.NoSuchProcess):
                if process.name().startswith("chrom"):
                    process.kill()


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def settled(page, timeout: float = 60_000) -> None:
    """Wait until the script of the page has run to its end, and what it made is drawn."""
    page.wait_for_selector(READY, timeout=timeout)
    page.evaluate(DRAWN)
    page.wait_for_selector(READY, timeout=timeout)


def open_page(page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("h1")  # before its first run a page looks as if it had run
    settled(page)


def choose(page, label: str, option: str) -> None:
    """Choose from a select box; again where a run of the script that was still under way closed the open list."""
    from playwright.sync_api import TimeoutError

    wanted = page.get_by_role("option", name=option)
    for _ in range(3):
        settled(page)
        page.get_by_role("combobox", name=label).click()
        try:
            wanted.click(timeout=5_000)
            return
        except TimeoutError:
            continue
    raise AssertionError(f"the list of {label!r} never offered {option!r}")
