"""docs/extending.md, followed to the letter in a copy of the checkout: each example is one file, and it works."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "extending.md"
COPIED = (
    "capbias_core",
    "pages",
    "app.py",
    "assets/demo",
    "assets/published",
    "assets/icon.svg",
    "assets/objects.toml",
    "assets/valence.tsv",
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The first line of a block: the file that it is, or the file and the line above or below which it goes.
PLACE = re.compile(r"# (?P<file>\S+\.(?:py|toml))(?:, (?P<where>above|below) `(?P<line>.+)`)?\n")
SAVED = re.compile(r"save this as `(\S+)`:\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A section of the guide. code: blocks of files; commands: without `capbias`; files: what it is tried on."""

    code: list[str]
    commands: list[list[str]]
    files: dict[str, str]

    @property
    def touched(self) -> set[str]:
        """The files that its code goes into."""
        return {PLACE.match(block)["file"] for block in self.code}


def sections() -> dict[str, Section]:
    """The guide by heading."""
    heads = re.split(r"^## (.+)\n", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: section(text) for name, text in zip(heads[1::2], heads[2::2], strict=True)}


def section(text: str) -> Section:
    blocks = BLOCK.findall(text)
    lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("capbias ")]
    return Section([block for kind, block in blocks if kind in ("python", "toml")], commands, dict(SAVED.findall(text)))


@dataclass(frozen=True)
class House:
    """A copy of the checkout. home: its workspace."""

    folder: Path
    home: Path

    def write(self, own: Section) -> None:
        """Do what a section says with its code, and put the files there that it is tried on."""
        for block in own.code:
            found = PLACE.match(block)
            path = self.folder / found["file"]
            if not found["where"]:
                assert not path.exists(), f"{found['file']} is there already"
                path.write_text(block, encoding="utf-8")
                continue
            before, line, after = path.read_text(encoding="utf-8").partition(found["line"] + "\n")
            assert line, f"{found['line']!r} is not in {found['file']}"
            parts = (before, block, "\n\n", line, after) if found["where"] == "above" else (before, line, block, after)
            path.write_text("".join(parts), encoding="utf-8")
        for name, text in own.files.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def python(self, *args: str) -> str:
        """What Python prints, run in the copy."""
        environment = os.environ | {"CAPBIAS_HOME": str(self.home), "PYTHONPATH": str(self.folder)}
        done = subprocess.run(
            [sys.executable, *args],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def capbias(self, *command: str) -> str:
        return self.python("-m", "capbias_core", *command)

    def rows(self, *command: str) -> pd.DataFrame:
        """The rows that `score` writes into a pipe."""
        return pd.read_csv(io.StringIO(self.capbias(*command)), keep_default_na=False, na_values={"value": [""]})

    def sources(self) -> dict[str, bytes]:
        """Every file of the copy but what Python and the workspace leave."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


def copy_checkout(folder: Path, names: tuple[str, ...] = ()) -> None:
    """Copy what git knows of these files and folders, or of all."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("no git checkout to copy")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Iterator[House]:
    """A copy with a workspace in which the demo was measured before anything is added."""
    folder = tmp_path_factory.mktemp("house")
    copy_checkout(folder, COPIED)
    own = House(folder, tmp_path_factory.mktemp("home") / "workspace")
    assert sections()["Before you start"].commands == [["demo"]]
    own.python("-c", DEMO)
    return own


# What `demo` does, with less to measure.
DEMO = """
import os
from capbias_core.runs.demo import demo_request
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.workspace.ingest import DEMO, load_demo
from dataclasses import replace

engine = Engine(os.environ["CAPBIAS_HOME"])
load_demo(engine.workspace)
request = replace(demo_request(), metrics=("ratio", "error"), words=False)
ended = engine.wait(engine.submit(plan(engine.workspace, request), DEMO))
assert {run.status for run in ended} == {"finished"}
engine.close()
"""


@pytest.fixture
def followed(house, request) -> tuple[House, Section]:
    """The copy with one section's code in it, and that section. Its code must touch one file, and its commands none."""
    own = sections()[request.param]
    before = house.sources()
    house.write(own)
    after = house.sources()
    changed = {name for name, content in after.items() if before.get(name) != content}
    assert changed - own.files.keys() == own.touched and len(own.touched) == 1
    return house, own


def section_of(name: str):
    return pytest.mark.parametrize("followed", [name], indirect=True, ids=[name])


def test_the_table_names_every_section():
    names = [name for name in sections() if name not in ("Before you start", "When it works")]
    text = GUIDE.read_text(encoding="utf-8")
    links = {name: "#" + re.sub(r"[^a-z -]", "", name.lower()).replace(" ", "-") for name in names}
    assert [name for name, link in links.items() if f"({link})" not in text] == []
    assert len(names) == 7


@pytest.mark.long
@section_of("A metric of columns that are there")
def test_a_metric_of_columns_needs_no_new_run(followed):
    house, own = followed
    runs = f"from capbias_core.workspace.store import Workspace\nfor run in Workspace({str(house.home)!r}).runs(): "
    before = house.python("-c", f"{runs}print(run.run_id, run.finished)").splitlines()
    telling, scoring = own.commands
    assert "captions that name a value" in house.capbias(*telling)
    rows = house.rows(*scoring)
    assert set(rows["metric"]) == {"named"} and rows["value"].between(1, 99).all()
    assert set(before) < set(house.python("-c", f"{runs}print(run.run_id, run.finished)").splitlines())
    known = {line.split()[0] for line in before}
    assert set(rows[rows["run_id"].isin(known)]["model"]) >= {"amplifier", "faithful", "mitigator"}


@pytest.mark.long
@section_of("A measure")
def test_a_measure_gives_rows_and_heeds_its_flag(followed):
    house, own = followed
    listing, usual, told = own.commands
    assert re.search(r"^\W*long\b", house.capbias(*listing), re.MULTILINE)
    labels = pd.read_csv(house.folder / "assets/demo/attributes.csv", dtype=str)
    labelled = set(labels[labels["gender"].isin(["Female", "Male"])]["image_id"])
    records = json.loads((house.folder / "assets/demo/results/amplifier.json").read_text())
    words = pd.Series([len(own["caption"].split()) for own in records if str(own["image_id"]) in labelled])
    for command, least in ((usual, 12), (told, 15)):
        rows = house.rows(*command).set_index("model")
        assert rows.loc["amplifier", "value"] == pytest.approx(100 * (words >= least).mean(), abs=0.01)
        assert rows.loc["amplifier", "n"] == len(words)
    (test,) = sections()["When it works"].code
    path = house.folder / PLACE.match(test)["file"]
    path.parent.mkdir(parents=True)
    path.write_text(test, encoding="utf-8")
    assert "1 passed" in house.python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(path))


