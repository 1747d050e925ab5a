"""DBAC: attackers that guess the value (A->T), and attackers that guess task words (T->A).

The metrics are read from sums over held-out captions, image by image, so that one function gives every variant. Task
words are objects here; `TaskWords` says what others need (dbac_verbs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import Counts
from capbias_core.aggregate.counts import EVERY_SEED
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.base import Attacker, ReadsBatches, probabilities, task_probabilities
from capbias_core.attackers.device import device_of, trained_on
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import (
    DIFFERENCE,
    Group,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    by_name,
    no_neutral,
    run_available,
    zero,
)
from capbias_core.measures.caption_side import CaptionSide, both_sides, one_hot
from capbias_core.measures.image_objects import LEAST_SHARE, annotated, common_objects, objects_of
from capbias_core.measures.options import Aligned, Attacked, Split80
from capbias_core.measures.training import AttackerTrainer, CaptionList, attacker_of
from capbias_core.metrics.dbac import accuracy, inverse_cross_entropy, normalised, pair_weight, pattern_weight
from capbias_core.prepare import held_out_count, image_split
from capbias_core.prepare.tasks import mask_objects, named_at_spaces, object_names, phrases, rows_by_image
from capbias_core.types import A_TO_T, T_TO_A, Result, left_out_lines
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.vectors import aligner, alignment_method

SMALLEST = 1e-12
# Training images of the protocol, for which its batches are meant; fewer are read in smaller ones.
FULL_TRAINING = 8_624
SMALLEST_BATCH = 16
# From fewer images than these a network learns less of the objects.
ENOUGH = 5000

SOURCE = "DBAC (directional bias amplification in captioning), Eq. 5-8, after Wang & Russakovsky, ICML 2021"
# The paper leaves open how w of many captions becomes one number: name -> title, explanation.
VARIANTS = {
    "DBAC": (
        "DBAC, the authors' code",
        "The authors' code: the probability of the truth times the share of captions with the same task words, "
        "averaged over captions. It gives the sign that the paper prints. A->T falls where captions name objects in "
        "more ways.",
    ),
    "DBAC_equations": (
        "DBAC, its equations, Q = 1 / cross-entropy",
        "The paper's equations with Q = 1 / cross-entropy. Above 0: the model's captions tie value and task words "
        "together more than the human ones do. A->T also rises where a model names objects more often.",
    ),
    "DBAC_accuracy": ("DBAC, its equations, Q = accuracy", "The paper's equations with Q = accuracy."),
}


# What of DBAC an attacker gives that has read no caption, and what one that has adds.
CONSTANT, ADDED = "DBAC_constant", "DBAC_added"


# Columns of one side; L task words, K values, P patterns of task words, G groups. Of captions held out, by seed: losses
# and right guesses by task word, pairs of value and task word (K * L), summed probabilities of the truth by group and
# pattern (G * P), how many captions these are, captions. Of all captions of the side: with each task word, value,
# pattern and group. A caption's group is what the authors' code takes for its attribute: of A->T the labelled value, of
# T->A the value that the caption names (`named_most`).
GUESSED = ("losses", "right", "pairs", "chances", "seen", "held out")
SAID = ("with task", "with value", "with pattern", "with group")
COLUMNS = tuple(f"{side} {name}" for side in ("model", "human") for name in (*GUESSED, *SAID))
Side = Callable[..., np.ndarray]  # a variant, and whether the attacker is constant, to w of one side


def _reading(formula: Callable[[Side, Side], np.ndarray]) -> dict[str, Any]:
    """Fields of a metric that reads the columns of both sides. formula: w of the model's and of the human side."""

    def of(*sums: np.ndarray, inverse: bool) -> np.ndarray:
        half = len(COLUMNS) // 2
        model, human = (
            dict[str, np.ndarray](zip((*GUESSED, *SAID), own, strict=True)) for own in (sums[:half], sums[half:])
        )
        return formula(partial(weight_of, model, inverse), partial(weight_of, human, inverse))

    return {"reads": COLUMNS, "of": of, "fix": lambda counts, k, direction: {"inverse": direction == T_TO_A}}


def amplification(name: str, title: str, explanation: str, variant: str) -> Metric:
    """DBAC itself by one variant."""
    facts = (name, title, *DIFFERENCE, SOURCE, explanation)
    return Metric(*facts, level=False, **_reading(lambda model, human: normalised(model(variant), human(variant))))


