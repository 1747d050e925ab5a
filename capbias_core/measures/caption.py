"""Captions of photographs by a captioner of transformers, kept as a set of their own with the condition.

A photograph that cannot be read is left out, counted and named. The set is kept at the end, whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.errors import CapbiasError, MissingExtra
from capbias_core.load.photographs import read_photograph
from capbias_core.measures.base import Job, Measure, Needs, Outcome
from capbias_core.measures.options import ArtifactOptions, OnDevice, option
from capbias_core.types import CONDITIONS, Attribute, counted
from capbias_core.vision.presets import BATCH, BEAMS, LENGTH, PRESETS
from capbias_core.workspace.conditions import ORIGINAL, condition_details
from capbias_core.workspace.models import captioner_option, model_path
from capbias_core.workspace.photographs import MADE_BY
from capbias_core.workspace.spec import ModelReference
from capbias_core.workspace.store import RUN, Workspace, suggested_name
from capbias_core.workspace.vectors import look_up_new_words

NAMED = 10  # photographs left out that a note names; the log has them all


@dataclass(frozen=True)
class CaptionOptions(ArtifactOptions, OnDevice):
    """Choices of a captioner. condition: what is masked on the photographs."""

    captioner: ModelReference | str | None = option(
        None,
        f"the captioner: one of {', '.join(PRESETS)}; or the folder or name of any captioner of transformers",
        flag="--captioner",
        suggested=tuple(PRESETS),
        metavar="NAME_OR_FOLDER",
        advanced=False,
    )
    condition: str = option(ORIGINAL, "what is masked on the photographs", choices=CONDITIONS)
    beams: int = option(BEAMS, "searched at once; 1 is greedy", flag="--beams", at_least=1, metavar="N", advanced=False)
    length: int = option(LENGTH, "tokens at most", flag="--length", at_least=1, metavar="N", advanced=False)
    batch: int = option(
        BATCH, "photographs at once, half as many if memory is short", flag="--batch", at_least=1, metavar="N"
    )


def freeze(
    workspace: Workspace, collection: str, options: CaptionOptions, attribute: Attribute | None
) -> CaptionOptions:
    """The captioner by its content. Raises CapbiasError if none is named, or it is not on this machine."""
    return options.with_(captioner=captioner_option(workspace, options.captioner))


def run(job: Job) -> Outcome:
    """Caption the photographs and keep the set. Raises CapbiasError if none can be read or captioned."""
    from capbias_core.vision.captioners import Captioner

    options = job.options
    files = job.photographs()
    job.progress(0.0, "loading the captioner")
    captioner = Captioner(model_path(job.workspace, options.captioner), options.device)
    captions: dict[str, str] = {}
    refused: dict[str, str] = {}
    for part in _read(job, files, refused):
        texts = captioner.captions(list(part.values()), options.beams, options.length, len(part))
        captions |= dict(zip(part, texts, strict=True))
        job.progress((len(captions) + len(refused)) / len(files), f"captioned {len(captions):,} of {len(files):,}")
    silent = [files[image].name for image, text in captions.items() if not text]
    captions = {image: text for image, text in captions.items() if text}
    if not captions:
        why = f" ({next(iter(refused.values()))})" if refused else ""
        raise CapbiasError(
            f"None of {counted(len(files), 'photograph')} got a caption; {len(refused):,} cannot be read{why}.",
            "Check the folder of photographs, and the captioner on one of them.",
        )
    frame = pd.DataFrame({"image_id": list(captions), "caption_index": 0, "caption": list(captions.values())})
    writer = options.captioner["name"]
    made_by = {"captioner": options.captioner, "photographs": options.photographs}
    details = {"trained_on_references": None, RUN: job.spec.run_id, MADE_BY: made_by}
    details |= condition_details(options.name, suggested_name(writer), options.condition)
    job.progress(1.0, "keeping the captions")
    source = f"{writer} on {options.photographs['name']}"
    job.workspace.keep("captions", options.name, frame, options.collection, source, details)
    look_up_new_words(job.workspace, options.collection)
    notes = [
        f"{len(captions):,} captions by {writer} {options.captioner['digest'][:8]}, beams: {options.beams}, tokens at "
        f"most: {options.length}."
    ]
    for names, what in ((list(refused.values()), ""), (silent, " without an answer of the captioner")):
        if names:
            more = f"; and {len(names) - NAMED:,} more (see the log)" if len(names) > NAMED else ""
            notes.append(f"Left out {counted(len(names), 'photograph')}{what}: {'; '.join(names[:NAMED])}{more}.")
    return Outcome([], {}, tuple(notes))


def _read(job: Job, files: dict[str, Path], refused: dict[str, str]) -> Iterator[dict[str, np.ndarray]]:
    """The pixels of the photographs by image id, a batch at a time; what cannot be read goes to `refused`."""
    part: dict[str, np.ndarray] = {}
    for image, file in files.items():
        try:
            part[image] = read_photograph(file)
        except MissingExtra:
            raise
        except CapbiasError as error:
            refused[file.name] = error.message.rstrip(".")
            job.workspace.log(job.spec.run_id, f"left out: {error.message}")
        if len(part) == job.options.batch:
            yield part
            part = {}
    if part:
        yield part


MEASURE = Measure(
    name="caption",
    title="captions of photographs",
    place=22,
    options=CaptionOptions,
    needs=Needs(captions=False, labels=False, photographs=True),
    seconds=40_000.0,
    run=run,
    freeze=freeze,
    makes="captions",
    in_process=False,
)
