"""Intervals and p values of metrics that train nothing, on data whose truth is known.

    python -m benchmarks.statistics.counting shares
    python -m benchmarks.statistics.counting pairs
    python -m benchmarks.statistics.counting signs --data FOLDER --images 2450 --sets 100

shares: how often a nominal 95% interval contains the true share, by Wilson and by the percentiles of a bootstrap.
pairs: how often two captioners drawn alike are told apart (nominal 5%), by the number of images that they share.
signs: how often the intervals of BA and DBA contain the value on all images, on images drawn from them with
replacement; of the paper's value the bootstrap with the signs of the drawn images, and the cross-fitted value's.
FOLDER has annotations/ (attributes.csv, captions.json, objects.csv) and results/.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import stdtr

from capbias_core.aggregate import Counts, Estimate, estimates_of, quotient
from capbias_core.aggregate.resampling import percentiles, resampled_sums
from capbias_core.attributes import get_attribute
from capbias_core.measures.bias_amplification import METRICS, SIGNS, counts_of_sides, of_tables
from capbias_core.measures.caption_side import CaptionSide

SHARES = ((0.014, 300), (0.014, 2450), (0.1425, 300), (0.1425, 2450), (0.036, 300), (0.1, 100))
SHARED = (2, 3, 5, 10, 20, 30, 50, 100)
DRAWS = 200
CAPTIONERS = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar")
GENDER = get_attribute("gender")


def shares(sets: int) -> None:
    print("share  captions  Wilson  bootstrap")
    for share, n in SHARES:
        rng, wilson, drawn = np.random.default_rng(1), 0, 0
        for wrong in rng.binomial(n, share, sets):
            sums = np.column_stack([np.arange(n) < wrong, np.ones(n)]).astype(float)
            images = tuple(map(str, range(n)))
            low, high = Estimate(images, sums, np.zeros(0), 1.0, quotient, share=True).interval()
            wilson += low is not None and high is not None and low <= share <= high
            low, high = percentiles(quotient(resampled_sums(sums, 1)))
            drawn += low is not None and high is not None and low <= share <= high
        print(f"{share:6.2%}  {n:7}  {wilson / sets:6.1%}  {drawn / sets:6.1%}", flush=True)


def _errors(share: float) -> Callable:
    """Errors of two captioners that agree on half of the images."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        alike, both = rng.random(n) < 0.5, rng.random(n) < share
        return np.stack([np.where(alike, both, rng.random(n) < share) for _ in range(2)]).astype(float)

    return draw


SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "errors, 1.4%": _errors(0.014),
    "errors, 10%": _errors(0.1),
    "errors, 50%": _errors(0.5),
    "lengths": lambda rng, n: rng.poisson(10, (2, n)).astype(float),
    "skewed": lambda rng, n: rng.exponential(1, (2, n)) ** 2,
}


def pairs(sets: int) -> None:
    """As `rank` tests a pair: the bootstrap's standard error, by the normal distribution and by Student's t."""
    for n in SHARED:
        rng, told = np.random.default_rng(0), {}
        weights = rng.multinomial(n, np.full(n, 1 / n), DRAWS)
        for name, draw in SCORES.items():
            normal = student = 0
            for _ in range(sets):
                first, second = draw(rng, n)
                difference, differing = first - second, np.count_nonzero(first != second)
                error = (weights @ difference / n).std()
                if error > 0 and differing > 1:
                    by_error = abs(difference.mean()) / error
                    normal += math.erfc(by_error / math.sqrt(2)) < 0.05
                    student += 2 * stdtr(differing - 1, -by_error) < 0.05
            told[name] = f"{normal / sets:5.1%} {student / sets:5.1%}"
        print(f"{n:4} shared: " + "; ".join(f"{name} {text}" for name, text in told.items()), flush=True)


def signs(sets: int, images: int, data: Path, captioners: Sequence[str]) -> None:
    print(f"{images:,} images, {sets} sets: coverage (half width), bias; all x100")
    table = pd.read_csv(data / "annotations" / "attributes.csv", dtype=str, keep_default_na=False)
    labels = table[table["gender"].isin(GENDER.values)].set_index("image_id")["gender"]
    objects = pd.read_csv(data / "annotations" / "objects.csv", dtype=str, keep_default_na=False)
    human = _captions(json.loads((data / "annotations" / "captions.json").read_text())["annotations"], labels)
    for name in captioners:
        model = _captions(json.loads((data / "results" / f"{name}.json").read_text()), labels)
        shared = sorted(set(human["image_id"]) & set(model["image_id"]))
        sides = [CaptionSide(frame, shared, GENDER, labels) for frame in (human, model)]
        counts = counts_of_sides(sides, objects.set_index("image_id")["objects"])[0]
        for metric in (own for own in SIGNS if f"{own} human" in counts.columns):
            tables = [counts.columns[f"{metric} {side}"] for side in ("human", "model")]
            rng, whole = np.random.default_rng(1), _estimates(metric, *tables)[metric].value
            values: dict[str, list[tuple[float | None, ...]]] = {}
            for _ in range(sets):
                drawn = rng.integers(0, len(counts.images), images)
                for way, own in _estimates(metric, *(table[drawn] for table in tables)).items():
                    low, high = replace(own, no_interval="").interval()
                    values.setdefault(way, []).append((own.value, low, high))
            for way, rows in values.items():
                value, low, high = np.array(rows, dtype=float).T
                inside = np.mean((low <= whole) & (whole <= high))
                print(
                    f"{name:12} {way:15} {whole:6.2f}  {inside:5.0%} (±{np.mean(high - low) / 2:.2f})  "
                    f"{np.mean(value) - whole:+.2f}",
                    flush=True,
                )


def _estimates(metric: str, human: csr_array, model: csr_array) -> dict[str, Estimate]:
    """The paper's value and the cross-fitted one of these images."""
    images = tuple(map(str, range(human.shape[0])))
    columns, constants = of_tables(metric, images, human, model, len(GENDER.values))
    counts = Counts.by_image(images, np.zeros(len(images), dtype=int), columns, constants=constants)
    return {name: own for (name, _), own in estimates_of(METRICS.values(), counts, GENDER.values).items()}


def _captions(rows: list[dict], labels: pd.Series) -> pd.DataFrame:
    frame = pd.DataFrame(rows)[["image_id", "caption"]].astype(str)
    frame = frame[frame["image_id"].isin(labels.index)].reset_index(drop=True)
    return frame.assign(caption_index=frame.groupby("image_id").cumcount())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("shares", "pairs", "signs"))
    parser.add_argument("--sets", type=int, default=1500)
    parser.add_argument("--images", type=int, default=2450)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--captioners", nargs="+", default=CAPTIONERS)
    options = parser.parse_args()
    if options.what == "signs":
        signs(options.sets, options.images, options.data, options.captioners)
    else:
        {"shares": shares, "pairs": pairs}[options.what](options.sets)


if __name__ == "__main__":
    main()
