"""DBAC: attackers that guess the value (A->T), and attackers that guess task words (T->A), the objects.

The metrics are read from sums over held-out captions, image by image, so that one function gives all variants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import OVER_SEEDS, WITHOUT_LIMIT, Counts, Metric, Needs, by_name, no_neutral, zero
from capbias_core.aggregate.counts import EVERY_SEED
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.base import Attacker, probabilities, task_probabilities
from capbias_core.data import Data
from capbias_core.errors import NotMeasurable
from capbias_core.language.device import device_of, trained_on
from capbias_core.measures.base import Group, Measure, Outcome, run_available
from capbias_core.measures.caption_side import (
    LEAST_SHARE,
    CaptionSide,
    annotated,
    both_sides,
    common_objects,
    objects_of,
    one_hot,
)
from capbias_core.measures.options import Aligned, Attacked, Split80
from capbias_core.measures.training import AttackerTrainer, attacker_of
from capbias_core.metrics.dbac import CAPTIONS, HELD_OUT, normalised, side_weight
from capbias_core.prepare.split import held_out_count, image_split
from capbias_core.prepare.tasks import mask_objects, named_words, object_names, phrases, rows_by_image
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import A_TO_T, T_TO_A, Progress, left_out_lines
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.vectors import aligner, alignment_method

SMALLEST = 1e-12
# Training images of the protocol, for which its batches are meant; fewer images are read in smaller batches.
FULL_TRAINING = 8_624
SMALLEST_BATCH = 16
ENOUGH = 5000  # images, below which a network learns less of the task words

SOURCE = "Nair et al., arXiv:2503.07878 (DBAC), Eq. 5-8, after Wang & Russakovsky, ICML 2021"
# The first lemmatises captions and labels; the script of the second passes the names of all objects, `person` too.
CODE = (
    f"{SOURCE}; the authors' code: github.com/kerner-lab/Bias-Amplification, commit 0ecaf8c, branch ush-text-dev, "
    "text/Dataset_test/datacreator.py, and github.com/24Beast/DIC, commit 56b0a3c, tests/dpic_test_with_change.py"
)
OURS = "capbias 2026, docs/statistics.md"
COLUMNS = tuple(f"{side} {name}" for side in ("model", "human") for name in (*HELD_OUT, *CAPTIONS))


def _metric(name: str, title: str, source: str, explanation: str, formula: Callable, **facts: Any) -> Metric:
    """A metric of both sides. formula: w of the model's and of the human side, each given a variant and whether the
    attacker is constant, to the value."""

    def of(*sums: np.ndarray, inverse: bool) -> np.ndarray:
        names, half = (*HELD_OUT, *CAPTIONS), len(COLUMNS) // 2
        sides = (dict[str, np.ndarray](zip(names, part, strict=True)) for part in (sums[:half], sums[half:]))
        return formula(*(partial(side_weight, columns, inverse) for columns in sides))

    usual = {"scale": 100, "neutral": zero, "range": (-100, 100), "training_twice": False}
    usual |= {"reads": COLUMNS, "of": of, "fix": lambda counts, k, direction: {"inverse": direction == T_TO_A}}
    return Metric(name, title, better="lower", source=source, explanation=explanation, **(usual | facts))


def _variant(name: str, title: str, explanation: str) -> Iterator[Metric]:
    """A way in which w of many captions becomes one number, which the paper leaves open; and w of both sides."""
    source = CODE if name == "DBAC" else SOURCE
    yield _metric(name, title, source, explanation, lambda model, human: normalised(model(name), human(name)))
    weight = {"scale": 1, "neutral": no_neutral, "range": WITHOUT_LIMIT, "training_twice": True}
    of_model, of_human = {**weight, "side": "model"}, {**weight, "side": "human"}
    yield _metric(
        f"{name}_M", f"w_M of {title}", source, "w of the model's captions.", lambda m, h: m(name), **of_model
    )
    yield _metric(f"{name}_H", f"w_H of {title}", source, "w of the human captions.", lambda m, h: h(name), **of_human)


def constant(model: Callable, human: Callable) -> np.ndarray:
    """DBAC of a constant attacker."""
    return normalised(model("DBAC", True), human("DBAC", True))


METRICS = by_name(
    *_variant(
        "DBAC",
        "DBAC, the authors' code",
        "The authors' code: the probability of the truth times the share of captions with the same task words, "
        "averaged over captions. Task words of A->T: COCO's names of one word, person too, and plurals. Ours: "
        "punctuation is split off before words are compared, and only captions held out are scored. A->T has the sign "
        "that the paper prints, and falls where captions name objects in more ways.",
    ),
    *_variant(
        "DBAC_equations",
        "DBAC, its equations, Q = 1 / cross-entropy",
        "The paper's equations with Q = 1 / cross-entropy. Above 0: the model's captions tie value and task words "
        "together more than the human ones do. A->T also rises where a model names objects more often.",
    ),
    *_variant("DBAC_accuracy", "DBAC, its equations, Q = accuracy", "The paper's equations with Q = accuracy."),
    _metric(
        "DBAC_constant",
        "DBAC of a constant attacker",
        OURS,
        "DBAC by an attacker that reads nothing and gives every answer the same probability: the part that depends "
        "only on how often words and values occur.",
        constant,
    ),
    _metric(
        "DBAC_added",
        "DBAC beyond a constant attacker",
        OURS,
        "DBAC minus that of a constant attacker: what reading the captions adds.",
        lambda model, human: normalised(model("DBAC"), human("DBAC")) - constant(model, human),
        range=(-200, 200),
    ),
)
VARIANTS = ("DBAC", "DBAC_equations", "DBAC_accuracy")
# Beginning of a metric's name -> what differs from the text of the paper (section 4.1, appendix B).
DIFFERS = {
    "DBAC_equations": (),
    "DBAC_accuracy": ("Q accuracy (paper: 1 / cross-entropy)",),
    "DBAC": ("weights of the authors' code (paper: equations 5 to 8)",),
}


@dataclass(frozen=True)
class DBACOptions(Attacked, Split80, Aligned):
    """Choices of DBAC."""


def tasks_of_captions(sides: Sequence[CaptionSide], model: str) -> tuple[list[csr_array], list[csr_array], str]:
    """Of each side (n, L) which captions name an object, and (n, ...) whose different rows are the patterns of the
    authors' code; and in words what they are. Raises NotMeasurable if captions name none."""
    for side, whose in zip(sides, (model, "people"), strict=True):
        if not side.objects.sum():
            raise NotMeasurable(
                f"The captions of {whose} name no object such as {', '.join(list(object_names())[:3])}.",
                "Check that they are in English.",
            )
    kept = np.flatnonzero(sum(side.objects.sum(axis=0) for side in sides))
    patterned = [named_words(side.encoded) for side in sides]
    return [side.objects[:, kept] for side in sides], patterned, f"{len(kept)} objects that captions name"


