"""What is measured of the demo before anything is asked."""

from __future__ import annotations

import json
import zipfile

from capbias_core.measures.registry import default_groups
from capbias_core.question import Question
from capbias_core.runs.condition_runs import plan_conditions
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import plan
from capbias_core.runs.run import is_current
from capbias_core.types import Result
from capbias_core.workspace.conditions import ORIGINAL, suggested_condition
from capbias_core.workspace.ingest import DEMO, DEMO_FOLDER, load_demo
from capbias_core.workspace.spec import RunSpec, Setting
from capbias_core.workspace.store import Workspace

# Slow results: other encoders, both directions, captions scored by a network (made by scripts/demo_scores.py).
SCORED = DEMO_FOLDER / "scored.zip"


def demo_request() -> Question:
    """What the dashboard opens on: the demo's captioners, every metric, scores and words of each caption."""
    names = sorted(path.stem for path in (DEMO_FOLDER / "results").glob("*.json"))
    return Question(
        collection=DEMO,
        captions=tuple(name for name in names if suggested_condition(name)[1] == ORIGINAL),
        labels="labels",
        attribute="gender",
        metrics=default_groups(),
        references="human",
        words=True,
    )


def demo_runs(workspace: Workspace) -> list[RunSpec]:
    """What is measured of the demo before anything is asked: `demo_request`, and LIC of the masked photographs."""
    masked = plan_conditions(workspace, DEMO, "amplifier", "gender", seeds=None, metrics=("lic",))
    return list({spec.run_id: spec for spec in (*plan(workspace, demo_request()), *masked)}.values())


def add_finished(workspace: Workspace) -> list[str]:
    """The IDs of the finished runs that come with the demo, which are then in the workspace.

    Left out are runs of an earlier version of their measure, and those of inputs that the demo does not have: their
    numbers would not be what a run gives here.
    """
    held, added = {item.hash for item in workspace.items(collection=DEMO)}, []
    with zipfile.ZipFile(SCORED) as archive:
        for name in (name for name in archive.namelist() if name.endswith(".json")):
            stored = json.loads(archive.read(name))
            spec, folder = RunSpec(**stored["spec"]), name.removesuffix(".json")
            if spec.run_id == folder and is_current(spec) and spec.inputs() <= held:
                members = [member for member in archive.namelist() if member.startswith(f"{folder}/")]
                arrays = {member.removeprefix(f"{folder}/"): archive.read(member) for member in members}
                setting = Setting.of(spec)
                named = {"setting": setting.key, "setting_name": setting.name}
                results = [Result(**row | named) for row in stored["results"]]
                if workspace.enqueue(spec, DEMO):
                    try:
                        run = workspace.get_run(folder)
                        workspace.finish(run, results, arrays, stored["notes"], stored["lacking"])
                        workspace.log(folder, "imported; it was computed elsewhere")
                    except BaseException:  # such as a full disk, after which the run would wait for this process
                        workspace.end_here(folder, "cancelled", "cancelled")
                        raise
                added.append(spec.run_id)
    return added


def load(workspace: Workspace) -> None:
    """Store the demo data, and the slow results that come with it."""
    load_demo(workspace)
    add_finished(workspace)


def run_demo(engine: Engine) -> list[str]:
    """Load the demo data and start its runs; returns the ids of those that were not finished already."""
    load(engine.workspace)
    return engine.submit(demo_runs(engine.workspace), DEMO)
