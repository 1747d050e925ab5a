"""The command line: what it prints, where it writes, how it ends; numbers against METRICS.md on the real captions."""

from __future__ import annotations

import io
import json
import math
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import __version__, cli, worker
from capbias_core.attributes import get_attribute
from capbias_core.cli import run as running
from capbias_core.measures.base import Outcome
from capbias_core.measures.lic import CUTS
from capbias_core.measures.registry import GROUPS, MEASURES, METRICS, expand_metrics
from capbias_core.resources import DEMO_FOLDER
from capbias_core.runs import demo
from capbias_core.runs.plan import plan
from capbias_core.types import RESULT_COLUMNS
from capbias_core.views.explain import edit_effect
from capbias_core.views.files import fitting, text_table
from capbias_core.views.results import current_runs
from capbias_core.views.scored import caption_scores, stored_attackers
from capbias_core.workspace.store import Workspace
from tests import sentences

# A thread that still reads a workspace after it was removed.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

ROOT = Path(__file__).resolve().parents[2]
IMAGES = 90  # 40 Female, 45 Male, 5 dropped
THINGS = {"Female": ("an umbrella", "a cake", "a horse"), "Male": ("a skateboard", "a tie", "a motorcycle")}
NAMED = {"Female": "woman", "Male": "man"}
RATIO = pytest.approx(40 / 35)  # of the captions below


def label_of(image: int) -> str:
    return "Female" if image <= 40 else "Male" if image <= 85 else ("Both", "Both", "Unsure", "", "")[image - 86]


def captions(seed: int, share: float) -> list[dict]:
    """One caption per image: a thing of the labelled value in `share` of them; every eighth names no gender."""
    rng, rows = random.Random(seed), []
    for image in range(1, IMAGES + 1):
        label = label_of(image) if label_of(image) in THINGS else "Male"
        other = "Male" if label == "Female" else "Female"
        thing = rng.choice(THINGS[label if rng.random() < share else other])
        who = "person" if image % 8 == 0 else NAMED[label]
        rows.append({"image_id": image, "caption": f"a {who} with {thing} on a {rng.choice(['street', 'field'])}"})
    return rows


def write_files(folder: Path) -> Path:
    rows = [f"{image},{label_of(image)},{('low', 'mid', 'high')[image % 3]}" for image in range(1, IMAGES + 1)]
    (folder / "attributes.csv").write_text("\n".join(["image_id,gender,height", *rows]) + "\n")
    table = pd.read_csv(folder / "attributes.csv", keep_default_na=False)
    spelled = table.rename(columns={"gender": "who is it"}).assign(**{"who is it": " " + table["gender"].str.upper()})
    spelled.to_csv(folder / "people.csv", index=False)
    for name, share in (("strong", 0.95), ("weak", 0.6)):
        (folder / f"{name}.json").write_text(json.dumps(captions(1, share)))
    human = [{"id": 10 * row["image_id"] + seed, **row} for seed in range(2, 5) for row in captions(seed, 0.7)]
    images = [{"id": image} for image in range(1, IMAGES + 1)]
    (folder / "human.json").write_text(json.dumps({"images": images, "annotations": human}))
    (folder / "few.json").write_text(json.dumps(captions(1, 0.9)[30:45]))
    odd = pd.DataFrame(captions(1, 0.95)).rename(columns={"image_id": "pic", "caption": "said"})
    odd.to_csv(folder / "odd.csv", index=False)
    (folder / "own.toml").write_text('values = ["Female", "Male"]\n[words]\nFemale = ["woman"]\nMale = ["man"]\n')
    return folder


@dataclass
class Printed:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> pd.DataFrame:
        return pd.read_csv(io.StringIO(self.out), keep_default_na=False)

    @property
    def metrics(self) -> list[str]:
        return self.rows["metric"].tolist()

    @property
    def value(self) -> float:
        return float(self.rows["value"].iloc[0])


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return write_files(tmp_path_factory.mktemp("small"))


