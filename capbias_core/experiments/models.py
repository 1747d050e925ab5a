"""Pretrained models of runs: a run names one by the digest of its files; the workspace remembers where they are."""

from __future__ import annotations

import os
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.experiments.store import Workspace
from capbias_core.language.files import find_model

FOLDER = "models"
DIGITS = 16

# What a model is for (the key of a run's option) -> in words, and the one that the papers use.
KINDS = {
    "language_model": ("a causal language model", "gpt2"),
    "masked_model": ("a masked language model", "bert-base-uncased"),
    "sentence_encoder": ("a sentence encoder", "sentence-transformers/bert-base-nli-mean-tokens"),
}


def model_option(workspace: Workspace, kind: str, name: str | dict | None) -> dict:
    """What a run says of a model: its name and the digest of its files; a dict is one already.

    name: a folder, `minilm`, or a name in the local cache of Hugging Face; None for that of the papers. Raises
    CapbiasError where it is not on this machine.
    """
    if isinstance(name, dict):
        return name
    what, usual = KINDS[kind]
    files = find_model(name or usual, what)
    digest = files.digest[:DIGITS]
    place = workspace.folder / FOLDER / digest
    place.parent.mkdir(exist_ok=True)
    temporary = place.with_name(f".{digest}-{os.getpid()}")
    temporary.write_text(files.path, encoding="utf-8")
    temporary.replace(place)
    return {"name": files.name, "digest": digest}


def model_path(workspace: Workspace, option: dict) -> str:
    """The folder of a run's model. Raises CapbiasError where its files are gone or are others now."""
    place = workspace.folder / FOLDER / option["digest"]
    path = place.read_text(encoding="utf-8") if place.is_file() else ""
    if not Path(path).is_dir() or find_model(path, "a model").digest[:DIGITS] != option["digest"]:
        raise CapbiasError(
            f"the model {option['name']!r}, whose files are no longer in {path or 'a known folder'}",
            "the files that the run was planned with",
            "Put them back, or ask for the run again with the folder where they are.",
        )
    return path
