"""The command line: what it prints, where it writes, how it ends; numbers against METRICS.md on the real captions."""

import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import __version__, cli
from capbias_core.aggregate import Pair, Ranking
from capbias_core.analysis.read import caption_runs, stored_attackers
from capbias_core.attributes import get_attribute
from capbias_core.cli import running
from capbias_core.cli.score import _tables
from capbias_core.measures.base import Outcome
from capbias_core.measures.registry import MEASURES, expand_metrics
from capbias_core.present.latex import escape_latex, to_latex
from capbias_core.present.sentence import told_apart
from capbias_core.present.table import lettered, pair_table, scores_table, to_csv, to_json, to_text
from capbias_core.resources import DEMO_FOLDER
from capbias_core.runs import demo
from capbias_core.runs import run as run_module
from capbias_core.runs.durations import Expected
from capbias_core.runs.plan import plan
from capbias_core.types import RESULT_COLUMNS, Result
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RunRow, Workspace

# A thread that still reads a workspace after it was removed.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

ROOT = Path(__file__).resolve().parents[2]
IMAGES = 90  # 40 Female, 45 Male, 5 dropped
THINGS = {"Female": ("an umbrella", "a cake", "a horse"), "Male": ("a skateboard", "a tie", "a motorcycle")}
NAMED = {"Female": "woman", "Male": "man"}


def label_of(image: int) -> str:
    return "Female" if image <= 40 else "Male" if image <= 85 else ("Both", "Both", "Unsure", "", "")[image - 86]


def captions(seed: int, share: float) -> list[dict]:
    """One caption an image: a thing of the labelled value in `share` of them; every eighth names no gender."""
    rng, found = random.Random(seed), []
    for image in range(1, IMAGES + 1):
        label = label_of(image) if label_of(image) in THINGS else "Male"
        other = "Male" if label == "Female" else "Female"
        thing = rng.choice(THINGS[label if rng.random() < share else other])
        who = "person" if image % 8 == 0 else NAMED[label]
        found.append({"image_id": image, "caption": f"a {who} with {thing} on a {rng.choice(['street', 'field'])}"})
    return found


def write_files(folder: Path) -> Path:
    rows = [f"{image},{label_of(image)},{('low', 'mid', 'high')[image % 3]}" for image in range(1, IMAGES + 1)]
    (folder / "attributes.csv").write_text("\n".join(["image_id,gender,height", *rows]) + "\n")
    for name, share in (("strong", 0.95), ("weak", 0.6)):
        (folder / f"{name}.json").write_text(json.dumps(captions(1, share)))
    human = [{"id": 10 * row["image_id"] + seed, **row} for seed in range(2, 5) for row in captions(seed, 0.7)]
    images = [{"id": image} for image in range(1, IMAGES + 1)]
    (folder / "human.json").write_text(json.dumps({"images": images, "annotations": human}))
    (folder / "few.json").write_text(json.dumps(captions(1, 0.9)[30:45]))
    (folder / "elsewhere.json").write_text(json.dumps([{"image_id": 5000 + n, "caption": "a dog"} for n in range(9)]))
    (folder / "broken.json").write_text('[{"image_id": 1, "caption": "a wom')
    (folder / "again").mkdir()
    (folder / "again" / "strong.json").write_text(json.dumps(captions(1, 0.95)))
    return folder


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


SMALL = ["--labels", "attributes.csv", "--attribute", "gender"]


