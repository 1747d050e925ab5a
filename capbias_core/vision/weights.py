"""Weights of a detector: a file, or a name that ultralytics knows, to a path and a digest. Imports nothing heavy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from capbias_core.errors import CapbiasError, need
from capbias_core.load.files import file_digest
from capbias_core.load.places import nameable, named
from capbias_core.resources import PACKAGE
from capbias_core.whole_files import whole_file

# What a file of weights needs beside ultralytics: its ending -> packages, as they are imported.
NEEDS = {".pt": (), ".onnx": (), ".tflite": ("ai_edge_litert",)}
# Names in the folder of downloads, and which of them ultralytics downloads; anything else is a path.
NAME = re.compile(r"[A-Za-z][\w-]*(\.(pt|onnx|tflite))?", re.ASCII)
DOWNLOADED = re.compile(r"(yolo|rtdetr)[\w-]*(\.pt)?", re.ASCII | re.IGNORECASE)
PATIENCE = 900.0  # seconds for a download


@dataclass(frozen=True)
class Weights:
    """name: the file's. path: where it is. digest: of its content, wherever it is."""

    name: str
    path: str
    digest: str


def to_download(name: str, folder: Path) -> bool:
    """Whether these weights are not on this machine, and ultralytics may know them by this name.

    >>> to_download("yolov8n", Path("nowhere")), to_download("gone.pt", Path("nowhere"))
    (True, False)
    """
    given = Path(name).expanduser()
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


def find_weights(name: str, folder: Path) -> Weights:
    """The weights in a file (.pt, .onnx, .tflite), or those that ultralytics knows by this name.

    A name is looked for in `folder`, and else downloaded there by ultralytics, once. Raises CapbiasError if there is
    no such file, it cannot be read, or it cannot be downloaded.
    """
    need("Detecting objects", "torch", "PIL", "ultralytics")
    path = Path(name).expanduser()
    if not NAME.fullmatch(name) or (nameable(path) and path.exists()):
        path = named(path)
    else:
        path = _in_folder(name, folder)
        if to_download(name, folder):
            _download(name, path)
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
    return Weights(path.name, str(path.resolve()), file_digest(path))


def check_packages(path: Path) -> None:
    """Raises MissingExtra if a package that such weights need is not installed."""
    need(path.name, *NEEDS[path.suffix.lower()])


def _download(name: str, path: Path) -> None:
    """Write a file from the network. Another process asks ultralytics, which needs torch."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "capbias_core.vision.download", path.name, str(path)]
    reason = ""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, cwd=PACKAGE.parent, check=False
        )
    except subprocess.TimeoutExpired:
        pass
    else:
        if not done.returncode and path.is_file():
            return
        reason = f" ({done.stderr.strip().splitlines()[-1][:200]})" if done.stderr.strip() else ""
    raise CapbiasError(
        f"The weights {path.name!r} are not on this machine and could not be downloaded{reason}.",
        f"Where there is a network, run `yolo predict model={path.name}`, copy {path.name} here, and name the file "
        f"instead, or put it into {path.parent}.",
    )
