"""`detect`: what photographs show, as boxes; and how far they agree with boxes drawn by people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.aggregate.detection_agreement import agreement
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.run_detector import looked_at
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, share, show, write_output
from capbias_core.errors import CapbiasError
from capbias_core.load import normalise_image_id
from capbias_core.load.objects import kept_name
from capbias_core.load.photographs import find_pictures
from capbias_core.present.detection import agreement_line, agreement_table
from capbias_core.present.table import to_text
from capbias_core.runs.artifact_runs import named_after, plan_artifact
from capbias_core.types import BOX_COLUMNS
from capbias_core.vision.overlap import PERSON
from capbias_core.workspace.boxes import BOXES, CONFIDENCE, WEIGHTS, images_of, weights_option
from capbias_core.workspace.objects import FOUND_BY, OBJECTS
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.store import Workspace

COLUMNS = ("image", "class", *BOX_COLUMNS[2:])
EXAMPLE = """\
  python -m capbias_core detect photographs/ --weights yolov8n.tflite --class person --output boxes.csv
  python -m capbias_core detect photographs/ --weights yolov8n --instances instances_val2017.json
  python -m capbias_core detect --collection "my captions" --weights yolov8n --name yolov8n

One row a box: image (the file's name), class, confidence, and x1, y1, x2, y2 in pixels of the upright photograph, x to
the right and y down, x2 and y2 exclusive. Photographs that cannot be read are listed, and the others go on; the exit
code is 0 where one was read. The workspace keeps what was found: the same photograph and weights are not looked at
again. With --instances (COCO's file of outlines and boxes drawn by people) a table tells how many of the annotated
people, or objects of --class, a box finds: one row a photograph, and one over all. With --collection the photographs of
a collection are looked at, and the boxes are kept in it, with the objects that they show, for the Gender Score."""


def add_arguments(command) -> None:
    """The options of the command."""
    command.add_argument("images", metavar="IMAGE", nargs="*", help="photographs, or folders of them")
    known = "the detector: a file (.pt, .onnx, .tflite), or a name such as yolov8n, which ultralytics downloads once"
    command.add_argument("--weights", metavar="FILE", required=True, help=known)
    kinds = "only these classes, such as person (default: all)"
    command.add_argument(
        "--class", dest="classes", metavar="NAME", nargs="+", action="extend", type=kept_name, help=kinds
    )
    least = f"leave out boxes that the detector is less sure of (default: {CONFIDENCE:g})"
    command.add_argument("--confidence", type=share, default=CONFIDENCE, help=least)
    drawn = "COCO instances of the same photographs: how far the boxes agree with them"
    command.add_argument("--instances", metavar="FILE", help=drawn)
    command.add_argument("--collection", metavar="NAME", help="the photographs of a collection of the workspace")
    command.add_argument("--photographs", metavar="NAME", default="", help="which of its folders, if not the originals")
    command.add_argument("--name", help="with --collection: what to keep the boxes as (default: by the weights' name)")
    command.add_argument("--output", metavar="FILE", help="where to write the CSV (default: stdout)")


def detect(args) -> int:
    """Boxes as CSV; with --instances a table of agreement instead, and the boxes to --output."""
    _check(args)
    output = checked_output(args.output)
    with opened(args, make=True) as workspace:
        option = weights_option(workspace, args.weights)
        if args.collection:
            return _of_collection(workspace, option, output, args)
        return _of_files(workspace, option, output, args)


def _check(args) -> None:
    if bool(args.images) == bool(args.collection):
        got = "both IMAGE and --collection" if args.images else "neither IMAGE nor --collection"
        raise CapbiasError(got, "photographs, or the collection whose photographs are meant", "Leave one out.")
    stray = [f"--{name}" for name in ("name", "photographs") if getattr(args, name) and not args.collection]
    if stray:
        raise CapbiasError(f"{', '.join(stray)} without --collection", "it with a collection", "Leave it out.")


def named_files(given: Sequence[str]) -> dict[str, Path]:
    """The file of each photograph by its name, or by its path where two have one name; folders give what is in them.

    A file that is missing or no picture is not noticed before it is read. Raises CapbiasError for a folder without any.
    """
    places = [Path(text).expanduser() for text in given]
    files = [file for place in places for file in (_within(place) if place.is_dir() else [place])]
    files = list(dict.fromkeys(files))
    names = [file.name for file in files]
    return {(file.name if names.count(file.name) == 1 else str(file)): file for file in files}


def _within(folder: Path) -> list[Path]:
    return [folder / name for name in find_pictures(folder)["file"]]


def _of_files(workspace: Workspace, option: dict, output: Path | None, args) -> int:
    files = named_files(args.images)
    found = looked_at(workspace, files, option, args.confidence)
    _write(found.frame, found.read, output, args)
    return DONE


def _of_collection(workspace: Workspace, option: dict, output: Path | None, args) -> int:
    collection = known_collection(workspace, args.collection)
    name = args.name or named_after(Path(option["name"]).stem, args.photographs or ORIGINALS)
    options = {WEIGHTS: option, "confidence": args.confidence}
    spec = plan_artifact(workspace, collection, "detect", name, options, args.photographs)
    code = outcome(run_all(workspace, [spec], collection))
    if code != DONE:
        return code
    item = workspace.item(BOXES, name, collection)
    say(f"kept: boxes {name} in the collection {collection}")
    for own in workspace.items(OBJECTS, collection):
        if own.details.get(FOUND_BY) == name:
            say(f"kept: objects {own.name}, with the detector's confidence: score --metric gs --objects {own.name!r}")
    if output or args.instances:
        _write(workspace.frame(item.hash), tuple(images_of(workspace, item)), output, args)
    return DONE


def _write(frame: pd.DataFrame, read: tuple[str, ...], output: Path | None, args) -> None:
    if args.instances:
        _show_agreement(frame, read, args)
    if output or not args.instances:
        table = _table(frame, args.classes)
        if args.classes:
            say(f"{len(table):,} of them are of the class {' or '.join(args.classes)}")
        write_output(table.to_csv(index=False, lineterminator="\n"), output)


def _table(frame: pd.DataFrame, classes: list[str] | None) -> pd.DataFrame:
    """Boxes in the columns that are written, of these classes."""
    there = sorted(set(frame["object"]))
    for name in classes or ():
        if name not in there:
            say(f"note: no box of the class {name!r}; there are: {', '.join(there) or 'none'}")
    kept = frame[frame["object"].isin(classes)] if classes else frame
    return kept.set_axis(list(COLUMNS), axis=1)


def _show_agreement(frame: pd.DataFrame, read: tuple[str, ...], args) -> None:
    """The table of agreement, class by class."""
    from capbias_core.load.segments import read_segments

    ids = {name: normalise_image_id(Path(name).name) for name in read}
    segments = read_segments(Path(args.instances), set(ids.values()))
    frame = frame.assign(image_id=frame["image_id"].map(ids))
    for name in args.classes or [PERSON]:
        found = agreement(frame, segments, list(dict.fromkeys(ids.values())), name)
        show(to_text(agreement_table(found)).strip("\n"))
        say(agreement_line(found, name))
