"""LIC, leakage and SC: attackers guess the labelled value from masked captions, on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate
from capbias_core.attackers.device import device_of, trained_on
from capbias_core.load.report import scored_alike
from capbias_core.measures.base import Group, Job, Measure, Metric, Needs, Outcome, RatioMetric, by_name, zero
from capbias_core.measures.cost import Size, held_out_cost, per_image
from capbias_core.measures.held_out import accuracy, confidence_where_right, estimates_of
from capbias_core.measures.lic_baseline import (
    LEAST_HUMAN,
    Excess,
    Sides,
    attacked,
    baseline_estimates,
    fits,
    sampled,
    sides_arrays,
    stored_sides,
    verdict_of,
)
from capbias_core.measures.options import Aligned, Attacked, Seeded
from capbias_core.measures.training import AttackerTrainer, CaptionList, attacker_of, caption_lists
from capbias_core.metrics.lic import lic_of_naming
from capbias_core.prepare import balanced_split
from capbias_core.types import Attribute, Progress, Result, Split, part_of
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.spec import WITH_REFERENCES
from capbias_core.workspace.store import RunRow, Workspace, images_in
from capbias_core.workspace.vectors import aligner, alignment_method

_LIC = "Hirota et al., CVPR 2022"
FEW_IMAGES = 2000
MUCH = 0.5  # of LIC, from which it is remarked that naming alone gives it
COPIED = 0.9  # share of captions that are human ones, from which it is remarked
RETELLING = 4.0  # seconds for 15,000 images
HUMAN = Needs(references="required")

METRICS = by_name(
    Metric(
        "LIC",
        "LIC, bias amplification",
        100,
        zero,
        "lower",
        (-100, 100),
        f"{_LIC}, Eq. 11",
        "LIC_M minus LIC_D. Above 0: an attacker names the labelled value better, and more surely, from the model's "
        "masked captions than from the human ones.",
        of="LIC_M",
        needs=HUMAN,
    ),
    Metric(
        "LIC_baseline",
        "LIC baseline, of plainness alone",
        100,
        zero,
        "neutral",
        (-100, 100),
        "capbias 2026, docs/statistics.md",
        "What LIC would be if the captioner said what people say, as plainly as it does: the LIC of the human captions "
        "of each image, retold in its words. Plain captions are easier to learn from.",
        needs=HUMAN,
    ),
    Metric(
        "LIC_excess",
        "LIC excess, beyond plainness",
        100,
        zero,
        "lower",
        (-100, 100),
        "capbias 2026, docs/statistics.md",
        "LIC beyond its baseline, or beyond 0 where that is more. Above 0: the captions tell more about the attribute "
        "than human captions do, even in the captioner's own plain words. Its interval covers both that of LIC "
        "and that beyond the baseline: the baseline says how far plainness may reach, not that it does.",
        needs=HUMAN,
    ),
    RatioMetric(
        "LIC_M",
        "LIC_M, leakage of the model's captions",
        100,
        lambda k: 100 / k**2,
        "lower",
        (0, 100),
        f"{_LIC}, Eq. 10",
        "Mean confidence of the attacker where it is right, 0 where it is wrong, on the model's masked captions.",
        guessed=True,
        side="model",
        ratio=confidence_where_right,
    ),
    RatioMetric(
        "LIC_D",
        "LIC_D, leakage of the human captions",
        100,
        lambda k: 100 / k**2,
        "lower",
        (0, 100),
        f"{_LIC}, Eq. 9",
        "The same on the human captions, after words that the model never uses became <unk>.",
        guessed=True,
        side="human",
        needs=HUMAN,
        ratio=confidence_where_right,
    ),
    Metric(
        "leakage",
        "leakage, difference of accuracies",
        100,
        zero,
        "lower",
        (-100, 100),
        f"Wang et al., ICCV 2019; {_LIC}, Eq. 4",
        "SC of the model's captions minus SC of the human captions.",
        of="SC",
        needs=HUMAN,
    ),
    RatioMetric(
        "SC",
        "SC, the attacker's accuracy",
        100,
        lambda k: 100 / k,
        "lower",
        (0, 100),
        f"Zhao et al., ICCV 2021; {_LIC}, Eq. 1",
        "Share of the model's masked captions whose labelled value the attacker names.",
        guessed=True,
        side="model",
        ratio=accuracy,
    ),
    RatioMetric(
        "SC_D",
        "SC_D, accuracy on the human captions",
        100,
        lambda k: 100 / k,
        "lower",
        (0, 100),
        f"Zhao et al., ICCV 2021; {_LIC}, Eq. 1",
        "The same accuracy on the human captions.",
        guessed=True,
        side="human",
        needs=HUMAN,
        ratio=accuracy,
    ),
)


@dataclass(frozen=True)
class LICOptions(Attacked, Seeded, Aligned):
    """Choices of LIC."""


def _cost(size: Size, options: LICOptions) -> float:
    if size.references_per_image < LEAST_HUMAN:
        return held_out_cost(0.5)(size, options)
    attackers = held_out_cost(0.5)(replace(size, per_image=2 * size.per_image), options)
    return per_image(RETELLING)(size, options) + attackers


def run(job: Job) -> Outcome:
    """Attackers on the model's captions, and on the human ones where there are references."""
    known = images_in(job.frame)
    human = None
    if job.spec.references:
        human = job.references()
        known &= images_in(human)
    images = tuple(sorted(known))
    sides, splits, read, shares = _sides(job, human, images, job.progress)
    copied = tuple(_copied(job.frame, human)) if human is not None else ()
    outcome = _outcome(job, sides, splits)
    named = tuple(_named(shares, job.attribute, outcome.results))
    return replace(outcome, notes=(*scored_alike(job.frame["caption"]), *copied, *named, *outcome.notes, *read))


