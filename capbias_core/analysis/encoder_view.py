"""How other encoders read captions that one has scored: the run that shows it, and what such runs left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from capbias_core.analysis.read import CaptionScores, caption_scores, current_runs
from capbias_core.attackers import ATTACKERS, attacker_entry
from capbias_core.measures.caption_scores import ENCODER_VIEW as MEASURE
from capbias_core.measures.caption_scores import attention_from
from capbias_core.measures.registry import MEASURES
from capbias_core.types import Attention
from capbias_core.workspace.models import encoder_option
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import RunRow, Workspace

# What must be the same for two attackers' views of a caption to stand side by side.
SAME = ("model", "captions", "labels", "attribute", "merge_masks")


@dataclass(frozen=True)
class EncoderView:
    """scores: of the captions of some images, by one attacker that trained on others; attention: of each caption in the
    order of `scores.table`, empty where the attacker has none."""

    scores: CaptionScores
    attention: tuple[Attention, ...]


def plan_encoder_view(
    workspace: Workspace, scored: RunSpec, attacker: str, images: Sequence[str], training: Mapping | None = None
) -> RunSpec:
    """The run in which an attacker reads the captions of some images.

    scored: a run of `caption_scores` on the same set. training: device and deterministic, as options of runs. Raises
    CapbiasError where the encoder cannot be had.
    """
    entry = attacker_entry(attacker)
    encoder = encoder_option(workspace, entry) if entry.model else None
    own = {"attacker": entry.name, "images": sorted(set(images)), "merge_masks": scored.merge_masks}
    options = MEASURE.options.read({**(training or {}), **own, "encoder": encoder}).effective()
    return replace(scored, measure=MEASURE.name, version=MEASURE.version_with(entry.name), options=options.to_dict())


def plan_scores(scored: RunSpec, attacker: str) -> RunSpec:
    """The run in which an attacker from scratch scores the whole set of a run of `caption_scores`."""
    measure = MEASURES[scored.measure]
    options = measure.options.read({"attacker": attacker, "merge_masks": scored.merge_masks}).effective()
    return replace(scored, version=measure.version_with(attacker), options=options.to_dict())


def encoder_views(workspace: Workspace, collection: str, scored: RunRow, image: str) -> dict[str, RunRow]:
    """The newest finished view of an image by each attacker, those of the table in its order.

    scored: the run of `caption_scores` beside which they stand.
    """
    found: dict[str, RunRow] = {}
    for run in current_runs(workspace, collection, MEASURE.name):
        if image in run.spec.options["images"] and all(
            getattr(run.spec, key) == getattr(scored.spec, key) for key in SAME
        ):
            found.setdefault(run.spec.attacker, run)
    known = [*ATTACKERS, *sorted(found.keys() - ATTACKERS.keys())]
    return {name: found[name] for name in known if name in found}


def encoder_view(workspace: Workspace, run: RunRow) -> EncoderView:
    """What a finished run of the measure `encoder_view` left."""
    attends = attacker_entry(run.spec.attacker).attends
    attention = attention_from(workspace.array(run.run_id, "attention")) if attends else []
    return EncoderView(caption_scores(workspace, run), tuple(attention))
