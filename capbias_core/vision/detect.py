"""A YOLO detector through `ultralytics`: its weights to a path and a digest, and photographs to boxes.

Imports nothing heavy; only workers and terminals detect. Ultralytics is kept to itself: it installs nothing, contacts
nobody, writes no settings, runs no code that a file of weights brings along, and says nothing. Only a download asks for
the network: `python -m capbias_core.vision.detect NAME FILE`, in a process of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, first_line, need, short
from capbias_core.language.files import ModelFiles
from capbias_core.load.files import file_digest
from capbias_core.load.places import nameable, named
from capbias_core.load.tables import kept_name
from capbias_core.processes import python, temporary_folder
from capbias_core.whole_files import typed_path, whole_file

# What a file of weights needs beside ultralytics: its ending -> packages, as they are imported.
NEEDS = {".pt": (), ".onnx": (), ".tflite": ("ai_edge_litert",)}
# Names in the folder of downloads, and which of them ultralytics downloads; anything else is a path.
NAME = re.compile(r"[A-Za-z][\w-]*(\.(pt|onnx|tflite))?", re.ASCII)
DOWNLOADED = re.compile(r"(yolo|rtdetr)[\w-]*(\.pt)?", re.ASCII | re.IGNORECASE)
PATIENCE = 900.0  # seconds for a download
# Boxes that the detector is less sure of are never asked for. Whoever wants surer ones leaves the others out: which box
# hides which is decided from the surest down, so the rest is as if it had been asked for alone.
FLOOR = 0.05
_starting = threading.Lock()


def to_download(name: str, folder: Path) -> bool:
    """Whether these weights are not on this machine, and ultralytics may know them by this name.

    >>> to_download("yolov8n", Path("nowhere")), to_download("gone.pt", Path("nowhere"))
    (True, False)
    """
    given = typed_path(name)
    here = (nameable(given) and given.exists()) or _in_folder(name, folder).is_file()
    return not here and bool(DOWNLOADED.fullmatch(name))


def _in_folder(name: str, folder: Path) -> Path:
    return folder / (name if Path(name).suffix in NEEDS else f"{name}.pt")


def saved_weights(folder: Path) -> list[str]:
    """Names of the weights in a folder."""
    return sorted(path.name for path in folder.glob("*") if path.suffix in NEEDS)


def keep_weights(folder: Path, path: Path) -> Path:
    """Copy a file of weights into a folder; its path there. Raises CapbiasError if the folder has other weights of this
    name, or the name cannot be used."""
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
    """The weights in a file (.pt, .onnx, .tflite), or those that ultralytics knows by this name.

    A name is looked for in `folder`, and else downloaded there by ultralytics, once. Raises CapbiasError if there is
    no such file, it cannot be read, or it cannot be downloaded.
    """
    need("Detecting objects", "torch", "PIL", "ultralytics")
    path = typed_path(name)
    if not NAME.fullmatch(name) or (nameable(path) and path.exists()):
        path = named(path)
    else:
        path = _in_folder(name, folder)
        if to_download(name, folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            command, environment = python("-m", "capbias_core.vision.detect", path.name, str(path))
            options = {"capture_output": True, "text": True, "timeout": PATIENCE, "env": environment}
            failed, fault = True, ""
            with suppress(subprocess.TimeoutExpired):
                done = subprocess.run(command, **options, check=False)
                failed, fault = bool(done.returncode), done.stderr.strip()
            if failed or not path.is_file():
                reason = f" ({short(fault.splitlines()[-1], 200)})" if fault else ""
                raise CapbiasError(
                    f"The weights {path.name!r} are not on this machine and could not be downloaded{reason}.",
                    f"Where there is a network, run `yolo predict model={path.name}`, copy {path.name} here, and name "
                    f"the file instead, or put it into {path.parent}.",
                )
        if not path.is_file():
            raise CapbiasError(
                f"The weights {name!r} are no file, here or in {folder}, and no name that ultralytics knows.",
                "Name a file (.pt, .onnx, .tflite), or a detector such as yolov8n.",
            )
    if path.suffix.lower() not in NEEDS:
        raise CapbiasError(
            f"Weights are in a file that ends in {', '.join(NEEDS)}, unlike {path.name!r}.",
            "Export the detector in one of these formats, or name one such as yolov8n.",
        )
    return ModelFiles(path.name, str(path.resolve()), file_digest(path))


# boxes


class Detector:
    """A YOLO detector in a file of weights (.pt, .onnx, .tflite), on the GPU where there is one and the format allows.
    Raises CapbiasError for a file that no detector can be made of, or whose package is not installed."""

    def __init__(self, weights: str | Path):
        path = Path(weights)
        kind = path.suffix.lower()
        need(path.name, *NEEDS[kind])
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
            frame = pd.DataFrame(corners, columns=["x1", "y1", "x2", "y2"])
            frame.insert(0, "object", pd.Series(names, dtype="str"))
            frame.insert(1, "confidence", boxes.conf.numpy().astype(float).round(4))
            frames.append(frame.sort_values("confidence", ascending=False, kind="stable", ignore_index=True))
        return frames

    def _results(self, pixels: Sequence[np.ndarray]) -> list:
        reversed_colours = [np.ascontiguousarray(picture[..., ::-1]) for picture in pixels]  # ultralytics reads BGR
        options = {"conf": FLOOR, "max_det": 300, "rect": False, "verbose": False, "save": False}
        return list(self._model.predict(reversed_colours, **options, **self._how))


def ultralytics(offline: bool = True):
    """The package, imported in a way that leaves nothing behind. offline: that it is not to find out whether there is a
    network; decided by whoever asks first in a process."""
    need("Detecting objects", "torch", "PIL", "ultralytics")
    with _starting, _unchanged(), temporary_folder() as settings:
        os.environ |= {
            "YOLO_AUTOINSTALL": "false",
            "YOLO_OFFLINE": str(offline).lower(),
            "YOLO_VERBOSE": "false",
            "YOLO_CONFIG_DIR": str(settings),
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
        raise CapbiasError(
            f"{path.name} cannot be loaded as a YOLO detector ({first_line(error)}).",
            "Check that the file was copied whole.",
        ) from None
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def download(name: str, file: str) -> int:
    """Fetch weights; 0 if FILE is there, else the last line of stderr says why not. Ultralytics writes a part of a file
    beside its final place."""
    ultralytics(offline=False)
    from ultralytics.utils.downloads import GITHUB_ASSETS_NAMES, attempt_download_asset

    if name not in GITHUB_ASSETS_NAMES:
        detectors = [known for known in sorted(GITHUB_ASSETS_NAMES) if known.startswith("yolo") and "n.pt" in known]
        print(f"ultralytics knows no {name}, but {', '.join(detectors)} and others", file=sys.stderr)
        return 2
    try:
        attempt_download_asset(file, progress=False)
    except (OSError, MemoryError) as error:
        print(f"{' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0 if Path(file).is_file() else 1


if __name__ == "__main__":
    raise SystemExit(download(*sys.argv[1:]))
