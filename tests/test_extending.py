"""docs/extending.md, followed to the letter in a copy of the checkout: its examples work."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from capbias_core.runs.demo import demo_request
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.store import Workspace

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
AMPLIFIER = ROOT / "assets/demo/results/amplifier.json"
COPIED = ("capbias_core", "pages", "app.py", "assets")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The first line of a block: the file that it is, or the file and the line above or below which it goes.
TARGET = re.compile(r"# (?P<file>\S+\.(?:py|toml))(?:, (?P<where>above|below) `(?P<line>.+)`)?\n")
SAVED = re.compile(r"save this as `(\S+)`:\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)

# All commands of the guide in one process; then a reader, a page and a test.
FOLLOWED = r"""
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from capbias_core import cli
from capbias_core.attackers import ATTACKERS
from capbias_core.workspace.ingest import read_part
from capbias_core.workspace.store import Workspace

done = {"runs": [run.run_id for run in Workspace().runs()], "printed": {}, "attackers": [*ATTACKERS]}
for name, commands in json.loads(sys.argv[1]).items():
    done["printed"][name] = []
    for command in commands:
        with redirect_stdout(StringIO()) as printed:
            assert cli.main(command) == 0, command
        done["printed"][name].append(printed.getvalue())

part = read_part(Path("captions.csv"), "captions")
done["reader"] = [part.format, *part.frame["image_id"], *(problem.line for problem in part.problems)]
frame = pd.DataFrame({"image_id": [1, 2], "caption": ["a boy", "a man"]})
frame.to_parquet("other.parquet")
frame.to_excel("other.xlsx", index=False)
frame.to_csv("other.csv", index=False)
done["other"] = [read_part(Path(f"other.{kind}"), "captions").format for kind in ("parquet", "xlsx", "csv")]

