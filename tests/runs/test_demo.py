"""The demo data: it is what the code makes, it meets its design, and measuring it finds the truth."""

import zipfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import capbias_core as capbias
from capbias_core.attributes import get_attribute
from capbias_core.errors import CapbiasError
from capbias_core.prepare.tokens import Tokens
from capbias_core.runs import demo as runs_demo
from capbias_core.runs.demo import SCORED, add_finished, load
from capbias_core.runs.run import estimates
from capbias_core.workspace.ingest import load_demo
from capbias_core.workspace.store import Workspace
from scripts import demo, demo_scores

pytestmark = pytest.mark.long
COMMITTED = Path(__file__).resolve().parents[2] / "assets" / "demo"
GENDER = get_attribute("gender")
SIZES = {"Female": 560, "Male": 640}
NOUNS = ("phone", "umbrella", "cake", "horse", "skateboard", "surfboard", "motorcycle", "baseball")


@pytest.fixture(scope="module")
def made() -> demo.Demo:
    return demo.generate(0)


@pytest.fixture(scope="module")
def labels(made) -> dict[str, str]:
    """Image -> label, for the images labelled Female or Male."""
    pairs = zip(made.attributes["image_id"], made.attributes["gender"], strict=True)
    return {image: label for image, label in pairs if label in SIZES}


@pytest.fixture(scope="module")
def sets(made, labels) -> dict[str, list[tuple[str, str]]]:
    """Every set of one caption an image, as (label, masked caption); the references give five."""
    frames = dict(made.captioners)
    frames |= {f"references {index}": frame for index, frame in made.references.groupby("caption_index")}
    found = {}
    for name, frame in frames.items():
        frame = frame[frame["image_id"].isin(labels)]
        masked = Tokens.of(frame["caption"]).masked(GENDER)
        found[name] = [(labels[image], caption) for image, caption in zip(frame["image_id"], masked, strict=True)]
    return found


def activity(caption: str) -> str:
    [noun] = [noun for noun in NOUNS if noun in caption.split()]
    return noun


def test_committed_files_are_what_the_code_writes(tmp_path):
    from PIL import Image

    demo.write(tmp_path)
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    committed = {path.relative_to(COMMITTED) for path in COMMITTED.rglob("*") if path.is_file()}
    assert written == committed - {Path(SCORED.name), Path("boxes.csv")}
    assert len(written) == 22
    for name in written:
        if name.suffix == ".png":
            assert np.array_equal(np.asarray(Image.open(tmp_path / name)), np.asarray(Image.open(COMMITTED / name))), (
                name
            )
        else:
            assert (tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes(), name


def knowing_attacker(captions: list[tuple[str, str]]) -> float:
    """Score of the attacker that has counted the labels of every activity, each label weighing the same."""
    weight = Counter()
    for label, caption in captions:
        weight[activity(caption), label] += Fraction(1, 2 * SIZES[label])
    score = Fraction(0)
    for label, caption in captions:
        posterior = {a: weight[activity(caption), a] for a in SIZES}
        guess = max(posterior, key=posterior.get)
        score += Fraction(int(guess == label), 2 * SIZES[label]) * posterior[guess] / sum(posterior.values())
    return float(100 * score)


def test_truth_is_the_score_of_an_attacker_that_counted(made, sets):
    scores = {name: knowing_attacker(captions) for name, captions in sets.items()}
    for name, truth in made.truth.items():
        assert scores[name] == pytest.approx(truth["LIC_M"], abs=1e-9)
        assert scores["references 3"] == pytest.approx(truth["LIC_D"], abs=1e-9)
        assert truth["LIC"] == pytest.approx(truth["LIC_M"] - truth["LIC_D"], abs=1e-9)


def test_truth_worked_out_by_hand(made):
    """The mitigator's activities all split 12 to 8, so 0.6 squared; the references' 0.75, 0.7, 0.65, 0.6."""
    assert made.truth["mitigator"]["LIC_M"] == 36.0
    assert made.truth["faithful"]["LIC_D"] == 45.875  # (56.25 + 49 + 42.25 + 36) / 4


def test_the_bundled_runs_are_those_that_a_request_would_make_now(tmp_path):
    """If not, run scripts/demo_scores.py."""
    workspace = Workspace(tmp_path)
    load_demo(workspace)
    bundled = {name.partition("/")[0].removesuffix(".json") for name in zipfile.ZipFile(SCORED).namelist()}
    assert bundled == {spec.run_id for spec in demo_scores.slow_runs(workspace)}
    assert SCORED.stat().st_size < 5_000_000


@pytest.mark.slow
def test_a_network_has_scored_captions_before_anything_runs(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)

    def full(*_):
        raise CapbiasError("The disk has no space left.")

    with monkeypatch.context() as patched, pytest.raises(CapbiasError):
        patched.setattr(Workspace, "finish", full)
        load(workspace)
    assert [run.status for run in workspace.runs()] == ["cancelled"], (
        "none waits for a process that does not compute it"
    )
    load(workspace)
    planned = {spec.run_id: spec.model for spec in demo_scores.slow_runs(workspace)}
    runs = workspace.runs()
    assert {run.run_id: run.spec.model for run in runs} == planned and len(planned) == 34
    for run in runs:
        rows = workspace.results([run.run_id]).set_index(["metric", "direction"])["value"]
        values = {key: estimate.value for key, estimate in estimates(run).items() if key in rows.index}
        assert all(values[key] == rows[key] for key in values), "the rows are those of the evidence"
        assert len(rows) or run.spec.measure == "caption_scores"
    demo_scores.write(workspace, tmp_path / "again.zip")
    again, bundled = zipfile.ZipFile(tmp_path / "again.zip"), zipfile.ZipFile(SCORED)
    assert {name: again.read(name) for name in again.namelist()} == {
        name: bundled.read(name) for name in bundled.namelist()
    }
    monkeypatch.setattr(runs_demo, "is_current", lambda spec: False)
    assert add_finished(workspace) == []


def test_the_verdicts_are_the_truth():
    """`plain` says what people say in simpler words, and amplifies nothing."""
    files = {name: COMMITTED / "results" / f"{name}.json" for name in ("faithful", "plain", "mitigator", "amplifier")}
    labels, references = COMMITTED / "attributes.csv", COMMITTED / "references.json"
    report = capbias.score(files, labels, "gender", references, metrics=["lic"], seeds=10)
    truth = demo.generate(0).truth
    for metric in ("LIC_M", "LIC_D"):
        for row in report.table[report.table["metric"] == metric].to_dict("records"):
            assert row["ci_low"] <= truth[row["model"]][metric] <= row["ci_high"], (metric, row["model"])
    rows = report.table[report.table["metric"] == "LIC"]
    assert dict(zip(rows["model"], rows["verdict"], strict=True)) == {
        "faithful": "inconclusive",
        "plain": "inconclusive",
        "mitigator": "reduces",
        "amplifier": "amplifies",
    }
