"""How quick BA and DBA are: `python -m benchmarks.cooccurrence --data FOLDER`.

FOLDER as for benchmarks.interactive. In one run: BA, DBA_G and DBA_O of every captioner of the folder with its
references, one run after another as the engine does; then the same on a million generated captions (half of them
human, half a model's, of 500,000 images), with the largest memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.interactive import COLLECTION, load
from capbias_core.attributes import get_attribute
from capbias_core.measures.base import estimates_of
from capbias_core.measures.bias_amplification import METRICS as MEASURED
from capbias_core.measures.bias_amplification import counts_of_frames
from capbias_core.runs.plan import Request, plan
from capbias_core.runs.run import run_one
from capbias_core.workspace.store import Workspace

METRICS = ("BA", "DBA_G", "DBA_O")
IMAGES = 500_000
PEOPLE = {"Female": ("woman", "girl", "lady"), "Male": ("man", "boy", "guy")}
DOING = ("holding", "beside", "watching", "carrying", "near", "buying", "painting", "cleaning")
OBJECTS = ("umbrella", "dog", "cake", "tie", "horse", "laptop", "pizza", "skateboard", "cat", "bench", "kite", "vase")
PLACES = ("kitchen", "street", "park", "garden", "office", "beach", "station", "library")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = load(Path(folder), options.data)
        time_captioners(Workspace(folder), names)
    time_million()


def time_captioners(workspace: Workspace, names: list[str]) -> None:
    request = Request(COLLECTION, tuple(names), "labels", "gender", METRICS, references="human")
    specs = plan(workspace, request)
    start = time.perf_counter()
    for spec in specs:
        run_one(workspace, spec, lambda share, text: None)
    print(f"BA and DBA, {len(specs)} captioners with references: {time.perf_counter() - start:.1f} s (at most 5)")


def time_million() -> None:
    human, model, labels, objects = generated(IMAGES)
    before = peak()
    start = time.perf_counter()
    gender = get_attribute("gender")
    counts = counts_of_frames(human, model, labels, gender, objects)
    found = estimates_of(MEASURED.values(), counts, gender.values)
    values = {name: (own.value, own.interval()) for (name, _), own in found.items() if not own.no_interval}
    taken = time.perf_counter() - start
    print(
        f"BA and DBA, {len(human) + len(model):,} generated captions: {taken:.1f} s (at most 60), memory at most "
        f"{peak():.1f} GB, {before:.1f} GB of it before (at most 2)"
    )
    for name, (value, (low, high)) in values.items():
        print(f"  {name} {value:.2f} [{low:.2f}, {high:.2f}]")


def generated(images: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]:
    """Human captions, a model's, labels and objects; the model leans more than the humans do."""
    rng = np.random.default_rng(0)
    ids = [str(image) for image in range(images)]
    label = rng.integers(0, 2, images)
    values = np.array(list(PEOPLE))[label]

    def captions(lean: float) -> pd.DataFrame:
        thing = rng.integers(0, len(OBJECTS), images)
        thing = np.where(rng.random(images) < lean, thing // 2 * 2 + label, thing)
        person = [PEOPLE[value][place] for value, place in zip(values, rng.integers(0, 3, images), strict=True)]
        doing, place = np.array(DOING)[rng.integers(0, 8, images)], np.array(PLACES)[rng.integers(0, 8, images)]
        parts = zip(person, doing, np.array(OBJECTS)[thing], place, strict=True)
        texts = [f"a {who} {does} a {what} in the {where}" for who, does, what, where in parts]
        return pd.DataFrame({"image_id": ids, "caption_index": 0, "caption": texts})

    human, model = captions(0.2), captions(0.4)
    objects = pd.Series(np.array(OBJECTS)[rng.integers(0, len(OBJECTS), images)], index=ids)
    return human, model, pd.Series(values, index=ids), objects


def peak() -> float:
    """The largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
