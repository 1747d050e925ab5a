"""What large caption sets take: `python -m benchmarks.million --data FOLDER [--captions 10000 100000 1000000]`.

FOLDER holds annotations/captions.json and annotations/attributes.csv. For each size a captioner with so many captions,
four per image, and two human captions per image are made from a fixed seed: the start of a human caption of an image
with the label, and the end of another. Each step then runs in a process of its own and
prints its seconds, its processor seconds (what counts on a machine that others use too) and its largest memory. The
last column is the processor time per caption over that of the smallest size.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from capbias_core.attributes import get_attribute
from capbias_core.kinds import CAPTIONS, LABELS, REFERENCES
from capbias_core.load.read import File
from capbias_core.question import Question
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.runs.run import run_one
from capbias_core.workspace.ingest import ingest, read_frame
from capbias_core.workspace.store import Workspace

COLLECTION, PER_IMAGE, HUMAN = "million", 4, 2
SEEDS = 10


def imported(folder: Path) -> None:
    """The captions of the model, as a user loads them."""
    ingest(workspace(folder), COLLECTION, [File(folder / "model.json", (CAPTIONS,))])


def others(folder: Path) -> None:
    """Labels and human captions."""
    files = [File(folder / "labels.csv", (LABELS,)), File(folder / "human.json", (REFERENCES,))]
    ingest(workspace(folder), COLLECTION, files)


def scored(folder: Path, metrics: tuple[str, ...], references: str = "", words: bool = False) -> None:
    kept = workspace(folder)
    request = Question(COLLECTION, ("model",), "labels", "gender", metrics, references, seeds=SEEDS, words=words)
    for spec in plan(kept, request):
        if words == (spec.measure == "caption_scores"):
            outcome = run_one(kept, spec, lambda share, text: None)
            for row in outcome.results:
                print(f"    {row.metric} {row.value:.6f}", file=sys.stderr)


def kept_runs(folder: Path) -> None:
    """What the pages below show: LIC_M, scores and words of the captions."""
    engine = Engine(workspace(folder).folder)
    request = Question(COLLECTION, ("model",), "labels", "gender", ("LIC_M",), "human", seeds=SEEDS, words=True)
    ended = engine.wait(engine.submit(plan(engine.workspace, request), COLLECTION))
    assert {run.status for run in ended} == {"finished"}
    engine.close()


def first_view(folder: Path, view: str) -> None:
    """A page or tab as the first one of a new server."""
    from tests.app import opened  # not in the memory of steps that draw nothing

    os.environ["CAPBIAS_HOME"] = str(workspace(folder).folder)
    opened(view, collection=COLLECTION)


STEPS = {
    "import": imported,
    "import others": others,
    "LIC_M": lambda folder: scored(folder, ("LIC_M",)),
    "caption scores": lambda folder: scored(folder, ("LIC_M",), words=True),
    "BA, DBA_O": lambda folder: scored(folder, ("BA", "DBA_O"), "human"),
    "LIC": lambda folder: scored(folder, ("LIC",), "human"),
    "runs kept": kept_runs,
    **{view: partial(first_view, view=view) for view in ("Answer", "Table", "Captions", "Words", "Objects")},
}


def workspace(folder: Path) -> Workspace:
    return Workspace(folder / "workspace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of annotations/")
    parser.add_argument("--captions", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--per-image", type=int, default=PER_IMAGE, help="captions per image (default: %(default)s)")
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=list(STEPS), metavar="STEP")
    parser.add_argument("--only", nargs=2, metavar=("FOLDER", "STEP"), help="one step, in this process")
    options = parser.parse_args()
    if options.only:
        measured(Path(options.only[0]), options.only[1])
        return
    print(f"{'captions':>10} {'step':<15} {'seconds':>8} {'CPU':>8} {'GB':>6} {'CPU a caption, relative':>24}")
    smallest: dict[str, float] = {}
    for captions in options.captions:
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), options.data, captions, options.per_image)
            for step in options.steps:
                taken = in_a_process(folder, step)
                each = taken["cpu"] / captions
                ratio = each / smallest.setdefault(step, each)
                print(
                    f"{captions:>10,} {step:<15} {taken['seconds']:8.1f} {taken['cpu']:8.1f} {taken['memory']:6.2f} "
                    f"{ratio:24.2f}",
                    flush=True,
                )


def in_a_process(folder: str, step: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.million", "--only", folder, step]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measured(folder: Path, step: str) -> None:
    import sklearn.linear_model  # noqa: F401 (imports are not what is measured)

    start, busy = time.perf_counter(), time.process_time()
    STEPS[step](folder)
    taken = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - busy}
    print(json.dumps(taken | {"memory": largest_memory()}))


def largest_memory() -> float:
    """GB of this process since it started; what getrusage says is no less than its parent had when it forked."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e9


def generate(folder: Path, data: Path, captions: int, per_image: int) -> None:
    """The files of a captioner, of its images' labels, and of two human captions per image."""
    rng = np.random.default_rng(0)
    frame = read_frame(data / "annotations" / "captions.json", REFERENCES)
    frame = frame.merge(derive_gender(frame), on="image_id")
    split = [caption.lower().strip(" .").split() for caption in frame["caption"]]
    pools = [
        [words for words, label in zip(split, frame["label"], strict=True) if label == value and 6 <= len(words) <= 20]
        for value in ("Female", "Male")
    ]
    labels = rng.integers(0, 2, captions // per_image)
    model, human = [], []
    for image, label in enumerate(labels.tolist()):
        own = pools[label]
        start, *ends = (own[place] for place in rng.integers(0, len(own), 1 + per_image))
        model += [{"image_id": image, "caption": joined(start, end, rng)} for end in ends]
        people = (own[place] for place in rng.integers(0, len(own), HUMAN))
        human += [{"image_id": image, "caption": joined(start, end, rng)} for end in people]
    (folder / "model.json").write_text(json.dumps(model))
    annotations = [own | {"id": place} for place, own in enumerate(human)]
    images = [{"id": image} for image in range(len(labels))]
    (folder / "human.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    values = np.array(["Female", "Male"])[labels]
    pd.DataFrame({"image_id": range(len(labels)), "gender": values}).to_csv(folder / "labels.csv", index=False)


def derive_gender(frame: pd.DataFrame) -> pd.DataFrame:
    """image_id and label of the images whose human captions name one gender alone."""
    gender = get_attribute("gender")
    words = {value: set(gender.words[value]) for value in ("Female", "Male")}
    tokens = frame["caption"].str.lower().str.split()
    named = pd.DataFrame({value: [not own.isdisjoint(row) for row in tokens] for value, own in words.items()})
    by_image = named.groupby(frame["image_id"].to_numpy()).any()
    kept = by_image[by_image["Female"] != by_image["Male"]]
    return pd.DataFrame({"image_id": kept.index, "label": np.where(kept["Female"], "Female", "Male")})


def joined(start: list[str], end: list[str], rng: np.random.Generator) -> str:
    """The start of one caption and the end of another."""
    cut = int(rng.integers(2, min(len(start), len(end)) - 1))
    return " ".join([*start[:cut], *end[cut:]])


if __name__ == "__main__":
    main()