def weights(name: str, title: str, variant: str) -> tuple[Metric, Metric]:
    """w of both sides. name, title: of the variant."""
    facts = (1, no_neutral, "lower", (0, float("inf")), SOURCE)
    return (
        Metric(
            *(f"{name}_M", f"w_M of {title}", *facts, "w of the model's captions."),
            side="model",
            **_reading(lambda model, human: model(variant)),
        ),
        Metric(
            *(f"{name}_H", f"w_H of {title}", *facts, "w of the human captions."),
            side="human",
            **_reading(lambda model, human: human(variant)),
        ),
    )


def beside_constant(constant: str, added: str, title: str, variant: str) -> tuple[Metric, Metric]:
    """DBAC of an attacker that reads nothing, and what reading adds. constant, added: their names."""
    source = "capbias 2026, docs/statistics.md"

    def of_constant(model: Side, human: Side) -> np.ndarray:
        return normalised(model(variant, True), human(variant, True))

    def of_added(model: Side, human: Side) -> np.ndarray:
        return normalised(model(variant), human(variant)) - of_constant(model, human)

    return (
        Metric(
            constant,
            f"{title} of a constant attacker",
            *DIFFERENCE,
            source,
            f"{title} by an attacker that reads nothing and gives every answer the same probability: the part that "
            "depends only on how often words and values occur.",
            level=False,
            **_reading(of_constant),
        ),
        Metric(
            added,
            f"{title} beyond a constant attacker",
            100,
            zero,
            "lower",
            (-200, 200),
            source,
            f"{title} minus that of a constant attacker: what reading the captions adds.",
            level=False,
            **_reading(of_added),
        ),
    )


METRICS = by_name(
    *(amplification(name, *said, name) for name, said in VARIANTS.items()),
    *(row for name, (title, _) in VARIANTS.items() for row in weights(name, title, name)),
    *beside_constant(CONSTANT, ADDED, "DBAC", "DBAC"),
)


@dataclass(frozen=True)
class DBACOptions(Attacked, Split80, Aligned):
    """Choices of DBAC."""


class TaskWords(Protocol):
    """What counts as task words, and how an attacker reads captions without them."""

    def known(self, images: list[str]) -> list[str]:
        """Of these images those whose task words are known, for T->A."""
        ...

    def of_captions(self, sides: Sequence[CaptionSide], who: Sequence[str]) -> tuple[list[csr_array], str]:
        """(n, L) booleans of each side, which captions have them, and what they are, in words. who: whose captions each
        side has. Raises NotMeasurable where captions have none."""
        ...

    def patterns(self, side: CaptionSide) -> csr_array:
        """(n, ...) booleans whose different rows are the patterns of task words of A->T, as the authors' code reads
        them."""
        ...

    def of_images(self, sides: Sequence[CaptionSide]) -> OfImages:
        """What T->A guesses. Raises NotMeasurable where there is nothing."""
        ...


class OfImages(NamedTuple):
    """Names and (n_images, L) booleans, which images have each; captions as written to captions without any task word;
    and in words, which these are."""

    names: list[str]
    there: csr_array
    hide: Callable[[Iterable[str]], list[str]]
    which: str


@dataclass(frozen=True)
class Objects:
    """Objects as task words. annotated: text such as `cat|dog` by image id, None where nobody annotated images."""

    annotated: pd.Series | None

    def known(self, images: list[str]) -> list[str]:
        if self.annotated is None or annotated(images, self.annotated).all():
            return images
        return list(self.annotated.index.intersection(images))

    def of_captions(self, sides: Sequence[CaptionSide], who: Sequence[str]) -> tuple[list[csr_array], str]:
        every = list(object_names())
        for side, whose in zip(sides, who, strict=True):
            if not side.objects.sum():
                raise NotMeasurable(
                    f"The captions of {whose} name no object such as {', '.join(every[:3])}.",
                    "Check that they are in English.",
                )
        kept = np.flatnonzero(sum(side.objects.sum(axis=0) for side in sides))
        named = [side.objects[:, kept] for side in sides]
        return named, f"{len(kept)} objects that captions name"

    def patterns(self, side: CaptionSide) -> csr_array:
        return named_at_spaces(side.frame["caption"])

    def of_images(self, sides: Sequence[CaptionSide]) -> OfImages:
        human = sides[1]
        if self.annotated is not None:
            names, there = objects_of(human.images, self.annotated)
            origin = "annotated on the images"
        else:
            names, there = list(object_names()), on_images(human, human.objects)
            origin = "that the human captions of an image name"
        kept = common_objects(there)
        which = f"{len(kept)} objects {origin}, each on {LEAST_SHARE:.0%} of the images or more"
        # Whatever the annotation calls an object must not be left in the captions that are to tell it.
        table = object_names() | phrases(names)
        kept_names = [names[place] for place in kept]
        return OfImages(kept_names, csr_array(there[:, kept]), lambda captions: mask_objects(captions, table), which)


