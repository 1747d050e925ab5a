"""ImageCaptioner2 with the three scores of its Eq. 4: a captioning model is asked for the labelled value."""

from __future__ import annotations

from dataclasses import dataclass

from capbias_core.attackers.device import device_of, trained_on
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome, by_name
from capbias_core.measures.image_judge import PICTURE_SIZE, JudgeTraining, judge_inputs, judged, three_metrics
from capbias_core.measures.options import option
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import Attribute
from capbias_core.vision.presets import PRESETS, PROMPTS, STATEMENT, prompted
from capbias_core.workspace.models import captioner_option, model_path
from capbias_core.workspace.photographs import writer_of
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Item, Workspace

# Judges that are no captioner by name: one trained from scratch, and the captioner that wrote each set.
SCRATCH, SELF = "scratch", "self"
SAT = "sat"  # as the paper calls the judge from scratch
_PAPER = "Abdelrahman et al., AAAI 2024"

METRICS = by_name(
    *three_metrics(
        "imagecaptioner2",
        "ImageCaptioner²",
        f"{_PAPER}, Eq. 2 and 4",
        "truth",
        "Mean probability that a captioning model, shown the photograph and the masked caption, gives to the labelled "
        "answer.",
    ),
    *three_metrics(
        "imagecaptioner2_lic",
        "ImageCaptioner² scored as LIC",
        f"{_PAPER}, Eq. 4",
        "sure",
        "The same judge: its probability where its answer is right, 0 where it is wrong.",
    ),
    *three_metrics(
        "imagecaptioner2_leakage",
        "ImageCaptioner² scored as leakage",
        f"{_PAPER}, Eq. 4",
        "right",
        "The same judge: how often its answer is right.",
    ),
)


@dataclass(frozen=True)
class ImageCaptioner2Options(JudgeTraining):
    """Choices of ImageCaptioner2. judge: SCRATCH, or a captioner by its content."""

    judge: str | ModelReference = option(
        SCRATCH,
        f"the model that judges: {SCRATCH} (Show, Attend and Tell, trained here), a captioner of transformers (preset, "
        f"folder or name), or {SELF} (the captioner that wrote each set)",
        flag="--judge",
        suggested=(SCRATCH, SELF, *PRESETS),
        metavar="NAME_OR_FOLDER",
        advanced=False,
    )
    own_judge: bool = option(False, "whether the judge is the captioner that wrote the set")
    prompt: str = option(
        STATEMENT, "how the answer is asked for", flag="--prompt", choices=tuple(PROMPTS), advanced=False
    )


def freeze(
    workspace: Workspace, collection: str, options: ImageCaptioner2Options, attribute: Attribute
) -> ImageCaptioner2Options:
    """A pretrained judge by its content. Raises CapbiasError for a captioner that is not on this machine."""
    judge = options.judge or SCRATCH
    return options.with_(judge=judge if judge in (SCRATCH, SELF) else captioner_option(workspace, judge))


def for_set(workspace: Workspace, options: ImageCaptioner2Options, item: Item) -> ImageCaptioner2Options:
    """The captioner that wrote a set as its judge, if that is asked for."""
    return options.with_(judge=writer_of(item, "--judge"), own_judge=True) if options.judge == SELF else options


def run(job: Job) -> Outcome:
    """A judge for each seed and caption index on the model's captions and, if there are any, on the human ones."""
    options = job.options
    prompt = "" if options.prompt == STATEMENT else options.prompt  # results name an unusual one
    if options.judge == SCRATCH:
        from capbias_core.vision.judges import ScratchJudge

        def ask(tokens: Tokens) -> list[str]:
            return [prompted(caption, job.attribute, options.prompt) for caption in job.masked(tokens)]

        size = options.picture_size or PICTURE_SIZE
        inputs, epochs = judge_inputs(job, ask, size), options.judge_epochs or ScratchJudge.epochs
        judge = ScratchJudge(epochs=epochs, device=options.device, sight=inputs.sight)
        method = f"Show, Attend and Tell from scratch, {epochs} epochs, pictures of {size} x {size}; prompt "
        method += f"{options.prompt}{trained_on(judge, options.deterministic)}"
        return judged(job, METRICS, inputs, judge, method, encoder=SAT, prompt=prompt, device=device_of(judge))

    from capbias_core.vision.captioners import Captioner
    from capbias_core.vision.judges import AskedJudge

    inputs, epochs = judge_inputs(job, job.masked), options.judge_epochs or 0
    captioner = Captioner(model_path(job.workspace, options.judge), options.device)
    judge = AskedJudge(captioner, inputs.files, job.attribute, options.prompt, epochs)
    how = f"trained further for {epochs} epochs" if epochs else "asked as it is"
    name = f"{options.judge['name']} {options.judge['digest'][:8]}"
    method = f"captioner {name}, {how}, {captioner.numbers}; prompt {options.prompt}"
    columns = {
        "encoder": SELF if options.own_judge else options.judge["name"],
        "prompt": prompt,
        "device": captioner.device.type if epochs else "",
    }
    return judged(job, METRICS, inputs, judge, method, bool(epochs), **columns)


MEASURE = Measure(
    name="imagecaptioner2",
    title="ImageCaptioner²",
    place=15,
    metrics=tuple(METRICS.values()),
    groups=(Group("imagecaptioner2", "ImageCaptioner²", tuple(METRICS)),),
    options=ImageCaptioner2Options,
    needs=Needs(references="optional", photographs=True),
    seconds=5_000.0,
    run=run,
    version=4,
    freeze=freeze,
    for_set=for_set,
    in_process=False,
    packages=("torch", "PIL"),
)
