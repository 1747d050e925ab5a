"""`images`: detect, mask and caption photographs, of files or of a collection."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.attributes import get_attribute
from capbias_core.cli.inputs import (
    ANSWER,
    FILES,
    HOW,
    INPUTS,
    Flags,
    Output,
    WorkspaceFlag,
    choices_of,
    command,
    flag,
    given,
    known_collection,
    opened,
    own_folder,
)
from capbias_core.cli.run import outcome, run_all
from capbias_core.cli.terminal import DONE, SHIPPED, say, ticking, write
from capbias_core.errors import CapbiasError, flag_name, unknown_name
from capbias_core.kinds import BOXES, PHOTOGRAPHS, REFERENCES, SEGMENTS
from capbias_core.load.files import readable
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.photographs import find_pictures
from capbias_core.load.places import checked_path
from capbias_core.load.tables import kept_name
from capbias_core.measures.photographs import DETECT as MEASURE
from capbias_core.measures.photographs import (
    MASKED,
    CaptionOptions,
    DetectOptions,
    MaskOptions,
    departures,
    departures_in,
)
from capbias_core.runs.artifact_runs import coco_results, named_after, plan_artifact, plan_captioning, plan_masking
from capbias_core.runs.inputs import looked_at, warn
from capbias_core.spreadsheets import csv_text
from capbias_core.types import BOX_COLUMNS, CONDITIONS, counted
from capbias_core.vision.masking import OF_OBJECTS
from capbias_core.whole_files import is_tracked, typed_path
from capbias_core.workspace.ingest import read_frame, read_part, store
from capbias_core.workspace.masked_photographs import made_here, masked_names
from capbias_core.workspace.objects import FOUND_BY, OBJECTS, weights_option
from capbias_core.workspace.photographs import ORIGINALS, frozen_photographs, masked_so, photograph_files
from capbias_core.workspace.sources import scratch_workspace
from capbias_core.workspace.store import Item, Workspace

LABELLED = "labelled"  # the name of the boxes of labelled people in a workspace of files
COLUMNS = ("image", "class", *BOX_COLUMNS[2:])
PhotographArgs = Annotated[str, flag("photographs, named by image ID, or folders of them", "PHOTOGRAPH", INPUTS)]

app = command(
    "images",
    """\
  capbias images detect photos/ --weights yolov8n.tflite --output boxes.csv
  capbias images mask photos/ --boxes boxes.csv --condition box --output out/
  capbias images caption out/ --captioner blip --output captions.json

