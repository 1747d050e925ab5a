"""`caption`: photographs to captions, as a file in COCO's results format or as a caption set of a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from capbias_core.cli.flags import ANSWER, HOW, INPUTS, Flags, WorkspaceFlag, choices_of, command, flag, given
from capbias_core.cli.inputs import FILES, known_collection, opened
from capbias_core.cli.photographs import keep_named
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError, unknown_name
from capbias_core.measures.caption import CaptionOptions
from capbias_core.runs.artifact_runs import coco_results, plan_captioning
from capbias_core.types import CONDITIONS
from capbias_core.workspace.inputs import temporary_workspace
from capbias_core.workspace.photographs import masked_so
from capbias_core.workspace.store import Workspace

app = command(
    "caption",
    """\
  capbias caption photographs/ one.jpg --captioner blip --beams 5 --length 20 --output captions.json
  capbias caption --collection "my captions" --captioner blip2-folder/ --condition segment

The first writes COCO's results format (image_id, caption). The second captions photographs that the collection knows
(import --kind images, mask) and keeps a caption set that says which captioner wrote it and under which condition.
Weights are never fetched; what is missing is named together with the command that gets it. A photograph that cannot be
read is left out and named.""",
)


class Choices(choices_of(CaptionOptions, "captioner", "beams", "length", "batch", "device", group=HOW)):
    """Choices of the command."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where photographs are, and where their captions go."""

    collection: Annotated[
        str | None, flag("caption photographs of this collection, and keep the set", "NAME", INPUTS)
    ] = None
    photographs: Annotated[str, flag("its photographs (default: the originals)", "NAME", INPUTS)] = ""
    condition: Annotated[
        str | None, flag(f"those masked so, one of: {', '.join(CONDITIONS)} (default: original)", "CONDITION", INPUTS)
    ] = None
    workspace: WorkspaceFlag = None
    name: Annotated[str, flag("name of the set (default: by captioner and photographs)", "NAME", ANSWER)] = ""
    output: Annotated[str | None, flag("where to write COCO results (default: stdout, for files)", "FILE", ANSWER)] = (
        None
    )


HERE, NO_CHOICES = Place(), Choices()


@app.default
def caption(
    *places: Annotated[str, flag("photographs, named by image id, or folders of them", group=INPUTS)],
    place: Annotated[Place, Flags] = HERE,
    choices: Annotated[Choices, Flags] = NO_CHOICES,
) -> int:
    """Caption photographs with a captioner of this machine, as COCO results or as a caption set."""
    _check(places, place)
    options = CaptionOptions.read(given(choices, CaptionOptions) | {"name": place.name})
    output = checked_output(place.output)
    if place.collection:
        with opened(place.workspace) as workspace:
            collection = known_collection(workspace, place.collection)
            asked = place.photographs or masked_so(workspace, collection, place.condition)
            code, text = _run(workspace, collection, options.with_(photographs=asked or None))
        if text and output:
            write_output(text, output)
        return code
    with temporary_workspace() as workspace:
        keep_named(workspace, places, FILES)
        code, text = _run(workspace, FILES, options)
    if text:
        write_output(text, output)
    return code


def _check(places: tuple[str, ...], place: Place) -> None:
    if bool(places) == bool(place.collection):
        raise CapbiasError("caption takes either photographs or --collection.", "See capbias caption --help.")
    if place.condition and place.condition not in CONDITIONS:
        raise unknown_name("--condition", place.condition, CONDITIONS)
    stray = [name for name in ("photographs", "condition", "name", "workspace") if getattr(place, name)]
    if stray and not place.collection:
        named = ", ".join(f"--{name}" for name in stray)
        raise CapbiasError(f"{named} needs --collection.")
    if place.photographs and place.condition:
        raise CapbiasError("--photographs and --condition exclude each other.", "Leave one out.")


def _run(workspace: Workspace, collection: str, options: CaptionOptions) -> tuple[int, str]:
    """The exit code, and the set as COCO results, '' if there is none."""
    spec = plan_captioning(workspace, collection, options)
    code = outcome(run_all(workspace, [spec], collection))
    if code != DONE:
        return code, ""
    item = workspace.item("captions", spec.options["name"], collection)
    if collection != FILES:
        say(f"kept: captions {item.name} in the collection {collection}")
    return code, coco_results(workspace.frame(item.hash))
