"""How often is a verdict of amplification wrong, and how often is amplification found?

Draws data sets whose best possible LIC is 0 (synthetic.py), from captions as diverse as people's to five synonyms a
topic, and others with amplification planted, and counts the verdicts. Everything is the library's: splits, attackers,
retelling, intervals with refits.

    python -m benchmarks.statistics.baseline --images 1576 --sets 200
    python -m benchmarks.statistics.baseline --images 20000 --sets 20 --designs one-topic plain

Of more than 20,000 images the library retells a sample of that many, so the verdict is that of 20,000.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.statistics.synthetic import Design, Drawn, draw
from capbias_core.aggregate import Estimate, difference
from capbias_core.aggregate.verdict import VERDICTS
from capbias_core.attackers import load_attacker
from capbias_core.measures.held_out import confidence_where_right
from capbias_core.measures.lic_baseline import MOST_RETOLD, attacked, baseline_estimates, verdict_of
from capbias_core.measures.training import AttackerTrainer, CaptionList
from capbias_core.prepare import balanced_split
from capbias_core.types import silent

# Best possible LIC 0. `told`: how often a caption tells its image's topic; else it tells any topic of its label.
# Swapped captions give the label away as before, and are wrong about their images. Mistaken ones are so in half of what
# goes with the label, and right in one or two things that do not.
NULL = {
    "one-topic": Design(slots=1),
    "plain": Design(),
    "half-plain": Design(main=0.5),
    "equal": Design(main=0.0),
    "two-synonyms": Design(synonyms=2),
    "three-topics": Design(slots=3),
    "told-70": Design(told=0.7),
    "told-30": Design(told=0.3),
    "swapped-20": Design(swapped=0.2),
    "swapped-50": Design(swapped=0.5),
    "swapped-80": Design(swapped=0.8),
    "mistaken-1": Design(slots=2, neutral=1, leaning=1.1, mistaken=0.5),
    "mistaken-2": Design(slots=3, neutral=2, leaning=1.1, mistaken=0.5),
}
PLANTED = {
    "amplified-30": Design(amplified=0.3),
    "amplified-60": Design(amplified=0.6),
    "one-topic-60": Design(slots=1, amplified=0.6),
    "equal-60": Design(main=0.0, amplified=0.6),
}
DESIGNS = NULL | PLANTED


@dataclass(frozen=True)
class Found:
    """One data set: its numbers x100, whether LIC's interval is above 0, the verdict, the seconds of all of it."""

    lic: float
    above: bool
    baseline: float
    excess: float
    low: float
    high: float
    share: float
    verdict: str
    seconds: float


def found(drawn: Drawn, attacker: str, seeds: int) -> Found:
    """LIC, baseline and verdict of one data set by the library."""
    start = time.perf_counter()
    images = tuple(map(str, range(len(drawn.labels))))
    every = np.arange(len(images))
    model, *human = (CaptionList(every, own, every) for own in (drawn.model, *drawn.humans))
    splits = [balanced_split(drawn.labels, 2, seed, 0.1, images) for seed in range(seeds)]
    trainer = AttackerTrainer(load_attacker(attacker), 2, drawn.labels, images, silent, 7 * seeds)
    sides = attacked(trainer, [model], human, splits)
    assert sides.human is not None and sides.plainness is not None, "five human captions an image are retold"
    of = confidence_where_right
    lic = difference(of(sides.model), sides.model, of(sides.human), sides.human, 100)
    own = baseline_estimates(sides, lic)
    baseline, excess = (own[name].value if own else np.nan for name in ("LIC_baseline", "LIC_excess"))
    low, high = _interval(own["LIC_excess"]) if own else (np.nan, np.nan)
    above, share = _interval(lic)[0] > 0, sides.plainness.share
    seconds = time.perf_counter() - start
    return Found(lic.value, above, baseline, excess, low, high, share, verdict_of(own), seconds)


def _interval(found: Estimate) -> tuple[float, float]:
    """nan where there is none."""
    low, high = found.interval()
    return (low, high) if low is not None and high is not None else (np.nan, np.nan)


def sets(design: Design, images: int, number: int, attacker: str, seeds: int) -> Iterator[Found]:
    for seed in range(number):
        yield found(draw(design, images, seed), attacker, seeds)


def line(name: str, every: list[Found]) -> str:
    mean = {key: np.nanmean([getattr(own, key) for own in every]) for key in ("lic", "baseline", "excess", "seconds")}
    shares = "  ".join(f"{own} {np.mean([one.verdict == own for one in every]):.3f}" for own in VERDICTS)
    above = np.mean([own.above for own in every])
    return (
        f"{name:14} {len(every):4} sets  LIC {mean['lic']:5.1f} (above 0 {above:.3f})  "
        f"baseline {mean['baseline']:5.1f}  excess {mean['excess']:5.1f}  {shares}  {mean['seconds']:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1576)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS), metavar="NAME")
    parser.add_argument("--attacker", default="ngram")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="a file to which each data set's numbers are added, as JSON lines")
    options = parser.parse_args()
    if options.images > MOST_RETOLD:
        parser.error(f"--images {options.images}: at most {MOST_RETOLD}, of which all are retold")
    print(f"{options.images} images, {options.attacker}, {options.seeds} seeds")
    for name in options.designs:
        every = []
        with threadpool_limits(1):
            for own in sets(DESIGNS[name], options.images, options.sets, options.attacker, options.seeds):
                every.append(own)
                if options.keep:
                    with open(options.keep, "a", encoding="utf-8") as file:
                        file.write(json.dumps({"design": name, "images": options.images} | asdict(own)) + "\n")
        print(line(name, every), flush=True)


if __name__ == "__main__":
    main()