Photographs of a collection are read, and results stored, with --collection:

  capbias import val2014/ --collection coco
  capbias images detect --collection coco --weights yolov8n
  capbias images mask --collection coco --condition object \\
    --references human --attribute gender
  capbias images caption --collection coco --captioner blip --condition object""",
)


@dataclass(frozen=True, kw_only=True)
class ImageFlags(Output):
    """Where photographs are, and where results go."""

    collection: Annotated[
        str | None, flag("read the photographs of this collection, and store the results in it", "NAME", INPUTS)
    ] = None
    photographs: Annotated[
        str, flag("with --collection: which of its photographs (default: the originals)", "NAME", INPUTS)
    ] = ""
    workspace: WorkspaceFlag = None
    name: Annotated[
        str, flag("with --collection: name of the results (default: by what made them)", "NAME", ANSWER)
    ] = ""


def named_files(paths: Iterable[str]) -> dict[str, Path]:
    """The file of each photograph by its name, or by its path if two have one name; a folder stands for its pictures.

    A missing or broken file is noticed only when it is read. Raises CapbiasError for a folder without any.
    """
    files = []
    for path in map(checked_path, paths):
        files += [path / name for name in find_pictures(path)["file"]] if path.is_dir() else [path]
    files = list(dict.fromkeys(files))
    names = [file.name for file in files]
    return {(file.name if names.count(file.name) == 1 else str(file)): file for file in files}


def _store_photographs(workspace: Workspace, paths: Iterable[str]) -> Item:
    """Store the paths of photographs as the originals of a workspace of files.

    Raises CapbiasError for a missing file, and for two files of the same image ID.
    """
    files = []
    for file in named_files(paths).values():
        with readable(file):
            file.stat()
        files.append(file.resolve())
    root = Path(os.path.commonpath([file.parent for file in files]))
    rows = [(normalise_image_id(file.name), str(file.relative_to(root))) for file in dict.fromkeys(files)]
    frame = pd.DataFrame(rows, columns=["image_id", "file"])
    twice = frame[frame["image_id"].duplicated(keep=False)].sort_values("image_id", kind="stable")
    if len(twice):
        raise CapbiasError(
            f"Several files belong to the image {twice['image_id'].iloc[0]}: {', '.join(twice['file'].iloc[:2])}.",
            "A file name is the image ID. Leave one out.",
        )
    return workspace.keep(PHOTOGRAPHS, ORIGINALS, frame, FILES, str(root), {"folder": str(root)})


def _check_source(command: str, images: Sequence[str], flags: ImageFlags, *of_collection: str) -> None:
    """Raises CapbiasError for photographs with --collection or neither, and for its flags without it."""
    if bool(images) == bool(flags.collection):
        raise CapbiasError(
            f"images {command} takes either photographs or --collection.", f"See capbias images {command} --help."
        )
    _check_stray(flags, *of_collection)


def _check_stray(flags: ImageFlags, *of_collection: str) -> None:
    """Raises CapbiasError for flags of a collection without --collection."""
    stray = [flag_name(name) for name in of_collection if getattr(flags, name)]
    if stray and not flags.collection:
        raise CapbiasError(f"{', '.join(stray)} needs --collection.")


# detect


@dataclass(frozen=True, kw_only=True)
class Detection(choices_of(DetectOptions, "weights", "confidence", group=HOW)):
    """Choices of detectors."""


@dataclass(frozen=True, kw_only=True)
class DetectFlags(ImageFlags):
    """The flags of `detect`."""

    classes: Annotated[
        list[str] | None, flag("only these classes, such as person (default: all)", "NAME", HOW, name="--class")
    ] = None


@command(
    "detect",
    """\
  capbias images detect photos/ --weights yolov8n.tflite --class person
  capbias images detect --collection coco --weights yolov8n --name yolov8n

One row per box: image (file name), class, confidence, and x1, y1, x2, y2 in pixels of the upright photograph (x to the
right, y down, x2 and y2 exclusive). Unreadable photographs are listed; the exit code is 0 if one was read. Detections
are cached by file content and weights. --collection also stores the objects in the boxes, for the Gender Score.""",
    app,
).default
def detect(
    *images: PhotographArgs,
    flags: Annotated[DetectFlags, Flags] = DetectFlags(),
    choices: Annotated[Detection, Flags] = Detection(),
) -> int:
    """Detect people and objects, as boxes in CSV."""
    _check_source("detect", images, flags, "name", "photographs")
    options = DetectOptions.read(given(choices, DetectOptions))
    if not options.weights:
        raise CapbiasError("images detect needs --weights.", "Name a detector: a file, or a name such as yolov8n.")
    output, _ = flags.place({"csv": "csv"})
    workspace = opened(flags.workspace, make=True)
    weights = weights_option(workspace, options.weights)
    if not flags.collection:
        with ticking() as tick:
            boxes = looked_at(workspace, named_files(images), weights, options.confidence, say, tick)
        _write_boxes(boxes.frame, output, flags.classes)
        return DONE
    collection = known_collection(workspace, flags.collection)
    name = flags.name or named_after(Path(weights["name"]).stem, flags.photographs or ORIGINALS)
    asked = options.with_(weights=weights, name=name, photographs=flags.photographs or None)
    code = outcome(run_all(workspace, [plan_artifact(workspace, collection, MEASURE.name, asked)], collection))
    if code != DONE:
        return code
    item = workspace.item(BOXES, name, collection)
    say(f"stored: boxes {name} in the collection {collection}")
    for objects in workspace.items(OBJECTS, collection):
        if objects.details.get(FOUND_BY) == name:
            say(
                f"stored: objects {objects.name}, with the detector's confidence: score --metric gs --objects "
                f"{objects.name!r}"
            )
    if output:
        _write_boxes(workspace.frame(item.hash), output, flags.classes)
    return DONE


def _write_boxes(frame: pd.DataFrame, output: Path | None, only: Sequence[str] | None) -> None:
    """Boxes as CSV. only: classes, all by default."""
    classes, known = [kept_name(name) for name in only or ()], sorted(set(frame["object"]))
    for name in [name for name in classes if name not in known]:
        say(f"note: no box of the class {name!r}; there are: {', '.join(known) or 'none'}")
    table = frame[frame["object"].isin(classes)] if classes else frame
    if classes:
        say(f"{len(table):,} of them are of the class {' or '.join(classes)}")
    write(csv_text(table.set_axis(list(COLUMNS), axis=1)), output)


# caption


@dataclass(frozen=True, kw_only=True)
class Captioning(choices_of(CaptionOptions, "captioner", "beams", "length", "batch", "device", group=HOW)):
    """Choices of captioners."""


@dataclass(frozen=True, kw_only=True)
class CaptionFlags(ImageFlags):
    """The flags of `caption`."""

    condition: Annotated[
        str | None,
        flag(
            f"with --collection: photographs masked by one of {', '.join(CONDITIONS)} (default: original)",
            "CONDITION",
            INPUTS,
        ),
    ] = None


@command(
    "caption",
    """\
  capbias images caption photos/ --captioner blip --output captions.json
  capbias images caption --collection coco --captioner blip --condition box

