"""`mask`: photographs with the person or the most correlated object hidden; or the regions that a captioner drops."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from capbias_core.attributes import known_attributes
from capbias_core.cli.inputs import FILES, known_collection, opened, own_folder
from capbias_core.cli.photographs import keep_named
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, share, warn, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.load import read_boxes, read_captions
from capbias_core.load.regions import read_regions
from capbias_core.load.rows import place_and_message
from capbias_core.measures.base import NAME
from capbias_core.measures.object_associations import departures, departures_in
from capbias_core.present.table import counted
from capbias_core.runs.mask_runs import GREY, MASKED, plan_masking
from capbias_core.types import Problem
from capbias_core.vision.mask_regions import FOREGROUND, OF_OBJECTS, WHOSE, regions_to_drop
from capbias_core.vision.masking import FILLS, HALF
from capbias_core.workspace import ingest
from capbias_core.workspace.masked_photographs import LABELLED, hiding_of, labelled_boxes, made_here, masked_names
from capbias_core.workspace.person_regions import resolve_person_regions
from capbias_core.workspace.photographs import KIND, frozen_photographs, photograph_files
from capbias_core.workspace.store import Item, Workspace

EXAMPLE = """\
  python -m capbias_core mask photographs/ --instances instances_val2017.json --condition part segment box \\
    --output masked/
  python -m capbias_core mask photographs/ --boxes boxes.csv --condition box --fill blur --output masked/
  python -m capbias_core mask photographs/ --instances instances_val2017.json --condition object both \\
    --references captions_val2017.json --attribute gender --output masked/
  python -m capbias_core mask --collection "my captions" --condition segment
  python -m capbias_core mask --regions regions.csv --instances instances_val2017.json --condition box

