"""VL-LIC: LIC with a classifier that sees the photograph beside the caption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from capbias_core.attackers import ATTACKERS, FROM_SCRATCH, PRETRAINED, attacker_entry, load_attacker
from capbias_core.attackers.device import choose_device, device_of, trained_on
from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles
from capbias_core.measures.base import Group, Job, Measure, Needs, Outcome, by_name
from capbias_core.measures.image_judge import (
    LOOK,
    PICTURE_SIZE,
    ImageJudge,
    JudgeTraining,
    held_out,
    judge_inputs,
    outcome,
    pictures_of,
    splits_of,
    three_metrics,
)
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
    backbone = _backbone_option(workspace, options.backbone) if options.backbone else None
    return options.with_(text_encoder=text, text_attacker=own, backbone=backbone)


def _backbone_option(workspace: Workspace, given: str | ModelReference) -> ModelReference:
    """What a run says of NAME=FILE, a torchvision classifier and its weights."""
    if isinstance(given, dict):
        return given
    name, _, file = given.partition("=")
    if not file:
        raise CapbiasError(
            f"The backbone {given!r} needs its weights, as NAME=FILE, such as resnet50=resnet50.pth.",
            "With a network connection torchvision downloads them; copy the file here.",
        )
    return file_option(workspace, name, Path(file))


def run(job: Job) -> Outcome:
    """A classifier for each seed and caption index on the model's captions and, if there are any, the human ones."""
    from capbias_core.vision.image_encoders import backbone
    from capbias_core.vision.joint import JointJudge

    options = job.options
    model, text, device = options.backbone, options.text_encoder, options.device
    size = options.picture_size or (BACKBONE_SIZE if model else PICTURE_SIZE)
    look = backbone(model["name"], file_path(job.workspace, model), choose_device(device)) if model else None
    files, seen = pictures_of(job, size, look)
    found = judge_inputs(job, files, job.masked, seen.refused)
    splits = splits_of(job, found.images, True)
    judge, embed, reads = JointJudge(epochs=options.judge_epochs or JointJudge.epochs, device=device), None, text
    if isinstance(text, str):
        judge = judge.reading_with(load_attacker(text))
    else:
        embed, reads = _embedder(job, text), text["name"]
    counts = held_out(job, found, splits, ImageJudge(judge, seen.seen, embed))
    encoder = f"{model['name'] if model else CNN} + {reads}"
    frozen = [name for name, own in (("backbone", model), ("text encoder", embed)) if own]
    how = f"; {' and '.join(frozen)} frozen" if frozen else ""
    method = f"{judge.epochs} epochs, pictures of {size} x {size}{how}{trained_on(judge, options.deterministic)}"
    return outcome(job, METRICS, found, splits, counts, method, encoder=encoder, device=device_of(judge))


def _embedder(job: Job, option: ModelReference) -> Callable[[Sequence[str]], np.ndarray]:
    """Captions to the vectors of a frozen text encoder, kept where those of attackers are."""
    files = ModelFiles(option["name"], model_path(job.workspace, option), option["digest"])
    name = job.options.text_attacker or files.path
    attacker = load_attacker(name, job.options.device, files, embeddings_folder(job.workspace))

    def embed(captions: Sequence[str]) -> np.ndarray:
        corpus = attacker.corpus(list(captions))
        vectors = corpus.vectors(lambda _share, said: job.progress(LOOK, said))
        return vectors.cpu().numpy()[corpus.place]

    return embed


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