page = AppTest.from_file(str(Path("app.py").resolve()), default_timeout=120).switch_page("pages/6_Errors.py").run()
assert not page.exception, page.exception
page.number_input(key="least").set_value(5.0).run()
assert not page.exception, page.exception
done["page"] = [page.header[0].value, page.text[0].value, *page.dataframe[0].value["captioner"]]
done["latex"] = Path("errors.tex").read_text()
done["test"] = int(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[2]]))
Path("done.json").write_text(json.dumps(done))
"""


def sections() -> dict[str, SimpleNamespace]:
    """The guide by heading: code blocks of files, commands without `capbias`, and files that they are tried on."""
    heads, result = ["", *re.split(r"^## (.+)\n", GUIDE, flags=re.MULTILINE)], {}  # the first part has no heading
    for name, text in zip(heads[::2], heads[1::2], strict=True):
        blocks = BLOCK.findall(text)
        lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
        result[name] = SimpleNamespace(
            code=[block for kind, block in blocks if kind in ("python", "toml") and TARGET.match(block)],
            commands=[shlex.split(line)[1:] for line in lines if line.startswith("capbias ")],
            files=dict(SAVED.findall(text)),
        )
    return result


def write(folder: Path, block: str) -> str:
    """Do what the first line of a code block says. The file that it went into."""
    target = TARGET.match(block)
    path = folder / target["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    if not target["where"]:
        assert not path.exists(), f"{path} is there already"
        path.write_text(block, encoding="utf-8")
        return target["file"]
    before, line, after = path.read_text(encoding="utf-8").partition(target["line"] + "\n")
    assert line, f"{target['line']!r} is not in {path}"
    parts = (before, block, "\n\n", line, after) if target["where"] == "above" else (before, line, block, after)
    path.write_text("".join(parts), encoding="utf-8")
    return target["file"]


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> dict:
    """What the commands of the guide print, and what its code does, in a copy in which the demo was measured before."""
    folder, home = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("home")
    for name in COPIED:
        ignored = shutil.ignore_patterns("screenshots")
        source = ROOT / name
        shutil.copytree(source, folder / name, ignore=ignored) if source.is_dir() else shutil.copy2(source, folder)
    guide = sections()
    assert guide.pop("").commands == [["demo"]]
    workspace = Workspace(home)  # measured before anything is added, with less to measure than by `demo`
    load_demo(workspace)
    run_all(workspace, plan(workspace, replace(demo_request(), metrics=("ratio", "error"), words=False)), DEMO)
    (test,) = guide.pop("When it works").code
    for section in guide.values():
        for block in section.code:
            write(folder, block)
        for file, text in section.files.items():
            (folder / file).write_text(text, encoding="utf-8")
    commands = {name: section.commands for name, section in guide.items()}
    ended = subprocess.run(
        [sys.executable, "-c", FOLLOWED, json.dumps(commands), write(folder, test)],
        cwd=folder,
        env=os.environ | {"CAPBIAS_HOME": str(home), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return json.loads((folder / "done.json").read_text(encoding="utf-8")) | {"workspace": Workspace(home)}


REGISTERS = {"A measure": "register(MEASURE)", "An attacker": "register(*ENTRIES)", "A format": "register(FORMAT)"}
DEMO_FILES = (str(AMPLIFIER), str(ROOT / "assets/demo/attributes.csv"), "--attribute", "gender")


def package(folder: Path, *names: str, change=lambda text: text) -> Path:
    """A folder with an installed package, whose modules register the parts of these sections of the guide."""
    about = folder / "own_parts-1.5.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-parts\nVersion: 1.5\n")
    modules = {f"own{number}": name for number, name in enumerate(names)}
    (about / "entry_points.txt").write_text("[capbias]\n" + "".join(f"{name} = {name}\n" for name in modules))
    for module, name in modules.items():
        (block,) = sections()[name].code
        text = f"{change(block)}\nimport capbias_core\n\ncapbias_core.{REGISTERS[name]}\n"
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
    return folder


def outside(folder: Path, *words: str, start: tuple[str, ...] = ("-m", "capbias_core")) -> subprocess.CompletedProcess:
    """A command of this checkout, with the package of a folder."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    command = [sys.executable, *start, *words]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_a_package_adds_parts_to_every_process(tmp_path):
    home = str(tmp_path / "home")
    parts = package(tmp_path / "parts", *REGISTERS)

    def ran(*words: str, **more) -> str:
        done = outside(parts, *words, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    asked = ("--metric", "long", "leakage", "--attacker", "loose", "--seeds", "2", "--format", "csv")
    table = rows(ran("score", *DEMO_FILES, *asked))
    assert {"long", "long_gap"} < set(table["metric"]) and set(table["encoder"]) == {"", "loose"}
    (parts / "captions.csv").write_text(sections()["A format"].files["captions.csv"])
    read = ran("import", "captions.csv", "--collection", "demo", "--name", "by-hand", "--dry-run", "--workspace", home)
    assert re.search(r"Captions\W+2\b", read)
    ran("import", *DEMO_FILES[:2], "--collection", "c", "--workspace", home)
    by_worker = (  # a queued run dies with the process that queued it
        "import subprocess, sys; from capbias_core.question import Question; from capbias_core.runs.plan import plan\n"
        f"from capbias_core.workspace.store import Workspace; store = Workspace({home!r})\n"
        "for spec in plan(store, Question('c', ('amplifier',), 'attributes', 'gender', ('long',))):\n"
        "    store.enqueue(spec, 'c')\n"
        f"subprocess.run([sys.executable, '-m', 'capbias_core.worker', {home!r}], check=True)"
    )
    ran(by_worker, start=("-c",))
    assert [run.status for run in Workspace(home).runs()] == ["finished"]
    file = str(tmp_path / "long.zip")
    ran("export", "--collection", "c", "--format", "bundle", "--output", file, "--workspace", home)
    ran("reproduce", file)
    done = outside(tmp_path, "reproduce", file)
    assert done.returncode == 2 and "own-parts" in done.stderr


@pytest.mark.long
def test_a_call_adds_parts_to_its_process_and_a_package_that_cannot_be_loaded_is_a_warning(tmp_path):
    (block,) = sections()["A measure"].code
    package(tmp_path, "A measure", change=lambda text: text.replace('name="long_captions"', 'name="lic"'))
    script = f"""{block}
import capbias_core as capbias
capbias.register(MEASURE)
report = capbias.score({[{"image_id": 1, "caption": "a man"}, {"image_id": 2, "caption": "a " * 15}]},
    labels={[{"image_id": 1, "gender": "Male"}, {"image_id": 2, "gender": "Female"}]}, attribute="gender",
    metrics=["long"])
print(report["long"].value)
for part in (MEASURE, METRICS):
    try:
        capbias.register(part)
    except capbias.CapbiasError as error:
        print(error)
"""
    (tmp_path / "script.py").write_text(script.replace("from __future__ import annotations\n", ""))
    done = outside(tmp_path, start=("script.py",))
    assert done.returncode == 0 and "'lic'" in done.stderr, "the name that the package takes"
    value, taken, unknown = done.stdout.splitlines()
    assert value == "50.0" and "'long_captions'" in taken and "tuple" in unknown


def rows(text: str) -> pd.DataFrame:
    """The rows that `score` writes into a pipe."""
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values={"value": [""]})


