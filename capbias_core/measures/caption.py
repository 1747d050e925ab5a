"""Captions of photographs by a captioner of transformers, kept as a set of their own with the condition.

A photograph that cannot be read is left out, counted and named. The set is kept at the end, whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.attackers.device import AUTO
from capbias_core.errors import CapbiasError
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.base import CAPTIONER, COLLECTION, NAME, Job, Outcome
from capbias_core.vision.captioners import BATCH, BEAMS, LENGTH, Captioner
from capbias_core.workspace.conditions import condition_details
from capbias_core.workspace.models import model_path
from capbias_core.workspace.photographs import MADE_BY, PHOTOGRAPHS
from capbias_core.workspace.store import RUN, suggested_name
from capbias_core.workspace.vectors import look_up_new_words

NAMED = 10  # photographs left out that a note names; the log has them all


def run(job: Job) -> Outcome:
    """Caption the photographs and keep the set. Raises CapbiasError where none can be read or captioned."""
    options = job.spec.options
    files = job.photographs()
    job.progress(0.0, "loading the captioner")
    captioner = Captioner(model_path(job.workspace, options[CAPTIONER]), options.get("device", AUTO))
    found: dict[str, str] = {}
    refused: dict[str, str] = {}
    for part in _read(job, files, options.get("batch", BATCH), refused):
        texts = captioner.captions(
            list(part.values()), options.get("beams", BEAMS), options.get("length", LENGTH), len(part)
        )
        found |= dict(zip(part, texts, strict=True))
        job.progress((len(found) + len(refused)) / len(files), f"captioned {len(found):,} of {len(files):,}")
    silent = [image for image, text in found.items() if not text]
    _keep(job, {image: text for image, text in found.items() if text}, files, refused)
    return Outcome([], {}, _notes(job, len(found) - len(silent), refused, [files[image].name for image in silent]))


def _read(job: Job, files: dict[str, Path], batch: int, refused: dict[str, str]) -> Iterator[dict[str, np.ndarray]]:
    """The pixels of the photographs by image id, a batch at a time; what cannot be read goes to `refused`."""
    part: dict[str, np.ndarray] = {}
    for image, file in files.items():
        try:
            part[image] = read_photograph(file)
        except CapbiasError as error:
            refused[file.name] = error.got
            job.workspace.log(job.spec.run_id, f"left out: {error.got}")
        if len(part) == batch:
            yield part
            part = {}
    if part:
        yield part


def _keep(job: Job, captions: dict[str, str], files: dict[str, Path], refused: dict[str, str]) -> None:
    options = job.spec.options
    if not captions:
        why = f" ({next(iter(refused.values()))})" if refused else ""
        raise CapbiasError(
            f"{_photographs(len(files))}, {len(refused):,} of which cannot be read; none got a caption{why}",
            "photographs that can be read, and a captioner that says something",
            "Check the folder of photographs, and the captioner on one of them.",
        )
    frame = pd.DataFrame({"image_id": list(captions), "caption_index": 0, "caption": list(captions.values())})
    name, writer = options[NAME], options[CAPTIONER]["name"]
    made_by = {key: options[key] for key in (CAPTIONER, PHOTOGRAPHS)}
    details = {"trained_on_references": None, RUN: job.spec.run_id, MADE_BY: made_by}
    details |= condition_details(name, suggested_name(writer), options["condition"])
    job.progress(1.0, "keeping the captions")
    source = f"{writer} on {options[PHOTOGRAPHS]['name']}"
    job.workspace.keep("captions", name, frame, options[COLLECTION], source, details)
    look_up_new_words(job.workspace, options[COLLECTION])


def _notes(job: Job, kept: int, refused: dict[str, str], silent: list[str]) -> tuple[str, ...]:
    options = job.spec.options
    notes = [
        f"{kept:,} captions by {options['captioner']['name']} {options['captioner']['digest'][:8]}, "
        f"beams: {options.get('beams', BEAMS)}, tokens at most: {options.get('length', LENGTH)}."
    ]
    if refused:
        notes.append(f"Left out {_photographs(len(refused))}: {_first(list(refused.values()))}.")
    if silent:
        notes.append(f"Left out {_photographs(len(silent))} of which the captioner said nothing: {_first(silent)}.")
    return tuple(notes)


def _photographs(number: int) -> str:
    return f"{number:,} photograph{'' if number == 1 else 's'}"


def _first(names: list[str]) -> str:
    return "; ".join(names[:NAMED]) + (f"; and {len(names) - NAMED:,} more (see the log)" if len(names) > NAMED else "")
