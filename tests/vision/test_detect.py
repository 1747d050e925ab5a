"""Objects on photographs: the real detector, stored boxes, bad files, and which objects a run reads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from capbias_core.cli import main
from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.photographs import DetectOptions
from capbias_core.question import Question
from capbias_core.runs.artifact_runs import plan_artifact
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.types import BOX_COLUMNS, silent
from capbias_core.vision.detect import find_weights, keep_weights, saved_weights
from capbias_core.worker import execute
from capbias_core.workspace.objects import keep_objects_of
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Workspace
from tests.collections_ import keep
from tests.conftest import ROOT, SHARED

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
    options = DetectOptions(name="yolo", weights=str(yolo))
    run_one(workspace, plan_artifact(workspace, "c", "detect", options), silent)
    return workspace


def test_a_batch_goes_on_past_bad_pictures_quietly_and_alone(yolo, shipped, tmp_path, monkeypatch, capfd):
    """And asks nothing of the network."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (80, 60), (90, 90, 90)).save(folder / "nobody.png")
    (folder / "text.jpg").write_text("no picture")

    def refuse(*asked, **_more):
        raise AssertionError(f"asked for the network: {asked}")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    for name in PEOPLE:
        (folder / name).write_bytes((shipped / name).read_bytes())
    keep_images(Workspace(tmp_path / "w"), folder, "c")
    monkeypatch.setattr("capbias_core.runs.engine.needs_workers", lambda spec: False)
    more = ("--output", tmp_path / "boxes.csv", "--weights", yolo, "--workspace", tmp_path / "w")
    assert main(["images", "detect", "--collection", "c", *map(str, more)]) == 0
    printed = capfd.readouterr()
    table = pd.read_csv(tmp_path / "boxes.csv")
    assert list(table) == ["image", "class", "confidence", "x1", "y1", "x2", "y2"]
    assert table.loc[table["class"] == "person", "image"].value_counts().to_dict() == PEOPLE
    notes = [line for line in printed.err.splitlines() if line.startswith("note: ")]
    assert "boxes on 3 photographs, 2 of them with people" in notes[0]
    assert notes[1].startswith("note: 1 photograph left out: text.jpg")
    assert printed.out == ""


def test_boxes_are_those_that_ultralytics_finds_in_the_files(detector, yolo, shipped):
    """It reads the files itself, so colours and places are right: red and blue exchanged move confidence by 0.02. A
    batch gives what one photograph at a time gives, and the process stays as it was."""
    from capbias_core.vision.detect import ultralytics

    pixels = [read_photograph(shipped / name) for name in PEOPLE]
    model = ultralytics().YOLO(str(yolo), task="detect")
    for (name, people), picture, own in zip(PEOPLE.items(), pixels, detector.boxes(pixels), strict=True):
        pd.testing.assert_frame_equal(detector.boxes([picture])[0], own)
        assert ((own["object"] == "person") & (own["confidence"] >= 0.2)).sum() == people
        assert own["confidence"].is_monotonic_decreasing
        theirs = model.predict(str(shipped / name), conf=0.3, verbose=False, save=False, device="cpu")[0].boxes
        own = own[own["confidence"] >= 0.3]
        assert own["confidence"].to_numpy() == pytest.approx(theirs.conf.numpy(), abs=2e-3)
        assert own[["x1", "y1", "x2", "y2"]].to_numpy() == pytest.approx(theirs.xyxy.numpy(), abs=1.0)
    assert len(detector.classes) == 80 and detector.boxes([]) == []
    assert str(np.array([0.5, 1.25])) == "[0.5  1.25]" and "YOLO_CONFIG_DIR" not in os.environ


class Evil:
    """A pickle of this calls `open`, which writes a file."""

    def __init__(self, file: Path):
        self.file = str(file)

    def __reduce__(self):
        return (open, (self.file, "w"))


