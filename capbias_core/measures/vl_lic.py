"""Runs of the family 'vl_lic': LIC with a classifier that sees the photograph beside the caption.

Options: backbone, None for a small convolutional network from scratch, or a torchvision classifier with its weights;
text_encoder, a name of an attacker with a network from scratch (lstm_bi), or a pretrained encoder as attackers have
them; picture_size, judge_epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from capbias_core.aggregate import Estimate
from capbias_core.attackers import ATTACKERS, attacker_entry, encoder_files, load_attacker
from capbias_core.attackers.device import AUTO, choose_device, trained_on
from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles
from capbias_core.measures.base import Job, Outcome
from capbias_core.measures.image_judge import (
    LOOK,
    PICTURE_SIZE,
    ImageJudge,
    estimates_from,
    held_out,
    judge_inputs,
    outcome,
    pictures_of,
    splits_of,
)
from capbias_core.types import Attribute
from capbias_core.workspace.models import embeddings_folder, encoder_option, file_option, file_path, model_path
from capbias_core.workspace.store import RunRow, Workspace

TEXT = "lstm_bi"  # LIC's
CNN = "cnn"
BACKBONE_SIZE = 224  # pixels a side on which torchvision's weights were trained
FROM_SCRATCH = [name for name, entry in ATTACKERS.items() if not entry.model and name != "ngram"]


def freeze(workspace: Workspace, options: dict, _attribute: Attribute) -> dict:
    """The options with pretrained models by their content. Raises CapbiasError where one is not on this machine."""
    options = dict(options)
    text = options.pop("text_encoder", TEXT)
    if text == "ngram":
        raise CapbiasError(
            "the text encoder ngram, which is no network",
            f"one of: {', '.join(FROM_SCRATCH)}; or a pretrained encoder",
            "Leave --text-encoder out for lstm_bi.",
        )
    if text not in (TEXT, None):
        pretrained = isinstance(text, dict) or text not in FROM_SCRATCH
        options["text_encoder"] = _text_option(workspace, text) if pretrained else text
    if backbone := options.get("backbone"):
        options["backbone"] = _backbone_option(workspace, backbone)
    return options


def _text_option(workspace: Workspace, name: str | dict) -> dict:
    if isinstance(name, dict):
        return name
    entry = attacker_entry(name)
    encoder_files(entry)
    return encoder_option(workspace, entry) | {"attacker": entry.name if entry.name in ATTACKERS else ""}


def _backbone_option(workspace: Workspace, given: str | dict) -> dict:
    """What a run says of NAME=FILE, a torchvision classifier and its weights."""
    if isinstance(given, dict):
        return given
    name, _, file = given.partition("=")
    if not file:
        raise CapbiasError(
            f"the backbone {given!r} without its weights",
            "NAME=FILE, such as resnet50=resnet50.pth",
            "Where there is a network, torchvision fetches weights; copy the file here and name it.",
        )
    return file_option(workspace, name, Path(file))


def run(job: Job) -> Outcome:
    """A classifier for each seed and caption index on the model's captions and, where there are any, the human ones."""
    from capbias_core.vision.image_encoders import backbone
    from capbias_core.vision.joint import JointJudge

    options = job.spec.options
    model, text, device = options.get("backbone"), options.get("text_encoder", TEXT), options.get("device", AUTO)
    size = options.get("picture_size", BACKBONE_SIZE if model else PICTURE_SIZE)
    look = backbone(model["name"], file_path(job.workspace, model), choose_device(device)) if model else None
    files, seen = pictures_of(job, size, look)
    found = judge_inputs(job, files, job.masked, seen.refused)
    splits = splits_of(job, found.images, True)
    reads = {} if isinstance(text, dict) else {"text": load_attacker(text)}
    judge = JointJudge(epochs=options.get("judge_epochs", JointJudge.epochs), device=device, **reads)
    embed = _embedder(job, text, device) if isinstance(text, dict) else None
    sides = held_out(job, found, splits, ImageJudge(judge, seen.seen, embed))
    encoder = f"{model['name'] if model else CNN} + {text['name'] if isinstance(text, dict) else text}"
    frozen = [name for name, own in (("backbone", model), ("text encoder", isinstance(text, dict))) if own]
    how = (f"; {' and '.join(frozen)} frozen" if frozen else "") + trained_on(judge, options)
    return outcome(job, found, splits, sides, encoder, f"{judge.epochs} epochs, pictures of {size} x {size}{how}")


def _embedder(job: Job, option: dict, device: str) -> Callable[[Sequence[str]], np.ndarray]:
    """Captions to the vectors of a frozen text encoder, kept where those of attackers are."""
    files = ModelFiles(option["name"], model_path(job.workspace, option), option["digest"])
    name = option["attacker"] or files.path
    attacker = load_attacker(name, device, files, embeddings_folder(job.workspace))

    def embed(captions: Sequence[str]) -> np.ndarray:
        corpus = attacker.corpus(list(captions))
        vectors = corpus.vectors(lambda _share, said: job.progress(LOOK, said))
        return vectors.cpu().numpy()[corpus.copies]

    return embed


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again, by metric and direction."""
    return estimates_from(workspace, run)
