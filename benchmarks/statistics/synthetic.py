"""Captions whose true amplification is known, drawn without quotas.

Each image shows a label and some topics, which depend on the label. A caption names every topic by one of its synonyms
and adds words that mean nothing. People take any synonym; the captioner takes the first one mostly, so its captions are
plainer. Both see the same topics, so the best possible attacker finds equally much on either side and LIC is 0, unless
some of the captioner's topics are drawn anew from shares that depend more on the label (`amplified`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HUMANS = 5
HUMAN_FILLERS, MODEL_FILLERS, FILLERS = 30, 5, 3


@dataclass(frozen=True)
class Design:
    """synonyms: words of each topic. main: how often the captioner takes the first of them, beyond chance. told: how
    often a caption tells the image's topic, in place of any topic of its label. leaning: how far topics depend on the
    label. amplified: how often the captioner draws a topic from shares that depend more on the label. swapped: how many
    of the captioner's captions stand beside other images of the same label: they are wrong about the image and give
    the label away as before. neutral: how many of the slots, the last ones, do not depend on the label. mistaken: how
    many of the captioner's topics in the others are another image's of the label, each slot by itself. second: share of
    the second label."""

    slots: int = 2
    topics: int = 24
    synonyms: int = 5
    main: float = 0.9
    told: float = 1.0
    leaning: float = 0.8
    amplified: float = 0.0
    swapped: float = 0.0
    neutral: int = 0
    mistaken: float = 0.0
    second: float = 0.5


@dataclass(frozen=True)
class Drawn:
    """labels: (n,) 0 or 1. humans: five lists of n captions. models: of each captioner n captions."""

    labels: np.ndarray
    humans: list[list[str]]
    models: list[list[str]]

    @property
    def model(self) -> list[str]:
        """The captions of the first captioner."""
        return self.models[0]


def draw(design: Design, images: int, seed: int, captioners: int = 1, world: int | None = None) -> Drawn:
    """One data set. Labels are drawn too, so their numbers differ from set to set.

    captioners: how many, drawn alike on the same images. world: data sets of one world differ by sampling alone;
    without it each set has topics of its own, and so another true value.
    """
    rng = np.random.default_rng([seed, images])
    labels = (rng.random(images) < design.second).astype(int)
    own = rng if world is None else np.random.default_rng([world])
    leaning = own.normal(0, design.leaning, (design.slots, design.topics))
    leaning[design.slots - design.neutral :] = 0
    common = own.dirichlet(np.full(design.topics, 2.0), design.slots)
    shares = np.stack([common * np.exp(leaning / 2), common * np.exp(-leaning / 2)])
    steeper = shares ** (1 + design.amplified)
    shares, steeper = (own / own.sum(axis=2, keepdims=True) for own in (shares, steeper))
    shown = _topics(rng, labels, shares)

    def captions(by_model: bool) -> list[str]:
        told = np.where(rng.random(shown.shape) < design.told, shown, _topics(rng, labels, shares))
        words = rng.integers(0, design.synonyms, shown.shape)
        if by_model:
            told = np.where(rng.random(shown.shape) < design.amplified, _topics(rng, labels, steeper), told)
            words = np.where(rng.random(shown.shape) < design.main, 0, words)
            for slot in range(design.slots - design.neutral) if design.mistaken else ():
                told[:, slot] = _exchanged(rng, labels, told[:, slot], design.mistaken)
        fillers = rng.integers(0, MODEL_FILLERS if by_model else HUMAN_FILLERS, (images, FILLERS))
        return [
            " ".join(["a", *(f"f{own}" for own in fillers[row]), *_named(told[row], words[row])])
            for row in range(images)
        ]

    humans, models = ([captions(by) for _ in range(number)] for by, number in ((False, HUMANS), (True, captioners)))
    if design.swapped:
        models = [_exchanged(rng, labels, np.array(own, dtype=object), design.swapped).tolist() for own in models]
    return Drawn(labels, humans, models)


def _exchanged(rng: np.random.Generator, labels: np.ndarray, values: np.ndarray, share: float) -> np.ndarray:
    """A share of the values of each label in another order."""
    found = values.copy()
    for label in np.unique(labels):
        some = np.flatnonzero((labels == label) & (rng.random(len(labels)) < share))
        found[some] = found[rng.permutation(some)]
    return found


def _topics(rng: np.random.Generator, labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(n, slots) topics by the shares (labels, slots, topics) of each image's label."""
    edges = shares.cumsum(axis=2)[labels]
    return (rng.random((len(labels), shares.shape[1], 1)) > edges).sum(axis=2).clip(max=shares.shape[2] - 1)


def _named(topics: np.ndarray, words: np.ndarray) -> list[str]:
    return [f"t{slot}_{topic}_{word}" for slot, (topic, word) in enumerate(zip(topics, words, strict=True))]