def tasks_of_images(
    human: CaptionSide, objects: pd.Series | None
) -> tuple[csr_array, Callable[[Tokens], list[str]], str]:
    """(n_images, L) which images have an object; captions to captions without objects; and in words what they are.
    objects: text such as `cat|dog` by image id, None if nobody annotated the images."""
    if objects is not None:
        names, on_image, _ = objects_of(human.images, objects)
        origin = "annotated on the images"
    else:
        names, origin = list(object_names()), "that the human captions of an image name"
        on_image = csr_array(rows_by_image(human.image, len(human.images)) @ human.objects)
        on_image.data[:] = 1
    kept = common_objects(on_image)
    which = f"{len(kept)} objects {origin}, each on {LEAST_SHARE:.0%} of the images or more"
    # Captions may keep no name of an object, since the attacker is to guess it: neither COCO's and its synonyms nor
    # the annotation's. COCO's come last, so that their synonyms stay where both have the name.
    table = phrases(names) | object_names()
    return csr_array(on_image[:, kept]), lambda captions: mask_objects(captions, table), which


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """Both directions, if the inputs allow them."""
    sides, attacker = both_sides(data), attacker_of(data, options)
    images, sides_of = sides[0].images, {A_TO_T: sides, T_TO_A: sides}
    if data.objects is not None and not annotated(images, data.objects).all():
        known = list(data.objects.index.intersection(images))
        sides_of[T_TO_A] = sides[0].on(known), sides[1].on(known)
    counts, notes, reasons = run_available(
        {way: partial(_count, data, options, progress, attacker, sides_of[way], way) for way in sides_of}, "DBAC "
    )
    if not attacker_entry(options.attacker).in_process and len(images) < ENOUGH:
        notes.append(
            f"Only {len(images):,} images: a network learns less of the task words from them, and T->A stays "
            "closer to 0. The paper has 10,780; compare with ngram."
        )
    own_columns: dict[str, dict[str, Any]] = {
        metric: {"differs": next(texts for variant, texts in DIFFERS.items() if metric.startswith(variant))}
        for metric in METRICS
    }
    for direction, one in counts.items():
        n = held_out_count(len(one.images), options.test_share)
        training = len(one.images) - n
        method = (
            f"{training}/{n} images, not balanced; {alignment_method(options.alignment)}; {OVER_SEEDS}"
            f"{trained_on(attacker, options.deterministic)}{small_batches(attacker, training)[1]}"
            f"{encoded_by(options.encoder)}"
        )
        own_columns[direction] = {"method": method, "n": n}
    device = {"device": device_of(attacker)}
    return Outcome(counts, device, [*notes, *left_out_lines(reasons)], own_columns=own_columns)