def test_what_people_annotated_goes_before_what_a_detector_found(tmp_path):
    """Objects that a detector found are taken where they are asked for, or where there are no others."""
    workspace = Workspace(tmp_path)
    labels = pd.DataFrame({"image_id": ["1", "2"], "gender": ["Female", "Male"]})
    keep(workspace, labels=labels, captions=pd.DataFrame({"image_id": ["1", "2"], "caption": ["a woman", "a man"]}))
    details = {"weights": "yolo", "bare": ["2"]}
    boxes = workspace.keep(
        BOXES, "yolo", pd.DataFrame([("1", "cat", 0.5, 0, 0, 1, 1)], columns=BOX_COLUMNS), "c", "test", details
    )
    found = keep_objects_of(workspace, boxes)
    assert workspace.frame(found.hash)["objects"].tolist() == ["cat:0.5", ""]

    def table(**asked) -> str:
        return plan(workspace, Question("c", ("m",), "labels", "gender", ("cooccurrence",), **asked))[0].objects[
            "table"
        ]

    assert table() == found.hash
    annotated = pd.DataFrame({"image_id": ["1"], "objects": ["dog"]})
    by_people = workspace.keep("objects", "instances", annotated, "c", "test")
    assert table() == by_people.hash and table(objects="yolo") == found.hash
    workspace.keep(BOXES, "instances", workspace.frame(boxes.hash), "c", "test", details)
    keep_objects_of(workspace, workspace.item(BOXES, "instances", "c"))
    assert table() == by_people.hash


def test_files_that_are_no_detector_run_no_code_and_weights_that_are_missing(tmp_path, monkeypatch):
    import torch

    from capbias_core.vision.detect import Detector

    torch.save({"model": Evil(tmp_path / "evil.txt")}, tmp_path / "evil.pt")
    (tmp_path / "broken.pt").write_bytes(b"no weights")
    for name in ("evil.pt", "broken.pt"):
        with pytest.raises(CapbiasError, match=f"{name} cannot be loaded"):
            Detector(tmp_path / name)
    assert not (tmp_path / "evil.txt").exists()
    for name in (str(ROOT / "README.md"), "gone.tflite", "gone.pt"):
        with pytest.raises(CapbiasError):
            find_weights(name, tmp_path)
    with pytest.raises(CapbiasError, match="yolo predict model=yolov8n.pt"):
        find_weights("yolov8n", tmp_path)
    (tmp_path / "yolov8n.pt").write_bytes(b"kept before")
    assert find_weights("yolov8n", tmp_path).path == str(tmp_path / "yolov8n.pt")
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    with pytest.raises(CapbiasError, match="ai-edge-litert"):
        Detector("a.tflite")


def test_boxes_of_another_confidence_replace_those_of_their_name(looked_at, yolo, coco_bias):
    item = looked_at.item(BOXES, "yolo", "c")
    kept = looked_at.frame(item.hash)
    images = {path.stem.lstrip("0") for path in (coco_bias / "images").glob("*.jpg")}
    assert item.details["weights"] == yolo.name and item.details["photographs"] == "photographs"
    assert set(item.details["bare"]) == images - set(kept["image_id"]) and list(kept) == list(BOX_COLUMNS)
    for confidence in (0.2, 0.5, 0.2, 1.0):
        options = DetectOptions(name="one name", weights=str(yolo), confidence=confidence)
        spec = plan_artifact(looked_at, "c", "detect", options)
        if looked_at.enqueue(spec, "c"):
            execute(str(looked_at.folder), spec.run_id)
        rows = looked_at.frame(looked_at.item(BOXES, "one name", "c").hash)
        assert len(rows) == (kept["confidence"] >= confidence).sum()
        assert ("one name" in {each.name for each in looked_at.items("objects", "c")}) == (confidence < 1)


def test_saved_weights_are_found_by_their_name_and_never_replaced(tmp_path):
    given, folder = tmp_path / "mine.onnx", tmp_path / "weights"
    given.write_bytes(b"first")
    assert keep_weights(folder, given).read_bytes() == b"first" and saved_weights(folder) == ["mine.onnx"]
    assert find_weights("mine.onnx", folder).path == str(folder / "mine.onnx")
    keep_weights(folder, given)  # the same again
    given.write_bytes(b"second")
    with pytest.raises(CapbiasError):
        keep_weights(folder, given)
    assert (folder / "mine.onnx").read_bytes() == b"first"
    for name in ("a b.onnx", ".onnx", "x.pt.exe"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(CapbiasError):
            keep_weights(folder, tmp_path / name)
