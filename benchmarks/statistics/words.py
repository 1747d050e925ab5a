"""How often are words named that people use alike, and how often is a planted word found?

Captioners of known truth are made from the human captions in the folder DATA (made.py) and compared with the other
human captions of the same images by `ngram`, as Words on the page Captions does. Of `word NAME` a stereotyped word is
added to a share of one value's captions.

    python -m benchmarks.statistics.words DATA --attribute gender --images 2450 --draws 5
    python -m benchmarks.statistics.words DATA --captions results/oscar.json results/sat.json

With --samples: in how many random samples of a captioner's images does an interval of a tested word miss?

    python -m benchmarks.statistics.words DATA --captions results/oscar.json --images 1200 --samples 40
"""

from __future__ import annotations

import argparse
import json
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.statistics.made import LABELS, MAKERS, World
from capbias_core.attackers import DEFAULT_ATTACKER, attacker_entry, load_attacker
from capbias_core.attributes import get_attribute
from capbias_core.measures.training import AttackerTrainer
from capbias_core.measures.word_comparison import ENDS, HALF, complete_lists, explain_sides
from capbias_core.prepare.split import balanced_split
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import silent

SHARES = (0.3, 0.1, 0.05)


def compared(captions: dict[int, list[str]], humans: dict[int, list[str]], second: dict[int, bool], attribute: str):
    """The table of words. captions, humans: by image. second: whether each image has the second value."""
    images = sorted(captions.keys() & humans.keys() & second.keys())
    y, ids, sides = np.array([int(second[image]) for image in images]), tuple(map(str, images)), []
    splits = [balanced_split(y, 2, seed, HALF, ids) for seed in range(attacker_entry(DEFAULT_ATTACKER).seeds)]
    for texts in (captions, humans):
        rows = [(str(image), index, text) for image in images for index, text in enumerate(texts[image])]
        frame = pd.DataFrame(rows, columns=["image_id", "caption_index", "caption"])
        masked = Tokens.of(frame["caption"]).masked(get_attribute(attribute))
        sides.append(complete_lists(frame, masked, ids))
    trainer = AttackerTrainer(load_attacker(DEFAULT_ATTACKER), 2, y, ids, silent, len(splits) * sum(map(len, sides)))
    return explain_sides(trainer, sides, splits)


def report(name: str, table: pd.DataFrame, planted: str = "") -> None:
    """A line: words named of words tested, and those that are named."""
    named = table[(table["low"] > 0) | (table["high"] < 0)].sort_values("difference", ascending=False)
    found = f", planted word {'named' if planted in set(named['word']) else 'missed'}" if planted else ""
    words = ", ".join(f"{row.word} {row.captioner:.2f}/{row.human:.2f}" for row in named.head(12).itertuples())
    print(f"{name}: {len(named)} of {int(table['tested'].sum())} named{found}. {words}", flush=True)


def coverage(name: str, captions: dict, humans: dict, second: dict, attribute: str, images: int, samples: int) -> None:
    """A line: the share of samples in which any interval of a tested word misses the mean over samples."""
    both, tables = sorted(captions.keys() & humans.keys() & second.keys()), []
    for sample in range(samples):
        drawn = np.random.default_rng(sample).choice(both, images, replace=False).tolist()
        table = compared({image: captions[image] for image in drawn}, humans, second, attribute)
        # Toward the second value, so that a word has one sign in all samples.
        sign = np.where(table["toward"] == 1, 1, -1)
        numbers = {name: sign * table[name] for name in chain(ENDS, *ENDS.values())}
        tables.append(table.assign(**numbers, sample=sample))
    table, shares = pd.concat(tables, ignore_index=True), []
    for side, ends in ENDS.items():
        low, high = table[list(ends)].min(axis=1), table[list(ends)].max(axis=1)
        truth = table.groupby("word")[side].transform("mean")
        misses = table["tested"] & ((low > truth) | (high < truth))
        shares.append(f"{side} {misses.groupby(table['sample']).any().mean():.0%}")
    print(f"{name}, {samples} samples of {images:,} images: any tested word misses: {', '.join(shares)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--attribute", choices=list(LABELS), default="gender")
    parser.add_argument("--images", type=int, default=2450)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--makers", nargs="+", default=[name for name in MAKERS if name != "planted_nearest_30"])
    parser.add_argument("--captions", nargs="+", default=[], help="files of a captioner in DATA, instead of made ones")
    parser.add_argument("--samples", type=int, default=0, help="samples of --images of the captioner's images")
    asked = parser.parse_args()
    for draw in range(1, 1 + (1 if asked.captions else asked.draws)):
        world = World(asked.data, asked.attribute, 100_000 if asked.captions else asked.images, draw)
        humans = {image: list(texts) for image, *texts in zip(world.ids, *world.references, strict=True)}
        for file in asked.captions:
            rows = json.loads((asked.data / file).read_text())
            captions = {row["image_id"]: [row["caption"]] for row in rows}
            if asked.samples:
                given = (captions, humans, world.second, asked.attribute)
                coverage(file, *given, asked.images, asked.samples)
            else:
                report(file, compared(captions, humans, world.second, asked.attribute))
        for maker in () if asked.captions else asked.makers:
            captions = {image: [" ".join(words)] for image, words in MAKERS[maker](world).items()}
            report(f"{draw} {maker}", compared(captions, humans, world.second, asked.attribute))
        for word, value in () if asked.captions else (("umbrella", False), ("skateboard", True)):
            chances = np.random.default_rng(draw).random(len(world.ids))
            for share in SHARES:
                captions = {
                    image: [" ".join([*own, word] if world.second[image] == value and chance < share else own)]
                    for (image, own), chance in zip(world.own.items(), chances, strict=True)
                }
                report(f"{draw} word {word} {share}", compared(captions, humans, world.second, asked.attribute), word)


if __name__ == "__main__":
    main()
