"""A bundle: what is in it, the same numbers from it in an empty workspace, and what is said of one that was changed."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from capbias_core import cli
from capbias_core.bundle.reproduce import Reproduction, compared, read_bundle, reproduce
from capbias_core.bundle.write import write_bundle
from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.engine import run_all
from capbias_core.runs.plan import plan
from capbias_core.types import Result
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace
from capbias_core.workspace.vectors import alignment_option, keep_vectors, offer_vectors
from tests.cli.test_cli import write_files

# test_hostile_bundles.py reads bundles as commands do.
pytestmark = pytest.mark.usefixtures("read_here")

SMALL = ("strong", "weak")
METRICS = ("lic", "ratio", "error")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_files(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def measured(data, tmp_path_factory) -> tuple[Workspace, list[str]]:
    """A workspace with results of two captioners, and their runs."""
    folder = tmp_path_factory.mktemp("made")
    place = ["--collection", "small", "--workspace", str(folder)]
    files = [("attributes.csv", "labels", ["--attribute", "gender"]), ("human.json", "references", [])]
    files += [(f"{name}.json", "captions", ["--trained-on-references", "yes"]) for name in SMALL]
    for file, kind, more in files:
        assert cli.main(["import", str(data / file), "--kind", kind, *more, *place]) == 0
    workspace = Workspace(folder)
    specs = plan(workspace, Question("small", SMALL, "attributes", "gender", METRICS, "human", seeds=6))
    assert all(run.status == "finished" for run in run_all(workspace, specs, "small"))
    return workspace, [spec.run_id for spec in specs]


@pytest.fixture(scope="module")
def bundle(measured, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "bundle.zip"
    path.write_bytes(write_bundle(measured[0], "small"))
    return path


def changed(path: Path, target: Path, name: str, edit) -> Path:
    """A copy of a zip in which one file is another."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for own in old.namelist():
            new.writestr(own, edit(old.read(own)) if own == name else old.read(own))
    return target


