"""Runs of the family 'dbac': attackers that guess the value (A->T), and attackers that guess task words (T->A).

The metrics are read from sums over held-out captions, image by image, so that one function gives every reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import Estimate, shared_intervals
from capbias_core.attackers.base import Attacker, probabilities, task_probabilities
from capbias_core.attackers.device import trained_on
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Outcome, from_npz, of_images, run_available, to_npz
from capbias_core.measures.bias_amplification import LEAST_SHARE, annotated, common_objects, objects_of, one_hot
from capbias_core.measures.training import AttackerTrainer, CaptionList, attacker_of, caption_lists
from capbias_core.metrics import METRICS
from capbias_core.metrics.dbac import accuracy, dbac, inverse_cross_entropy, pair_weight, pattern_weight
from capbias_core.prepare import held_out_count, image_split
from capbias_core.prepare.tasks import encode, mask_objects, named_objects, object_names, phrases
from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.workspace.models import encoded_by
from capbias_core.workspace.store import RunRow, Workspace
from capbias_core.workspace.vectors import aligned_result, aligner, alignment_method

SMALLEST = 1e-12
# Training images of the protocol, for which its batches are meant; fewer are read in smaller ones.
FULL_TRAINING = 8_624
SMALLEST_BATCH = 16
# From fewer images than these a network learns less of the objects.
ENOUGH = 5000
READINGS = ("DBAC", "DBAC_accuracy", "DBAC_code")


@dataclass(frozen=True)
class Layout:
    """The columns of one side: by name, how many; L task words, K values, P patterns of task words.

    Of captions held out: losses and right guesses by task word, pairs of value and task word, summed probabilities of
    the truth by value and pattern, captions. Of all captions of the side: with each task word, value and pattern.
    """

    k: int
    tasks: int
    patterns: int

    def widths(self) -> dict[str, int]:
        k, n_tasks, patterns = self.k, self.tasks, self.patterns
        return {
            "losses": n_tasks,
            "right": n_tasks,
            "pairs": k * n_tasks,
            "chances": k * patterns,
            "held_out": 1,
            "with_task": n_tasks,
            "with_value": k,
            "with_pattern": patterns,
        }

    def parts(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """(..., C) sums by name; pairs and chances as (..., K, L) and (..., K, P)."""
        names = list(self.widths())
        found = dict(zip(names, np.split(sums, np.cumsum(list(self.widths().values()))[:-1], axis=-1), strict=True))
        for name, width in (("pairs", self.tasks), ("chances", self.patterns)):
            found[name] = found[name].reshape(*sums.shape[:-1], self.k, width)
        return found


@dataclass(frozen=True)
class Evidence:
    """Held-out guesses of one direction and what all captions say, image by image.

    layouts: of the model's columns and of the human ones. sums: (n_images, C_M + C_H), guesses summed over seeds.
    seed_sums: (S, C_M + C_H) over images. tasks: L names. inverse: P(a) / P(t) (T->A) in the place of P(t) / P(a).
    """

    images: tuple[str, ...]
    tasks: tuple[str, ...]
    layouts: tuple[Layout, Layout]
    sums: csr_array
    seed_sums: np.ndarray
    inverse: bool


def run(job: Job) -> Outcome:
    """Both directions, where the inputs allow them, on the images that both sides have."""
    frames = job.frame, job.references()
    images = sorted(set(frames[0]["image_id"]) & set(frames[1]["image_id"]))
    objects = job.objects()
    known = images if objects is None or annotated(images, objects).all() else list(objects.index.intersection(images))
    sides = [Side(frame, images, job) for frame in frames]
    ways = {A_TO_T: (_guess_value, images), T_TO_A: (_guess_tasks, known)}

    def guess(place: int, way, own: list[str]):
        part = sides if own is images else [Side(frame, own, job) for frame in frames]
        return way(job, part, own, _part(job, place, len(ways)))

    evidence, notes = run_available(
        {name: partial(guess, place, *way) for place, (name, way) in enumerate(ways.items())}, "DBAC "
    )
    if job.spec.attacker != "ngram" and len(images) < ENOUGH:
        notes.append(
            f"Only {len(images):,} images: a network learns less of the objects from them, and T->A stays closer to 0. "
            "The paper has 10,780; compare with ngram."
        )
    results = [row for direction, own in evidence.items() for row in _results(job, direction, own)]
    return Outcome(results, {name: evidence_bytes(own) for name, own in evidence.items()}, tuple(notes))


def _part(job: Job, place: int, parts: int) -> Callable[[float, str], None]:
    """The progress of one of several parts as that of the run."""
    return lambda share, text: job.progress((place + share) / parts, text)


def small_batches(attacker: Attacker, images: int) -> tuple[Attacker, str]:
    """An attacker for so many images, whose epochs have as many steps as those of the full protocol; and its method.

    Batches shrink with the training images, to 16 at the least. Attackers that read no batches stay as they are.
    """
    training = images - held_out_count(images)
    settings = getattr(attacker, "protocol", attacker)
    full = getattr(settings, "batch", 0)
    batch = max(min(full, SMALLEST_BATCH), min(full, round(full * training / FULL_TRAINING)))
    if batch == full:
        return attacker, ""
    smaller = replace(settings, batch=batch)
    said = f"; batches of {batch}, {full} for {FULL_TRAINING} training images"
    return (smaller if settings is attacker else replace(attacker, protocol=smaller)), said


class Side:
    """The captions of one side on the images that both have, and the objects that they name.

    image: (n,) place of each caption's image. named: (n, objects) booleans. y: (n_images,) places of values.
    """

    def __init__(self, frame, images: list[str], job: Job):
        self.frame, self.images = of_images(frame, images), images
        self.image = pd.Index(images).get_indexer(self.frame["image_id"])
        self.y, self.k = job.codes(images), len(job.attribute.values)
        self.named = named_objects(encode(self.frame["caption"]), object_names())

    def lists(self, mask) -> list[CaptionList]:
        """Masked captions, one list for each caption index."""
        return caption_lists(self.frame, self.images, self.y, self.k, mask)

    def rows(self, captions: CaptionList, images: np.ndarray) -> np.ndarray:
        """Places in `image` and `named` of the captions of these images."""
        return self.frame.index.get_indexer(captions.kept_at[captions.rows(images)])


def _guess_value(job: Job, sides: list[Side], images: list[str], progress) -> tuple[Evidence, str]:
    """A->T: the value guessed from captions whose attribute words are masked."""
    for side, who in zip(sides, (job.spec.model, "the human captions"), strict=True):
        if not side.named.sum():
            raise CapbiasError(
                f"{who}, which name no object",
                f"names of objects such as {', '.join(list(object_names())[:3])}",
                "Check that the captions are in English, and of images with objects.",
            )
    kept = np.flatnonzero(sum(side.named.sum(axis=0) for side in sides))
    y = sides[0].y

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = probabilities(logits)
        chance = np.clip(shares[np.arange(len(test)), y[test]], SMALLEST, 1)
        return -np.log(chance)[:, None], (shares.argmax(axis=1) == y[test])[:, None], chance

    align = aligner(job.workspace, job.spec.options.get("alignment"))
    trainer = AttackerTrainer(
        _attacker(job, images)[0], sides[0].k, y, tuple(images), progress, 1, balanced=False, align=align
    )
    names = tuple(list(object_names())[place] for place in kept)
    tasks = [side.named[:, kept] for side in sides]
    evidence = _evidence(
        trainer, job.spec.seeds, sides, [side.lists(job.masked) for side in sides], names, tasks, truth, inverse=False
    )
    return evidence, f"{len(names)} objects that captions name; {_sizes(images)}"


def _guess_tasks(job: Job, sides: list[Side], images: list[str], progress) -> tuple[Evidence, str]:
    """T->A: objects of the image guessed from captions in which they are masked."""
    names, on_image, origin = _objects(job, sides, images)
    kept = common_objects(on_image)
    # Whatever the annotation calls an object must not be left in the captions that are to tell it.
    table = object_names() | phrases(names)
    on_image = csr_array(on_image[:, kept])
    there = on_image.toarray().astype(bool)

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = np.clip(task_probabilities(logits), SMALLEST, 1 - SMALLEST)
        chance = np.exp(np.where(there[test], np.log(shares), np.log1p(-shares)).sum(axis=1))
        return -np.log(shares), shares > 0.5, chance

    align = aligner(job.workspace, job.spec.options.get("alignment"))
    trainer = AttackerTrainer(
        _attacker(job, images)[0], sides[0].k, there, tuple(images), progress, 1, balanced=False, align=align
    )
    names = tuple(names[place] for place in kept)
    tasks = [on_image[side.image] for side in sides]
    lists = [side.lists(lambda captions: mask_objects(captions, table)) for side in sides]
    evidence = _evidence(trainer, job.spec.seeds, sides, lists, names, tasks, truth, inverse=True)
    return evidence, f"{len(names)} objects {origin}, each on {LEAST_SHARE:.0%} of the images or more; {_sizes(images)}"


def _attacker(job: Job, images: Sequence[str]) -> tuple[Attacker, str]:
    """The attacker of a run, as `small_batches` gives it."""
    return small_batches(attacker_of(job), len(images))


def _sizes(images: list[str]) -> str:
    test = held_out_count(len(images))
    return f"{len(images) - test:,} training and {test:,} test images a seed, not balanced."


def _objects(job: Job, sides: list[Side], images: list[str]) -> tuple[list[str], csr_array, str]:
    """Names, (images, objects) booleans and where they come from: annotations, else what human captions name."""
    objects = job.objects()
    if objects is not None:
        return *objects_of(images, objects), "annotated on the images"
    human = sides[1]
    named = csr_array(_by_image(human.image, len(images)) @ human.named)
    named.data[:] = 1
    return list(object_names()), named, "that the human captions of an image name"


def _by_image(image: np.ndarray, n_images: int) -> csr_array:
    """(n_images, n) that sums rows of captions by image."""
    return csr_array((np.ones(len(image)), (image, np.arange(len(image)))), shape=(n_images, len(image)))


def _evidence(
    trainer: AttackerTrainer,
    seeds: tuple[int, ...],
    sides: list[Side],
    lists,
    names,
    tasks: list[csr_array],
    truth,
    inverse: bool,
) -> Evidence:
    """Held-out guesses of attackers on both sides.

    tasks: (n, L) booleans of each side, which task words belong to a caption. truth: of test images and logits, losses
    and right guesses, (n, 1) or (n, L), and the probability of the whole truth (n,). inverse: P(a) / P(t).
    """
    splits = [image_split(sides[0].y, sides[0].k, seed, trainer.images) for seed in seeds]
    trainer.fits = len(splits) * sum(map(len, lists))
    sums, layouts = [], []
    for place, (side, own) in enumerate(zip(sides, tasks, strict=True)):
        patterns = _patterns(own)
        whole = _by_image(side.image, len(trainer.images)) @ _said(side, own, patterns)
        what, align_to = (("the model's captions", None), ("the human captions", lists[0]))[place]
        by_seed = dict.fromkeys(seeds, 0)
        for index, split, test, logits in trainer.logits(lists[place], splits, what, align_to):
            rows = side.rows(lists[place][index], test)
            columns = _guessed(own[rows], side.y[test], side.k, patterns[:, rows], truth(test, logits))
            by_seed[split.seed] += _by_image(test, len(trainer.images)) @ columns
        layouts.append(Layout(side.k, own.shape[1], patterns.shape[0]))
        sums.append((list(by_seed.values()), whole))
    seed_sums = [
        np.concatenate([_total(part) for own, whole in sums for part in (own[place], whole)])
        for place in range(len(splits))
    ]
    pooled = hstack([part for own, whole in sums for part in (sum(own[1:], own[0]), whole)])
    return Evidence(trainer.images, names, tuple(layouts), csr_array(pooled), np.stack(seed_sums), inverse)


def _total(columns: csr_array) -> np.ndarray:
    return np.asarray(columns.sum(axis=0)).ravel()


def _patterns(tasks: csr_array) -> csr_array:
    """(P, n) booleans: which captions have each of the patterns of task words that occur."""
    keys = np.round(tasks @ np.random.default_rng(0).random(tasks.shape[1]), 9)
    which = np.unique(keys, return_inverse=True)[1]
    return csr_array((np.ones(len(which)), (which, np.arange(len(which)))), shape=(which.max() + 1, len(which)))


def _said(side: Side, tasks: csr_array, patterns: csr_array) -> csr_array:
    """(n, L + K + P) of all captions of a side: their task words, value and pattern."""
    return csr_array(hstack([tasks, one_hot(side.y[side.image], side.k), patterns.T]))


def _guessed(tasks: csr_array, y: np.ndarray, k: int, patterns: csr_array, truth) -> csr_array:
    """(n, ...) of captions held out: the first columns of `Layout`."""
    losses, right, chance = truth
    label = one_hot(y, k)
    pairs = [tasks.multiply(label[:, [value]]) for value in range(k)]
    chances = [patterns.T.multiply((chance * (y == value))[:, None]) for value in range(k)]
    held_out = csr_array(np.ones((len(y), 1)))
    return csr_array(hstack([tasks.multiply(losses), tasks.multiply(right), *pairs, *chances, held_out]))


def weight_of(name: str, sums: np.ndarray, layout: Layout, inverse: bool) -> np.ndarray:
    """w of one side by a reading: (..., C) sums to (...). Frequencies are those of the same sums."""
    parts = layout.parts(sums)
    if name == "DBAC_code":
        ratio = _ratio(parts["with_pattern"], parts["with_value"], inverse)
        return pattern_weight((parts["chances"] * ratio).sum(axis=(-2, -1)), parts["held_out"][..., 0])
    captions = parts["pairs"].sum(axis=-2)
    by_accuracy = name == "DBAC_accuracy"
    quality = accuracy(parts["right"], captions) if by_accuracy else inverse_cross_entropy(parts["losses"], captions)
    return pair_weight(quality, parts["pairs"], _ratio(parts["with_task"], parts["with_value"], inverse))


def _ratio(tasks: np.ndarray, values: np.ndarray, inverse: bool) -> np.ndarray:
    """(..., L) and (..., K) captions to (..., K, L) P(t) / P(a), or its inverse; 0 where a task word never occurs."""
    tasks, values = tasks[..., None, :], values[..., :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(values / tasks if inverse else tasks / values, nan=0.0, posinf=0.0)


def estimates_of(evidence: Evidence) -> dict[str, Estimate]:
    """Every metric of the family, by name; they share their sums."""
    half = sum(evidence.layouts[0].widths().values())
    found = {}
    for name in READINGS:

        def model(columns, name=name):
            return weight_of(name, columns[..., :half], evidence.layouts[0], evidence.inverse)

        def human(columns, name=name):
            return weight_of(name, columns[..., half:], evidence.layouts[1], evidence.inverse)

        def both(columns, model=model, human=human):
            return dbac(model(columns), human(columns))

        for metric, of in ((name, both), (f"{name}_M", model), (f"{name}_H", human)):
            scale = METRICS[metric].scale
            found[metric] = Estimate(evidence.images, evidence.sums, scale * of(evidence.seed_sums), scale, of)
    return found


def _results(job: Job, direction: str, evidence: Evidence) -> list:
    n = held_out_count(len(evidence.images))
    alignment = job.spec.options.get("alignment")
    attacker, batches = _attacker(job, evidence.images)
    method = (
        f"{len(evidence.images) - n}/{n} images, not balanced; {alignment_method(alignment)}; std over seeds; 95% "
        f"image bootstrap, 1000 draws{trained_on(attacker, job.spec.options)}{batches}{encoded_by(job.spec.options)}"
    )
    found = estimates_of(evidence)
    intervals = shared_intervals(found)
    rows = [job.result(name, own, n, method, direction, intervals[name]) for name, own in found.items()]
    return [aligned_result(row, alignment, row.metric.endswith("_M")) for row in rows]


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from its sums, by metric and direction."""
    found = {}
    for direction in workspace.results([run.run_id])["direction"].unique():
        evidence = evidence_from(workspace.array(run.run_id, direction))
        found |= {(name, direction): own for name, own in estimates_of(evidence).items()}
    return found


def evidence_bytes(evidence: Evidence) -> bytes:
    """Evidence as bytes; `evidence_from` reads them back."""
    layouts = [list(vars(layout).values()) for layout in evidence.layouts]
    about = [evidence.images, evidence.tasks, layouts, evidence.inverse]
    return to_npz(about, sums=evidence.sums, seed_sums=evidence.seed_sums)


def evidence_from(data: bytes) -> Evidence:
    """The evidence in bytes of `evidence_bytes`."""
    (images, tasks, layouts, inverse), arrays = from_npz(data)
    layouts = tuple(Layout(*own) for own in layouts)
    return Evidence(tuple(images), tuple(tasks), layouts, arrays["sums"], arrays["seed_sums"], inverse)
