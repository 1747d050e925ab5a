"""A YOLO detector through `ultralytics`: its weights to a path and a digest, and photographs to boxes.

Ultralytics is kept to itself: it installs nothing, contacts nobody, writes no settings, runs no code that a file of
weights brings along, and says nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, first_line, need
from capbias_core.language.files import ModelFiles
from capbias_core.load.files import file_digest
from capbias_core.load.places import nameable, named
from capbias_core.load.tables import kept_name
from capbias_core.whole_files import typed_path, whole_file

# What a file of weights needs beside ultralytics: its ending -> packages, as they are imported.
NEEDS = {".pt": (), ".onnx": (), ".tflite": ("ai_edge_litert",)}
# Names in the folder of weights; anything else is a path.
NAME = re.compile(r"[A-Za-z][\w-]*(\.(pt|onnx|tflite))?", re.ASCII)
# Boxes that the detector is less sure of are never asked for. Whoever wants surer ones leaves the others out.
FLOOR = 0.05
_starting = threading.Lock()


def saved_weights(folder: Path) -> list[str]:
    """Names of the weights in a folder."""
    return sorted(path.name for path in folder.glob("*") if path.suffix in NEEDS)


def keep_weights(folder: Path, path: Path) -> Path:
    """Copy a file of weights into a folder; its path there. Raises CapbiasError for a name that cannot be used."""
    if not NAME.fullmatch(path.name):
        raise CapbiasError(
            f"The name {path.name!r} cannot be used.", "Rename the file: letters, digits, - and _, then its ending."
        )
    target = folder / path.name
    if target.exists():
        if file_digest(target) != file_digest(path):
            raise CapbiasError(f"Other weights named {path.name} are saved already.", "Rename the file.")
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as part:
        shutil.copyfile(path, part)
    return target


def find_weights(name: str, folder: Path) -> ModelFiles:
    """The weights in a file, or of this name in `folder`. Raises CapbiasError, which says how to get them, for none."""
    need("Detecting objects", "torch", "PIL", "ultralytics")
    path = typed_path(name)
    if not NAME.fullmatch(name) or (nameable(path) and path.exists()):
        path = named(path)
    else:
        path = folder / (name if Path(name).suffix in NEEDS else f"{name}.pt")
        if not path.is_file():
            raise CapbiasError(
                f"The weights {name!r} are no file, here or in {folder}.",
                f"Name a file ({', '.join(NEEDS)}). Where there is a network, `yolo predict model={path.name}` fetches "
                "a detector that ultralytics knows, such as yolov8n.pt.",
            )
    if path.suffix.lower() not in NEEDS:
        raise CapbiasError(
            f"Weights are in a file that ends in {', '.join(NEEDS)}, unlike {path.name!r}.",
            "Export the detector in one of these formats.",
        )
    return ModelFiles(path.name, str(path.resolve()), file_digest(path))


class Detector:
    """A YOLO detector in a file of weights; raises CapbiasError for another file, and without the format's package."""

    def __init__(self, weights: str | Path):
        path = Path(weights)
        kind = path.suffix.lower()
        need(path.name, *NEEDS[kind])
        # OpenCV reads ONNX: ONNX Runtime keeps a number of the machine in the home folder.
        self._how = {} if kind == ".pt" else {"device": "cpu", "dnn": kind == ".onnx"}
        package = ultralytics()
        try:
            self._model = package.YOLO(str(path), task="detect" if self._how else None)
            results = self._results([np.zeros((64, 64, 3), dtype=np.uint8)])
        except Exception as error:  # whatever a file of weights makes the libraries raise
            raise CapbiasError(
                f"{path.name} cannot be loaded as a YOLO detector ({first_line(error)}).",
                "Check that the file was copied whole.",
            ) from None
        if results[0].boxes is None:
            raise CapbiasError(
                f"The model in {path.name} gives no boxes (its task is {self._model.task}).",
                "Choose the weights of a detector, such as yolov8n.",
            )
        self.classes = tuple(map(kept_name, self._model.names.values()))

    def boxes(self, pixels: Sequence[np.ndarray]) -> list[pd.DataFrame]:
        """What each photograph shows, the surest first: object, confidence (0.05 to 1), x1, y1, x2, y2.

        pixels: (H, W, 3) uint8 RGB each, of any size; each is laid on a square of the same size. Boxes are in pixels.
        """
        frames = []
        for result in self._results(pixels) if len(pixels) else ():
            boxes = result.boxes.cpu()
            corners = boxes.xyxy.numpy().astype(float).round(2)  # to a hundredth of a pixel
            names = [kept_name(result.names[int(code)]) for code in boxes.cls.numpy()]
            frame = pd.DataFrame(corners, columns=["x1", "y1", "x2", "y2"])
            frame.insert(0, "object", pd.Series(names, dtype="str"))
            frame.insert(1, "confidence", boxes.conf.numpy().astype(float).round(4))
            frames.append(frame.sort_values("confidence", ascending=False, kind="stable", ignore_index=True))
        return frames

    def _results(self, pixels: Sequence[np.ndarray]) -> list:
        reversed_colours = [np.ascontiguousarray(picture[..., ::-1]) for picture in pixels]  # ultralytics reads BGR
        options = {"conf": FLOOR, "max_det": 300, "rect": False, "verbose": False, "save": False}
        return list(self._model.predict(reversed_colours, **options, **self._how))


def ultralytics():
    """The package, imported in a way that leaves nothing behind."""
    need("Detecting objects", "torch", "PIL", "ultralytics")
    with _starting, _unchanged(), TemporaryDirectory() as settings:
        os.environ |= {
            "YOLO_AUTOINSTALL": "false",
            "YOLO_OFFLINE": "true",
            "YOLO_VERBOSE": "false",
            "YOLO_CONFIG_DIR": settings,
            "ULTRALYTICS_SAFE_LOAD": "true",  # weights are data: no code in a .pt is run
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count() or 1),
        }
        import ultralytics as package
        from ultralytics.utils import LOGGER, SETTINGS

        LOGGER.setLevel("ERROR")
        if SETTINGS["sync"]:
            SETTINGS.update(sync=False)
        return package


@contextmanager
def _unchanged() -> Iterator[None]:
    """Put back what importing ultralytics changes for the whole process: how Pillow opens files (it would ask for a
    package where it knows none), how PyTorch saves, how numbers print, how many threads others may use."""
    import torch
    from PIL import Image

    opens, saves, prints = Image.open, torch.save, np.get_printoptions()
    limits = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "YOLO_CONFIG_DIR")}
    try:
        yield
    finally:
        Image.open, torch.save = opens, saves
        np.set_printoptions(**prints)
        torch.set_printoptions(profile="default")
        os.environ |= {name: value for name, value in limits.items() if value is not None}
        for name in (name for name, value in limits.items() if value is None):
            os.environ.pop(name, None)