def on_images(side: CaptionSide, named: csr_array) -> csr_array:
    """(n_images, L) booleans: a caption of the image has it. named: (n, L) of captions of one side."""
    found = csr_array(rows_by_image(side.image, len(side.images)) @ named)
    found.data[:] = 1
    return found


@dataclass(frozen=True)
class DBAC:
    """DBAC of one kind of task words: how it runs, and what it gives.

    name: as notes call it. metrics: by name. words: a run to its task words.
    """

    name: str
    metrics: Mapping[str, Metric]
    words: Callable[[Job], TaskWords]

    def run(self, job: Job) -> Outcome:
        """Both directions, if the inputs allow them, on the images that both sides have."""
        both, words = both_sides(job), self.words(job)
        images = both[0].images
        known = words.known(images)
        directions = {A_TO_T: (_guess_value, images), T_TO_A: (_guess_tasks, known)}

        def guess(place: int, way: Callable[..., tuple[Counts, str]], own: list[str]) -> tuple[Counts, str]:
            same = own is images
            sides = both if same else [side.on(own) for side in both]
            return way(job, words, sides, _part(job, place, len(directions)))

        counts, notes, reasons = run_available(
            {name: partial(guess, place, *own) for place, (name, own) in enumerate(directions.items())}, f"{self.name} "
        )
        if not attacker_entry(job.options.attacker).in_process and len(images) < ENOUGH:
            notes.append(
                f"Only {len(images):,} images: a network learns less of the task words from them, and T->A stays "
                "closer to 0. The paper has 10,780; compare with ngram."
            )
        rows = [row for direction, own in counts.items() for row in self._rows(job, direction, own)]
        return Outcome(rows, {}, (*notes, *left_out_lines(reasons)), counts=counts)

    def _rows(self, job: Job, direction: str, counts: Counts) -> list[Result]:
        options = job.options
        n = held_out_count(len(counts.images), options.test_share)
        attacker, batches = _attacker(job, counts.images)
        device = device_of(attacker)
        method = (
            f"{len(counts.images) - n}/{n} images, not balanced; {alignment_method(options.alignment)}; std over "
            f"seeds{trained_on(attacker, options.deterministic)}{batches}"
            f"{encoded_by(options.encoder)}"
        )
        return job.rows(self.metrics.values(), counts, method, direction, n, device=device)


def _part(job: Job, place: int, parts: int) -> Callable[[float, str], None]:
    """The progress of one of several parts as that of the run."""
    return lambda share, text: job.progress((place + share) / parts, text)


def small_batches(attacker: Attacker, training: int) -> tuple[Attacker, str]:
    """An attacker for so many training images, whose epochs have as many steps as those of the full protocol; and its
    method.

    Batches shrink with the training images, to 16 at the least. Attackers that read no batches stay as they are.
    """
    if not isinstance(attacker, ReadsBatches):
        return attacker, ""
    full = attacker.batch
    batch = max(min(full, SMALLEST_BATCH), min(full, round(full * training / FULL_TRAINING)))
    if batch == full:
        return attacker, ""
    return attacker.with_batch(batch), f"; batches of {batch}, {full} for {FULL_TRAINING} training images"


def _guess_value(job: Job, words: TaskWords, sides: Sequence[CaptionSide], progress) -> tuple[Counts, str]:
    """A->T: the value guessed from captions whose attribute words are masked."""
    named, which = words.of_captions(sides, (job.spec.model, "people"))
    y = sides[0].y

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = probabilities(logits)
        chance = np.clip(shares[np.arange(len(test)), y[test]], SMALLEST, 1)
        return -np.log(chance)[:, None], (shares.argmax(axis=1) == y[test])[:, None], chance

    lists = [side.lists(job.masked) for side in sides]
    trainer = _trainer(job, sides, y, progress)
    groups = [side.labelled for side in sides]
    patterns = [words.patterns(side) for side in sides]
    counts = _counts(trainer, job, sides, lists, named, patterns, groups, truth)
    return counts, " ".join([f"{which}; {_sizes(job, sides)}", *trainer.notes])


