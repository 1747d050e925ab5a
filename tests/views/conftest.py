"""The demo with its scores, for tests of views that show all of it."""

import pytest

from capbias_core.runs import demo
from capbias_core.runs.engine import run_all
from capbias_core.workspace.ingest import DEMO
from capbias_core.workspace.store import Workspace

SETS = ("amplifier", "faithful", "amplifier_masked_box", "amplifier_masked_person", "human")


@pytest.fixture(scope="session")
def scored_demo(tmp_path_factory) -> Workspace:
    """The demo data with the runs that come with it, and those that it opens on for two captioners, computed here."""
    workspace = Workspace(tmp_path_factory.mktemp("demo"))
    demo.load(workspace)
    runs = [spec for spec in demo.demo_runs(workspace) if spec.model in SETS]
    run_all(workspace, [spec for spec in runs if (spec.model, spec.measure) != ("faithful", "word_comparison")], DEMO)
    return workspace
