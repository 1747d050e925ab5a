"""Seconds to mask photographs in all five ways: part, segment, box, object, both.

    python -m benchmarks.masking PHOTOGRAPHS INSTANCES [--fill grey]

Photographs are read, masked and written into a workspace of its own, as `mask` does. Of the objects, the first by name
that a photograph shows is hidden.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from capbias_core.load import SEGMENTS
from capbias_core.measures.mask import MASKED, MaskOptions
from capbias_core.runs.artifact_runs import plan_masking
from capbias_core.runs.run import run_one
from capbias_core.vision.masking import FILLS, PERSON
from capbias_core.workspace.ingest import read_part, store
from capbias_core.workspace.photographs import keep_images
from capbias_core.workspace.store import Workspace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("instances", type=Path)
    parser.add_argument("--fill", choices=tuple(FILLS), default="grey")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(folder)
        keep_images(workspace, args.photographs, "c")
        start = time.perf_counter()
        outlines = read_part(args.instances, SEGMENTS, "outlines")
        store(workspace, "c", [outlines])
        print(f"outlines read and kept: {time.perf_counter() - start:.1f} s")
        names: list[str] = sorted(set(outlines.frame["object"]) - {PERSON}) if outlines.frame is not None else []
        departures = {name: float(-place) for place, name in enumerate(names)}
        _mask(workspace, args.fill, departures)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.2f} GB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _mask(workspace: Workspace, fill: str, departures: dict[str, float]) -> None:
    start, busy, written = time.perf_counter(), time.process_time(), 0
    for condition in MASKED:
        before = time.perf_counter()
        options = MaskOptions(condition=condition, fill=fill, departures=departures)
        run_one(workspace, plan_masking(workspace, "c", options), lambda *_: None)
        rows = workspace.items("images", "c")[-1].rows
        written += rows
        print(f"{condition}: {rows} photographs in {time.perf_counter() - before:.1f} s")
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    print(f"all: {written} masked photographs in {seconds:.1f} s, {busy:.1f} s of one core's work")


if __name__ == "__main__":
    main()
