"""Seconds from a fresh clone to the first page and to the first answer.

    python -m benchmarks.fresh_clone [--source FOLDER] [--commit NAME]

Clones the repository into a temporary folder, runs `make app` there with empty caches of pip and uv and an empty
workspace, and opens the page in Chromium as soon as the server answers. It downloads everything that users download.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from tests.browser import ROOT, browser, free_port

NOT_YET = ("Nothing to show", "Being measured", "Running")
PATIENCE = 1200.0


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default=str(ROOT), help="the repository to clone")
    parser.add_argument("--commit", default="", help="what to check out there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        clone, port = Path(place) / "capbias", free_port()
        subprocess.run(["git", "clone", "-q", args.source, str(clone)], check=True)
        if args.commit:
            subprocess.run(["git", "-C", str(clone), "checkout", "-q", args.commit], check=True)
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CAPBIAS_HOME")},
            "UV_CACHE_DIR": f"{place}/uv",
            "PIP_CACHE_DIR": f"{place}/pip",
            "STREAMLIT_SERVER_HEADLESS": "true",
        }
        start = time.monotonic()
        server = subprocess.Popen(
            ["make", "--no-print-directory", "app", f"PORT={port}"], cwd=clone, env=environment, start_new_session=True
        )
        try:
            _measure(f"http://127.0.0.1:{port}", start, server)
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGTERM)
                server.wait(20)


def _measure(address: str, start: float, server: subprocess.Popen) -> None:
    def said(what: str) -> None:
        print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)

    while True:
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2)
            break
        except OSError:
            if server.poll() is not None or time.monotonic() - start > PATIENCE:
                raise SystemExit("the server never answered") from None
            time.sleep(0.1)
    said("the server answers")
    with browser() as running:
        page = running.new_page()
        page.goto(address)
        page.wait_for_selector("h1", timeout=60_000)
        said("the first page has its heading")
        answered = f"""() => [...document.querySelectorAll('.cb-answer b')].some(
            found => !{list(NOT_YET)}.some(text => found.innerText.startsWith(text)))"""
        page.wait_for_function(answered, timeout=PATIENCE * 1000)
        said(f"the first answer, {page.locator('.cb-answer b').first.inner_text()!r}")


if __name__ == "__main__":
    main()
