"""What is measured of the demo before anything is asked."""

from __future__ import annotations

from capbias_core.measures.registry import DEFAULT_GROUPS
from capbias_core.runs.condition_runs import plan_conditions
from capbias_core.runs.engine import Engine
from capbias_core.runs.plan import Request, plan
from capbias_core.workspace.conditions import ORIGINAL, suggested_condition
from capbias_core.workspace.ingest import DEMO, DEMO_FOLDER, load_demo
from capbias_core.workspace.spec import RunSpec
from capbias_core.workspace.store import Workspace


def demo_request() -> Request:
    """What the dashboard opens on: the demo's captioners, every metric, scores and words of each caption."""
    names = sorted(path.stem for path in (DEMO_FOLDER / "results").glob("*.json"))
    return Request(
        collection=DEMO,
        captions=tuple(name for name in names if suggested_condition(name)[1] == ORIGINAL),
        table="labels",
        attribute="gender",
        metrics=DEFAULT_GROUPS,
        references="human",
        words=True,
    )


def demo_runs(workspace: Workspace) -> list[RunSpec]:
    """What is measured of the demo before anything is asked: `demo_request`, and LIC of the masked photographs."""
    masked = plan_conditions(workspace, DEMO, "amplifier", "gender", metrics=("lic",))
    return list({spec.run_id: spec for spec in (*plan(workspace, demo_request()), *masked.specs)}.values())


def run_demo(engine: Engine) -> list[str]:
    """Load the demo data and start its runs; returns the ids of those that were not finished already."""
    load_demo(engine.workspace)
    return engine.submit(demo_runs(engine.workspace), DEMO)