Files give COCO's results format (image_id, caption); a collection stores a caption set with its captioner and
condition. Weights are never downloaded; the error names the command that does. Unreadable photographs are left out and
listed.""",
    app,
).default
def caption(
    *images: PhotographArgs,
    flags: Annotated[CaptionFlags, Flags] = CaptionFlags(),
    choices: Annotated[Captioning, Flags] = Captioning(),
) -> int:
    """Caption photographs with a captioner on this machine."""
    _check_source("caption", images, flags, "photographs", "condition", "name", "workspace")
    if flags.condition and flags.condition not in CONDITIONS:
        raise unknown_name("--condition", flags.condition, CONDITIONS)
    if flags.photographs and flags.condition:
        raise CapbiasError("--photographs and --condition exclude each other.", "Leave one out.")
    options = CaptionOptions.read(given(choices, CaptionOptions) | {"name": flags.name})
    output, _ = flags.place({"json": "json"})
    workspace = opened(flags.workspace) if flags.collection else scratch_workspace()
    if flags.collection:
        collection = known_collection(workspace, flags.collection)
        folder = flags.photographs or masked_so(workspace, collection, flags.condition)
        options = options.with_(photographs=folder or None)
    else:
        collection = FILES
        _store_photographs(workspace, images)
    spec = plan_captioning(workspace, collection, options)
    code = outcome(run_all(workspace, [spec], collection))
    if code != DONE:
        return code
    item = workspace.item("captions", spec.options["name"], collection)
    text = coco_results(workspace.frame(item.hash))
    if flags.collection:
        say(f"stored: captions {item.name} in the collection {collection}")
    if output or not flags.collection:
        write(text, output)
    return DONE


# mask


@dataclass(frozen=True, kw_only=True)
class Masking(choices_of(MaskOptions, "fraction", "labelled", "only_masked", group=HOW)):
    """Choices of masking."""


@dataclass(frozen=True, kw_only=True)
class MaskFlags(ImageFlags):
    """The flags of `mask`: what is masked, by which files or names."""

    instances: Annotated[str | None, flag("COCO instances, with outlines", "FILE", INPUTS)] = None
    boxes: Annotated[str | None, flag("boxes from images detect (for box, object, both)", "FILE", INPUTS)] = None
    people: Annotated[
        str, flag("with --collection: its outlines or boxes (default: the only ones)", "NAME", INPUTS)
    ] = ""
    references: Annotated[
        str | None,
        flag("object, both: human captions that rank the objects; with --collection, their name", "FILE", INPUTS),
    ] = None
    attribute: Annotated[
        str | None, flag("object, both: the attribute, such as gender, by which objects are ranked", "NAME", INPUTS)
    ] = None
    output: Annotated[str | None, flag("folder for the masked photographs", "FOLDER", ANSWER)] = None
    condition: Annotated[
        list[str],
        flag(f"one or more of: {', '.join(MASKED)}; with several, --output gets a folder for each", "CONDITION", HOW),
    ]
    object: Annotated[list[str] | None, flag("objects to hide, the preferred one first", "NAME", HOW)] = None

    def folder(self, condition: str) -> Path:
        """The output folder of a condition: a subfolder if there are several."""
        return typed_path(self.output or "") / (condition if len(set(self.condition)) > 1 else "")


@command(
    "mask",
    """\
  capbias images mask photos/ --instances instances.json \\
    --condition part segment box --output masked/
  capbias images mask photos/ --instances instances.json \\
    --condition object both --references captions.json --attribute gender \\
    --output masked/
  capbias images mask --collection coco --condition segment