Conditions: part (the upper half, or --fraction, of the person's outline), segment (the outline), box (its bounding
box), object (of the objects in the photograph the one that goes most with one value of --attribute by the human
captions, or one of --object), both (person and object). A photograph that shows no such object stays as it is under
object, and has the person alone hidden under both, as in LIC, whose conditions all hold the same images; with
--only-masked it is left out. Masked photographs are PNG files, exact to the pixel outside of what is hidden; a row of
CSV says of each how much that is. The originals are never written to. Photographs without a person, of another size
than their outlines, or that cannot be read are left out and named. With
--regions nothing is masked: printed are the regions of which the boxes around what would be hidden cover more than
half, which a captioner on region features must not read (LIC, appendix A.3)."""


def add_arguments(command) -> None:
    """The options of `mask`."""
    command.add_argument("places", nargs="*", metavar="IMAGE_OR_FOLDER", help="photographs, named by image id")
    command.add_argument("--instances", metavar="FILE", help="COCO instances, with outlines")
    command.add_argument("--boxes", metavar="FILE", help="boxes as detect writes them (for box, object, both)")
    command.add_argument(
        "--condition",
        nargs="+",
        required=True,
        choices=MASKED,
        metavar="CONDITION",
        help=f"one or more of: {', '.join(MASKED)}; with several, --output gets a folder for each",
    )
    command.add_argument("--fill", choices=tuple(FILLS), default=GREY, help="what is put there (default: %(default)s)")
    text = "for part: how much of the outline, from the top (default: 0.5)"
    command.add_argument("--fraction", type=share, default=HALF, metavar="SHARE", help=text)
    text = "the person in the foreground (the largest), or all (default: foreground)"
    command.add_argument("--whose", choices=WHOSE, default=FOREGROUND, help=text)
    text = "boxes of the labelled people, who are in the foreground then (with --collection, their name)"
    command.add_argument("--labelled", metavar="FILE", default="", help=text)
    command.add_argument("--object", nargs="+", metavar="NAME", dest="things", help="objects to hide, the first first")
    text = "object, both: leave out photographs that show no such object (default: keep them, as LIC does)"
    command.add_argument("--only-masked", action="store_true", help=text)
    command.add_argument("--references", metavar="FILE", help="human captions; with --collection, their name")
    command.add_argument("--attribute", help="whose values objects go with, such as gender")
    command.add_argument("--output", metavar="FOLDER", help="where masked photographs go (with --regions: a file)")
    command.add_argument("--regions", metavar="FILE", help="a table image_id, x1, y1, x2, y2: list those to drop")
    text = "mask photographs of this collection, and keep them in it"
    command.add_argument("--collection", metavar="NAME", help=text)
    command.add_argument("--photographs", metavar="NAME", default="", help="its photographs (default: the originals)")
    command.add_argument("--people", metavar="NAME", default="", help="its outlines or boxes (default: the only ones)")
    command.add_argument("--name", default="", help="name of the masked photographs (default: by condition)")


def mask(args) -> int:
    """Mask photographs of files or of a collection, or list the regions to drop."""
    _check(args)
    if args.collection:
        with opened(args) as workspace:
            collection = known_collection(workspace, args.collection)
            asked = _departures_in(workspace, collection, args)
            if args.regions:
                return _drop(workspace, collection, asked, args)
            code, _ = _run(workspace, collection, asked, args)
        return code
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        workspace = Workspace(folder)
        if not args.regions:
            originals = keep_named(workspace, args.places, FILES)
            _check_output(Path(args.output), originals, workspace)
            _check_targets(args, photograph_files(workspace, frozen_photographs(workspace, FILES)))
        _keep_marks(workspace, args)
        asked = _departures_of_file(args)
        if args.regions:
            return _drop(workspace, FILES, asked, args)
        code, items = _run(workspace, FILES, asked, args)
        if items:
            write_output(_copied(workspace, items, args).to_csv(index=False, lineterminator="\n"), None)
    return code


def _check(args) -> None:
    given = [name for name in ("places", "instances", "boxes") if getattr(args, name)]
    if args.collection and given:
        raise CapbiasError(
            f"{', '.join(given)} and --collection", "files, or a collection", "Name its outlines with --people."
        )
    stray = [name for name in ("photographs", "people", "name", "workspace") if getattr(args, name)]
    if stray and not args.collection:
        options = ", ".join(f"--{name}" for name in stray)
        raise CapbiasError(f"{options} with files", "options of a collection with --collection", "Leave it out.")
    if args.only_masked and (args.regions or not set(args.condition) & set(OF_OBJECTS)):
        raise CapbiasError(
            f"--only-masked {'with --regions' if args.regions else 'without the condition object or both'}",
            "masked photographs of which some show no such object",
            "Leave it out.",
        )
    if args.name and len(args.condition) > 1:
        raise CapbiasError("--name with several conditions", "one condition", "Leave one out.")
    if args.collection:
        return
    if bool(args.instances) == bool(args.boxes):
        raise CapbiasError(
            "both --instances and --boxes" if args.boxes else "neither --instances nor --boxes",
            "one file that says where people are",
            "Name COCO's instances, or boxes as detect writes them.",
        )
    if not args.regions and not (args.places and args.output):
        raise CapbiasError(
            "no photographs" if not args.places else "no --output",
            "photographs and a folder for the masked ones",
            "See python -m capbias_core mask --help.",
        )


def _check_output(output: Path, originals: Item, workspace: Workspace) -> None:
    """The folder of masked photographs is not one of originals."""
    root = Path(originals.details["folder"])
    homes = {(root / file).parent for file in workspace.frame(originals.hash)["file"]}
    if output.exists() and not output.is_dir():
        raise CapbiasError(f"--output {output}, which is a file", "a folder", "Choose another name.")
    if homes & {output.resolve(), *(output.resolve() / condition for condition in MASKED)}:
        raise CapbiasError(
            f"--output {output}, in which originals are", "another folder", "Originals are never written over."
        )


def _check_targets(args, files: dict[str, Path]) -> None:
    """No file is written over but masked photographs of an earlier time."""
    names = masked_names(files).values()
    targets = [place / name for place in _places(Path(args.output), args.condition).values() for name in names]
    strange = [file for file in targets if file.exists() and not made_here(file)]
    if strange:
        raise CapbiasError(
            f"--output {args.output}, in which {counted(len(strange), 'file')} that mask did not write would be "
            f"written over (the first: {strange[0]})",
            "a folder without files of these names",
            "Choose another folder, or move the files.",
        )


def _places(output: Path, conditions: Sequence[str]) -> dict[str, Path]:
    """The folder of the masked photographs of each condition: one of its own where there are several."""
    several = len(set(conditions)) > 1
    return {condition: output / condition if several else output for condition in conditions}


def _keep_marks(workspace: Workspace, args) -> None:
    path = Path(args.instances or args.boxes)
    if args.labelled:
        _keep_boxes(workspace, Path(args.labelled), LABELLED)
    if args.boxes:
        _keep_boxes(workspace, path, "boxes")
        return
    offered = ingest.preview_import(workspace, path, ingest.SEGMENTS, FILES)
    ingest.keep_segments(workspace, offered, "segments", FILES, path.name)
    warn([offered.report])


def _keep_boxes(workspace: Workspace, path: Path, name: str) -> None:
    table = read_boxes(path)
    workspace.keep("boxes", name, table.frame, FILES, path.name)
    _say_problems(table.problems, table.problem_count)


def _say_problems(problems: Sequence[Problem], count: int) -> None:
    if count:
        first = ": ".join(place_and_message(problems[0]))
        say(f"warning: {problems[0].file}: {counted(count, 'row')} left out; the first at {first}")


def _named(args) -> dict[str, float] | None:
    """Departures by which the objects are taken in the order in which they were named."""
    return {name: float(len(args.things) - place) for place, name in enumerate(args.things)} if args.things else None


def _wanted(args) -> bool:
    return bool(set(args.condition) & set(OF_OBJECTS)) and not args.things


def _departures_in(workspace: Workspace, collection: str, args) -> dict[str, float] | None:
    if not _wanted(args) or not args.attribute:
        return _named(args)
    return _told(departures_in(workspace, collection, args.attribute, args.references or ""))


def _departures_of_file(args) -> dict[str, float] | None:
    if not _wanted(args) or not (args.attribute and args.references):
        return _named(args)
    known = known_attributes(own_folder(args))
    if args.attribute not in known:
        raise unknown_name("attribute", args.attribute, known)
    if not known[args.attribute].words:
        raise CapbiasError(
            f"{args.attribute}, which captions do not name",
            "an attribute with words, or a collection with its labels",
            "Import captions and labels, and use --collection; or name the objects with --object.",
        )
    return _told(departures(read_captions(Path(args.references), kind="reference").frame, known[args.attribute]))


def _told(found: dict[str, float]) -> dict[str, float]:
    first = ", ".join(f"{name} {value:.2f}" for name, value in list(found.items())[:5])
    say(f"{len(found)} objects by how far they depart from the share of a value in human captions: {first}, ...")
    return found


def _run(workspace: Workspace, collection: str, asked: dict | None, args) -> tuple[int, list[Item]]:
    """The exit code, and the folders that were made."""
    people, labelled = (args.people, args.labelled) if args.collection else _named_here(args)
    specs = [
        plan_masking(
            workspace,
            collection,
            condition,
            args.photographs,
            people,
            args.fill,
            args.fraction,
            args.whose,
            asked,
            args.name,
            labelled if condition != "object" else "",
            args.only_masked,
        )
        for condition in dict.fromkeys(args.condition)
    ]
    rows = run_all(workspace, specs, collection)
    code = outcome(rows)
    made = [row.spec["options"][NAME] for row in rows if row.status == "finished"]
    if collection != FILES:
        for name in made:
            say(f"kept: photographs {name} in the collection {collection}")
    return code, [workspace.item(KIND, name, collection) for name in made]


def _named_here(args) -> tuple[str, str]:
    """How the files of people and of labelled people are called in a workspace of their own."""
    return "segments" if args.instances else "boxes", LABELLED if args.labelled else ""


def _copied(workspace: Workspace, items: list[Item], args) -> pd.DataFrame:
    """Copy masked photographs into the output folder, a folder for each condition where there are several; a table of
    them."""
    rows, output = [], Path(args.output)
    try:
        for item in items:
            condition = item.details["condition"]
            place = _places(output, args.condition)[condition]
            place.mkdir(parents=True, exist_ok=True)
            frame = workspace.frame(item.hash)
            for image, file, hidden in zip(frame["image_id"], frame["file"], frame["hidden"], strict=True):
                _copy(Path(item.details["folder"]) / file, place / file)
                rows.append((image, condition, str(place / file), hidden))
    except OSError as error:
        raise CapbiasError(
            f"--output {output}, which cannot be written ({error.strerror})", "a writable folder", "Choose another."
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


def _drop(workspace: Workspace, collection: str, asked: dict | None, args) -> int:
    """Write the regions to drop as CSV, a row each."""
    output = checked_output(args.output)
    regions, problems, count = read_regions(Path(args.regions))
    _say_problems(problems, count)
    people, labelled = (args.people, args.labelled) if args.collection else _named_here(args)
    marks = workspace.frame(resolve_person_regions(workspace, collection, people)["item"])
    own = dict(list(marks.groupby("image_id")))
    chosen = labelled_boxes(workspace, workspace.item("boxes", labelled, collection).hash) if labelled else {}
    tables = []
    for condition in dict.fromkeys(args.condition):
        if condition in OF_OBJECTS and not asked:
            raise CapbiasError(
                f"the condition {condition} without the objects that may be hidden",
                "their names, or human captions",
                "Name --object, or --references and --attribute.",
            )
        how = hiding_of({"condition": condition, "whose": args.whose, "departures": asked or {}})
        known = regions[regions["image_id"].isin(set(own))]
        for image, rows in known.groupby("image_id", sort=False):
            tables.append(rows[regions_to_drop(rows, own[image], how, chosen.get(image))].assign(condition=condition))
    lost = regions["image_id"].nunique() - regions.loc[regions["image_id"].isin(set(own)), "image_id"].nunique()
    if lost:
        say(f"warning: no outline or box for {counted(lost, 'image')}, all of whose regions are kept")
    found = pd.concat(tables) if tables else regions.iloc[:0].assign(condition="")
    write_output(found.to_csv(index=False, lineterminator="\n"), output)
    say(
        f"{counted(len(found), 'region')} to drop, of {len(regions):,} under {', '.join(dict.fromkeys(args.condition))}"
    )
    return DONE
