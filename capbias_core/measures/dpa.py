"""DPA: labels guessed from labels, in both directions.

A->T: the objects that captions name, guessed from the labelled value. T->A: the value that captions name, guessed from
the objects on the image. The human side is one human caption per image, drawn by seed, since a model writes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from capbias_core.aggregate import DIFFERENCE, OVER_SEEDS, WEIGHT, Counts, Metric, Needs
from capbias_core.attributes import need_words
from capbias_core.data import Data
from capbias_core.errors import NotMeasurable
from capbias_core.measures.base import Group, Measure, Outcome, run_available
from capbias_core.measures.caption_side import LEAST_SHARE, CaptionSide, both_sides, common_objects, objects_of, one_hot
from capbias_core.measures.options import Split80
from capbias_core.metrics.dbac import amplification
from capbias_core.metrics.share import share
from capbias_core.prepare.split import BOOTSTRAP, SMALLEST_GROUP, child_seed, image_split
from capbias_core.processes import one_thread
from capbias_core.types import A_TO_T, T_TO_A, Progress, left_out_lines

_TOKAS = "Tokas et al., NeurIPS 2025"

COLUMNS = ("model", "images", "human")
SMALLEST = 1e-12

METRICS = (
    Metric(
        "DPA",
        "DPA, predictability of labels",
        *DIFFERENCE,
        f"{_TOKAS}; range as in DBAC",
        "How much better than in the human captions a model guesses which objects are named from the labelled value "
        "(A->T), or which value from the objects on the image (T->A). Words beside these are not seen. The human side "
        "is made as unlike itself as the model is unlike it, which takes people's word for the truth: two people who "
        "each err a little also come out above 0.",
        reads=COLUMNS,
        of=lambda model, images, human: amplification(share(images, model), share(images, human)),
        training_twice=False,
    ),
    Metric(
        "DPA_M",
        "DPA's quality on the model's captions",
        *WEIGHT,
        _TOKAS,
        "1 / cross-entropy of the guesses from the model's captions.",
        side="model",
        reads=COLUMNS,
        of=lambda model, images, human: share(images, model),
    ),
    Metric(
        "DPA_H",
        "DPA's quality on the human captions",
        *WEIGHT,
        _TOKAS,
        "The same on the human captions, made as unlike the labels as the model's are.",
        side="human",
        reads=COLUMNS,
        of=lambda model, images, human: share(images, human),
    ),
)

# What a direction guesses from what, by seed: features by image, labels of the model's and the human captions by image,
# and which images take part.
Guess = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def count(data: Data, options: Any, progress: Progress) -> Outcome:
    """Both directions, if the inputs allow them."""
    sides = both_sides(data)
    directions = {A_TO_T: _objects_named, T_TO_A: _value_named}
    counts, notes, reasons = run_available(
        {
            name: partial(_losses, data, options, progress, sides, guess, part)
            for part, (name, guess) in enumerate(directions.items())
        },
        "DPA ",
    )
    method = f"logistic regression on labels; Q = 1 / cross-entropy; {OVER_SEEDS}"
    sizes = {direction: {"n": len(one.image) // len(one.seeds)} for direction, one in counts.items()}
    return Outcome(counts, {"method": method}, [*notes, *left_out_lines(reasons)], own_columns=sizes)


def _losses(
    data: Data, options: Any, progress: Progress, sides: Sequence[CaptionSide], guess: Callable[..., Guess], part: int
) -> tuple[Counts, str]:
    """The mean loss of each held-out image on each side, by seed; and a note."""
    side, rows, sizes = sides[0], [], []
    for done, seed in enumerate(options.seed_numbers):
        progress((part + done / len(options.seed_numbers)) / 2, f"seed {done + 1} of {len(options.seed_numbers)}")
        drawing = child_seed(seed, BOOTSTRAP)
        rng = np.random.default_rng(drawing)
        features, model, human, kept = guess(data, sides, [side.one_per_image(drawing) for side in sides])
        split = image_split(side.y, side.k, seed, options.test_share, side.images)
        train, test = (part[kept[part]] for part in (split.train, split.test))
        if min(len(train), len(test)) < SMALLEST_GROUP:
            raise NotMeasurable(
                f"Only {len(train)} training and {len(test)} test images take part, and {SMALLEST_GROUP} of each are "
                "needed.",
                "Load captions and objects of more images.",
            )
        human[kept] = as_unlike(human[kept], model[kept], rng)
        losses = {
            name: cross_entropy(guess_labels(features[train], truth[train], features[test]), truth[test]).mean(axis=1)
            for name, truth in (("model", model), ("human", human))
        }
        rows.append(pd.DataFrame({"image": test, "seed": seed, "images": 1.0, **losses}))
        sizes.append((len(train), len(test), (~kept).sum()))
    table = {name: column.to_numpy() for name, column in pd.concat(rows, ignore_index=True).items()}
    image, seed = table.pop("image"), table.pop("seed")
    training, tested, left_out = np.round(np.mean(sizes, axis=0)).astype(int).tolist()
    note = f"{training:,} training and {tested:,} test images per seed on average, not balanced."
    if left_out:
        note += f" {left_out:,} images do not take part: their objects or values are not known or not named."
    return Counts(tuple(side.images), side.y, table, image, seed, training), note


def cross_entropy(shares: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(n, L) probabilities and 0 or 1 to (n, L) losses in nats."""
    guessed = np.clip(shares, SMALLEST, 1 - SMALLEST)
    return -(truth * np.log(guessed) + (1 - truth) * np.log(1 - guessed))