def _guess_tasks(job: Job, words: TaskWords, sides: Sequence[CaptionSide], progress) -> tuple[Counts, str]:
    """T->A: task words of the image guessed from captions in which they are masked."""
    _, on_image, hide, which = words.of_images(sides)
    there = on_image.toarray().astype(bool)

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = np.clip(task_probabilities(logits), SMALLEST, 1 - SMALLEST)
        chance = np.exp(np.where(there[test], np.log(shares), np.log1p(-shares)).sum(axis=1))
        return -np.log(shares), shares > 0.5, chance

    lists = [side.lists(hide) for side in sides]
    tasks = [on_image[side.image] for side in sides]
    trainer = _trainer(job, sides, there, progress)
    groups = [csr_array(_patterns(csr_array(named_most(side))).T) for side in sides]
    counts = _counts(trainer, job, sides, lists, tasks, tasks, groups, truth)
    return counts, " ".join([f"{which}; {_sizes(job, sides)}", *trainer.notes])


def named_most(side: CaptionSide) -> np.ndarray:
    """(n, K) booleans: the values of which each caption has the most words, all of them where it has none.

    The authors' code takes P(a) of T->A from this, so a caption that names both genders alike counts as one that names
    none.
    """
    words = [side.with_words(own) for own in side.attribute.value_words]
    counts = np.column_stack([np.asarray(own.sum(axis=1)).ravel() for own in words])
    return counts == counts.max(axis=1, keepdims=True)


def _trainer(job: Job, sides: Sequence[CaptionSide], y: np.ndarray, progress) -> AttackerTrainer:
    """What trains the attackers of one direction. y: what they guess, by image."""
    images, align = sides[0].images, aligner(job.workspace, job.options.alignment)
    attacker, _ = _attacker(job, images)
    return AttackerTrainer(attacker, sides[0].k, y, tuple(images), progress, 1, balanced=False, align=align)


def _attacker(job: Job, images: Sequence[str]) -> tuple[Attacker, str]:
    """The attacker of a run, as `small_batches` gives it."""
    return small_batches(attacker_of(job), len(images) - held_out_count(len(images), job.options.test_share))


def _sizes(job: Job, sides: Sequence[CaptionSide]) -> str:
    images = len(sides[0].images)
    test = held_out_count(images, job.options.test_share)
    return f"{images - test:,} training and {test:,} test images per seed, not balanced."