@pytest.fixture
def here(small, tmp_path, monkeypatch) -> Path:
    """The small files as the current folder, and an empty folder for temporary files, which must stay empty."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(small)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    yield tmp_path
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.fixture
def ask(here, capsys):
    """Runs a command, and checks its exit code."""

    def run(*argv: str, code: int = 0) -> Printed:
        capsys.readouterr()
        ended = cli.main(list(argv))
        printed = capsys.readouterr()
        assert ended == code, printed.err
        return Printed(ended, printed.out, printed.err)

    return run


@pytest.fixture
def score(ask):
    """Scores captions with the labels of gender; rows as CSV unless another answer is asked for."""

    def run(*more: str, **kwargs) -> Printed:
        form = [] if "--output" in more or "--format" in more else CSV
        return ask("score", *SMALL, *more, *form, **kwargs)

    return run


@pytest.fixture
def person(monkeypatch):
    """A terminal that somebody reads."""
    monkeypatch.setattr("capbias_core.cli.score.on_terminal", lambda: True)
    monkeypatch.setattr("capbias_core.cli.terminal.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "2000")


SMALL = ["--labels", "attributes.csv", "--attribute", "gender"]
STRONG = ["--captions", "strong.json"]
EXPLAIN = ["explain", *SMALL, *STRONG]
LABELS = ["--labels", "attributes.csv"]
CSV = ["--format", "csv"]


# score, on files

SAME_CAPTIONS = (
    "strong.json attributes.csv human.json --attribute gender",
    "--labels attributes.csv --attribute gender --captions odd.csv --image-id-column pic --caption-column said",
    "--captions strong.json --labels attributes.csv --attribute own.toml --attribute-column gender",
    "strong.json people.csv --attribute gender --attribute-column 'who is it'",
)


@pytest.mark.long
@pytest.mark.parametrize("given", SAME_CAPTIONS)
def test_the_same_captions_give_the_same_ratio_however_they_are_named(ask, given):
    argv = shlex.split(given)
    printed = ask("score", *argv, "--metric", "ratio", *CSV)
    assert printed.metrics == ["ratio"] and printed.value == RATIO
    assert "\r" not in printed.err and "\x1b" not in printed.err
    sentences.check(f"score: {' '.join(argv)}", printed.err)


@pytest.mark.long
def test_score_writes_one_row_per_number(score, here):
    out = here / "out.csv"
    more = ["--references", "human.json", "--seeds", "2", "--attacker", "ngram", "--output", str(out)]
    printed = score("--captions", "weak.json", "strong.json", "--metric", "lic", "ratio", "error", *more)
    assert "captioner  verdict" in printed.out, "who writes a file is answered, too"
    rows = pd.read_csv(out, keep_default_na=False)
    assert tuple(rows.columns) == (*RESULT_COLUMNS, "name", "letters")
    whole = rows[rows["group"] == ""]
    names = ["LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", "ratio", "error", "error_gap"]
    assert [*zip(whole["model"], whole["metric"], strict=True)] == [(m, n) for m in ("weak", "strong") for n in names]
    by_label = rows[rows["group"] != ""][["model", "metric", "group"]].to_records(index=False).tolist()
    assert by_label == [(m, "error", label) for m in ("weak", "strong") for label in ("Female", "Male")]
    value = whole.set_index(["model", "metric"])["value"].astype(float)
    assert value["strong", "LIC"] == pytest.approx(value["strong", "LIC_M"] - value["strong", "LIC_D"])
    assert value["strong", "LIC_M"] > value["weak", "LIC_M"] > 20
    assert value["strong", "ratio"] == RATIO and value["strong", "error"] == 0
    assert not (here / "home").exists(), "files need no workspace"


REFS = ["--references", "human.json"]


@pytest.mark.long
def test_metrics_that_inputs_do_not_allow_are_left_out_with_the_reason(score):
    printed = score(*STRONG, "--metric", "lic", "leakage", "--seeds", "1")
    assert printed.metrics == ["LIC_M", "SC"]
    sentences.check("score: without references", printed.err)
    argv = ["--captions", "strong.json", "weak.json", "--references", "few.json", "--metric", "ratio"]
    printed = score(*argv)
    assert printed.metrics == ["ratio", "ratio"]
    sentences.check("score: references of few images", printed.err)


@pytest.mark.long
def test_what_was_measured_is_written_though_another_run_failed_and_nothing_otherwise(score, here, monkeypatch):
    out = here / "out.csv"
    asked = ["--metric", "sc", "--seeds", "1", "--output", str(out)]
    score("--captions", "few.json", *asked, code=1)
    assert not out.exists()
    score("--captions", "few.json", "strong.json", *asked, code=1)
    assert pd.read_csv(out)["model"].tolist() == ["strong"]
    monkeypatch.setattr("capbias_core.runs.run.compute", lambda *_args: Outcome(notes=["there was nothing"]))
    out.unlink()
    assert "ratio left out" in score(*STRONG, "--metric", "ratio", "--output", str(out), code=1).err
    assert not out.exists()


@pytest.mark.long
def test_a_disk_that_refuses_leaves_the_old_file(score, here, monkeypatch):
    out = here / "kept" / "out.csv"
    out.parent.mkdir()
    out.write_text("old")

    def replace(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", lambda self, target: replace() if target == out else os.replace(self, target))
    score(*STRONG, "--metric", "ratio", "--output", str(out), code=2)
    assert out.read_text() == "old" and [path.name for path in out.parent.iterdir()] == ["out.csv"]


@pytest.mark.long
def test_each_metric_that_is_asked_for_has_a_row_or_a_reason(score):
    """Of these files, which have neither objects nor photographs."""
    wanted = ["lic", "leakage", "ratio", "error", "ba", "dba", "multi", "vocabulary", "naming"]
    printed = score(*STRONG, *REFS, "--metric", *wanted, "--seeds", "1")
    lines = "".join(line for line in printed.err.splitlines() if "left out" in line)
    for name in expand_metrics(wanted):
        # At equal length only captions of another length are measured, which needs no warning.
        assert name in set(printed.metrics) or name in lines or name in CUTS, name


# score, for a person and for programs


@pytest.mark.long
def test_a_person_gets_a_sentence_a_table_warnings_and_the_next_command(ask, person):
    files = ["--captions", "weak.json", "strong.json", *REFS, "--metric", "lic", "ratio", "ba"]
    printed = ask("score", *SMALL, *files, "--seeds", "6")
    sentences.check("score: for a person", printed.out, numbers=False)
    sentences.check("score: for a person, beside it", printed.err, numbers=False)


@pytest.mark.parametrize(("width", "tables"), [(300, 1), (80, 2), (40, 5)])
def test_a_narrow_terminal_gets_more_tables_and_cuts_no_cell(width, tables):
    words = ["letters", "verdict", "LIC", "LIC_M", "LIC_M (with references)", "LIC_D", "ratio", "error"]
    row = ["sat", "ab", "inconclusive", *["43.7 ±1.7 [41.5, 45.9]"] * 6]
    parts = list(fitting(pd.DataFrame([row, row], columns=["captioner", *words]), width))
    assert len(parts) == tables and all(list(table)[0] == "captioner" for table in parts)
    assert [name for table in parts for name in table if name != "captioner"] == words
    assert max(len(line) for table in parts for line in text_table(table).splitlines()) <= width


@pytest.mark.long
def test_rows_as_json(score):
    """Errors come by label, with their gap."""
    rows = json.loads(score(*STRONG, "--metric", "ratio", "error", "--format", "json").out)
    assert [row["metric"] for row in rows] == ["ratio", "error", "error", "error", "error_gap"]


# What does not fit together. Capitals stand for the lists above.
BAD = {
    "missing file": "score SMALL --captions nowhere.csv",
    "no kind": "import nowhere.csv --kind zebra",
    "wrong attribute": "score STRONG LABELS --attribute gendr",
    "output before input": "score SMALL --captions nowhere.csv --output nofolder/out.csv",
    "files and names": "score SMALL STRONG --collection x",
    "unknown collection": "score --collection x --attribute gender",
    "two questions": 'EXPLAIN --image 7 --text "a man"',
    "an image without a label": "EXPLAIN --image 90",
    "flags of another kind": "import strong.json --map gender:b=Female",
    "one name for several files": "import strong.json weak.json --name one",
    "a map of another attribute": "score SMALL STRONG --map race:Male=Light",
    "choices of files": "score --collection x --attribute gender --rows a=b --map gender:f=Female --sets each",
    "an unknown run": "list --repeat zz",
    "no command": "",
    "an unknown command": "scroe",
    "cancelled and repeated": "list --cancel all --repeat all",
}
# What the command line refuses without looking at files.
WRONG = {
    "no attribute": "score STRONG",
    "an unknown flag": "score SMALL --refrences human.json",
    "no value": "score STRONG --attribute",
    "a stray word": "list everything",
    "a port of nobody": "app --port 70000",
    "an unknown view": "view tabel",
}


@pytest.mark.long
@pytest.mark.parametrize("name", [*BAD, *WRONG])
def test_bad_input_is_one_sentence_and_code_2_before_anything_runs(ask, name):
    """Python refuses more, by the same checks (tests/test_api.py)."""
    lists = {"SMALL": SMALL, "STRONG": STRONG, "EXPLAIN": EXPLAIN, "LABELS": LABELS}
    given = [part for word in shlex.split((BAD | WRONG)[name]) for part in lists.get(word, [word])]
    printed = ask(*given, code=2)
    (error,) = [line for line in printed.err.splitlines() if line.startswith("error: ")]
    assert printed.err.endswith(f"{error}\n") and "to do" not in printed.err
    assert not printed.out
    assert name not in WRONG or error.endswith(" --help.")
    sentences.check(f"error: {name}", error)


VIEWS = tuple(name for name in cli._app()["view"] if not name.startswith("-"))
OF_VIEW = [("view", name) for name in VIEWS]
PARTS = [("labels", name) for name in ("derive", "cross")]
PARTS += [("images", name) for name in ("detect", "mask", "caption")]


@pytest.mark.long
@pytest.mark.parametrize("words", [*[(name,) for name in cli.COMMANDS], *OF_VIEW, *PARTS], ids=" ".join)
def test_help_has_an_example(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    example = text.split("Example:")[1]
    commands = [line for line in example.splitlines() if line.startswith(("  capbias", "    --"))]
    assert all(len(line) < 80 for line in commands), "a terminal of 80 columns would break it"
    assert f"capbias {' '.join(words)}" in example and f"Usage: capbias {' '.join(words)}" in text


@pytest.mark.long
def test_each_choice_of_a_measure_is_a_flag_of_score_or_listed_by_metrics(capsys):
    assert cli.main(["score", "--help"]) == 0
    flags = set(capsys.readouterr().out.replace(",", " ").split())
    for measure in (own for own in MEASURES.values() if own.groups):
        assert cli.main(["metrics", measure.groups[0].name]) == 0
        listed = re.findall(r"^  (\w+): ", capsys.readouterr().out.partition("--option NAME=VALUE")[2], re.MULTILINE)
        choices = {name: about.flag for name, about in measure.options.about().items() if about.flag}
        assert choices.keys() <= {*listed, *(name for name, flag in choices.items() if flag in flags)}
        assert choices.keys() >= set(listed)


@pytest.mark.long
def test_help_of_all_commands_is_quick_and_light():
    heavy = "pandas", "numpy", "torch", "sklearn", "streamlit", "capbias_core.measures", "capbias_core.workspace"
    code = (
        "import sys\nfrom capbias_core.cli import main\nassert main(['--help']) == main(['--version']) == 0\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr.strip() == "[]"
    assert all(f" {name} " in done.stdout for name in cli.COMMANDS) and done.stdout.endswith(f"{__version__}\n")


@pytest.mark.long
def test_metrics_lists_and_explains_each_name_that_score_takes(capsys):
    assert cli.main(["metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(GROUPS) + 1]] == list(GROUPS)
    for name in [*GROUPS, "lic_m", "Dba"]:
        assert cli.main(["metrics", name]) == 0
        text = capsys.readouterr().out
        for metric in expand_metrics([name]):
            assert METRICS[metric].explanation in text and METRICS[metric].source in text


@pytest.mark.long
def test_ctrl_c_leaves_the_rows_of_the_runs_that_had_finished(score, here, monkeypatch):
    """The second captioner's run is stopped by what Ctrl-C raises, once the first one's has finished."""
    run_one, progress_of = worker.run_one, running.progress_of

    def never_over(workspace, spec, progress):
        while spec.model == "weak":
            progress(0.5, "until it is cancelled")
            time.sleep(0.05)
        return run_one(workspace, spec, progress)

    def ctrl_c(rows, to_come):
        if any(row.status == "finished" for row in rows):
            raise KeyboardInterrupt
        return progress_of(rows, to_come)

    monkeypatch.setattr(worker, "run_one", never_over)
    monkeypatch.setattr(running, "progress_of", ctrl_c)
    out = here / "out.csv"
    score("--captions", "strong.json", "weak.json", "--metric", "ratio", "--output", str(out), code=130)
    assert set(pd.read_csv(out)["model"]) == {"strong"}


# a workspace: import, list, score, explain, export


@pytest.fixture(scope="module")
def kept(small, tmp_path_factory) -> Path:
    """A workspace with the small files in the collection `my captions`."""
    folder = tmp_path_factory.mktemp("kept")
    for name, kind in {"attributes.csv": "labels", "human.json": "references", "strong.json": "captions"}.items():
        assert cli.main(["import", str(small / name), "--kind", kind, "--workspace", str(folder)]) == 0
    return folder


OF_KEPT = ["--collection", "my captions", "--captions", "strong", "--attribute", "gender"]


def items_of(here: Path) -> dict:
    return {(item.kind, item.name): item for item in Workspace(here / "home").items()}


@pytest.mark.long
def test_import_reports_and_stores(ask, here):
    folder = here / "home"
    assert "nothing was stored" in ask("import", "strong.json", "--dry-run").out and not folder.exists()
    assert "empty" in ask("list").out and not folder.exists()
    more = ["--kind", "labels", "--name", "labels", "--map", "gender:Unsure=Male"]
    sentences.check("import: labels", ask("import", "attributes.csv", *more).out)
    sentences.check("import: captions", ask("import", "strong.json", "--trained-on-references", "no").out)
    items = items_of(here)
    assert set(items) == {("labels", "labels"), ("captions", "strong")}
    assert items["captions", "strong"].details["trained_on_references"] is False
    assert items["labels", "labels"].details["attributes"]["gender"]["mapping"]["Unsure"] == "Male"


def test_the_answer_of_a_question_of_import_is_a_command(ask, here):
    (here / "human_refs.json").write_bytes(Path("strong.json").read_bytes())
    files = ["strong.json", "attributes.csv", str(here / "human_refs.json")]
    *_, command = ask("import", *files, code=2).err.splitlines()
    ask(*shlex.split(command)[1:])
    assert ("references", "human_refs") in items_of(here)
    ask("import", "--labels", "attributes.csv", "--references", "strong.json", "--collection", "flags")
    assert ("references", "strong") in items_of(here)


@pytest.mark.long
def test_a_folder_of_photographs_is_one(ask, here):
    folder = here / "val2017"
    folder.mkdir()
    (folder / "000000000001.jpg").write_bytes(b"not opened before it is shown")
    (folder / ".hidden").touch()
    ask("import", str(folder), "--collection", "c")
    assert {kind: item.images for (kind, _), item in items_of(here).items()} == {"photographs": 1}
    for more in (["strong.json"], ["--trained-on-references", "yes"]):
        ask("import", str(folder), *more, code=2)
    (folder / "captions.json").write_text("[]")
    ask("import", str(folder), code=2)  # nothing in it is left out without a word


@pytest.mark.long
def test_an_attribute_under_another_column(ask, here):
    (here / "own.csv").write_text("image_id,a\n" + "".join(f"{n},{label_of(n)[:1]}\n" for n in range(1, IMAGES + 1)))
    argv = ["import", str(here / "own.csv"), "--kind", "labels"]
    assert "height" in ask(*argv, "--attribute", "gender=a", "height", code=2).err
    assert "--attribute gender=a" in ask(*argv, code=2).err
    assert "gender (column a): Female from F; Male from M" in ask(*argv, "--attribute", "gender=a").out
    (here / "own.csv").write_text("image_id,a\n1,tall\n2,short\n")
    ask(*argv, code=2)


@pytest.mark.long
def test_score_list_and_export_of_a_collection(ask, kept):
    of = ["--collection", "my captions", "--workspace", str(kept)]
    asked = ["score", *of, "--attribute", "gender", "--seeds", "2", "--metric", "lic", "error", *CSV]
    rows = ask(*asked).rows
    names = ["LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", *["error"] * 3, "error_gap"]
    assert rows["metric"].tolist() == names
    again = ask(*asked)
    assert "to do" not in again.err and again.rows.equals(rows), "finished runs are not repeated"
    listed = json.loads(ask("list", "--json", "--workspace", str(kept)).out)
    assert {item["name"] for item in listed["items"]} == {"attributes", "human", "strong"}
    assert set(rows["run_id"]) <= {run["run_id"] for run in listed["runs"] if run["status"] == "finished"}
    assert "finished" in ask("list", *of).out
    ask("list", "--collection", "other", "--workspace", str(kept), code=2)
    export = ["export", *of, "--metric", "lic", "error"]
    human = ["human" if name else "" for name in rows["encoder"]]
    exported = ask(*export).rows
    assert exported.equals(rows.assign(labels="attributes", references=human)[list(exported)])
    records = json.loads(ask(*export, "--format", "json").out)
    assert [row["value"] for row in records] == rows["value"].astype(float).tolist()
    assert r"captioner & verdict & LIC" in ask(*export, "--format", "tex").out
    assert ask("export", *of, "--metric", "leakage").metrics == ["leakage", "SC", "SC_D"]
    for more in (["--attribute", "race"], ["--attribute", "gender", "--references", "other"]):
        ask("score", *of, *more, code=2)
    ask("score", *of, "--attribute", "gender", "--values", "a", code=2)


@pytest.mark.long
def test_a_table_of_labels_is_chosen_by_its_name(ask, here):
    """In the second table, which is the newest, the labels are the other way round."""
    labels = pd.read_csv("attributes.csv", keep_default_na=False)
    turned = labels["gender"].map({"Female": "Male", "Male": "Female"}).fillna("")
    labels.assign(gender=turned).to_csv(here / "turned.csv", index=False)
    ask("import", "strong.json", "attributes.csv", str(here / "turned.csv"))
    of = ["score", "--collection", "my captions", "--attribute", "gender", "--metric", "error"]
    assert "no more often than chance" in ask(*of, code=2).err
    of += ["--option", "shuffled=true"]
    errors = [ask(*of, *CSV, *more).value for more in ([], ["--labels", "attributes"], ["--labels", "turned"])]
    assert errors[0] == errors[2] > 50 > errors[1]
    ask(*of, "--labels", "turnd", code=2)


@pytest.mark.long
def test_columns_of_two_annotators_are_asked_about_and_may_be_a_table_each(ask, here):
    """The labels of the second annotator are the opposite, which shows whose labels were read."""
    table = pd.read_csv("attributes.csv", keep_default_na=False).rename(columns={"gender": "perceived"})
    table["second rater"] = table["perceived"].map({"Female": "m", "Male": "f"}).fillna("?")
    table.rename(columns={"image_id": "Photo"}).to_csv(here / "raters.csv", index=False)
    files = ["strong.json", str(here / "raters.csv")]
    columns = ("perceived", "second rater")
    score = ["score", *files, "--attribute", "gender", "--metric", "error", "--option", "shuffled=true", *CSV]
    asked = ask(*score, code=2).err
    assert all(f"--attribute-column {shlex.quote(column)} " in asked for column in columns)
    assert [ask(*score, "--attribute-column", column).value < 50 for column in columns] == [True, False]
    assert "--attribute gender=perceived " in ask("import", *files, code=2).err
    ask("import", *files, "--attribute", *(f"gender={column}" for column in columns))
    assert [name for kind, name in items_of(here) if kind == "labels"] == ["raters perceived", "raters second rater"]
    of = ["--collection", "my captions", "--attribute", "gender", "--metric", "error", *CSV]
    assert ask("score", *of).value < 50


# explain


@pytest.fixture
def explained(ask, kept):
    def run(*more: str) -> dict:
        return json.loads(ask("explain", *OF_KEPT, "--workspace", str(kept), "--format", "json", *more).out)

    return run


@pytest.mark.long
def test_words_push_toward_the_label_that_they_go_with(explained):
    found = explained("--min-count", "5", "--top", "3")
    pushes = {item["word"]: item["toward"] for item in found["words"]}
    assert {"umbrella", "cake", "horse"} & set(pushes) and {"skateboard", "tie", "motorcycle"} & set(pushes)
    things = {thing.split()[-1]: value for value, own in THINGS.items() for thing in own}
    assert all(pushes[word] == things[word] for word in set(pushes) & set(things))
    for item in found["words"]:
        if item["captioner"] != "strong":
            continue
        wrote = [row for row in captions(1, 0.95) if row["image_id"] <= 85 and item["word"] in row["caption"].split()]
        assert item["n"] == len(wrote) and (item["value"] > 0) == (item["toward"] == "Male")
    assert found["largest_convergence_delta"] == 0


def adds_up(found: dict, value: str = "Male") -> None:
    """intercept + words = logit."""
    total = found["intercept"][value] + sum(token["adds"][value] for token in found["tokens"])
    assert total == pytest.approx(found["logit"][value], abs=1e-6)


@pytest.mark.long
def test_the_words_of_an_image_and_of_any_caption_add_up(explained):
    (caption,) = explained("--image", "COCO_val2014_000000000007.jpg")["captions"]
    text = explained("--text", "A lady with a TIE\x1b[31m")
    for found in (caption, text):
        adds_up(found)
        assert found["probability"]["Male"] == pytest.approx(1 / (1 + math.exp(-found["logit"]["Male"])))
        assert sum(found["probability"].values()) == pytest.approx(1)
    assert (caption["image_id"], caption["label"]) == ("7", "Female")
    assert caption["caption"] == captions(1, 0.95)[6]["caption"]
    assert [token["token"] for token in caption["tokens"]][:2] == ["a", "<gender>"]
    assert [token["token"] for token in text["tokens"]] == ["a", "<gender>", "with", "a", "tie", "31m"]


@pytest.mark.long
def test_three_values_push_each_by_itself(ask):
    argv = ["explain", *STRONG, *LABELS, "--attribute", "height", "--format", "json"]
    (caption,) = json.loads(ask(*argv, "--image", "7").out)["captions"]
    assert set(caption["logit"]) == {"low", "mid", "high"}
    for value in caption["logit"]:
        adds_up(caption, value)
    words = json.loads(ask(*argv, "--min-count", "3", "--top", "2").out)["words"]
    assert {item["toward"] for item in words} == {"low", "mid", "high"}
    assert all(item["value"] > 0 for item in words)


@pytest.mark.long
def test_edits_are_scored_out_of_fold(explained, kept):
    explained("--image", "7")
    workspace = Workspace(kept)
    scored = current_runs(workspace, "my captions", "caption_scores")
    run = next(run for run in scored if run.spec.model == "strong" and run.spec.attribute["name"] == "gender")
    attackers, gender = stored_attackers(run), get_attribute("gender")
    written = workspace.frame(run.spec.captions)
    same, other = (edit_effect(caption_scores(run), written, attackers, "man", new) for new in ("woman", "person"))
    wrote = [row for row in captions(1, 0.95) if row["image_id"] <= 85 and " man " in row["caption"]]
    assert same["captions_with_the_word"] == other["captions_with_the_word"] == len(wrote)
    assert same["captions_that_read_differently"] == 0 and same["note"]
    assert same["probability_before"] == pytest.approx(same["probability_after"])
    assert same["change_of_logit"]["Male"] == pytest.approx(0, abs=1e-9)
    assert other["captions_that_read_differently"] == len(wrote) and other["note"] == ""
    # each by the attacker that held the image out
    scores = pd.read_parquet(io.BytesIO(workspace.array(run.run_id, "scores"))).set_index("image_id")
    for when, new in (("before", "man"), ("after", "person")):
        expected = [
            attackers.score(
                row["caption"].replace(" man ", f" {new} "), gender, int(scores.at[str(row["image_id"]), "fold"])
            ).probabilities[1]
            for row in wrote
        ]
        assert other[f"probability_{when}"]["Male"] == pytest.approx(sum(expected) / len(expected))
    assert all(row["after"] == row["before"].replace(" man ", " person ") for row in other["examples"])


EXPLAINED = {"an image": ["--image", "7"], "the set beside human captions": ["--top", "3", "--min-count", "5"]}


@pytest.mark.long
@pytest.mark.parametrize("name", EXPLAINED)
def test_explain_for_a_person(ask, kept, name):
    text = ask("explain", *OF_KEPT, "--workspace", str(kept), *EXPLAINED[name]).out
    assert "\x1b" not in text
    sentences.check(f"explain: {name}", text, numbers=False)


@pytest.mark.long
def test_demo_beside_the_truth(ask, here, monkeypatch):
    whole = demo.demo_request()
    changed = {**vars(whole), "metrics": ("lic",), "captions": ("amplifier",), "seeds": 2, "words": False}
    monkeypatch.setattr(demo, "demo_runs", lambda workspace: plan(workspace, type(whole)(**changed)))
    header, row = ask("demo").out.splitlines()
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text())["truth"]["amplifier"]["LIC"]
    assert header.split() == ["captioner", "verdict", "LIC", "true", "LIC"]
    assert row.split()[0] == "amplifier" and row.split()[-1] == f"{truth:.2f}"
    assert float(re.search(r"(\S+) \[", row)[1]) == pytest.approx(truth, abs=6)


def test_an_unexpected_error_has_an_exit_code_of_its_own(monkeypatch, capsys):
    """Python's 1 would mean "worse" to a gate."""

    def fail() -> int:
        raise ZeroDivisionError("of this test")

    monkeypatch.setattr(cli, "main", fail)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        cli.command()
    signal.signal(signal.SIGTERM, before)
    assert ended.value.code == cli.UNEXPECTED == 70
    text = capsys.readouterr().err
    assert "ZeroDivisionError: of this test" in text and text.splitlines()[-1].startswith("error: this is a bug")
