"""`mask`: photographs with the person or the most correlated object hidden; or the regions that a captioner drops."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd

from capbias_core.attributes import known_attributes
from capbias_core.cli.flags import ANSWER, HOW, INPUTS, Flags, WorkspaceFlag, choices_of, command, flag, given
from capbias_core.cli.inputs import FILES, known_collection, opened, own_folder
from capbias_core.cli.photographs import keep_named
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import BOXES, REFERENCES, SEGMENTS, parse
from capbias_core.load.parsed import place_and_message
from capbias_core.load.tables import regions as regions_of
from capbias_core.measures.mask import MASKED, MaskOptions
from capbias_core.measures.object_associations import departures, departures_in
from capbias_core.runs.mask_runs import plan_masking
from capbias_core.spreadsheets import csv_text
from capbias_core.types import Table, counted
from capbias_core.vision.mask_regions import OF_OBJECTS, MaskRule, regions_to_drop
from capbias_core.workspace.ingest import read_frame, read_part, store
from capbias_core.workspace.inputs import temporary_workspace, warn
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.masked_photographs import labelled_boxes, made_here, masked_names
from capbias_core.workspace.person_regions import resolve_person_regions
from capbias_core.workspace.photographs import KIND, frozen_photographs, photograph_files
from capbias_core.workspace.store import Item, Workspace

LABELLED = "labelled"  # how the boxes of the labelled people are called in a workspace of files

app = command(
    "mask",
    """\
  capbias mask photographs/ --instances instances_val2017.json --condition part segment box \\
    --output masked/
  capbias mask photographs/ --boxes boxes.csv --condition box --fill blur --output masked/
  capbias mask photographs/ --instances instances_val2017.json --condition object both \\
    --references captions_val2017.json --attribute gender --output masked/
  capbias mask --collection "my captions" --condition segment
  capbias mask --regions regions.csv --instances instances_val2017.json --condition box