def small_batches(attacker: Attacker, training: int) -> tuple[Attacker, str]:
    """An attacker for so many training images, whose epochs have as many steps as those of the full protocol; and its
    method.

    Batches shrink with the training images, to 16 at the least. Attackers that read no batches stay as they are.
    """
    full = getattr(attacker, "batch", 0) if is_dataclass(attacker) else 0
    batch = max(min(full, SMALLEST_BATCH), min(full, round(full * training / FULL_TRAINING)))
    if batch == full:
        return attacker, ""
    smaller = replace(cast(Any, attacker), batch=batch)
    return smaller, f"; batches of {batch}, {full} for {FULL_TRAINING} training images"


def named_most(side: CaptionSide) -> np.ndarray:
    """(n, K) booleans: the values of which each caption has the most words, all of them if it has none.

    The authors' code takes P(a) of T->A from this, so a caption that names both genders equally often counts as one
    that names neither.
    """
    counts = [side.encoded.with_any([[word] for word in words]).sum(axis=1) for words in side.attribute.value_words]
    return np.column_stack(counts) == np.max(counts, axis=0)[:, None]


def _count(
    data: Data, options: Any, progress: Progress, attacker: Attacker, sides: Sequence[CaptionSide], direction: str
) -> tuple[Counts, str]:
    """Held-out guesses of attackers on both sides, and what all captions have; and a note.

    A->T: the value, guessed from captions whose attribute words are masked. T->A: the task words of the image, guessed
    from captions in which they are masked. A caption's group is what the authors' code takes for its attribute: of A->T
    the labelled value, of T->A the value that the caption names.
    """
    y, k, images = sides[0].y, sides[0].k, sides[0].images
    if direction == A_TO_T:
        tasks, patterned, which = tasks_of_captions(sides, data.captioner)
        truth, mask, groups = y, partial(data.masked, merge=options.merge_masks), [side.labelled for side in sides]
    else:
        on_image, mask, which = tasks_of_images(sides[1], data.objects)
        truth = on_image.toarray().astype(bool)
        tasks = patterned = [on_image[side.image] for side in sides]
        groups = [csr_array(different_rows(csr_array(named_most(side))).T) for side in sides]
    lists = [side.lists(mask) for side in sides]
    splits = [image_split(y, k, seed, options.test_share, images) for seed in options.seed_numbers]
    training, test_size = len(images) - len(splits[0].test), len(splits[0].test)
    trainer = AttackerTrainer(
        small_batches(attacker, training)[0],
        k,
        truth,
        tuple(images),
        lambda share, text: progress(((direction == T_TO_A) + share) / 2, text),
        len(splits) * sum(map(len, lists)),
        balanced=False,
        align=aligner(data.sources.frame, options.alignment),
        kept=data.resume,
    )
    parts, all_seeds = [], np.full(len(images), EVERY_SEED)
    read = (("model", "the model's captions", None), ("human", "the human captions", lists[0]))
    by_side = zip(read, sides, tasks, groups, map(different_rows, patterned), lists, strict=True)
    for (name, what, align_to), side, task, group, patterns, captions in by_side:
        of_image = rows_by_image(side.image, len(images))
        columns = (of_image @ of_caption for of_caption in (task, side.labelled, patterns.T, group))
        named = {f"{name} {column}": csr_array(sums) for column, sums in zip(CAPTIONS, columns, strict=True)}
        parts.append(Counts(trainer.images, y, named, np.arange(len(images)), all_seeds, training))
        by_seed: dict[int, dict[str, csr_array]] = {split.seed: {} for split in splits}
        for index, split, test, logits in trainer.logits(captions, splits, what, align_to):
            rows, seen = side.rows(captions[index], test), by_seed[split.seed]
            columns = held_out_columns(
                task[rows], one_hot(y[test], k), patterns[:, rows], group[rows], *_right(truth[test], logits)
            )
            for column, of_caption in columns.items():
                seen[column] = seen.get(column, 0) + rows_by_image(test, len(images)) @ of_caption
        for split in splits:
            named = {f"{name} {column}": csr_array(sums)[split.test] for column, sums in by_seed[split.seed].items()}
            parts.append(Counts(trainer.images, y, named, split.test, np.full(test_size, split.seed), training))
    sizes = f"{training:,} training and {test_size:,} test images per seed, not balanced."
    return Counts.merge(parts), " ".join([f"{which}; {sizes}", *trainer.notes])


