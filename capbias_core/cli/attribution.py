"""Options of `score` for what a captioner's words rest on in the photographs: the attribution score, pointing game."""

from __future__ import annotations

from pathlib import Path

from capbias_core.cli.terminal import warn
from capbias_core.load import read_boxes
from capbias_core.vision.grad_cam import GRAD_CAM, HIRES_CAM, MAPS
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace import ingest
from capbias_core.workspace.person_regions import BOXES, SEGMENTS
from capbias_core.workspace.store import Item, Workspace, suggested_name


def add_score_arguments(command, positive) -> None:
    """The options. positive: the reader of whole numbers."""
    group = command.add_argument_group(
        "what words rest on in the photographs (attribution)",
        "Also --photographs, as above. Captions are read, none are generated; nothing is fetched.",
    )
    reads = f"the captioner that reads them: one of {', '.join(PRESETS)}, a folder, or a name in the local cache of "
    reads += "Hugging Face (default: the one that wrote the set, where `caption` made it)"
    group.add_argument("--captioner", metavar="NAME_OR_FOLDER", help=reads)
    where = "where people are: COCO instances with outlines, or a table of boxes as `detect` writes it; with "
    where += "--collection, the name of kept ones (default: the only ones, outlines before boxes)"
    group.add_argument("--people", metavar="FILE", help=where)
    text = (
        f"how maps are made: {HIRES_CAM} (each place by its own gradient), or {GRAD_CAM}, which the DBAC paper names, "
    )
    text += "and which misleads where an image encoder is a transformer (default: %(default)s)"
    group.add_argument("--map", choices=tuple(MAPS), default=HIRES_CAM, help=text)
    most = "read at most so many images, the same for every set (default: all; an image takes a second or two)"
    group.add_argument("--most-images", type=positive, metavar="N", help=most)


def people_name(file: str) -> str:
    """How outlines or boxes of a file are called."""
    return suggested_name(Path(file).stem)


def keep_people(workspace: Workspace, file: str, collection: str) -> Item:
    """Keep the outlines of a COCO instances file, or the boxes of a table. Raises CapbiasError for another file."""
    path, name = Path(file), people_name(file)
    if path.suffix.lower() == ".json":
        offered = ingest.preview_import(workspace, path, SEGMENTS, collection)
        warn([offered.report])
        return ingest.keep_segments(workspace, offered, name, collection, path.name)
    return workspace.keep(BOXES, name, read_boxes(path).frame, collection, path.name)
