"""How long a measure takes: rough seconds on two free cores, from what a run reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from capbias_core.attackers import attacker_entry

# The set on which seconds were measured (COCO), and how many seeds it had.
FULL_SET = 15_000
USUAL_SEEDS = 10
# Captions of a fit whose seconds an attacker's entry gives, and how many networks train at a time.
TRAINED = 6_000
CORES = 2
# Seconds until a worker has imported PyTorch and begins.
START = 5.0


@dataclass(frozen=True)
class CaptionCounts:
    """The captions that a run reads: of how many labelled images, as many of each value (balanced), how many captions
    (count), and how many different ones."""

    images: int
    balanced: int
    count: int
    different: int


def _not_counted() -> CaptionCounts:
    raise ValueError("captions that were not counted")


@dataclass(frozen=True)
class Size:
    """What a run reads. images: at most. per_image: captions an image of the set. references_per_image: 0 for none.
    count: counts the captions, which takes a moment the first time."""

    images: int
    per_image: int = 1
    references_per_image: int = 0
    count: Callable[[], CaptionCounts] = _not_counted


def per_image(seconds: float) -> Callable[[Size, Any], float]:
    """A cost that grows with the images; seconds: for 15,000."""
    return lambda size, options: seconds * size.images / FULL_SET


def per_seed(seconds: float) -> Callable[[Size, Any], float]:
    """A cost that grows with the images and the seeds; seconds: for 15,000 images and ten seeds."""
    return lambda size, options: seconds * size.images / FULL_SET * options.seeds / USUAL_SEEDS


def held_out_cost(seconds: float, tasks: bool = False) -> Callable[[Size, Any], float]:
    """The cost of attackers of every seed on both sides. tasks: whether task words are guessed, too."""

    def cost(size: Size, options: Any) -> float:
        counts = size.count()
        fits = options.seeds * (size.per_image + size.references_per_image)
        read = counts.different + size.references_per_image * counts.images
        return per_image(seconds)(size, options) + attacker_seconds(options.attacker, counts, fits, read, 0.0, tasks)

    return cost


def attacker_seconds(
    attacker: str, counts: CaptionCounts, fits: int, read: int, explained: float, tasks: bool = False
) -> float:
    """Seconds of attackers: to read captions, to train, to explain words."""
    entry = attacker_entry(attacker)
    turns = math.ceil(fits / CORES) if entry.one_seed_per_thread else fits
    return (
        (0.0 if entry.in_process else START)
        + entry.seconds.to_read * read / 1_000
        + entry.seconds.a_fit * (entry.seconds.tasks if tasks else 1.0) * turns * counts.balanced / TRAINED
        + entry.seconds.to_explain * explained / 1_000
    )
