"""Every view is a command, and is written in every format."""

import io
import json
import shlex
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.cli import views as commands
from capbias_core.errors import CapbiasError
from capbias_core.measures.options import Option, choices_in
from capbias_core.views import view as views
from capbias_core.views.registry import VIEWS
from capbias_core.views.view import FORMATS, Shown, exported
from capbias_core.workspace.conditions import describe
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.pages.synthetic import IMAGES, fill, score

ROWS = pd.DataFrame({"captioner": ["a_1", "b & c"], "value": [1 / 3, float("nan")], "n": [12, 7]})
SHOWN = Shown("Made up", ROWS, table=ROWS.astype(str))

# view -> the arguments of its command, on the files and the collection of `home`
ASKED = {
    "leaderboard": "leaderboard --collection c",
    "by-value": "by-value --collection c",
    "slices": "slices --collection c --objects dog cat --least 10",
    "change": "change first second --collection c",
    "change-words": "change first second --collection c --words",
    "side-by-side": "side-by-side --collection c --top 3",
    "words": "words --collection c --top 4",
    "conditions": "conditions --collection c --attribute gender --seeds 2 --metric lic",
    "lengths": "lengths --collection c --captioner first --references human --cut 2 --seeds 2",
    "directions": "directions --collection c",
    "encoders": "encoders --printed lic_gender",
    "consistency": "consistency",
    "published": "published --paper lic --table 1 --collection c",
    "anonymous-bench": "anonymous-bench --captions first second --collection c --attribute gender",
    "known-answer": "known-answer --times 2 --seeds 2",
    "align": "align --captions model.csv --references human.csv --vectors glove.txt --delta 0 0.5",
    "text": "text --input lines.txt --attribute gender --per-object",
}
TOO_MANY = {"consistency"}  # numbers of all papers, for a chart


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A workspace with scores of two captioners, captions of masked photographs and objects; and files."""
    folder = tmp_path_factory.mktemp("views")
    workspace = Workspace(folder / "home")
    fill(workspace)
    ids = np.arange(IMAGES).astype(str)
    objects = np.random.default_rng(0).choice(["cat", "dog", "cat|dog"], IMAGES)
    masked = workspace.frame(workspace.item("captions", "second", "c").hash)
    keep(workspace, objects=pd.DataFrame({"image_id": ids, "objects": objects}), captions={"hidden": masked})
    describe(workspace, workspace.item("captions", "hidden", "c"), "first", "person")
    score(workspace, metrics=("lic", "error", "refused", "dbac"))
    (folder / "lines.txt").write_text("a man with a dog\na woman with a dog\na woman with a cat\n" * 9)
    (folder / "glove.txt").write_text("spoon 1 0\nwhisk 0.9 0.1\nfork 0 1\n")
    for name, words in (("human", ("whisk", "fork")), ("model", ("spoon", "fork"))):
        captions = [f"somebody with a {words[image % 2]}" for image in range(40)]
        pd.DataFrame({"image_id": range(40), "caption": captions}).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture
def drawn(monkeypatch) -> list[Any]:
    """The figures that are made pictures of, without a browser."""
    figures: list[Any] = []

    def picture(figure: Any, ending: str, title: str) -> bytes:
        assert figure.to_json() and title
        figures.append(figure)
        return ending.encode()

    monkeypatch.setattr(views, "picture", picture)
    return figures


@pytest.mark.long
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_written_in_every_format(name, home, drawn, monkeypatch):
    shown: list[Shown] = []
    monkeypatch.chdir(home)
    monkeypatch.setenv("CAPBIAS_HOME", str(home / "home"))
    monkeypatch.setattr(commands, "write_shown", lambda made, path: shown.append(made))
    assert cli.main(["view", *shlex.split(ASKED[name])]) == 0
    (made,) = shown
    assert made.title and len(made.rows) and len(made.for_reader)
    read = pd.read_csv(io.StringIO(str(exported(made, "x.csv"))))
    assert list(read) == list(made.rows) and len(read) == len(made.rows)
    numbers = made.rows.select_dtypes("number")
    for column in numbers:
        np.testing.assert_array_equal(read[column].to_numpy(float), numbers[column].to_numpy(float))
    assert [list(row) for row in json.loads(exported(made, "x.json"))] == [list(made.rows)] * len(made.rows)
    assert str(exported(made, "x.tex")).count(r" \\") == len(made.for_reader) + 2, "a caption, a head and the rows"
    assert len(str(exported(made, "x.txt")).splitlines()) == len(made.for_reader) + 1
    for ending in [ending for ending in FORMATS if ending not in ("csv", "json", "tex", "txt")]:
        if name in TOO_MANY:
            with pytest.raises(CapbiasError, match="cannot be read"):
                exported(made, f"x.{ending}")
        else:
            assert exported(made, f"x.{ending}") == ending.encode()
            points = sum(len(trace.x) for trace in drawn[-1].data if trace.x is not None)
            assert points


def test_the_choices_of_a_function_are_its_annotated_parameters():
    def made(rows: list, most: Annotated[int, Option("rows that are listed", at_least=1)] = 10): ...

    choices = choices_in(made)
    assert list(choices.about()) == ["most"] and choices.checked("most", 3) == 3
    with pytest.raises(CapbiasError, match="of at least 1, not 0"):
        choices.checked("most", 0)


@pytest.mark.long
def test_one_of_several_files_of_objects_is_chosen(home, tmp_path, monkeypatch, capsys):
    """Two files of objects are a question; with a name, runs with the other file do not count."""
    workspace = Workspace(tmp_path)
    fill(workspace)
    ids = np.arange(IMAGES).astype(str)
    for name, known in (("these", ("cat", "dog")), ("those", ("dog", "cat"))):
        table = pd.DataFrame({"image_id": ids, "objects": [known[image % 2] for image in range(IMAGES)]})
        keep(workspace, objects={name: table})
    masked = workspace.frame(workspace.item("captions", "second", "c").hash)
    keep(workspace, captions={"hidden": masked})
    describe(workspace, workspace.item("captions", "hidden", "c"), "first", "person")
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path))
    asked = ["view", "conditions", "--collection", "c", "--attribute", "gender", "--metric", "dba"]
    assert cli.main(asked) == 2 and "2 files of objects (these, those)" in capsys.readouterr().err
    assert cli.main([*asked, "--objects", "these"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert rows["masked"].tolist() == ["original", "person"] and set(rows["metric"]) == {"DBA_G"}
    assert cli.main([*asked, "--objects", "those", "--measured"]) == 2, "only these were measured"
    assert cli.main([*asked, "--objects", "these", "--measured"]) == 0


def test_json_and_csv_have_every_digit():
    rows = json.loads(exported(SHOWN, "out.json"))
    assert rows == [{"captioner": "a_1", "value": 1 / 3, "n": 12}, {"captioner": "b & c", "value": None, "n": 7}]
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(str(exported(SHOWN, "OUT.CSV")))), ROWS)


def test_latex_is_a_whole_longtable():
    lines = str(exported(SHOWN, "out.tex")).splitlines()
    assert lines[0] == r"\begin{longtable}{lll}" and lines[-1] == r"\end{longtable}"
    assert r"captioner & value & n \\" in lines and r"b \& c & nan & 7 \\" in lines


@pytest.mark.parametrize("name", ["out.svg", "out.xlsx", "out"])
def test_what_a_view_cannot_be_written_as_is_refused(name):
    with pytest.raises(CapbiasError):
        exported(SHOWN, name)