def as_unlike(human: np.ndarray, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Human labels (n, L) of 0 or 1 that differ from themselves as often as the model's differ from them.

    In each column as many labels are taken away at random as the model misses, and as many are added as it adds: so
    they are as common as the model's, too.
    """
    changed = human.copy()
    for column in range(human.shape[1]):
        for label in (1, 0):
            rows = np.flatnonzero(human[:, column] == label)
            count = int((model[rows, column] != label).sum())
            changed[rng.permutation(rows)[:count], column] = 1 - label
    return changed


def guess_labels(train: np.ndarray, truth: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Probabilities (m, L) of labels for test (m, M), by logistic regressions on train (n, M) and truth (n, L), 0 or 1.
    L2 penalty with C = 1. A label that is always or never there in training gets its smoothed share."""
    from sklearn.linear_model import LogisticRegression

    shares = np.empty((len(test), truth.shape[1]))
    with one_thread():
        for column, label in enumerate(truth.T):
            if label.min() == label.max():
                shares[:, column] = (label.sum() + 0.5) / (len(label) + 1)
            else:
                shares[:, column] = LogisticRegression().fit(train, label).predict_proba(test)[:, 1]
    return shares


def _objects_named(data: Data, sides: Sequence[CaptionSide], drawn: list[np.ndarray]) -> Guess:
    model, human = (side.objects[places].toarray().astype(float) for side, places in zip(sides, drawn, strict=True))
    often = np.minimum(model.mean(axis=0), human.mean(axis=0)) >= LEAST_SHARE
    if not often.any():
        raise NotMeasurable(
            f"No object is named in {LEAST_SHARE:.0%} of the model's captions and of the human ones.",
            "Check that the captions are in English.",
        )
    features = one_hot(sides[0].y, sides[0].k).toarray()
    return features, model[:, often], human[:, often], np.ones(len(sides[0].images), dtype=bool)


def _value_named(data: Data, sides: Sequence[CaptionSide], drawn: list[np.ndarray]) -> Guess:
    """T->A: the images whose objects are known and on which both captions name one value take part."""
    need_words(data.attribute)
    _, on_image, known = objects_of(sides[0].images, data.objects)
    features = on_image[:, common_objects(on_image)].toarray().astype(float)
    model, human = (side.values[places].toarray() for side, places in zip(sides, drawn, strict=True))
    kept = (model.sum(axis=1) == 1) & (human.sum(axis=1) == 1) & known
    columns = slice(1, None) if model.shape[1] == 2 else slice(None)
    return features, model[:, columns].astype(float), human[:, columns].astype(float), kept


MEASURE = Measure(
    name="dpa",
    title="DPA",
    position=5,
    metrics=METRICS,
    groups=(Group("dpa", "DPA", ("DPA", "DPA_M", "DPA_H")),),
    options=Split80,
    needs=Needs(references="required", objects="optional"),
    version=7,
    seconds=0.6,
    count=count,
)
