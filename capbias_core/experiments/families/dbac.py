"""Runs of the family 'dbac': attackers that guess the value (A->T), and attackers that guess task words (T->A).

The metrics are read from sums over held-out captions, image by image, so that one function gives every reading.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from capbias_core.aggregate import Estimate, shared_intervals
from capbias_core.attackers.base import probabilities, task_probabilities
from capbias_core.errors import CapbiasError
from capbias_core.experiments.families.base import Job, Outcome, npz
from capbias_core.experiments.families.cooccurrence import objects_of, one_hot
from capbias_core.experiments.families.crew import CaptionList, Crew, caption_lists
from capbias_core.experiments.store import RunRow, Workspace
from capbias_core.experiments.vectors import aligned_result, aligner, alignment_method
from capbias_core.metrics import METRICS
from capbias_core.metrics.dbac import (
    accuracy,
    dbac,
    inverse_cross_entropy,
    pair_weight,
    pattern_weight,
)
from capbias_core.prepare import image_split
from capbias_core.prepare.tasks import encode, mask_objects, named_objects, object_names

A_TO_T, T_TO_A = "A->T", "T->A"
TEST_SHARE = 0.2
# An attacker guesses objects that are on this share of the images or more: from fewer there is little to learn.
LEAST_SHARE = 0.01
SMALLEST = 1e-12
READINGS = ("DBAC", "DBAC_accuracy", "DBAC_code")


@dataclass(frozen=True)
class Evidence:
    """Held-out guesses of one direction, summed image by image over seeds.

    sums: (n_images, 2 * C), the model's columns, then the human ones; for C = L + L + K * L + 2: losses and right
    guesses by task word, captions by value and task word, weighted probabilities of the truth, captions. seed_sums:
    (S, 2 * C) over images. ratios: (2, K, L) of both sides. tasks: L names.
    """

    images: tuple[str, ...]
    tasks: tuple[str, ...]
    sums: csr_array
    seed_sums: np.ndarray
    ratios: np.ndarray


def run(job: Job) -> Outcome:
    """Both directions, where the inputs allow them, on the images that both sides have."""
    frames = job.frame, job.references()
    images = sorted(set(frames[0]["image_id"]) & set(frames[1]["image_id"]))
    objects = job.objects()
    known = images if objects is None else [image for image in images if image in objects.index]
    ways = {A_TO_T: (_guess_value, images), T_TO_A: (_guess_tasks, known)}
    results, arrays, notes = [], {}, []
    for place, (direction, (way, own)) in enumerate(ways.items()):
        try:
            sides = [Side(frame, own, job) for frame in frames]
            evidence, note = way(job, sides, own, _part(job, place, len(ways)))
        except CapbiasError as error:
            if place + 1 == len(ways) and not results:
                raise
            notes.append(f"DBAC {direction} left out: got {error.got}; expected {error.expected}.")
            continue
        results += _results(job, direction, evidence)
        arrays[direction] = evidence_bytes(evidence)
        notes.append(f"DBAC {direction}: {note}")
    return Outcome(results, arrays, tuple(notes))


def _part(job: Job, place: int, parts: int) -> Callable[[float, str], None]:
    """The progress of one of several parts as that of the run."""
    return lambda share, text: job.progress((place + share) / parts, text)


class Side:
    """The captions of one side on the images that both have, and the objects that they name.

    image: (n,) place of each caption's image. named: (n, objects) booleans. y: (n_images,) places of values.
    """

    def __init__(self, frame, images: list[str], job: Job):
        self.frame, self.images = frame[frame["image_id"].isin(images)], images
        self.image = pd.Index(images).get_indexer(self.frame["image_id"])
        self.y, self.k = job.codes(images), len(job.attribute.values)
        self.named = named_objects(encode(self.frame["caption"]), object_names())

    def lists(self, mask) -> list[CaptionList]:
        """Masked captions, one list for each caption index."""
        return caption_lists(self.frame, self.images, self.y, self.k, mask)

    def rows(self, captions: CaptionList, images: np.ndarray) -> np.ndarray:
        """Places in `image` and `named` of the captions of these images."""
        return self.frame.index.get_indexer(captions.kept_at[captions.rows(images)])

    def value_shares(self) -> np.ndarray:
        """(K,) shares of captions by the label of their image."""
        return np.bincount(self.y[self.image], minlength=self.k) / len(self.image)


def _guess_value(job: Job, sides: list[Side], images: list[str], progress) -> tuple[Evidence, str]:
    """A->T: the value guessed from captions whose attribute words are masked."""
    kept = np.flatnonzero(sum(side.named.sum(axis=0) for side in sides))
    if not len(kept):
        raise CapbiasError(
            f"captions of {job.spec.model} and human captions, none of which names an object",
            f"names of objects such as {', '.join(list(object_names())[:3])}",
            "Check that they are in English, and of images with objects.",
        )
    y = sides[0].y

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = probabilities(logits)
        chance = np.clip(shares[np.arange(len(test)), y[test]], SMALLEST, 1)
        return -np.log(chance)[:, None], (shares.argmax(axis=1) == y[test])[:, None], chance

    align = aligner(job.workspace, job.spec.options.get("alignment"))
    crew = Crew(job.spec, sides[0].k, y, tuple(images), progress, 1, balanced=False, align=align)
    names = tuple(list(object_names())[place] for place in kept)
    tasks = [side.named[:, kept] for side in sides]
    evidence = _evidence(crew, sides, [side.lists(job.masked) for side in sides], names, tasks, truth, inverse=False)
    return evidence, f"{len(names)} objects that captions name; {_sizes(images)}"


def _guess_tasks(job: Job, sides: list[Side], images: list[str], progress) -> tuple[Evidence, str]:
    """T->A: objects of the image guessed from captions in which they are masked."""
    names, on_image, origin = _objects(job, sides, images)
    kept = np.flatnonzero(np.asarray(on_image.sum(axis=0)).ravel() >= max(1, LEAST_SHARE * len(images)))
    if not len(kept):
        raise CapbiasError(
            f"no object on {LEAST_SHARE:.0%} of the {len(images):,} images or more",
            "objects that are on some images",
            "Load the objects of these images.",
        )
    on_image = csr_array(on_image[:, kept])
    there = on_image.toarray().astype(bool)
    table = object_names()

    def truth(test: np.ndarray, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shares = np.clip(task_probabilities(logits), SMALLEST, 1 - SMALLEST)
        chance = np.exp(np.where(there[test], np.log(shares), np.log1p(-shares)).sum(axis=1))
        return -np.log(shares), shares > 0.5, chance

    align = aligner(job.workspace, job.spec.options.get("alignment"))
    crew = Crew(job.spec, sides[0].k, there, tuple(images), progress, 1, balanced=False, align=align)
    names = tuple(names[place] for place in kept)
    tasks = [on_image[side.image] for side in sides]
    lists = [side.lists(lambda captions: mask_objects(captions, table)) for side in sides]
    evidence = _evidence(crew, sides, lists, names, tasks, truth, inverse=True)
    return evidence, f"{len(names)} objects {origin}, each on {LEAST_SHARE:.0%} of the images or more; {_sizes(images)}"


def _sizes(images: list[str]) -> str:
    test = max(1, round(len(images) * TEST_SHARE))
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


def _evidence(crew: Crew, sides: list[Side], lists, names, tasks: list[csr_array], truth, inverse: bool) -> Evidence:
    """Held-out guesses of attackers on both sides.

    tasks: (n, L) booleans of each side, which task words belong to a caption. truth: of test images and logits, losses
    and right guesses, (n, 1) or (n, L), and the probability of the whole truth (n,). inverse: P(a) / P(t).
    """
    splits = [image_split(sides[0].y, sides[0].k, seed, TEST_SHARE, crew.images) for seed in crew.spec.seeds]
    crew.fits = len(splits) * sum(map(len, lists))
    sums = []
    for place, (side, own) in enumerate(zip(sides, tasks, strict=True)):
        what, align_to = (("the model's captions", None), ("the human captions", lists[0]))[place]
        by_seed = dict.fromkeys(crew.spec.seeds, 0)
        for index, split, test, logits in crew.logits(lists[place], splits, what, align_to):
            columns = _columns(side, own, lists[place][index], test, truth(test, logits), inverse)
            by_seed[split.seed] += _by_image(test, len(crew.images)) @ columns
        sums.append(list(by_seed.values()))
    by_seed = [csr_array(hstack(pair)) for pair in zip(*sums, strict=True)]
    ratios = np.stack([_ratio(side, own, inverse) for side, own in zip(sides, tasks, strict=True)])
    seed_sums = np.stack([np.asarray(own.sum(axis=0)).ravel() for own in by_seed])
    return Evidence(crew.images, names, sum(by_seed[1:], by_seed[0]), seed_sums, ratios)


def _columns(side: Side, tasks: csr_array, captions: CaptionList, test: np.ndarray, truth, inverse: bool) -> csr_array:
    """(n, C) of the captions of the test images; see Evidence."""
    losses, right, chance = truth
    rows = side.rows(captions, test)
    own, label = tasks[rows], one_hot(side.y[test], side.k)
    pairs = [own.multiply(label[:, [value]]) for value in range(side.k)]
    weighted = chance * _pattern_ratio(side, tasks, inverse)[rows]
    rest = csr_array(np.column_stack([weighted, np.ones(len(test))]))
    return csr_array(hstack([own.multiply(losses), own.multiply(right), *pairs, rest]))


def _ratio(side: Side, tasks: csr_array, inverse: bool) -> np.ndarray:
    """(K, L) P(t) / P(a) over the captions of a side, or its inverse; 0 where a task word never occurs."""
    task, value = np.asarray(tasks.sum(axis=0)).ravel() / tasks.shape[0], side.value_shares()
    with np.errstate(divide="ignore"):
        return np.nan_to_num(value[:, None] / task if inverse else task / value[:, None], posinf=0.0)


def _pattern_ratio(side: Side, tasks: csr_array, inverse: bool) -> np.ndarray:
    """(n,) for each caption the share of captions with its pattern of task words over that with its value."""
    keys = np.round(tasks @ np.random.default_rng(0).random(tasks.shape[1]), 9)
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    pattern, value = counts[which] / len(keys), side.value_shares()[side.y[side.image]]
    return value / pattern if inverse else pattern / value


def weight_of(name: str, sums: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """w of one side by a reading: (..., C) sums to (...)."""
    k, n_tasks = ratio.shape
    losses, right, pairs, rest = np.split(sums, np.cumsum([n_tasks, n_tasks, k * n_tasks]), axis=-1)
    if name == "DBAC_code":
        return pattern_weight(rest[..., 0], rest[..., 1])
    pairs = pairs.reshape(*sums.shape[:-1], k, n_tasks)
    captions = pairs.sum(axis=-2)
    quality = accuracy(right, captions) if name == "DBAC_accuracy" else inverse_cross_entropy(losses, captions)
    return pair_weight(quality, pairs, ratio)


def estimates_of(evidence: Evidence) -> dict[str, Estimate]:
    """Every metric of the family, by name; they share their sums."""
    half = evidence.sums.shape[1] // 2
    seen = np.flatnonzero(np.asarray(evidence.sums[:, [half - 1]].sum(axis=1)).ravel())
    images, sums = tuple(evidence.images[place] for place in seen), evidence.sums[seen]
    found = {}
    for name in READINGS:

        def model(columns, name=name):
            return weight_of(name, columns[..., :half], evidence.ratios[0])

        def human(columns, name=name):
            return weight_of(name, columns[..., half:], evidence.ratios[1])

        def both(columns, model=model, human=human):
            return dbac(model(columns), human(columns))

        for metric, of in ((name, both), (f"{name}_M", model), (f"{name}_H", human)):
            scale = METRICS[metric].scale
            found[metric] = Estimate(images, sums, scale * of(evidence.seed_sums), scale, of)
    return found


def _results(job: Job, direction: str, evidence: Evidence) -> list:
    n = max(1, round(len(evidence.images) * TEST_SHARE))
    alignment = job.spec.options.get("alignment")
    method = (
        f"{len(evidence.images) - n}/{n} images, not balanced; {alignment_method(alignment)}; std over seeds; 95% "
        "image bootstrap, 1000 draws, frequencies fixed"
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
    names = json.dumps([evidence.images, evidence.tasks]).encode()
    parts = {part: getattr(evidence.sums, part) for part in ("data", "indices", "indptr")}
    return npz(
        names=np.frombuffer(names, dtype=np.uint8), seed_sums=evidence.seed_sums, ratios=evidence.ratios, **parts
    )


def evidence_from(data: bytes) -> Evidence:
    """The evidence in bytes of `evidence_bytes`."""
    arrays = np.load(io.BytesIO(data))
    images, tasks = json.loads(arrays["names"].tobytes())
    shape = len(images), arrays["seed_sums"].shape[1]
    sums = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    return Evidence(tuple(images), tuple(tasks), sums, arrays["seed_sums"], arrays["ratios"])
