"""Objects of images: read from COCO instances or a table, kept, and what runs read."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.plan import plan
from capbias_core.views.results import current_runs
from capbias_core.workspace.objects import COLUMN
from capbias_core.workspace.sources import data_of
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from tests import sentences
from tests.collections_ import keep

CATS, DOGS = 17, 18


def written(path, *annotations: tuple[int, int]):
    """A file of COCO's instances; annotations: image and category."""
    categories = [{"id": CATS, "name": "cat"}, {"id": DOGS, "name": "Dog "}, {"id": 13, "name": "stop sign"}]
    shown = [{"image_id": image, "category_id": category, "bbox": [1, 2, 3, 4]} for image, category in annotations]
    path.write_text(json.dumps({"images": [], "annotations": shown, "categories": categories}))
    return path


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """Two captioned and labelled images with references; the table of labels has a column of objects."""
    workspace = Workspace(tmp_path / "home")
    frame = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"], "objects": ["cake", "tie"]})
    rows = [{"image_id": 1, "caption": "a woman"}, {"image_id": 2, "caption": "a man"}]
    keep(workspace, labels=frame, captions={"a": rows}, references={"a": rows})
    return workspace


REQUEST = Question("c", ("a",), "labels", "gender", ("DBA_G", "ratio"), references="a")


def keep_objects(workspace, *annotations):
    path = written(workspace.folder.parent / "instances.json", *annotations)
    return keep(workspace, objects={"coco": path})["coco"]


def spec_of(workspace, measure="bias_amplification", **more) -> RunSpec:
    return next(spec for spec in plan(workspace, replace(REQUEST, **more)) if spec.measure == measure)


def objects_of(workspace, spec):
    return data_of(workspace, spec).objects


def test_a_small_file_does_not_take_the_place_of_a_large_column(workspace):
    """Runs read the objects of the column, or of a file that has both labelled images; each may be asked for."""
    before = spec_of(workspace)
    workspace.enqueue(before, "c")
    workspace.finish(workspace.get_run(before.run_id), [], {})
    item = keep_objects(workspace, (1, CATS))
    assert objects_of(workspace, spec_of(workspace)).to_dict() == {"1": "cake", "2": "tie"}
    assert spec_of(workspace, objects="coco").objects["table"] == item.hash
    assert [run.run_id for run in current_runs(workspace, "c")] == [before.run_id]
    both = keep_objects(workspace, (1, CATS), (2, DOGS))
    after = spec_of(workspace)
    assert objects_of(workspace, after).to_dict() == {"1": "cat", "2": "dog"} and after.objects["table"] == both.hash
    assert after.run_id != before.run_id and both.hash in after.inputs() - before.inputs()
    assert current_runs(workspace, "c") == [], "runs read the file now"
    assert objects_of(workspace, spec_of(workspace, objects=COLUMN)).to_dict() == {"1": "cake", "2": "tie"}
    with sentences.raises(CapbiasError):
        spec_of(workspace, objects="elsewhere")


@pytest.mark.long
def test_runs_on_what_a_collection_does_not_hold_are_not_its_own(tmp_path, capsys):
    """The same captions in two collections with other references and objects: each exports its own numbers. Women
    stand beside cats and men beside dogs, in captions of both sides and in the instances."""
    home, labels = ["--workspace", str(tmp_path / "home")], ["Female", "Male"] * 20
    workspace, path = Workspace(tmp_path / "home"), tmp_path / "instances.json"
    table = pd.DataFrame({"image_id": range(40), "gender": labels})
    said = [f"a {'man' if n % 2 else 'woman'} beside a {'cat' if n % 4 else 'dog'}" for n in range(40)]
    captions = table[["image_id"]].assign(caption=said)
    written(path, *((n, DOGS if n % 2 else CATS) for n in range(40)))

    def command(name: str, collection: str, *more: str) -> int:
        capsys.readouterr()
        return cli.main([name, "--collection", collection, "--metric", "DBA_G", *more, *home])

    def exported(collection: str) -> list[str]:
        assert command("export", collection) == 0
        header, *rows = (line.split(",") for line in capsys.readouterr().out.splitlines())
        return [row[header.index("n")] for row in rows]

    for collection, n in (("a", 40), ("b", 30)):
        keep(workspace, collection, labels=table, captions=captions, references=captions[:n], objects=path)
        assert command("score", collection, "--attribute", "gender") == 0
    assert (exported("a"), exported("b")) == (["40"], ["30"])
    keep(workspace, "a", objects=written(path, *((n, DOGS if n % 2 else CATS) for n in range(20))))
    assert command("export", "a") == 2, "the objects are others now"
    assert command("score", "a", "--attribute", "gender") == 0
    assert "Objects are known of 20 of the 40 images." in capsys.readouterr().err
    assert exported("a") == ["20"], "images that nobody annotated do not count"
