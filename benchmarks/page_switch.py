"""How long it takes to go to another page, in two checkouts at once.

    python -m benchmarks.page_switch OLD NEW --home OLD_HOME NEW_HOME --collection NAME

Both servers run at once, each on its own copy of a workspace, since an older version cannot read a newer form. One tab
of a real browser on each goes through all pages by the sidebar, the two versions in turn, so that other work on the
machine meets both alike. Printed per page: seconds from the click until the page is drawn, and processor seconds of the
server, medians over rounds. The first round fills caches and does not count.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.browser import browser, open_page, server, settled

PAGES = ("Answer", "Data", "Scores", "Captions", "Images", "Published")
QUIET = 0.25  # seconds that `settled` waits to see that nothing more is drawn


def processor_seconds(process: psutil.Process) -> float:
    """Of a server, with the processes that it started."""
    times = [own.cpu_times() for own in (process, *process.children(recursive=True))]
    return sum(own.user + own.system for own in times)


def switch(page, name: str) -> float:
    """Seconds from a click in the sidebar until the page is drawn."""
    link = page.get_by_test_id("stSidebar").get_by_role("link", name=name)
    start = time.monotonic()
    link.click()
    page.wait_for_function("name => document.querySelector('h1') && !document.querySelector('[data-stale=true]')")
    settled(page)
    return time.monotonic() - start - QUIET


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("checkouts", nargs=2, type=Path)
    asked.add_argument("--home", nargs=2, type=Path, required=True)
    asked.add_argument("--collection", required=True)
    asked.add_argument("--rounds", type=int, default=8)
    own = asked.parse_args()
    seconds, processor = defaultdict(list), defaultdict(list)
    with ExitStack() as stack:
        chrome = stack.enter_context(browser())
        tabs = []
        for checkout, home in zip(own.checkouts, own.home, strict=True):
            address, process = stack.enter_context(server(home, checkout.resolve() / "app.py"))
            tab = chrome.new_page(viewport={"width": 1280, "height": 900})
            tab.set_default_timeout(60_000)
            open_page(tab, f"{address}/?collection={own.collection}")
            tabs.append((tab, psutil.Process(process.pid)))
        for number in range(own.rounds + 1):
            for name in PAGES:
                for version, (tab, process) in enumerate(tabs):
                    before = processor_seconds(process)
                    took = switch(tab, name)
                    if number:
                        seconds[name, version].append(took)
                        processor[name, version].append(processor_seconds(process) - before)
            print(f"round {number} done", flush=True)
            show(seconds, processor)


def show(seconds: dict, processor: dict) -> None:
    for name in PAGES if seconds else ():
        parts = [
            f"{statistics.median(found[name, version]):6.2f}" for found in (seconds, processor) for version in (0, 1)
        ]
        print(f"{name:18} seconds {parts[0]} {parts[1]}   processor {parts[2]} {parts[3]}", flush=True)


if __name__ == "__main__":
    main()