Conditions: part (the upper half, or --fraction, of the person's outline), segment (the outline), box (its bounding
box), object (of the objects in the photograph the one that goes most with one value of --attribute by the human
captions, or one of --object), both (person and object). A photograph that shows no such object stays as it is under
object, and has the person alone hidden under both, as in LIC, whose conditions all hold the same images; with
--only-masked it is left out. Masked photographs are PNG files, exact to the pixel outside of what is hidden; a row of
CSV says of each how much that is. The originals are never written to. Photographs without a person, of another size
than their outlines, or that cannot be read are left out and named. With
--regions nothing is masked: printed are the regions of which the boxes around what would be hidden cover more than
half, which a captioner on region features must not read (LIC, appendix A.3).""",
)


class Choices(choices_of(MaskOptions, "fill", "fraction", "whose", "labelled", "only_masked", group=HOW)):
    """Choices of the command."""


@dataclass(frozen=True, kw_only=True)
class MaskFlags:
    """What is masked, by which files or names, and where it goes."""

    instances: Annotated[str | None, flag("COCO instances, with outlines", "FILE", INPUTS)] = None
    boxes: Annotated[str | None, flag("boxes as detect writes them (for box, object, both)", "FILE", INPUTS)] = None
    references: Annotated[str | None, flag("human captions; with --collection, their name", "FILE", INPUTS)] = None
    attribute: Annotated[str | None, flag("whose values objects go with, such as gender", "NAME", INPUTS)] = None
    regions: Annotated[str | None, flag("a table image_id, x1, y1, x2, y2: list those to drop", "FILE", INPUTS)] = None
    collection: Annotated[
        str | None, flag("mask photographs of this collection, and keep them in it", "NAME", INPUTS)
    ] = None
    photographs: Annotated[str, flag("its photographs (default: the originals)", "NAME", INPUTS)] = ""
    people: Annotated[str, flag("its outlines or boxes (default: the only ones)", "NAME", INPUTS)] = ""
    workspace: WorkspaceFlag = None
    condition: Annotated[
        list[str],
        flag(f"one or more of: {', '.join(MASKED)}; with several, --output gets a folder for each", "CONDITION", HOW),
    ]
    object: Annotated[list[str] | None, flag("objects to hide, the first first", "NAME", HOW)] = None
    name: Annotated[str, flag("name of the masked photographs (default: by condition)", "NAME", ANSWER)] = ""
    output: Annotated[str | None, flag("where masked photographs go (with --regions: a file)", "FOLDER", ANSWER)] = None


NO_CHOICES = Choices()


@app.default
def mask(
    *places: Annotated[str, flag("photographs, named by image id, or folders of them", group=INPUTS)],
    flags: Annotated[MaskFlags, Flags],
    choices: Annotated[Choices, Flags] = NO_CHOICES,
) -> int:
    """Mask photographs of files or of a collection, or list the regions to drop."""
    options = MaskOptions.read(given(choices, MaskOptions) | {"name": flags.name})
    _check(places, flags, options)
    if flags.collection:
        with opened(flags.workspace) as workspace:
            collection = known_collection(workspace, flags.collection)
            options = options.with_(departures=_departures_in(workspace, collection, flags))
            options = options.with_(people=flags.people or None, photographs=flags.photographs or None)
            if flags.regions:
                return _drop(workspace, collection, flags, options)
            return _run(workspace, collection, flags, options)[0]
    with temporary_workspace() as workspace:
        if not flags.regions:
            originals = keep_named(workspace, places, FILES)
            _check_output(Path(flags.output or ""), originals, workspace)
            _check_targets(flags, photograph_files(workspace, frozen_photographs(workspace, FILES)))
        people = _keep_marks(workspace, flags, options)
        labelled = LABELLED if options.labelled else None
        options = options.with_(departures=_departures_of_file(flags), people=people, labelled=labelled)
        if flags.regions:
            return _drop(workspace, FILES, flags, options)
        code, items = _run(workspace, FILES, flags, options)
        if items:
            write_output(csv_text(_copied(workspace, items, flags)), None)
    return code


def _check(places: Sequence[str], flags: MaskFlags, options: MaskOptions) -> None:
    for condition in flags.condition:
        if condition not in MASKED:
            raise unknown_name("--condition", condition, MASKED)
    files = [name for name in ("instances", "boxes") if getattr(flags, name)]
    stray = [*(["places"] if places else []), *files]
    if flags.collection and stray:
        raise CapbiasError(
            f"{', '.join(stray)} and --collection exclude each other.",
            "Name the outlines of a collection with --people.",
        )
    own = [name for name in ("photographs", "people", "name", "workspace") if getattr(flags, name)]
    if own and not flags.collection:
        named = ", ".join(f"--{name}" for name in own)
        raise CapbiasError(f"{named} needs --collection.")
    if options.only_masked and (flags.regions or not set(flags.condition) & set(OF_OBJECTS)):
        raise CapbiasError("--only-masked needs the condition object or both, and no --regions.", "Leave it out.")
    if flags.name and len(flags.condition) > 1:
        raise CapbiasError("--name fits one condition only.", "Leave it out, or name one condition.")
    if flags.collection:
        return
    if bool(flags.instances) == bool(flags.boxes):
        raise CapbiasError(
            "mask needs either --instances or --boxes, a file that says where people are.",
            "Name COCO's instances, or boxes as detect writes them.",
        )
    if not flags.regions and not (places and flags.output):
        raise CapbiasError(
            f"mask needs {'photographs' if not places else 'a folder for the results in --output'}.",
            "See capbias mask --help.",
        )


def _check_output(output: Path, originals: Item, workspace: Workspace) -> None:
    """The folder of masked photographs is not one of originals."""
    root = Path(originals.details["folder"])
    homes = {(root / file).parent for file in workspace.frame(originals.hash)["file"]}
    if output.exists() and not output.is_dir():
        raise CapbiasError(f"--output {output} is a file.", "Choose a folder.")
    if homes & {output.resolve(), *(output.resolve() / condition for condition in MASKED)}:
        raise CapbiasError(f"--output {output} holds originals, which are never overwritten.", "Choose another folder.")


def _check_targets(flags: MaskFlags, files: dict[str, Path]) -> None:
    """No file is written over but masked photographs of an earlier time."""
    names = masked_names(files).values()
    targets = [place / name for place in _places(Path(flags.output or ""), flags.condition).values() for name in names]
    strange = [file for file in targets if file.exists() and not made_here(file)]
    if strange:
        raise CapbiasError(
            f"{counted(len(strange), 'file')} in --output {flags.output} would be overwritten, and mask "
            f"did not write them. The first is {strange[0]}.",
            "Choose another folder, or move the files.",
        )


def _places(output: Path, conditions: Sequence[str]) -> dict[str, Path]:
    """The folder of the masked photographs of each condition: one of its own where there are several."""
    several = len(set(conditions)) > 1
    return {condition: output / condition if several else output for condition in conditions}


def _keep_marks(workspace: Workspace, flags: MaskFlags, options: MaskOptions) -> str:
    """Keep where people are; returns the name of it."""
    path = Path(flags.instances or flags.boxes or "")
    if isinstance(options.labelled, str) and options.labelled:
        _keep_boxes(workspace, Path(options.labelled), LABELLED)
    if flags.boxes:
        _keep_boxes(workspace, path, "boxes")
        return "boxes"
    part = read_part(path, SEGMENTS, "segments")
    store(workspace, FILES, [part])
    warn([part.report] if part.report else [], say)
    return "segments"


def _keep_boxes(workspace: Workspace, path: Path, name: str) -> None:
    part = read_part(path, BOXES, name)
    store(workspace, FILES, [part])
    warn([part.report] if part.report else [], say)


def _named(flags: MaskFlags) -> dict[str, float] | None:
    """Departures by which the objects are taken in the order in which they were named."""
    things = flags.object or []
    return {name: float(len(things) - place) for place, name in enumerate(things)} or None


def _wanted(flags: MaskFlags) -> bool:
    return bool(set(flags.condition) & set(OF_OBJECTS)) and not flags.object


def _departures_in(workspace: Workspace, collection: str, flags: MaskFlags) -> dict[str, float] | None:
    if not _wanted(flags) or not flags.attribute:
        return _named(flags)
    return _told(departures_in(workspace, collection, flags.attribute, flags.references or ""))


def _departures_of_file(flags: MaskFlags) -> dict[str, float] | None:
    if not _wanted(flags) or not (flags.attribute and flags.references):
        return _named(flags)
    known = known_attributes(own_folder(flags.workspace))
    if flags.attribute not in known:
        raise unknown_name("attribute", flags.attribute, known)
    if not known[flags.attribute].names_values:
        raise CapbiasError(
            f"Captions do not name {flags.attribute}, so its objects need labels.",
            "Import captions and labels and use --collection, or name the objects with --object.",
        )
    human = read_frame(flags.references, REFERENCES)
    return _told(departures(human, known[flags.attribute]))


def _told(found: dict[str, float]) -> dict[str, float]:
    first = ", ".join(f"{name} {value:.2f}" for name, value in list(found.items())[:5])
    say(f"{len(found)} objects by how far they depart from the share of a value in human captions: {first}, ...")
    return found


def _run(workspace: Workspace, collection: str, flags: MaskFlags, options: MaskOptions) -> tuple[int, list[Item]]:
    """The exit code, and the folders that were made."""
    specs = [
        plan_masking(workspace, collection, _of(options, condition)) for condition in dict.fromkeys(flags.condition)
    ]
    rows = run_all(workspace, specs, collection)
    code = outcome(rows)
    made = [row.spec.options["name"] for row in rows if row.status == "finished"]
    if collection != FILES:
        for name in made:
            say(f"kept: photographs {name} in the collection {collection}")
    return code, [workspace.item(KIND, name, collection) for name in made]


def _of(options: MaskOptions, condition: str) -> MaskOptions:
    """The choices for one condition."""
    return options.with_(condition=condition, labelled=options.labelled if condition != "object" else None)


def _copied(workspace: Workspace, items: list[Item], flags: MaskFlags) -> pd.DataFrame:
    """Copy masked photographs into the output folder, a folder for each condition where there are several; a table of
    them."""
    rows, output = [], Path(flags.output or "")
    try:
        for item in items:
            condition = item.details["condition"]
            place = _places(output, flags.condition)[condition]
            place.mkdir(parents=True, exist_ok=True)
            frame = workspace.frame(item.hash)
            for image, file, hidden in zip(frame["image_id"], frame["file"], frame["hidden"], strict=True):
                _copy(Path(item.details["folder"]) / file, place / file)
                rows.append((image, condition, str(place / file), hidden))
    except OSError as error:
        raise CapbiasError(
            f"--output {output} cannot be written ({error.strerror}).", "Choose another folder."
        ) from None
    say(f"written: {counted(len(rows), 'photograph')} into {output}")
    return pd.DataFrame(rows, columns=["image_id", "condition", "file", "hidden"])


def _copy(source: Path, target: Path) -> None:
    """A file is whole or not there."""
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        shutil.copyfile(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _read_regions(path: Path) -> Table:
    return regions_of(parse(path))


def _drop(workspace: Workspace, collection: str, flags: MaskFlags, options: MaskOptions) -> int:
    """Write the regions to drop as CSV, a row each."""
    output = checked_output(flags.output)
    path = Path(flags.regions or "")
    table = within_limits(path.name, _read_regions, path)
    regions = table.frame
    if table.problem_count:
        first = ": ".join(place_and_message(table.problems[0]))
        say(f"warning: {table.problems[0].file}: {counted(table.problem_count, 'row')} left out; the first at {first}")
    marks = workspace.frame(resolve_person_regions(workspace, collection, options.people)["item"])
    own = dict(list(marks.groupby("image_id")))
    labelled, chosen = options.labelled, {}
    if isinstance(labelled, str) and labelled:
        chosen = labelled_boxes(workspace, workspace.item("boxes", labelled, collection).hash)
    tables = []
    for condition in dict.fromkeys(flags.condition):
        if condition in OF_OBJECTS and not options.departures:
            raise CapbiasError(
                f"The condition {condition} needs the objects that may be hidden.",
                "Name --object, or --references and --attribute.",
            )
        rule = MaskRule(condition, whose=options.whose, departures=options.departures or {})
        known = regions[regions["image_id"].isin(set(own))]
        for image, rows in known.groupby("image_id", sort=False):
            tables.append(rows[regions_to_drop(rows, own[image], rule, chosen.get(image))].assign(condition=condition))
    lost = regions["image_id"].nunique() - regions.loc[regions["image_id"].isin(set(own)), "image_id"].nunique()
    if lost:
        say(f"warning: no outline or box for {counted(lost, 'image')}, all of whose regions are kept")
    found = pd.concat(tables) if tables else regions.iloc[:0].assign(condition="")
    write_output(found.to_csv(index=False, lineterminator="\n"), output)
    under = ", ".join(dict.fromkeys(flags.condition))
    say(f"{counted(len(found), 'region')} to drop, of {len(regions):,} under {under}")
    return DONE
