"""Captioners of known truth, made from human captions: nulls, which say no more of the label, and planted ones.

A captioner starts from one human caption of each image, and the image's four others are the references. In planted sets
the label decides some captions. The folder of data holds annotations/captions.json (COCO's format, five captions an
image), tables of labels beside it, and results/sat.json.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, diags_array

from capbias_core.attributes import get_attribute
from capbias_core.prepare.text import tokenize

HUMANS = 5
POOL = 300  # images of each value, never scored, whose captions a captioner may copy
LEAST = 25  # references that have a word, for its leaning to count
# Attribute -> file and column of its labels, and its two values.
LABELS = {
    "gender": ("attributes.csv", "gender", "Female", "Male"),
    "race": ("attributes.csv", "skin", "Dark", "Light"),
    "age": ("age.csv", "age", "young", "old"),
}
COMMON = """
a an the of in on at to and with is are was be for from by it its as that this there into up down out over off while who
which some two one their them they he she or near next behind front top other has have having
"""
STOP = frozenset(COMMON.split())

Words = list[str]


class World:
    """Images, their labels and human captions. draw: which images, and from which caption a captioner starts.

    ids: the images. second: whether each has the second value. own: the caption of each that a captioner starts from.
    references: four lists of the others. leaning: how far words lean to the second value, from the references alone.
    """

    def __init__(self, data: Path, attribute: str, images: int, draw: int):
        file, column, *values = LABELS[attribute]
        self.data, self.masked, self.random = data, get_attribute(attribute).masked_words, random.Random(draw)
        table = pd.read_csv(data / "annotations" / file, keep_default_na=False)
        labels = dict(zip(table["image_id"].tolist(), table[column], strict=True))
        self.second = {image: value == values[1] for image, value in labels.items() if value in values}
        texts: dict[int, list[str]] = {}
        for row in json.loads((data / "annotations" / "captions.json").read_text())["annotations"]:
            if row["image_id"] in self.second:
                texts.setdefault(row["image_id"], []).append(row["caption"])
        texts = {image: own[:HUMANS] for image, own in sorted(texts.items()) if len(own) >= HUMANS}
        shuffle, self.pool = random.Random(7), {}
        for value in (False, True):
            some = [image for image in texts if self.second[image] == value]
            shuffle.shuffle(some)
            self.pool |= {image: tokenize(texts[image][0]) for image in some[:POOL]}
        rest = [image for image in texts if image not in self.pool]
        self.ids = sorted(self.random.sample(rest, images)) if images < len(rest) else rest
        start = draw % HUMANS
        self.own = {image: tokenize(texts[image][start]) for image in self.ids}
        self.references = [[texts[image][place] for image in self.ids] for place in range(HUMANS) if place != start]
        self.leaning = self._leaning()

    def _leaning(self) -> dict[str, float]:
        held, sizes = (Counter[str](), Counter[str]()), [0, 0]
        for image, *texts in zip(self.ids, *self.references, strict=True):
            value = self.second[image]
            sizes[value] += 1
            held[value].update({word for text in texts for word in tokenize(text)} - STOP - self.masked)

        def share(word: str, value: int) -> float:
            return math.log((held[value][word] + 1) / (sizes[value] + 2))

        words = sorted(word for word in set(held[0]) | set(held[1]) if held[0][word] + held[1][word] >= LEAST)
        return {word: share(word, 1) - share(word, 0) for word in words}

    def commonest(self, size: int, left_out: frozenset[str] = frozenset()) -> set[str]:
        """The words that most captions have, beside those that name the label."""
        counts = Counter(word for own in self.own.values() for word in dict.fromkeys(own) if word not in self.masked)
        return set([word for word, _ in counts.most_common() if word not in left_out][:size])

    def copied(self, source: dict[int, Words], texts: dict[int, Words], share: float, top: int) -> dict[int, Words]:
        """For each image the caption of another one in source that is nearest to its text; for a share of the images,
        of the `top` nearest the one that leans most to its label."""
        keys = list(source)
        leans = [sum(self.leaning.get(word, 0.0) for word in set(source[key])) for key in keys]
        blind = [["<masked>" if word in self.masked else word for word in own] for own in source.values()]
        asked = [["<masked>" if word in self.masked else word for word in texts[image]] for image in self.ids]
        found = {}
        for image, order in zip(self.ids, _nearest(asked, blind, top + 1), strict=True):
            near = [place for place in order if keys[place] != image][:top] or order[:1] or [0]
            sign = 1 if self.second[image] else -1
            chosen = self.random.random() < share
            best = max(near, key=lambda place, sign=sign: sign * leans[place]) if chosen else near[0]
            found[image] = source[keys[best]]
        return found

    def without_stop_words(self) -> dict[int, Words]:
        return {image: [word for word in own if word not in STOP] or own for image, own in self.own.items()}

    def of_words(self, size: int) -> dict[int, Words]:
        """Only the commonest words, in their order."""
        known = self.commonest(size) | self.masked
        return {image: [word for word in own if word in known] or ["a"] for image, own in self.own.items()}

    def bag(self, size: int) -> dict[int, Words]:
        """A fixed beginning, the words that name the label, and which of some common words there are."""
        known = self.commonest(size, STOP)
        found = {}
        for image, own in self.own.items():
            named = [word for word in own if word in self.masked]
            found[image] = ["a", "photo", "of", *named, *(sorted(known.intersection(own)) or ["something"])]
        return found

    def with_word(self, share: float) -> dict[int, Words]:
        """Without stop words; in a share of the captions one of the 25 words that lean most to the label more."""
        order = sorted(self.leaning, key=lambda word: self.leaning[word])
        words, found = {False: order[:25], True: order[::-1][:25]}, {}
        for image, own in self.without_stop_words().items():
            more = [self.random.choice(words[self.second[image]])] if self.random.random() < share else []
            found[image] = own + more
        return found

    def swapped(self, name: str, share: float) -> dict[int, Words]:
        """A model's captions; a share of them replaced by the one that leans most to the label of its 20 nearest."""
        rows = json.loads((self.data / "results" / f"{name}.json").read_text())
        model = {row["image_id"]: tokenize(row["caption"]) for row in rows}
        own = {image: model[image] for image in self.ids}
        kept = {image for image in self.ids if self.random.random() >= share}
        other = self.copied(own, own, 1.0, 20)
        return {image: own[image] if image in kept else other[image] for image in self.ids}