def _sides(
    job: Job, human: pd.DataFrame | None, images: tuple[str, ...], progress: Progress
) -> tuple[Sides, list[Split], list[str], list[np.ndarray]]:
    """All sides of these images, the splits, notes on how captions were read, and each side's `_naming_shares`."""
    y, k = job.codes(images), len(job.attribute.values)
    splits = [balanced_split(y, k, seed, job.options.test_share, images) for seed in job.spec.seeds]
    model_lists = caption_lists(job.frame, images, y, k, job.masked)
    human_lists = caption_lists(human, images, y, k, job.masked) if human is not None else []
    sample = sampled(images, len(human_lists))
    number = len(splits) * fits(len(model_lists), len(human_lists), len(images))
    align = aligner(job.workspace, job.options.alignment)
    whole = part_of(progress, 0.0, 0.9) if sample else progress
    trainer = AttackerTrainer(attacker_of(job), k, y, images, whole, number, align=align)
    sides = attacked(trainer, model_lists, human_lists, splits)
    if sample:
        sides = replace(sides, sample=_sides(job, human, sample, part_of(progress, 0.9, 1.0))[0])
    token = job.attribute.mask_token
    shares = [_naming_shares(own, y, k, token) for own in (model_lists, human_lists) if own]
    return sides, splits, trainer.notes, shares


def _copied(frame: pd.DataFrame, human: pd.DataFrame) -> Iterator[str]:
    """A remark on captions that are the human ones."""
    theirs = set(_pairs(human))
    known = {image for image, _ in theirs}
    own = [pair in theirs for pair in _pairs(frame) if pair[0] in known]
    if own and (share := sum(own) / len(own)) >= COPIED:
        yield (
            f"{share:.0%} of the captions are, word for word, human captions of the same image: LIC compares people's "
            "captions with themselves."
        )


def _named(shares: list[np.ndarray], attribute: Attribute, rows: Iterable[Result]) -> Iterator[str]:
    """A remark where much of LIC, or of LIC_M above chance, comes from which captions name a value, whichever it is.

    shares: `_naming_shares` of the model's captions and, where there are any, of the human ones.
    """
    metric = "LIC" if len(shares) > 1 else "LIC_M"
    row = next(own for own in rows if own.metric == metric)
    nothing = METRICS[metric].neutral(len(attribute.values))
    alone = 100 * (lic_of_naming(shares[0]) - sum(lic_of_naming(own) for own in shares[1:]))
    lowest = row.value if row.ci_low is None else row.ci_low
    if lowest <= nothing or alone - nothing < MUCH * (row.value - nothing):
        return
    own, *people = (
        " and ".join(f"{share:.0%} of {value}" for share, value in zip(side, attribute.values, strict=True))
        for side in shares
    )
    of_people = f"; of the human captions {people[0]}" if people else ""
    yield (
        f"Whether a caption names any {attribute.name} tells much by itself. Captions that do, by label: {own}"
        f"{of_people}. An attacker that reads only this has {metric} {alone:.1f}; the one that reads all words has "
        f"{row.value:.1f}."
    )


def _naming_shares(lists: list[CaptionList], y: np.ndarray, k: int, token: str) -> np.ndarray:
    """(K,) share of the captions of each labelled value that name a value."""
    label = np.concatenate([y[own.images] for own in lists])
    named = np.array([token in caption for own in lists for caption in own.masked], dtype=float)
    return np.bincount(label, weights=named, minlength=k) / np.maximum(np.bincount(label, minlength=k), 1)


