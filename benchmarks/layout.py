"""How far pages move while they are drawn: `python -m benchmarks.layout --home WORKSPACE [--collection demo]`.

Each page and tab is opened in Chromium by its link, in a new window, and once before so that the server has what it
remembers. Printed: the layout shift as web-vitals counts it (the worst five seconds; good is at most 0.1), what moved
most, and the seconds until all is drawn. With --pictures FOLDER a picture of each, by width and theme.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from urllib.parse import urlencode

from tests.app import TABS, VIEWS
from tests.browser import browser, open_page, server

# The shifts of a page with the two elements that moved most; a new window begins after a second without any.
WATCH = """window.shifts = []
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) {
    const moved = entry.sources.map(({node, previousRect: a, currentRect: b}) => {
      const named = node && (node.nodeType === 1 ? node : node.parentElement)
      const key = named && named.closest('[class*=st-key-]')
      const name = key ? [...key.classList].find(own => own.startsWith('st-key-')) : ''
      const what = named ? `${named.dataset.testid || named.tagName} ${named.textContent.slice(0, 25)}` : 'gone'
      return `${name} ${what} y ${Math.round(a.y)}>${Math.round(b.y)} h ${Math.round(a.height)}>${Math.round(b.height)}`
    })
    window.shifts.push([entry.startTime, entry.value, moved.slice(0, 4)])
  }
}).observe({type: 'layout-shift', buffered: true})"""


def layout_shift(shifts: list[tuple[float, float, list[str]]]) -> float:
    """The largest sum of shifts with less than a second between them, in at most five seconds."""
    worst, own, start, last = 0.0, 0.0, 0.0, -1e9
    for at, value, _ in shifts:
        if at - last > 1000 or at - start > 5000:
            own, start = 0.0, at
        own, last = own + value, at
        worst = max(worst, own)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a workspace with scores")
    parser.add_argument("--collection", default="demo")
    parser.add_argument("--views", nargs="*", default=VIEWS)
    parser.add_argument("--widths", nargs="*", type=int, default=[1280])
    parser.add_argument("--themes", nargs="*", default=["light"])
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with server(options.home) as (address, _), browser() as chrome:
        for view in options.views:
            title = next((title for title, tabs in TABS.items() if view in tabs), view)
            query = {"collection": options.collection} | ({"tab": view} if title != view else {})
            link = f"{address}/{'' if title == 'Answer' else title}?{urlencode(query)}"
            for place, (width, theme) in enumerate((w, t) for w in options.widths for t in options.themes):
                for warm in (True, False) if not place else (False,):
                    page = chrome.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
                    page.add_init_script(WATCH)
                    start = time.monotonic()
                    open_page(page, link)
                    seconds, shifts = time.monotonic() - start, page.evaluate("window.shifts")
                    if not warm:
                        print(f"{view}, {width}, {theme}: {layout_shift(shifts):.2f}, {seconds:.1f} s")
                        for _, value, moved in sorted(shifts, key=lambda each: -each[1])[:2]:
                            print(f"  {value:.2f} {'; '.join(moved)}")
                        if options.pictures:
                            options.pictures.mkdir(parents=True, exist_ok=True)
                            name = f"{view.replace(' ', '_')}_{width}_{theme}.png"
                            page.screenshot(path=options.pictures / name, full_page=True)
                    page.close()


if __name__ == "__main__":
    main()