@pytest.mark.long
@section_of("A measure that trains an attacker")
def test_a_measure_that_trains_gives_rows_with_refits(followed):
    house, own = followed
    (command,) = own.commands
    (row,) = house.rows(*command).to_dict("records")
    assert (row["metric"], row["encoder"], row["seeds"], row["interval"]) == ("doubt", "ngram", 2, "refits")
    assert 0.3 < row["value"] < 1, "the amplifier's captions tell of the label"
    assert house.rows(*command).to_dict("records") == [row]


@pytest.mark.long
@section_of("An attacker")
def test_an_attacker_trains(followed):
    house, own = followed
    (command,) = own.commands
    rows = house.rows(*command)
    assert set(rows["encoder"]) == {"bayes"} and set(rows["seeds"]) == {2}
    assert rows.set_index("metric").loc["SC", "value"] > 55
    house.python("-c", CONTRACT)


# Three shapes of labels: two values, three, and which of two task words are there.
CONTRACT = """
import numpy as np
from capbias_core.attackers import ATTACKERS, load_attacker
from capbias_core.types import silent

attacker = load_attacker("bayes")
corpus = attacker.corpus(["a red apron", "a blue truck a", "", "red red violin"] * 5)
rows, codes = np.arange(20), np.arange(20) % 4
for labels, k, width in ((codes % 2, 2, 1), (codes % 3, 3, 3), (np.stack([codes == 0, codes < 0], axis=1), 0, 2)):
    fitted = attacker.fit(corpus, rows, labels, k, 0, silent)
    logits, found = fitted.logits(corpus, rows), fitted.contributions(corpus, rows)
    assert logits.shape == (20, width)
    sums = np.array([words.sum(axis=0) for words in found.words])
    assert np.allclose(found.baseline + sums, logits)
    assert [len(words) for words in found.words] == [len(caption.split()) for caption in corpus.captions]
assert next(iter(ATTACKERS)) == "ngram" and list(ATTACKERS)[-1] == "bayes"
"""


@pytest.mark.long
@section_of("A protected attribute")
def test_an_attribute_is_listed_and_measured(followed):
    house, own = followed
    listing, printing, checking, deriving, scoring = own.commands
    assert re.search(r"^\W*clothing\b", house.capbias(*listing), re.MULTILINE)
    assert 'name = "clothing"' in house.capbias(*printing)
    assert "coat" in house.capbias(*checking)
    house.capbias(*deriving)
    rows = house.rows(*scoring)
    assert set(rows["metric"]) == {"ratio", "error"} and set(rows["attribute"]) == {"clothing"}
    assert rows["value"].notna().all()


@pytest.mark.long
@section_of("A caption format")
def test_a_format_is_recognised_and_read(followed):
    house, own = followed
    (command,) = own.commands
    said = house.capbias(*command)
    assert re.search(r"Captions\W+2\b", said), said
    code = (
        "from pathlib import Path\nfrom capbias_core.load.read import parse\n"
        "from capbias_core.load.tables import captions\n"
        "parsed = parse(Path('captions.txt'))\ntable = captions(parsed)\n"
        "print(parsed.format, *table.frame['image_id'], *(each.line for each in table.problems))"
    )
    assert house.python("-c", code).split() == ["captions_text", "1001", "1002", "4"]
    assert house.python("-c", OTHERS).split() == ["parquet", "xlsx", "csv"]


# Files that are no text are still those of their own readers.
OTHERS = """
from pathlib import Path
import pandas as pd
from capbias_core.load.read import parse

frame = pd.DataFrame({"image_id": [1, 2], "caption": ["a boy", "a man"]})
frame.to_parquet("other.parquet")
frame.to_excel("other.xlsx", index=False)
frame.to_csv("other.csv", index=False)
print(*(parse(Path(name)).format for name in ("other.parquet", "other.xlsx", "other.csv")))
"""


@pytest.mark.long
@section_of("A page")
def test_a_page_draws_its_chart(followed):
    house, _ = followed
    pytest.importorskip("streamlit")
    assert house.python("-c", PAGE).splitlines()[-1] == "Bars 1 1"


PAGE = """
from pathlib import Path
from streamlit.testing.v1 import AppTest

page = AppTest.from_file(str(Path("app.py").resolve()), default_timeout=120).switch_page("pages/6_Bars.py").run()
assert not page.exception, page.exception
assert "ratio" in page.selectbox(key="bars_metric").options
page.selectbox(key="bars_metric").select("ratio").run()
assert not page.exception, page.exception
print(page.title[0].value, len(page.get("plotly_chart")), len(page.dataframe))
"""