def _counts(
    trainer: AttackerTrainer,
    job: Job,
    sides: Sequence[CaptionSide],
    lists: list[list[CaptionList]],
    tasks: list[csr_array],
    patterned: list[csr_array],
    groups: list[csr_array],
    truth: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> Counts:
    """Held-out guesses of attackers on both sides, and what all captions have.

    tasks: (n, L) booleans of each side, which task words belong to a caption. patterned: (n, ...) booleans of each side
    whose different rows are patterns. groups: (n, G), its group (`COLUMNS`). truth: of test images and logits, losses
    and right guesses, (n, 1) or (n, L), and the probability of the whole truth (n,).
    """
    images, y, k, parts = trainer.images, sides[0].y, sides[0].k, []
    splits = [image_split(y, k, seed, job.options.test_share, images) for seed in job.spec.seeds]
    training = len(images) - len(splits[0].test)
    trainer.fits = len(splits) * sum(map(len, lists))
    read = (("model", "the model's captions", None), ("human", "the human captions", lists[0]))
    for place, (name, what, align_to) in enumerate(read):
        side, own, group, patterns = sides[place], tasks[place], groups[place], _patterns(patterned[place])
        of_image = rows_by_image(side.image, len(images))
        said = {"with task": own, "with value": side.labelled, "with pattern": patterns.T, "with group": group}
        columns = {f"{name} {column}": csr_array(of_image @ of_caption) for column, of_caption in said.items()}
        every = np.full(len(images), EVERY_SEED)
        parts.append(Counts(images, y, columns, np.arange(len(images)), every, training))
        by_seed: dict[int, dict[str, csr_array]] = {split.seed: {} for split in splits}
        for index, split, test, logits in trainer.logits(lists[place], splits, what, align_to):
            rows, label, seen = side.rows(lists[place][index], test), one_hot(y[test], k), by_seed[split.seed]
            found = _guessed(own[rows], label, patterns[:, rows], group[rows], truth(test, logits))
            for column, of_caption in found.items():
                seen[column] = seen.get(column, 0) + rows_by_image(test, len(images)) @ of_caption
        for split in splits:
            columns = {f"{name} {column}": csr_array(sums)[split.test] for column, sums in by_seed[split.seed].items()}
            parts.append(Counts(images, y, columns, split.test, np.full(len(split.test), split.seed), training))
    return Counts.merge(parts)


def _patterns(tasks: csr_array) -> csr_array:
    """(P, n) booleans: which captions have each of the patterns of task words that occur."""
    rows = csr_array(tasks).sorted_indices()
    rows.eliminate_zeros()
    words = np.split(rows.indices, rows.indptr[1:-1])
    which, patterns = pd.factorize(np.array([own.tobytes() for own in words], dtype=object))
    return csr_array((np.ones(len(which)), (which, np.arange(len(which)))), shape=(len(patterns), len(which)))


def _guessed(
    tasks: csr_array, label: csr_array, patterns: csr_array, groups: csr_array, truth: tuple
) -> dict[str, csr_array]:
    """(n, W) of captions held out, by the names of GUESSED."""
    losses, right, chance = truth

    def by_pattern(weights: csr_array) -> csr_array:
        return hstack([patterns.T.multiply(weights[:, [group]]) for group in range(groups.shape[1])])

    return {
        "losses": tasks.multiply(losses),
        "right": tasks.multiply(right),
        "pairs": hstack([tasks.multiply(label[:, [value]]) for value in range(label.shape[1])]),
        "chances": by_pattern(groups.multiply(chance[:, None]).tocsc()),
        "seen": by_pattern(groups.tocsc()),
        "held out": csr_array(np.ones((len(chance), 1))),
    }


def weight_of(sums: Mapping[str, np.ndarray], inverse: bool, variant: str, constant: bool = False) -> np.ndarray:
    """w of one side by a variant, (...). Frequencies are those of the same sums.

    sums: (..., W) by the names of GUESSED and SAID. inverse: P(a) / P(t) (T->A) in place of P(t) / P(a). constant: of
    an attacker that always gives the same, up to a factor that both sides share. Its quality is the same for every task
    word, so it is left out.
    """
    if variant == "DBAC":
        ratio = _ratio(sums["with pattern"], sums["with group"], inverse)
        chances = sums["seen" if constant else "chances"].reshape(ratio.shape)
        return pattern_weight((chances * ratio).sum(axis=(-2, -1)), sums["held out"][..., 0])
    ratio = _ratio(sums["with task"], sums["with value"], inverse)
    pairs = sums["pairs"].reshape(ratio.shape)
    captions = pairs.sum(axis=-2)
    if constant:
        quality = np.ones_like(captions)
    elif variant == "DBAC_accuracy":
        quality = accuracy(sums["right"], captions)
    else:
        quality = inverse_cross_entropy(sums["losses"], captions)
    return pair_weight(quality, pairs, ratio)


def _ratio(tasks: np.ndarray, values: np.ndarray, inverse: bool) -> np.ndarray:
    """(..., L) and (..., K) captions to (..., K, L) P(t) / P(a), or its inverse; 0 if a task word never occurs."""
    tasks, values = tasks[..., None, :], values[..., :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(values / tasks if inverse else tasks / values, nan=0.0, posinf=0.0)


OBJECTS = DBAC("DBAC", METRICS, lambda job: Objects(job.objects()))

MEASURE = Measure(
    name="dbac",
    title="DBAC",
    place=4,
    metrics=tuple(METRICS.values()),
    groups=(
        Group("dbac", "DBAC", ("DBAC", "DBAC_M", "DBAC_H", CONSTANT, ADDED)),
        Group("dbac_equations", "DBAC, its equations", ("DBAC_equations", "DBAC_equations_M", "DBAC_equations_H")),
        Group("dbac_accuracy", "DBAC, Q = accuracy", ("DBAC_accuracy", "DBAC_accuracy_M", "DBAC_accuracy_H")),
    ),
    options=DBACOptions,
    needs=Needs(references="required", objects="optional"),
    version=7,
    seconds=0.6,
    run=OBJECTS.run,
)