def _nearest(texts: list[Words], pool: list[Words], top: int) -> Iterator[list[int]]:
    """For each text the places of the `top` most similar of pool (cosine of weighted words), best first."""
    place = {word: number for number, word in enumerate(dict.fromkeys(word for own in pool for word in own))}

    def counted(side: list[Words]) -> csr_array:
        pairs = [(row, place[word]) for row, own in enumerate(side) for word in own if word in place]
        matrix = csr_array((np.ones(len(pairs)), np.array(pairs).T), shape=(len(side), len(place)))
        matrix.sum_duplicates()
        return matrix

    asked, known = counted(texts), counted(pool)
    held = np.bincount(known.indices, minlength=len(place))
    rarity = diags_array(np.log((len(pool) + 1) / (held + 1)) + 1)
    for matrix in (asked, known):
        matrix.data = 1 + np.log(matrix.data)
    known = csr_array(known @ rarity)
    length = np.sqrt(np.asarray(known.multiply(known).sum(axis=1)).ravel())
    by_word = csr_array((diags_array(1 / np.maximum(length, 1e-9)) @ known).T)
    asked = csr_array(asked @ rarity)
    for start in range(0, len(texts), 500):
        for scores in np.round((asked[start : start + 500] @ by_word).toarray(), 9):
            yield [int(own) for own in np.argsort(-scores, kind="stable")[:top] if scores[own] > 0]


MAKERS: dict[str, Callable[[World], dict[int, Words]]] = {
    "null_human": lambda world: world.own,
    "null_without_stopwords": lambda world: world.without_stop_words(),
    "null_300_words": lambda world: world.of_words(300),
    "null_bag_150": lambda world: world.bag(150),
    "null_nearest_of_600": lambda world: world.copied(world.pool, world.own, 0.0, 10),
    "planted_word_30": lambda world: world.with_word(0.3),
    "planted_nearest_30": lambda world: world.copied(world.pool, world.own, 0.3, 10),
    "planted_sat_30": lambda world: world.swapped("sat", 0.3),
}
