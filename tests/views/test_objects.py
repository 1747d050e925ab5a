"""Objects of images: read from COCO instances or a table, kept, and what runs read."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job
from capbias_core.measures.registry import MEASURES
from capbias_core.runs.plan import Request, plan
from capbias_core.types import silent
from capbias_core.views.objects import beside_chart
from capbias_core.views.results import current_runs
from capbias_core.workspace.objects import COLUMN
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep

CATEGORIES = [{"id": 17, "name": "cat"}, {"id": 18, "name": "Dog "}, {"id": 13, "name": "stop sign"}]


def instances(annotations, images=(), categories=CATEGORIES) -> dict:
    return {"images": [{"id": image} for image in images], "annotations": annotations, "categories": categories}


def written(folder, content, name="instances.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def on(image, category, **more) -> dict:
    return {"image_id": image, "category_id": category, "segmentation": [[1.5, 2.5]], "bbox": [1, 2, 3, 4], **more}


# kept, and read by runs


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """Two captioned and labelled images with references; the table of labels has a column of objects."""
    workspace = Workspace(tmp_path / "home")
    frame = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"], "objects": ["cake", "tie"]})
    rows = [{"image_id": 1, "caption": "a woman"}, {"image_id": 2, "caption": "a man"}]
    keep(workspace, labels=frame, captions={"a": rows}, references={"a": rows})
    return workspace


REQUEST = Request("c", ("a",), "labels", "gender", ("DBA_G", "ratio"), references="a")


def keep_objects(workspace, tmp_path, name, annotations):
    return keep(workspace, objects={name: written(tmp_path, instances(annotations))})[name]


def spec_of(workspace, measure="bias_amplification", **more) -> RunSpec:
    return next(spec for spec in plan(workspace, replace(REQUEST, **more)) if spec.measure == measure)


def objects_of(workspace, spec):
    frame, attribute = workspace.frame(spec.captions), attribute_from(spec.attribute)
    options = MEASURES[spec.measure].options.read(spec.options)
    return Job(workspace, spec, options, attribute, frame, pd.Series(dtype=str), silent).objects()


def test_runs_read_the_column_of_the_table_until_objects_are_kept(workspace, tmp_path):
    before = spec_of(workspace)
    assert objects_of(workspace, before).to_dict() == {"1": "cake", "2": "tie"}
    item = keep_objects(workspace, tmp_path, "coco", [on(1, 17), on(2, 18)])
    after = spec_of(workspace)
    assert objects_of(workspace, after).to_dict() == {"1": "cat", "2": "dog"}
    assert after.run_id != before.run_id and item.hash in after.inputs() - before.inputs()


def test_a_small_file_does_not_take_the_place_of_a_large_column(workspace, tmp_path):
    """Objects of one of the two labelled images in the file, of both in the column; each may be asked for."""
    item = keep_objects(workspace, tmp_path, "coco", [on(1, 17)])
    assert objects_of(workspace, spec_of(workspace)).to_dict() == {"1": "cake", "2": "tie"}
    assert spec_of(workspace, objects="coco").objects["table"] == item.hash
    both = keep_objects(workspace, tmp_path, "coco", [on(1, 17), on(2, 18)])
    assert spec_of(workspace).objects["table"] == both.hash
    assert objects_of(workspace, spec_of(workspace, objects=COLUMN)).to_dict() == {"1": "cake", "2": "tie"}
    with sentences.raises(CapbiasError):
        spec_of(workspace, objects="elsewhere")


def test_a_run_on_a_column_counts_as_long_as_runs_read_it(workspace, tmp_path):
    """A small file of objects beside a full column must not hide what was measured with the column."""
    spec = spec_of(workspace)
    workspace.enqueue(spec, "c", "t")
    workspace.claim(spec.run_id, "t")
    workspace.finish(spec.run_id, "t", [], {}, ())
    assert [run.run_id for run in current_runs(workspace, "c")] == [spec.run_id]
    keep_objects(workspace, tmp_path, "coco", [on(1, 17)])
    assert [run.run_id for run in current_runs(workspace, "c")] == [spec.run_id]
    keep_objects(workspace, tmp_path, "coco", [on(1, 17), on(2, 18)])
    assert current_runs(workspace, "c") == [], "runs read the file now"


# the command line


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Forty images; women beside cats and men beside dogs, in captions of both sides and in the instances."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPBIAS_HOME", str(tmp_path / "home"))
    labels = ["Female", "Male"] * 20
    written(tmp_path, "image_id,gender\n" + "".join(f"{n},{own}\n" for n, own in enumerate(labels)), "labels.csv")
    who = {"Female": "woman", "Male": "man"}
    rows = [
        {"image_id": n, "caption": f"a {who[own]} beside a {'cat' if n % 4 else 'dog'}"} for n, own in enumerate(labels)
    ]
    written(tmp_path, rows, "model.json")
    written(tmp_path, rows, "human.json")
    written(tmp_path, instances([on(n, 17 if own == "Female" else 18) for n, own in enumerate(labels)]))
    written(tmp_path, instances([on(n + 900, 17) for n in range(40)]), "elsewhere.json")
    return tmp_path


@pytest.mark.long
def test_runs_on_what_a_collection_does_not_hold_are_not_its_own(files, capsys):
    """The same captions in two collections with other references and objects: each exports its own numbers."""
    rows = json.loads((files / "human.json").read_text())
    written(files, rows[:30], "fewer.json")
    for collection, human in (("a", "human.json"), ("b", "fewer.json")):
        into = ["--collection", collection]
        assert cli.main(["import", "model.json", "--kind", "captions", *into]) == 0
        assert cli.main(["import", "labels.csv", "--kind", "attributes", *into]) == 0
        assert cli.main(["import", human, "--kind", "references", *into]) == 0
        assert cli.main(["import", "instances.json", "--kind", "objects", *into]) == 0
        assert cli.main(["score", *into, "--attribute", "gender", "--metric", "DBA_G"]) == 0
    capsys.readouterr()
    numbers = []
    for collection in ("a", "b"):
        assert cli.main(["export", "--collection", collection, "--metric", "DBA_G"]) == 0
        header, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
        numbers.append([row[header.index("n")] for row in rows])
    assert numbers == [["40"], ["30"]]
    written(files, instances([on(n, 17 if n % 2 == 0 else 18) for n in range(20)]), "instances.json")
    assert cli.main(["import", "instances.json", "--kind", "objects", "--collection", "a"]) == 0
    assert cli.main(["export", "--collection", "a", "--metric", "DBA_G"]) == 2, "the objects are others now"
    capsys.readouterr()
    assert cli.main(["score", "--collection", "a", "--attribute", "gender", "--metric", "DBA_G"]) == 0
    assert "Objects are known of 20 of the 40 images." in capsys.readouterr().err
    assert cli.main(["export", "--collection", "a", "--metric", "DBA_G"]) == 0
    header, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert [row[header.index("n")] for row in rows] == ["20"], "images that nobody annotated do not count"


def test_the_chart_colours_the_objects_that_differ_significantly():
    names = ["cake", "car", "tie"]
    side = {"captions": 90, "low1": 0.1, "high1": 0.9}
    table = pd.DataFrame({"object": names, "share1": [0.2, 0.45, 0.8], **side, "error1": 0.05})
    table = table.assign(human_share1=[0.5, 0.5, 0.5], **{f"human_{name}": value for name, value in side.items()})
    figure = beside_chart(table, get_attribute("gender"), "sat")
    objects = {trace.name: list(trace.y) for trace in figure.data if trace.name}
    assert objects == {
        "human captions": names,
        "sat: Female more often than people": ["cake"],
        "sat: Male more often": ["tie"],
        "sat: no significant difference": ["car"],
    }
