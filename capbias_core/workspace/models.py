"""Pretrained models and other files of runs, named by the digest of their content.

`paths`: a workspace or sources of data, which know where they are on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from capbias_core.attackers import AttackerEntry, encoder_files
from capbias_core.errors import CapbiasError
from capbias_core.language.files import ModelFiles, find_model, model_digest
from capbias_core.load.files import file_digest
from capbias_core.load.places import named
from capbias_core.vision.presets import PRESETS, find_captioner
from capbias_core.whole_files import typed_path
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.vectors import KNOWN

DIGITS = 16


# Option of a run -> what it is in words, and the model that the papers use.
KINDS = {
    "language_model": ("a causal language model", "gpt2"),
    "masked_model": ("a masked language model", "bert-base-uncased"),
    "sentence_encoder": ("a sentence encoder", "sentence-transformers/bert-base-nli-mean-tokens"),
}


def model_option(paths: Any, kind: str, name: str | ModelReference | None) -> ModelReference:
    """The reference of a run to a model. name: a folder, `minilm`, a name in the local cache of Hugging Face, or None
    for that of the papers. See `reference`."""
    what, usual = KINDS[kind]
    return reference(paths, name or usual, lambda name: find_model(name, what))


def captioner_option(paths: Any, name: str | ModelReference | None) -> ModelReference:
    """The reference to a captioner: a name in PRESETS, a folder, or a name in the local cache. See `reference`."""
    lacking = "No captioner is named.", f"Give a folder, or one of {', '.join(PRESETS)}.", "captioner"
    return reference(paths, name, find_captioner, *lacking)


def encoder_option(paths: Any, entry: AttackerEntry) -> ModelReference:
    """The reference to the pretrained encoder of an attacker. Raises CapbiasError if it is not on this machine."""
    return register_model(paths, encoder_files(entry))


def encoded_by(encoder: ModelReference | None) -> str:
    """A pretrained encoder in a result's method, such as `; encoder minilm 0a1b2c3d`; '' without one."""
    return f"; encoder {encoder['name']} {encoder['digest'][:8]}" if encoder else ""


def digest_of(path: Path) -> str:
    """The digest of a model: of its file, or of the files in its folder."""
    return file_digest(path) if path.is_file() else model_digest(path)


def vectors_option(paths: Any, file: str | ModelReference | None) -> ModelReference:
    """The reference to a file of word vectors. See `reference`."""

    def find(file: str) -> ModelFiles:
        lower = Path(file).stem.lower().replace("-", "_")
        name = next((known for known in ("gn_glove", *KNOWN) if known in lower), lower)
        return named_file(name, typed_path(file))

    lacking = "No word vectors are named.", "Give a file (GloVe, word2vec or fastText).", "word_vectors"
    return reference(paths, file, find, *lacking)


def named_file(name: str, path: Path) -> ModelFiles:
    """A file, such as weights, under a name. Raises CapbiasError if it may not be named here, or cannot be read."""
    path = named(path).resolve()
    return ModelFiles(name, str(path), file_digest(path))


def reference(
    paths: Any, given: str | ModelReference | None, find: Callable[[str], ModelFiles], *lacking: str
) -> ModelReference:
    """The reference of a run to the files that `find` gives for a name or path; a reference is returned as it is.
    Raises CapbiasError, with `lacking` if nothing is named."""
    if isinstance(given, dict):
        return given
    if not given:
        raise CapbiasError(*lacking)
    return register_model(paths, find(given))


def register_model(paths: Any, files: ModelFiles) -> ModelReference:
    """The reference of a run to files on this machine, whose path the workspace stores."""
    paths.keep_model_path(files.digest[:DIGITS], files.path)
    return {"name": files.name, "digest": files.digest[:DIGITS]}


def resolve_model(paths: Any, option: ModelReference, digest: Callable[[Path], str] = digest_of) -> ModelFiles:
    """The files of a run's model. Raises CapbiasError if they are missing, or `digest` of the path has changed."""
    path = paths.model_path(option["digest"])
    if not path or not Path(path).exists() or digest(Path(path))[:DIGITS] != option["digest"]:
        raise CapbiasError(
            f"The files of {option['name']!r} are no longer in {path or 'a known place'}, or have changed.",
            "Put them back, or start the run again and name their path.",
        )
    return ModelFiles(option["name"], path, option["digest"])
