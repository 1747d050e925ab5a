"""Pretrained models and other files of runs, named by the digest of their content; the workspace stores their paths."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from capbias_core.attackers import AttackerEntry, encoder_files
from capbias_core.errors import CapbiasError
from capbias_core.language.files import find_model, model_digest
from capbias_core.load.files import file_digest
from capbias_core.load.places import named
from capbias_core.vision.presets import PRESETS, find_captioner
from capbias_core.whole_files import private_folder, write_whole
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import HASH, Workspace
from capbias_core.workspace.vectors import KNOWN

FOLDER = "models"
DIGITS = 16

# Option of a run -> what it is in words, and the model that the papers use.
KINDS = {
    "language_model": ("a causal language model", "gpt2"),
    "masked_model": ("a masked language model", "bert-base-uncased"),
    "sentence_encoder": ("a sentence encoder", "sentence-transformers/bert-base-nli-mean-tokens"),
}


def model_option(workspace: Workspace, kind: str, name: str | ModelReference | None) -> ModelReference:
    """The reference of a run to a model. name: a folder, `minilm`, a name in the local cache of Hugging Face, None for
    that of the papers, or a reference, which is returned. Raises CapbiasError if it is not on this machine."""
    if isinstance(name, dict):
        return name
    what, usual = KINDS[kind]
    files = find_model(name or usual, what)
    return register_model(workspace, files.name, files.path, files.digest)


def model_path(workspace: Workspace, option: ModelReference) -> str:
    """The folder of a run's model. Raises CapbiasError if its files are missing or have changed."""
    return resolve_model(workspace, option, lambda path: model_digest(Path(path)))


def captioner_option(workspace: Workspace, name: str | ModelReference | None) -> ModelReference:
    """As `model_option`, for a captioner: a name in PRESETS, a folder, or a name in the local cache."""
    if isinstance(name, dict):
        return name
    if not name:
        raise CapbiasError("No captioner is named.", f"Give a folder, or one of {', '.join(PRESETS)}.", "captioner")
    files = find_captioner(name)
    return register_model(workspace, files.name, files.path, files.digest)


def encoder_option(workspace: Workspace, entry: AttackerEntry) -> ModelReference:
    """As `model_option`, for the pretrained encoder of an attacker."""
    files = encoder_files(entry)
    return register_model(workspace, files.name, files.path, files.digest)


def encoded_by(encoder: ModelReference | None) -> str:
    """A pretrained encoder in a result's method, such as `; encoder minilm 0a1b2c3d`; '' without one."""
    return f"; encoder {encoder['name']} {encoder['digest'][:8]}" if encoder else ""


def embeddings_folder(workspace: Workspace) -> str:
    """The folder of vectors of captions: CAPBIAS_EMBEDDINGS, or `embeddings` in the workspace."""
    return os.environ.get("CAPBIAS_EMBEDDINGS") or str(workspace.folder / "embeddings")


def vectors_option(workspace: Workspace, file: str | ModelReference | None) -> ModelReference:
    """As `model_option`, for a file of word vectors."""
    if isinstance(file, dict):
        return file
    if not file:
        raise CapbiasError("No word vectors are named.", "Give a file (GloVe, word2vec or fastText).", "word_vectors")
    path = Path(file)
    lower = path.stem.lower().replace("-", "_")
    name = next((known for known in ("gn_glove", *KNOWN) if known in lower), lower)
    return file_option(workspace, name, path)


def file_option(workspace: Workspace, name: str, path: Path) -> ModelReference:
    """As `model_option`, for a file, such as weights."""
    path = named(path).resolve()
    return register_model(workspace, name, str(path), file_digest(path))


def file_path(workspace: Workspace, option: ModelReference) -> Path:
    """The file of `file_option`. Raises CapbiasError if it is missing or has changed."""
    return Path(resolve_model(workspace, option, lambda path: file_digest(Path(path))))


def register_model(workspace: Workspace, name: str, path: str, digest: str) -> ModelReference:
    """The reference of a run to files on this machine, whose path the workspace stores."""
    note = workspace.folder / FOLDER / digest[:DIGITS]
    if not note.is_file() or note.read_text(encoding="utf-8") != path:
        with workspace.translate_errors():
            private_folder(note.parent)
            write_whole(note, path.encode())
    return {"name": name, "digest": digest[:DIGITS]}


def resolve_model(workspace: Workspace, option: ModelReference, digest: Callable[[str], str]) -> str:
    """The path of files of a run. Raises CapbiasError if they are missing, or `digest` of the path has changed."""
    note = workspace.folder / FOLDER / option["digest"]
    known = HASH.fullmatch(option["digest"]) and note.is_file()
    path = note.read_text(encoding="utf-8") if known else ""
    if not path or not Path(path).exists() or digest(path)[:DIGITS] != option["digest"]:
        raise CapbiasError(
            f"The files of {option['name']!r} are no longer in {path or 'a known place'}, or have changed.",
            "Put them back, or start the run again and name their path.",
        )
    return path
