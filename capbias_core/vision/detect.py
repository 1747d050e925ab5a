"""Boxes of what photographs show, by a YOLO detector through `ultralytics`; only workers and terminals use it.

Ultralytics is kept to itself: it installs nothing, contacts nobody, writes no settings, runs no code that a file of
weights brings along, and says nothing.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, need
from capbias_core.load.tables import kept_name
from capbias_core.vision.weights import check_packages

COLUMNS = ("object", "confidence", "x1", "y1", "x2", "y2")
# Boxes that the detector is less sure of are never asked for. Whoever wants surer ones leaves the others out: which box
# hides which is decided from the surest down, so the rest is as if it had been asked for alone.
FLOOR = 0.05
MOST_BOXES = 300
_starting = threading.Lock()


class Detector:
    """A YOLO detector in a file of weights (.pt, .onnx, .tflite), on the GPU where there is one and the format allows.

    Raises CapbiasError for a file that no detector can be made of, or whose package is not installed.
    """

    def __init__(self, weights: str | Path):
        path = Path(weights)
        check_packages(path)
        kind = path.suffix.lower()
        # OpenCV reads ONNX: ONNX Runtime keeps a number of the machine in the home folder.
        self._how = {} if kind == ".pt" else {"device": "cpu", "dnn": kind == ".onnx"}
        with _loading(path):
            self._model = ultralytics().YOLO(str(path), task="detect" if self._how else None)
            results = self._results([np.zeros((64, 64, 3), dtype=np.uint8)])
        if results[0].boxes is None:
            raise CapbiasError(
                f"The model in {path.name} gives no boxes (its task is {self._model.task}).",
                "Choose the weights of a detector, such as yolov8n.",
            )
        self.classes = tuple(map(kept_name, self._model.names.values()))

    def boxes(self, pixels: Sequence[np.ndarray]) -> list[pd.DataFrame]:
        """What each photograph shows, the surest first: object, confidence (0.05 to 1), x1, y1, x2, y2.

        pixels: (H, W, 3) uint8 RGB each, of any size. Boxes are in their pixels. A batch gives what its photographs
        give one by one: each is laid on a square of the same size.
        """
        frames = []
        for result in self._results(pixels) if len(pixels) else ():
            boxes = result.boxes.cpu()
            corners = boxes.xyxy.numpy().astype(float).round(2)  # to a hundredth of a pixel
            names = [kept_name(result.names[int(code)]) for code in boxes.cls.numpy()]
            frame = pd.DataFrame(corners, columns=list(COLUMNS[2:]))
            frame.insert(0, "object", pd.Series(names, dtype="str"))
            frame.insert(1, "confidence", boxes.conf.numpy().astype(float).round(4))
            frames.append(frame.sort_values("confidence", ascending=False, kind="stable", ignore_index=True))
        return frames

    def _results(self, pixels: Sequence[np.ndarray]) -> list:
        reversed_colours = [np.ascontiguousarray(picture[..., ::-1]) for picture in pixels]  # ultralytics reads BGR
        results = self._model.predict(
            reversed_colours, conf=FLOOR, max_det=MOST_BOXES, rect=False, verbose=False, save=False, **self._how
        )
        return list(results)


def ultralytics(offline: bool = True):
    """The package, imported in a way that leaves nothing behind.

    offline: that it is not to find out whether there is a network; decided by whoever asks first in a process.
    """
    need("Detecting objects", "torch", "PIL", "ultralytics")
    with _starting, _unchanged(), tempfile.TemporaryDirectory(prefix="capbias-") as settings:
        os.environ |= {
            "YOLO_AUTOINSTALL": "false",
            "YOLO_OFFLINE": str(offline).lower(),
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


@contextmanager
def _loading(path: Path) -> Iterator[None]:
    """Whatever a file of weights makes the libraries raise, as a CapbiasError; without what native code prints: LiteRT
    greets past Python's stderr, and knows no option against it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    except CapbiasError:
        raise
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise CapbiasError(
            f"{path.name} cannot be loaded as a YOLO detector ({first[:200]}).", "Check that the file was copied whole."
        ) from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
