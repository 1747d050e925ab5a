"""From which length on can captions that say no more than people's get a verdict, and does a cut prevent it?

A captioner is one human caption of each image, cut to a share of its words, or followed by the first words of another
human caption of that image; three others are the references. It says nothing that people do not say, so each verdict
follows from its length alone. "cut" holds the longer side to the words that make both equally long on average, as
measures/lic.py does.

    python -m benchmarks.statistics.length DATA --images 7800 --sets 3
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.statistics.cross_evaluation import numbers
from benchmarks.statistics.made import LABELS, Words, World
from capbias_core.aggregate.estimate import verdict
from capbias_core.aggregate.resampling import OF_LEVEL, refit_interval
from capbias_core.attributes import get_attribute
from capbias_core.prepare.text import tokenize, words_for
from capbias_core.prepare.tokens import Tokens

SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)


def of_length(world: World, share: float) -> list[Words]:
    """A caption of each image with so many times the words of one human caption, the further ones from another."""
    captions = []
    for image, more in zip(world.ids, world.references[0], strict=True):
        own = world.own[image]
        words = int(share * len(own) + world.random.random())
        captions.append([*own, *tokenize(more)][: max(1, words)])
    return captions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--attribute", choices=LABELS, default="gender")
    parser.add_argument("--images", type=int, default=2450)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    asked = parser.parse_args()
    attribute, rows = get_attribute(asked.attribute), []
    for number in range(asked.sets):
        world = World(asked.data, asked.attribute, asked.images, number)
        y = np.array([world.second[image] for image in world.ids]).astype(int)
        humans = [Tokens.of(own).masked(attribute) for own in world.references[1:]]
        people = np.concatenate([human.lengths for human in humans])
        for share in asked.shares:
            model = Tokens.of(map(" ".join, of_length(world, share))).masked(attribute)
            sides = {"whole": (model, humans)}
            longer = model.lengths if model.lengths.mean() > people.mean() else people
            words = words_for(longer, min(model.lengths.mean(), people.mean()))
            if longer is people:
                sides["cut"] = model, [human.first(words) for human in humans]
            else:
                sides["cut"] = model.first(words), humans
            for name, (one, other) in sides.items():
                hh, hm, mh, mm = numbers(one, other, y, tuple(map(str, world.ids)), asked.seeds, ("apart",))["apart"]
                up, down = refit_interval(hm - hh, 1 / 9), refit_interval(mm - mh, 1 / 9, OF_LEVEL)
                told = verdict(up[0], down[1])
                row = {"share": share, "side": name, "LIC": (mm - hh).mean(), "LIC_by_H": (hm - hh).mean()}
                row |= {"low": up[0], "LIC_by_M": (mm - mh).mean(), "high": down[1]}
                row |= {"amplifies": told == "amplifies", "reduces": told == "reduces"}
                rows.append(row)
        table = pd.DataFrame(rows).groupby(["share", "side"]).mean()
        print(f"{number + 1} sets of {asked.images:,} images\n{table.round(2).to_string()}\n", file=sys.stderr)


if __name__ == "__main__":
    main()
