"""Attackers: an encoder plus a head that guesses the protected attribute from a masked caption.

To add one, write a module here with `ENTRIES`, which is loaded by itself, or call `capbias.register`. What needs torch
is in networks/, imported when an attacker is made, so that the web server's process never imports it.
"""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module

from capbias_core.attackers.base import Attacker, AttackerEntry, Setup
from capbias_core.attackers.neural import frozen_entry
from capbias_core.errors import CapbiasError, nearest, need, taken_twice
from capbias_core.language.files import ModelFiles, find_model

# Name -> entry, in the order in which they are shown; the first is the default.
ATTACKERS: dict[str, AttackerEntry] = {}
PRETRAINED: set[str] = set()
FROM_SCRATCH: list[str] = []


def add(entry: AttackerEntry) -> None:
    """Make an attacker known. Raises CapbiasError if its name is taken."""
    if entry.name in ATTACKERS:
        raise taken_twice("attacker", entry.name, ["attackers/"])
    ATTACKERS[entry.name] = entry
    if entry.model:
        PRETRAINED.add(entry.name)
    if entry.from_scratch:
        FROM_SCRATCH.append(entry.name)


_NAMES = [module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg]
for _name in sorted(_NAMES, key=lambda name: (name != "ngram", name != "neural")):
    for _entry in getattr(import_module(f"{__name__}.{_name}"), "ENTRIES", ()):
        add(_entry)
DEFAULT_ATTACKER = next(iter(ATTACKERS))


def attacker_entry(name: str) -> AttackerEntry:
    """The entry of an attacker; reads no disk, see `encoder_files`.

    name: in ATTACKERS; a folder or name of any model of sentence-transformers or transformers, which is then frozen as
    `minilm` is; or `bert_ft=FOLDER`, an entry of a pretrained encoder with the model of that folder.
    """
    row, given, model = name.partition("=")
    if given and row in PRETRAINED:
        return replace(ATTACKERS[row], model=model)
    return ATTACKERS[name] if name in ATTACKERS else frozen_entry(name)


def encoder_files(entry: AttackerEntry) -> ModelFiles:
    """The files of a pretrained encoder. Raises CapbiasError with how to get them if they are not on this machine."""
    if entry.name in ATTACKERS and entry.name not in PRETRAINED:
        raise CapbiasError(
            f"The folder {entry.name} has the name of an attacker of another kind.", "Rename the folder."
        )
    try:
        return find_model(entry.model, "a text encoder")
    except CapbiasError as error:
        if entry.name in ATTACKERS:
            hint = f"{error.hint} Name the folder as {entry.name}=FOLDER."
            raise CapbiasError(error.message, hint, *error.arguments) from None
        near = f"Did you mean {' or '.join(names)}? " if (names := nearest(entry.model, ATTACKERS)) else ""
        known = f"Known: {', '.join(sorted(ATTACKERS))}, or the folder of a text encoder."
        message = f"Attacker {entry.model!r} is not on this machine."
        # The hub's names have a hyphen or slash; names of attackers outside this package are those of Python.
        own = "An attacker of yours is known once its package is installed, or after capbias.register."
        hint = own if entry.model.isidentifier() else error.hint
        raise CapbiasError(message, f"{near}{known} {hint}", *error.arguments) from None


def load_attacker(
    name: str, device: str = "auto", model: ModelFiles | None = None, cache: str | None = None
) -> Attacker:
    """The attacker; a network imports torch.

    device, cache: see `Setup`. model: files of the pretrained encoder, if they are known.
    """
    entry = attacker_entry(name)
    need(f"The attacker {entry.name}", *entry.packages)
    files = model or encoder_files(entry) if entry.model else None
    return entry.make(Setup(device, files, cache))
