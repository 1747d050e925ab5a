"""DPA: labels guessed from labels, in both directions.

A->T: the objects that captions name, guessed from the labelled value. T->A: the value that captions name, guessed from
the objects on the image. The human side is one human caption per image, drawn by seed, since a model writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from capbias_core.aggregate import Estimate, Refits, shared_intervals
from capbias_core.attackers.labels import guess_labels
from capbias_core.attributes import need_words
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import (
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
from capbias_core.measures.options import Split80
from capbias_core.metrics.predictability import amplification, as_unlike, cross_entropy
from capbias_core.prepare import child_seed, image_split
from capbias_core.prepare.split import BOOTSTRAP, SMALLEST_GROUP
from capbias_core.types import A_TO_T, T_TO_A, left_out_lines
from capbias_core.workspace.store import RunRow, Workspace, bytes_frame, frame_bytes

_TOKAS = "Tokas et al., NeurIPS 2025"

METRICS = by_name(
    Metric(
        "DPA",
        "DPA, predictability of labels",
        100,
        zero,
        "lower",
        (-100, 100),
        f"{_TOKAS}; range as in DBAC",
        "How much better than in the human captions a model guesses which objects are named from the labelled value "
        "(A->T), or which value from the objects on the image (T->A). Words beside these are not seen. The human side "
        "is made as unlike itself as the model is unlike it, which takes people's word for the truth: two people who "
        "each err a little also come out above 0.",
    ),
    Metric(
        "DPA_M",
        "DPA's quality on the model's captions",
        1,
        no_neutral,
        "lower",
        (0, float("inf")),
        _TOKAS,
        "1 / cross-entropy of the guesses from the model's captions.",
        side="model",
    ),
    Metric(
        "DPA_H",
        "DPA's quality on the human captions",
        1,
        no_neutral,
        "lower",
        (0, float("inf")),
        _TOKAS,
        "The same on the human captions, made as unlike the labels as the model's are.",
        side="human",
    ),
)

# What a direction guesses from what, by seed: features by image, labels of the model's and the human captions by image,
# and which images take part.
Guess = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def run(job: Job) -> Outcome:
    """Both directions, if the inputs allow them."""
    sides = both_sides(job)
    images = sides[0].images
    directions = {A_TO_T: _objects_named, T_TO_A: _value_named}
    found, notes, reasons = run_available(
        {name: partial(_losses, job, sides, guess, place) for place, (name, guess) in enumerate(directions.items())},
        "DPA ",
    )
    losses = pd.concat([own.assign(direction=name) for name, own in found.items()], ignore_index=True)
    losses["image_id"] = pd.Categorical.from_codes(losses.pop("image"), images)
    results = []
    for direction in losses["direction"].unique():
        own = losses[losses["direction"] == direction]
        found = _estimates(own)
        intervals, said = shared_intervals(found), found["DPA"].interval_method
        method = f"logistic regression on labels; Q = 1 / cross-entropy; std over seeds; {said}"
        n = int(own.groupby("seed").size().mean())
        results += [
            job.result(METRICS[name], one, n, method, direction, intervals[name]) for name, one in found.items()
        ]
    return Outcome(results, {"losses": frame_bytes(losses)}, (*notes, *left_out_lines(reasons)))


def estimates(workspace: Workspace, run: RunRow) -> dict[tuple[str, str], Estimate]:
    """The estimates of a finished run again from the losses on held-out images, by metric and direction."""
    losses = bytes_frame(workspace.array(run.run_id, "losses"))
    return {
        (name, direction): own
        for direction in losses["direction"].unique()
        for name, own in _estimates(losses[losses["direction"] == direction]).items()
    }


def _losses(job: Job, sides: Sequence[CaptionSide], guess: Callable[..., Guess], part: int) -> tuple[pd.DataFrame, str]:
    """One row per held-out image and seed: image, seed, model and human (its mean loss on each side), training (how
    many images were trained on); and a note."""
    side, rows, note = sides[0], [], ""
    for done, seed in enumerate(job.spec.seeds):
        job.progress((part + done / len(job.spec.seeds)) / 2, f"seed {done + 1} of {len(job.spec.seeds)}")
        rng = np.random.default_rng(child_seed(seed, BOOTSTRAP))
        features, model, human, kept = guess(job, sides, [own.one_per_image(rng) for own in sides])
        split = image_split(side.y, side.k, seed, job.options.test_share, side.images)
        train, test = (own[kept[own]] for own in (split.train, split.test))
        _check_size(len(train), len(test))
        human[kept] = as_unlike(human[kept], model[kept], rng)
        found = {
            name: cross_entropy(guess_labels(features[train], truth[train], features[test]), truth[test]).mean(axis=1)
            for name, truth in (("model", model), ("human", human))
        }
        rows.append(pd.DataFrame({"image": test, "seed": seed, "training": len(train), **found}))
        note = f"{len(train):,} training and {len(test):,} test images, not balanced."
        if not kept.all():
            note += f" {(~kept).sum():,} images do not take part: their objects or values are not known or not named."
    return pd.concat(rows, ignore_index=True), note


def _check_size(train: int, test: int) -> None:
    if min(train, test) < SMALLEST_GROUP:
        raise NotMeasurable(
            f"Only {train} training and {test} test images take part, and {SMALLEST_GROUP} of each are needed.",
            "Load captions and objects of more images.",
        )


def _objects_named(job: Job, sides: Sequence[CaptionSide], drawn: list[np.ndarray]) -> Guess:
    """A->T: all images take part."""
    model, human = (side.objects[own].toarray().astype(float) for side, own in zip(sides, drawn, strict=True))
    often = np.minimum(model.mean(axis=0), human.mean(axis=0)) >= LEAST_SHARE
    if not often.any():
        raise NotMeasurable(
            f"No object is named in {LEAST_SHARE:.0%} of the model's captions and of the human ones.",
            "Check that the captions are in English.",
        )
    features = one_hot(sides[0].y, sides[0].k).toarray()
    return features, model[:, often], human[:, often], np.ones(len(sides[0].images), dtype=bool)


def _value_named(job: Job, sides: Sequence[CaptionSide], drawn: list[np.ndarray]) -> Guess:
    """T->A: the images whose objects are known and on which both captions name one value take part."""
    images, objects = sides[0].images, job.objects()
    need_words(job.attribute)
    if objects is None:
        raise NotMeasurable("The objects of the images are not known.", "Load them with --objects.")
    _, on_image = objects_of(images, objects)
    features = on_image[:, common_objects(on_image)].toarray().astype(float)
    model, human = (side.values[own].toarray() for side, own in zip(sides, drawn, strict=True))
    kept = (model.sum(axis=1) == 1) & (human.sum(axis=1) == 1) & annotated(images, objects)
    columns = slice(1, None) if model.shape[1] == 2 else slice(None)
    return features, model[:, columns].astype(float), human[:, columns].astype(float), kept


def _estimates(losses: pd.DataFrame) -> dict[str, Estimate]:
    """DPA and the qualities of both sides, from the losses of one direction."""
    image_id = losses["image_id"].cat.remove_unused_categories()
    names, image = tuple(image_id.cat.categories), image_id.cat.codes.to_numpy()
    seeds, seed = np.unique(losses["seed"], return_inverse=True)
    ones = np.ones(len(losses))
    rows = np.column_stack([losses["model"], ones, losses["human"], ones])
    held_out = np.zeros((len(seeds), len(names)), dtype=bool)
    held_out[seed, image] = True

    def by_seed(kept: np.ndarray) -> np.ndarray:
        return _grouped(rows[kept[seed, image]], seed[kept[seed, image]], len(seeds))

    training = round(losses.groupby("seed")["training"].first().mean())
    refits = Refits(tuple(seeds.tolist()), held_out, training, by_seed)
    sums, values = _grouped(rows, image, len(names)), by_seed(held_out)
    statistics = {"DPA": _amplification, "DPA_M": _model, "DPA_H": _human}
    found = {}
    for name, of in statistics.items():
        own = METRICS[name]
        shown = own.scale * of(values)
        found[name] = Estimate(names, sums, shown, own.scale, of, refits, bool(own.side), own.range)
    return found


def _grouped(rows: np.ndarray, group: np.ndarray, size: int) -> np.ndarray:
    """(n, M) rows to the (size, M) sums of each group."""
    return np.column_stack([np.bincount(group, column, size) for column in rows.T])


def _model(sums: np.ndarray) -> np.ndarray:
    return sums[..., 1] / sums[..., 0]


def _human(sums: np.ndarray) -> np.ndarray:
    return sums[..., 3] / sums[..., 2]


def _amplification(sums: np.ndarray) -> np.ndarray:
    return amplification(_model(sums), _human(sums))


MEASURE = Measure(
    name="dpa",
    title="DPA",
    place=5,
    metrics=tuple(METRICS.values()),
    groups=(Group("dpa", "DPA", ("DPA", "DPA_M", "DPA_H")),),
    options=Split80,
    needs=Needs(references="required", objects="optional"),
    version=3,
    seconds=0.6,
    run=run,
    estimates=estimates,
)
