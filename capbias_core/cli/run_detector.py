"""Photographs that a detector looks at, from a terminal: what was found, and what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from capbias_core.cli.terminal import say
from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import find_pictures
from capbias_core.workspace.boxes import (
    CONFIDENCE,
    WEIGHTS,
    Found,
    boxes_of,
    keep_boxes,
    keep_objects_of,
    weights_of,
    weights_option,
)
from capbias_core.workspace.objects import OBJECTS
from capbias_core.workspace.store import Workspace, default_folder


def looked_at(workspace: Workspace, files: Mapping[str, Path], option: dict, confidence: float) -> Found:
    """The boxes of photographs, and what is to be said of them. Raises CapbiasError where none can be read.

    option: what `weights_option` gave.
    """
    try:
        found = boxes_of(workspace, files, weights_of(workspace, option), confidence, _tick)
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    for name, error in found.refused.items():
        say(f"left out: {name}: {error}")
    if not found.read:
        raise CapbiasError(
            f"{len(files):,} photographs, none of which can be read", "one that can", "See above what each lacks."
        )
    say(_line(found, option["name"]))
    return found


def keep_found(workspace: Workspace, weights: str, folder: Path, collection: str) -> None:
    """Keep the boxes and the objects that a detector finds on the photographs of a folder."""
    option = weights_option(workspace, weights, default_folder() / WEIGHTS)  # this workspace goes, a download stays
    pictures = find_pictures(folder)
    files = {image: folder / name for image, name in zip(pictures["image_id"], pictures["file"], strict=True)}
    found = looked_at(workspace, files, option, CONFIDENCE)
    keep_objects_of(workspace, keep_boxes(workspace, found, option, CONFIDENCE, collection, OBJECTS))


def _tick(share: float, text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _line(found: Found, weights: str) -> str:
    before = len(found.read) - found.computed
    return (
        f"{len(found.frame):,} boxes on {len(found.read):,} photographs by {weights}; {found.computed:,} looked at now,"
        f" {before:,} before"
    )