Conditions: part (the upper half, or --fraction, of the person's outline), segment (the outline), box (its bounding
box), object (the object in the photograph most associated with one value of --attribute in the human captions, or one
of --object), both (person and object). Without such an object the photograph stays unchanged (object) or hides the
person only (both), as in LIC; --only-masked leaves it out. Masked photographs are PNG files, grey in the mask;
the CSV gives the share of hidden pixels. Originals are never overwritten. Photographs without a person, with another
size than their outlines, or unreadable, are left out and listed.""",
    app,
).default
def mask(
    *images: PhotographArgs, flags: Annotated[MaskFlags, Flags], choices: Annotated[Masking, Flags] = Masking()
) -> int:
    """Hide people or objects in grey."""
    flags = replace(flags, condition=list(dict.fromkeys(flags.condition)))
    options = MaskOptions.read(given(choices, MaskOptions) | {"name": flags.name})
    _check_mask(images, flags, options)
    if flags.collection:
        workspace = opened(flags.workspace)
        collection = known_collection(workspace, flags.collection)
        options = options.with_(
            departures=_departures(flags, workspace, collection),
            people=flags.people or None,
            photographs=flags.photographs or None,
        )
        code, items = _mask_all(workspace, collection, flags, options)
        for item in items:
            say(f"stored: photographs {item.name} in the collection {collection}")
        return code
    workspace = scratch_workspace()
    _check_output(_store_photographs(workspace, images), workspace, flags)
    kind, name = (BOXES, "boxes") if flags.boxes else (SEGMENTS, "segments")
    files = [(options.labelled, BOXES, LABELLED), (flags.instances or flags.boxes, kind, name)]
    for path, kind_of, called in files:
        if path:
            part = read_part(Path(str(path)), kind_of, called)
            store(workspace, FILES, [part])
            warn([part], say)
    labelled = LABELLED if options.labelled else None
    options = options.with_(departures=_departures(flags), people=name, labelled=labelled)
    code, items = _mask_all(workspace, FILES, flags, options)
    if items:
        write(csv_text(_copy_masked(workspace, items, flags)), None)
    return code


def _check_mask(images: Sequence[str], flags: MaskFlags, options: MaskOptions) -> None:
    """Raises CapbiasError for flags that contradict each other, or lack another."""
    for condition in flags.condition:
        if condition not in MASKED:
            raise unknown_name("--condition", condition, MASKED)
    files = [flag_name(name) for name in ("instances", "boxes") if getattr(flags, name)]
    if flags.collection and (images or files):
        stray = ", ".join(["photographs"] * bool(images) + files)
        raise CapbiasError(
            f"{stray} and --collection exclude each other.", "Name the outlines of a collection with --people."
        )
    _check_stray(flags, "photographs", "people", "name", "workspace")
    if options.only_masked and not set(flags.condition) & set(OF_OBJECTS):
        raise CapbiasError("--only-masked needs the condition object or both.", "Leave it out.")
    if flags.name and len(flags.condition) > 1:
        raise CapbiasError("--name fits one condition only.", "Leave it out, or name one condition.")
    if not flags.collection and len(files) != 1:
        raise CapbiasError(
            "images mask needs either --instances or --boxes, a file with the outlines or boxes of people.",
            "Name COCO's instances, or boxes from images detect.",
        )
    if not (flags.collection or (images and flags.output)):
        lacks = "a folder for the results in --output" if images else "photographs"
        raise CapbiasError(f"images mask needs {lacks}.", "See capbias images mask --help.")


def _check_output(originals: Item, workspace: Workspace, flags: MaskFlags) -> None:
    """Raises CapbiasError if --output holds originals, or other files that would be overwritten."""
    output, root = typed_path(flags.output or ""), Path(originals.details["folder"])
    homes = {(root / file).parent for file in workspace.frame(originals.hash)["file"]}
    if output.exists() and not output.is_dir():
        raise CapbiasError(f"--output {output} is a file.", "Choose a folder.")
    if homes & {output.resolve(), *(output.resolve() / condition for condition in MASKED)}:
        raise CapbiasError(f"--output {output} holds originals, which are never overwritten.", "Choose another folder.")
    names = masked_names(photograph_files(workspace, frozen_photographs(workspace, FILES))).values()
    targets = [flags.folder(condition) / name for condition in flags.condition for name in names]
    force = flags.force and not any(output.resolve().is_relative_to(folder) for folder in SHIPPED)
    written = [file for file in targets if file.exists()]
    if strange := [file for file in written if is_tracked(file) or not (force or made_here(file))]:
        raise CapbiasError(
            f"{counted(len(strange), 'file')} in --output {output} would be overwritten, and mask did not write them. "
            f"The first is {strange[0]}.",
            "Choose another folder, or add --force.",
        )


def _departures(flags: MaskFlags, workspace: Workspace | None = None, collection: str = "") -> dict[str, float] | None:
    """The objects that may be hidden, and how far each departs from the share of a value; None if none is needed."""
    things = flags.object or []
    if things or not flags.attribute or not set(flags.condition) & set(OF_OBJECTS):
        return {name: float(len(things) - rank) for rank, name in enumerate(things)} or None  # the first is preferred
    if workspace:
        objects = departures_in(workspace, collection, flags.attribute, flags.references or "")
    elif not flags.references:
        return None
    else:
        attribute = get_attribute(flags.attribute, own_folder(flags.workspace))
        if not attribute.names_values:
            raise CapbiasError(
                f"Captions do not name {flags.attribute}, so its objects need labels.",
                "Import captions and labels and use --collection, or name the objects with --object.",
            )
        objects = departures(read_frame(flags.references, REFERENCES), attribute)
    first = ", ".join(f"{name} {value:.2f}" for name, value in list(objects.items())[:5])
    say(f"{len(objects)} objects by their departure from the share of a value in human captions: {first}, ...")
    return objects


def _mask_all(workspace: Workspace, collection: str, flags: MaskFlags, options: MaskOptions) -> tuple[int, list[Item]]:
    """The exit code, and the folders of masked photographs."""
    specs = []
    for condition in flags.condition:
        labelled = options.labelled if condition != "object" else None
        specs.append(plan_masking(workspace, collection, options.with_(condition=condition, labelled=labelled)))
    rows = run_all(workspace, specs, collection)
    code = outcome(rows)
    names = [row.spec.options["name"] for row in rows if row.status == "finished"]
    return code, [workspace.item(PHOTOGRAPHS, name, collection) for name in names]


def _copy_masked(workspace: Workspace, items: list[Item], flags: MaskFlags) -> pd.DataFrame:
    """Copy masked photographs into the output folder; returns a table of them."""
    rows = []
    try:
        for item in items:
            condition, frame = item.details["condition"], workspace.frame(item.hash)
            folder = flags.folder(condition)
            folder.mkdir(parents=True, exist_ok=True)
            for image, file, hidden in zip(frame["image_id"], frame["file"], frame["hidden"], strict=True):
                temporary = folder / f".{file}.tmp"  # a file is whole or absent
                try:
                    shutil.copyfile(Path(item.details["folder"]) / file, temporary)
                    temporary.replace(folder / file)
                finally:
                    temporary.unlink(missing_ok=True)
                rows.append((image, condition, str(folder / file), hidden))
    except OSError as error:
        raise CapbiasError(
            f"--output {flags.output} cannot be written ({error.strerror}).", "Choose another folder."
        ) from None
    say(f"written: {counted(len(rows), 'photograph')} into {flags.output}")
    return pd.DataFrame(rows, columns=["image_id", "condition", "file", "hidden"])
