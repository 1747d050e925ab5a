"""Slow results of the demo, as the finished runs that come with it.

They are LIC by two other encoders, DBAC, DBA and BA, DBAC of two captioners by another encoder, all but LIC of masked
photographs, and the captions of two captioners scored by a network. `python -m scripts.demo_scores` computes those that
`assets/demo/scored.zip` lacks (about 40 minutes for all) and writes it anew. That is due when the demo data or the
version of one of these measures changes; a test says so.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

from capbias_core.errors import CapbiasError
from capbias_core.question import Question
from capbias_core.runs.condition_runs import plan_conditions
from capbias_core.runs.demo import SCORED, demo_request, load
from capbias_core.runs.plan import PER_CAPTION, plan
from capbias_core.types import left_out_lines
from capbias_core.worker import execute
from capbias_core.workspace.ingest import DEMO
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace

NETWORK = "rnn"  # the smallest of the papers' encoders
FROZEN = "minilm"  # of the DBAC paper's; its training takes seconds
ENCODERS = (NETWORK, FROZEN)
SLOW_CONDITIONS = ("dbac", "dpa", "bias_amplification")
SEEDS = 5
CAPTIONS = ("amplifier", "faithful")  # the second repeats the bias of the human captions


def slow_runs(workspace: Workspace) -> list[RunSpec]:
    """The runs that come finished with the demo. workspace: with the demo data."""
    asked = replace(demo_request(), words=False, seeds=SEEDS)
    conditions = plan_conditions(workspace, DEMO, CAPTIONS[0], "gender")
    scored = Question(DEMO, CAPTIONS, "labels", "gender", (), attacker=(NETWORK,), words=True)
    specs = [
        *(spec for spec in plan(workspace, scored) if spec.measure == PER_CAPTION),
        *plan(workspace, replace(asked, metrics=("dbac", "dbac_equations", "dbac_accuracy", "dba", "ba"))),
        *(spec for name in ENCODERS for spec in plan(workspace, replace(asked, metrics=("lic",), attacker=(name,)))),
        *plan(workspace, replace(asked, captions=CAPTIONS, metrics=("dbac",), attacker=(FROZEN,))),
        *(spec for spec in conditions if spec.measure in SLOW_CONDITIONS),
    ]
    return list({spec.run_id: spec for spec in specs}.values())


def write(workspace: Workspace, path: Path = SCORED) -> None:
    """Compute these runs unless they are finished, and write their results and evidence as a zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for spec in slow_runs(workspace):
            if workspace.enqueue(spec, DEMO):
                execute(str(workspace.folder), spec.run_id)
            run = workspace.get_run(spec.run_id)
            if run.status != "finished":
                raise CapbiasError(f"The run of {spec.model} {run.status}: {run.message}.")
            # The setting follows from the key, and is named when the runs are added.
            rows = workspace.results([spec.run_id]).drop(columns=["setting", "setting_name"]).astype(object)
            results = rows.where(rows.notna(), None).to_dict("records")
            reasons = set(left_out_lines(run.lacking))  # which are among the notes
            notes = [note for note in run.notes if note not in reasons]
            kept = {"spec": asdict(run.spec), "notes": notes, "lacking": run.lacking}
            kept = json.dumps(kept | {"results": results})
            for name, data in [
                (".json", kept),
                *((f"/{own}", workspace.array(run.run_id, own)) for own in sorted(workspace.arrays(run.run_id))),
            ]:
                # A fixed date, so that the same runs give the same bytes.
                archive.writestr(zipfile.ZipInfo(run.run_id + name), data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        demo = Workspace(folder)
        load(demo)
        write(demo)
