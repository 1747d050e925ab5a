"""VL-LIC: LIC with a classifier that sees the photograph beside the caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from capbias_core.attackers import ATTACKERS, FROM_SCRATCH, PRETRAINED, attacker_entry, load_attacker
from capbias_core.attackers.device import choose_device, device_of, trained_on
from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome, by_name
from capbias_core.measures.image_judge import LOOK, PICTURE_SIZE, JudgeTraining, judge_inputs, judged, three_metrics
from capbias_core.measures.options import option
from capbias_core.types import Attribute
from capbias_core.workspace.models import embeddings_folder, encoder_option, file_option, file_path, model_path
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import Workspace

TEXT = "lstm_bi"  # LIC's
CNN = "cnn"
BACKBONE_SIZE = 224  # pixels a side on which torchvision's weights were trained

METRICS = by_name(
    *three_metrics(
        "vl_lic",
        "VL-LIC",
        "Abdelrahman et al., AAAI 2024, section Multi-Modal Classifier",
        "sure",
        "LIC with a classifier that sees the photograph beside the masked caption: its confidence where it is right, 0 "
        "where it is wrong.",
    )
)


@dataclass(frozen=True)
class VLLICOptions(JudgeTraining):
    """Choices of VL-LIC. backbone: None for a small network from scratch, or a classifier of torchvision."""

    backbone: ModelReference | str | None = option(
        None,
        "a torchvision classifier with its weights (if not said: a small network, trained here)",
        flag="--backbone",
        metavar="NAME=FILE",
    )
    text_encoder: str | ModelReference = option(
        TEXT,
        f"one of: {', '.join(FROM_SCRATCH)}; or a pretrained encoder, as an attacker is",
        flag="--text-encoder",
        suggested=FROM_SCRATCH,
        metavar="NAME",
    )
    text_attacker: str = option("", "the attacker that reads captions with the pretrained text encoder")


def freeze(workspace: Workspace, collection: str, options: VLLICOptions, attribute: Attribute) -> VLLICOptions:
    """Pretrained models by their content. Raises CapbiasError where one is not on this machine."""
    text = options.text_encoder or TEXT
    if isinstance(text, str) and text in ATTACKERS and text not in FROM_SCRATCH and text not in PRETRAINED:
        raise CapbiasError(
            f"The text encoder {text} is no network.",
            f"Choose one of {', '.join(FROM_SCRATCH)}, or a pretrained encoder; {TEXT} is the default.",
        )
    own = options.text_attacker
    if isinstance(text, str) and text not in FROM_SCRATCH:
        entry = attacker_entry(text)
        text, own = encoder_option(workspace, entry), entry.name if entry.name in ATTACKERS else ""
    backbone = options.backbone
    if isinstance(backbone, str) and backbone:
        name, _, file = backbone.partition("=")
        if not file:
            raise CapbiasError(
                f"The backbone {backbone!r} needs its weights, as NAME=FILE, such as resnet50=resnet50.pth.",
                "With a network connection torchvision downloads them; copy the file here.",
            )
        backbone = file_option(workspace, name, Path(file))
    return options.with_(text_encoder=text, text_attacker=own, backbone=backbone or None)


def run(job: Job) -> Outcome:
    """A classifier for each seed and caption index on the model's captions and, if there are any, the human ones."""
    from capbias_core.vision.judges import JointJudge, backbone

    options = job.options
    model, text, device = options.backbone, options.text_encoder, options.device
    size = options.picture_size or (BACKBONE_SIZE if model else PICTURE_SIZE)
    look = backbone(model["name"], file_path(job.workspace, model), choose_device(device)) if model else None
    inputs = judge_inputs(job, job.masked, size, look)
    judge = JointJudge(epochs=options.judge_epochs or JointJudge.epochs, device=device, sight=inputs.sight)
    frozen, reads = ["backbone"] if model else [], text
    if isinstance(text, str):
        judge = replace(judge, text=load_attacker(text))
    else:
        judge, reads = replace(judge, embed=partial(_embedded, job, text)), text["name"]
        frozen.append("text encoder")
    how = f"; {' and '.join(frozen)} frozen" if frozen else ""
    method = f"{judge.epochs} epochs, pictures of {size} x {size}{how}{trained_on(judge, options.deterministic)}"
    encoder = f"{model['name'] if model else CNN} + {reads}"
    return judged(job, METRICS, inputs, judge, method, encoder=encoder, device=device_of(judge))


def _embedded(job: Job, option: ModelReference, captions: Sequence[str]) -> np.ndarray:
    """(n, d) vectors of captions by a frozen text encoder, kept with those of attackers."""
    files = ModelFiles(option["name"], model_path(job.workspace, option), option["digest"])
    name = job.options.text_attacker or files.path
    attacker = load_attacker(name, job.options.device, files, embeddings_folder(job.workspace))
    corpus: Any = attacker.corpus(list(captions))
    vectors = corpus.vectors(lambda _share, text: job.progress(LOOK, text))
    return vectors.cpu().numpy()[corpus.place]


MEASURE = Measure(
    name="vl_lic",
    title="VL-LIC",
    place=16,
    metrics=tuple(METRICS.values()),
    groups=(Group("vl_lic", "VL-LIC", tuple(METRICS)),),
    options=VLLICOptions,
    needs=Needs(references="optional", photographs=True),
    seconds=3_000.0,
    run=run,
    version=4,
    freeze=freeze,
    in_process=False,
    packages=("torch", "PIL"),
)
