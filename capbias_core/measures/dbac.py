"""DBAC: attackers that guess the value (A->T), and attackers that guess task words (T->A).

The metrics are read from sums over held-out captions, image by image, so that one function gives every variant. Task
words are objects here; `TaskWords` says what others need (dbac_verbs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, vstack

from capbias_core.aggregate import Estimate, Refits, shared_intervals
from capbias_core.attackers import attacker_entry
from capbias_core.attackers.base import Attacker, ReadsBatches, probabilities, task_probabilities
from capbias_core.attackers.device import device_of, trained_on
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import (
    Group,
    Job,
    Measure,
    Metric,
    Needs,
    Outcome,
    by_name,
    from_npz,
    no_neutral,
    run_available,
    to_npz,
    zero,
)
from capbias_core.measures.caption_side import CaptionSide, both_sides, one_hot
from capbias_core.measures.image_objects import LEAST_SHARE, annotated, common_objects, objects_of
from capbias_core.measures.options import Aligned, Attacked, Split80
from capbias_core.measures.training import AttackerTrainer, CaptionList, attacker_of
from capbias_core.metrics.dbac import accuracy, inverse_cross_entropy, normalised, pair_weight, pattern_weight
from capbias_core.prepare import held_out_count, image_split
from capbias_core.prepare.tasks import mask_objects, named_at_spaces, object_names, phrases
from capbias_core.types import A_TO_T, T_TO_A, Result, left_out_lines
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.store import RunRow, Workspace
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


def amplification(name: str, title: str, explanation: str) -> Metric:
    """DBAC itself by one variant."""
    return Metric(name, title, 100, zero, "lower", (-100, 100), SOURCE, explanation)


def weights(name: str, title: str) -> tuple[Metric, Metric]:
    """w of both sides. name, title: of the variant."""
    high = float("inf")
    return (
        Metric(
            f"{name}_M",
            f"w_M of {title}",
            1,
            no_neutral,
            "lower",
            (0, high),
            SOURCE,
            "w of the model's captions.",
            side="model",
        ),
        Metric(
            f"{name}_H",
            f"w_H of {title}",
            1,
            no_neutral,
            "lower",
            (0, high),
            SOURCE,
            "w of the human captions.",
            side="human",
        ),
    )


def beside_constant(constant: str, added: str, title: str) -> tuple[Metric, Metric]:
    """DBAC of an attacker that reads nothing, and what reading adds. constant, added: their names."""
    source = "capbias 2026, docs/statistics.md"
    return (
        Metric(
            constant,
            f"{title} of a constant attacker",
            100,
            zero,
            "lower",
            (-100, 100),
            source,
            f"{title} by an attacker that reads nothing and gives every answer the same probability: the part that "
            "depends only on how often words and values occur.",
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
        ),
    )


METRICS = by_name(
    *(amplification(name, *said) for name, said in VARIANTS.items()),
    *(row for name, (title, _) in VARIANTS.items() for row in weights(name, title)),
    *beside_constant(CONSTANT, ADDED, "DBAC"),
)


@dataclass(frozen=True)
class DBACOptions(Attacked, Split80, Aligned):
    """Choices of DBAC."""


@dataclass(frozen=True)
class Layout:
    """The columns of one side: by name, how many; L task words, K values, P patterns of task words, G groups.

    Of captions held out: losses and right guesses by task word, pairs of value and task word, summed probabilities of
    the truth by group and pattern, how many captions these are (seen), captions. Of all captions of the side: with each
    task word, value, pattern and group. A caption's group is what the authors' code takes for its attribute: of A->T
    the labelled value, of T->A the value that the caption names (`named_most`).
    """

    k: int
    tasks: int
    patterns: int
    groups: int

    def widths(self) -> dict[str, int]:
        k, n_tasks, patterns, groups = self.k, self.tasks, self.patterns, self.groups
        return {
            "losses": n_tasks,
            "right": n_tasks,
            "pairs": k * n_tasks,
            "chances": groups * patterns,
            "seen": groups * patterns,
            "held_out": 1,
            "with_task": n_tasks,
            "with_value": k,
            "with_pattern": patterns,
            "with_group": groups,
        }

    @property
    def width(self) -> int:
        """How many columns there are."""
        return sum(self.widths().values())

    def parts(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """(..., C) sums by name; pairs as (..., K, L), chances and seen as (..., G, P)."""
        names = list(self.widths())
        found = dict(zip(names, np.split(sums, np.cumsum(list(self.widths().values()))[:-1], axis=-1), strict=True))
        by_pattern = (self.groups, self.patterns)
        for name, rows, width in (("pairs", self.k, self.tasks), ("chances", *by_pattern), ("seen", *by_pattern)):
            found[name] = found[name].reshape(*sums.shape[:-1], rows, width)
        return found


@dataclass(frozen=True)
class Evidence:
    """Held-out guesses of one direction and what all captions say, image by image.

    tasks: L names. layouts: of the model's columns and of the human ones. guesses: of each seed the columns of captions
    held out, (n_images, C_M + C_H). said: those of all captions; what is of the other kind is 0 in both.
    held_out: (S, n_images) booleans, the images that each seed tests. inverse: P(a) / P(t) (T->A) in the place of
    P(t) / P(a).
    """

    images: tuple[str, ...]
    tasks: tuple[str, ...]
    layouts: tuple[Layout, Layout]
    guesses: tuple[csr_array, ...]
    said: csr_array
    held_out: np.ndarray
    inverse: bool

    @cached_property
    def sums(self) -> csr_array:
        """(n_images, C_M + C_H), guesses summed over seeds."""
        return csr_array(sum(self.guesses, self.said))

    @cached_property
    def seed_sums(self) -> np.ndarray:
        """(S, C_M + C_H) over images."""
        return self.sums_of_seeds(self.held_out)

    def sums_of_seeds(self, kept: np.ndarray) -> np.ndarray:
        """(S, C_M + C_H) over some of the images held out, (S, n_images) booleans; what is said counts of every image
        but those that no seed keeps and some held out."""
        there = kept.any(axis=0) | ~self.held_out.any(axis=0)
        said = _total(self.said[there])
        return np.stack([_total(own[images]) + said for own, images in zip(self.guesses, kept, strict=True)])

    @property
    def refits(self) -> Refits:
        """The attackers."""
        training = int((~self.held_out[0]).sum())
        return Refits(tuple(range(len(self.guesses))), self.held_out, training, self.sums_of_seeds)


class TaskWords(Protocol):
    """What counts as task words, and how an attacker reads captions without them."""

    def known(self, images: list[str]) -> list[str]:
        """Of these images those whose task words are known, for T->A."""
        ...

    def of_captions(self, sides: Sequence[CaptionSide], who: Sequence[str]) -> tuple[list[str], list[csr_array], str]:
        """Names, (n, L) booleans of each side, which captions have them, and the same in words. who: whose captions
        each side has. Raises NotMeasurable where captions have none."""
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

    def of_captions(self, sides: Sequence[CaptionSide], who: Sequence[str]) -> tuple[list[str], list[csr_array], str]:
        every = list(object_names())
        for side, whose in zip(sides, who, strict=True):
            if not side.objects.sum():
                raise NotMeasurable(
                    f"The captions of {whose} name no object such as {', '.join(every[:3])}.",
                    "Check that they are in English.",
                )
        kept = np.flatnonzero(sum(side.objects.sum(axis=0) for side in sides))
        named = [side.objects[:, kept] for side in sides]
        return [every[place] for place in kept], named, f"{len(kept)} objects that captions name"

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
    found = csr_array(_by_image(side.image, len(side.images)) @ named)
    found.data[:] = 1
    return found


@dataclass(frozen=True)
class DBAC:
    """DBAC of one kind of task words: how it runs, and how its evidence is read.

    name: as notes call it. metrics: by name. words: a run to its task words. estimates_of: evidence to every metric.
    """

    name: str
    metrics: Mapping[str, Metric]
    words: Callable[[Job], TaskWords]
    estimates_of: Callable[[Evidence], dict[str, Estimate]]

    def run(self, job: Job) -> Outcome:
        """Both directions, if the inputs allow them, on the images that both sides have."""
        both, words = both_sides(job), self.words(job)
        images = both[0].images
        known = words.known(images)
        directions = {A_TO_T: (_guess_value, images), T_TO_A: (_guess_tasks, known)}

        def guess(place: int, way: Callable[..., tuple[Evidence, str]], own: list[str]) -> tuple[Evidence, str]:
            same = own is images
            sides = both if same else [side.on(own) for side in both]
            return way(job, words, sides, _part(job, place, len(directions)))

        evidence, notes, reasons = run_available(
            {name: partial(guess, place, *own) for place, (name, own) in enumerate(directions.items())}, f"{self.name} "
        )
        if not attacker_entry(job.options.attacker).in_process and len(images) < ENOUGH:
            notes.append(
                f"Only {len(images):,} images: a network learns less of the task words from them, and T->A stays "
                "closer to 0. The paper has 10,780; compare with ngram."
            )
        results = [row for direction, own in evidence.items() for row in self._results(job, direction, own)]
        return Outcome(
            results, {name: evidence_bytes(own) for name, own in evidence.items()}, (*notes, *left_out_lines(reasons))
        )

    def _results(self, job: Job, direction: str, evidence: Evidence) -> list[Result]:
        options, found = job.options, self.estimates_of(evidence)
        n = held_out_count(len(evidence.images), options.test_share)
        attacker, batches = _attacker(job, evidence.images)
        device, first = device_of(attacker), next(iter(found.values()))
        method = (
            f"{len(evidence.images) - n}/{n} images, not balanced; {alignment_method(options.alignment)}; std over "
            f"seeds; {first.interval_method}{trained_on(attacker, options.deterministic)}{batches}"
            f"{encoded_by(options.encoder)}"
        )
        intervals = shared_intervals(found)
        return [
            job.result(self.metrics[name], own, n, method, direction, intervals[name], device=device)
            for name, own in found.items()
        ]

    def estimates(self, workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
        """The estimates of a finished run again from its sums, by metric and direction."""
        found = {}
        for direction in workspace.results([run.run_id])["direction"].unique():
            evidence = evidence_from(workspace.array(run.run_id, direction))
            found |= {(name, direction): own for name, own in self.estimates_of(evidence).items()}
        return found


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


def _guess_value(job: Job, words: TaskWords, sides: Sequence[CaptionSide], progress) -> tuple[Evidence, str]:
    """A->T: the value guessed from captions whose attribute words are masked."""
    names, named, which = words.of_captions(sides, (job.spec.model, "people"))
    y = sides[0].y

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = probabilities(logits)
        chance = np.clip(shares[np.arange(len(test)), y[test]], SMALLEST, 1)
        return -np.log(chance)[:, None], (shares.argmax(axis=1) == y[test])[:, None], chance

    lists = [side.lists(job.masked) for side in sides]
    trainer = _trainer(job, sides, y, progress)
    groups = [side.labelled for side in sides]
    patterns = [words.patterns(side) for side in sides]
    evidence = _evidence(trainer, job, sides, lists, names, named, patterns, groups, truth, inverse=False)
    return evidence, " ".join([f"{which}; {_sizes(job, sides)}", *trainer.notes])


def _guess_tasks(job: Job, words: TaskWords, sides: Sequence[CaptionSide], progress) -> tuple[Evidence, str]:
    """T->A: task words of the image guessed from captions in which they are masked."""
    names, on_image, hide, which = words.of_images(sides)
    there = on_image.toarray().astype(bool)

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = np.clip(task_probabilities(logits), SMALLEST, 1 - SMALLEST)
        chance = np.exp(np.where(there[test], np.log(shares), np.log1p(-shares)).sum(axis=1))
        return -np.log(shares), shares > 0.5, chance

    lists = [side.lists(hide) for side in sides]
    tasks = [on_image[side.image] for side in sides]
    trainer = _trainer(job, sides, there, progress)
    groups = [csr_array(_patterns(csr_array(named_most(side))).T) for side in sides]
    evidence = _evidence(trainer, job, sides, lists, names, tasks, tasks, groups, truth, inverse=True)
    return evidence, " ".join([f"{which}; {_sizes(job, sides)}", *trainer.notes])


def named_most(side: CaptionSide) -> np.ndarray:
    """(n, K) booleans: the values of which each caption has the most words, all of them where it has none.

    The authors' code takes P(a) of T->A from this, so a caption that names both genders alike counts as one that names
    none.
    """
    words = [side.encoded.with_words(list(own)) for own in side.attribute.value_words]
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


def _by_image(image: np.ndarray, n_images: int) -> csr_array:
    """(n_images, n) that sums rows of captions by image."""
    return csr_array((np.ones(len(image)), (image, np.arange(len(image)))), shape=(n_images, len(image)))


def _evidence(
    trainer: AttackerTrainer,
    job: Job,
    sides: Sequence[CaptionSide],
    lists: list[list[CaptionList]],
    names: Sequence[str],
    tasks: list[csr_array],
    patterned: list[csr_array],
    groups: list[csr_array],
    truth: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    inverse: bool,
) -> Evidence:
    """Held-out guesses of attackers on both sides.

    tasks: (n, L) booleans of each side, which task words belong to a caption. patterned: (n, ...) booleans of each side
    whose different rows are patterns. groups: (n, G), its group (`Layout`).
    truth: of test images and logits, losses and right guesses, (n, 1) or (n, L), and the probability of the whole truth
    (n,). inverse: P(a) / P(t).
    """
    seeds, share = job.spec.seeds, job.options.test_share
    splits = [image_split(sides[0].y, sides[0].k, seed, share, trainer.images) for seed in seeds]
    trainer.fits = len(splits) * sum(map(len, lists))
    guesses, said, layouts = [], [], []
    for place, (side, own, row, group) in enumerate(zip(sides, tasks, patterned, groups, strict=True)):
        patterns = _patterns(row)
        said.append(_by_image(side.image, len(trainer.images)) @ _said(side.labelled, own, patterns, group))
        what, align_to = (("the model's captions", None), ("the human captions", lists[0]))[place]
        by_seed = dict.fromkeys(seeds, 0)
        for index, split, test, logits in trainer.logits(lists[place], splits, what, align_to):
            rows = side.rows(lists[place][index], test)
            label = one_hot(side.y[test], side.k)
            columns = _guessed(own[rows], label, patterns[:, rows], group[rows], truth(test, logits))
            by_seed[split.seed] += _by_image(test, len(trainer.images)) @ columns
        layouts.append(Layout(side.k, own.shape[1], patterns.shape[0], group.shape[1]))
        guesses.append(list(by_seed.values()))
    held_out = np.zeros((len(splits), len(trainer.images)), dtype=bool)
    for place, split in enumerate(splits):
        held_out[place, split.test] = True
    by_seed = tuple(_side_by_side(own, map(_nothing_like, said)) for own in zip(*guesses, strict=True))
    whole = _side_by_side(map(_nothing_like, (own[0] for own in guesses)), said)
    return Evidence(trainer.images, tuple(names), tuple(layouts), by_seed, whole, held_out, inverse)


def _side_by_side(guesses: Iterable[csr_array], said: Iterable[csr_array]) -> csr_array:
    """(n_images, C_M + C_H) of the (n_images, ...) of the model and of the human side."""
    return csr_array(hstack([part for pair in zip(guesses, said, strict=True) for part in pair]))


def _nothing_like(columns: csr_array) -> csr_array:
    return csr_array(columns.shape)


def _total(columns: csr_array) -> np.ndarray:
    return np.asarray(columns.sum(axis=0)).ravel()


def _patterns(tasks: csr_array) -> csr_array:
    """(P, n) booleans: which captions have each of the patterns of task words that occur."""
    rows = csr_array(tasks).sorted_indices()
    rows.eliminate_zeros()
    words = np.split(rows.indices, rows.indptr[1:-1])
    which, patterns = pd.factorize(np.array([own.tobytes() for own in words], dtype=object))
    return csr_array((np.ones(len(which)), (which, np.arange(len(which)))), shape=(len(patterns), len(which)))


def _said(labelled: csr_array, tasks: csr_array, patterns: csr_array, groups: csr_array) -> csr_array:
    """(n, L + K + P + G) of all captions of a side: their task words, value, pattern and group."""
    return csr_array(hstack([tasks, labelled, patterns.T, groups]))


def _guessed(tasks: csr_array, label: csr_array, patterns: csr_array, groups: csr_array, truth) -> csr_array:
    """(n, ...) of captions held out: the first columns of `Layout`."""
    losses, right, chance = truth
    pairs = [tasks.multiply(label[:, [value]]) for value in range(label.shape[1])]
    by_group = [
        [patterns.T.multiply(weights[:, [group]]) for group in range(groups.shape[1])]
        for weights in (groups.multiply(chance[:, None]).tocsc(), groups.tocsc())
    ]
    held_out = csr_array(np.ones((len(chance), 1)))
    return csr_array(
        hstack([tasks.multiply(losses), tasks.multiply(right), *pairs, *by_group[0], *by_group[1], held_out])
    )


def weight_of(name: str, sums: np.ndarray, layout: Layout, inverse: bool) -> np.ndarray:
    """w of one side by a variant: (..., C) sums to (...). Frequencies are those of the same sums."""
    parts = layout.parts(sums)
    if name == "DBAC":
        ratio = _ratio(parts["with_pattern"], parts["with_group"], inverse)
        return pattern_weight((parts["chances"] * ratio).sum(axis=(-2, -1)), parts["held_out"][..., 0])
    captions = parts["pairs"].sum(axis=-2)
    by_accuracy = name == "DBAC_accuracy"
    quality = accuracy(parts["right"], captions) if by_accuracy else inverse_cross_entropy(parts["losses"], captions)
    return pair_weight(quality, parts["pairs"], _ratio(parts["with_task"], parts["with_value"], inverse))


def constant_weight(name: str, sums: np.ndarray, layout: Layout, inverse: bool) -> np.ndarray:
    """w of one side by an attacker that always gives the same, up to a factor that both sides share: (..., C) to (...).

    name: the variant. The attacker's quality is the same for every task word, so it is left out.
    """
    parts = layout.parts(sums)
    if name == "DBAC":
        ratio = _ratio(parts["with_pattern"], parts["with_group"], inverse)
        return pattern_weight((parts["seen"] * ratio).sum(axis=(-2, -1)), parts["held_out"][..., 0])
    quality = np.ones_like(parts["with_task"])
    return pair_weight(quality, parts["pairs"], _ratio(parts["with_task"], parts["with_value"], inverse))


def _ratio(tasks: np.ndarray, values: np.ndarray, inverse: bool) -> np.ndarray:
    """(..., L) and (..., K) captions to (..., K, L) P(t) / P(a), or its inverse; 0 if a task word never occurs."""
    tasks, values = tasks[..., None, :], values[..., :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(values / tasks if inverse else tasks / values, nan=0.0, posinf=0.0)


def estimates_of(evidence: Evidence) -> dict[str, Estimate]:
    """Every metric, by name; they share their sums."""
    found = {}
    for variant in VARIANTS:
        found |= variant_estimates(evidence, variant, variant, METRICS)
    return found | constant_estimates(evidence, "DBAC", found["DBAC"], CONSTANT, ADDED, METRICS)


def variant_estimates(
    evidence: Evidence, variant: str, name: str, metrics: Mapping[str, Metric]
) -> dict[str, Estimate]:
    """DBAC and both w by one variant. name: of the metric."""
    half = evidence.layouts[0].width

    def model(sums: np.ndarray) -> np.ndarray:
        return weight_of(variant, sums[..., :half], evidence.layouts[0], evidence.inverse)

    def human(sums: np.ndarray) -> np.ndarray:
        return weight_of(variant, sums[..., half:], evidence.layouts[1], evidence.inverse)

    def both(sums: np.ndarray) -> np.ndarray:
        return normalised(model(sums), human(sums))

    ways = {name: both, f"{name}_M": model, f"{name}_H": human}
    return {own: _estimate(evidence, of, metrics[own]) for own, of in ways.items()}


def constant_estimates(
    evidence: Evidence, variant: str, whole: Estimate, constant: str, added: str, metrics: Mapping[str, Metric]
) -> dict[str, Estimate]:
    """DBAC of a constant attacker by a variant, and what reading adds. constant, added: the metrics' names."""
    half = evidence.layouts[0].width

    def of_constant(sums: np.ndarray) -> np.ndarray:
        sides = (sums[..., :half], sums[..., half:])
        own = (constant_weight(variant, *side, evidence.inverse) for side in zip(sides, evidence.layouts, strict=True))
        return normalised(*own)

    def of_added(sums: np.ndarray) -> np.ndarray:
        return whole.of(sums) - of_constant(sums)

    ways = {constant: of_constant, added: of_added}
    return {own: _estimate(evidence, of, metrics[own]) for own, of in ways.items()}


