"""`caption`: photographs to captions, as a file in COCO's results format or as a caption set of a workspace."""

from __future__ import annotations

import tempfile

from capbias_core.attackers.device import AUTO, DEVICES
from capbias_core.cli.inputs import FILES, known_collection, opened
from capbias_core.cli.photographs import keep_named
from capbias_core.cli.running import outcome, run_all
from capbias_core.cli.terminal import DONE, checked_output, say, write_output
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import NAME, RunSpec
from capbias_core.runs.caption_runs import coco_results, plan_captioning
from capbias_core.types import CONDITIONS
from capbias_core.vision.presets import PRESETS
from capbias_core.workspace.photographs import masked_so
from capbias_core.workspace.store import Workspace

EXAMPLE = """\
  python -m capbias_core caption photographs/ one.jpg --captioner blip --beams 5 --length 20 --output captions.json
  python -m capbias_core caption --collection "my captions" --captioner blip2-folder/ --condition segment

The first writes COCO's results format (image_id, caption). The second captions photographs that the collection knows
(import --kind images, mask) and keeps a caption set that says which captioner wrote it and under which condition.
Weights are never fetched; what is missing is named together with the command that gets it. A photograph that cannot be
read is left out and named."""


def add_arguments(command, positive) -> None:
    """The options of `caption`. positive: the reader of whole numbers."""
    command.add_argument("places", nargs="*", metavar="IMAGE_OR_FOLDER", help="photographs, named by image id")
    known = f"one of: {', '.join(PRESETS)}; or the folder or name of any captioner of transformers"
    command.add_argument("--captioner", required=True, metavar="NAME", help=known)
    command.add_argument("--beams", type=positive, default=5, help="searched at once; 1 is greedy (default: 5)")
    command.add_argument("--length", type=positive, default=20, help="tokens at most (default: 20)")
    batch = "photographs at once, half as many where memory is short (default: 8)"
    command.add_argument("--batch", type=positive, default=8, help=batch)
    command.add_argument("--device", choices=DEVICES, default=AUTO, help="(default: auto, CUDA where there is one)")
    command.add_argument(
        "--collection", metavar="NAME", help="caption photographs of this collection, and keep the set"
    )
    command.add_argument("--photographs", metavar="NAME", default="", help="its photographs (default: the originals)")
    masked = "those of its photographs that are masked so (default: original)"
    command.add_argument("--condition", choices=CONDITIONS, help=masked)
    command.add_argument(
        "--name", metavar="NAME", default="", help="name of the set (default: by captioner and photographs)"
    )
    command.add_argument("--output", metavar="FILE", help="where to write COCO results (default: stdout, for files)")


def caption(args) -> int:
    """Caption photographs of files, or of a collection."""
    _check(args)
    output = checked_output(args.output)
    if args.collection:
        with opened(args) as workspace:
            collection = known_collection(workspace, args.collection)
            asked = args.photographs or masked_so(workspace, collection, args.condition)
            code, text = _run(workspace, collection, asked, args)
        if text and output:
            write_output(text, output)
        return code
    with tempfile.TemporaryDirectory(prefix="capbias-") as folder:
        workspace = Workspace(folder)
        keep_named(workspace, args.places, FILES)
        code, text = _run(workspace, FILES, "", args)
    if text:
        write_output(text, output)
    return code


def _check(args) -> None:
    if bool(args.places) == bool(args.collection):
        raise CapbiasError(
            "photographs and --collection" if args.collection else "neither photographs nor --collection",
            "files or folders of photographs, or --collection with those that it knows",
            "See python -m capbias_core caption --help.",
        )
    stray = [name for name in ("photographs", "condition", "name", "workspace") if getattr(args, name)]
    if stray and not args.collection:
        options = ", ".join(f"--{name}" for name in stray)
        raise CapbiasError(f"{options} with files", "options of a collection with --collection", "Leave it out.")
    if args.photographs and args.condition:
        raise CapbiasError("--photographs and --condition", "one of them", "Leave one out.")


def _run(workspace: Workspace, collection: str, photographs: str, args) -> tuple[int, str]:
    """The exit code, and the set as COCO results, '' where there is none."""
    settings = {key: getattr(args, key) for key in ("beams", "length", "batch", "device")}
    spec = plan_captioning(workspace, collection, args.captioner, photographs, args.name, **settings)
    code = outcome(run_all(workspace, [spec], collection))
    if code != DONE:
        return code, ""
    return code, coco_results(_set_of(workspace, collection, spec))


def _set_of(workspace: Workspace, collection: str, spec: RunSpec):
    name = spec.options[NAME]
    item = workspace.item("captions", name, collection)
    if collection != FILES:
        say(f"kept: captions {name} in the collection {collection}")
    return workspace.frame(item.hash)
