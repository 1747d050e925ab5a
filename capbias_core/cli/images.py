"""`images`: photographs of a collection searched for people and objects, masked, and captioned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from capbias_core.cli.inputs import (
    ANSWER,
    HOW,
    INPUTS,
    STDOUT,
    CollectionFlag,
    Flags,
    Output,
    WorkspaceFlag,
    choices_of,
    command,
    flag,
    given,
    known_collection,
    opened,
)
from capbias_core.cli.run import outcome, run_all
from capbias_core.cli.terminal import say, write
from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES, CAPTIONS, PHOTOGRAPHS
from capbias_core.measures.photographs import DETECT, MASKED, CaptionOptions, DetectOptions, MaskOptions, departures_in
from capbias_core.runs.artifact_runs import coco_results, named_after, plan_artifact, plan_captioning, plan_masking
from capbias_core.spreadsheets import csv_text
from capbias_core.types import BOX_COLUMNS, CONDITIONS
from capbias_core.vision.masking import OF_OBJECTS
from capbias_core.workspace.objects import FOUND_BY, OBJECTS, weights_option
from capbias_core.workspace.photographs import ORIGINALS, masked_so
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Item, Workspace

app = command(
    "images",
    """\
  capbias import val2014/ --collection coco
  capbias images detect --collection coco --weights yolov8n.pt
  capbias images mask --collection coco --condition box
  capbias images caption --collection coco --captioner blip --condition box

Results are stored in the collection. Photographs that cannot be read are left out and listed.""",
)


@dataclass(frozen=True, kw_only=True)
class Photographs:
    """Which photographs, and the name of what is made of them."""

    collection: CollectionFlag
    photographs: Annotated[str, flag("which of its photographs (default: the originals)", "NAME", INPUTS)] = ""
    workspace: WorkspaceFlag = None
    name: Annotated[str, flag("name of the results (default: by what made them)", "NAME", ANSWER)] = ""

    def opened(self) -> Workspace:
        """The workspace. Raises CapbiasError if it does not have the collection."""
        workspace = opened(self.workspace)
        known_collection(workspace, self.collection)
        return workspace


def _made(workspace: Workspace, specs: list[RunSpec], kind: str, collection: str) -> tuple[int, list[Item]]:
    """The exit code of these runs, and the items of a kind that they stored."""
    rows = run_all(workspace, specs, collection)
    code = outcome(rows)
    names = [row.spec.options["name"] for row in rows if row.status == "finished"]
    return code, [workspace.item(kind, name, collection) for name in names]


@dataclass(frozen=True, kw_only=True)
class Detection(choices_of(DetectOptions, "weights", "confidence", group=HOW)):
    """Choices of detectors."""


@command(
    "detect",
    """\
  capbias images detect --collection coco --weights yolov8n.pt
  capbias images detect --collection coco --weights yolov8n.pt \\
    --output boxes.csv

The objects in the boxes are stored too, for the Gender Score. The
file has a row per box: image, class, confidence, and x1, y1, x2, y2 in pixels of the upright photograph (x to the
right, y down, x2 and y2 exclusive).""",
    app,
).default
def detect(
    *,
    source: Annotated[Photographs, Flags],
    choices: Annotated[Detection, Flags] = Detection(),
    to: Annotated[Output, Flags] = STDOUT,
) -> int:
    """Detect people and objects."""
    options = DetectOptions.read(given(choices))
    if not options.weights:
        raise CapbiasError("images detect needs --weights.", "Name a detector: a file such as yolov8n.pt.")
    output, _ = to.place({"csv": "csv"})
    workspace, collection = source.opened(), source.collection
    weights = weights_option(workspace, options.weights)
    name = source.name or named_after(Path(weights["name"]).stem, source.photographs or ORIGINALS)
    asked = options.with_(weights=weights, name=name, photographs=source.photographs or None)
    code, items = _made(workspace, [plan_artifact(workspace, collection, DETECT.name, asked)], BOXES, collection)
    for item in items:
        say(f"stored: boxes {item.name} in the collection {collection}")
        for objects in workspace.items(OBJECTS, collection):
            if objects.details.get(FOUND_BY) == item.name:
                say(
                    f"stored: objects {objects.name}, with the detector's confidence: score --metric gs --objects "
                    f"{objects.name!r}"
                )
        if output:
            boxes = workspace.frame(item.hash)[[*BOX_COLUMNS]]
            write(csv_text(boxes.rename(columns={"image_id": "image", "object": "class"})), output)
    return code


@dataclass(frozen=True, kw_only=True)
class Captioning(choices_of(CaptionOptions, "captioner", "beams", "length", "batch", "device", group=HOW)):
    """Choices of captioners."""


@command(
    "caption",
    """\
  capbias images caption --collection coco --captioner blip --condition box
  capbias images caption --collection coco --captioner blip \\
    --output captions.json

