"""How other encoders read captions that one has scored: the run that shows it, and what such runs left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from capbias_core.analysis.read import CaptionScores, caption_scores, current_runs
from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.attackers.device import training_options
from capbias_core.measures.base import RunSpec
from capbias_core.measures.encoder_view import IMAGES, attention_from
from capbias_core.types import Attention
from capbias_core.workspace.models import ENCODER, encoder_option
from capbias_core.workspace.store import RunRow, Workspace

FAMILY = "reading"
# What must be the same for two attackers' readings of a caption to stand side by side.
SAME = ("model", "captions", "labels", "attribute", "merge_masks")


@dataclass(frozen=True)
class Reading:
    """scores: of the captions of some images, by one attacker that trained on others; attention: of each caption in the
    order of `scores.table`, empty where the attacker has none."""

    scores: CaptionScores
    attention: tuple[Attention, ...]


def plan_reading(
    workspace: Workspace, scored: RunSpec, attacker: str, images: Sequence[str], training: Mapping | None = None
) -> RunSpec:
    """The run in which an attacker reads the captions of some images.

    scored: a run of the family 'captions' on the same set. training: device and deterministic, as options of runs.
    Raises CapbiasError where the encoder cannot be had.
    """
    entry = attacker_entry(attacker)
    options = training_options(training or {}, entry.in_process) | {IMAGES: sorted(set(images))}
    if entry.model:
        options[ENCODER] = encoder_option(workspace, entry)
    return replace(scored, family=FAMILY, attacker=entry.name, options=options)


def readings(workspace: Workspace, collection: str, scored: RunRow, image: str) -> dict[str, RunRow]:
    """The newest finished reading of an image by each attacker, those of the table in its order.

    scored: the run of the family 'captions' beside which they stand.
    """
    found: dict[str, RunRow] = {}
    for run in current_runs(workspace, collection, FAMILY):
        if image in run.spec["options"][IMAGES] and all(run.spec[key] == scored.spec[key] for key in SAME):
            found.setdefault(run.spec["attacker"], run)
    known = [*ATTACKERS, *sorted(found.keys() - ATTACKERS.keys())]
    return {name: found[name] for name in known if name in found}


def reading(workspace: Workspace, run: RunRow) -> Reading:
    """What a finished run of the family 'reading' left."""
    attends = attacker_entry(run.spec["attacker"]).attends
    attention = attention_from(workspace.array(run.run_id, "attention")) if attends else []
    return Reading(caption_scores(workspace, run), tuple(attention))
