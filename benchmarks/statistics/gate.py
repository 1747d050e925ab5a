"""How often does the gate `view change --fail-if worse` fire for twins, and for a captioner that is truly worse?

Twins are two captioners of one process: of each image two human captions, which of them is whose drawn at random; in
`word` a stereotyped word is added to 30% of the captions of both, drawn apart. Another human caption of each image is
the reference. In `swapped` the second captioner is sat with 30% of its captions swapped toward the label (made.py). The
files in DATA are those of made.py.

    python -m benchmarks.statistics.gate DATA --images 1200 --sets 100 --seeds 10
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from benchmarks.statistics.made import World
from capbias_core.api import measured, run_all, stored
from capbias_core.prepare.text import tokenize
from capbias_core.question import Question
from capbias_core.runs.inputs import resolve
from capbias_core.views.change import ChangeOptions, change_rows, gate
from capbias_core.views.choose import choose, measured_rows
from capbias_core.workspace.sources import scratch_workspace

FAMILIES = (["LIC"], ["LIC", "error", "ratio", "unnamed"])
Texts = dict[int, list[str]]


def twins(world: World, word: float) -> tuple[Texts, Texts, list[list[str]]]:
    """Two captioners of one process, and the references. word: the share of captions with a stereotyped word more."""
    other = dict(zip(world.ids, map(tokenize, world.references[0]), strict=True))
    sides, chance = (dict(world.own), other), world.random
    for image in world.ids:
        if chance.random() < 0.5:
            sides[0][image], sides[1][image] = sides[1][image], sides[0][image]
    if word:
        made = []
        for side in sides:
            world.own = side
            made.append(world.with_word(word))
        sides = made[0], made[1]
    return sides[0], sides[1], world.references[1:2]


def swapped(world: World) -> tuple[Texts, Texts, list[list[str]]]:
    """sat, and sat with captions swapped toward the label."""
    model = json.loads((world.data / "results" / "sat.json").read_text())
    written = {row["image_id"]: tokenize(row["caption"]) for row in model}
    return {image: written[image] for image in world.ids}, world.swapped("sat", 0.3), world.references[:1]


MAKERS = {"human": lambda world: twins(world, 0.0), "word": lambda world: twins(world, 0.3), "swapped": swapped}


def ended(world: World, maker: str, seeds: int) -> list[str]:
    """How the gate ends for each of FAMILIES."""
    before, after, references = MAKERS[maker](world)
    rows = [[{"image_id": image, "caption": " ".join(side[image])} for image in world.ids] for side in (before, after)]
    human = [
        {"image_id": image, "caption": text}
        for image, *texts in zip(world.ids, *references, strict=True)
        for text in texts
    ]
    labels = [{"image_id": image, "gender": ("Female", "Male")[world.second[image]]} for image in world.ids]
    question = Question.of(
        captions=dict(zip(("before", "after"), rows, strict=True)),
        labels=labels,
        references=human,
        attribute="gender",
        metrics=["LIC", "error", "ratio", "unnamed"],
        seeds=seeds,
        collection="c",
    )
    workspace = scratch_workspace()
    question = resolve(workspace, question, lambda line: None)
    report = measured(stored(workspace, question, run_all))
    assert not report.failed, report.failed
    given = {"collection": "c", "attribute": "gender"}
    choice = choose(workspace, measured_rows(workspace, "c"), given, strict=True, captioners=("before", "after"))
    return [gate(change_rows(choice, ChangeOptions(metric=tuple(family))))[0] for family in FAMILIES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--images", type=int, default=1200)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--makers", nargs="+", choices=list(MAKERS), default=list(MAKERS))
    asked = parser.parse_args()
    for maker in asked.makers:
        counts = [Counter[str]() for _ in FAMILIES]
        for draw in range(1, asked.sets + 1):
            world = World(asked.data, "gender", asked.images, draw)
            world.random = random.Random(draw)
            for count, end in zip(counts, ended(world, maker, asked.seeds), strict=True):
                count[end] += 1
            if draw % 10 == 0 or draw == asked.sets:
                parts = [f"{', '.join(family)}: {dict(count)}" for family, count in zip(FAMILIES, counts, strict=True)]
                print(f"{maker}, {draw} sets. {'; '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
