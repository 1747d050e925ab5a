"""Scores and words of two demo captioners by a network, as the finished runs that come with the demo.

`python -m scripts.demo_scores` trains them anew (minutes) and writes `assets/demo/scored.zip`. That is due when the
demo data or the version of the measure `caption_scores` changes; a test says so.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.runs.demo import SCORED
from capbias_core.runs.plan import PER_CAPTION, Request, plan
from capbias_core.runs.run import execute
from capbias_core.workspace.ingest import DEMO, load_demo
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

NETWORK = "rnn"  # the smallest of the papers' encoders
CAPTIONS = ("amplifier", "faithful")  # the second repeats the bias of the human captions


def network_runs(workspace: Workspace) -> list[RunSpec]:
    """The runs that come finished with the demo. workspace: with the demo data."""
    asked = Request(DEMO, CAPTIONS, "labels", "gender", (), attacker=NETWORK, words=True)
    return [spec for spec in plan(workspace, asked) if spec.measure == PER_CAPTION]


def write(workspace: Workspace, path: Path = SCORED) -> None:
    """Compute these runs where they are not finished, and write what they left as a zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for spec in network_runs(workspace):
            if workspace.enqueue(spec, DEMO, "demo"):
                execute(str(workspace.folder), spec.run_id, "demo")
            run = workspace.there(spec.run_id)
            if run.status != "finished":
                raise CapbiasError(f"The run of {spec.model} {run.status}: {run.message}.")
            kept = json.dumps({"spec": asdict(run.spec), "notes": run.notes})
            for name, data in [
                (".json", kept),
                *((f"/{own}", workspace.array(run.run_id, own)) for own in sorted(workspace.arrays(run.run_id))),
            ]:
                # A fixed date, so that the same runs give the same bytes.
                archive.writestr(zipfile.ZipInfo(run.run_id + name), data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        demo = Workspace(folder)
        load_demo(demo)
        write(demo)