@pytest.mark.long
def test_a_bundle_gives_the_same_numbers_in_an_empty_workspace(bundle, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["reproduce", str(bundle)]) == 0
    printed = capsys.readouterr().out
    rows = json.loads(zipfile.ZipFile(bundle).read("rows.json"))
    assert re.search(rf"rows equal +{len(rows)}\n +to the last digit", printed) and "rows differ  0" in printed
    assert {row["metric"] for row in rows} >= {"LIC", "LIC_M", "ratio", "error"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_number_that_differs_is_named_with_both_values(bundle, tmp_path, capsys):
    def edit(data: bytes) -> bytes:
        rows = json.loads(data)
        first = next(row for row in rows if (row["model"], row["metric"]) == ("weak", "error"))
        first["value"] = first["value"] + 1.5
        next(row for row in rows if (row["model"], row["metric"]) == ("strong", "error"))["model"] = "nobody"
        return json.dumps(rows).encode()

    path = changed(bundle, tmp_path / "changed.zip", "rows.json", edit)
    assert cli.main(["reproduce", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    differing = next(line for line in lines if line.startswith("weak error"))
    there, here = (float(cell) for cell in differing.split()[-2:])
    assert there == pytest.approx(here + 1.5)
    assert any(line.startswith("nobody error") and line.endswith("not made") for line in lines)
    assert "rows differ  2" in lines and any(line.startswith("largest difference 1.5") for line in lines)


@pytest.mark.long
def test_a_report_alone_is_that_of_the_bundle(bundle, measured, capsys):
    place = ["--workspace", str(measured[0].folder), "--collection", "small"]
    assert cli.main(["export", *place, "--format", "report"]) == 0
    alone, text = capsys.readouterr().out, zipfile.ZipFile(bundle).read("report.html").decode()
    answers = [page.partition("<h1>")[2].partition("<summary>How it was measured")[0] for page in (alone, text)]
    assert "<script" not in text and "default-src 'none'" in text and "capbias reproduce" in text
    assert answers[0] == answers[1] and "<h2>Captioners</h2>" in answers[0] and "strong" in answers[0]


@pytest.mark.long
def test_a_bundle_holds_what_its_numbers_were_made_from(bundle, measured):
    archive = zipfile.ZipFile(bundle)
    manifest = json.loads(archive.read("manifest.json"))
    assert {item["kind"] for item in manifest["items"]} == {"captions", "references", "labels"}
    for item in manifest["items"]:
        frame = pd.read_parquet(io.BytesIO(archive.read(item["file"])))
        pd.testing.assert_frame_equal(frame, measured[0].frame(item["hash"]))
    assert manifest["versions"]["numpy"] and manifest["measures"]["lic"]
    assert [RunSpec(**run).run_id for run in manifest["runs"]] == measured[1]
    csv = pd.read_csv(io.BytesIO(archive.read("rows.csv")), float_precision="round_trip")
    own = measured[0].results(measured[1])
    assert csv["value"].tolist() == own["value"].tolist() and len(csv) == manifest["rows"]
    with pytest.raises(CapbiasError, match="no such result"):
        write_bundle(measured[0], "nothing")


@pytest.mark.long
def test_reproducing_wants_an_empty_workspace(bundle, measured, tmp_path):
    with pytest.raises(CapbiasError, match="is not empty"):
        reproduce(measured[0], read_bundle(bundle, tmp_path / "bundle"), run_all)


def row(value: float, **more) -> dict:
    return Result(
        attribute="gender", model="sat", metric="LIC", value=value, ci_low=more.pop("low", 1.0), n=9, **more
    ).row()


def test_rows_are_compared_number_by_number():
    """By hand: one equal, one off by less than the tolerance, one whose interval is off, one without its other."""
    there = pd.DataFrame([row(1.0), row(2.0, direction="A->T"), row(3.0, direction="T->A"), row(4.0, group="Male")])
    here = pd.DataFrame(
        [row(1.0), row(2.0 + 2**-30, direction="A->T"), row(3.0, direction="T->A", low=1.25), row(4.0, group="Female")]
    )
    found = compared(there, here, 1e-6)
    assert (found.rows, found.same, found.near, len(found.differ)) == (4, 1, 1, 2)
    assert found.largest == 0.25
    assert found.differ["number"].tolist() == ["ci_low", "value"]
    assert found.differ.iloc[0][["bundle", "here"]].tolist() == ["1", "1.25"]
    assert found.differ.iloc[1]["here"] == "not made"
    assert compared(there[:2], here[:2], 0.0).same == 1 and len(compared(there[:2], here[:2], 0.0).differ) == 1


def reproduced(workspace: Workspace, specs: list, folder: Path) -> Reproduction:
    """Measure runs, bundle them, and make them again."""
    assert all(run.status == "finished" for run in run_all(workspace, specs, "small"))
    (folder / "bundle.zip").write_bytes(write_bundle(workspace, "small"))
    read = read_bundle(folder / "bundle.zip", folder / "inside")
    assert [spec.run_id for spec in read.specs] == [spec.run_id for spec in specs]
    return reproduce(Workspace(folder / "again"), read, run_all)


@pytest.mark.long
def test_word_vectors_and_objects_go_along(measured, tmp_path):
    """Vectors are named by the hash of a large file, of which the workspace holds an excerpt."""
    workspace = Workspace(tmp_path / "home")
    for item in measured[0].items():
        workspace.keep(item.kind, item.name, measured[0].frame(item.hash), "small", "test", item.details)
    words = ("street", "field", "cake", "tie", "horse", "umbrella", "skateboard", "motorcycle")
    lines = [f"{word} {place % 3}.5 {place}.25" for place, word in enumerate(words)]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    vectors = keep_vectors(workspace, offer_vectors(workspace, tmp_path / "glove.txt", "small"), "glove", "small")
    objects = pd.DataFrame({"image_id": [str(own) for own in range(1, 91)], "objects": ["cake|tie", "horse"] * 45})
    workspace.keep("objects", "things", objects, "small", "test")
    options = {"alignment": alignment_option(vectors, 0.5)}
    asked = ("lic", "ba", "cooccurrence")
    specs = plan(
        workspace, Question("small", SMALL[:1], "attributes", "gender", asked, "human", seeds=1, options=options)
    )
    found = reproduced(workspace, specs, tmp_path)
    assert found.same == found.rows > 10 and found.reasons == ()


@pytest.mark.long
def test_labels_that_were_derived_are_derived_again(tmp_path):
    def captions(person: str) -> list[dict]:
        young = [(image, image % 2) for image in range(80)]
        return [{"image_id": image, "caption": f"a {('boy', person)[old]} with a dog"} for image, old in young]

    for name, person in (("strong", "man"), ("human", "elderly man")):
        (tmp_path / f"{name}.json").write_text(json.dumps(captions(person)))
    workspace = Workspace(tmp_path / "home")
    place = ["--collection", "small", "--workspace", str(tmp_path / "home")]
    assert cli.main(["import", str(tmp_path / "human.json"), "--kind", "references", *place]) == 0
    assert cli.main(["import", str(tmp_path / "strong.json"), "--kind", "captions", *place]) == 0
    assert cli.main(["labels", "derive", "age", "--references", "human", *place]) == 0
    (table,) = workspace.items("labels", "small")
    specs = plan(workspace, Question("small", ("strong",), table.name, "age", ("LIC_M",), seeds=1))
    found = reproduced(workspace, specs, tmp_path)
    assert found.same == found.rows > 0
