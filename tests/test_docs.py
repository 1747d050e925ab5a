"""The docs: the generated page of metrics is current, links and commands exist, and examples of docstrings run."""

import doctest
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from capbias_core import cli
from capbias_core.measures.registry import GROUPS, METRICS
from scripts.make_docs import FILE, metrics_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
HAVE_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "capbias_core").rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_the_page_of_metrics_is_what_the_measures_say():
    assert FILE.read_text(encoding="utf-8") == metrics_page(), "run: make docs"


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    broken = []
    for link in links:
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (fragment and fragment not in anchors(target)):
            broken.append(link)
    assert broken == []


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of a page, in blocks and between backticks."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    for line in [*blocks.splitlines(), *re.findall(r"`([^`\n]+)`", text)]:
        for part in re.split(r" && |; ", line.partition(" #")[0]):
            if re.match(r" *(capbias|python) ", part):
                yield shlex.split(part)


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "extending.md"], ids=lambda page: page.name)
def test_commands_flags_and_metrics_exist(page):
    """docs/extending.md has flags and metrics that its examples add; tests/test_extending.py runs them."""
    app, wrong = cli._app(), []
    for program, name, *words in commands(page):
        if program == "python":
            file = f"{words[0].replace('.', '/')}.py" if name == "-m" else name
            wrong += [] if (ROOT / file).exists() else [file]
        elif name not in cli.COMMANDS:
            wrong += [] if name in ("COMMAND", "--help") else [name]
        else:
            _, apps, words = app.parse_commands([name, *words])
            known = {flag for argument in apps[-1].assemble_argument_collection() for flag in argument.names}
            wrong += [f"{name} {word}" for word in words if word.startswith("--") and word not in {*known, "--help"}]
            wrong += [metric for metric in metric_names(words) if metric.lower() not in METRIC_NAMES]
    assert wrong == []


METRIC_NAMES = {name.lower() for name in [*GROUPS, *METRICS]} | {"name"}


def metric_names(words: list[str]) -> Iterator[str]:
    """What follows --metric."""
    if "--metric" in words:
        for word in words[words.index("--metric") + 1 :]:
            if not re.fullmatch(r"\w+", word):
                return
            yield word


@pytest.mark.parametrize("name", HAVE_EXAMPLES)
def test_examples_in_docstrings_run(name):
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0 and done.failed == 0
