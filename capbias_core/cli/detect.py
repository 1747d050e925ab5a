"""`detect`: what photographs show, as boxes; and how far they agree with boxes drawn by people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.aggregate.detection_agreement import agreement
from capbias_core.cli.flags import ANSWER, HOW, INPUTS, Flags, WorkspaceFlag, choices_of, command, flag, given
from capbias_core.cli.inputs import known_collection, opened
from capbias_core.cli.photographs import named_files
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, show, ticking, write_output
from capbias_core.errors import CapbiasError
from capbias_core.load import SEGMENTS, normalise_image_id
from capbias_core.load.tables import kept_name
from capbias_core.measures.detect import MEASURE, DetectOptions
from capbias_core.present.detection import agreement_line, agreement_table
from capbias_core.present.table import to_text
from capbias_core.runs.artifact_runs import named_after, plan_artifact
from capbias_core.types import BOX_COLUMNS
from capbias_core.vision.overlap import PERSON
from capbias_core.workspace.boxes import BOXES, images_of, weights_option
from capbias_core.workspace.ingest import read_frame
from capbias_core.workspace.inputs import looked_at
from capbias_core.workspace.objects import FOUND_BY, OBJECTS
from capbias_core.workspace.photographs import ORIGINALS
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Workspace

COLUMNS = ("image", "class", *BOX_COLUMNS[2:])

app = command(
    "detect",
    """\
  capbias detect photographs/ --weights yolov8n.tflite --class person --output boxes.csv
  capbias detect photographs/ --weights yolov8n --instances instances_val2017.json
  capbias detect --collection "my captions" --weights yolov8n --name yolov8n

One row per box: image (the file's name), class, confidence, and x1, y1, x2, y2 in pixels of the upright photograph, x
to the right and y down, x2 and y2 exclusive. Photographs that cannot be read are listed, and the others go on; the exit
code is 0 if one was read. The workspace keeps what was found: detections are cached by file content and weights. With
--instances (COCO's file of outlines and boxes drawn by people) a table tells how many of the annotated people, or
objects of --class, a box finds: one row per photograph, and one over all. With --collection the photographs of a
collection are looked at, and the boxes are kept in it, with the objects that they show, for the Gender Score.""",
)


class Choices(choices_of(DetectOptions, "weights", "confidence", group=HOW)):
    """Choices of the command."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where photographs are, and where their boxes go."""

    classes: Annotated[
        list[str] | None, flag("only these classes, such as person (default: all)", "NAME", HOW, name="--class")
    ] = None
    instances: Annotated[
        str | None, flag("COCO instances of the same photographs: how far the boxes agree with them", "FILE", HOW)
    ] = None
    collection: Annotated[str | None, flag("the photographs of a collection of the workspace", "NAME", INPUTS)] = None
    photographs: Annotated[str, flag("which of its folders, if not the originals", "NAME", INPUTS)] = ""
    workspace: WorkspaceFlag = None
    name: Annotated[
        str | None, flag("with --collection: what to keep the boxes as (default: by the weights' name)", "NAME", ANSWER)
    ] = None
    output: Annotated[str | None, flag("where to write the CSV (default: stdout)", "FILE", ANSWER)] = None


HERE, NO_CHOICES = Place(), Choices()


@app.default
def detect(
    *images: Annotated[str, flag("photographs, or folders of them", group=INPUTS)],
    place: Annotated[Place, Flags] = HERE,
    choices: Annotated[Choices, Flags] = NO_CHOICES,
) -> int:
    """Find people and objects on photographs, as boxes in CSV; with --instances a table of agreement instead."""
    _check(images, place)
    options = DetectOptions.read(given(choices, DetectOptions))
    if not options.weights:
        raise CapbiasError("detect needs --weights.", "Name a detector: a file, or a name such as yolov8n.")
    output = checked_output(place.output)
    with opened(place.workspace, make=True) as workspace:
        weights = weights_option(workspace, options.weights)
        if place.collection:
            return _of_collection(workspace, weights, options, output, place)
        with ticking() as tick:
            files = named_files(images)
            found = looked_at(workspace, files, weights, options.confidence, say, tick)
        _write(found.frame, found.read, output, place)
        return DONE


def _check(images: Sequence[str], place: Place) -> None:
    if bool(images) == bool(place.collection):
        raise CapbiasError("detect takes either photographs or --collection.", "See capbias detect --help.")
    stray = [f"--{name}" for name in ("name", "photographs") if getattr(place, name) and not place.collection]
    if stray:
        raise CapbiasError(f"{', '.join(stray)} needs --collection.")


def _of_collection(
    workspace: Workspace, weights: ModelReference, options: DetectOptions, output: Path | None, place: Place
) -> int:
    collection = known_collection(workspace, place.collection or "")
    name = place.name or named_after(Path(weights["name"]).stem, place.photographs or ORIGINALS)
    asked = options.with_(weights=weights, name=name, photographs=place.photographs or None)
    spec = plan_artifact(workspace, collection, MEASURE.name, asked)
    code = outcome(run_all(workspace, [spec], collection))
    if code != DONE:
        return code
    item = workspace.item(BOXES, name, collection)
    say(f"kept: boxes {name} in the collection {collection}")
    for own in workspace.items(OBJECTS, collection):
        if own.details.get(FOUND_BY) == name:
            say(f"kept: objects {own.name}, with the detector's confidence: score --metric gs --objects {own.name!r}")
    if output or place.instances:
        _write(workspace.frame(item.hash), tuple(images_of(workspace, item)), output, place)
    return DONE


def _write(frame: pd.DataFrame, read: tuple[str, ...], output: Path | None, place: Place) -> None:
    classes = [kept_name(name) for name in place.classes or ()]
    if place.instances:
        _show_agreement(frame, read, Path(place.instances), classes or [PERSON])
    if output or not place.instances:
        table = _table(frame, classes)
        if classes:
            say(f"{len(table):,} of them are of the class {' or '.join(classes)}")
        write_output(table.to_csv(index=False, lineterminator="\n"), output)


def _table(frame: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Boxes in the columns that are written, of these classes."""
    there = sorted(set(frame["object"]))
    for name in classes:
        if name not in there:
            say(f"note: no box of the class {name!r}; there are: {', '.join(there) or 'none'}")
    kept = frame[frame["object"].isin(classes)] if classes else frame
    return kept.set_axis(list(COLUMNS), axis=1)


def _show_agreement(frame: pd.DataFrame, read: tuple[str, ...], instances: Path, classes: Sequence[str]) -> None:
    """The table of agreement, class by class."""
    ids = {name: normalise_image_id(Path(name).name) for name in read}
    outlines = read_frame(instances, SEGMENTS)
    frame = frame.assign(image_id=frame["image_id"].map(ids))
    for name in classes:
        found = agreement(frame, outlines, list(dict.fromkeys(ids.values())), name)
        show(to_text(agreement_table(found)).strip("\n"))
        say(agreement_line(found, name))
