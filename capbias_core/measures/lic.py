"""LIC, leakage and SC: attackers guess the labelled value from masked captions, on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from capbias_core.aggregate import OVER_SEEDS, Counts, Needs, by_name, estimates_of
from capbias_core.attackers import attacker_entry
from capbias_core.data import Data, images_in
from capbias_core.language.device import device_of, trained_on
from capbias_core.measures.base import Group, Measure, Outcome
from capbias_core.measures.options import Aligned, Attacked, Seeded
from capbias_core.measures.training import (
    HUMAN,
    HUMAN_BY_MODEL,
    MODEL,
    MODEL_BY_HUMAN,
    AttackerTrainer,
    CaptionList,
    Guesses,
    amplification,
    attacker_of,
    caption_lists,
    score,
)
from capbias_core.metrics.lic import lic_of_naming, right_predictions
from capbias_core.prepare.labels import cells_of, parts_of
from capbias_core.prepare.split import balanced_split
from capbias_core.prepare.text import words_for
from capbias_core.types import Attribute, Progress
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.spec import WITH_REFERENCES
from capbias_core.workspace.vectors import aligner, alignment_method

_LIC = "Hirota et al., CVPR 2022"
FEW_IMAGES = 2000
MUCH = 0.5  # of LIC, from which it is remarked that naming alone gives it
COPIED = 0.9  # share of captions that are human ones, from which it is remarked
# Times as long as the other side, from which the verdict must hold at equal length too: docs/statistics.md.
LONGER = 1.1
CUT = " cut"  # ends the name of a side at equal length
CROSSED = "capbias 2026, docs/statistics.md"
CUTS: tuple[str, ...] = ("LIC_cut", "LIC_by_H_cut", "LIC_by_M_cut")
ABOUT_EQUAL = "captions and human captions are about equally long"

METRICS = by_name(
    replace(
        amplification(
            "LIC",
            "LIC, bias amplification",
            f"{_LIC}, Eq. 11",
            "LIC_M minus LIC_D. Above 0: an attacker names the labelled value better, and more surely, from the "
            "model's masked captions than from the human ones.",
            "sure",
        ),
        judged_by=(("LIC_by_H", "LIC_by_M"), ("LIC_by_H_cut", "LIC_by_M_cut")),
    ),
    amplification(
        "LIC_by_H",
        "LIC_by_H, difference by the attacker trained on human captions",
        CROSSED,
        "LIC_HM minus LIC_D: the same attacker, trained on human captions, reads both sides. It is at home with human "
        "captions, so above 0 the captioner amplifies.",
        "sure",
        MODEL_BY_HUMAN,
    ),
    amplification(
        "LIC_by_M",
        "LIC_by_M, difference by the attacker trained on the model's captions",
        CROSSED,
        "LIC_M minus LIC_MH: the same attacker, trained on the model's captions, reads both sides. It is at home with "
        "the model's captions, so below 0 the captioner reduces.",
        "sure",
        MODEL,
        HUMAN_BY_MODEL,
        training_twice=True,  # added once, `reduces` is wrong too often: docs/statistics.md
    ),
    *(
        amplification(
            f"{name}_cut",
            f"{name}_cut, {name} at equal length",
            CROSSED,
            f"{name} with the captions of the longer side cut, so that both sides have equally many words on average. "
            f"Measured only if the lengths differ by more than {LONGER - 1:.0%}; the verdict must hold here too.",
            "sure",
            f"{model}{CUT}",
            f"{human}{CUT}",
            training_twice=name == "LIC_by_M",
        )
        for name, model, human in (
            ("LIC", MODEL, HUMAN),
            ("LIC_by_H", MODEL_BY_HUMAN, HUMAN),
            ("LIC_by_M", MODEL, HUMAN_BY_MODEL),
        )
    ),
    score(
        "LIC_M",
        "LIC_M, leakage of the model's captions",
        f"{_LIC}, Eq. 10",
        "Mean confidence of the attacker where it is right, 0 where it is wrong, on the model's masked captions.",
        "sure",
    ),
    score(
        "LIC_D",
        "LIC_D, leakage of the human captions",
        f"{_LIC}, Eq. 9",
        "The same on the human captions, after words that the model never uses became <unk>.",
        "sure",
        HUMAN,
    ),
    score(
        "LIC_HM",
        "LIC_HM, trained on human captions, tested on the model's",
        CROSSED,
        "The score of LIC_M, by the attacker of LIC_D: trained on human captions, tested on the model's.",
        "sure",
        MODEL_BY_HUMAN,
    ),
    score(
        "LIC_MH",
        "LIC_MH, trained on the model's captions, tested on human ones",
        CROSSED,
        "The score of LIC_D, by the attacker of LIC_M: trained on the model's captions, tested on human ones.",
        "sure",
        HUMAN_BY_MODEL,
    ),
    amplification(
        "leakage",
        "leakage, difference of accuracies",
        f"Wang et al., ICCV 2019; {_LIC}, Eq. 4",
        "SC of the model's captions minus SC of the human captions.",
        "right",
    ),
    score(
        "SC",
        "SC, the attacker's accuracy",
        f"Zhao et al., ICCV 2021; {_LIC}, Eq. 1",
        "Share of the model's masked captions whose labelled value the attacker names.",
        "right",
    ),
    score(
        "SC_D",
        "SC_D, accuracy on the human captions",
        f"Zhao et al., ICCV 2021; {_LIC}, Eq. 1",
        "The same accuracy on the human captions.",
        "right",
        HUMAN,
    ),
)


@dataclass(frozen=True)
class LICOptions(Attacked, Seeded, Aligned):
    """Choices of LIC."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Without a number of seeds that of the attacker."""
        options = super().read(given)
        return options if "seeds" in given else replace(options, seeds=attacker_entry(options.attacker).seeds)


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """Attackers on the model's captions and, with references, on the human ones; each then reads both sides."""
    attribute = data.attribute
    known, human = images_in(data.frame), data.human
    if human is not None:
        known &= images_in(human)
    images = tuple(sorted(known))
    y, k = data.codes(images), len(attribute.values)
    splits = [balanced_split(y, k, seed, options.test_share, images) for seed in options.seed_numbers]
    lists = [caption_lists(data.frame, data.masked(data.tokens(data.frame), options.merge_masks), images, y, k)]
    if human is not None:
        lists.append(caption_lists(human, data.masked(data.tokens(human), options.merge_masks), images, y, k))
    equal = at_equal_length(*lists) if human is not None else None
    attacker, align = attacker_of(data, options), aligner(data.sources.frame, options.alignment)
    fits = (2 if equal else 1) * len(splits) * sum(map(len, lists))
    trainer = AttackerTrainer(attacker, k, y, images, progress, fits, align=align, kept=data.resume)
    if human is None:
        sides = {MODEL: trainer.held_out(lists[0], splits, "the model's captions")}
    else:
        sides = trainer.crossed(lists[0], lists[1], splits)
    counts = [guesses.counts(name, _named_parts(attribute, guesses)) for name, guesses in sides.items()]
    if equal:
        counts += [guesses.counts(f"{name}{CUT}") for name, guesses in trainer.crossed(*equal.lists, splits).items()]
    counts = Counts.merge(counts)
    train, test = len(splits[0].train), len(splits[0].test)
    method = f"{train}/{test} balanced images; {OVER_SEEDS}"
    if human is not None:
        method += f"; {alignment_method(options.alignment)}"
    if options.merge_masks:
        method += "; runs of masks merged"
    method += trained_on(attacker, options.deterministic) + encoded_by(options.encoder)
    columns = {"method": method, "n": test, "device": device_of(attacker)}
    cut = {"method": f"at equal length: {equal.text}; {method}"} if equal else {}
    chance = attribute.chance
    digits = 1 if round(chance, 1) == chance else 2  # 25.0, and 6.25 of four values
    notes = [
        f"{train:,} training and {test:,} test images per seed, balanced; chance for LIC_M and LIC_D is "
        f"{chance:.{digits}f}."
    ]
    if data.coverage == WITH_REFERENCES:
        notes.append(
            f"Only {len(images):,} of the {len(data.labels):,} labelled images have both captions and references: "
            f"LIC_D and LIC are measured on {train + test:,} balanced images, {test:,} held out per seed."
        )
    if option := options.alignment:
        notes.append(
            "Contextual alignment: human words that the model never uses became its nearest word by "
            f"{option['name']} where the cosine distance is below {option['delta']:g}, else <unk>."
        )
    if equal:
        notes.append(f"At equal length: {equal.text}. The verdict must hold there too (LIC_by_H_cut, LIC_by_M_cut).")
    if train + test < FEW_IMAGES:
        notes.append(f"Few images: {train + test:,} after balancing. Expect wide intervals and weaker attackers.")
    notes += trainer.notes
    lacking = {} if equal or human is None else dict.fromkeys(CUTS, ABOUT_EQUAL)
    notes = [*_remarks(data, human, lists, y, counts), *dict.fromkeys(notes)]
    return Outcome(counts, columns, notes, lacking, dict.fromkeys(CUTS, cut))