def _estimate(evidence: Evidence, of: Callable[[np.ndarray], np.ndarray], metric: Metric) -> Estimate:
    """w of a side is a level; the rest are differences."""
    values, level = metric.scale * of(evidence.seed_sums), bool(metric.side)
    return Estimate(evidence.images, evidence.sums, values, metric.scale, of, evidence.refits, level, metric.range)


def evidence_bytes(evidence: Evidence) -> bytes:
    """Evidence as bytes; `evidence_from` reads them back."""
    layouts = [list(vars(layout).values()) for layout in evidence.layouts]
    about = [evidence.images, evidence.tasks, layouts, evidence.inverse]
    return to_npz(about, guesses=csr_array(vstack(evidence.guesses)), said=evidence.said, held_out=evidence.held_out)


def evidence_from(data: bytes) -> Evidence:
    """The evidence in bytes of `evidence_bytes`."""
    (images, tasks, layouts, inverse), arrays = from_npz(data)
    model, human = (Layout(*own) for own in layouts)
    stacked, n_images = arrays["guesses"], len(images)
    guesses = tuple(stacked[start : start + n_images] for start in range(0, stacked.shape[0], n_images))
    return Evidence(tuple(images), tuple(tasks), (model, human), guesses, arrays["said"], arrays["held_out"], inverse)


OBJECTS = DBAC("DBAC", METRICS, lambda job: Objects(job.objects()), estimates_of)

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
    version=6,
    seconds=0.6,
    run=OBJECTS.run,
    estimates=OBJECTS.estimates,
)
