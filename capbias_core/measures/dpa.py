"""Runs of the family 'predictability': DPA, labels guessed from labels, in both directions.

A->T: the objects that captions name, guessed from the labelled value. T->A: the value that captions name, guessed from
the objects on the image. The human side is one human caption an image, drawn by seed, since a model writes one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, shared_intervals
from capbias_core.attackers.labels import guess_labels
from capbias_core.errors import CapbiasError
from capbias_core.measures.base import Job, Outcome, of_images, run_available
from capbias_core.measures.bias_amplification import LEAST_SHARE, annotated, common_objects, objects_of, one_hot
from capbias_core.metrics import METRICS
from capbias_core.metrics.predictability import as_unlike, cross_entropy, predictability
from capbias_core.prepare import child_seed, image_split
from capbias_core.prepare.split import BOOTSTRAP, SMALLEST_GROUP
from capbias_core.prepare.tasks import encode, named_objects, object_names
from capbias_core.types import A_TO_T, T_TO_A
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, frame_bytes


@dataclass(frozen=True)
class Side:
    """What the captions of one side say. image: (n,) place of each caption's image. objects: (n, L) and values: (n, K)
    booleans, what each names."""

    image: np.ndarray
    objects: np.ndarray
    values: np.ndarray

    def one_an_image(self, rng: np.random.Generator) -> np.ndarray:
        """A caption of each image, drawn at random, in the order of the images."""
        order = rng.permutation(len(self.image))
        _, first = np.unique(self.image[order], return_index=True)
        return order[first]


def run(job: Job) -> Outcome:
    """Both directions, where the inputs allow them."""
    human = job.references()
    images = sorted(set(human["image_id"]) & set(job.frame["image_id"]))
    sides = [_side(frame, images, job) for frame in (job.frame, human)]
    ways = {A_TO_T: _objects_named, T_TO_A: _value_named}
    found, notes = run_available(
        {name: partial(_losses, job, images, sides, way, place) for place, (name, way) in enumerate(ways.items())},
        "DPA ",
    )
    losses = pd.concat([own.assign(direction=name) for name, own in found.items()], ignore_index=True)
    losses["image_id"] = pd.Categorical.from_codes(losses.pop("image"), images)
    results = []
    for direction in losses["direction"].unique():
        found = _estimates(losses[losses["direction"] == direction])
        intervals = shared_intervals(found)
        n = int(losses[losses["direction"] == direction].groupby("seed").size().mean())
        method = "logistic regression on labels; Q = 1 / cross-entropy; std over seeds; 95% image bootstrap, 1000 draws"
        results += [job.result(name, own, n, method, direction, intervals[name]) for name, own in found.items()]
    return Outcome(results, {"losses": frame_bytes(losses)}, tuple(notes))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from the losses on held-out images, by metric and direction."""
    losses = bytes_frame(workspace.array(run.run_id, "losses"))
    return {
        (name, direction): own
        for direction in losses["direction"].unique()
        for name, own in _estimates(losses[losses["direction"] == direction]).items()
    }


def _side(frame: pd.DataFrame, images: list[str], job: Job) -> Side:
    frame = of_images(frame, images)
    encoded = encode(frame["caption"])
    named = encoded.with_any([job.attribute.words.get(value, ()) for value in job.attribute.values])
    image = pd.Index(images).get_indexer(frame["image_id"])
    return Side(image, named_objects(encoded, object_names()).toarray(), named.toarray())


def _losses(job: Job, images: list[str], sides: list[Side], way, part: int) -> tuple[pd.DataFrame, str]:
    """One row an image held out and seed: image, seed, model and human (its mean loss on each side); and a note."""
    y, k = job.codes(images), len(job.attribute.values)
    rows = []
    for done, seed in enumerate(job.spec.seeds):
        job.progress((part + done / len(job.spec.seeds)) / 2, f"seed {done + 1} of {len(job.spec.seeds)}")
        rng = np.random.default_rng(child_seed(seed, BOOTSTRAP))
        features, model, human, kept = way(job, images, sides, [side.one_an_image(rng) for side in sides])
        split = image_split(y, k, seed, images)
        train, test = (part[kept[part]] for part in (split.train, split.test))
        _check_size(len(train), len(test))
        human[kept] = as_unlike(human[kept], model[kept], rng)
        found = {
            name: cross_entropy(guess_labels(features[train], truth[train], features[test]), truth[test]).mean(axis=1)
            for name, truth in (("model", model), ("human", human))
        }
        rows.append(pd.DataFrame({"image": test, "seed": seed, **found}))
    return pd.concat(rows, ignore_index=True), f"{len(train):,} training and {len(test):,} test images, not balanced."


def _check_size(train: int, test: int) -> None:
    if min(train, test) < SMALLEST_GROUP:
        raise CapbiasError(
            f"{train} training and {test} test images that take part",
            f"{SMALLEST_GROUP} or more of each",
            "Load captions and objects of more images.",
        )


def _objects_named(job: Job, images: list[str], sides: list[Side], drawn: list[np.ndarray]):
    """A->T: features, labels of both sides, and which images take part (all)."""
    model, human = (side.objects[own].astype(float) for side, own in zip(sides, drawn, strict=True))
    often = np.minimum(model.mean(axis=0), human.mean(axis=0)) >= LEAST_SHARE
    if not often.any():
        raise CapbiasError(
            f"captions in which no object is named by {LEAST_SHARE:.0%} of both sides",
            f"names of objects such as {', '.join(list(object_names())[:3])}",
            "Check that the captions are in English, and of images with objects.",
        )
    features = one_hot(job.codes(images), len(job.attribute.values)).toarray()
    return features, model[:, often], human[:, often], np.ones(len(images), dtype=bool)


def _value_named(job: Job, images: list[str], sides: list[Side], drawn: list[np.ndarray]):
    """T->A: the images whose objects are known and on which both captions name one value take part."""
    if not job.attribute.words or job.objects() is None:
        lacking = "words that captions could name" if not job.attribute.words else "objects of the images"
        raise CapbiasError(
            f"no {lacking}", "words and objects", "Load the objects of the images, or choose another attribute."
        )
    _, on_image = objects_of(images, job.objects())
    features = on_image[:, common_objects(on_image)].toarray().astype(float)
    model, human = (side.values[own] for side, own in zip(sides, drawn, strict=True))
    kept = (model.sum(axis=1) == 1) & (human.sum(axis=1) == 1) & annotated(images, job.objects())
    columns = slice(1, None) if model.shape[1] == 2 else slice(None)
    return features, model[:, columns].astype(float), human[:, columns].astype(float), kept


def _estimates(losses: pd.DataFrame) -> dict[str, Estimate]:
    """DPA and the qualities of both sides, from the losses of one direction."""
    seeds = losses.groupby("seed")[["model", "human"]].agg(["sum", "size"]).to_numpy()
    image_id = losses["image_id"].cat.remove_unused_categories()
    images = losses.groupby(image_id, observed=True)[["model", "human"]].agg(["sum", "size"])
    ways = {"DPA": _amplification, "DPA_M": _model, "DPA_H": _human}
    return {
        name: Estimate(
            tuple(images.index), images.to_numpy(dtype=float), METRICS[name].scale * of(seeds), METRICS[name].scale, of
        )
        for name, of in ways.items()
    }


def _model(sums: np.ndarray) -> np.ndarray:
    return sums[..., 1] / sums[..., 0]


def _human(sums: np.ndarray) -> np.ndarray:
    return sums[..., 3] / sums[..., 2]


def _amplification(sums: np.ndarray) -> np.ndarray:
    return predictability(_model(sums), _human(sums))
