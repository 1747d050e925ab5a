"""Runs of the family 'judge': ImageCaptioner2 with the three scores of its Eq. 4.

Options: judge, None for Show, Attend and Tell from scratch, or a captioner of transformers by its content; prompt, of
PROMPTS; picture_size, pixels a side that the judge from scratch sees; judge_epochs, of its training (40), or of a
captioner's (0: it is asked as it is).
"""

from __future__ import annotations

from functools import partial

from capbias_core.aggregate import Estimate
from capbias_core.attackers.device import AUTO, trained_on
from capbias_core.errors import unknown_name
from capbias_core.measures.base import SELF, Job, Outcome
from capbias_core.measures.image_judge import (
    PICTURE_SIZE,
    ImageJudge,
    estimates_from,
    held_out,
    judge_inputs,
    outcome,
    photographed,
    pictures_of,
    splits_of,
)
from capbias_core.types import Attribute
from capbias_core.vision.prompts import PROMPTS, STATEMENT, prompted
from capbias_core.workspace.models import captioner_option, model_path
from capbias_core.workspace.store import RunRow, Workspace

SCRATCH = "scratch"
SAT = "sat"  # as the paper calls the judge from scratch


def freeze(workspace: Workspace, options: dict, _attribute: Attribute) -> dict:
    """The options with a pretrained judge by its content, and without what is usual. Raises CapbiasError for an unknown
    prompt or a captioner that is not on this machine."""
    options = dict(options)
    if options.get("prompt", STATEMENT) not in PROMPTS:
        raise unknown_name("prompt", options["prompt"], PROMPTS)
    if options.get("prompt") == STATEMENT:
        options.pop("prompt")
    judge = options.pop("judge", None)
    if judge in (None, SCRATCH):
        return options
    if judge == SELF:
        return options | {"judge": SELF}  # for each caption set the captioner that wrote it; see plan.py
    return options | {"judge": captioner_option(workspace, judge)}


def run(job: Job) -> Outcome:
    """A judge for each seed and caption index on the model's captions and, where there are any, on the human ones."""
    return _asked(job) if "judge" in job.spec.options else _trained(job)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again, by metric and direction."""
    return estimates_from(workspace, run)


def _trained(job: Job) -> Outcome:
    """Show, Attend and Tell from scratch."""
    from capbias_core.vision.judge import ScratchJudge

    options, prompt = job.spec.options, job.spec.options.get("prompt", STATEMENT)
    size = options.get("picture_size", PICTURE_SIZE)
    files, seen = pictures_of(job, size)
    found = judge_inputs(job, files, partial(_prompted, job, prompt), seen.refused)
    splits = splits_of(job, found.images, True)
    judge = ScratchJudge(epochs=options.get("judge_epochs", ScratchJudge.epochs), device=options.get("device", AUTO))
    sides = held_out(job, found, splits, ImageJudge(judge, seen.seen))
    method = f"Show, Attend and Tell from scratch, {judge.epochs} epochs, pictures of {size} x {size}; prompt {prompt}"
    method += trained_on(judge, options)
    return outcome(job, found, splits, sides, SAT, method, "" if prompt == STATEMENT else prompt)


def _prompted(job: Job, prompt: str, captions) -> list[str]:
    return [prompted(caption, job.attribute, prompt) for caption in job.masked(captions)]


def _asked(job: Job) -> Outcome:
    """A captioner of transformers, as it is or trained further."""
    from capbias_core.vision.captioners import Captioner
    from capbias_core.vision.pretrained_judge import AskedJudge

    options, prompt = job.spec.options, job.spec.options.get("prompt", STATEMENT)
    epochs = options.get("judge_epochs", 0)
    found = judge_inputs(job, photographed(job), job.masked, {})
    splits = splits_of(job, found.images, bool(epochs))
    captioner = Captioner(model_path(job.workspace, options["judge"]), options.get("device", AUTO))
    judge = AskedJudge(captioner, found.files, job.attribute, prompt, epochs)
    sides = held_out(job, found, splits, judge)
    how = f"trained further for {epochs} epochs" if epochs else "asked as it is"
    name = f"{options['judge']['name']} {options['judge']['digest'][:8]}"
    method = f"captioner {name}, {how}, {captioner.numbers}; prompt {prompt}"
    own = SELF if options["judge"].get(SELF) else options["judge"]["name"]
    return outcome(job, found, splits, sides, own, method, "" if prompt == STATEMENT else prompt)
