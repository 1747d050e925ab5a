"""How quick the tool is in the hand, on real captions: `python -m benchmarks.interactive --data FOLDER`.

FOLDER holds results/NAME.json, annotations/attributes.csv and annotations/captions_subset.json. In one run, against
a baseline where there is one:

- LIC_M with `ngram`, 10 seeds, from the workspace: one captioner, all captioners;
- the first page, from the start of the server's process to the drawn answer, beside an empty Streamlit app;
- a switch between pages with all sets loaded, to the last thing drawn, after the first page was read for 3 s;
- rescoring an edited caption, from the key press to the new score on the screen.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from capbias_core.load.parsed import CAPTIONS, LABELS, REFERENCES
from capbias_core.question import Question
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.workspace.ingest import File, ingest
from tests.browser import READY, ROOT, browser, open_page, server, settled

OURS = ROOT / "app.py"
EMPTY = "import streamlit as st\nst.title('Empty')\n"
COLLECTION = "coco"
READING = 3000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "workspace"
        names = load(home, options.data)
        time_scores(home, names)
        fill(home, names)
        empty = Path(folder) / "empty" / "app.py"
        empty.parent.mkdir()
        empty.write_text(EMPTY)
        with browser() as running:
            time_first_page(running, home, empty, options.repeats)
            time_pages(running, home, options.repeats)


def load(home: Path, data: Path) -> list[str]:
    """All captioners of the folder, the labels and the references, kept in a workspace."""
    workspace = Engine(home).workspace
    results = [path for path in sorted((data / "results").glob("*.json")) if "masked" not in path.stem]
    files = [
        File(data / "annotations" / "attributes.csv", LABELS, "labels"),
        File(data / "annotations" / "captions_subset.json", REFERENCES, "human"),
        *(File(path, CAPTIONS, trained=True) for path in results),
    ]
    ingest(workspace, COLLECTION, files)
    return [path.stem for path in results]


def run(home: Path, names, **asked) -> float:
    """Seconds from the request to the finished rows."""
    engine = Engine(home)
    request = Question(
        collection=COLLECTION, captions=tuple(names), labels="labels", attribute="gender", metrics=("lic",), **asked
    )
    start = time.perf_counter()
    rows = engine.wait(engine.submit(plan(engine.workspace, request), COLLECTION), every=0.02)
    assert all(row.status == "finished" for row in rows), [row.message for row in rows]
    return time.perf_counter() - start


def time_scores(home: Path, names: list[str]) -> None:
    import sklearn.feature_extraction.text
    import sklearn.linear_model  # noqa: F401 (the first run would pay for the import)

    one = run(home, names[:1])
    print(f"ngram LIC_M, {names[0]}, 10 seeds: {one:.2f} s (at most 2)")
    rest = run(home, names[1:])
    print(f"ngram LIC_M, all {len(names)}, 10 seeds: {one + rest:.2f} s (at most 12)")


def fill(home: Path, names: list[str]) -> None:
    """LIC, and the words of every caption, so that pages have all there is to show."""
    print(f"with references, scores and words: {run(home, names, references='human', words=True):.1f} s")


def time_first_page(running, home: Path, empty: Path, repeats: int) -> None:
    ours, theirs = [], []
    for _ in range(repeats):
        theirs.append(first_page(running, home, empty, "text=Empty"))
        ours.append(first_page(running, home, OURS, ".cb-answer"))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"first page: {a:.2f} s, an empty app's {b:.2f} s, ratio {a / b:.2f} (at most 1.5)")


def first_page(running, home: Path, app: Path, sign: str) -> float:
    """Seconds from starting the server to a drawn page."""
    start = time.perf_counter()
    with server(home, app) as (address, _):
        page = running.new_page()
        page.goto(address)
        page.wait_for_selector(sign)
        page.wait_for_selector(READY)
        taken = time.perf_counter() - start
        page.close()
    return taken


def time_pages(running, home: Path, repeats: int) -> None:
    with server(home) as (address, _):
        page = running.new_page(viewport={"width": 1280, "height": 1000})
        open_page(page, address)
        links = {
            "Data": "text=Your data",
            "Scores": ".js-plotly-plot .main-svg",
            "Captions": "text=What if",
            "Images": "[role=radiogroup]",
            "Published": ".js-plotly-plot .main-svg",
            "Answer": ".cb-answer",
        }
        page.wait_for_timeout(READING)
        for attempt in range(repeats + 1):
            taken = {name: switch(page, name, sign) for name, sign in links.items()}
            kind = "first visit" if attempt == 0 else f"visit {attempt + 1}"
            print(f"page switch, {kind}: " + ", ".join(f"{name} {value:.2f} s" for name, value in taken.items()))
        switch(page, "Captions", "text=What if")
        settled(page)
        edits = [rescore(page, text) for text in ("a man with a tie", "a man with an umbrella", "a man with a horse")]
        print(f"what-if, key press to new score: {1000 * statistics.median(edits):.0f} ms (at most 100)")


def switch(page, name: str, sign: str) -> float:
    start = time.perf_counter()
    page.get_by_test_id("stSidebar").get_by_role("link", name=name).click()
    page.get_by_role("heading", level=1).filter(has_text="Does a captioner" if name == "Answer" else name).wait_for()
    page.wait_for_selector(sign)
    return time.perf_counter() - start


def rescore(page, text: str) -> float:
    """Seconds from Enter to the new words on the screen, measured in the browser."""
    box = page.get_by_role("textbox", name="Edit the caption")
    box.fill(text)
    last = text.split()[-1]
    milliseconds = page.evaluate(
        """([word]) => new Promise(resolve => {
            const box = [...document.querySelectorAll('input')].find(i => i.ariaLabel?.startsWith('Edit the caption'));
            const start = performance.now();
            const seen = () => [...document.querySelectorAll('.cb-words')].at(-1)?.innerText.trim().endsWith(word);
            const watch = new MutationObserver(() => {
                if (seen()) { watch.disconnect(); resolve(performance.now() - start); }
            });
            watch.observe(document.body, {childList: true, subtree: true, characterData: true});
            box.focus();
            box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', code: 'Enter', keyCode: 13, bubbles: true}));
            box.dispatchEvent(new KeyboardEvent('keypress', {key: 'Enter', code: 'Enter', keyCode: 13, bubbles: true}));
        })""",
        [last],
    )
    return milliseconds / 1000


if __name__ == "__main__":
    main()