@dataclass(frozen=True)
class EqualLength:
    """Both sides with the longer one cut."""

    lists: tuple[list[CaptionList], list[CaptionList]]  # of the model and of people
    text: str  # what was cut, and why


def at_equal_length(model: list[CaptionList], human: list[CaptionList]) -> EqualLength | None:
    """Both sides at equal length: captions of the longer one keep their first words, as many as make both equally long
    on average. None if their lengths differ by no more than LONGER."""
    sides = {"captions": model, "human captions": human}
    words = {name: np.concatenate([captions.masked.lengths for captions in side]) for name, side in sides.items()}
    shorter, longer = sorted(sides, key=lambda name: words[name].mean())
    few, many = words[shorter].mean(), words[longer].mean()
    if many <= LONGER * few:
        return None
    most = words_for(words[longer], few)
    cut = [replace(captions, masked=captions.masked.first(most)) for captions in sides[longer]]
    lists = (cut, human) if longer == "captions" else (model, cut)
    return EqualLength(lists, f"{longer} ({many:.1f} words on average) cut after {most}, {shorter} have {few:.1f}")


def _named_parts(attribute: Attribute, guesses: Guesses) -> dict[str, np.ndarray]:
    """Of a crossed attribute, whether each guess names the value of one of its two attributes; probabilities are summed
    over the other."""
    names, pairs = parts_of(attribute.name), cells_of(attribute.values)
    right = {}
    for number, name in enumerate(names if names and pairs else ()):
        code, _ = pd.factorize(np.array([pair[number] for pair in pairs], dtype=object))
        shares = np.stack([guesses.probabilities[:, code == part].sum(axis=1) for part in range(code.max() + 1)], 1)
        right[f"right {name}"] = right_predictions(shares, code[guesses.label])
    return right


