"""Coverage of intervals and false positives of comparisons, over data sets without quotas whose truth is known.

    python -m benchmarks.statistics.coverage --sets 200 --images 1500 --attacker ngram

Data sets of one world differ by sampling alone, so the expected value of a score is its mean over sets. A nominal 95%
interval should contain it in 95%. Captioners drawn alike are exchangeable: a pair that is told apart is a false
positive, and so is a human caption list as captioner whose LIC is not 0 by its interval. Power: how often an amplified
captioner is told apart from a plain one. Everything goes through the library's own trainer, estimates and `rank`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.statistics.synthetic import Design, draw
from capbias_core.aggregate import Counts, Estimate, estimates_of, rank
from capbias_core.attackers import load_attacker
from capbias_core.measures.lic import METRICS
from capbias_core.measures.training import AttackerTrainer, CaptionList, Guesses
from capbias_core.prepare.split import balanced_split
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import silent

ASKED = ("LIC", "LIC_M", "LIC_D")
WORLD = 1


@dataclass(frozen=True)
class Setting:
    """How one data set is drawn and scored. humans: caption lists of people; captioners: how many are drawn alike.
    having: the share of the images that one more captioner has captions of."""

    images: int = 1500
    attacker: str = "ngram"
    seeds: int = 10
    test_share: float = 0.1
    humans: int = 5
    captioners: int = 7
    amplified: float = 0.3
    having: float = 0.85
    design: Design = Design()


@dataclass(frozen=True)
class Found:
    """Of one data set. values, intervals: by score. apart: by comparison, whether any pair is told apart. seconds: of
    the attackers of one captioner, of all seeds and of one."""

    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    apart: dict[str, bool]
    seconds: tuple[float, float]


class _Set:
    """The attackers of one data set."""

    def __init__(self, setting: Setting, labels: np.ndarray, number: int):
        images = tuple(f"{number}-{place}" for place in range(len(labels)))
        self.trainer = AttackerTrainer(load_attacker(setting.attacker), 2, labels, images, silent, 1)
        share = setting.test_share
        self.splits = [balanced_split(labels, 2, seed, share, images) for seed in range(setting.seeds)]

    def side(self, captions: Sequence[list[str]], model: list[str] | None = None) -> Guesses:
        """Guesses on one side. model: the captions to whose words human ones are aligned."""
        return self.trainer.held_out(
            caption_lists_of(captions), self.splits, "", caption_lists_of([model]) if model else None
        )

    def scores(self, model: list[str], humans: Sequence[list[str]]) -> dict[str, Estimate]:
        own = [METRICS[name] for name in ASKED]
        parts = [self.side([model]).counts("model")] + ([self.side(humans, model).counts("human")] if humans else [])
        return {name: found for (name, _), found in estimates_of(own, Counts.merge(parts), ()).items()}


def caption_lists_of(captions: Iterable[list[str]]) -> list[CaptionList]:
    return [CaptionList(np.arange(len(own)), Tokens.read(list(own)), np.arange(len(own))) for own in captions]


def one_set(setting: Setting, number: int) -> Found:
    """Draw and score the data set of this number."""
    drawn = draw(setting.design, setting.images, number, setting.captioners, WORLD)
    amplified = draw(replace(setting.design, amplified=setting.amplified), setting.images, number, 1, WORLD)
    own = _Set(setting, drawn.labels, number)
    humans = drawn.humans[: setting.humans]
    scores = [own.scores(model, humans if place < 2 else ()) for place, model in enumerate(drawn.models)]
    levels = {f"captioner {place}": found["LIC_M"] for place, found in enumerate(scores)}
    started = time.perf_counter()
    higher = own.scores(amplified.model, ())["LIC_M"]
    refits = time.perf_counter() - started
    own.splits, started = own.splits[:1], time.perf_counter()
    own.side([amplified.model])
    single = time.perf_counter() - started
    own = _Set(setting, drawn.labels, number)
    first = round(setting.having * setting.images)
    fewer = _Set(setting, drawn.labels[:first], number).scores(drawn.models[1][:first], ())["LIC_M"]
    apart = {"a pair, LIC_M": _apart(dict(list(levels.items())[:2])), "any of all pairs, LIC_M": _apart(levels)}
    pair = {"all": levels["captioner 0"], "fewer": fewer}
    apart[f"a pair, LIC_M, one on {setting.having:.0%} of the images"] = _apart(pair)
    apart["power: an amplified captioner beside a plain one, LIC_M"] = _apart(
        {"plain": levels["captioner 0"], "": higher}
    )
    found = scores[0]
    if len(humans) > 1:
        apart["a pair, LIC"] = _apart({str(place): scores[place]["LIC"] for place in range(2)})
        low, high = _interval(own.scores(humans[0], humans[1:])["LIC"])
        apart["a human caption list as captioner, LIC not 0"] = not low <= 0 <= high
    values = {name: item.value for name, item in found.items()}
    return Found(values, {name: _interval(item) for name, item in found.items()}, apart, (refits, single))


def _apart(estimates: dict[str, Estimate]) -> bool:
    return any(pair.apart for pair in rank(estimates).pairs)


def _interval(found: Estimate) -> tuple[float, float]:
    low, high = found.interval()
    return (low, high) if low is not None and high is not None else (-np.inf, np.inf)


def table(found: Sequence[Found]) -> dict[str, float]:
    """Shares in %: by score how often its interval contains the mean over sets, by comparison how often it is told
    apart; and seconds."""
    rows = {}
    for name in found[0].values:
        truth = np.mean([own.values[name] for own in found])
        rows[f"coverage of {name}"] = 100 * np.mean(
            [own.intervals[name][0] <= truth <= own.intervals[name][1] for own in found]
        )
    rows |= {name: 100 * np.mean([own.apart[name] for own in found]) for name in found[0].apart}
    for place, name in enumerate(("all seeds", "one seed")):
        rows[f"seconds of one captioner's attackers, {name}"] = float(np.median([own.seconds[place] for own in found]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = Setting()
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    for name in ("images", "seeds", "humans", "captioners"):
        parser.add_argument(f"--{name}", type=int, default=getattr(own, name))
    for name in ("test_share", "amplified", "having"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=getattr(own, name))
    parser.add_argument("--attacker", default=own.attacker)
    given = vars(parser.parse_args())
    sets, jobs = given.pop("sets"), given.pop("jobs")
    score, found = partial(one_set, Setting(**given)), []
    with ProcessPoolExecutor(jobs) as pool:
        for result in map(score, range(sets)) if jobs == 1 else pool.map(score, range(sets)):
            found.append(result)
            if len(found) % 20 == 0 or len(found) == sets:
                _show(found, given)


def _show(found: Sequence[Found], given: dict) -> None:
    print(f"\n{len(found)} sets, " + ", ".join(f"{name} {value}" for name, value in given.items()))
    for name, value in table(found).items():
        print(f"{value:8.2f}  {name}", flush=True)


if __name__ == "__main__":
    main()
