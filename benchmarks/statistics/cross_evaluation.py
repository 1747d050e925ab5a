"""How often is a verdict on amplification wrong, and how often is amplification found, by each way to compare?

Each attacker reads both sides of the held-out images. Three ways to do so: an attacker per list of human captions,
their scores averaged ("apart", the library's); the same attackers, their logits averaged ("logits"); one attacker
trained on all lists ("joined"). Captioners of known truth are drawn (synthetic.py), or made from the human captions in
the folder DATA (made.py). Those named null_ say no more of the label than people do:

    python -m benchmarks.statistics.cross_evaluation synthetic --sets 200 --keep FILE
    python -m benchmarks.statistics.cross_evaluation made DATA --attribute gender --sets 30 --keep FILE
    python -m benchmarks.statistics.cross_evaluation show FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.statistics.made import LABELS, MAKERS, World
from benchmarks.statistics.synthetic import Design, draw
from capbias_core.aggregate.resampling import OF_LEVEL, refit_interval
from capbias_core.attackers.base import Training, probabilities
from capbias_core.attackers.ngram import NgramAttacker
from capbias_core.attributes import get_attribute
from capbias_core.metrics.lic import lic_scores
from capbias_core.prepare.align import Alignment
from capbias_core.prepare.split import balanced_split
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import silent

# Best possible LIC 0. Swapped captions give the label away as before, and are wrong about their images. Mistaken ones
# are so in half of what goes with the label, and right in one or two things that do not.
DESIGNS = {
    "null_one-topic": Design(slots=1),
    "null_plain": Design(),
    "null_half-plain": Design(main=0.5),
    "null_equal": Design(main=0.0),
    "null_two-synonyms": Design(synonyms=2),
    "null_three-topics": Design(slots=3),
    "null_told-70": Design(told=0.7),
    "null_told-30": Design(told=0.3),
    "null_swapped-20": Design(swapped=0.2),
    "null_swapped-50": Design(swapped=0.5),
    "null_swapped-80": Design(swapped=0.8),
    "null_mistaken-1": Design(slots=2, neutral=1, leaning=1.1, mistaken=0.5),
    "null_mistaken-2": Design(slots=3, neutral=2, leaning=1.1, mistaken=0.5),
    "planted_amplified-30": Design(amplified=0.3),
    "planted_amplified-60": Design(amplified=0.6),
    "planted_one-topic-60": Design(slots=1, amplified=0.6),
    "planted_equal-60": Design(main=0.0, amplified=0.6),
}
WAYS = ("apart", "logits", "joined")


def numbers(
    model: Tokens, humans: list[Tokens], y: np.ndarray, images: tuple[str, ...], seeds: int, ways=WAYS
) -> dict[str, np.ndarray]:
    """By way the (4, seeds) mean scores: human attackers on human captions and on the model's, the model's on both.

    model, humans[j]: a masked caption of every image. y: (n,) 0 or 1.
    """
    splits = [balanced_split(y, 2, seed, 0.1, images) for seed in range(seeds)]
    known = [frozenset(model.rows(split.train).words) for split in splits]
    texts = [model, *(Alignment(words).captions(human) for human in humans for words in known)]
    start = np.cumsum([len(part) for part in texts])[:-1]
    attacker = NgramAttacker()
    corpus = attacker.corpus(Tokens.join(texts))
    begin = start.reshape(len(humans), seeds)  # (R, S) where each version starts

    def fitted(places: np.ndarray) -> list:
        """An attacker for each seed. places: (r, S) where its captions start, r for an image."""
        rows = [np.concatenate([split.train + at for at in own]) for split, own in zip(splits, places.T, strict=True)]
        trainings = [
            Training(own, np.tile(y[split.train], len(places)), seed)
            for seed, (own, split) in enumerate(zip(rows, splits, strict=True))
        ]
        return list(attacker.fit_many(corpus, trainings, 2, silent))

    by_model = fitted(np.zeros((1, seeds), dtype=int))
    apart = [fitted(row[None]) for row in begin] if {"apart", "logits"} & set(ways) else []
    joined = fitted(begin) if "joined" in ways else []
    found = {way: np.zeros((4, seeds)) for way in ways}
    for seed, split in enumerate(splits):
        test, label = split.test, y[split.test]
        rows = [test + at for at in begin[:, seed]]
        both = np.concatenate(rows)

        def score(logits: np.ndarray, label=label) -> float:
            return 100 * float(lic_scores(probabilities(logits), np.tile(label, len(logits) // len(label))).mean())

        people = [row[seed] for row in apart]
        on_model = [one.logits(corpus, test) for one in people]
        for way, own in found.items():
            if way == "apart":
                on_human = [one.logits(corpus, at) for one, at in zip(people, rows, strict=True)]
                own[:2, seed] = np.mean([*map(score, on_human)]), np.mean([*map(score, on_model)])
            elif way == "logits":
                on_human = np.mean([one.logits(corpus, both) for one in people], axis=0)
                own[:2, seed] = score(on_human), score(np.mean(on_model, axis=0))
            else:
                own[:2, seed] = score(joined[seed].logits(corpus, both)), score(joined[seed].logits(corpus, test))
            own[2:, seed] = score(by_model[seed].logits(corpus, both)), score(by_model[seed].logits(corpus, test))
    return found


def synthetic(images: int, sets: range, designs: list[str]) -> Iterator[tuple]:
    for seed in sets:
        for name in designs:
            drawn = draw(DESIGNS[name], images, seed)
            yield name, seed, drawn.model, drawn.humans, drawn.labels, tuple(map(str, range(images)))


def made(data: Path, attribute: str, images: int, sets: range) -> Iterator[tuple]:
    of = get_attribute(attribute)
    for number in sets:
        world = World(data, attribute, images, number)
        y = np.array([world.second[image] for image in world.ids]).astype(int)
        humans = [Tokens.of(own).masked(of) for own in world.references]
        for name, make in MAKERS.items():
            captions = make(world)
            model = Tokens.of(" ".join(captions[image]) for image in world.ids).masked(of)
            yield name, number, model, humans, y, tuple(map(str, world.ids))


def show(file: Path, seeds: int) -> pd.DataFrame:
    """By family, way and captioner: means, and the shares in % whose interval allows each verdict."""
    rows = []
    for line in file.read_text().splitlines():
        kept = json.loads(line)
        for way, own in kept.pop("found").items():
            hh, hm, mh, mm = np.array(own)[:, :seeds]
            ratio = kept["test"] / kept["train"]
            up, down = refit_interval(hm - hh, ratio), refit_interval(mm - mh, ratio, OF_LEVEL)
            lic = refit_interval(mm - hh, ratio)
            rows.append(
                {name: kept[name] for name in ("family", "images", "name")}
                | {"way": way, "n": 1, "LIC": (mm - hh).mean(), "H row": (hm - hh).mean(), "M row": (mm - mh).mean()}
                | {"LIC>0": 100 * _above(lic), "amplifies": 100 * _above(up)}
                | {"reduces": 100 * _above((_negative(down[1]), None))}
            )
    by = ["family", "images", "name", "way"]
    table = pd.DataFrame(rows).groupby(by, sort=False)
    return table.mean(numeric_only=True).assign(n=table["n"].sum()).round(1)


def _above(interval) -> float:
    return float(interval[0] is not None and interval[0] > 0)


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    drawn, from_people, shown = (kinds.add_parser(name) for name in ("synthetic", "made", "show"))
    drawn.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS), metavar="NAME")
    from_people.add_argument("data", type=Path)
    from_people.add_argument("--attribute", choices=LABELS, default="gender")
    for own, images in ((drawn, 1576), (from_people, 2450)):
        own.add_argument("--images", type=int, default=images)
        own.add_argument("--sets", type=int, default=30)
        own.add_argument("--first", type=int, default=0, help="number of the first set (default: 0)")
        own.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
        own.add_argument("--keep", type=Path, required=True, help="each set is added to this file as a line of JSON")
    for own, default in ((drawn, 10), (from_people, 10), (shown, None)):
        own.add_argument("--seeds", type=int, default=default)
    shown.add_argument("file", type=Path)
    given = parser.parse_args()
    if given.kind == "show":
        print(show(given.file, given.seeds).to_string())
        return
    sets = range(given.first, given.first + given.sets)
    if given.kind == "synthetic":
        family, sides = "synthetic", synthetic(given.images, sets, given.designs)
    else:
        family, sides = given.attribute, made(given.data, given.attribute, given.images, sets)
    for name, number, model, humans, y, images in sides:
        found = numbers(model, humans, y, images, given.seeds, given.ways)
        split = balanced_split(y, 2, 0, 0.1, images)
        row = {"family": family, "images": given.images, "name": name, "set": number}
        row |= {"train": len(split.train), "test": len(split.test)}
        row["found"] = {way: np.round(own, 4).tolist() for way, own in found.items()}
        with open(given.keep, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