def _remarks(
    data: Data, human: pd.DataFrame | None, lists: Sequence[list[CaptionList]], y: np.ndarray, counts: Counts
) -> Iterator[str]:
    """Remarks on captions that LIC does not measure well. lists: of the model and, with references, of people."""
    attribute, k, shares = data.attribute, len(data.attribute.values), []
    for whose, side in zip(("caption", "human caption"), lists, strict=False):
        label = np.concatenate([y[captions.images] for captions in side])
        named = np.concatenate(
            [captions.masked.with_any([[attribute.mask_token]]).toarray().ravel() for captions in side]
        )
        # (K,) of the captions of each labelled value those that name a value
        shares.append(np.bincount(label, named, k) / np.maximum(np.bincount(label, minlength=k), 1))
        if attribute.masked_words and not shares[-1].any():
            yield f"No {whose} names a value of {attribute.name}, so nothing was masked."

    if human is not None:
        pairs, written = (
            list(zip(frame["image_id"].to_numpy(object), frame["caption"].to_numpy(object), strict=True))
            for frame in (data.frame, human)
        )
        written, known = set(written), images_in(human)
        copied = [pair in written for pair in pairs if pair[0] in known]
        if copied and (share := sum(copied) / len(copied)) >= COPIED:
            yield (
                f"{share:.0%} of the captions are, word for word, human captions of the same image: LIC compares "
                "people's captions with themselves."
            )

    # Much of LIC, or of LIC_M above chance, may come from which captions name a value, whichever it is.
    metric = METRICS["LIC_M" if human is None else "LIC"]
    (estimate,) = estimates_of([metric], counts, attribute.values).values()
    value, low, neutral = estimate.value, estimate.interval()[0], metric.neutral(k)
    alone = 100 * (lic_of_naming(shares[0]) - sum(lic_of_naming(share) for share in shares[1:]))
    if (value if low is None else low) > neutral and alone - neutral >= MUCH * (value - neutral):
        model, *people = (
            " and ".join(f"{part:.0%} of {name}" for part, name in zip(share, attribute.values, strict=True))
            for share in shares
        )
        of_people = f"; of the human captions {people[0]}" if people else ""
        yield (
            f"Whether a caption names any {attribute.name} already reveals much. Captions that do, by label: {model}"
            f"{of_people}. An attacker that reads only this has {metric.name} {alone:.1f}; the one that reads all "
            f"words has {value:.1f}."
        )


MEASURE = Measure(
    name="lic",
    title="LIC",
    position=1,
    metrics=tuple(METRICS.values()),
    groups=(
        Group("lic", "LIC", ("LIC", "LIC_by_H", "LIC_by_M", *CUTS, "LIC_M", "LIC_D", "LIC_HM", "LIC_MH"), default=True),
        Group("leakage", "leakage and SC", ("leakage", "SC", "SC_D"), default=True),
        Group("sc", "SC", ("SC", "SC_D")),
    ),
    options=LICOptions,
    needs=Needs(references="optional"),
    version=11,
    balanced=True,
    seconds=0.05,
    count=count,
)
