"""Runs of the family 'attack': LIC, leakage, SC."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from capbias_core.aggregate import Estimate, difference, estimate
from capbias_core.attackers.device import trained_on
from capbias_core.measures.base import ALL_IMAGES, WITH_REFERENCES, Job, Outcome
from capbias_core.measures.training import AttackerTrainer, attacker_of, caption_lists
from capbias_core.metrics import METRICS, HeldOut
from capbias_core.prepare import balanced_split
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, frame_bytes
from capbias_core.workspace.vectors import aligned_result, aligner, alignment_method

TEST_SHARE = {ALL_IMAGES: 0.1, WITH_REFERENCES: 0.2}


FEW_IMAGES = 2000
# Every metric of the family; those of the human captions end in _D.
NAMES = ("LIC_M", "SC", "LIC_D", "SC_D", "LIC", "leakage")
# Metrics of the model's captions alone, on which the alignment of human captions has no effect.
MODEL_ONLY = ("LIC_M", "SC")


def run(job: Job) -> Outcome:
    """Attackers on the model's captions, and on the human ones where there are references."""
    spec, k = job.spec, len(job.attribute.values)
    images = sorted(set(job.frame["image_id"]))
    human = None
    if spec.references:
        human = job.references()
        images = sorted(set(images) & set(human["image_id"]))
    y = job.codes(images)
    splits = [balanced_split(y, k, seed, TEST_SHARE[spec.condition], images) for seed in spec.seeds]
    model_lists = caption_lists(job.frame, images, y, k, job.masked)
    human_lists = caption_lists(human, images, y, k, job.masked) if human is not None else []
    fits = len(splits) * (len(model_lists) + len(human_lists))
    align = aligner(job.workspace, spec.options.get("alignment"))
    trainer = AttackerTrainer(attacker_of(job), k, y, tuple(images), job.progress, fits, align=align)
    model = trainer.held_out(model_lists, splits, "the model's captions")
    reference = trainer.held_out(human_lists, splits, "the human captions", model_lists) if human_lists else None
    return _outcome(job, model, reference, splits)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its held-out predictions, by metric and direction."""
    reference = held_out_from(workspace.array(run.run_id, "human")) if run.spec["references"] else None
    found = estimates_of(held_out_from(workspace.array(run.run_id, "model")), reference)
    return {(name, ""): own for name, own in found.items()}


def estimates_of(model: HeldOut, reference: HeldOut | None, names: Sequence[str] = NAMES) -> dict[str, Estimate]:
    """Each of these metrics that the evidence allows, by name."""
    found = {}
    for name in names:
        row = METRICS[name]
        if row.of and reference is not None:
            parts = METRICS[row.of].parts
            found[name] = difference(parts(model), model, parts(reference), reference, row.scale)
        elif not row.of and (evidence := reference if name.endswith("_D") else model) is not None:
            found[name] = estimate(row.parts(evidence), evidence, row.scale)
    return found


def _outcome(job: Job, model: HeldOut, reference: HeldOut | None, splits) -> Outcome:
    train, test = len(splits[0].train), len(splits[0].test)
    alignment = job.spec.options.get("alignment")
    method = f"{train}/{test} balanced images; std over seeds; 95% image bootstrap, 1000 draws"
    if reference is not None:
        method += f"; {alignment_method(alignment)}"
    if job.spec.merge_masks:
        method += "; runs of masks merged"
    method += trained_on(attacker_of(job), job.spec.options) + encoded_by(job.spec.options)
    found = estimates_of(model, reference)
    rows = [job.result(name, own, test, method) for name, own in found.items()]
    results = [aligned_result(row, alignment, row.metric in MODEL_ONLY) for row in rows]
    arrays = {"model": held_out_bytes(model)}
    if reference is not None:
        arrays["human"] = held_out_bytes(reference)
    return Outcome(results, arrays, _notes(job, train, test, len(model.images)))


def _notes(job: Job, train: int, test: int, images: int) -> tuple[str, ...]:
    notes = [
        f"{train:,} training and {test:,} test images a seed, equally many of every value; chance for LIC_M and "
        f"LIC_D is {job.attribute.chance:.1f}."
    ]
    if job.spec.condition == WITH_REFERENCES:
        notes.append(
            f"Only {images:,} of the {len(job.labels):,} labelled images have both captions and references: LIC_D and "
            f"LIC rest on {train + test:,} balanced images, {test:,} held out a seed."
        )
    if option := job.spec.options.get("alignment"):
        notes.append(
            f"Contextual alignment: human words that the model never uses became its nearest word by {option['name']} "
            f"where the cosine distance is below {option['delta']:g}, else <unk>."
        )
    if train + test < FEW_IMAGES:
        notes.append(f"Few images: {train + test:,} after balancing. Expect wide intervals and weaker attackers.")
    return tuple(notes)


def held_out_bytes(evidence: HeldOut) -> bytes:
    """Held-out predictions as Parquet; `held_out_from` reads them back."""
    frame = pd.DataFrame({"seed": evidence.seed, "image": evidence.image, "label": evidence.label})
    for value in range(evidence.probabilities.shape[1]):
        frame[f"p{value}"] = evidence.probabilities[:, value]
    frame["image_id"] = pd.Categorical.from_codes(evidence.image, list(evidence.images))
    return frame_bytes(frame)


def held_out_from(data: bytes) -> HeldOut:
    """The held-out predictions in Parquet bytes."""
    frame = bytes_frame(data)
    scores = frame[[column for column in frame if column.startswith("p")]].to_numpy()
    images = tuple(frame["image_id"].cat.categories)
    return HeldOut(images, *(frame[name].to_numpy() for name in ("seed", "image", "label")), scores)