def _right(truth: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses and right guesses of n captions, (n, 1) or (n, L), and the probability of the whole truth (n,). truth:
    (n,) codes of values, or (n, L) booleans, which task words are there."""
    if truth.ndim == 1:
        shares = probabilities(logits)
        chance = np.clip(shares[np.arange(len(truth)), truth], SMALLEST, 1)
        return -np.log(chance)[:, None], (shares.argmax(axis=1) == truth)[:, None], chance
    shares = np.clip(task_probabilities(logits), SMALLEST, 1 - SMALLEST)
    chance = np.exp(np.where(truth, np.log(shares), np.log1p(-shares)).sum(axis=1))
    return -np.log(shares), shares > 0.5, chance


def different_rows(tasks: csr_array) -> csr_array:
    """(P, n) 0 or 1: which captions have each of the P different rows of (n, ...)."""
    rows = csr_array(tasks).sorted_indices()
    rows.eliminate_zeros()
    patterns, which = Tokens(rows.indices, rows.indptr, list(map(str, range(rows.shape[1])))).distinct()
    return csr_array((np.ones(len(which)), (which, np.arange(len(which)))), shape=(len(patterns), len(which)))


def held_out_columns(
    tasks: csr_array, label: csr_array, patterns: csr_array, groups: csr_array, losses, right, chance
) -> dict[str, csr_array]:
    """(n, W) of captions held out, by the names of HELD_OUT."""

    def by_pattern(weights: csr_array) -> csr_array:
        return hstack([patterns.T.multiply(weights[:, [group]]) for group in range(groups.shape[1])])

    pairs = hstack([tasks.multiply(label[:, [value]]) for value in range(label.shape[1])])
    chances, seen = by_pattern(groups.multiply(chance[:, None]).tocsc()), by_pattern(groups.tocsc())
    columns = tasks.multiply(losses), tasks.multiply(right), pairs, chances, seen, csr_array(np.ones((len(chance), 1)))
    return dict(zip(HELD_OUT, columns, strict=True))


MEASURE = Measure(
    name="dbac",
    title="DBAC",
    position=4,
    metrics=tuple(METRICS.values()),
    groups=(
        Group("dbac", "DBAC", ("DBAC", "DBAC_M", "DBAC_H", "DBAC_constant", "DBAC_added")),
        Group("dbac_equations", "DBAC, its equations", ("DBAC_equations", "DBAC_equations_M", "DBAC_equations_H")),
        Group("dbac_accuracy", "DBAC, Q = accuracy", ("DBAC_accuracy", "DBAC_accuracy_M", "DBAC_accuracy_H")),
    ),
    options=DBACOptions,
    needs=Needs(references="required", objects="optional"),
    version=9,
    seconds=0.8,
    count=count,
)