def _pairs(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    return zip(*(frame[name].to_numpy(dtype=object) for name in ("image_id", "caption")), strict=True)


def _found(sides: Sides) -> dict[str, Estimate]:
    found = estimates_of(METRICS.values(), sides.model, sides.human)
    lic, own = found.get("LIC"), sides.with_retelling
    if sides.sample is not None:
        lic = estimates_of(METRICS.values(), own.model, own.human)["LIC"]
    return found | baseline_estimates(own, lic)


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """Those of a finished run again."""
    return {(name, ""): own for name, own in _found(stored_sides(workspace, run)).items()}


def _outcome(job: Job, sides: Sides, splits) -> Outcome:
    train, test = len(splits[0].train), len(splits[0].test)
    found = _found(sides)
    method = f"{train}/{test} balanced images; std over seeds; {found['LIC_M'].interval_method}"
    if sides.human is not None:
        method += f"; {alignment_method(job.options.alignment)}"
    if job.options.merge_masks:
        method += "; runs of masks merged"
    attacker = attacker_of(job)
    method += trained_on(attacker, job.options.deterministic) + encoded_by(job.options.encoder)
    said: dict[str, str] = dict.fromkeys(("LIC", "LIC_excess"), verdict_of(found))
    rows = [
        job.result(METRICS[name], own, test, method, device=device_of(attacker), verdict=said.get(name, ""))
        for name, own in found.items()
    ]
    notes = (*_notes(job, train, test, len(sides.model.images)), *_of_plainness(sides), *_lost(found))
    return Outcome(rows, sides_arrays(sides), notes, _no_baseline(sides, found))


def _of_plainness(sides: Sides) -> Iterator[str]:
    own, sample = sides.with_retelling.plainness, sides.sample
    if sample is not None:
        yield (
            f"LIC_baseline and LIC_excess rest on a random sample of {len(sample.model.images):,} of the "
            f"{len(sides.model.images):,} images, on which all sides were measured anew: more cannot be retold in a "
            "reasonable time. With fewer images plainness counts for more, and the verdict is more cautious."
        )
    if own is not None:
        yield (
            f"Plainness, captioner and human captions: type-token ratio {own.type_token:.4f} and "
            f"{own.human_type_token:.4f}; captions that another image has too {own.repeated:.1%} and "
            f"{own.human_repeated:.1%}; word pairs {own.variety:.1f} and, as the attacker reads them, "
            f"{own.human_variety:.1f} bits. {own.unknown:.1%} of the human words are unknown to the captioner."
        )
        if own.longer:
            yield (
                f"The captions have {own.length:.0f} words, the human ones {own.human_length:.0f}: longer captions can "
                "tell more, so part of LIC may be length. Compare captions of equal length: Scores, or capbias lengths."
            )
        if own.copied:
            yield (
                f"{own.copied:.0%} of the captions were written from a human caption of the same image, as far as "
                "their words tell: half are in both, and far fewer in any other. They tell what that one tells, so "
                "the baseline rests on the other human captions."
            )
        if np.isnan(own.share_of_person):
            return
        if own.share_of_person < own.share:
            yield (
                f"The retelling tells {own.share_of_person:.0%} of what a human caption tells in the captioner's "
                "words, or of what goes with the label; a baseline above 0 allows for the rest."
            )
        elif own.share < 1:
            yield f"The retelling tells {own.share:.0%} of what the captions tell; the baseline allows for the rest."


def _no_baseline(sides: Sides, found: dict[str, Estimate]) -> dict[str, str]:
    """Why there is no baseline though there are human captions, by metric."""
    if sides.human is None or "LIC_baseline" in found:
        return {}
    if sides.with_retelling.plainness is None:
        reason = f"a baseline needs at least {LEAST_HUMAN} human captions per image."
    else:
        reason = (
            "the human captions, retold in the captioner's words, tell too little of the images, as where captions "
            "hardly fit theirs."
        )
    return dict.fromkeys(("LIC_baseline", "LIC_excess"), f"{reason} So amplification is not shown.")


def _lost(found: dict[str, Estimate]) -> Iterator[str]:
    excess = found.get("LIC_excess")
    if isinstance(excess, Excess) and excess.lost:
        yield (
            "The retelling gives away no more than the human captions, though plainer words are easier to learn: it "
            "lost what gives the label away. So amplification is not shown."
        )


def _notes(job: Job, train: int, test: int, images: int) -> list[str]:
    chance = job.attribute.chance
    digits = 1 if round(chance, 1) == chance else 2  # 25.0, and 6.25 of four values
    notes = [
        f"{train:,} training and {test:,} test images per seed, balanced; chance for LIC_M and LIC_D is "
        f"{chance:.{digits}f}."
    ]
    if job.spec.coverage == WITH_REFERENCES:
        notes.append(
            f"Only {images:,} of the {len(job.labels):,} labelled images have both captions and references: LIC_D and "
            f"LIC rest on {train + test:,} balanced images, {test:,} held out per seed."
        )
    if option := job.options.alignment:
        notes.append(
            f"Contextual alignment: human words that the model never uses became its nearest word by {option['name']} "
            f"where the cosine distance is below {option['delta']:g}, else <unk>."
        )
    if train + test < FEW_IMAGES:
        notes.append(f"Few images: {train + test:,} after balancing. Expect wide intervals and weaker attackers.")
    return notes


MEASURE = Measure(
    name="lic",
    title="LIC",
    place=1,
    metrics=tuple(METRICS.values()),
    groups=(
        Group("lic", "LIC", ("LIC", "LIC_baseline", "LIC_excess", "LIC_M", "LIC_D"), default=True),
        Group("leakage", "leakage and SC", ("leakage", "SC", "SC_D"), default=True),
        Group("sc", "SC", ("SC", "SC_D")),
    ),
    options=LICOptions,
    needs=Needs(references="optional"),
    version=8,
    cost=_cost,
    run=run,
    estimates=estimates,
)