@pytest.mark.long
def test_a_measure_gives_rows_and_heeds_its_option(done):
    listing, printed, with_option = done["printed"]["A measure"]
    assert re.search(r"^\W*long\b", listing, re.MULTILINE) and "long gap" in printed
    runs = [run for run in done["workspace"].runs() if run.spec.measure == "long_captions" and not run.spec.options]
    stored = done["workspace"].results([run.run_id for run in runs])
    label = pd.read_csv(DEMO_FILES[1], dtype=str).set_index("image_id")["gender"]
    captions = pd.DataFrame(json.loads(AMPLIFIER.read_text())).astype({"image_id": str})
    captions["gender"] = captions["image_id"].map(label)
    captions = captions[captions["gender"].isin(["Female", "Male"])]
    words = captions["caption"].str.split().str.len()
    for table, least, name in ((stored, 15, "long"), (rows(with_option), 18, "long_gap")):
        table = table[(table["model"] == "amplifier") & (table["metric"] == name)].set_index("group")
        shares = (100 * (words >= least).groupby(captions["gender"]).mean()).to_dict()
        gap = {"": shares["Male"] - shares["Female"]}
        expected = gap if name == "long_gap" else shares | {"": 100 * (words >= least).mean()}
        assert table["value"].to_dict() == pytest.approx(expected, abs=0.01)
        assert table.loc["", "n"] == len(words)
    assert set(rows(with_option)["metric"]) == {"long_gap"}
    assert done["test"] == 0, "the test that the guide gives passes"


@pytest.mark.long
def test_an_attacker_an_attribute_and_a_format_are_found_and_used(done):
    table = rows(*done["printed"]["An attacker"])
    assert set(table["encoder"]) == {"loose"} and set(table["seeds"]) == {2}
    assert table.set_index("metric").loc["SC", "value"] > 55
    assert (done["attackers"][0], done["attackers"][-1]) == ("ngram", "loose")

    _, scoring = done["printed"]["A protected attribute"]
    table = rows(scoring)
    assert set(table["metric"]) == {"ratio", "error", "error_gap"} and set(table["attribute"]) == {"clothing"}
    assert table["value"].notna().all()

    assert re.search(r"Captions\W+2\b", *done["printed"]["A format"])
    assert done["reader"] == ["captions of my tool", "1001", "1002", 4]
    assert done["other"] == ["results of COCO"] * 3, "other files keep their format"


@pytest.mark.long
def test_a_view_is_a_command_a_file_and_a_page(done):
    text, written, _ = done["printed"]["A view"]
    assert "Who is named wrongly?" in done["latex"] and "names the wrong gender in" in text
    table = rows(written)
    errors = table[table["group"] == ""].set_index("captioner")["value"]
    known = done["workspace"].results(done["runs"]).query("metric == 'error' and group == ''")
    known = known.set_index("model")["value"]
    assert errors.to_dict() == pytest.approx(known[known >= 5].to_dict()) and 0 < len(errors) < len(known)
    heading, sentence, *captioners = done["page"]
    assert heading == "Who is named wrongly?" and sentence in text and set(captioners) == set(errors.index)