def scored(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


def score(*more: str) -> int:
    return cli.main(["score", *SMALL, *more])


# score, on files


def test_the_first_line_says_what_positional_files_are_taken_for(here, capsys):
    files = ["strong.json", "attributes.csv", "human.json", "weak.json"]
    assert cli.main(["score", *files, "--attribute", "gender", "--metric", "ratio"]) == 0
    printed = capsys.readouterr()
    assert re.findall(r"(\S+\.\w+): (.*?)(?:;|$)", printed.err.splitlines()[0]) == [
        ("strong.json", "captions of a model"),
        ("attributes.csv", "labels"),
        ("human.json", "human captions"),
        ("weak.json", "captions of a model"),
    ]
    assert scored(printed.out).set_index("model")["value"].astype(float)["strong"] == pytest.approx(40 / 35)


def test_a_model_with_several_captions_per_image_is_not_the_reference(here, capsys):
    """Nor is one whose name says human: LIC needs references that the user names, and the note says how."""
    (here / "llava-human-aligned.json").write_text(json.dumps(captions(1, 0.9)))
    (here / "several.json").write_text(json.dumps([*captions(1, 0.9), *captions(2, 0.9)]))
    files = ["strong.json", str(here / "llava-human-aligned.json"), str(here / "several.json"), "attributes.csv"]
    assert cli.main(["score", *files, "--attribute", "gender", "--metric", "ratio", "LIC"]) == 0
    printed = capsys.readouterr()
    rows = scored(printed.out)
    assert set(rows["model"]) == {"strong", "llava-human-aligned", "several"}
    assert "LIC" not in set(rows["metric"]) and re.search("LIC, .* left out: human captions", printed.err)
    notes = [line for line in printed.err.splitlines() if line.startswith("note") and "--references" in line]
    assert len(notes) == 2 and "llava-human-aligned.json" in notes[0] and "several.json" in notes[1]


@pytest.mark.long
def test_score_writes_one_row_a_number(here, capsys):
    out = here / "out.csv"
    more = ["--references", "human.json", "--seeds", "2", "--attacker", "ngram", "--output", str(out)]
    code = score("--captions", "weak.json", "strong.json", "--metric", "lic", "ratio", "error", *more)
    printed = capsys.readouterr()
    rows = scored(out.read_text())
    assert code == 0
    assert printed.out == "" and "a classifier guesses the labelled gender" in printed.err
    assert tuple(rows.columns) == (*RESULT_COLUMNS, "name", "letters")
    names = ["LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", "ratio", "error"]
    assert list(zip(rows["model"], rows["metric"], strict=True)) == [(m, n) for m in ("weak", "strong") for n in names]
    value = rows.set_index(["model", "metric"])["value"].astype(float)
    assert value["strong", "LIC"] == pytest.approx(value["strong", "LIC_M"] - value["strong", "LIC_D"])
    assert value["strong", "LIC_M"] > value["weak", "LIC_M"] > 20
    assert value["strong", "ratio"] == pytest.approx(40 / 35) and value["strong", "error"] == 0
    assert not (here / "home").exists(), "the file form needs no workspace"


@pytest.mark.long
def test_score_says_what_it_did_on_stderr(here, capsys):
    assert score("--captions", "strong.json", "--metric", "ratio") == 0
    printed = capsys.readouterr()
    assert "dropped: Both 2, Unsure 1, empty 2" in printed.err.splitlines()
    assert "note: Labels: Female 40, Male 45." in printed.err.splitlines()
    assert "\r" not in printed.err and "\x1b" not in printed.err
    assert scored(printed.out)["metric"].tolist() == ["ratio"]


@pytest.mark.long
def test_ba_and_dba_with_objects_of_the_table(here, capsys):
    table = pd.read_csv("attributes.csv").assign(objects=lambda rows: ["person|cake", "tie"] * (len(rows) // 2))
    table.to_csv("objects.csv", index=False)
    inputs = ["--captions", "strong.json", "--references", "human.json", "--attribute", "gender"]
    assert cli.main(["score", *inputs, "--labels", "objects.csv", "--metric", "ba", "dba"]) == 0
    rows = scored(capsys.readouterr().out)
    assert rows["metric"].tolist() == ["BA", "BA_crossfit", "DBA_G", "DBA_G_crossfit", "DBA_O", "DBA_O_crossfit"]
    assert (rows["encoder"] == "").all() and (rows["scale"].astype(float) == 100).all()
    assert (rows["value"].astype(float).abs() <= 100).all() and float(rows["value"][0]) > 0
    assert (rows["ci_low"].iloc[::2] == "").all(), "the paper's values have no interval"
    low, high = (float(rows[name].iloc[1]) for name in ("ci_low", "ci_high"))
    assert low <= high


@pytest.mark.long
def test_ba_and_dba_say_what_they_lack(here, capsys):
    assert score("--captions", "strong.json", "--references", "human.json", "--metric", "ba", "dba") == 0
    printed = capsys.readouterr()
    assert "warning: DBA_G, DBA_G_crossfit left out: the objects of the images are not known" in printed.err
    assert scored(printed.out)["metric"].tolist() == ["BA", "BA_crossfit", "DBA_O", "DBA_O_crossfit"]
    assert score("--captions", "strong.json", "--metric", "ba") == 2
    assert "BA, BA_crossfit left out: human captions are needed (--references)" in capsys.readouterr().err


@pytest.mark.long
def test_without_references_the_others_are_written(here, capsys):
    assert score("--captions", "strong.json", "--metric", "lic", "leakage", "--seeds", "1") == 0
    printed = capsys.readouterr()
    lacking = "LIC, LIC_by_H, LIC_by_M, LIC_D, LIC_HM, LIC_MH, leakage, SC_D"
    assert f"warning: {lacking} left out: human captions are needed (--references)" in printed.err
    assert scored(printed.out)["metric"].tolist() == ["LIC_M", "SC"]


@pytest.mark.long
def test_references_of_other_images_are_a_warning(here, capsys):
    code = score("--captions", "strong.json", "--metric", "lic", "--seeds", "1", "--references", "few.json")
    assert code == 1, "15 images with references are too few, which only the run finds out"
    assert "each needs 10" in capsys.readouterr().err


@pytest.mark.long
def test_a_warning_about_several_files_is_said_once(here, capsys):
    assert score("--captions", "strong.json", "weak.json", "--metric", "ratio", "--references", "few.json") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert lines == ["warning: strong.json, weak.json: 75 of 90 images have no reference and count for LIC_M alone."]


@pytest.mark.long
def test_counting_alone_trains_nothing(here, capsys, monkeypatch):
    def fit(*_args):
        raise AssertionError("trained")

    monkeypatch.setattr("capbias_core.attackers.ngram.NgramAttacker.fit_many", fit)
    assert score("--captions", "strong.json", "--metric", "ratio", "error", "--references", "human.json") == 0
    assert scored(capsys.readouterr().out)["metric"].tolist() == ["ratio", "error"]


@pytest.mark.long
def test_a_column_of_three_labels(here, capsys):
    argv = ["score", "--captions", "strong.json", "--labels", "attributes.csv", "--attribute", "height"]
    assert cli.main([*argv, "--metric", "sc", "ratio", "--seeds", "1"]) == 0
    printed = capsys.readouterr()
    assert "warning: ratio left out: height has no words that captions could name" in printed.err
    assert scored(printed.out)["metric"].tolist() == ["SC"]
    assert cli.main([*argv, "--metric", "sc", "--seeds", "1", "--values", "low", "high"]) == 0
    assert "dropped: mid 30" in capsys.readouterr().err


@pytest.mark.long
def test_columns_by_name(here, capsys):
    (here / "odd.csv").write_text(
        "who,said\n" + "".join(f"{r['image_id']},{r['caption']}\n" for r in captions(1, 0.95))
    )
    argv = ["--captions", str(here / "odd.csv"), "--metric", "ratio"]
    assert score(*argv) == 2
    assert score(*argv, "--image-id-column", "who", "--caption-column", "said") == 0
    assert float(scored(capsys.readouterr().out)["value"][0]) == pytest.approx(40 / 35)


@pytest.mark.long
def test_an_attribute_from_a_file_and_a_column_by_name(here, capsys):
    own = here / "own.toml"
    own.write_text('values = ["Female", "Male"]\n[words]\nFemale = ["woman"]\nMale = ["man"]\n')
    argv = ["score", "--captions", "strong.json", "--labels", "attributes.csv", "--metric", "ratio"]
    assert cli.main([*argv, "--attribute", str(own), "--attribute-column", "gender"]) == 0
    row = scored(capsys.readouterr().out).iloc[0]
    assert row["attribute"] == "own" and float(row["value"]) == pytest.approx(40 / 35)


@pytest.mark.long
def test_a_failed_run_leaves_the_numbers_of_the_others(here, capsys):
    out = here / "out.csv"
    argv = ["--captions", "few.json", "strong.json", "--metric", "sc", "--seeds", "1", "--output", str(out)]
    assert score(*argv) == 1
    printed = capsys.readouterr()
    assert "error: few (ngram) failed: " in printed.err
    assert scored(out.read_text())["model"].tolist() == ["strong"]


@pytest.mark.long
def test_where_nothing_was_measured_nothing_is_written(here):
    out = here / "out.csv"
    assert score("--captions", "few.json", "--metric", "sc", "--seeds", "1", "--output", str(out)) == 1
    assert not out.exists()


@pytest.mark.long
def test_a_disk_that_refuses_leaves_the_old_file(here, capsys, monkeypatch):
    out = here / "kept" / "out.csv"
    out.parent.mkdir()
    out.write_text("old")

    def replace(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", lambda self, target: replace() if target == out else os.replace(self, target))
    assert score("--captions", "strong.json", "--metric", "ratio", "--output", str(out)) == 2
    assert "--output" in capsys.readouterr().err
    assert out.read_text() == "old" and [path.name for path in out.parent.iterdir()] == ["out.csv"]


# score, for a person and for programs


@pytest.fixture
def person(monkeypatch):
    """A terminal that somebody reads."""
    monkeypatch.setattr("capbias_core.cli.score.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "2000")


@pytest.mark.long
def test_a_person_gets_a_sentence_a_table_warnings_and_the_next_command(here, person, capsys):
    files = ["--captions", "weak.json", "strong.json", "--references", "human.json", "--metric", "lic", "ratio", "ba"]
    assert score(*files, "--seeds", "6") == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    said = ("strong differs from the human", "strong: no difference", "strong: more predictable than human captions")
    assert lines[0].startswith(said)
    sentence = "With every gender word hidden, a classifier still guesses the labelled gender right for"
    assert sentence in lines[0] and "(SC " in lines[0] and "LIC_M " in lines[0]
    head = next(line for line in lines if line.startswith("captioner"))
    assert head.split() == [
        "captioner",
        "letters",
        "verdict",
        *("LIC", "LIC_by_H", "LIC_M", "LIC_D", "ratio", "BA", "BA_crossfit"),
    ], "without what the verdict follows from"
    assert [line.split()[0] for line in lines[lines.index(head) + 1 :][:2]] == ["strong", "weak"], "highest LIC first"
    assert "told apart (differences within each seed" in printed.out
    assert next(line for line in lines if line.startswith("LIC, row minus column"))
    assert lines[-1] == "Next: capbias explain --captions strong.json --labels attributes.csv --attribute gender"
    assert "run_id" not in printed.out, "no rows of CSV for a person"


@pytest.mark.parametrize(("width", "tables"), [(300, 1), (80, 3), (40, 7)])
def test_a_narrow_terminal_gets_more_tables_and_cuts_no_cell(width, tables):
    words = ["letters", "verdict", "LIC", "LIC_M", "LIC_M (with references)", "LIC_D", "ratio", "error"]
    row = ["sat", "ab", "inconclusive", *["43.7 ±1.7 [41.5, 45.9]"] * 6]
    found = list(_tables(pd.DataFrame([row, row], columns=["captioner", *words]), width))
    assert len(found) == tables and all(list(table)[0] == "captioner" for table in found)
    assert [name for table in found for name in table if name != "captioner"] == words
    assert max(len(line) for table in found for line in to_text(table).splitlines()) <= width


@pytest.mark.long
def test_warnings_stand_in_one_place_and_once(here, person, capsys):
    assert score("--captions", "strong.json", "--metric", "lic", "--seeds", "1") == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "to do" not in line]
    assert (
        said[0]
        == "warning: LIC, LIC_by_H, LIC_by_M, LIC_D, LIC_HM, LIC_MH left out: human captions are needed (--references)"
    )
    assert len(set(said)) == len(said) and all(line.startswith(("note", "labels", "dropped")) for line in said[1:])
    assert "labels: gender from the column gender of attributes.csv" in said


@pytest.mark.long
def test_a_person_who_writes_a_file_is_answered_too(here, person, capsys):
    out = here / "rows.json"
    assert score("--captions", "strong.json", "--metric", "ratio", "--output", str(out)) == 0
    assert "ratio" in capsys.readouterr().out
    (row,) = json.loads(out.read_text())
    assert row["metric"] == "ratio" and row["value"] == pytest.approx(40 / 35)


@pytest.mark.long
@pytest.mark.parametrize(
    ("format", "reads"),
    [
        ("csv", lambda text: scored(text)["metric"].tolist()),
        ("json", lambda text: [row["metric"] for row in json.loads(text)]),
        ("table", lambda text: text.splitlines()[0].split()[1:]),
    ],
)
def test_rows_in_the_format_that_was_asked_for(here, capsys, format, reads):
    assert score("--captions", "strong.json", "--metric", "ratio", "error", "--format", format) == 0
    assert reads(capsys.readouterr().out) == ["ratio", "error"]


@pytest.mark.long
def test_a_metric_without_a_row_is_said_and_no_row_is_never_code_0(here, capsys, monkeypatch):
    monkeypatch.setattr("capbias_core.runs.run.run_one", lambda *_args: Outcome([], {}, ("there was nothing",)))
    out = here / "out.csv"
    assert score("--captions", "strong.json", "--metric", "ratio", "--output", str(out)) == 1
    said = capsys.readouterr().err
    assert "warning: ratio left out: " in said and "note: there was nothing" in said
    assert not out.exists()


@pytest.mark.long
def test_every_metric_that_is_asked_for_has_a_row_or_a_reason(here, capsys):
    """Of these files, which have neither objects nor photographs; models that are not here are named."""
    wanted = ["lic", "leakage", "ratio", "error", "ba", "dba", "multi", "vocabulary", "naming", "attribution"]
    files = ["--captions", "strong.json", "--references", "human.json", "--metric", *wanted[:-1]]
    assert score(*files, "--seeds", "1") == 0
    printed = capsys.readouterr()
    there = set(scored(printed.out)["metric"])
    for name in expand_metrics(wanted[:-1]):
        assert name in there or f"{name}" in "".join(line for line in printed.err.splitlines() if "left out" in line), (
            name
        )
    assert score(*files, "--metric", "attribution") == 2
    assert "photographs" in capsys.readouterr().err.splitlines()[-1]


STRONG = ["--captions", "strong.json"]
EXPLAIN = ["explain", *SMALL, *STRONG]
LABELS = ["--labels", "attributes.csv"]
# What the message names.
BAD = {
    "missing file": (["score", *SMALL, "--captions", "nowhere.json"], "nowhere.json"),
    "missing labels": (["score", *STRONG, "--labels", "no.csv", "--attribute", "gender"], "no.csv"),
    "broken JSON": (["score", *SMALL, "--captions", "broken.json"], "broken.json"),
    "wrong attribute": (["score", *STRONG, *LABELS, "--attribute", "gendr"], "'gendr'. Did you mean gender?"),
    "wrong column": (["score", *SMALL, *STRONG, "--attribute-column", "sex"], "column 'sex'"),
    "no such image id column": (["score", *SMALL, *STRONG, "--image-id-column", "x"], "'x' (--image-id-column)"),
    "values of a shipped attribute": (["score", *SMALL, *STRONG, "--values", "a", "b"], "--values"),
    "one label": (
        ["score", *STRONG, *LABELS, "--attribute", "x", "--attribute-column", "gender", "--values", "Female"],
        "column gender",
    ),
    "output before input": (
        ["score", *SMALL, "--captions", "nowhere.json", "--output", "nofolder/out.csv"],
        "nofolder/out.csv",
    ),
    "output is a folder": (["score", *SMALL, *STRONG, "--output", "again"], "again is a folder"),
    "LIC without references": (["score", *SMALL, *STRONG, "--metric", "LIC_D"], "LIC_D left out"),
    "ratio without words": (["score", *STRONG, *LABELS, "--attribute", "height", "--metric", "ratio"], "height"),
    "unknown metric": (["score", *SMALL, *STRONG, "--metric", "bleu"], "metric 'bleu'. Did you mean bleu4"),
    "unknown format": (["score", *SMALL, *STRONG, "--format", "cvs"], "--format 'cvs'. Did you mean csv?"),
    "unknown tokenizer": (["score", *SMALL, *STRONG, "--tokenizer", "ptp"], "tokenizer 'ptp'. Did you mean ptb?"),
    "too many seeds": (["score", *SMALL, *STRONG, "--seeds", "51"], "--seeds"),
    "no seed": (["score", *SMALL, *STRONG, "--seeds", "0"], "--seeds"),
    "too many seeds of known answers": (["score", "--view", "known-answer", "--seeds", "51"], "--seeds"),
    "no view": (["score", "--view"], "--view"),
    "an unknown view": (["score", "--view=txt", "--input", "x"], "Did you mean text"),
    "a URL": (["score", *SMALL, "--captions", "https://example.org/sat.json"], "https://example.org/sat.json is a URL"),
    "a URL to import": (["import", "http://example.org/a.csv"], "http://example.org/a.csv is a URL"),
    "captions and labels swapped": (
        ["score", "--captions", "attributes.csv", "--labels", "strong.json", "--attribute", "gender"],
        "attributes.csv and strong.json are swapped",
    ),
    "captions as labels": (
        ["score", *STRONG, "--labels", "weak.json", "--attribute", "gender"],
        "weak.json holds captions",
    ),
    "captions as labels, to be derived": (
        ["score", *STRONG, "--labels", "weak.json", "--references", "human.json", "--attribute", "gender"],
        "weak.json holds captions",
    ),
    "labels as references": (
        ["score", *SMALL, *STRONG, "--references", "attributes.csv"],
        "attributes.csv holds labels",
    ),
    "captions as objects": (["score", *SMALL, *STRONG, "--objects", "human.json"], "human.json"),
    "a negative distance": (
        ["score", *SMALL, *STRONG, "--alignment", "contextual", "--vectors", "v.txt", "--delta=-1"],
        "--delta",
    ),
    "vectors without contextual alignment": (["score", *SMALL, *STRONG, "--vectors", "v.txt"], "--vectors"),
    "two questions": ([*EXPLAIN, "--image", "7", "--text", "a man"], "--image and --text"),
    "no image id": ([*EXPLAIN, "--image", ""], "--image"),
    "a port of nobody": (["app", "--port", "70000"], "70000"),
    "an open address": (["app", "--address", "0.0.0.0"], "sign-in"),
    "an address by name": (["app", "--address", "example.org"], "--insecure"),
    "unknown attacker": (["score", *SMALL, *STRONG, "--attacker", "gpt"], "ttacker 'gpt'"),
    "one name twice": (["score", *SMALL, *STRONG, "again/strong.json"], "strong"),
    "other images": (["score", *SMALL, "--captions", "elsewhere.json"], "elsewhere.json"),
    "no labels": (["score", "--attribute", "race", *STRONG], "--labels"),
    "nothing to read": (["score", "--attribute", "race"], "--collection"),
    "files and names": (["score", *SMALL, *STRONG, "--collection", "x"], "'x'"),
    "files and a workspace": (["score", *SMALL, *STRONG, "--workspace", "x"], "--workspace"),
    "no captions": (["score", *SMALL], "--captions"),
    "unknown collection": (["score", "--collection", "x", "--attribute", "gender"], "collection 'x'"),
    "not an edit": ([*EXPLAIN, "--words", "man woman"], "man woman"),
    "edits of an LSTM": ([*EXPLAIN, "--attacker", "lstm_bi", "--words", "man -> dog"], "ngram"),
    "a text for an LSTM": ([*EXPLAIN, "--attacker", "lstm_bi", "--text", "a man"], "ngram"),
    "an unknown image": ([*EXPLAIN, "--image", "4711"], "4711"),
    "an image without a label": ([*EXPLAIN, "--image", "90"], "90"),
    "two sets to explain": ([*EXPLAIN, "weak.json"], "here are 2"),
    "nothing to export": (["export", "--collection", "x"], "collection 'x'"),
    "labels as captions": (["import", "attributes.csv", "--kind", "captions"], "attributes.csv"),
    "options of the kind that is found": (["import", "attributes.csv", "--captioner", "x"], "--captioner"),
    "options of another kind": (["import", "strong.json", "--map", "a:b=c"], "--map"),
    "a wrong map": (["import", "attributes.csv", "--map", "gender"], "--map gender"),
    "a map to no value": (["import", "attributes.csv", "--map", "gender:Both=Men"], "'Men'"),
}


@pytest.mark.long
@pytest.mark.parametrize(("argv", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(here, capsys, argv, message):
    assert cli.main(argv) == 2
    printed = capsys.readouterr()
    (error,) = [line for line in printed.err.splitlines() if line.startswith("error: ")]
    assert message in error and printed.err.endswith(f"{error}\n")
    assert "Traceback" not in printed.err
    assert printed.out == "" or argv[0] == "import", "only an import may have reported on its file before"


WRONG = {
    "nothing": ([], "no command"),
    "an unknown command": (["scroe"], "command 'scroe'. Did you mean score?"),
    "no attribute": (["score", *STRONG], "--attribute"),
    "an unknown flag": (["score", *SMALL, "--refrences", "human.json"], "--refrences"),
    "no value": (["score", *STRONG, "--attribute"], "--attribute"),
    "no word": ([*EXPLAIN, "--top", "0"], "--top"),
    "no number": ([*EXPLAIN, "--top", "many"], "--top"),
    "a stray word": (["list", "everything"], "everything"),
}


@pytest.mark.parametrize(("argv", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line_and_code_2(argv, message, capsys):
    assert cli.main(argv) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ") and line.endswith(" --help.") and message in line
    assert printed.out == ""


def test_a_typo_names_the_nearest_flag(capsys):
    assert cli.main(["score", *SMALL, *STRONG, "--refrences", "human.json"]) == 2
    assert "Did you mean --references?" in capsys.readouterr().err


VIEWS = [("score", "--view", name) for name in cli.VIEWS]
PARTS = [("run", "status"), ("run", "cancel"), ("run", "resume")]
PARTS += [("labels", name) for name in ("derive", "cross", "compare", "check")]
PARTS += [("images", name) for name in ("detect", "mask", "caption")]


@pytest.mark.parametrize("words", [*[(name,) for name in cli.NAMES], *VIEWS, *PARTS], ids=" ".join)
def test_help_has_an_example(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    example = text.split("Example:")[1]
    commands = [line for line in example.splitlines() if line.startswith(("  capbias", "    --"))]
    assert all(len(line) < 80 for line in commands), "a terminal of 80 columns would break it"
    assert f"capbias {' '.join(words)}" in example and f"Usage: capbias {' '.join(words)}" in text


@pytest.mark.parametrize("name", cli.RENAMED)
def test_an_old_name_gives_the_new_one(name, capsys):
    assert cli.main([name, "--collection", "x"]) == 2
    assert f"capbias {cli.RENAMED[name]}." in capsys.readouterr().err
    assert cli.main([*cli.RENAMED[name].split(), "--help"]) == 0


def test_help_of_score_has_the_flags_of_all_measures_and_the_views(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["score", "--help"]) == 0
    words = set(capsys.readouterr().out.replace(",", " ").split())
    flags = {about.flag for own in MEASURES.values() if own.groups for about in own.options.about().values()}
    assert {*cli.VIEWS, "--workspace", *flags} - {None, ""} <= words


def test_a_folder_of_photographs_is_taken_for_that(here, capsys):
    folder = here / "val2017"
    folder.mkdir()
    (folder / "000000000001.jpg").write_bytes(b"not opened before it is shown")
    (folder / ".hidden").touch()
    assert cli.main(["import", str(folder), "--collection", "c"]) == 0
    kinds = {item.kind: item.images for item in Workspace(here / "home").items()}
    assert kinds == {"images": 1}
    for more, said in ((["strong.json"], "val2017"), (["--trained-on-references", "yes"], "--trained-on-references")):
        assert cli.main(["import", str(folder), *more]) == 2
        assert said in capsys.readouterr().err
    (folder / "captions.json").write_text("[]")
    assert cli.main(["import", str(folder)]) == 2
    assert "val2017" in capsys.readouterr().err, "nothing in it is left out unsaid"


def test_the_version_is_told(capsys):
    assert cli.main(["--version"]) == 0 and capsys.readouterr().out.strip() == __version__


def test_help_of_all_commands_is_quick_and_light():
    heavy = "pandas", "numpy", "torch", "sklearn", "streamlit", "capbias_core.measures", "capbias_core.workspace"
    code = (
        "import sys\nfrom capbias_core.cli import main\nassert main(['--help']) == 0\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr.strip() == "[]"
    assert all(f" {name} " in done.stdout for name in cli.NAMES)


# score, on the real captions


def command(*argv: str, **more) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(more.pop("temporary"))}
    return subprocess.Popen(
        [sys.executable, "-m", "capbias_core", *argv],
        env=environment,
        text=True,
        stderr=subprocess.PIPE,
        preexec_fn=heeds_ctrl_c,
        **more,
    )


def heeds_ctrl_c() -> None:
    """Whoever runs the tests in the background of a shell has Ctrl-C ignored, and their processes after them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.long
def test_ratio_and_error_of_two_captioners_are_the_published_ones(coco_bias, tmp_path):
    (tmp_path / "temporary").mkdir()
    done = command(
        "score",
        "--captions",
        "results/nic.json",
        "results/oscar.json",
        "--labels",
        "annotations/attributes.csv",
        "--attribute",
        "gender",
        "--metric",
        "ratio",
        "error",
        "--output",
        str(tmp_path / "out.csv"),
        cwd=coco_bias,
        temporary=tmp_path / "temporary",
    )
    _, said = done.communicate(timeout=120)
    assert done.returncode == 0, said
    assert "dropped: Both 813, Unsure 3,410, empty 759" in said
    rows = scored((tmp_path / "out.csv").read_text())
    value = rows.set_index(["model", "metric"])["value"].astype(float).round(2).to_dict()
    assert value == {
        ("nic", "ratio"): 2.47,
        ("nic", "error"): 14.25,
        ("oscar", "ratio"): 2.06,
        ("oscar", "error"): 1.43,
    }
    assert rows["n"].tolist() == [10780] * 4
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.long
def test_lic_m_of_sat_is_near_the_published_one(coco_bias, here, monkeypatch, capsys):
    monkeypatch.chdir(coco_bias)
    labels = ["--labels", "annotations/attributes.csv", "--attribute", "gender"]
    assert cli.main(["score", "--captions", "results/sat.json", *labels, "--metric", "LIC_M", "--seeds", "2"]) == 0
    row = scored(capsys.readouterr().out).iloc[0]
    assert float(row["value"]) == pytest.approx(44.4, abs=2.5)
    assert (row["encoder"], row["seeds"], row["n"]) == ("ngram", 2, 662)


@pytest.mark.long
def test_ctrl_c_cancels_and_cleans_up(tmp_path):
    (tmp_path / "temporary").mkdir()
    out, rng = tmp_path / "out.csv", random.Random(1)
    words = [f"word{number}" for number in range(3000)]
    many = [{"image_id": n, "caption": " ".join(["a man", *rng.choices(words, k=40)])} for n in range(6000)]
    (tmp_path / "many.json").write_text(json.dumps(many))
    rows = [f"{n},{('Female', 'Male')[n % 2]}" for n in range(6000)]
    (tmp_path / "many.csv").write_text("\n".join(["image_id,gender", *rows]))
    argv = ["score", "--captions", "many.json", "--labels", "many.csv", "--attribute", "gender", "--metric", "sc"]
    argv += ["--seeds", "50", "--output", str(out)]
    running = command(*argv, cwd=tmp_path, temporary=tmp_path / "temporary")
    said = ""
    while "to do" not in said:
        line = running.stderr.readline()
        assert line, said
        said += line
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    try:
        said += running.communicate(timeout=60)[1]
    finally:
        running.kill()
    assert running.returncode == 130, said
    assert said.splitlines()[-1] == "cancelled" and "Traceback" not in said
    assert not out.exists() and list((tmp_path / "temporary").iterdir()) == []


def test_ctrl_c_leaves_the_rows_of_the_runs_that_had_finished(small, tmp_path, monkeypatch, capsys):
    """The second captioner's run is stopped by what Ctrl-C raises, once the first one's has finished."""
    run_one, shown = run_module.run_one, running.Shown.__call__

    def never_over(workspace, spec, progress):
        while spec.model == "weak":
            progress(0.5, "until it is cancelled")
            time.sleep(0.05)
        return run_one(workspace, spec, progress)

    def ctrl_c(self, rows):
        if any(row.status == "finished" for row in rows):
            raise KeyboardInterrupt
        shown(self, rows)

    monkeypatch.setattr(run_module, "run_one", never_over)
    monkeypatch.setattr(running.Shown, "__call__", ctrl_c)
    out = tmp_path / "out.csv"
    both = ["--captions", str(small / "strong.json"), str(small / "weak.json")]
    labels = ["--labels", str(small / "attributes.csv"), "--attribute", "gender"]
    assert cli.main(["score", *both, *labels, "--metric", "ratio", "--output", str(out)]) == 130
    assert set(pd.read_csv(out)["model"]) == {"strong"}
    assert "cancelled" in capsys.readouterr().err


# a workspace: import, list, score, explain, export


def in_workspace(folder: Path, name: str, *more: str) -> int:
    return cli.main([name, *more, "--workspace", str(folder)])


@pytest.fixture(scope="module")
def kept(small, tmp_path_factory) -> Path:
    """A workspace with the small files in the collection `my captions`."""
    folder = tmp_path_factory.mktemp("kept")
    files = {"attributes.csv": "attributes", "human.json": "references", "strong.json": "captions"}
    for name, kind in files.items():
        assert in_workspace(folder, "import", str(small / name), "--kind", kind) == 0
    return folder


OF_KEPT = ["--collection", "my captions", "--captions", "strong", "--attribute", "gender"]


def explained(kept: Path, capsys, *more: str) -> dict:
    capsys.readouterr()
    assert in_workspace(kept, "explain", *OF_KEPT, "--format", "json", *more) == 0
    return json.loads(capsys.readouterr().out)


def test_import_reports_and_keeps(here, capsys):
    folder = here / "home"
    more = ["--kind", "attributes", "--name", "labels", "--map", "gender:Unsure=Male"]
    assert in_workspace(folder, "import", "attributes.csv", *more) == 0
    printed = capsys.readouterr()
    assert "Female from Female; Male from Male, Unsure" in printed.out and "dropped: Both 2, empty 2" in printed.out
    assert in_workspace(folder, "import", "strong.json", "--kind", "captions", "--trained-on-references", "no") == 0
    printed = capsys.readouterr()
    assert "Images with labels  90 (100.0%)" in printed.out
    items = {item.name: item for item in Workspace(folder).items()}
    assert set(items) == {"labels", "strong"}
    assert items["strong"].details["trained_on_references"] is False
    assert items["labels"].details["attributes"]["gender"]["mapping"]["Unsure"] == "Male"


def test_import_finds_the_kind_and_human_captions_beside(formats, tmp_path, capsys):
    (file,) = formats.glob("*_samples_*.jsonl")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(file, file.name)
        archive.write(formats / "LLaVA_COCO_VAL.tsv", "LLaVA.tsv")
    assert in_workspace(tmp_path / "home", "import", str(tmp_path / "all.zip"), "--captioner", "me") == 0
    assert "40 captions got the image id of the human captions at hand; not found: 0" in capsys.readouterr().out
    items = {(item.kind, item.name): item.rows for item in Workspace(tmp_path / "home").items()}
    assert items == {("references", file.stem): 200, ("captions", file.stem): 40, ("captions", "LLaVA"): 40}


def test_a_dry_run_keeps_nothing(here, capsys):
    assert in_workspace(here / "home", "import", "strong.json", "--kind", "captions", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing was stored (--dry-run)"
    assert not (here / "home").exists()


def test_import_of_an_attribute_under_another_column(here, capsys):
    (here / "own.csv").write_text("image_id,a\n" + "".join(f"{n},{label_of(n)[:1]}\n" for n in range(1, IMAGES + 1)))
    argv = ["import", str(here / "own.csv"), "--kind", "attributes", "--workspace", str(here / "home")]
    assert cli.main([*argv, "--attribute", "gender=a", "height"]) == 2
    assert "'height'" in capsys.readouterr().err
    assert cli.main([*argv, "--attribute", "gender=a"]) == 0
    assert "gender (column a): Female from F; Male from M" in capsys.readouterr().out
    assert cli.main(argv) == 0 and "gender (column a)" in capsys.readouterr().out, "F and M say what it is"
    (here / "own.csv").write_text("image_id,a\n1,tall\n2,short\n")
    assert cli.main(argv) == 2, "no shipped attribute has a column called a, or such labels"


def test_files_are_imported_together_labels_first(here, capsys):
    files = ["strong.json", "attributes.csv", "human.json"]
    assert in_workspace(here / "home", "import", *files, "--name", "one") == 2
    assert "--name one" in capsys.readouterr().err
    assert in_workspace(here / "home", "import", *files[1:], "--trained-on-references", "yes") == 2
    assert "--trained-on-references" in capsys.readouterr().err and not Workspace(here / "home").items()
    assert in_workspace(here / "home", "import", *files, "--trained-on-references", "yes") == 0
    assert Workspace(here / "home").item("captions", "strong", "my captions").details["trained_on_references"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("stored:")]
    assert [line.split()[1:3] for line in lines] == [
        ["attributes", "attributes"], ["references", "human"], ["captions", "strong"]
    ]  # fmt: skip
    assert in_workspace(here / "home", "import", "a.txt", "b.txt", "--kind", "vectors") == 2


def test_list_of_nothing_makes_no_folder(here, capsys):
    assert in_workspace(here / "home", "list") == 0
    assert "The workspace is empty" in capsys.readouterr().out
    assert not (here / "home").exists()


@pytest.mark.long
def test_score_list_and_export_of_a_collection(here, kept, capsys):
    more = ["--seeds", "2", "--metric", "lic", "error"]
    assert in_workspace(kept, "score", "--collection", "my captions", "--attribute", "gender", *more) == 0
    rows = scored(capsys.readouterr().out)
    assert rows["metric"].tolist() == ["LIC", "LIC_by_H", "LIC_by_M", "LIC_M", "LIC_D", "LIC_HM", "LIC_MH", "error"]
    assert in_workspace(kept, "score", "--collection", "my captions", "--attribute", "gender", *more) == 0
    again = capsys.readouterr()
    assert "to do" not in again.err, "finished runs are not repeated"
    assert scored(again.out).equals(rows)
    assert in_workspace(kept, "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {item["name"] for item in listed["items"]} == {"attributes", "human", "strong"}
    assert set(rows["run_id"]) <= {run["run_id"] for run in listed["runs"] if run["status"] == "finished"}
    assert in_workspace(kept, "list", "--collection", "my captions") == 0
    assert "finished" in capsys.readouterr().out
    assert in_workspace(kept, "list", "--collection", "other") == 2
    export(kept, capsys, rows)


def export(kept: Path, capsys, rows: pd.DataFrame) -> None:
    of = ["--collection", "my captions", "--metric", "lic", "error"]
    assert in_workspace(kept, "export", *of) == 0
    read = rows.assign(
        labels="attributes", references=["human" if name else "" for name in rows["encoder"]], letters=""
    )
    assert scored(capsys.readouterr().out).equals(read), "and whose labels and human captions were read"
    assert in_workspace(kept, "export", *of, "--format", "json") == 0
    records = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in records] == rows["value"].astype(float).tolist()
    assert in_workspace(kept, "export", *of, "--format", "latex") == 0
    assert r"captioner & verdict & LIC" in capsys.readouterr().out
    assert in_workspace(kept, "export", *of[:2], "--metric", "leakage", "--format", "csv") == 0
    assert scored(capsys.readouterr().out)["metric"].tolist() == ["leakage", "SC", "SC_D"]


def test_names_that_are_not_kept(here, kept, capsys):
    assert in_workspace(kept, "score", "--collection", "my captions", "--attribute", "race") == 2
    assert "attribute 'race'" in capsys.readouterr().err
    assert in_workspace(kept, "score", *OF_KEPT, "--references", "other") == 2
    assert "references 'other'" in capsys.readouterr().err
    assert in_workspace(kept, "score", *OF_KEPT, "--values", "a") == 2
    assert "--values" in capsys.readouterr().err


# explain


@pytest.mark.long
def test_words_push_toward_the_label_that_they_go_with(here, kept, capsys):
    found = explained(kept, capsys, "--min-count", "5", "--top", "3")
    pushes = {item["word"]: item["pushes_toward"] for item in found["words"]}
    assert {"umbrella", "cake", "horse"} & set(pushes) and {"skateboard", "tie", "motorcycle"} & set(pushes)
    things = {thing.split()[-1]: value for value, own in THINGS.items() for thing in own}
    assert all(pushes[word] == things[word] for word in set(pushes) & set(things))
    for item in found["words"]:
        wrote = [row for row in captions(1, 0.95) if row["image_id"] <= 85 and item["word"] in row["caption"].split()]
        females = sum(row["image_id"] <= 40 for row in wrote)
        assert item["count"] == len(wrote)
        assert item["share"] == pytest.approx({"Female": females / 40, "Male": (len(wrote) - females) / 45})
    assert found["largest_convergence_delta"] == 0


@pytest.mark.long
def test_words_as_a_table(here, kept, capsys):
    assert in_workspace(kept, "explain", *OF_KEPT, "--min-count", "5") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "word" and "share of Female" in lines[0]
    assert "Largest convergence delta: 0." in lines[-2:] and "no better than by chance" in lines[-1]
    assert in_workspace(kept, "explain", *OF_KEPT, "--min-count", "5000") == 0
    assert "lower --min-count" in capsys.readouterr().out


def adds_up(found: dict) -> None:
    """intercept + words = logit, and the probability is that of the logit."""
    total = found["intercept"]["Male"] + sum(token["adds"]["Male"] for token in found["tokens"])
    assert total == pytest.approx(found["logit"]["Male"], abs=1e-6)
    assert found["probability"]["Male"] == pytest.approx(1 / (1 + math.exp(-found["logit"]["Male"])))
    assert sum(found["probability"].values()) == pytest.approx(1)


def test_the_words_of_an_image_add_up(here, kept, capsys):
    (caption,) = explained(kept, capsys, "--image", "COCO_val2014_000000000007.jpg")["captions"]
    adds_up(caption)
    assert (caption["image_id"], caption["label"]) == ("7", "Female")
    assert caption["caption"] == captions(1, 0.95)[6]["caption"]
    assert [token["token"] for token in caption["tokens"]][:2] == ["a", "<gender>"]
    assert in_workspace(kept, "explain", *OF_KEPT, "--image", "7") == 0
    printed = capsys.readouterr().out
    assert "Image 7, labelled Female" in printed and f"{caption['logit']['Male']:+.4f}".replace("-", "−") in printed


def test_the_words_of_any_caption_add_up(here, kept, capsys):
    found = explained(kept, capsys, "--text", "A lady with a TIE\x1b[31m")
    adds_up(found)
    assert [token["token"] for token in found["tokens"]] == ["a", "<gender>", "with", "a", "tie", "31m"]
    assert in_workspace(kept, "explain", *OF_KEPT, "--text", "A lady with a TIE\x1b[31m") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_edits_are_scored_out_of_fold(here, kept, capsys):
    same, other = explained(kept, capsys, "--words", "man -> woman | person")["edits"]
    wrote = [row for row in captions(1, 0.95) if row["image_id"] <= 85 and " man " in row["caption"]]
    assert same["captions_with_the_word"] == other["captions_with_the_word"] == len(wrote)
    assert same["captions_that_read_differently"] == 0 and "Nothing changes: man and woman" in same["note"]
    assert same["probability_before"] == pytest.approx(same["probability_after"])
    assert same["change_of_logit"]["Male"] == pytest.approx(0, abs=1e-9)
    assert other["captions_that_read_differently"] == len(wrote) and other["note"] == ""
    attackers, before, after = scored_by_hand(kept, wrote, "man", "person")
    assert other["probability_before"]["Male"] == pytest.approx(sum(before) / len(before))
    assert other["probability_after"]["Male"] == pytest.approx(sum(after) / len(after))
    for example in other["examples"]:
        assert example["after"] == example["before"].replace(" man ", " person ")


def scored_by_hand(kept: Path, wrote: list[dict], word: str, new: str):
    """Probabilities of Male before and after an edit, each by the attacker that held the image out."""
    workspace = Workspace(kept)
    (table,) = workspace.items("attributes", "my captions")
    run = caption_runs(workspace, "my captions", "gender", "ngram", table)["strong"]
    scores = pd.read_parquet(io.BytesIO(workspace.array(run.run_id, "scores"))).set_index("image_id")
    attackers = stored_attackers(workspace, run)
    texts = [(row["caption"], int(scores.at[str(row["image_id"]), "fold"])) for row in wrote]
    gender = get_attribute("gender")
    before, after = (
        [attackers.score(text.replace(f" {old} ", f" {to} "), gender, fold).probabilities[1] for text, fold in texts]
        for old, to in ((word, word), (word, new))
    )
    return attackers, before, after


def test_edits_as_text(here, kept, capsys):
    assert in_workspace(kept, "explain", *OF_KEPT, "--words", "tie -> cake", "zebra -> cake", "man -> xyzzy") == 0
    printed = capsys.readouterr().out
    assert "zebra -> cake: 0 captions\nNo caption has the word zebra." in printed
    assert "No attacker has seen xyzzy: only the loss of man counts." in printed
    assert printed.startswith("tie -> cake: ") and "    before: a " in printed


@pytest.mark.long
def test_three_values_push_each_on_its_own(here, capsys):
    argv = ["explain", *STRONG, "--labels", "attributes.csv", "--attribute", "height", "--format", "json"]
    assert cli.main([*argv, "--image", "7"]) == 0
    (caption,) = json.loads(capsys.readouterr().out)["captions"]
    assert set(caption["logit"]) == {"low", "mid", "high"}
    for value, logit in caption["logit"].items():
        total = caption["intercept"][value] + sum(token["adds"][value] for token in caption["tokens"])
        assert total == pytest.approx(logit, abs=1e-6)
    assert cli.main([*argv, "--min-count", "3", "--top", "2"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    assert {item["pushes_toward"] for item in words} == {"low", "mid", "high"}
    assert all(item["mean"] > 0 for item in words)


# demo, progress


@pytest.mark.long
def test_demo_beside_the_truth(here, capsys, monkeypatch):
    whole = demo.demo_request()
    changed = {**vars(whole), "metrics": ("lic",), "captions": ("amplifier",), "seeds": 2, "words": False}
    monkeypatch.setattr(demo, "demo_runs", lambda workspace: plan(workspace, type(whole)(**changed)))
    assert in_workspace(here / "home", "demo", "--if-empty") == 0
    header, row = capsys.readouterr().out.splitlines()
    truth = json.loads((DEMO_FOLDER / "truth.json").read_text())["truth"]["amplifier"]["LIC"]
    assert header.split() == ["captioner", "verdict", "LIC", "true", "LIC"]
    assert row.split()[0] == "amplifier" and row.split()[-1] == f"{truth:.2f}"
    assert float(re.search(r"(\S+) ±", row)[1]) == pytest.approx(truth, abs=6)
    assert in_workspace(here / "home", "demo", "--if-empty") == 0
    printed = capsys.readouterr()
    assert printed.out == "" and "is not empty" in printed.err


def row_of(run_id: str, status: str, progress: float) -> RunRow:
    known = {"spec": RunSpec("lic", 1, "sat"), "status": status, "progress": progress, "message": "attacker 2 of 4"}
    other = {own.name: 0.0 for own in fields(RunRow) if own.name not in known}
    return RunRow(**{**other, **known, "run_id": run_id, "notes": ()})


def test_progress_says_the_time_left():
    shown = running.Shown(Expected({"1": 30.0, "2": 10.0}, 40.0, False))
    rows = [row_of("1", "running", 0.5), row_of("2", "finished", 1.0), row_of("earlier", "finished", 1.0)]
    share, text = shown.state(rows)
    assert share == pytest.approx(25 / 40) and text == "Running: 1 of 2 done, about 15 s left: sat, attacker 2 of 4"
    assert "about 40 s left" in shown.state([row_of("1", "running", 0.0), row_of("2", "queued", 0.0)])[1]


# tables


def result(model: str, metric: str, value: float, **more) -> dict:
    return Result("gender", model, metric, value, **{"scale": 100.0, "method": "m", "n": 662, **more}).row()


FRAME = pd.DataFrame(
    [
        result("sat_1", "LIC", 8.6543, encoder="ngram", spread=0.912, seeds=10, ci_low=6.94, ci_high=10.36),
        result("sat_1", "ratio", 2.0582, scale=1.0, ci_low=1.9, ci_high=2.25),
        result("nic", "LIC", -0.25, encoder="ngram", seeds=1),
        result("nic", "ratio", float("nan"), scale=1.0),
    ]
)


RUNS = ("",)  # that of every row here


def test_scores_table_is_one_row_a_captioner():
    table = scores_table(lettered(FRAME, {"sat_1": "ab", "nic": "a"}, RUNS, "LIC"))
    assert table.to_dict("records") == [
        {"captioner": "sat_1", "letters": "ab", "LIC": "8.7 ±0.9 [6.9, 10.4]", "ratio": "2.06 [1.90, 2.25]"},
        {"captioner": "nic", "letters": "a", "LIC": "−0.2", "ratio": "not defined"},
    ]


def test_conditions_get_columns_and_encoders_rows_of_their_own():
    more = pd.DataFrame(
        [
            result("nic", "LIC_M", 40.0, encoder="ngram"),
            result("sat", "LIC_M", 42.0, encoder="ngram"),
            result("nic", "LIC_M", 41.0, encoder="ngram", condition="with_references"),
            result("sat", "LIC", 5.0, encoder="ngram", condition="with_references"),
            result("nic", "LIC", 4.0, encoder="ngram", condition="with_references"),
        ]
    )
    assert scores_table(lettered(more, {"nic": "a"}, RUNS, "LIC")).to_dict("records") == [
        {
            "captioner": "sat",
            "letters": "",
            "LIC (with references)": "5.0",
            "LIC_M": "42.0",
            "LIC_M (with references)": "",
        },
        {
            "captioner": "nic",
            "letters": "a",
            "LIC (with references)": "4.0",
            "LIC_M": "40.0",
            "LIC_M (with references)": "41.0",
        },
    ], "highest LIC first"
    both = scores_table(pd.concat([FRAME, pd.DataFrame([result("nic", "LIC", 1.0, encoder="lstm_bi")])]))
    assert both[["captioner", "encoder"]].to_numpy().tolist() == [
        ["sat_1", "ngram"],
        ["sat_1", ""],
        ["nic", "ngram"],
        ["nic", ""],
        ["nic", "lstm_bi"],
    ]


def test_metrics_are_chosen_and_ordered():
    assert list(scores_table(FRAME, metrics=["ratio", "LIC"]).columns) == ["captioner", "ratio", "LIC"]
    assert scores_table(FRAME, metrics=["SC"]).empty


def test_csv_and_json_round_nothing():
    exact = FRAME.assign(value=[1 / 3, 2.0, -1e-17, float("nan")])
    assert pd.read_csv(io.StringIO(to_csv(exact)))["value"].tolist()[:3] == [1 / 3, 2.0, -1e-17]
    records = json.loads(to_json(exact))
    assert [row["value"] for row in records] == [1 / 3, 2.0, -1e-17, None]
    assert list(records[0]) == list(RESULT_COLUMNS)


def test_csv_has_the_letters_of_the_metric_that_was_compared():
    own = lettered(FRAME, {"sat_1": "ab", "nic": "a"}, RUNS, "LIC")
    rows = pd.read_csv(io.StringIO(to_csv(own)), keep_default_na=False)
    assert rows["letters"].tolist() == ["ab", "", "a", ""]
    assert rows["name"].tolist()[0] == f"{FRAME['metric'].iloc[0]} ({FRAME['encoder'].iloc[0]})"
    assert list(pd.read_csv(io.StringIO(to_csv(FRAME)))) == [*RESULT_COLUMNS, "name"]


def test_letters_stand_with_the_runs_and_the_metric_that_were_compared():
    """LIC_M was compared in other runs, without human captions; a table shows the letters by LIC alone."""
    lic = [result(name, "LIC", 5.0, run_id=f"{name} with", encoder="ngram") for name in ("sat", "nic")]
    lic_m = [result(name, "LIC_M", 45.0, run_id=f"{name} without", encoder="ngram") for name in ("sat", "nic")]
    with_human = lettered(pd.DataFrame(lic), {"sat": "a", "nic": "a"}, ("sat with", "nic with"), "LIC")
    without = lettered(pd.DataFrame(lic_m), {"sat": "b", "nic": "a"}, ("sat without", "nic without"), "LIC_M")
    assert set(lettered(pd.DataFrame(lic_m), {"sat": "b", "nic": "a"}, ("sat with",), "LIC_M")["letters"]) == {""}
    both = pd.concat([without, with_human])
    assert scores_table(both).set_index("captioner")["letters"].to_dict() == {"sat": "a", "nic": "a"}
    text = to_latex(both)
    assert r"5.0\textsuperscript{a}" in text and r"45.0\textsuperscript" not in text
    assert "not told apart by LIC." in text


def test_letters_of_several_attributes_stand_with_their_own():
    own = lettered(FRAME, {"sat_1": "b", "nic": "a"}, RUNS, "LIC")
    both = pd.concat([own, lettered(FRAME, {"sat_1": "a", "nic": "a"}, RUNS, "LIC").assign(attribute="age")])
    letters = {("gender", "sat_1"): "b", ("gender", "nic"): "a", ("age", "sat_1"): "a", ("age", "nic"): "a"}
    table = scores_table(both)
    assert dict(zip(zip(table["attribute"], table["captioner"], strict=True), table["letters"], strict=True)) == letters
    rows = pd.read_csv(io.StringIO(to_csv(both)), keep_default_na=False)
    assert rows["letters"].tolist() == ["b", "", "a", "", "a", "", "a", ""]


def test_a_matrix_of_pairs_says_difference_p_and_which_is_higher():
    pairs = (
        Pair("a", "b", -1.94, -3.0, -1.0, 0.00002),
        Pair("a", "c", -0.04, -2, 1, 0.61),
        Pair("b", "c", 1.5, 0, 3, 0.041),
    )
    ranking = Ranking({"a": "a", "b": "b", "c": "a"}, pairs, {"a": 1.0, "b": 2.94, "c": 1.4})
    assert pair_table(ranking).to_dict("records") == [
        {"captioner": "b", "b": "", "c": "+1.5, p 0.041, higher", "a": "+1.9, p < 0.001, higher"},
        {"captioner": "c", "b": "−1.5, p 0.041, lower", "c": "", "a": "0.0, p 0.61"},
        {"captioner": "a", "b": "−1.9, p < 0.001, lower", "c": "0.0, p 0.61", "a": ""},
    ]
    assert told_apart(replace(ranking, method="how")) == "Captioners that share a letter are not told apart (how)."
    assert "provisional" in told_apart(replace(ranking, provisional=True))


def test_latex_escapes_and_says_how_it_was_measured():
    text = to_latex(lettered(FRAME.replace("sat_1", r"a_b & 5% of $x^2$ {#}~\<"), {"nic": "ab"}, RUNS, "LIC"))
    assert r"a\_b \& 5\% of \$x\textasciicircum{}2\$ \{\#\}\textasciitilde{}\textbackslash{}\textless{}" in text
    assert r"$\pm$0.9" in text and r"\textsuperscript{ab}" in text
    assert "Captioners that share a letter are not told apart by LIC." in text
    assert r"% LIC of a_b & 5% of $x^2$ {#}~\< (gender): n = 662, ngram, 10 seeds; m" in text.splitlines()
    own = to_latex(pd.concat([FRAME, FRAME.assign(attribute="race", condition="with_references")]))
    assert "% LIC of nic (race, with references): n = 662, ngram, 1 seed; m" in own.splitlines()
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert escape_latex("<gender>") == r"\textless{}gender\textgreater{}"


def test_text_columns_line_up():
    text = to_text(pd.DataFrame({"word": ["a", "longer"], "count": ["5", "1,000"]}))
    assert text == "word    count\na           5\nlonger  1,000\n"


@pytest.mark.long
def test_labels_in_a_column_of_another_name_are_found(here, capsys):
    """And not derived from the human captions beside them."""
    table = pd.read_csv("attributes.csv").rename(columns={"gender": "who is it"})
    table["who is it"] = " " + table["who is it"].str.upper()
    table.to_csv("people.csv", index=False)
    command = ["score", "strong.json", "people.csv", "human.json", "--attribute", "gender", "--metric", "ratio"]
    assert cli.main(command) == 0
    printed = capsys.readouterr()
    assert "labels: gender from the column who is it of people.csv" in printed.err and "derived" not in printed.err
    assert pd.read_csv(io.StringIO(printed.out))["value"].tolist() == [pytest.approx(40 / 35)]


# files as people have them


def messy(folder: Path, name: str, share: float = 0.95) -> Path:
    """Captions in columns of names that nobody guesses."""
    rows = [{"pic": own["image_id"], "said": own["caption"]} for own in captions(1, share)]
    path = folder / f"{name}.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


NAMED_COLUMNS = ["--image-id-column", "pic", "--caption-column", "said"]


def test_named_columns_count_where_files_are_sorted_by_themselves(here, capsys, monkeypatch):
    monkeypatch.setattr("capbias_core.cli.score.on_terminal", lambda: True)
    asked = ["score", str(messy(here, "mine")), "attributes.csv", "--attribute", "gender", "--metric", "error"]
    assert cli.main([*asked, *NAMED_COLUMNS]) == 0
    said = capsys.readouterr()
    assert "mine.csv: captions of a model" in said.err
    shown = next(line for line in said.out.splitlines() if line.startswith("Next: capbias explain"))
    assert shown.endswith("--image-id-column pic --caption-column said")
    assert cli.main([*asked, "--caption-column", "sayd"]) == 2
    assert "'sayd' (--caption-column)" in capsys.readouterr().err


def test_import_takes_named_columns_from_the_files_that_have_them(here, capsys):
    files = [str(messy(here, "mine")), "attributes.csv", "strong.json"]
    assert in_workspace(here / "home", "import", *files, *NAMED_COLUMNS) == 0
    kept = {(item.kind, item.name) for item in Workspace(here / "home").items()}
    assert kept == {("captions", "mine"), ("attributes", "attributes"), ("captions", "strong")}


def test_a_readme_in_an_archive_is_left_out_and_said(here, capsys):
    with zipfile.ZipFile(here / "all.zip", "w") as archive:
        archive.write("strong.json")
        archive.writestr("readme.txt", "Captions of our model.\nSee the paper.\n")
    assert score(str(here / "all.zip"), "--metric", "error") == 0
    assert "all.zip: left out readme.txt" in capsys.readouterr().err
    with zipfile.ZipFile(here / "none.zip", "w") as archive:
        archive.writestr("readme.txt", "Captions of our model.\nSee the paper.\n")
    assert score(str(here / "none.zip"), "--metric", "error") == 2
    assert "readme.txt" in capsys.readouterr().err


def test_a_table_of_labels_is_chosen_by_its_name(here, capsys):
    """In the second table, which is the newest, the labels are the other way round."""
    labels = pd.read_csv("attributes.csv", keep_default_na=False)
    turned = labels["gender"].map({"Female": "Male", "Male": "Female"}).fillna("")
    labels.assign(gender=turned).to_csv(here / "turned.csv", index=False)
    assert in_workspace(here / "home", "import", "strong.json", "attributes.csv", str(here / "turned.csv")) == 0
    errors = []
    for more in ([], ["--labels", "attributes"], ["--labels", "turned"]):
        capsys.readouterr()
        asked = ["--collection", "my captions", "--attribute", "gender", "--metric", "error", *more]
        assert in_workspace(here / "home", "score", *asked) == 0
        errors.append(float(scored(capsys.readouterr().out)["value"].iloc[0]))
    assert errors[0] == errors[2] > 50 > errors[1]
    asked = ["--collection", "my captions", "--attribute", "gender", "--labels", "turnd"]
    assert in_workspace(here / "home", "score", *asked) == 2
    assert "Did you mean turned" in capsys.readouterr().err


def test_what_an_import_replaces_is_said(here, capsys):
    for argv, replaced in (
        (["strong.json"], False),
        (["again/strong.json"], False),
        (["weak.json", "--name", "strong"], True),
    ):
        assert in_workspace(here / "home", "import", *argv) == 0
        assert ("replaced: captions strong" in capsys.readouterr().out) is replaced


def test_two_annotators_columns_of_any_name_are_a_table_each_and_score_reads_the_first(here, capsys):
    """The second annotator says the opposite, so that it is seen whose labels were read."""
    table = pd.read_csv("attributes.csv", keep_default_na=False).rename(columns={"gender": "perceived"})
    table["second rater"] = table["perceived"].map({"Female": "m", "Male": "f"}).fillna("?")
    table.rename(columns={"image_id": "Photo"}).to_csv(here / "raters.csv", index=False)
    asked = ["score", "strong.json", str(here / "raters.csv"), "--attribute", "gender", "--metric", "error"]
    assert cli.main(asked) == 0
    said = capsys.readouterr()
    assert "the column perceived of raters.csv; not used: second rater" in said.err
    assert float(scored(said.out)["value"].iloc[0]) < 50
    assert in_workspace(here / "home", "import", "strong.json", str(here / "raters.csv")) == 0
    tables = [item.name for item in Workspace(here / "home").items("attributes")]
    assert tables == ["raters perceived", "raters second rater"]
    capsys.readouterr()
    asked = ["--collection", "my captions", "--attribute", "gender", "--metric", "error"]
    assert in_workspace(here / "home", "score", *asked) == 0
    said = capsys.readouterr()
    assert "labels of gender: raters perceived; not used: raters second rater" in said.err
    assert float(scored(said.out)["value"].iloc[0]) < 50
