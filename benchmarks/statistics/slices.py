"""How often a slice of images is said to differ where none does, and how often one is found where only it leaks.

    python -m benchmarks.statistics.slices --sets 100

Objects follow topics, so slices differ in words and in labels. Where nothing is planted, the captioner tells what
people tell, in words as varied (`--main 0`) or plainer. Where it is, its captions of images with one object have a word
that tells the label in some of them. Everything goes through the library's own trainer and views/slices.py.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.statistics.coverage import caption_lists_of
from benchmarks.statistics.synthetic import Design, draw
from capbias_core.aggregate import Counts
from capbias_core.aggregate.ranking import ALPHA, holm
from capbias_core.attackers import load_attacker
from capbias_core.measures.lic import METRICS
from capbias_core.measures.training import AttackerTrainer
from capbias_core.prepare.split import balanced_split
from capbias_core.types import silent
from capbias_core.views.slices import DIFFERENCE, MOST, Members, slice_numbers

ASKED = ("LIC", "LIC_by_H")
HUMANS = 2
TOPICS_OF_OBJECT = 3
LEAKING = "0"  # the object with the planted word


def one_set(number: int, images: int = 3000, seeds: int = 10, main: float = 0.0, planted: float = 0.0) -> Mapping:
    """Which slices differ significantly in one data set, by metric. planted: share of the captions of images with the
    object LEAKING that tell the label."""
    drawn = draw(Design(main=main), images, number)
    topics = [int(caption.split("t0_")[1].split("_")[0]) for caption in drawn.humans[0]]
    objects = np.array([str(topic // TOPICS_OF_OBJECT) for topic in topics])
    rng = np.random.default_rng([number, 1])
    tells = (objects == LEAKING) & (rng.random(images) < planted)
    texts = zip(drawn.model, drawn.labels, tells, strict=True)
    model = [f"{text} w{label}" if told else text for text, label, told in texts]
    ids = tuple(f"{number}-{place}" for place in range(images))
    trainer = AttackerTrainer(load_attacker("ngram"), 2, drawn.labels, ids, silent, 1)
    splits = [balanced_split(drawn.labels, 2, seed, 0.1, ids) for seed in range(seeds)]
    guessed = trainer.crossed(caption_lists_of([model]), caption_lists_of(drawn.humans[:HUMANS]), splits)
    counts = Counts.merge([guesses.counts(side) for side, guesses in guessed.items()])
    known, names = frozenset(ids), [name for name, _ in Counter(objects.tolist()).most_common(MOST)]
    numbers = {}
    for name in names:
        inside = frozenset(image for image, own in zip(ids, objects, strict=True) if own == name)
        members = Members(inside, known)
        found_of = {metric: slice_numbers(METRICS[metric], counts, members, ("a", "b")) for metric in ASKED}
        numbers[name] = {metric: rows[DIFFERENCE] for metric, rows in found_of.items()}
    found = {}
    for metric in ASKED:
        tested = [name for name in names if "reason" not in numbers[name][metric]]
        p = holm(np.array([numbers[name][metric]["p"] for name in tested]))
        found[metric] = [name for name, own in zip(tested, p, strict=True) if own < ALPHA]
    return found


def shares(found: Sequence[Mapping]) -> dict[str, float]:
    """In % of sets, by metric: any slice is said to differ; LEAKING is; another one is."""
    rows = {}
    for metric in ASKED:
        rows[f"{metric}: any slice"] = 100 * np.mean([bool(own[metric]) for own in found])
        rows[f"{metric}: the planted slice"] = 100 * np.mean([LEAKING in own[metric] for own in found])
        rows[f"{metric}: another slice"] = 100 * np.mean([bool({*own[metric]} - {LEAKING}) for own in found])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("sets", 100), ("images", 3000), ("seeds", 10)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    for name in ("main", "planted"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    given = vars(parser.parse_args())
    found = [one_set(number, **given) for number in range(given.pop("sets"))]
    print(f"{len(found)} sets, " + ", ".join(f"{name} {value}" for name, value in given.items()))
    for name, value in shares(found).items():
        print(f"{value:6.1f}  {name}")


if __name__ == "__main__":
    main()