The set is stored with its captioner and condition; a file gets COCO's results format (image_id, caption). Weights are
never downloaded; the error names the command that does.""",
    app,
).default
def caption(
    *,
    source: Annotated[Photographs, Flags],
    condition: Annotated[
        str | None,
        flag(
            f"photographs masked by one of {', '.join(CONDITIONS)} (default: original)", "CONDITION", INPUTS, CONDITIONS
        ),
    ] = None,
    choices: Annotated[Captioning, Flags] = Captioning(),
    to: Annotated[Output, Flags] = STDOUT,
) -> int:
    """Caption photographs with a captioner on this machine."""
    if source.photographs and condition:
        raise CapbiasError("--photographs and --condition exclude each other.", "Leave one out.")
    options = CaptionOptions.read(given(choices) | {"name": source.name})
    output, _ = to.place({"json": "json"})
    workspace, collection = source.opened(), source.collection
    photographs = source.photographs or masked_so(workspace, collection, condition)
    spec = plan_captioning(workspace, collection, options.with_(photographs=photographs or None))
    code, items = _made(workspace, [spec], CAPTIONS, collection)
    for item in items:
        say(f"stored: captions {item.name} in the collection {collection}")
        if output:
            write(coco_results(workspace.frame(item.hash)), output)
    return code


@dataclass(frozen=True, kw_only=True)
class Masking(choices_of(MaskOptions, "fraction", group=HOW)):
    """Choices of masking."""


@command(
    "mask",
    """\
  capbias import instances_val2014.json --kind segments --collection coco
  capbias images mask --collection coco --condition part segment box
  capbias images mask --collection coco --condition object \\
    --references human --attribute gender

Conditions: part (the upper half, or --fraction, of the person's outline), segment (the outline), box (its bounding
box), object (the object in the photograph most associated with one value of --attribute in the human captions, or one
of --object), both (person and object). Without such an object the photograph stays unchanged (object) or hides the
person only (both), as in LIC. Masked photographs are PNG files, grey in the mask, in the folder that is printed.
Photographs without a person, or with another size than their outlines, are left out.""",
    app,
).default
def mask(
    *,
    source: Annotated[Photographs, Flags],
    condition: Annotated[list[str], flag(f"one or more of: {', '.join(MASKED)}", "CONDITION", HOW, MASKED)],
    people: Annotated[
        str, flag("outlines or boxes of people (default: the only ones, outlines before boxes)", "NAME", INPUTS)
    ] = "",
    references: Annotated[
        str, flag("object, both: the human captions that rank the objects (default: the only ones)", "NAME", INPUTS)
    ] = "",
    attribute: Annotated[
        str, flag("object, both: the attribute, such as gender, by which objects are ranked", "NAME", INPUTS)
    ] = "",
    object: Annotated[list[str] | None, flag("objects to hide, the preferred one first", "NAME", HOW)] = None,
    choices: Annotated[Masking, Flags] = Masking(),
) -> int:
    """Hide people or objects in grey."""
    options = MaskOptions.read(given(choices) | {"name": source.name})
    conditions, of_objects = list(dict.fromkeys(condition)), set(condition) & set(OF_OBJECTS)
    if source.name and len(conditions) > 1:
        raise CapbiasError("--name fits one condition only.", "Leave it out, or name one condition.")
    workspace, collection = source.opened(), source.collection
    things = object or []
    departures = {name: float(len(things) - rank) for rank, name in enumerate(things)}  # the first is preferred
    if of_objects and attribute and not departures:
        departures = departures_in(workspace, collection, attribute, references)
        first = ", ".join(f"{name} {value:.2f}" for name, value in list(departures.items())[:5])
        say(f"{len(departures)} objects by their departure from the share of a value in human captions: {first}, ...")
    chosen = {"people": people or None, "photographs": source.photographs or None, "departures": departures or None}
    options = options.with_(**chosen)
    specs = [plan_masking(workspace, collection, options.with_(condition=each)) for each in conditions]
    code, items = _made(workspace, specs, PHOTOGRAPHS, collection)
    for item in items:
        say(f"stored: photographs {item.name} in the collection {collection}: {item.details['folder']}")
    return code
